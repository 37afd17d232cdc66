"""Networks that were read wrongly, or trained without a word of what went wrong."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import implicit_bias as ib

RNG = np.random.default_rng(0)
X = RNG.normal(size=(12, 3))
Y = np.where(X[:, 0] > 0, 1.0, -1.0)


class Surrogate(torch.autograd.Function):
    """z |z|, whose backward is that of the identity."""

    generate_vmap_rule = True

    @staticmethod
    def forward(z: Tensor) -> Tensor:
        return z * z.abs()

    @staticmethod
    def setup_context(ctx, inputs, output) -> None:
        """Keep nothing."""

    @staticmethod
    def backward(ctx, slope: Tensor) -> Tensor:
        return slope


class Pointwise(nn.Module):
    """A function of each hidden number."""

    def __init__(self, function) -> None:
        super().__init__()
        self.function = function

    def forward(self, z: Tensor) -> Tensor:
        return self.function(z)


def two_layers(function) -> nn.Module:
    torch.manual_seed(0)
    first, second = nn.Linear(3, 8, bias=False), nn.Linear(8, 1, bias=False)
    return nn.Sequential(first, Pointwise(function), second).double()


class LogPeriodic(nn.Module):
    """Scores that double with the weights, and at no factor that is no power of two scale so."""

    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.tensor([1.0, -0.3, 0.2], dtype=torch.float64))

    def forward(self, x: Tensor) -> Tensor:
        wave = torch.sin(2 * math.pi * torch.log2(self.w.norm()))
        return (x @ self.w) * (1 + 0.2 * wave)


def test_a_backward_that_is_not_the_derivative_of_its_forward_is_named_as_the_cause() -> None:
    network = two_layers(Surrogate.apply)
    # z |z| between two layers scales as a^3, whatever the backward says.
    with torch.no_grad():
        before = network(torch.from_numpy(X))
        longer = torch.func.functional_call(
            network, {k: 3 * p for k, p in network.named_parameters()}, torch.from_numpy(X)
        )
    assert torch.allclose(longer, 27 * before, rtol=1e-12)
    shown = str(ib.diagnose(network, X, Y))
    assert "a sum of terms" not in shown
    assert "its gradients are not theirs" in " ".join(shown.split()) and "surrogate" in shown
    faults = ib.check_network(network, X).faults
    assert any("not a surrogate" in fault for fault in faults)


def test_a_small_constant_under_a_root_is_no_sum_of_terms_of_one_degree() -> None:
    network = two_layers(lambda z: torch.sqrt(z**2 + 1e-16))
    shown = " ".join(str(ib.diagnose(network, X, Y)).split())
    assert "a sum of terms" not in shown
    assert "nearly of degree 2" in shown and "a small constant under a root" in shown
    # Both doors say the same of one network.
    found = ib.check_network(network, X)
    assert found.degree is None and "a small constant under a root" in found.faults[0]


def test_scores_that_only_double_with_their_weights_have_no_degree() -> None:
    found = ib.check_network(LogPeriodic(), X)
    assert found.degree is None
    assert len(found.faults) == 1 and "scores are not homogeneous" in found.faults[0]


def test_inputs_of_true_and_false_leave_a_linear_network_its_degree() -> None:
    for hidden in ((), (4,), (4, 2)):
        found = ib.check_network(ib.DeepLinear(3, hidden_widths=hidden), X > 0)
        assert found and found.degree == len(hidden) + 1


def two_layer_relu(n_inputs: int, n_units: int, seed: int) -> nn.Sequential:
    torch.manual_seed(seed)
    first, second = nn.Linear(n_inputs, n_units, bias=False), nn.Linear(n_units, 1, bias=False)
    return nn.Sequential(first, nn.ReLU(), second).double()


def inseparable(seed: int) -> tuple[Tensor, Tensor]:
    rng = np.random.default_rng(seed)
    X = torch.from_numpy(rng.normal(size=(8, 2)))
    return X, torch.from_numpy(np.where(rng.random(8) < 0.5, -1.0, 1.0))


def loss_of(network: nn.Module, X: Tensor, y: Tensor) -> float:
    with torch.no_grad():
        return float(nn.functional.softplus(-y * network(X).flatten()).mean())


def test_a_line_search_that_stands_at_a_kink_says_that_it_has_stopped(caplog) -> None:
    X, y = inseparable(4)
    network = two_layer_relu(2, 3, 4)
    optimizer = ib.optim.Normalised(network.parameters(), n_samples=8, degree=2)
    losses = []
    with pytest.warns(UserWarning, match="the line search has stopped") as warned:
        for _ in range(150):
            optimizer.step(lambda: y * network(X).flatten())
            losses.append(loss_of(network, X, y))
    assert len(warned) == 1 and warned[0].filename == __file__  # at the line of the own loop
    # What it says is so: the loss stays, though descent in steps of one size goes on.
    assert abs(losses[-1] / losses[50] - 1) < 1e-8
    plain = torch.optim.SGD(network.parameters(), lr=0.02)
    for _ in range(1000):
        plain.zero_grad()
        nn.functional.softplus(-y * network(X).flatten()).mean().backward()
        plain.step()
    assert loss_of(network, X, y) < 0.99 * losses[-1]
    said = [one.getMessage() for one in caplog.records]
    assert len(said) == 1 and "the line search has stopped" in said[0] and "kink" in said[0]


def test_training_says_so_too_and_no_search_that_goes_on_does(caplog) -> None:
    X, y = inseparable(4)
    settings = ib.TrainingSettings(trainer="normalised", schedule=((60, None),))
    network = two_layer_relu(2, 3, 4)
    network.degree = 2
    ib.train(network, X, y, settings=settings)
    assert ["has stopped" in one.getMessage() for one in caplog.records] == [True]
    caplog.clear()
    # At the least loss of labels that contradict each other steps end too, and nothing is wrong.
    ib.train(ib.DeepLinear(1), [[1.0], [1.0]], [1.0, -1.0], settings=settings)
    ib.train(ib.DeepLinear(3, hidden_widths=(2,)), X=np.eye(3), y=Y[:3], settings=settings)
    assert caplog.records == []


def test_autocast_is_named_where_it_would_hide_every_step() -> None:
    network = two_layer_relu(3, 4, 0).float()
    network.degree = 2
    inputs, labels = torch.from_numpy(X).float(), torch.from_numpy(Y).float()
    optimizer = ib.optim.Normalised(network.parameters(), n_samples=len(Y), degree=2)
    settings = ib.TrainingSettings(trainer="normalised", schedule=((3, None),))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        with pytest.raises(RuntimeError, match=r"torch\.autocast.* is on"):
            optimizer.step(lambda: labels * network(inputs).flatten())
        with pytest.raises(RuntimeError, match=r"torch\.autocast.* is on"):
            ib.train(network, X, Y, settings=settings)
        # It leaves float64 as it is.
        ib.train(ib.DeepLinear(3), X, Y, settings=settings)
    assert optimizer.step(lambda: labels * network(inputs).flatten()).shape == (len(Y),)


@pytest.mark.parametrize(
    "given",
    [X[::-1], X[:, ::-1], (10 * X).astype(">i4"), X.astype(">f8"), X > 0, (X > 0).astype("u2"),
     (X > 0).astype("u8"), torch.from_numpy((X > 0).astype("u2")), X.tolist(), X.astype("f2")],
    ids=["rows-backwards", "columns-backwards", "big-endian-int", "big-endian", "bool", "uint16",
         "uint64", "uint16-tensor", "list", "half"],
)  # fmt: skip
def test_inputs_in_any_layout_and_number_are_those_inputs(given) -> None:
    as_floats = np.array([[float(one) for one in row] for row in given])
    w = np.array([1.0, -2.0, 0.5])
    labels = np.where(as_floats @ w >= 0, 1.0, -1.0)
    network = ib.DeepLinear.from_weights(w[None])
    settings = ib.TrainingSettings(trainer="constant", batch_size=0, schedule=((1, 0.5),))
    ib.train(network, given, labels, settings=settings)
    # One step by hand: w + (1/2) mean of y x sigmoid(-y <w, x>).
    slope = labels / (1 + np.exp(labels * (as_floats @ w)))
    stepped = w + 0.5 * (slope @ as_floats) / len(labels)
    np.testing.assert_allclose(network.zeta().detach().numpy().ravel(), stepped, rtol=1e-12)
    assert ib.check_network(ib.DeepLinear(3), given).degree == 1
    np.testing.assert_array_equal(
        ib.HyperplaneContexts(2, random_state=0).fit(given).transform(given),
        ib.HyperplaneContexts(2, random_state=0).fit(as_floats).transform(as_floats),
    )


def test_dates_in_a_column_are_called_dates_by_a_gating() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"day": pandas.date_range("2020", periods=12), "x": X[:, 0]})
    with pytest.raises(TypeError, match="`X` must hold numbers, got dates"):
        ib.HyperplaneContexts(2).fit(frame)
    with pytest.raises(TypeError, match="`X` must hold numbers, got dates"):
        ib.HyperplaneContexts(2).fit(X.astype("M8[s]"))


def test_arrays_of_measures_may_be_lists_and_sparse_inputs_are_called_sparse() -> None:
    sparse = pytest.importorskip("scipy.sparse")
    assert ib.measures.agreement([1.0, -1.0, 2.0], [3.0, 1.0, 1.0]) == 2 / 3
    with pytest.raises(TypeError, match=r"`X` must be dense, got a sparse array"):
        ib.run("linear", X=sparse.csr_matrix(X), y=Y)
    predictor = ib.limits.ContextPredictor([[[1.0, 0.0], [0.0, 1.0]]])
    assert predictor([[2.0, -5.0]], [[1]]).tolist() == [-5.0]


def test_the_gates_of_a_foreign_relu_module_are_those_of_its_first_layer() -> None:
    network = two_layer_relu(3, 4, 0)
    gates = ib.gates.ReLUGates.from_network(network).fit(X).transform(X)
    with torch.no_grad():
        open_ = (network[0](torch.from_numpy(X)) >= 0).numpy()
    np.testing.assert_array_equal(gates, open_)
    for other in (nn.Conv1d(1, 1, 1), nn.Sequential(nn.Linear(3, 1), nn.Tanh())):
        with pytest.raises((TypeError, ValueError), match="`network`"):
            ib.gates.ReLUGates.from_network(other)


class FullWidthConvolution(nn.Module):
    """A filter as wide as its inputs, round and round, below a linear layer."""

    def __init__(self, width: int) -> None:
        super().__init__()
        rng = torch.Generator().manual_seed(0)
        self.filter = nn.Parameter(torch.randn(width, generator=rng, dtype=torch.float64))
        self.above = nn.Parameter(torch.randn(width, generator=rng, dtype=torch.float64))

    def forward(self, x: Tensor) -> Tensor:
        # h_d = sum_k filter_k x_(d + k), as the paper has it, up to its factor 1 / sqrt(D).
        moved = torch.stack([x.roll(-d, dims=1) for d in range(x.shape[1])], dim=1)
        return moved @ self.filter @ self.above


def test_the_limit_of_a_full_width_linear_convolution_is_named_by_its_theorem() -> None:
    cvxpy = pytest.importorskip("cvxpy")
    width = 4
    inputs = np.random.default_rng(1).normal(size=(6, width))
    labels = np.where(inputs @ np.array([1.0, -0.5, 0.3, 0.8]) > 0, 1.0, -1.0)
    network = FullWidthConvolution(width)
    network.degree = 2
    settings = ib.TrainingSettings(trainer="annealed", schedule=((600, None),))
    ib.train(network, inputs, labels, settings=settings)
    report = ib.diagnose(network, inputs, labels)
    shown = " ".join(str(report).split())
    assert "no theorem says" not in shown.lower() and "none names the limit" not in shown
    assert "Gunasekar et al. 2018, theorem 2" in shown
    # The paper's program, of real numbers: |b_k| of the unitary Fourier transform, D = 4.
    b = cvxpy.Variable(width)
    dft = np.fft.fft(np.eye(width)) / math.sqrt(width)
    norm = sum(cvxpy.norm(cvxpy.hstack([row.real @ b, row.imag @ b]), 2) for row in dft)
    program = cvxpy.Problem(cvxpy.Minimize(norm), [cvxpy.multiply(labels, inputs @ b) >= 1])
    program.solve(solver="CLARABEL")
    # ||w||^2 / 2 of both layers is the sum of |w_k| |v_k|, and b_k = sqrt(D) w_k v_k.
    assert report.limit.objective == pytest.approx(program.value / math.sqrt(width), rel=1e-7)
    assert report.verdict.word == "AT ITS LIMIT"


def test_closed_units_are_named_where_no_step_changes_them() -> None:
    network = two_layer_relu(2, 1, 0)
    with torch.no_grad():
        network[0].weight.copy_(-network[0].weight.abs())
    said = " ".join(str(ib.diagnose(network, [[1.0, 2.0], [2.0, 1.0]], [1.0, -1.0])).split())
    assert "no score depends on the weights there" in said and "train longer" not in said
