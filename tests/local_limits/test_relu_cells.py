"""Local limits of ReLU networks: kinks, several outputs, several layers, beside other solvers."""

from __future__ import annotations

import copy
import itertools

import cvxpy as cp
import numpy as np
import pytest
import torch
from torch import Tensor, nn

import implicit_bias as ib
from implicit_bias import Status

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(10, 3)), np.sign(RNG.normal(size=10))


class TwoLayers(nn.Module):
    """relu(X W') A', of one output or several."""

    degree = 2

    def __init__(self, W: np.ndarray, A: np.ndarray) -> None:
        super().__init__()
        self.W, self.A = nn.Parameter(torch.tensor(W)), nn.Parameter(torch.tensor(A))

    def forward(self, X: Tensor) -> Tensor:
        return torch.relu(X @ self.W.T) @ self.A.T


class ThreeLayers(TwoLayers):
    degree = 3

    def __init__(self, W: np.ndarray, V: np.ndarray, A: np.ndarray) -> None:
        super().__init__(W, A)
        self.V = nn.Parameter(torch.tensor(V))

    def forward(self, X: Tensor) -> Tensor:
        return torch.relu(torch.relu(X @ self.W.T) @ self.V.T) @ self.A.T


class Both(nn.Module):
    """Scores f as those of two classes, -f / 2 and f / 2."""

    def forward(self, f: Tensor) -> Tensor:
        return f * torch.tensor([-0.5, 0.5], dtype=f.dtype)


def stepped(network: nn.Module, inputs: np.ndarray, classes: np.ndarray, steps: int) -> None:
    """Take normalised steps along the gradient of the cross-entropy, in place."""
    A, y = torch.tensor(inputs), torch.tensor(classes)
    for _ in range(steps):
        scores = network(A)
        own = scores.gather(1, y[:, None])
        other = torch.arange(scores.shape[1]) != y[:, None]
        log_loss = torch.logsumexp((scores - own)[other], dim=0)
        parts = torch.autograd.grad(log_loss, list(network.parameters()))
        size = sum(p.detach().square().sum() for p in network.parameters()).sqrt()
        length = sum(part.square().sum() for part in parts).sqrt()
        with torch.no_grad():
            for p, part in zip(network.parameters(), parts, strict=True):
                p -= 0.01 * size * part / length


def smallest_margin(network: nn.Module, inputs: np.ndarray, classes: np.ndarray) -> float:
    with torch.no_grad():
        scores = network(torch.tensor(inputs)).numpy()
    own = scores[np.arange(len(classes)), classes]
    scores[np.arange(len(classes)), classes] = -np.inf
    return float((own - scores.max(axis=1)).min())


def lowest_nearby(limit: ib.limits.LocalLimit, inputs: np.ndarray, classes: np.ndarray) -> float:
    """The least value of 400 networks near a limit, over that of the limit."""
    network, degree = copy.deepcopy(limit.network), limit.network.degree
    rng, values = torch.Generator().manual_seed(0), []
    found = [p.detach().clone() for p in network.parameters()]
    size = sum(p.square().sum() for p in found).sqrt()
    n_weights = sum(p.numel() for p in found)
    for k in range(400):
        with torch.no_grad():
            for p, w in zip(network.parameters(), found, strict=True):
                noise = torch.randn(p.shape, generator=rng, dtype=p.dtype) / n_weights**0.5
                p.copy_(w + 10.0 ** -(1.5 + k % 4) * size * noise)
            norm = sum(float(p.square().sum()) for p in network.parameters())
        least = smallest_margin(network, inputs, classes)
        values.append((norm / degree) ** (degree / 2) / least if least > 0 else np.inf)
    return min(values) / limit.value


@pytest.fixture(scope="module")
def trained() -> ib.ReLU:
    network = ib.ReLU(3, 5, init="kaiming", init_scale=0.3, random_state=0)
    ib.train(
        network, X, Y, settings=ib.TrainingSettings(trainer="annealed", schedule=((300, None),))
    )
    return network


def test_two_opposite_outputs_have_the_limit_of_one_with_its_kinks(trained) -> None:
    known = ib.limits.relu_local_limit(trained, X, Y)
    a = trained.head().detach().numpy()
    W, classes = trained.w1.detach().numpy(), (Y > 0).astype(int)
    limit = ib.local_limit(TwoLayers(W, np.stack([-a, a]) / 2**0.5), X, np.eye(2)[classes])
    # f_2 - f_1 is the root of 2 times the score of one output of the same norm.
    assert limit.status is Status.LOCAL_OPTIMUM
    assert limit.value * 2**0.5 == pytest.approx(known.value, rel=1e-9)
    assert (
        np.flatnonzero(limit.active.any(axis=1)).tolist()
        == np.flatnonzero(known.multipliers > 1e-9 * known.multipliers.max()).tolist()
    )
    assert limit.n_kinks >= known.kinks_opposing > 0 == known.kinks_helping
    # Stationary in the cone of the gradients of both sides, found by other means.
    level = ib.measures.kkt_level(limit.network, X, classes)
    assert level.residual < 1e-8 and level.one_sided > 0.01
    assert lowest_nearby(limit, X, classes) > 1


POINTS = np.array([[1.0, 0.2], [2.0, 0.1], [-0.4, 1.0], [-0.7, 0.9], [-0.6, -1.0], [-0.3, -1.2]])
CLASSES = np.array([0, 0, 1, 1, 2, 2])


def test_three_outputs_reach_the_convex_optimum_behind_their_gates() -> None:
    rng = np.random.default_rng(1)
    network = TwoLayers(rng.normal(size=(8, 2)), rng.normal(size=(3, 8)))
    stepped(network, POINTS, CLASSES, 300)
    limit = ib.local_limit(network, POINTS, np.eye(3)[CLASSES])
    assert limit.status in (Status.LOCAL_OPTIMUM, Status.LIVE_OPTIMUM) and limit.n_kinks == 0
    live = np.linalg.norm(limit.weights["module.W"], axis=1) > 1e-6
    gates = np.unique(POINTS @ limit.weights["module.W"][live].T > 0, axis=1).T
    Z = [cp.Variable((2, 3)) for _ in gates]
    scores = sum(
        cp.multiply(g[:, None].astype(float), POINTS @ z) for g, z in zip(gates, Z, strict=True)
    )
    wanted = [
        scores[n, c] - scores[n, k] >= 1 for n, c in enumerate(CLASSES) for k in range(3) if k != c
    ]
    program = cp.Problem(cp.Minimize(sum(map(cp.normNuc, Z))), wanted)
    assert limit.value == pytest.approx(program.solve(solver=cp.CLARABEL), rel=1e-6)
    assert lowest_nearby(limit, POINTS, CLASSES) > 1


def test_kinks_of_two_layers_are_met_and_units_to_spare_are_said() -> None:
    rng = np.random.default_rng(3)
    shapes = ((8, 2), (8, 8), (3, 8))
    network = ThreeLayers(*(rng.normal(size=shape) / 2 for shape in shapes))
    stepped(network, POINTS, CLASSES, 300)
    limit = ib.local_limit(network, POINTS, np.eye(3)[CLASSES])
    assert limit.status in (Status.LOCAL_OPTIMUM, Status.LIVE_OPTIMUM) and limit.residual < 1e-10
    assert ("no weights" in limit.reason) == (limit.status is Status.LIVE_OPTIMUM)
    assert limit.n_kinks > 0 and lowest_nearby(limit, POINTS, CLASSES) > 1
    # Stationary with the gates of all kinks closed, as the units there oppose their samples.
    W, A, V = (p.detach().clone().requires_grad_() for p in limit.network.parameters())
    hidden = torch.tensor(POINTS)
    for weights in (W, V):
        z = hidden @ weights.T
        hidden = z * (z > 1e-9)
    scores = hidden @ A.T
    own = scores[torch.arange(6), CLASSES]
    total = (torch.tensor(limit.multipliers) * (own[:, None] - scores)).sum()
    for p, part in zip((W, A, V), torch.autograd.grad(total, (W, A, V)), strict=True):
        torch.testing.assert_close(p.detach(), part, atol=1e-9, rtol=0)
    # So it is among the gradients of both sides of all kinks, most of which are of dead units; how
    # far it is from those of one side differs between the points of this value.
    level = ib.measures.kkt_level(limit.network, POINTS, CLASSES)
    assert level.residual < 1e-8 and level.one_sided > 0.1


def test_parallel_units_at_their_kinks_are_one_unit_in_parts() -> None:
    inputs, classes = np.random.default_rng(4).normal(size=(12, 4)), np.arange(12) % 2
    torch.manual_seed(4)
    layers = [nn.Linear(4, 6, False), nn.LeakyReLU(0.1), nn.Linear(6, 5, False), nn.LeakyReLU(0.1)]
    network = nn.Sequential(*layers, nn.Linear(5, 1, False), Both()).double()
    network.degree = 3
    stepped(network, inputs, classes, 300)
    limit = ib.local_limit(network, inputs, np.eye(2)[classes])
    assert limit.status is Status.LOCAL_OPTIMUM and limit.n_kinks > 0
    # Parts of a unit may be shared out in any way: a sphere of dimension parts - 1 of equal value.
    upper = limit.weights["module.2.weight"]
    units = upper / np.linalg.norm(upper, axis=1, keepdims=True)
    modes = len(units) - len(np.unique(units.round(6), axis=0))
    assert 0 < modes <= limit.n_zero_modes
    assert lowest_nearby(limit, inputs, classes) > 1


def test_a_unit_at_its_kink_on_a_sample_that_it_helps_is_left_open() -> None:
    # A KKT point behind closed gates: both units would gain by opening on the other's samples.
    inputs = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [1.0, -1.0, 5.0], [-1.0, 1.0, 5.0]])
    W = np.array([[1.0, 1.0, 0.0], [0.0, 0.0, 0.2]])
    limit = ib.local_limit(TwoLayers(W, np.array([[1.0, 1.0]])), inputs, np.ones(4))
    assert limit.status is Status.STATIONARY and "a sample that it helps" in limit.reason
    assert limit.residual < 1e-10 and limit.value == pytest.approx(2**0.5 + 0.2, rel=1e-12)
    moved = np.add(W, [[0.0, 0.0, 0.1], [0.0, 0.0, -0.1]])
    assert (np.maximum(inputs @ moved.T, 0).sum(axis=1) >= 1 - 1e-12).all()
    assert np.linalg.norm(moved, axis=1).sum() < limit.value


def test_without_time_the_search_ends_where_it_is(trained) -> None:
    limit = ib.local_limit(trained, X, Y, max_seconds=1e-6)
    assert limit.status is Status.FAILED and "within `max_seconds`" in limit.reason
    with pytest.raises(ValueError, match="`max_seconds` must be"):
        ib.local_limit(trained, X, Y, max_seconds=0)


class Larger(nn.Module):
    """The larger of two linear scores, as a maximum or by a comparison."""

    degree = 1

    def __init__(self, W: np.ndarray, *, compared: bool = False) -> None:
        super().__init__()
        self.W, self.compared = nn.Parameter(torch.tensor(W)), compared

    def forward(self, X: Tensor) -> Tensor:
        scores = X @ self.W.T
        if self.compared:
            return torch.where(scores[:, 0] > scores[:, 1], scores[:, 0], scores[:, 1])
        return scores.amax(1)


def labelled_by_the_larger(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    inputs, W = rng.normal(size=(7, 3)), rng.normal(size=(2, 3))
    return W, inputs, np.sign((inputs @ W.T).max(1))


@pytest.mark.parametrize("seed", [1, 7, 40])
def test_a_maximum_ends_at_the_optimum_of_one_choice_of_the_larger_score(seed) -> None:
    # Behind a choice of who has a margin of 1 on each positive sample, the program is convex.
    W, inputs, y = labelled_by_the_larger(seed)
    limit = ib.local_limit(Larger(W), inputs, y)
    assert limit.status is Status.LOCAL_OPTIMUM
    V, values = cp.Variable(W.shape), []
    below = [inputs[y < 0] @ V[k] <= -1 for k in (0, 1)]
    for choice in itertools.product((0, 1), repeat=int((y > 0).sum())):
        above = [x @ V[k] >= 1 for x, k in zip(inputs[y > 0], choice, strict=True)]
        values.append(cp.Problem(cp.Minimize(cp.norm(V, "fro")), above + below).solve("CLARABEL"))
    assert np.abs(np.array(values) / limit.value - 1).min() < 1e-6


def test_steps_that_end_without_a_multiplier_end_the_search_alone() -> None:
    W, inputs, y = labelled_by_the_larger(41)
    limit = ib.local_limit(Larger(W, compared=True), inputs, y)
    assert limit.status is Status.FAILED and "no KKT point" in limit.reason


@pytest.mark.parametrize("seed", [3, 5])
def test_maxima_of_windows_are_met_where_two_places_are_as_large(seed) -> None:
    torch.manual_seed(seed)
    network = nn.Sequential(
        nn.Conv2d(1, 2, 2, bias=False), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(2, 2, bias=False)
    ).double()
    network.degree = 2
    images = np.random.default_rng(seed).normal(size=(8, 1, 3, 3))
    classes = network(torch.tensor(images)).argmax(1).numpy()
    stepped(network, images, classes, 300)
    limit = ib.local_limit(network, images, np.eye(2)[classes])
    assert limit.status is Status.LOCAL_OPTIMUM and limit.n_kinks > 0
    assert lowest_nearby(limit, images, classes) > 1


class OfWeights(nn.Module):
    """Scores that are linear in the positive parts of weights (k, D)."""

    degree = 1

    def __init__(self, w: np.ndarray) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.tensor(w))

    def forward(self, X: Tensor) -> Tensor:
        return X @ torch.relu(self.w).sum(0)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_activations_of_as_many_weights_as_there_are_samples_are_none_of_units(n) -> None:
    # The two rows share (1, 2) / 5, the shortest of margin 1 on the first sample, equally.
    inputs = np.array([[1.0, 2.0], [3.0, 2.0], [4.0, 1.0]])[:n]
    limit = ib.local_limit(OfWeights(np.array([[1.0, 2.0], [3.0, 4.0]])), inputs, np.ones(n))
    assert limit.status is Status.LOCAL_OPTIMUM
    assert limit.value == pytest.approx(1 / np.sqrt(10), rel=1e-6)
