"""Steps of the programs with a fixed outer layer, on orthogonal samples and beside loops.

A sample of length c that is orthogonal to all others has its margin at the least norm
``1 / (c sqrt(K))``, where ``K = sum_h a_h^2 g_h^2``: neurons of its sign are open, the slope is
that of the others.
"""

from __future__ import annotations

import itertools
import math
import time
from dataclasses import FrozenInstanceError, replace
from pkgutil import resolve_name

import cvxpy as cp
import numpy as np
import pytest

import implicit_bias as ib
from experiments import fixed_outer_programs
from implicit_bias import Status
from implicit_bias.limits import solve_fixed_outer

FixedOuter, Point, scaled_problem = (
    resolve_name(f"implicit_bias.limits.relu.fixed_outer:{name}")
    for name in ("FixedOuter", "Point", "scaled_problem")
)
TooManyPatterns = resolve_name("implicit_bias.limits.relu.bound:TooManyPatterns")
ReLUProblem = resolve_name("implicit_bias.limits.relu.problem:ReLUProblem")
ONES = np.ones(2)


def rho(z: float, slope: float) -> float:
    return z if z > 0 else slope * z


def problem_of(X, y, outer, slope=0.0):
    return FixedOuter(ReLUProblem(np.array(X), np.array(y), slope), np.array(outer))


@pytest.mark.parametrize("slope", [0.0, 0.3])
@pytest.mark.parametrize("rank", [1, 2, 3, 4])
def test_the_bound_of_orthogonal_samples_is_a_closed_form(rank, slope, monkeypatch) -> None:
    monkeypatch.setattr("implicit_bias.limits.relu.directions._STARTS", 20)
    rng = np.random.default_rng(rank)
    c, lam, outer = rng.uniform(0.5, 2, rank), rng.random(rank), np.array([0.5, -0.25, 0.1])
    labels = np.where(np.arange(rank) % 2, 1.0, -1.0), np.ones(rank)
    cases = (outer, 1e-3), (outer, 1.0), (abs(outer), 1.0), (3 * outer, 1e3)
    for y, (a, scale) in zip(labels * 2, cases, strict=True):
        squares = 0.0
        for weight in a:
            slopes = np.where(y * weight > 0, 1.0, slope)
            squares += weight**2 * np.sum((slopes * lam * c) ** 2)
        exact = lam.sum() / math.sqrt(squares) if squares else 1e15
        bound = problem_of(np.diag(c), y, a, slope).least(scale * lam)
        assert exact * (1 - 1e-8) <= bound <= (exact if squares else math.inf)
    assert problem_of(np.diag(c), y, a).least(np.zeros(rank)) == math.inf


def test_a_bound_of_too_many_patterns_is_refused_by_their_number(monkeypatch) -> None:
    monkeypatch.setattr("implicit_bias.limits.relu.directions._STARTS", 20)
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(8, 9)), np.resize([1.0, -1.0], 8)
    with pytest.raises(TooManyPatterns, match="more than 3 gate patterns"):
        problem_of(X, y, [1.0]).least(np.ones(8), 3)
    few = solve_fixed_outer(X, y, [1.0, -1.0], max_patterns=1)
    none = solve_fixed_outer(X, y, [1.0, -1.0], max_patterns=0)
    for one in (few, none):
        assert one.certificate.lower_bound == 0 and one.status is Status.LOCAL_OPTIMUM
    assert solve_fixed_outer(X, y, [1.0, -1.0]).certificate.lower_bound > 0


def margins_of(X, y, outer, slope, W, slopes=None):
    """Margins in loops; of pairs of one sign on the line of a slope where these are given."""
    found = []
    for n, x in enumerate(X):
        total = 0.0
        for h, a in enumerate(outer):
            z = float(W[h] @ x)
            helps = slopes is not None and a * y[n] > 0
            total += a * (slopes[n, h] * z if helps else rho(z, slope))
        found.append(y[n] * total)
    return np.array(found)


def test_margins_are_sums_over_neurons_and_kinks_are_open() -> None:
    rng = np.random.default_rng(1)
    X, y, outer = rng.normal(size=(5, 3)), np.array([1.0, -1, 1, -1, 1]), np.array([2.0, -0.5])
    W, problem = rng.normal(size=(2, 3)), problem_of(X, y, outer, 0.25)
    np.testing.assert_allclose(problem.margins(W), margins_of(X, y, outer, 0.25, W))
    slopes = rng.random((5, 2))
    np.testing.assert_allclose(problem.margins(W, slopes), margins_of(X, y, outer, 0.25, W, slopes))
    on = problem_of(np.eye(2), ONES, outer, 0.25).slopes(np.array([[0.0, -1.0], [1.0, 0.0]]))
    assert on.tolist() == [[1, 1], [0.25, 1]]


def test_inputs_are_over_a_power_of_two() -> None:
    for size, unit in ((3.0, 4.0), (4.0, 8.0), (0.2, 0.25)):
        problem, found = scaled_problem(np.diag([size, -size / 4]), ONES, ONES, 0.5)
        assert found == unit and problem.relu.slope == 0.5
        np.testing.assert_array_equal(problem.X, np.diag([size, -size / 4]) / unit)


@pytest.mark.parametrize("slope", [0.0, 0.25])
def test_a_solution_has_multipliers_that_prove_it(slope) -> None:
    rng = np.random.default_rng(2)
    X, y, outer = rng.normal(size=(7, 9)), np.resize([1.0, -1, -1], 7), np.array([1.0, -2.0, 0.5])
    problem, settings = problem_of(X, y, outer, slope), ib.Settings(tol=1e-10)
    gates = np.where(rng.random((7, 3)) < 0.7, 1.0, slope)
    gates[:, :2] = 1.0
    point = problem.solve(gates, settings)
    margins = margins_of(X, y, outer, slope, point.zeta, gates)
    assert margins.min() == pytest.approx(1, abs=1e-7)
    helping = y[:, None] * outer > 0
    assert np.array_equal(point.slopes[helping], gates[helping])
    assert np.all((point.slopes >= slope - 1e-12) & (point.slopes <= 1 + 1e-12))
    # Slopes of opposing pairs are those of the activations, but for samples on a kink.
    z = X @ point.zeta.T
    off = ~helping & (np.abs(z) > 1e-4)
    np.testing.assert_allclose(point.slopes[off], np.where(z > 0, 1.0, slope)[off], atol=1e-6)
    blocks = [
        sum(point.lam[n] * y[n] * a * point.slopes[n, h] * X[n] for n in range(7))
        for h, a in enumerate(outer)
    ]
    value = np.linalg.norm(point.zeta)
    assert point.lam.sum() / np.linalg.norm(blocks) == pytest.approx(value, rel=1e-7)
    assert np.all(np.abs(margins[point.lam > 1e-6 * point.lam.max()] - 1) < 1e-6)


def test_gates_that_separate_nothing_have_no_solution() -> None:
    closed = problem_of(np.eye(2), ONES, [1.0])
    assert closed.solve(np.array([[0.0], [1.0]]), ib.Settings(tol=1e-9)) is None


# What is said of a point


def concluded(problem, point, lower=0.0, unit=1.0, tol=1e-6):
    return problem.conclude(point, lower, unit, tol=tol, programs=3, seconds=0.5)


def test_all_that_is_said_of_a_point_is_recomputed() -> None:
    rng = np.random.default_rng(3)
    X, W, outer = rng.normal(size=(4, 3)), rng.normal(size=(2, 3)), np.array([2.0, -0.5])
    y = np.sign(margins_of(X, np.ones(4), outer, 0.25, W))
    assert set(y) == {1.0, -1.0}
    problem, lam = problem_of(X, y, outer, 0.25), np.array([1.0, 0.5, -0.7, 1e-10])
    slopes = np.where(X @ W.T > 0, 1.0, 0.25)
    unit = 4.0
    found = concluded(problem, Point(W, lam, slopes), 0.3, unit)
    clipped, smallest = np.maximum(lam, 0), margins_of(X, y, outer, 0.25, W).min()
    blocks = [
        sum(clipped[n] * y[n] * a * slopes[n, h] * X[n] for n in range(4))
        for h, a in enumerate(outer)
    ]
    value, below = np.linalg.norm(W) / smallest, clipped.sum() / np.linalg.norm(blocks)
    proof = found.certificate
    assert proof.objective == pytest.approx(value / unit)
    assert proof.dual_objective == pytest.approx(below / unit) and proof.lower_bound == 0.3 / unit
    assert proof.dual_objective * unit <= below * (1 - 1.3e-15)  # of 15 roundings
    assert proof.gap == pytest.approx(value / below - 1)
    assert proof.global_gap == pytest.approx(value / 0.3 - 1)
    # The turn is to the nearest sample of its own sign with a multiplier: the last has none.
    turns = [
        abs(X[n] @ w) / np.linalg.norm(X[n]) / np.linalg.norm(w)
        for n, (h, w) in itertools.product((0, 1), enumerate(W)) if outer[h] * y[n] > 0
    ]  # fmt: skip
    assert proof.smallest_turn == pytest.approx(math.degrees(math.asin(min(turns))))
    np.testing.assert_allclose(found.zeta, W / smallest / unit)
    np.testing.assert_allclose(found.margins, margins_of(X, y, outer, 0.25, W) / smallest)
    assert found.dual.tolist() == clipped.tolist() and found.slopes is slopes
    assert found.status is Status.FAILED and found.reason == f"its gap is {value / below - 1:.2g}"
    assert (found.programs, found.tol, found.seconds, found.slope) == (3, 1e-6, 0.5, 0.25)


# The best of I and labels 1, -1 for weights 1, -1: each neuron on its sample, of slope 1/2 on the
# other one. With gates of the labels all of it is proved.
LEAKY = problem_of(np.eye(2), [1.0, -1.0], [1.0, -1.0], 0.5)
BEST = np.array([[0.8, -0.4], [-0.4, 0.8]])
OPEN = np.array([[1.0, 0.5], [0.5, 1.0]])
VALUE = math.sqrt(1.6)


@pytest.mark.parametrize(
    ("change", "lower", "status", "reason"),
    [
        ({}, VALUE, Status.SOLVED, ""),
        ({"lam": [1.6e-3, 1.6e-3]}, VALUE, Status.SOLVED, ""),
        ({}, VALUE / (1 + 0.9e-6), Status.SOLVED, ""),
        ({}, VALUE / (1 + 1.1e-6), Status.LOCAL_OPTIMUM, ""),
        ({}, 0.0, Status.LOCAL_OPTIMUM, ""),
        # Slopes of opposing pairs are anything from 1/2 to 1, and of helping ones their gates.
        ({"slopes": [[1.0, 0.5 - 1e-9], [0.5, 1.0]]}, VALUE, Status.FAILED, "its gap is inf"),
        ({"slopes": [[1.0, 0.5 * (1 - 9e-13)], [0.5, 1.0]]}, VALUE, Status.SOLVED, ""),
        ({"slopes": [[1.0, 1.0], [1.0, 1.0]]}, VALUE, Status.FAILED, "its gap is 0.26"),
        ({"slopes": [[1.0, 1.0 + 1e-9], [0.5, 1.0]]}, VALUE, Status.FAILED, "its gap is inf"),
        ({"slopes": [[0.9, 0.5], [0.5, 1.0]]}, VALUE, Status.FAILED, "its gap is inf"),
        # Those of samples without a multiplier are not read.
        ({"slopes": [[0.9, 0.5], [0.5, 1.0]], "lam": [0.0, 1.0]}, 0.0, Status.FAILED, "its gap is"),
        ({"lam": [0.0, 0.0]}, VALUE, Status.FAILED, "its gap is inf"),
        ({"zeta": [[-0.8, 0.4], [0.4, -0.8]]}, VALUE, Status.FAILED, "it does not separate"),
    ],
)
def test_a_point_has_the_status_that_its_bounds_prove(change, lower, status, reason) -> None:
    point = {"zeta": BEST, "lam": [1.6, 1.6], "slopes": OPEN} | change
    found = concluded(LEAKY, Point(*(np.array(one) for one in point.values())), lower)
    assert found.status is status and found.reason.startswith(reason)
    assert bool(found.reason) is bool(reason)
    if reason == "its gap is" or "inf" in reason:
        assert (found.certificate.dual_objective > 0) is (reason == "its gap is")
    separates = status is not Status.FAILED or "separate" not in reason
    assert math.isfinite(found.value) is separates
    if separates:
        assert found.value == pytest.approx(VALUE)


def test_a_support_sample_on_a_kink_of_its_sign_is_told() -> None:
    # Two neurons of one sign, each closed on the sample of the other one, on whose kink it is.
    closed = problem_of(np.eye(2), ONES, [1.0, 1.0])
    for off, status in ((0.0, Status.STATIONARY), (-9e-7, Status.STATIONARY), (-2e-6, "open")):
        W = np.array([[1.0, off], [off, 1.0]])
        found = concluded(closed, Point(W, ONES, np.eye(2)), tol=1e-3)
        assert found.certificate.smallest_turn == pytest.approx(math.degrees(abs(off)), abs=1e-9)
        assert found.status is (Status.LOCAL_OPTIMUM if status == "open" else status)
        assert ("on a kink of its own sign" in found.reason) is (status != "open")
    found = concluded(closed, Point(np.eye(2), ONES, np.eye(2)), math.sqrt(2))
    assert found.status is Status.SOLVED and found.reason == ""


def test_multipliers_are_of_support_samples_beside_the_largest() -> None:
    closed = problem_of(np.eye(2), ONES, [1.0, 1.0])
    W = np.array([[1.0, 0.0], [0.5, 1.0]])  # the first is on the kink of the second sample
    for lam, on in ((2e-12, True), (0.5e-12, False)):
        found = concluded(closed, Point(W, np.array([1e-3, lam]), np.eye(2)))
        assert (found.certificate.smallest_turn == 0) is on


def test_a_limit_is_proved_anew_in_its_own_units() -> None:
    X, y = np.array([[3.0, 0.0, 0.0], [0.0, 6.0, 0.0]]), np.array([1.0, -1.0])
    limit = solve_fixed_outer(X, y, [1.0, -1.0], slope=0.5)
    # K = 1 + 1/4 of either.
    exact = math.sqrt((1 / 9 + 1 / 36) / 1.25)
    assert limit.value == pytest.approx(exact) and limit.status is Status.SOLVED
    assert limit.norm_of(limit.zeta) == pytest.approx(exact)
    for factor in (1.0, 0.25, 10.0):
        again = limit.certify(factor * X, y)
        assert again.value == pytest.approx(exact / factor) and again.status is Status.SOLVED
        assert again.certificate.lower_bound == pytest.approx(exact / factor)
        np.testing.assert_allclose(again.zeta, limit.zeta / factor)
    assert (again.programs, again.tol, again.seconds) == (1, limit.tol, limit.seconds)
    for lower, status in ((0.0, Status.LOCAL_OPTIMUM), (0.5, Status.SOLVED)):
        known = replace(limit, certificate=replace(limit.certificate, lower_bound=lower))
        again = known.certify(X, y)
        assert again.status is status
        assert again.certificate.lower_bound == pytest.approx(exact if lower else 0.0)
    with pytest.raises(ValueError, match="the samples of the limit"):
        limit.certify(X[:1], y[:1])
    with pytest.raises(ValueError, match=r"`X` must have shape \(2, 3\)"):
        limit.certify(X[:, :2], y)


def test_supports_ranks_and_scores_are_those_of_the_arrays() -> None:
    X = np.diag([1.0, 2.0, 4.0])
    limit = solve_fixed_outer(X, [1.0, -1.0, 1.0], [2.0, -0.5], slope=0.5)
    assert (limit.n_samples, limit.n_units, limit.n_support, limit.rank) == (3, 2, 3, 2)
    for dual, n in (([10.0, 1.1e-8, 0.9e-8], 2), ([0.1, 1.1e-10, 0.9e-10], 2), ([0.0] * 3, 0)):
        assert replace(limit, dual=np.array(dual)).n_support == n
    for sizes, rank in (([10.0, 1.1e-5], 2), ([10.0, 0.9e-5], 1), ([0.1, 1.1e-7], 2)):
        W = np.diag([*sizes, 0.0])[:2]
        assert replace(limit, zeta=W).rank == rank
    np.testing.assert_allclose(limit.classifier, 2 * limit.zeta[0] - 0.5 * limit.zeta[1])
    points = np.random.default_rng(4).normal(size=(6, 3))
    scores = margins_of(points, np.ones(6), [2.0, -0.5], 0.5, limit.zeta)
    np.testing.assert_allclose(limit.predictor(points), scores)


# The search


def test_gates_are_followed_until_they_stay() -> None:
    began = time.perf_counter()
    # Closed on the second sample, of slope 1/2 there, u = (1, 2) is open on it; then it is (1, 1).
    start = [[1.0, -0.1]]
    limit = solve_fixed_outer(np.eye(2), ONES, [1.0], slope=0.5, start=start)
    assert limit.programs == 2 and limit.value == pytest.approx(math.sqrt(2))
    assert limit.status is Status.SOLVED and 0 < limit.seconds <= time.perf_counter() - began
    np.testing.assert_allclose(limit.zeta, [[1, 1]])
    one = solve_fixed_outer(np.eye(2), ONES, [1.0], slope=0.5, start=start, max_programs=1)
    assert one.programs == 1 and one.value == pytest.approx(math.sqrt(5))
    assert one.status is Status.FAILED
    # Closed on both it is (2, 2), of which the open network is half: no less, and proved.
    both = solve_fixed_outer(np.eye(2), ONES, [1.0], slope=0.5, start=[[-1.0, -1.0]])
    assert both.programs == 2 and both.status is Status.SOLVED
    assert both.value == pytest.approx(math.sqrt(2))
    # By default it is open where it helps, and one program is enough.
    limit = solve_fixed_outer(np.eye(2), ONES, [1.0], slope=0.5)
    assert limit.programs == 1 and limit.status is Status.SOLVED


@pytest.mark.parametrize(
    ("X", "start", "slope", "programs"),
    [
        ([[-2.0, -2.0], [2.0, 0.0], [0.0, 1.0]], [[-2.0, -1.0], [0.0, -1.0]], 0.5, 3),
        ([[1.0, 2.0], [2.0, 2.0], [2.0, -2.0]], [[-1.0, 2.0], [1.0, -2.0]], 0.0, 2),
    ],
)
def test_the_search_is_that_of_programs_in_cvxpy_on_the_gates_of_the_last(
    X, start, slope, programs
) -> None:
    inputs, W = np.array(X), np.array(start)
    gates = np.where(inputs @ W.T >= 0, 1.0, slope)
    for _ in range(programs):  # of one label, and of neurons of its sign
        V = cp.Variable(W.shape)
        margins = cp.sum(cp.multiply(gates, inputs @ V.T), axis=1)
        value = cp.Problem(cp.Minimize(cp.norm(V, "fro")), [margins >= 1]).solve("CLARABEL")
        gates = np.where(inputs @ V.value.T >= -1e-6, 1.0, slope)
    n, H = gates.shape
    limit = solve_fixed_outer(inputs, np.ones(n), np.ones(H), slope=slope, start=start)
    assert limit.programs == programs and limit.value == pytest.approx(value, rel=1e-6)
    assert limit.status in (Status.SOLVED, Status.LOCAL_OPTIMUM)


def test_gates_of_opposing_pairs_are_not_those_that_stay() -> None:
    # Closed on a sample that it opposes, a neuron of slope 1/2 takes 1/2 of what it is along it.
    limit = solve_fixed_outer(
        [[-1.0, 1.0]], [1.0], [-1.0, -1.0], slope=0.5, start=[[-1.0, 1.0], [2.0, 1.0]]
    )
    assert limit.programs == 1 and limit.value == pytest.approx(1.0)
    # Of the same value, and on other gates: the second is proved.
    X, start = [[-1.0], [1.0]], [[-2.0], [-2.0]]
    limit = solve_fixed_outer(X, [1.0, -1.0], [-1.0, -1.0], slope=0.5, start=start)
    assert limit.programs == 2 and limit.value == pytest.approx(math.sqrt(2))
    assert limit.status is Status.SOLVED


def test_a_neuron_that_is_rounding_is_opened_as_one_that_is_zero() -> None:
    # The second neuron of the first program is rounding; no inner layer is better in the end.
    assert fixed_outer_programs.row(21)["status"] == "SOLVED"


def test_what_is_rounding_is_so_at_any_size_of_the_weights(monkeypatch) -> None:
    class Given(Exception):
        """The arguments of a program."""

    def keep(*of, **how):
        raise Given(of, how)

    monkeypatch.setattr(ib.limits, "solve_fixed_outer", keep)
    with pytest.raises(Given) as given:
        fixed_outer_programs.row(21)
    (X, y, outer), how = given.value.args
    known = solve_fixed_outer(X, y, outer, **how, max_patterns=0)
    for scale in (1e-9, 1e-5, 1e6):
        found = solve_fixed_outer(X, y, scale * outer, **how, max_patterns=0)
        assert found.programs == 2 and scale * found.value == pytest.approx(known.value)


def test_an_open_gate_on_a_kink_may_give_more() -> None:
    # Each neuron on its own sample, closed on the other one: on its kink it is opened next.
    start = [[1.0, -1.0], [-1.0, 1.0]]
    one, all_ = (
        solve_fixed_outer(np.eye(2), ONES, ONES, start=start, max_programs=n) for n in (1, 50)
    )
    assert one.status is Status.STATIONARY and one.value == pytest.approx(math.sqrt(2))
    assert all_.status is Status.SOLVED and all_.value == pytest.approx(1) and all_.programs == 2
    # A neuron that is 0 is on all of its kinks.
    closed = solve_fixed_outer(np.eye(2), ONES, ONES, start=[[1.0, 1.0], [-1.0, -1.0]])
    assert closed.value == pytest.approx(1) and closed.programs == 2


def test_no_time_leaves_no_program_and_nothing_is_found() -> None:
    limit = solve_fixed_outer(np.eye(2), ONES, [1.0], max_seconds=1e-9)
    assert limit.programs == 0 and limit.status is Status.FAILED and limit.value == math.inf
    assert limit.zeta.tolist() == [[0, 0]] and limit.dual.tolist() == [0, 0]
    assert limit.certificate.lower_bound == 0 and limit.reason == "it does not separate"
    assert solve_fixed_outer(np.eye(2), ONES, [1.0], max_seconds=60.0).programs == 1


# The program as it is stated


@pytest.mark.parametrize("slope", [0.0, 0.25])
def test_the_stated_program_has_the_margins_of_its_gates(slope) -> None:
    rng = np.random.default_rng(5)
    X, y, outer = rng.normal(size=(5, 3)), np.array([1.0, -1, 1, -1, 1]), np.array([2.0, -0.5])
    W, gates = rng.normal(size=(2, 3)), rng.integers(0, 2, (5, 2)).astype(float)
    for given, used in ((gates, gates), (None, np.ones((5, 2)))):
        stated = ib.programs.FixedOuterMargin(outer, slope).literal(X, y, given)
        stated.var_dict["W"].value = W
        lines = slope + (1 - slope) * used
        (margins,) = stated.constraints
        np.testing.assert_allclose(
            (margins.args[1] - margins.args[0]).value,
            margins_of(X, y, outer, slope, W, lines) - 1,
            atol=1e-12,
        )
        assert stated.objective.value == pytest.approx(np.linalg.norm(W))
    program = ib.programs.FixedOuterMargin(outer)
    assert program.slope == 0 and program != ib.programs.FixedOuterMargin(outer)
    with pytest.raises(FrozenInstanceError):
        program.slope = 0.5
    for wrong, said in ((np.full((5, 2), 0.5), "exactly 0"), (np.ones((2, 5)), r"shape \(5, 2\)")):
        with pytest.raises(ValueError, match=said):
            program.literal(X, y, wrong)
    with pytest.raises(TypeError, match="`gates`"):
        program.literal(X, y, gates * 1j)


def test_a_start_has_a_row_a_neuron_and_is_separated_by_its_gates() -> None:
    with pytest.raises(ValueError, match=r"`start` must have shape \(1, D\)"):
        solve_fixed_outer(np.eye(2), ONES, [1.0], start=np.ones((2, 2)))
    # On closed gates nothing is separated: what is returned are zeros.
    limit = solve_fixed_outer(np.eye(2), ONES, [1.0], start=[[-1.0, -1.0]])
    assert limit.programs == 1 and limit.status is Status.FAILED
    assert limit.slopes.tolist() == [[0], [0]]
