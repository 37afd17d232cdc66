"""What networks offer, beside automatic differentiation, and what all of them refuse."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

import implicit_bias as ib
from implicit_bias import TrainingSettings, train, train_many
from implicit_bias.networks import (
    DGN,
    GDLN,
    GLN,
    BalancedReLU,
    DeepGLN,
    DeepLinear,
    DeepReLU,
    FReLU,
    ReLU,
    ReLUMean,
    ResidualReLU,
    ShallowGLN,
)
from implicit_bias.protocols import Gated, HasUnitNorms, HasZeta, Homogeneous
from implicit_bias.training import place_data

N, D, H = 9, 5, 3
RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(N, D)), np.sign(RNG.normal(size=N))
CONTEXTS, GATES = RNG.integers(0, 2, (N, H)), RNG.integers(0, 2, (N, H)).astype(float)
NETWORKS = {
    "gln": (GLN(D, H, 2), CONTEXTS),
    "gln, four layers": (GLN(D, H, 2, upper_widths=(4, 2)), CONTEXTS),
    "frelu": (FReLU(D, H), GATES),
    "frelu, three layers": (FReLU(D, H, upper_widths=(4,)), GATES),
    "linear": (DeepLinear(D), None),
    "deep linear": (DeepLinear(D, hidden_widths=(3, 4)), None),
    # The last two samples may be in contexts without a predictor.
    "shallow gln": (ShallowGLN(D, CONTEXTS[:-2]), CONTEXTS),
    "relu": (ReLU(D, 4), None),
    "deep relu": (DeepReLU(D, (8, 7, 6), random_state=3), None),
    "orthosep": (BalancedReLU(D, 6, init_scale=1.0), None),
    "dgn": (DGN(D, widths=(4, 3, 2)), RNG.uniform(size=(N, 9))),
    "dgn, one layer": (DGN(D, widths=()), np.ones((N, 0))),
    "deep gln": (
        DeepGLN(D, widths=(4, 3), n_contexts=3, init="kaiming"),
        RNG.integers(0, 3, (N, 7)),
    ),
}

LINEAR = {"linear", "shallow gln", "dgn, one layer"}


@pytest.mark.parametrize("name", NETWORKS)
def test_products_of_factors_are_the_gradients_of_single_scores(name) -> None:
    network, gates = NETWORKS[name]
    data = place_data(network, X, Y, gates)
    factors = network.gradient_factors(data.X, data.gates)
    parameters = list(network.parameters())
    assert len(factors) == len(parameters)
    norms = []
    for k in range(N):
        one = None if data.gates is None else data.gates[k : k + 1]
        score = network(data.X[k : k + 1], one)[0]
        gradients = torch.autograd.grad(score, parameters)
        for (outer, inner), gradient in zip(factors, gradients, strict=True):
            product = torch.outer(outer[k], inner[k])
            assert product.numel() == gradient.numel()
            torch.testing.assert_close(product.flatten(), gradient.flatten(), atol=1e-12, rtol=0)
        norms.append(math.sqrt(sum(float(g.square().sum()) for g in gradients)))
    assert np.median(norms) > 0.1


@pytest.mark.parametrize("name", [n for n in NETWORKS if n not in LINEAR])
def test_imbalance_is_a_conserved_quantity_of_the_gradient_of_any_function_of_scores(name) -> None:
    # Along w' = -grad, imbalance' = -2 (<w_in, grad_in> - <w_out, grad_out>) = 0 for every unit.
    network, gates = NETWORKS[name]
    data = place_data(network, X, Y, gates)
    parameters = list(network.parameters())
    objective = torch.sin(network(data.X, data.gates)).sum()
    flow = torch.autograd.grad(objective, parameters)
    imbalance = network.imbalance()
    assert float(imbalance.detach().abs().max()) > 1e-3 or name == "orthosep"
    live = 0.0
    for unit in range(len(imbalance)):
        of_unit = torch.autograd.grad(imbalance[unit], parameters, retain_graph=True,
                                      allow_unused=True)  # fmt: skip
        pairs = zip(of_unit, flow, strict=True)
        change = [float((a * b).sum()) for a, b in pairs if a is not None]
        assert sum(change) == pytest.approx(0, abs=1e-12)
        live = max(live, *map(abs, change))
    assert live > 1e-3


# One way to make each of them with arguments that may be spoiled.
MAKERS = {
    GLN: lambda d=D, h=H, **k: GLN(d, h, 2, **k),
    FReLU: FReLU,
    DeepLinear: lambda d=D, h=H, **k: DeepLinear(d, hidden_widths=(2, h), **k),
    ShallowGLN: lambda d=D, h=H, **k: ShallowGLN(d, CONTEXTS, **k),
    DeepReLU: lambda d=D, h=H, **k: DeepReLU(d, (2, h), **k),
    ReLU: ReLU,
    BalancedReLU: BalancedReLU,
    ResidualReLU: ResidualReLU,
    GDLN: GDLN,
    ReLUMean: ReLUMean,
    DGN: lambda d=D, h=H, **k: DGN(d, widths=(h,), **k),
    DeepGLN: lambda d=D, h=H, **k: DeepGLN(d, widths=(h,), n_contexts=2, **k),
}
WITHOUT_INIT = {BalancedReLU, ResidualReLU, GDLN, ReLUMean}
FROM_ZERO = {GDLN, ReLUMean}


def spoiled() -> list[tuple[type, tuple[int, ...], dict[str, object], str]]:
    rows: list[tuple[type, tuple[int, ...], dict[str, object], str]] = []
    for network in MAKERS:
        rows += [
            (network, (0, H), {}, "`n_inputs` must be at least 1, got 0"),
            (network, (D, H), {"init_scale": -1.0}, "`init_scale` must be .*, got -1"),
            (network, (D, H), {"init_scale": math.nan}, "`init_scale` must be .*, got nan"),
            (network, (D, H), {"device": "mouse"}, "torch cannot use device 'mouse' here"),
        ]
        if network is not ShallowGLN:
            rows.append((network, (D, 0), {}, "`.*` must be at least 1, got 0"))
        if network not in FROM_ZERO:
            rows.append((network, (D, H), {"init_scale": 0.0}, "`init_scale` must be positive"))
        if network not in WITHOUT_INIT:
            rows.append((network, (D, H), {"init": "xavier"}, "`init` must be one of .*kaiming.*"))
    return rows


@pytest.mark.parametrize(("network", "sizes", "kwargs", "message"), spoiled())
def test_a_start_that_cannot_be_is_refused(network, sizes, kwargs, message) -> None:
    with pytest.raises(ValueError, match=message):
        MAKERS[network](*sizes, **kwargs)


@pytest.mark.parametrize("network", MAKERS)
def test_inputs_of_another_width_or_dtype_are_refused(network) -> None:
    made = MAKERS[network](D, H)
    gates = {
        "GLN": CONTEXTS,
        "FReLU": GATES,
        "ShallowGLN": CONTEXTS,
        "GDLN": GATES,
        "DGN": GATES,
        "DeepGLN": CONTEXTS,
    }
    given = gates.get(network.__name__)
    placed = None if given is None else made.prepare(given)
    for inputs in (torch.ones(N, D + 1).double(), torch.ones(N, D), torch.ones(D).double()):
        with pytest.raises(ValueError, match=r"`X` must be a torch.float64 tensor of shape \(n, 5"):
            made(inputs, placed)
    if given is None:
        assert not isinstance(made, Gated)
    else:
        with pytest.raises(ValueError, match=f"is None, but {network.__name__} needs the gates"):
            train(made, X, Y, None)


@pytest.mark.parametrize("name", NETWORKS)
def test_what_a_network_says_of_itself_is_so(name) -> None:
    network, gates = NETWORKS[name]
    data = place_data(network, X, Y, gates)
    assert isinstance(network, Homogeneous)
    before = network(data.X, data.gates).detach()
    norms = network.unit_norms().detach() if isinstance(network, HasUnitNorms) else None
    with torch.no_grad():
        for weight in network.parameters():
            weight.mul_(1.5)
        torch.testing.assert_close(network(data.X, data.gates), 1.5**network.degree * before)
        if norms is not None:
            assert isinstance(network, HasZeta)
            torch.testing.assert_close(network.unit_norms(), 1.5**network.degree * norms)
        for weight in network.parameters():
            weight.div_(1.5)


class Column(torch.nn.Module):
    """A linear predictor as torch has it: one column, and nothing said of its degree."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = torch.nn.Linear(D, 1, bias=False).double()

    def forward(self, X: torch.Tensor, gates: None) -> torch.Tensor:
        return self.inner(X)


@pytest.mark.parametrize("many", [False, True])
def test_a_column_of_scores_is_refused_with_the_way_out(many) -> None:
    with pytest.raises(ValueError, match=r"Column must return scores of shape \(9,\).*squeeze"):
        if many:
            train_many([Column(), Column()], X, Y, None)
        else:
            train(Column(), X, Y, None)


def test_a_linear_predictor_that_does_not_say_so_is_told_what_to_say() -> None:
    with pytest.raises(ValueError, match="Column does not say whether it is: give it `degree`"):
        train(Column(), X, Y, None, settings=TrainingSettings(trainer="dual"))


@pytest.mark.parametrize("name", NETWORKS)
def test_networks_are_homogeneous_of_the_degree_they_name(name) -> None:
    network, gates = NETWORKS[name]
    assert ib.check_network(network, X, gates).require().degree == network.degree


class MixedDegrees(torch.nn.Module):
    """Two contexts, `(w_1 + w_2) / sqrt 2` and `w_1^2 / 10`: degrees one and two."""

    degree = 1

    def __init__(self, *w: float) -> None:
        super().__init__()
        self.w = torch.nn.Parameter(torch.tensor(w, dtype=torch.float64))

    def forward(self, X: torch.Tensor, gates: torch.Tensor) -> torch.Tensor:
        scores = torch.stack([self.w.sum() / math.sqrt(2), 0.1 * self.w[0] ** 2])
        return scores[gates] * X[:, 0]


@pytest.mark.parametrize("scale", [1e-9, 3.0])
def test_contexts_of_different_degree_are_refused_at_any_scale(scale) -> None:
    network = MixedDegrees(scale, scale)
    X, gates = torch.ones(2, 1, dtype=torch.float64), torch.tensor([0, 1])
    with pytest.raises(ValueError, match=r"degree 1 .* score of sample 1 "):
        ib.kkt_distance(network, X, [1, 1], gates)
    assert ib.kkt_distance(network, X, [1, 1], gates * 0).cosine == pytest.approx(1)


def test_a_degree_is_asked_for() -> None:
    with pytest.raises(TypeError, match="positive int, got None"):
        ib.kkt_distance(torch.nn.Linear(D, 1), torch.ones(1, D), [1], None)
