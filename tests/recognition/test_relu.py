"""One reader of ReLU networks behind four doors: equivalence, gates, local limits, recognition."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import implicit_bias as ib
from implicit_bias.equivalence import ReLUWeights, canonical_form
from implicit_bias.limits.relu import network_units
from implicit_bias.networks import BalancedReLU, DeepLinear, DeepReLU, FReLU, ResidualReLU
from implicit_bias.networks.recognition import Form, read_relu, recognise, take_subject
from tests.own_modules import drawn, perceptron

D, H = 4, 3
RNG = np.random.default_rng(0)
X, W, A = RNG.normal(size=(30, D)), RNG.normal(size=(H, D)), RNG.normal(size=H)
Y = np.where(np.arange(30) % 2, 1.0, -1.0)
SLOPE = 0.3


class Plain(nn.Module):
    """Parameters in another order, transposed, with an activation that states no slope."""

    def __init__(self, W: np.ndarray, a: np.ndarray) -> None:
        super().__init__()
        self.out = nn.Parameter(torch.tensor(a))
        self.inner = nn.Parameter(torch.tensor(W.T.copy()))

    def forward(self, X: Tensor) -> Tensor:
        return torch.relu(X @ self.inner) @ self.out


class Leaky(Plain):
    def forward(self, X: Tensor) -> Tensor:
        return nn.functional.leaky_relu(X @ self.inner, SLOPE) @ self.out


class Misleading(Plain):
    """An attribute `w1` that is the transpose of what other networks call so."""

    @property
    def w1(self) -> Tensor:
        return self.inner


class Remembering(Plain):
    """Keeps its units, and lists of them, which hang on the graph of the last call."""

    def forward(self, X: Tensor) -> Tensor:
        self.units = torch.relu(X @ self.inner)
        self.kept = [{"units": self.units}]
        return self.units @ self.out


class Casting(Plain):
    """Computes in single precision, whatever comes in."""

    def forward(self, X: Tensor) -> Tensor:
        units = torch.relu(X.float() @ self.inner.to(torch.float32)).type(torch.float32)
        return units.to(dtype=torch.float32) @ self.out.float()


def called(network: nn.Module) -> nn.Module:
    network(torch.tensor(X))
    return network


class Shortcut(Plain):
    def forward(self, X: Tensor) -> Tensor:
        return super().forward(X) + X.sum(dim=1)


class Frozen(Plain):
    def forward(self, X: Tensor) -> Tensor:
        return ((X > 0).double() @ X.new_ones(D, H) * (X @ self.inner)) @ self.out


def sequential(activation: nn.Module, *, biases: bool = False, dtype: Any = torch.float64) -> Any:
    layers = nn.Linear(D, H, biases, dtype=dtype), nn.Linear(H, 1, biases, dtype=dtype)
    with torch.no_grad():
        layers[0].weight.copy_(torch.tensor(W))
        layers[1].weight.copy_(torch.tensor(A[None]))
    return nn.Sequential(layers[0], activation, layers[1])


def deep_relu() -> DeepReLU:
    network = DeepReLU(D, (H,), slope=SLOPE)
    with torch.no_grad():
        for layer, given in zip(network.layers, (W, A[None]), strict=True):
            layer.copy_(torch.tensor(given))
    return network


READ: dict[str, tuple[Callable[[], nn.Module], float]] = {
    "sequential": (lambda: sequential(nn.ReLU()), 0.0),
    "sequential, leaky": (lambda: sequential(nn.LeakyReLU(SLOPE)), SLOPE),
    "own module": (lambda: Plain(W, A), 0.0),
    "own module, leaky": (lambda: Leaky(W, A), SLOPE),
    "own module with w1": (lambda: Misleading(W, A), 0.0),
    "own module that was called": (lambda: called(Remembering(W, A)), 0.0),
    "own module in single precision": (lambda: called(Casting(W, A)), 0.0),
    "ReLU": (lambda: ib.ReLU.from_weights(W, A), 0.0),
    "DeepReLU": (deep_relu, SLOPE),
    "BalancedReLU": (lambda: BalancedReLU.from_weights(W, A), 0.0),
}  # fmt: skip


def by_reader(network: nn.Module) -> tuple[Any, float]:
    found = read_relu(network)
    return found.matrices[1].T * found.matrices[0], found.slope


def by_local_limit(network: nn.Module) -> tuple[Any, float]:
    found = network_units(network)
    return found.signs[:, None] * found.u, found.slope


def by_diagnosis(network: nn.Module) -> tuple[Any, float]:
    structure = recognise(take_subject(network, X, Y))
    assert structure.form is Form.TWO_LAYER_RELU and structure.layers is not None
    first, last = structure.layers.matrices(structure.subject.weights)
    return (last.T * first).numpy(), structure.layers.slope


@pytest.mark.parametrize("door", [by_reader, by_local_limit, by_diagnosis])
@pytest.mark.parametrize("name", READ)
def test_every_door_reads_the_same_units(name, door) -> None:
    make, slope = READ[name]
    units, found = door(make())
    assert np.allclose(units, A[:, None] * W, rtol=1e-14, atol=0)
    assert found == pytest.approx(slope, rel=1e-12, abs=0)


def assert_canonical(network: nn.Module, weights: ReLUWeights) -> None:
    found, known = canonical_form(network).weights, canonical_form(weights).weights
    assert found.slope == pytest.approx(known.slope, rel=1e-12, abs=0)
    for one, other in zip(
        (*found.matrices, *found.biases), (*known.matrices, *known.biases), strict=True
    ):
        assert np.allclose(one, other, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("name", READ)
def test_equivalence_has_the_form_of_the_same_weights(name) -> None:
    make, slope = READ[name]
    assert_canonical(make(), ReLUWeights.from_arrays([W, A[None]], slope=slope))


@pytest.mark.parametrize("name", READ)
def test_gates_of_a_network_are_those_of_its_first_layer(name) -> None:
    make, slope = READ[name]
    gating = ib.gates.ReLUGates.from_network(make())
    assert np.array_equal(gating.weights, W)
    assert np.allclose(gating.transform(X), np.where(X @ W.T >= 0, 1.0, slope))


DOORS = {
    "equivalence": canonical_form,
    "gates": ib.gates.ReLUGates.from_network,
    "local limit": lambda network: ib.limits.relu_local_limit(network, X, Y),
}
OTHERS = {
    "tanh": lambda: sequential(nn.Tanh()),
    "shortcut": lambda: Shortcut(W, A),
    "no layers": nn.Sequential,
    "linear": lambda: DeepLinear(D, hidden_widths=(H,)),
    "skips": lambda: ResidualReLU(D, H),
    "frozen gates": lambda: Frozen(W, A),
    "one layer": lambda: nn.Linear(D, 1),
    "deep tanh": lambda: perceptron(D, 2, 2 * D, act=nn.Tanh),
    "convolution": lambda: nn.Sequential(nn.Unflatten(1, (1, D)), nn.Conv1d(1, 2, 2), nn.Flatten()),
}  # fmt: skip


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("name", OTHERS)
def test_every_door_refuses_others_alike(name, door) -> None:
    network = OTHERS[name]()
    kind, said = type(network).__name__, "is not a fully connected ReLU network"
    # The kinds that doors have always raised: one error is both.
    for error in (TypeError, ValueError):
        with pytest.raises(error, match=f"{kind} {said}.*`network` must be a networks.ReLU"):
            DOORS[door](network)


def test_what_diagnosis_does_not_take_for_a_relu_network_is_named_by_its_form() -> None:
    assert recognise(take_subject(Shortcut(W, A), X, Y)).form is Form.NOT_HOMOGENEOUS
    assert recognise(take_subject(sequential(nn.Tanh()), X, Y)).form is Form.NOT_HOMOGENEOUS


def test_biases_are_read_by_all_and_refused_where_they_are_not_covered() -> None:
    torch.manual_seed(0)
    network = sequential(nn.ReLU(), biases=True)
    first, last = network[0].bias.detach().numpy(), network[2].bias.detach().numpy()
    assert [b.tolist() for b in read_relu(network).biases] == [first.tolist(), last.tolist()]
    assert_canonical(network, ReLUWeights.from_arrays([W, A[None]], [first, last]))
    for door in ("gates", "local limit"):
        with pytest.raises(ValueError, match=r"has biases.*X with a constant column"):
            DOORS[door](network)
    assert recognise(take_subject(network, X, Y)).form is Form.NOT_HOMOGENEOUS


def test_a_bias_of_the_first_layer_alone_is_a_constant_input_to_diagnosis() -> None:
    network = sequential(nn.ReLU(), biases=True)
    network[2].register_parameter("bias", None)
    structure = recognise(take_subject(network, X, Y))
    assert structure.form is Form.TWO_LAYER_RELU and structure.layers.bias == "0.bias"
    read = read_relu(network)
    assert np.array_equal(read.biases[0], network[0].bias.detach().numpy())
    assert read.biases[1] is None


def test_a_bias_belongs_to_the_layer_that_it_moves_where_all_have_one_size() -> None:
    torch.manual_seed(0)
    layers = [nn.Linear(H, H, bias=k == 1, dtype=torch.float64) for k in range(3)]
    network = nn.Sequential(layers[0], nn.ReLU(), layers[1], nn.ReLU(), layers[2])
    read = read_relu(network)
    assert [b is None for b in read.biases] == [True, False, True]
    assert np.array_equal(read.matrices[2], layers[2].weight.detach().numpy())


class LeakyLayers(nn.Module):
    """Leaky layers of a slope that the module states, or something else by that name."""

    def __init__(self, slope: Any) -> None:
        super().__init__()
        self.inner, self.slope = perceptron(D, 3, 2, act=nn.Identity), slope

    def forward(self, X: Tensor) -> Tensor:
        hidden = X
        for layer in self.inner[:-1:2]:
            hidden = nn.functional.leaky_relu(layer(hidden), SLOPE)
        return self.inner[-1](hidden)


def test_a_slope_is_the_one_that_is_stated_or_else_is_measured() -> None:
    stated = perceptron(D, 3, 2, act=lambda: nn.LeakyReLU(SLOPE))
    for network in (stated, LeakyLayers(SLOPE)):
        assert read_relu(network).slope == SLOPE
    for said in ("steep", 1.0, 0.5, None):
        assert read_relu(LeakyLayers(said)).slope == pytest.approx(SLOPE, rel=1e-12)
    assert read_relu(sequential(nn.LeakyReLU(0.0))).slope == 0.0


class TurnedBetween(nn.Module):
    """Three layers of which the second one is stored the other way round."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.last = drawn(3, D), drawn(3, 2, seed=1), drawn(1, 2, seed=2)

    def forward(self, X: Tensor) -> Tensor:
        return torch.relu(torch.relu(X @ self.first.T) @ self.second) @ self.last.T


def test_a_layer_that_is_stored_the_other_way_round_is_read_so() -> None:
    network = TurnedBetween()
    first, second, last = read_relu(network).matrices
    assert np.array_equal(first, network.first.detach().numpy())
    assert np.array_equal(second, network.second.detach().numpy().T)
    assert np.array_equal(last, network.last.detach().numpy())


def test_many_layers_of_one_width_with_biases_are_read_in_the_order_of_the_module() -> None:
    network = perceptron(D, *[H] * 7, bias=True)
    read = read_relu(network)
    layers = [one for one in network if isinstance(one, nn.Linear)]
    for layer, W, b in zip(layers, read.matrices, read.biases, strict=True):
        assert np.array_equal(W, layer.weight.detach().numpy())
        assert np.array_equal(b, layer.bias.detach().numpy())


def test_networks_in_single_precision_and_of_several_outputs_are_read_as_they_are() -> None:
    single = sequential(nn.ReLU(), dtype=torch.float32)
    assert np.array_equal(read_relu(single).matrices[0], W.astype(np.float32))
    several = nn.Sequential(nn.Linear(D, H, bias=False), nn.ReLU(), nn.Linear(H, 2, bias=False))
    assert read_relu(several).matrices[1].shape == (2, H)
    with pytest.raises(ValueError, match="one output, got 2"):
        DOORS["local limit"](several)


@pytest.mark.parametrize("door", DOORS)
def test_weights_and_slopes_out_of_range_are_named(door) -> None:
    broken = Plain(np.full_like(W, np.nan), A)
    for slope in (-0.5, 1.0, 1.5):
        with pytest.raises(ValueError, match=rf"a slope in \[0, 1\), got {slope}"):
            DOORS[door](sequential(nn.LeakyReLU(slope)))
    with pytest.raises(ValueError, match="NaN or infinite: its training has diverged"):
        DOORS[door](broken)


def test_gates_of_a_network_of_another_kind_are_those_of_its_w1() -> None:
    network = FReLU(D, H)
    gating = ib.gates.ReLUGates.from_network(network)
    assert np.array_equal(gating.weights, network.w1.detach().numpy())
    with pytest.raises(TypeError, match="ndarray is not a fully connected ReLU network"):
        ib.gates.ReLUGates.from_network(W)
