"""Local and global optima of two-layer ReLU networks: oracle values, proofs, and what they cover.

The values 6.7985126 (30 x 8), 57.0293218 (a diamond in the plane), 29 (the same on a grid) and
2.6361475 (60 digits) were proved in independent code, by lower bounds of all widths.
"""

from __future__ import annotations

from functools import cache

import cvxpy as cp
import numpy as np
import pytest
import torch

from implicit_bias import (
    GLN,
    NotCertified,
    ReLU,
    Result,
    Status,
    load_digits,
    solve_frelu_svm,
    solve_orthosep,
)
from implicit_bias.datasets import make_orthosep
from implicit_bias.limits import (
    ReLULocalLimit,
    relu_local_limit,
    relu_lower_bound,
    solve_relu_minnorm,
)
from implicit_bias.limits.relu import ReLUProblem, split_units
from implicit_bias.networks import DeepReLU
from implicit_bias.programs import ReLUMargin
from tests.commands import home
from tests.long import some_of


def random_data() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 8))
    return X, np.sign(rng.normal(size=30))


def diamond(points: np.ndarray, radius: float) -> tuple[np.ndarray, np.ndarray]:
    y = np.where(np.abs(points).sum(axis=1) < radius, 1.0, -1.0)
    return np.column_stack([points, np.ones(len(points))]), y


def plane() -> tuple[np.ndarray, np.ndarray]:
    return diamond(np.random.default_rng(1).uniform(-1, 1, (40, 2)), 0.8)


def grid() -> tuple[np.ndarray, np.ndarray]:
    line = np.linspace(-1, 1, 7)
    return diamond(np.array([(a, b) for a in line for b in line]), 0.9)


def start(X: np.ndarray, n_units: int, seed: int) -> ReLU:
    return ReLU(X.shape[1], n_units, init="kaiming", random_state=seed)


def value(network: DeepReLU, X: np.ndarray, y: np.ndarray) -> float:
    """Half the squared norm of the weights, balanced, at smallest margin 1."""
    with torch.no_grad():
        smallest = float((torch.tensor(y) * network(torch.tensor(X))).min())
        norms = network.layers[0].norm(dim=1) * network.layers[1].abs().reshape(-1)
    return float(norms.sum()) / smallest


def diverged() -> ReLU:
    network = ReLU(8, 2)
    with torch.no_grad():
        network.w1.fill_(np.nan)
    return network


@cache
def least(data) -> ReLULocalLimit:
    """The least sum of norms of all widths on such data, solved once."""
    return solve_relu_minnorm(*data())


@pytest.fixture(scope="module")
def local() -> ReLULocalLimit:
    """The limit next to a network of 24 units that has not been trained, without births."""
    X, y = random_data()
    return relu_local_limit(start(X, 24, 0), X, y)


# Global optima


@pytest.mark.long
@pytest.mark.parametrize("seed", [0, 1])
def test_births_bring_every_start_to_the_global_optimum(seed) -> None:
    X, y = random_data()
    limit = relu_local_limit(start(X, 40, seed), X, y, births=100)
    assert limit.status is Status.GLOBAL_OPTIMUM and limit.births > 0
    assert limit.value == pytest.approx(6.7985126, abs=1e-7)
    assert limit.certificate.lower_bound == pytest.approx(6.7985126, abs=1e-7)
    assert limit.certificate.lower_bound <= limit.value


@pytest.mark.parametrize(
    ("data", "optimum"),
    some_of([(random_data, 6.7985126), (plane, 57.0293218), (grid, 29.0)], one_in=3),
)
def test_the_minimum_norm_over_all_widths_needs_no_network(data, optimum) -> None:
    limit = least(data)
    assert limit.require() is limit and limit.status is Status.GLOBAL_OPTIMUM
    assert limit.value == pytest.approx(optimum, abs=1e-7)
    assert limit.certificate.global_gap < 1e-6


@pytest.mark.long
def test_sixty_digits_come_to_one_value_that_is_proved() -> None:
    digits = load_digits(n_train=60, random_state=0)
    X, y = digits.X_train, digits.y_train
    limit = solve_relu_minnorm(X, y)
    assert limit.status is Status.GLOBAL_OPTIMUM
    assert limit.value == pytest.approx(2.6361475, abs=1e-7)
    assert limit.escape_dual == pytest.approx(1.0, abs=1e-7)
    # Nothing better is found; without patterns to look at that is not proved.
    unproved = solve_relu_minnorm(X, y, start=limit.network, max_patterns=1)
    assert unproved.value == pytest.approx(limit.value, rel=1e-9)
    assert unproved.status is Status.LIVE_OPTIMUM and "gate patterns" in unproved.reason


def test_on_orthogonally_separable_data_it_is_the_two_max_margin_vectors() -> None:
    X, y = make_orthosep(40, 2, random_state=1)
    optimum = solve_orthosep(X, y).objective
    limit = solve_relu_minnorm(X, y, tol=1e-8)
    assert limit.status is Status.GLOBAL_OPTIMUM and len(limit.units) == 2
    assert limit.value == pytest.approx(optimum, rel=1e-8)


def test_a_leaky_optimum_of_slope_near_one_is_the_linear_one() -> None:
    X, y = make_orthosep(30, 3, random_state=2)
    # f = (relu(<u, x>) + a min(<u, x>, 0)) - (...) of u and -u is (1 + a) <u, x>, so that the
    # linear separator of margin 1 costs 2 ||w|| / (1 + a); one unit alone less as a goes to 1.
    w = np.linalg.norm(solve_frelu_svm(X, y, np.ones((30, 1))).zeta)
    near = solve_relu_minnorm(X, y, slope=1 - 1e-6)
    assert near.value == pytest.approx(float(w), rel=1e-5)
    values = [solve_relu_minnorm(X, y, slope=a).value for a in (0.0, 0.3, 0.9)]
    assert all(v < np.inf for v in values)


# The local limit


def test_values_never_rise_and_the_literal_program_has_the_last_one(local) -> None:
    X, y = random_data()
    assert len(local.values) > 1
    assert all(b <= a * (1 + 1e-12) for a, b in zip(local.values, local.values[1:], strict=False))
    assert local.value == pytest.approx(local.values[-1], rel=1e-8)
    gates = X @ local.units.T > 0
    problem = ReLUMargin(local.signs).literal(X, y, gates)
    assert float(problem.solve(solver="CLARABEL")) == pytest.approx(local.value, rel=1e-6)


def test_the_network_of_the_limit_has_its_value(local) -> None:
    X, y = random_data()
    network = local.network
    assert value(network, X, y) == pytest.approx(local.value, rel=1e-12)
    half = sum(float((layer.detach() ** 2).sum()) for layer in network.layers) / 2
    assert half == pytest.approx(local.value, rel=1e-9)
    with torch.no_grad():
        scores = network(torch.tensor(X)).numpy()
    assert scores == pytest.approx(local.scores, rel=1e-9, abs=1e-9)
    assert local.predictor(X) == pytest.approx(scores, rel=1e-9, abs=1e-9)
    again = relu_local_limit(network, X, y)
    assert again.value == pytest.approx(local.value, rel=1e-8) and again.covers(network)


def test_no_network_in_the_cones_is_below_the_bound(local) -> None:
    X, y = random_data()
    assert local.gap < 1e-8
    rng = np.random.default_rng(0)
    ratios = []
    norms = np.linalg.norm(local.units, axis=1, keepdims=True)
    for trial in range(4000):
        d = local.units / norms
        away = rng.normal(size=d.shape)
        away -= np.sum(away * d, axis=1, keepdims=True) * d
        away /= np.linalg.norm(away, axis=1, keepdims=True)
        angle = np.radians(local.turn)[:, None] * rng.random((len(d), 1)) * 0.999
        u = norms * (np.cos(angle) * d + np.sin(angle) * away)
        u *= rng.lognormal(sigma=0.01 if trial % 2 else 0.5, size=(len(d), 1))
        margins = y * (np.maximum(X @ u.T, 0) @ local.signs)
        if trial % 100 == 0:
            assert local.covers(ReLU.from_weights(u, local.signs))
        if margins.min() > 0:
            ratios.append(np.linalg.norm(u, axis=1).sum() / margins.min() / local.bound)
    assert len(ratios) > 1000
    assert 1 <= min(ratios) < 1.5


def test_a_neuron_beyond_a_support_sample_of_its_label_is_not_covered(local) -> None:
    h = int(np.argmin(local.turn))
    own = local.support_inputs[local.support_labels == local.signs[h]]
    cosines = own @ local.units[h] / np.linalg.norm(own, axis=1) / np.linalg.norm(local.units[h])
    n = int(np.argmin(np.abs(cosines)))
    # The turn is the angle to that sample's plane.
    assert local.turn[h] == pytest.approx(np.degrees(np.arcsin(np.abs(cosines[n]))), rel=1e-6)
    across = -np.sign(cosines[n]) * own[n] / np.linalg.norm(own[n])
    along = local.units[h] / np.linalg.norm(local.units[h])
    across -= (across @ along) * along
    across /= np.linalg.norm(across)
    for share, inside in ((0.999, True), (1.001, False)):
        angle = np.radians(share * local.turn[h])
        turned = local.units.copy()
        turned[h] = np.cos(angle) * along + np.sin(angle) * across
        assert local.covers(ReLU.from_weights(turned, local.signs)) is inside
    reflected = local.units.copy()
    reflected[h] -= 2 * (own[n] @ local.units[h]) / (own[n] @ own[n]) * own[n]
    assert local.covers(ReLU.from_weights(local.units, local.signs))
    assert not local.covers(ReLU.from_weights(reflected, local.signs))
    assert not local.covers(ReLU.from_weights(local.units, -local.signs))
    assert local.covers(ReLU.from_weights(0 * reflected, local.signs))


def test_the_bound_is_two_lines_of_numpy_and_is_proved_anew_on_the_data(local) -> None:
    X, y = random_data()
    used = local.support
    signed = (local.multipliers * y)[used, None] * local.cone_shares * local.cone_signs
    bound = local.multipliers.sum() / np.linalg.norm(signed.T @ X[used], axis=1).max()
    assert bound == pytest.approx(local.bound, rel=1e-10)
    proved = local.certify(X, y)
    assert proved.status is local.status and proved.bound == pytest.approx(bound, rel=1e-10)
    # On other data the same arrays prove less, or nothing.
    other = local.certify(X + 1e-3 * np.random.default_rng(5).normal(size=X.shape), y)
    assert other.status is Status.FAILED and other.gap > 1e-5
    assert local.certify(X, -y).gap == np.inf
    overall = least(random_data)
    again = overall.certify(X, y)
    assert again.status is Status.GLOBAL_OPTIMUM
    assert again.certificate.lower_bound == pytest.approx(overall.value, rel=1e-8)
    with pytest.raises(ValueError, match="the samples of the limit"):
        local.certify(X[1:], y[1:])


def test_it_says_whether_units_to_spare_help(local) -> None:
    X, y = random_data()
    assert local.status is Status.LIVE_OPTIMUM and local.n_spare == 24 - len(local.units)
    assert local.escape_dual > 1 and "lowers the value" in local.reason
    with pytest.raises(NotCertified, match="live optimum"):
        local.require()
    # Along the direction, a short unit lowers the value.
    more = ReLU.from_weights(
        np.vstack([local.units, 1e-3 * local.escape]), np.append(local.signs, local.escape_sign)
    )
    born = relu_local_limit(more, X, y)
    assert born.value < local.value * (1 - 1e-4)
    # Without one to spare the same network is a local optimum.
    exact = relu_local_limit(local.network, X, y)
    assert exact.status is Status.LOCAL_OPTIMUM and exact.n_spare == 0
    assert exact.require() is exact


@pytest.mark.parametrize(("factor", "flip"), [(3.0, False), (1.0, True), (0.01, True)])
def test_scaling_flipping_and_permuting_change_nothing(local, factor, flip) -> None:
    X, y = random_data()
    rng = np.random.default_rng(1)
    samples, units = rng.permutation(len(y)), rng.permutation(24)
    w1, w2 = (layer.detach().numpy() for layer in start(X, 24, 0).layers)
    sign = -1.0 if flip else 1.0
    network = ReLU.from_weights(w1[units], sign * w2[:, units])
    other = relu_local_limit(network, factor * X[samples], sign * y[samples])
    assert other.status is local.status and len(other.units) == len(local.units)
    assert other.value * factor == pytest.approx(local.value, rel=1e-8)
    assert sorted(other.turn) == pytest.approx(sorted(local.turn), rel=1e-3, abs=1e-6)


def test_inputs_of_lower_rank_are_reduced_to_it() -> None:
    X, y = random_data()
    wide = X @ np.linalg.qr(np.random.default_rng(0).normal(size=(20, 8)))[0].T
    network = start(wide, 24, 3)
    limit = relu_local_limit(network, wide, y)
    w1, w2 = (layer.detach().numpy() for layer in network.layers)
    basis = np.linalg.qr(np.random.default_rng(0).normal(size=(20, 8)))[0]
    same = relu_local_limit(ReLU.from_weights(w1 @ basis, w2), X, y)
    assert limit.units.shape[1] == 20 and limit.value == pytest.approx(same.value, rel=1e-8)


# Leaky units, and networks of PyTorch alone


def sequential(w1: np.ndarray, w2: np.ndarray, slope: float = 0.0) -> torch.nn.Sequential:
    first = torch.nn.Linear(w1.shape[1], len(w1), bias=False, dtype=torch.float64)
    last = torch.nn.Linear(len(w1), 1, bias=False, dtype=torch.float64)
    with torch.no_grad():
        first.weight.copy_(torch.tensor(w1))
        last.weight.copy_(torch.tensor(w2).reshape(1, -1))
    between = torch.nn.LeakyReLU(slope) if slope else torch.nn.ReLU()
    return torch.nn.Sequential(first, between, last)


def test_a_network_of_pytorch_has_the_limit_of_the_same_weights(local) -> None:
    X, y = random_data()
    w1, w2 = (layer.detach().numpy() for layer in start(X, 24, 0).layers)
    plain = sequential(w1, w2)
    limit = relu_local_limit(plain, X, y)
    assert limit.value == local.value and limit.start_value == local.start_value
    assert local.covers(sequential(local.units, local.signs))
    assert not local.covers(sequential(-local.units, local.signs))


def by_cells(X, y, W, signs, slope) -> float:
    """Least sum of norms in the closed cell of a network's gates, stated in cvxpy."""
    gates = X @ W.T > 0
    zeta = cp.Variable(W.shape)
    products = X @ zeta.T
    margins = cp.multiply(y, cp.sum(cp.multiply(np.where(gates, 1.0, slope), products), axis=1))
    cones = cp.multiply((2.0 * gates - 1) * signs, products) >= 0
    problem = cp.Problem(cp.Minimize(cp.sum(cp.norm(zeta, 2, axis=1))), [margins >= 1, cones])
    return float(problem.solve(solver="CLARABEL"))


def test_leaky_networks_end_below_the_best_of_their_cells() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 8)), np.sign(rng.normal(size=30))
    for slope, optimum in ((0.0, 10.808171), (0.1, 20.993446), (0.5, 28.953077)):
        W, signs = rng.normal(size=(16, 8)), np.sign(rng.normal(size=16))
        assert by_cells(X, y, W, signs, slope) == pytest.approx(optimum, rel=1e-6)
        # The program of the same helping gates spans the cell and its neighbours.
        gates = X @ W.T > 0
        program = ReLUMargin(signs, slope).literal(X, y, gates)
        first = float(program.solve(solver="CLARABEL"))
        assert first <= optimum * (1 + 1e-6)
        limit = relu_local_limit(sequential(W, signs, slope), X, y)
        assert limit.slope == slope and limit.gap < 1e-8 and limit.status is not Status.FAILED
        assert limit.values[0] <= first * (1 + 1e-6) and limit.value <= limit.values[0]
        predicted = sequential(limit.units, limit.signs, slope)
        with torch.no_grad():
            margins = y * predicted(torch.tensor(X)).numpy()[:, 0]
        assert margins.min() == pytest.approx(1.0, abs=1e-9)
        assert limit.value == pytest.approx(np.linalg.norm(limit.units, axis=1).sum(), rel=1e-9)
        assert limit.covers(predicted) and limit.certify(X, y).gap < 1e-8
        if slope:
            with pytest.raises(ValueError, match="the limit's slope"):
                limit.covers(sequential(W, signs))
            with pytest.raises(ValueError, match="`start` must have the slope"):
                solve_relu_minnorm(X, y, start=predicted)


# Kinks


@pytest.mark.long
def test_kinks_on_a_grid_are_decided_by_their_sides(monkeypatch) -> None:
    X, y = grid()
    network = start(X, 40, 0)
    best = relu_local_limit(network, X, y, births=9)
    assert best.status is Status.GLOBAL_OPTIMUM
    assert best.value == pytest.approx(29.0, abs=1e-6)
    limit = relu_local_limit(network, X, y)
    assert limit.status is Status.LIVE_OPTIMUM and limit.value > best.value
    assert limit.kinks_helping > 0 and len(limit.cone_signs) > len(limit.units)
    assert limit.covers(limit.network)
    # Turned to either side of its kinks a neuron is covered still.
    rng = np.random.default_rng(0)
    for _ in range(50):
        moved = limit.units * (1 + 1e-3 * rng.normal(size=limit.units.shape))
        assert limit.covers(ReLU.from_weights(moved, limit.signs))
    # Where the sides of so many kinks may not be looked at, nothing is claimed.
    monkeypatch.setattr(home(split_units), "MAX_KINKS", 0)
    unsplit = relu_local_limit(limit.network, X, y)
    assert unsplit.status is Status.STATIONARY and "its own label" in unsplit.reason
    assert np.min(unsplit.turn) < 1e-4


# The bound of all widths


def test_patterns_and_the_arrangement_agree() -> None:
    X, y = plane()
    limit = least(plane)
    of_faces = relu_lower_bound(limit.multipliers, X, y)
    tilted = np.column_stack([X, 1e-9 * np.random.default_rng(0).normal(size=len(X))])
    of_patterns = relu_lower_bound(limit.multipliers, tilted, y)
    assert of_faces == pytest.approx(57.0293218, rel=1e-8)
    assert of_patterns == pytest.approx(of_faces, rel=1e-7)


@pytest.mark.long
def test_weaker_multipliers_give_weaker_bounds() -> None:
    X, y = random_data()
    limit = least(random_data)
    rng = np.random.default_rng(0)
    best = relu_lower_bound(limit.multipliers, X, y)
    assert best == pytest.approx(limit.certificate.lower_bound, rel=1e-8)
    for _ in range(2):
        lam = limit.multipliers * rng.lognormal(sigma=0.2, size=len(y))
        assert relu_lower_bound(lam, X, y) < best * (1 - 1e-3)
    assert relu_lower_bound(7 * limit.multipliers, 2 * X, -y) == pytest.approx(best / 2, rel=1e-8)


# What is refused, and what is said where nothing was found


def test_samples_on_one_ray_are_named() -> None:
    X = np.array([[1.0, 2.0, 0.0], [0.0, 1.0, 1.0], [2.0, 4.0, 0.0]])
    limit = solve_relu_minnorm(X, np.array([1.0, 1.0, -1.0]))
    assert limit.status is Status.NOT_SEPARABLE and "samples 0 and 2" in limit.reason
    zero = solve_relu_minnorm(np.vstack([X, np.zeros(3)]), np.array([1.0, 1.0, 1.0, -1.0]))
    assert "sample 3 is 0" in zero.reason


def test_a_network_whose_gates_separate_nothing_fails_in_words() -> None:
    X, y = np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([1.0, -1.0])
    limit = relu_local_limit(ReLU.from_weights([[1.0, 0.5]], [1.0]), X, y)
    assert limit.status is Status.FAILED and "no network with these helping gates" in limit.reason
    assert limit.gap == np.inf and limit.start_value == np.inf and len(limit.units) == 0
    with pytest.raises(ValueError, match="there is no network"):
        _ = limit.network


def test_no_time_and_no_programs_fail_in_words() -> None:
    X, y = random_data()
    limit = relu_local_limit(start(X, 24, 0), X, y, max_seconds=1e-9)
    assert limit.status is Status.FAILED and "max_seconds" in limit.reason
    one = relu_local_limit(start(X, 24, 0), X, y, max_programs=1)
    assert one.programs == 1 and one.status is not Status.GLOBAL_OPTIMUM


@pytest.mark.parametrize(
    ("network", "error", "message"),
    [
        (DeepReLU(8, (4, 3)), ValueError, "one hidden layer, got 2"),
        (GLN(8, 2, 2), TypeError, "must be a networks.ReLU"),
        (torch.nn.Sequential(), TypeError, "got Sequential"),
        (
            torch.nn.Sequential(torch.nn.Linear(8, 3), torch.nn.Tanh(), torch.nn.Linear(3, 1)),
            TypeError,
            "Linear, ReLU or LeakyReLU",
        ),
        (
            torch.nn.Sequential(torch.nn.Linear(8, 3), torch.nn.ReLU(), torch.nn.Linear(3, 1)),
            ValueError,
            "has biases",
        ),
        (sequential(np.ones((3, 8)), np.ones(3), -0.5), ValueError, "a slope in"),
        (
            torch.nn.Sequential(
                *sequential(np.ones((3, 8)), np.ones(3))[:2],
                torch.nn.Linear(3, 2, bias=False, dtype=torch.float64),
            ),
            ValueError,
            "one output, got 2",
        ),
        (ReLU(5, 3), ValueError, "must have 5 columns"),
        (diverged(), ValueError, "NaN or infinite"),
        (ReLU.from_weights(np.zeros((2, 8)), np.ones(2)), ValueError, "0 on every input"),
    ],
)
def test_other_networks_are_refused(network, error, message) -> None:
    with pytest.raises(error, match=message):
        relu_local_limit(network, *random_data())


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"births": -1}, "births"),
        ({"tol": 0.0}, "tol"),
        ({"max_programs": 0}, "max_programs"),
        ({"max_seconds": -1.0}, "max_seconds"),
    ],
)
def test_numbers_out_of_range_are_refused(keywords, message) -> None:
    X, y = random_data()
    with pytest.raises(ValueError, match=message):
        relu_local_limit(start(X, 4, 0), X, y, **keywords)


def test_a_saved_limit_is_what_it_was(local, tmp_path) -> None:
    local.save(tmp_path / "limit.safetensors")
    loaded = ReLULocalLimit.load(tmp_path / "limit.safetensors")
    assert isinstance(loaded, Result) and loaded.status is local.status
    assert loaded.to_dict() == local.to_dict() and repr(loaded) == repr(local)
    proved = loaded.certify(*random_data())
    assert proved.status is local.status
    assert proved.bound == pytest.approx(local.bound, rel=1e-11)
    assert loaded.covers(local.network) and np.array_equal(loaded.units, local.units)


def test_problems_have_the_margins_of_networks() -> None:
    X, y = random_data()
    network = start(X, 5, 0)
    w1, w2 = (layer.detach().numpy() for layer in network.layers)
    problem = ReLUProblem.checked(X, y)
    margins = problem.margins(np.abs(w2.T) * w1, np.sign(w2[0]))
    with torch.no_grad():
        assert margins == pytest.approx(y * network(torch.tensor(X)).numpy(), rel=1e-12)
