"""Bounds of ReLU networks of all widths, beside all gate patterns enumerated."""

from __future__ import annotations

import itertools
from fractions import Fraction
from pkgutil import resolve_name

import numpy as np
import pytest
from scipy.optimize import lsq_linear

from implicit_bias.limits import relu_lower_bound
from implicit_bias.limits.relu import (
    Direction,
    GateNodes,
    Largest,
    ReLUProblem,
    SortedSide,
    best_directions,
    largest_of_side,
    sides,
)
from tests.commands import home


def sampled_maximum(X: np.ndarray, weights: np.ndarray, n: int = 200_000) -> float:
    """The largest of many random directions: below the maximum."""
    v = np.random.default_rng(0).normal(size=(n, X.shape[1]))
    v /= np.linalg.norm(v, axis=1, keepdims=True)
    return float(np.abs(np.maximum(v @ X.T, 0) @ weights).max())


@pytest.mark.parametrize("rank", [1, 2, 3, 4])
def test_the_bound_of_all_widths_is_just_below_what_samples_say(rank) -> None:
    rng = np.random.default_rng(rank)
    X, y, lam = rng.normal(size=(12, rank)), np.sign(rng.normal(size=12)), rng.random(12)
    bound = relu_lower_bound(lam, X, y)
    sampled = lam.sum() / sampled_maximum(X, lam * y)
    assert bound <= sampled * (1 + 1e-12)
    assert bound == pytest.approx(sampled, rel=[1e-9, 1e-5, 1e-3, 2e-2][rank - 1])


def by_all_patterns(
    X: np.ndarray, y: np.ndarray, lam: np.ndarray, slope: float, signs: tuple = (1.0, -1.0)
) -> float:
    """The largest value of the dual function, one least-squares problem a gate pattern."""
    largest = 0.0
    for sign in signs:
        own, others = (lam[:, None] * X)[y == sign], (lam[:, None] * X)[y != sign]
        for pattern in itertools.product((slope, 1.0), repeat=len(own)):
            c = np.array(pattern) @ own - slope * others.sum(axis=0)
            B = (1 - slope) * others
            x = lsq_linear(B.T, c, bounds=(0, 1), method="bvls").x
            largest = max(largest, float(np.linalg.norm(c - x @ B)))
    return largest


@pytest.mark.parametrize("slope", [0.0, 0.3, 0.9])
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_the_arrangement_has_the_largest_of_all_patterns(rank, slope) -> None:
    for seed in range(24):
        rng, n = np.random.default_rng(seed), 2 + seed % 5
        X, y, lam = rng.normal(size=(n, rank)), np.sign(rng.normal(size=n)), rng.random(n)
        if n > 4:  # on one line through 0, on both sides of it; one at 0
            X[1], X[2], X[3] = 2 * X[0], -X[0], 0.0
        if n == 3:  # one between two of the other label, at whose kinks the largest value is
            flanks = [[3.0, 0.6, 0.1], [0.2, 1.0, 1.0], [0.3, 1.0, -1.0]]
            X, y, lam = 0.2 * X + np.array(flanks)[:, :rank], np.array([1.0, -1, -1]), np.ones(3)
        lam[rng.integers(n)] *= n == 3 or rng.integers(2)  # one without a multiplier
        exact = lam.sum() / by_all_patterns(X, y, lam, slope)
        # Of inputs in the space of more, and in units of their own, it is the same.
        for scale in (1.0, 1e-14):
            bound = relu_lower_bound(lam, scale * X, y, slope=slope) * scale
            assert bound == pytest.approx(exact, rel=1e-8) and bound <= exact * (1 + 1e-12)


def test_the_arrangement_of_rank_4_is_refused() -> None:
    directions = resolve_name("implicit_bias.limits.relu.arrangement:arrangement_directions")
    with pytest.raises(ValueError, match="rank 3 at most, got 4"):
        directions(ReLUProblem(np.eye(4), np.ones(4)), np.ones(4))


def test_weights_that_cancel_everywhere_leave_no_network_of_any_norm() -> None:
    # Equal samples of both labels: every network has a margin that is not positive.
    for X in ([[1.0], [1.0]], [[1.0, 2.0], [1.0, 2.0]], [[1.0, 2, 3], [1.0, 2, 3]]):
        assert relu_lower_bound(np.ones(2), np.array(X), np.array([1.0, -1.0])) > 1e12
    # So does a sample at 0.
    assert relu_lower_bound([1.0, 0.0], np.array([[0.0], [1.0]]), np.ones(2)) > 1e12


@pytest.mark.parametrize(("seed", "slope"), [(1, 0.3), (2, 0.0)])
def test_branch_and_bound_is_the_largest_of_all_patterns(seed, slope) -> None:
    rng = np.random.default_rng(seed)
    X, y, lam = rng.normal(size=(13, 5)), np.sign(rng.normal(size=13)), rng.random(13)
    bound = relu_lower_bound(lam, X, y, slope=slope)
    exact = lam.sum() / by_all_patterns(X, y, lam, slope)
    assert bound == pytest.approx(exact, rel=1e-8) and bound <= exact * (1 + 1e-12)


def every_bound(side, v):
    """Bounds of all nodes of some levels, at all shares set aside, with the directions inside."""
    whole = SortedSide(side)
    for depth in (1, 2, 4):
        gates = np.array(list(itertools.product((0.0, 1.0), repeat=depth)))
        nodes = GateNodes(gates, np.full((len(gates), len(whole.opposing) + depth), 0.5))
        for most in (0.0, 0.5, 1.0):
            bounds, _ = whole.bounds(nodes, most)
            for row, bound in zip(gates, bounds, strict=True):
                yield bound, np.all((v @ whole.helping[:depth].T > 0) == (row > 0), axis=1)


@pytest.mark.parametrize("slope", [0.0, 0.3])
@pytest.mark.parametrize("seed", range(2))
def test_branching_from_nothing_known_ends_at_the_largest_and_its_direction(
    monkeypatch, seed, slope
) -> None:
    # Steps make it faster alone: nodes are bounded by any shares, and patterns solved exactly.
    fast = {"_ROUNDS": (2,), "_STEPS": 4, "_ASIDE_STEPS": 4, "_CHUNK": 1}  # and nodes one by one
    for name, value in fast.items():
        monkeypatch.setattr(home(largest_of_side), name, value)
    rng = np.random.default_rng(seed)
    X, y, lam = rng.normal(size=(6, 3)), np.repeat([1.0, -1.0], 3), rng.random(6)
    X[0] *= seed  # one at 0
    nothing = Largest(0.0, Direction(np.zeros(3), 1.0, 0.0), 0)
    problem = ReLUProblem(X, y, slope)
    for side in sides(problem, lam):
        found = largest_of_side(side, nothing, 2**20)
        assert found.bound == pytest.approx(by_all_patterns(X, y, lam, slope, (side.sign,)), 1e-9)
        # On the way other patterns may have the value of directions that are not theirs.
        direction = found.direction
        assert np.linalg.norm(direction.v) == pytest.approx(1) and direction.sign == side.sign
        assert direction.dual == pytest.approx(float(side.dual(direction.v[None])[0]))
        assert direction.dual == pytest.approx(found.bound, rel=1e-9)
        # It looks at no more patterns than it may, and those of the other sign count.
        counted = nothing._replace(n_patterns=5)
        again = largest_of_side(side, counted, found.n_patterns + 5)
        assert again is not None and again.n_patterns == found.n_patterns + 5
        assert largest_of_side(side, counted, found.n_patterns + 4) is None
        assert largest_of_side(side, nothing._replace(bound=1e3), 2**20).bound == 1e3


def side_of(X: list[list[float]], y: list[float]):
    return sides(ReLUProblem(np.array(X), np.array(y)), np.ones(len(y)))[0]


NOTHING = Largest(0.0, Direction(np.zeros(2), 1.0, 0.0), 0)


def test_one_sample_and_another_that_opposes_it_are_bounded_by_their_distance() -> None:
    # Of (1, 0), open, what is left is its distance from the line to (1, 1); so it is, free, where
    # half of the other one is set aside.
    side = side_of([[1.0, 0.0], [1.0, 1.0]], [1.0, -1.0])
    whole = SortedSide(side)
    free, open_ = (GateNodes(np.ones((1, k)), np.full((1, 1 + k), 0.5)) for k in (0, 1))
    assert whole.bounds(free, 1.0)[0] == pytest.approx([0.5**0.5])
    assert whole.bounds(open_, 0.0)[0] == pytest.approx([0.5**0.5])
    found = largest_of_side(side, NOTHING, 100)
    assert (found.bound, found.n_patterns) == (pytest.approx(0.5**0.5), 3)
    # Nodes whose bound is no larger than what is known are left.
    assert largest_of_side(side, NOTHING._replace(bound=0.72), 100).n_patterns == 1


@pytest.mark.parametrize("known", [0.0, 0.6])
def test_no_sample_opposes_more_than_once(known) -> None:
    side = side_of([[2.0, 0.0], [1.0, 0.0], [0.0, 1e-3]], [1.0, -1.0, -1.0])
    assert largest_of_side(side, NOTHING._replace(bound=known), 100).bound == pytest.approx(1.0)


def test_where_no_sample_opposes_gates_alone_are_looked_at() -> None:
    side = side_of([[1.0, 0.0], [0.0, 1.0], [-3.0, 0.0]], [1.0, 1.0, 1.0])
    assert largest_of_side(side, NOTHING, 100).bound == pytest.approx(10**0.5)


def test_one_sample_alone_is_bounded_by_its_own_length() -> None:
    problem = ReLUProblem(np.array([[3.0, 4.0], [0.0, 0.0]]), np.array([1.0, 1.0]))
    side = SortedSide(sides(problem, np.array([2.0, 1.0]))[0])
    # In coordinates of their line.
    assert np.allclose(np.abs(side.helping), [[10.0], [0.0]])
    assert np.allclose(np.abs(side.directions), [[1.0], [0.0]])
    for gates in ([[]], [[1.0]]):  # free, and open
        bounds, _ = side.bounds(GateNodes(np.array(gates), np.zeros((1, len(gates[0])))), 0.0)
        assert bounds == pytest.approx([10.0])
    # On its closed side it takes nothing, and nothing is left.
    bounds, _ = side.bounds(GateNodes(np.array([[0.0]]), np.zeros((1, 1))), 0.0)
    assert bounds == pytest.approx([0.0])


def test_halves_have_a_gate_more_each_and_come_in_parts() -> None:
    gates = np.array(list(itertools.product((0.0, 1.0), repeat=12)))
    parts = GateNodes(gates, np.zeros((2**12, 12))).halves()
    assert [len(part.gates) for part in parts] == [2**12, 2**12]
    both = {tuple(row) for part in parts for row in part.gates.tolist()}
    assert both == set(itertools.product((0.0, 1.0), repeat=13))
    assert all(part.duals.shape == (2**12, 13) for part in parts)
    assert len(GateNodes(gates[:5], np.zeros((5, 12))).halves()) == 1


@pytest.mark.parametrize("most", [0.5, 1.0])
def test_shares_are_cut_to_the_nearest_that_sum_to_no_more(most) -> None:
    W = np.random.default_rng(0).normal(size=(5, 40))
    found = resolve_name("implicit_bias.limits.relu.branching:_at_most")(W, most)
    for before, after in zip(W.T, found.T, strict=True):
        low, high = 0.0, float(np.abs(before).max())
        while high - low > 1e-14:  # of the same taken off each, by halving
            cut = (low + high) / 2
            low, high = (cut, high) if np.maximum(before - cut, 0).sum() > most else (low, cut)
        cut = high if np.maximum(before, 0).sum() > most else 0.0
        assert after == pytest.approx(np.maximum(before - cut, 0), abs=1e-12)


def test_shares_that_are_set_aside_leave_no_sample_more_than_it_has() -> None:
    rng = np.random.default_rng(1)
    problem = ReLUProblem(rng.normal(size=(9, 4)), np.sign(np.arange(9) - 4.5))
    side = SortedSide(sides(problem, np.ones(9))[0])
    for k, most in itertools.product(range(4), (0.0, 0.5, 1.0)):
        W = side.aside(k, most)
        assert W.shape == (len(side.helping) - k, len(side.opposing))
        assert np.all(W >= 0) and np.all(W.sum(axis=0) <= most * (1 + 1e-12))
    assert side.aside(0, 1.0).sum() > 0


def test_nodes_that_are_left_hold_no_larger_value() -> None:
    rng = np.random.default_rng(3)
    X, y, lam = rng.normal(size=(16, 6)), np.sign(rng.normal(size=16)), rng.random(16)
    problem = ReLUProblem.checked(X, y)
    v = rng.normal(size=(20_000, 6))
    v /= np.linalg.norm(v, axis=1, keepdims=True)
    found = best_directions(problem, lam, np.zeros((0, 6)))[0]
    v = np.vstack([v, found.v])
    for side in sides(problem, lam):
        duals = side.dual(v)
        for bound, inside in every_bound(side, v):
            assert np.all(duals[inside] <= bound * (1 + 1e-12))


def test_the_bound_does_not_rest_on_what_the_search_finds(monkeypatch) -> None:
    slope = 0.3
    rng = np.random.default_rng(4)
    X, y, lam = rng.normal(size=(14, 5)), np.sign(rng.normal(size=14)), rng.random(14)
    known = relu_lower_bound(lam, X, y, slope=slope)
    monkeypatch.setattr(home(best_directions), "_STARTS", 1)
    monkeypatch.setattr(home(best_directions), "_ROUNDS", 0)
    problem = ReLUProblem.checked(X, y, slope)
    found = best_directions(problem, lam, np.zeros((0, 5)))
    assert max(direction.dual for direction in found) < 0.9 * lam.sum() / known
    assert relu_lower_bound(lam, X, y, slope=slope) == pytest.approx(known, rel=1e-9)


def test_a_bound_of_too_many_patterns_is_refused_with_their_number() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 8)), np.sign(rng.normal(size=30))
    with pytest.raises(ValueError, match=r"12 and 18 support .* than `max_patterns` = 20 gate"):
        relu_lower_bound(np.ones(30), X, y, max_patterns=20)


@pytest.mark.parametrize("lam", [[1.0, -1e-9], [0.0, 0.0], [-1.0, -1.0]])
def test_multipliers_that_are_negative_or_all_zero_are_refused_for_a_bound(lam) -> None:
    with pytest.raises(ValueError, match="`multipliers` must be finite, non-negative and not all"):
        relu_lower_bound(np.array(lam), np.eye(2), np.array([1.0, -1.0]))


@pytest.mark.parametrize("rank", [2, 3])
def test_bounds_of_pairs_that_cancel_contain_their_rounding(rank) -> None:
    """Pairs of equal samples: what their multipliers differ by is all there is, 1e-15 of them."""
    exact = np.vectorize(Fraction, otypes=[object])
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X, lam, y = rng.normal(size=(4, rank)), rng.random(4), np.repeat([1.0, -1.0], 4)
        both = np.append(lam, lam * (1 + 2.0**-50 * rng.integers(-2, 3, size=4)))
        along = np.maximum(exact(np.vstack([X, X])), 0)  # of the directions along the axes
        largest = max(abs(((exact(both) * exact(y))[:, None] * along).sum(axis=0)))
        bound = relu_lower_bound(multipliers=both, X=np.vstack([X, X]), y=y)
        assert bound == np.inf or Fraction(bound) * largest <= exact(both).sum()
