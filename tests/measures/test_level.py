"""KKT conditions at the level of the smallest margin: any network, K outputs, any norm, kinks."""

from __future__ import annotations

import copy
import dataclasses
import itertools
import math
import pkgutil
from collections.abc import Callable
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
import torch
from scipy.optimize import nnls
from torch.autograd.functional import jacobian
from torch.func import functional_call

from implicit_bias import ReLU, kkt_distance
from implicit_bias.measures import kkt_level
from implicit_bias.networks.recognition import take_subject

Array = np.ndarray


def mlp(*widths: int, seed: int = 0, between: type = torch.nn.ReLU) -> torch.nn.Sequential:
    """Layers with biases, in float64."""
    torch.manual_seed(seed)
    layers: list[torch.nn.Module] = []
    for below, above in itertools.pairwise(widths):
        layers += [torch.nn.Linear(below, above), between()]
    return torch.nn.Sequential(*layers[:-1]).double()


def classified(network: torch.nn.Module, n: int, d: int, seed: int = 0) -> tuple[Array, Array]:
    """Inputs, and for labels what the network says of them: all margins are positive."""
    X = np.random.default_rng(seed).normal(size=(n, d))
    scores = network(torch.tensor(X)).detach().numpy()
    if scores.shape[1] == 1:
        return X, np.sign(scores[:, 0])
    return X, np.eye(scores.shape[1])[scores.argmax(axis=1)]


def linearised(network: torch.nn.Module, X: Array, y: Array) -> tuple[Array, Array]:
    """Gradients of all margins and what they ask for, ``s - m + <grad m, theta>``."""
    names = [name for name, _ in network.named_parameters()]
    weights = tuple(p.detach() for p in network.parameters())

    def margins(*weights: torch.Tensor) -> torch.Tensor:
        scores = functional_call(network, dict(zip(names, weights, strict=True)), torch.tensor(X))
        if y.ndim == 1:
            return torch.tensor(y) * scores[:, 0]
        own = (torch.tensor(y) * scores).sum(1, keepdim=True)
        return (own - scores)[torch.tensor(y) == 0]

    m = margins(*weights).numpy()
    parts = jacobian(margins, weights)
    G = np.hstack([part.reshape(len(m), -1).numpy() for part in parts])
    theta = np.concatenate([p.flatten().numpy() for p in weights])
    return G, m.min() - m + G @ theta


def test_ratio_is_1_at_a_kkt_point_in_closed_form_though_the_network_has_biases() -> None:
    # m = a2 (a1 x + b1) + b2 of one sample: theta is lam times its gradient (a2 x, a2, a1 x + b1,
    # 1) for lam = 1 / sqrt(x^2 + 1), a1 = lam a2 x, b1 = lam a2, b2 = lam, and any a2.
    x, a2 = 2.0, 3.0
    lam = 1 / math.sqrt(x**2 + 1)
    network = mlp(1, 1, 1)
    with torch.no_grad():
        for p, value in zip(network.parameters(), (lam * a2 * x, lam * a2, a2, lam), strict=True):
            p.fill_(value)
    found = kkt_level(network, [[x]], [1])
    assert found.ratio_bound == pytest.approx(1, abs=1e-12)
    assert found.residual < 1e-7
    assert found.multipliers == pytest.approx([lam], rel=1e-9)
    assert found.gradient["2.bias"] == pytest.approx([lam], rel=1e-9)
    assert found.complementarity == 0
    with torch.no_grad():
        network[2].bias.mul_(2)
    moved = kkt_level(network, [[x]], [1])
    # One row: the shortest v along its gradient g has length a / ||g||.
    g = np.array([a2 * x, a2, lam * a2 * (x**2 + 1), 1.0])
    theta = np.array([lam * a2 * x, lam * a2, a2, 2 * lam])
    cosine = g @ theta / np.linalg.norm(g) / np.linalg.norm(theta)
    assert moved.ratio_bound == pytest.approx(cosine, rel=1e-9)
    assert moved.ratio == pytest.approx(cosine, rel=1e-9)
    assert moved.residual == pytest.approx(math.sqrt(1 - cosine**2), rel=1e-6)


def test_a_homogeneous_network_has_the_ratio_of_its_kkt_distance() -> None:
    network = mlp(3, 6, 1, between=torch.nn.Identity)
    for layer in (network[0], network[2]):
        layer.register_parameter("bias", None)
    network.degree = 2
    X, y = classified(network, 9, 3)
    level, distance = kkt_level(network, X, y), kkt_distance(network, X, y, None)
    assert level.ratio_bound >= distance.ratio_bound - 1e-9
    assert level.ratio <= distance.ratio + 1e-9


def cvxpy_ratio(network: torch.nn.Module, X: Array, y: Array, norm: str | None) -> float:
    """The linearised problem as it is written, over the norm of the weights."""
    cvxpy = pytest.importorskip("cvxpy")
    G, a = linearised(network, X, y)
    shapes = [tuple(p.shape) for p in network.parameters()]
    v = [cvxpy.Variable((math.prod(shape),)) for shape in shapes]

    def size(part: object, shape: tuple[int, ...]) -> object:
        if norm in (None, "l2"):
            return cvxpy.norm(part)
        if norm == "linf":
            return cvxpy.norm(part, "inf")
        if norm == "l1":
            return cvxpy.norm(part, 1)
        rows, columns = shape if len(shape) == 2 else (1, *shape)
        matrix = cvxpy.reshape(part, (rows, columns), order="C")
        return cvxpy.sigma_max(matrix)

    def value(parts: list) -> object:
        if norm is None:
            return cvxpy.norm(cvxpy.hstack(parts))
        return cvxpy.maximum(*(size(p, shape) for p, shape in zip(parts, shapes, strict=True)))

    problem = cvxpy.Problem(cvxpy.Minimize(value(v)), [G @ cvxpy.hstack(v) >= a])
    problem.solve(solver="CLARABEL")
    theta = [p.detach().numpy().ravel() for p in network.parameters()]
    return float(problem.value) / float(value([cvxpy.Constant(t) for t in theta]).value)


@pytest.mark.parametrize("norm", [None, "l2", "linf", "spectral", "l1"])
@pytest.mark.parametrize("n_outputs", [1, 3])
def test_the_bounds_enclose_the_ratio_by_cvxpy(norm, n_outputs) -> None:
    network = mlp(3, 4, n_outputs, between=torch.nn.Tanh)
    X, y = classified(network, 7, 3)
    layers = None if norm is None else {name: norm for name, _ in network.named_parameters()}
    found = kkt_level(network, X, y, norm=layers)
    expected = cvxpy_ratio(network, X, y, norm)
    assert found.ratio_bound <= expected + 1e-7
    assert found.ratio >= expected - 1e-7
    wide = {None: 1e-6, "l1": 1.0}.get(norm, 5e-3)
    assert found.ratio - found.ratio_bound <= wide
    assert 0 < found.ratio_bound <= found.ratio <= 1
    # Multipliers are at the scale of v: their sum is as long in the dual norm as v in the norm.
    duals = {
        "l2": np.linalg.norm, "linf": lambda g: np.abs(g).sum(), "l1": lambda g: np.abs(g).max(),
        "spectral": lambda g: np.linalg.norm(np.atleast_2d(g), "nuc"),
    }  # fmt: skip
    values = duals | {
        "linf": duals["l1"],
        "l1": duals["linf"],
        "spectral": lambda W: np.linalg.norm(np.atleast_2d(W), 2),
    }
    parts, weights = found.gradient.values(), [p.detach().numpy() for p in network.parameters()]
    if norm is None:
        length = np.linalg.norm(np.concatenate([g.ravel() for g in parts]))
        size = np.linalg.norm(np.concatenate([W.ravel() for W in weights]))
    else:
        length, size = sum(map(duals[norm], parts)), max(map(values[norm], weights))
    assert length / size == pytest.approx(found.ratio_bound, rel=1e-5 if norm is None else 1e-9)
    G, _ = linearised(network, X, y)
    lam = found.multipliers if n_outputs == 1 else found.multipliers[y == 0]
    np.testing.assert_allclose(lam @ G, np.concatenate([g.ravel() for g in parts]), atol=1e-9)


class Inverse(torch.nn.Module):
    """A score whose margin falls as its weight grows."""

    def __init__(self) -> None:
        super().__init__()
        self.w = torch.nn.Parameter(torch.tensor([2.0]).double())

    def forward(self, X: torch.Tensor) -> torch.Tensor:
        return X / self.w


@pytest.mark.parametrize("norm", [None, "l2", "linf", "spectral"])
def test_where_v_0_is_allowed_nothing_is_asked_and_there_are_no_multipliers(norm) -> None:
    found = kkt_level(Inverse(), [[1.0], [3.0]], [1, 1], norm=norm and {"w": norm})
    assert found.ratio_bound == found.ratio == 0
    assert not found.multipliers.any() and math.isnan(found.complementarity)


def test_what_is_missing_is_made_up_by_the_least_share_of_twice_the_weights() -> None:
    share, mixed = (
        pkgutil.resolve_name(f"implicit_bias.measures.level:{name}")
        for name in ("_share", "_mixed")
    )
    rng = np.random.default_rng(0)
    for theta, v, g in rng.normal(size=(20, 3, 4)):
        a = rng.uniform(-1, 1) * (g @ theta)
        g, a = (g, a) if 2 * g @ theta >= a else (-g, -a)
        missing, room = a - g @ v, 2 * g @ theta - a
        s = share(torch.tensor([missing]), torch.tensor([room]), 1e-12)
        reached = g @ ((1 - s) * v + 2 * s * theta)
        assert (s == 0 and missing <= 0) or reached == pytest.approx(a)
    both = torch.tensor([1.0, -1.0, 2.0, 0.5]), torch.tensor([3.0, 1.0, 2.0, 0.0])
    assert share(*both, 0.6) == 0.5 and share(*both, 0.0) == 1.0 and share(*both, 2.0) == 0.0
    assert share(torch.tensor([1.0]), torch.tensor([-0.5]), 0.0) == 1.0
    assert mixed(0.5, 0.25) == 0.75 * 0.5 + 0.5


def test_multipliers_prove_the_bound_by_plain_arithmetic() -> None:
    network = mlp(3, 4, 3, between=torch.nn.Tanh)
    X, y = classified(network, 7, 3)
    G, a = linearised(network, X, y)
    found = kkt_level(network, X, y)
    lam = found.multipliers[y == 0]
    assert (lam >= 0).all() and (found.multipliers[y == 1] == 0).all()
    theta = np.concatenate([p.detach().numpy().ravel() for p in network.parameters()])
    combined = np.concatenate([part.ravel() for part in found.gradient.values()])
    np.testing.assert_allclose(lam @ G, combined, rtol=1e-9, atol=1e-12)
    proved = lam @ a / np.linalg.norm(combined) / np.linalg.norm(theta)
    assert proved == pytest.approx(found.ratio_bound, rel=1e-9)
    beyond = G @ theta - a  # m - s, by how much
    expected = lam @ beyond / lam.sum() / found.smallest_margin
    assert found.complementarity == pytest.approx(expected, rel=1e-7) and expected > 0.01


class Both(torch.nn.Module):
    """A network of one score f as one of the two scores -f / 2 and f / 2."""

    def __init__(self, network: torch.nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, X: torch.Tensor) -> torch.Tensor:
        return self.network(X) * torch.tensor([-0.5, 0.5], dtype=torch.float64)


def test_two_outputs_are_one_output_of_their_difference() -> None:
    network = mlp(2, 6, 1)
    X, y = classified(network, 8, 2)
    one = kkt_level(network, X, y)
    two = kkt_level(Both(network), X, np.eye(2)[(y > 0).astype(int)])
    assert two.ratio_bound == pytest.approx(one.ratio_bound, rel=1e-9)
    assert two.residual == pytest.approx(one.residual, rel=1e-7)
    np.testing.assert_allclose(two.multipliers.sum(axis=1), one.multipliers, atol=1e-8)


def all_gradients(network: torch.nn.Module, X: Array, y: Array) -> tuple[Array, Array]:
    """Of a ReLU network without biases with all patterns of the gates at its kinks, and weights."""
    weights = [p.detach().numpy() for p in network.parameters()]
    inputs, seen = X, []
    for W in weights[:-1]:
        seen.append(inputs @ W.T)
        inputs = np.maximum(seen[-1], 0)
    m = y * (inputs @ weights[-1][0])
    at = [np.abs(z) <= 0.05 * np.median(np.abs(z)[np.abs(z) > 1e-6]) for z in seen]
    columns = []
    for n in np.flatnonzero(m <= 1.1 * m.min()):
        own = np.concatenate([z[n] > 0 for z in seen]).astype(float)
        places = np.flatnonzero(np.concatenate([near[n] for near in at]))
        for pattern in itertools.product((0.0, 1.0), repeat=len(places)):
            own[places] = pattern
            gates = np.split(own, np.cumsum([len(z[n]) for z in seen])[:-1])
            up, down = [X[n]], [y[n] * np.ones(1)]
            for W, c in zip(weights, gates, strict=False):
                up.append(c * (W @ up[-1]))
            for W, c in zip(weights[:0:-1], gates[::-1], strict=True):
                down.insert(0, c * (down[0] @ W))
            parts = [np.outer(d, h).ravel() for d, h in zip(down, up, strict=True)]
            columns.append(np.concatenate(parts))
    return np.array(columns), np.concatenate([W.ravel() for W in weights])


def brute_residual(network: torch.nn.Module, X: Array, y: Array) -> float:
    """The least residual with these gradients."""
    G, theta = all_gradients(network, X, y)
    return float(nnls(G.T, theta, maxiter=9999)[1] / np.linalg.norm(theta))


def at_a_kink(c: float, noise: float = 0.0, seed: int = 0) -> tuple[torch.nn.Module, Array, Array]:
    """A KKT point of two units whose first is at its kink on the second sample, and near it.

    Samples are (1, 0) and (-c, 1), c < 1. The first unit is along (1, c), which takes the gradient
    of the second sample in part: multipliers are r = sqrt(1 + c^2) and 1 / r, and c / r on that.
    """
    network, r = mlp(2, 2, 1), math.hypot(1, c)
    rng = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        network[0].weight.copy_(torch.tensor([[1.0, c], [-c / r, 1 / r]]))
        network[2].weight.copy_(torch.tensor([[r, 1.0]]))
        for p in network.parameters():
            p.add_(noise * torch.randn(p.shape, generator=rng))
        for layer in (network[0], network[2]):
            layer.register_parameter("bias", None)
    return network, np.array([[1.0, 0.0], [-c, 1.0]]), np.ones(2)


def cone_of(network: torch.nn.Module, X: Array, y: Array) -> Any:
    """The cone in which bounds of rho are searched, of all rows."""
    MarginRows, Cone = (
        pkgutil.resolve_name(f"implicit_bias.measures.{name}")
        for name in ("fit.margin_rows:MarginRows", "level:_Cone")
    )
    rows = MarginRows(take_subject(network, X, y))
    every = torch.ones_like(rows.margins, dtype=torch.bool)
    return Cone(rows, rows.margins - rows.margins.min(), every)


def test_a_kkt_point_at_a_kink_is_one_though_no_gradient_of_one_side_says_so() -> None:
    c = 0.75
    network, X, y = at_a_kink(c, noise=1e-9)
    found = kkt_level(network, X, y)
    assert found.n_kinks == 1
    assert found.residual < 1e-6
    assert found.one_sided > 0.2
    assert found.ratio_bound == pytest.approx(1, abs=1e-6)
    np.testing.assert_allclose(found.multipliers, [1.25, 0.8], rtol=1e-6)


@pytest.mark.parametrize("seed", range(4))
def test_the_residual_at_kinks_is_the_least_over_all_gradients_of_both_sides(seed) -> None:
    network, X, y = at_a_kink(0.5 + 0.1 * seed, 0.01, seed)
    # A row far beyond the margin has no part, at whatever scale.
    X, y = np.vstack([X, [1.0, 2.0]]), np.ones(3)
    with torch.no_grad():
        for p in network.parameters():
            p *= (0.5, 1.0, 2.0, 0.1)[seed]
    found = kkt_level(network, X, y)
    assert found.n_kinks == 1
    G, _ = linearised(network, X, y)
    theta = np.concatenate([p.detach().numpy().ravel() for p in network.parameters()])
    one_sided = nnls(G[:2].T, theta)[1] / np.linalg.norm(theta)
    assert found.one_sided == pytest.approx(one_sided, rel=1e-6)
    assert found.residual == pytest.approx(brute_residual(network, X, y), abs=1e-6)
    assert found.residual < found.one_sided - 0.05
    assert found.ratio_bound <= found.ratio <= found.ratio_bound + 1e-6


def test_what_twice_the_weights_exceed_at_kinks_is_the_least_over_all_gates() -> None:
    network, X, y = at_a_kink(0.7, 0.01)
    cone = cone_of(network, X, y)
    G, theta = all_gradients(network, X, y)  # one of the first row, two of the second
    assert cone.at_kinks.tolist() == [1] and len(G) == 3 and np.ptp(G[1:] @ theta) > 0
    # 2 <g, theta> against the <g, theta> - excess that is asked for.
    assert float(cone._room_at_kinks) == pytest.approx(
        (G[1:] @ theta).min() + float(cone.excess[1])
    )


@pytest.mark.parametrize("seed", [3, 7, 67, 79, 130])
def test_gates_at_kinks_of_two_layers_are_chosen_jointly(seed) -> None:
    # Whole numbers, so that many inputs of units are 0; all margins are 1.
    rng = np.random.default_rng(seed)
    network = mlp(3, 5, 4, 1)
    with torch.no_grad():
        for layer in network[::2]:
            layer.weight.copy_(torch.tensor(rng.integers(-2, 3, layer.weight.shape)))
            layer.register_parameter("bias", None)
    X = rng.integers(-2, 3, (6, 3)).astype(float)
    scores = network(torch.tensor(X)).detach().numpy()[:, 0]
    X, y = X[scores != 0] / np.abs(scores[scores != 0])[:, None], np.sign(scores[scores != 0])
    found = kkt_level(network, X, y)
    assert found.residual == pytest.approx(brute_residual(network, X, y), abs=1e-6)
    G, theta = all_gradients(network, X, y)
    v = cp.Variable(len(theta))
    least = cp.Problem(cp.Minimize(cp.norm(v)), [G @ v >= G @ theta]).solve("CLARABEL")
    ratio = least / np.linalg.norm(theta)
    assert found.ratio_bound - 1e-6 <= ratio <= found.ratio + 1e-6
    assert found.ratio - found.ratio_bound < 1e-4


@pytest.mark.parametrize("seed", [8, 22, 33, 142])
def test_bounds_of_gates_that_enter_leave_and_enter_again_never_cross(seed) -> None:
    rng, network = np.random.default_rng(seed), mlp(4, 10, 8, 1)
    with torch.no_grad():
        for layer in network[::2]:
            whole = rng.integers(-1, 2, layer.weight.shape)
            layer.weight.copy_(torch.tensor(whole + 1e-3 * rng.normal(size=whole.shape)))
            layer.register_parameter("bias", None)
    X = rng.integers(-1, 2, (10, 4)).astype(float)
    scores = network(torch.tensor(X)).detach().numpy()[:, 0]
    far = np.abs(scores) > 0.3
    X, y = X[far] / np.abs(scores[far])[:, None], np.sign(scores[far])
    found = kkt_level(network, X, y)
    assert found.n_kinks >= 25
    assert 0 < found.ratio_bound <= found.ratio <= found.ratio_bound + 1e-4


def test_kinks_are_counted_of_all_rows_on_the_margin() -> None:
    network, X, y = at_a_kink(0.75)
    assert kkt_level(network, X.repeat(70, 0), y.repeat(70)).n_kinks == 70


def test_units_without_weights_hide_no_kinks() -> None:
    network, X, y = at_a_kink(0.75)
    wide = mlp(2, 6, 1)
    with torch.no_grad():
        for layer, own in zip(wide[::2], network[::2], strict=True):
            layer.register_parameter("bias", None)
            layer.weight.zero_()[: len(own.weight), : own.weight.shape[1]] = own.weight
    found = kkt_level(wide, X, y)
    assert found.residual < 1e-6 and found.one_sided > 0.2


@pytest.mark.parametrize("seed", range(2))
def test_kinks_are_met_where_samples_are_told_to_depend_on_each_other(seed) -> None:
    network, X, y = at_a_kink(0.6, 0.01, seed)
    subject = take_subject(network, X, y)
    level_of = pkgutil.resolve_name("implicit_bias.measures.level:level_of")
    alone, together = level_of(subject), level_of(dataclasses.replace(subject, by_sample=False))
    assert alone.residual < alone.one_sided - 0.05
    assert together.residual == pytest.approx(alone.residual, abs=1e-6)
    assert together.ratio_bound == pytest.approx(alone.ratio_bound, abs=1e-6)


@pytest.mark.parametrize(
    "activation",
    [
        torch.nn.ReLU(inplace=True),
        torch.nn.LeakyReLU(0.1),
        torch.nn.PReLU(),
        pytest.param(lambda z: z.clamp(min=0), id="clamp"),
        pytest.param(torch.relu, id="function"),
    ],
    ids=lambda one: type(one).__name__,
)
def test_gates_are_found_whatever_form_an_activation_has(
    activation: Callable[[torch.Tensor], torch.Tensor],
) -> None:
    class Own(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.below, self.above = torch.nn.Linear(1, 2), torch.nn.Linear(2, 1, bias=False)
            self.activation = activation

        def forward(self, X: torch.Tensor) -> torch.Tensor:
            return self.above(self.activation(self.below(X)))

    network = Own().double()
    with torch.no_grad():
        network.below.weight.copy_(torch.tensor([[1.0], [1.0]]))
        network.below.bias.copy_(torch.tensor([1e-9 - 1.0, 1.0]))
        network.above.weight.copy_(torch.tensor([[1.0, 2.0]]))
    found = kkt_level(network, [[1.0]], [1])
    assert found.n_kinks == 1
    assert found.residual <= found.one_sided


class LargestOf(torch.nn.Module):
    """The largest of (n, k) scores that are linear in the inputs, taken in some way."""

    def __init__(self, W: Array, largest: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.below, self.largest = torch.nn.Linear(W.shape[1], len(W), bias=False), largest
        self.below.weight = torch.nn.Parameter(torch.tensor(W))

    def forward(self, X: torch.Tensor) -> torch.Tensor:
        return self.largest(self.below(X)).reshape(-1, 1)


MAXIMA: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "maximum": lambda z: torch.maximum(torch.maximum(z[:, 0], z[:, 1]), z[:, 2]),
    "max of two": lambda z: torch.max(z[:, 2], torch.max(z[:, 0], z[:, 1])),
    "max": lambda z: z.max(1).values,
    "max, by name": lambda z: torch.max(z, dim=-1)[0],
    "amax": lambda z: z.view(-1, 3, 1).amax((1, 2)),
    "pool": lambda z: torch.nn.MaxPool1d(3)(z[:, None]),
    "pool of pools": lambda z: torch.nn.MaxPool1d(2)(torch.nn.MaxPool1d(2, 1)(z[:, None])),
    "images": lambda z: torch.nn.functional.max_pool2d(z[:, None, None], (1, 3)),
    "padded": lambda z: torch.nn.functional.max_pool2d(z[:, None, None], 3, 3, (1, 0)),
    "spread": lambda z: torch.max_pool1d(z[:, None].repeat_interleave(2, 2), 3, dilation=2),
    "boxes": lambda z: torch.nn.MaxPool3d((3, 1, 1))(z[:, None, :, None, None]),
    "adaptive": lambda z: torch.nn.AdaptiveMaxPool2d((1, None))(z[:, None, :, None]),
}


@pytest.mark.parametrize("largest", MAXIMA.values(), ids=MAXIMA)
def test_a_kkt_point_where_a_maximum_is_tied_is_one(largest) -> None:
    # Each of three gets a third of the multiplier lam |x|^2 = 3; differentiation picks some.
    x = np.array([3.0, 4.0])
    W = np.outer(np.ones(3), x) / 25 * (1 + 1e-9 * np.arange(3))[:, None]
    found = kkt_level(LargestOf(W, largest), x[None], [1])
    assert found.residual < 1e-6 and found.ratio_bound == pytest.approx(1, abs=1e-6)
    assert found.one_sided > 0.5
    assert found.multipliers.tolist() == pytest.approx([3 / 25], rel=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_windows_of_images_have_the_gradients_of_all_that_is_nearly_largest(seed) -> None:
    rng = np.random.default_rng(seed)
    images = rng.integers(0, 3, (5, 1, 4, 4)) + 1e-6 * rng.normal(size=(5, 1, 4, 4))
    torch.manual_seed(seed)
    network = torch.nn.Sequential(
        torch.nn.Conv2d(1, 1, 1, bias=False), torch.nn.MaxPool2d(2), torch.nn.Flatten(),
        torch.nn.Linear(4, 1, bias=False),
    ).double()  # fmt: skip
    w, v = (p.detach().numpy().ravel() for p in network.parameters())
    scores = network(torch.tensor(images)).detach().numpy()[:, 0]
    X, y = images / np.abs(scores)[:, None, None, None], np.sign(scores)
    columns = []
    for image, label in zip(X[:, 0], y, strict=True):
        windows = [image[i : i + 2, j : j + 2].ravel() for i in (0, 2) for j in (0, 2)]
        near = [
            one[np.ptp([w * one, np.full(4, (w * one).max())], axis=0) < 1e-3] for one in windows
        ]
        columns += [
            label * np.array([v @ chosen, *(w[0] * np.array(chosen))])
            for chosen in itertools.product(*near)
        ]
    theta = np.array([*w, *v])
    least = nnls(np.array(columns).T, theta)[1] / np.linalg.norm(theta)
    assert kkt_level(network, X, y).residual == pytest.approx(least, abs=1e-5)


def test_margins_far_beyond_what_a_loss_resolves_are_no_matter() -> None:
    network = ReLU(3, 5, random_state=0)
    X = np.random.default_rng(0).normal(size=(6, 3))
    y = np.sign(network(torch.tensor(X)).detach().numpy())
    before = kkt_level(network, X, y)
    with torch.no_grad():
        for p in network.parameters():
            p.mul_(1e4)
    after = kkt_level(network, X, y)
    assert after.smallest_margin > 3e4
    assert after.ratio_bound == pytest.approx(before.ratio_bound, rel=1e-9)
    assert after.residual == pytest.approx(before.residual, rel=1e-6)


@pytest.mark.parametrize(
    "change, said",
    [
        ({"y": [1, 1]}, "smallest margin"),
        ({"y": [2, 2]}, "`y`"),
        ({"X": [[0.0, math.nan], [1.0, 1.0]]}, "`X`"),
        ({"norm": {"0.weight": "l2"}}, "`norm`"),
        ({"norm": "l2"}, "`norm`"),
        ({"network": 3}, "`network`"),
    ],
)
def test_what_cannot_be_measured_is_named(change, said) -> None:
    network = mlp(2, 3, 1)
    X, y = classified(network, 2, 2, seed=3)
    y = [1, -1] if y[0] * y[1] > 0 else y
    with pytest.raises((TypeError, ValueError), match=said):
        kkt_level(**({"network": network, "X": X, "y": y} | change))


def test_rows_enter_as_they_are_violated(monkeypatch) -> None:
    monkeypatch.setattr("implicit_bias.measures.level._MORE", 0)
    network = mlp(3, 4, 1, between=torch.nn.Tanh)
    X, y = classified(network, 40, 3)
    found, expected = kkt_level(network, X, y), cvxpy_ratio(network, X, y, None)
    assert (found.multipliers > 0).sum() > 3
    assert found.ratio_bound - 1e-7 <= expected <= found.ratio + 1e-7
    assert found.ratio - found.ratio_bound < 1e-5


def test_weights_between_are_feasible_at_the_share_that_is_asked_for_and_not_below() -> None:
    network = mlp(3, 4, 1, between=torch.nn.Tanh)
    X, y = classified(network, 8, 3)
    G, a = linearised(network, X, y)
    theta = np.concatenate([p.detach().numpy().ravel() for p in network.parameters()])
    cone, kinks = cone_of(network, X, y), cone_of(*at_a_kink(0.7, 0.01))
    for v in 0.3 * np.random.default_rng(0).normal(size=(9, len(theta))):
        share, _ = cone._ask(torch.tensor(theta - v), torch.ones(8, dtype=torch.bool))
        at, below = ((G @ ((1 - s) * v + 2 * s * theta) - a).min() for s in (share, share - 1e-3))
        assert at >= -1e-9 and below < 0
    # What leaves a cone with kinks is asked for on.
    before, gradients = kinks.index.tolist(), kinks.gradients
    kinks._ask(torch.zeros_like(kinks.rows.w), torch.zeros(2, dtype=torch.bool))
    assert kinks.left.tolist() == before and torch.equal(kinks.left_gradients, gradients)


@pytest.mark.parametrize("scale", [1.0, 1e-4])
def test_steps_in_another_norm_come_near_the_ratio_of_a_linear_score(scale) -> None:
    # Of margin 1 on (2, 1) the smallest sum of sizes is 1/2, against 3/4.
    network = mlp(2, 1)
    network[0].register_parameter("bias", None)
    with torch.no_grad():
        network[0].weight.copy_(scale * torch.tensor([[0.25, 0.5]]).double())
    found = kkt_level(network, [[2.0, 1.0]], [1], norm={"0.weight": "l1"})
    assert 0.66 < found.ratio_bound <= 2 / 3 + 1e-12 and 2 / 3 - 1e-12 <= found.ratio < 0.67


def test_a_margin_of_0_is_none() -> None:
    with pytest.raises(ValueError, match=r"smallest margin .* is 0, .* train longer"):
        kkt_level(Inverse(), [[0.0], [1.0]], [1, 1])


def test_batch_statistics_count_where_the_network_is_trained_with_them() -> None:
    torch.manual_seed(0)
    network = torch.nn.Sequential(
        torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Tanh(), torch.nn.Linear(4, 1)
    ).double()
    X = np.random.default_rng(0).normal(size=(8, 3))
    y = np.sign(copy.deepcopy(network)(torch.tensor(X)).detach().numpy()[:, 0])
    G, a = linearised(network, X, y)
    found = kkt_level(network, X, y)
    theta = np.concatenate([p.detach().numpy().ravel() for p in network.parameters()])
    lam = found.multipliers
    proved = lam @ a / np.linalg.norm(lam @ G) / np.linalg.norm(theta)
    assert proved == pytest.approx(found.ratio_bound, rel=1e-6)
    assert found.ratio - found.ratio_bound < 1e-6


class _Once(torch.autograd.Function):
    """The square, with a backward that torch is told to differentiate but once."""

    @staticmethod
    def forward(ctx, z):
        ctx.save_for_backward(z)
        return z**2

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, above):
        (z,) = ctx.saved_tensors
        return 2 * z * above


def test_a_backward_that_is_differentiated_once_is_enough() -> None:
    class Own(torch.nn.Module):
        def __init__(self, square) -> None:
            super().__init__()
            self.square, self.layer = square, torch.nn.Linear(2, 1).double()

        def forward(self, X: torch.Tensor) -> torch.Tensor:
            return self.square(self.layer(X))

    torch.manual_seed(0)
    network = Own(_Once.apply)
    X = np.random.default_rng(0).normal(size=(5, 2))
    known = Own(torch.square)
    known.load_state_dict(network.state_dict())
    found, expected = (kkt_level(one, X, np.ones(5), None) for one in (network, known))
    assert found.ratio_bound == pytest.approx(expected.ratio_bound, rel=1e-9)
    np.testing.assert_allclose(found.multipliers, expected.multipliers, atol=1e-9)


def test_kkt_distance_has_the_residual_at_kinks_beside_that_of_one_side() -> None:
    network, X, y = at_a_kink(0.75, noise=1e-9)
    network.degree = 2
    found = kkt_distance(network, X, y, None)
    assert found.clarke_residual < 1e-6
    assert found.distances_from_ideal()["clarke_residual"] == found.clarke_residual
    assert found.residual > 0.2
    assert kkt_distance(network, X, y, None, kinks=False).clarke_residual is None
    # Without a kink there is no other side.
    assert kkt_distance(network, X[:1], y[:1], None).clarke_residual is None
