"""Programs of margins that are linear less hinges: cvxpy's own statement, and bounds by hand."""

from __future__ import annotations

from pkgutil import resolve_name

import cvxpy as cp
import numpy as np
import pytest

from solvers import HingeProgram, Status, certify_hinge, solve_hinge
from solvers.methods.hinge_newton import HingePoint, polished
from tests.long import some_of

Centre = resolve_name("solvers.methods.hinge_rows:_Centre")


def random_program(seed: int, n: int = 25, D: int = 6, H: int = 24) -> HingeProgram:
    """Gates of a random network: where a unit helps it has no hinge."""
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(n, D)), np.sign(rng.normal(size=n))
    helping = y[:, None] * np.repeat([1.0, -1.0], [H - H // 2, H // 2]) > 0
    gates = X @ rng.normal(size=(D, H)) > 0
    return HingeProgram(X, np.where(helping, gates, 0.0), np.where(helping, 0.0, 1.0))


def by_cvxpy(program: HingeProgram) -> float:
    u = cp.Variable((program.n_groups, program.X.shape[1]))
    z = program.X @ u.T
    margins = cp.sum(cp.multiply(program.linear, z) - cp.multiply(program.hinges, cp.pos(z)), 1)
    problem = cp.Problem(cp.Minimize(cp.sum(cp.norm(u, 2, axis=1))), [margins >= 1])
    return float(problem.solve(solver="CLARABEL"))


@pytest.mark.parametrize("seed", [0, 2, 3])
def test_the_solution_is_that_of_cvxpy_from_any_start(seed) -> None:
    program = random_program(seed)
    optimum = by_cvxpy(program)
    rng = np.random.default_rng(seed)
    for start in (None, rng.normal(size=(program.n_groups, program.X.shape[1]))):
        solution = solve_hinge(program, start)
        assert solution.status is Status.SOLVED
        assert solution.certificate.objective == pytest.approx(optimum, rel=1e-6)
        assert solution.certificate.gap < 1e-8
        assert program.margins(solution.u).min() == pytest.approx(1.0, abs=1e-12)


def test_a_start_on_the_wrong_sides_is_corrected() -> None:
    program = random_program(0)
    at_once = solve_hinge(program)
    wrong = solve_hinge(program, -at_once.u)
    assert wrong.certificate.objective == pytest.approx(at_once.certificate.objective, rel=1e-11)


def test_newton_ends_at_rounding_and_needs_no_lasso_from_near_by() -> None:
    program = random_program(0, n=40, D=16, H=16)
    optimum = by_cvxpy(program)
    cold = solve_hinge(program)
    assert cold.solves > 0 and cold.steps > 0 and cold.certificate.gap < 1e-12
    assert cold.certificate.objective == pytest.approx(optimum, rel=1e-7)
    # The program of other coefficients, from multipliers, shares and groups of this one.
    rng = np.random.default_rng(1)
    moved = HingeProgram(
        program.X * (1 + 1e-4 * rng.normal(size=program.X.shape)), program.linear, program.hinges
    )
    warm = solve_hinge(moved, cold.u, guess=(cold.multipliers, cold.shares))
    assert warm.solves == 0 and 0 < warm.steps < 10 and warm.certificate.gap < 1e-12
    assert warm.certificate.objective == pytest.approx(by_cvxpy(moved), rel=1e-7)
    # Blocks at norm 1 on live groups, margins of 1 on support samples: to rounding.
    norms = np.linalg.norm(warm.u, axis=1)
    live, support = norms > 0, warm.multipliers > 0
    blocks = moved.blocks(warm.multipliers, warm.shares)
    assert np.linalg.norm(blocks, axis=1).max() == pytest.approx(1.0, abs=1e-12)
    assert warm.u[live] / norms[live, None] == pytest.approx(blocks[live], abs=1e-11)
    assert moved.margins(warm.u)[support] == pytest.approx(1.0, abs=1e-11)


def test_newton_finds_the_active_set_behind_the_noise_of_an_interior_point() -> None:
    """All multipliers are positive there, and all shares between 0 and 1."""
    program = random_program(0, n=40, D=16, H=16)
    optimum, exact = by_cvxpy(program), solve_hinge(program)
    shares = exact.shares + 1e-5 * (0.5 - exact.shares)
    noisy = HingePoint(exact.u, exact.multipliers + 1e-5 * exact.multipliers.max(), shares)
    assert np.all((shares > 0) & (shares < 1)) and certify_hinge(program, *noisy).gap > 1e-5
    found = polished(program, noisy)
    assert found is not None and found.steps < 10 and found.certificate.gap < 1e-12
    assert found.certificate.objective == pytest.approx(optimum, rel=1e-7)


def test_the_best_point_on_the_way_is_that_of_the_least_norms_over_the_smallest_margin() -> None:
    program = random_program(2)
    exact, rng = solve_hinge(program), np.random.default_rng(0)
    ends = [exact.u + 0.3 * rng.normal(size=exact.u.shape) / 6 for _ in range(2)]

    def value(u: np.ndarray) -> float:
        smallest = program.margins(u).min()
        return float(np.linalg.norm(u, axis=1).sum() / smallest) if smallest > 0 else np.inf

    nowhere = Centre(0 * ends[0], 0 * program.linear, np.inf)
    begin = nowhere.towards(program, exact.u, program.X @ exact.u.T)
    assert begin.value == pytest.approx(exact.certificate.objective)
    first = nowhere.towards(program, ends[0], program.X @ ends[0].T)
    assert first.value < np.inf and first.value == pytest.approx(value(ends[0]))
    found = first.towards(program, ends[1], program.X @ ends[1].T)
    assert program.margins(found.u).min() == pytest.approx(1.0)
    assert found.products == pytest.approx(program.X @ found.u.T)
    ways = [value((1 - s) * first.u + s * ends[1]) for s in np.linspace(0, 1, 21)]
    assert found.value == pytest.approx(min(ways)) and min(ways) < min(ways[0], ways[-1])


@pytest.mark.parametrize("seed", some_of([0, 2, 3], one_in=3))
def test_a_guess_that_misleads_costs_time_and_nothing_else(seed) -> None:
    program, rng = random_program(seed), np.random.default_rng(seed)
    optimum = solve_hinge(program).certificate.objective
    other = solve_hinge(random_program(seed + 10))
    random = rng.random(len(program.X)), rng.random(program.linear.shape)
    for u, guess in (
        (other.u, (other.multipliers, other.shares)),
        (rng.normal(size=other.u.shape), random),
        (0 * other.u, (0 * random[0], random[1])),
    ):
        found = solve_hinge(program, u, guess=guess)
        assert found.status is Status.SOLVED and found.solves > 0
        assert found.certificate.objective == pytest.approx(optimum, rel=1e-9)


@pytest.mark.parametrize(
    ("guess", "message"),
    [
        ((np.ones(24), np.ones((25, 24))), r"`guess\[0\]` must have shape"),
        ((np.ones(25), np.ones((25, 23))), r"`guess\[1\]` must have shape"),
        ((np.full(25, np.nan), np.ones((25, 24))), "must be finite"),
    ],
)
def test_a_malformed_guess_is_refused(guess, message) -> None:
    with pytest.raises(ValueError, match=message):
        solve_hinge(random_program(0), guess=guess)


def test_any_multipliers_and_shares_bound_the_optimum_from_below() -> None:
    program = random_program(3)
    optimum = solve_hinge(program).certificate.dual_objective
    rng = np.random.default_rng(0)
    shape = program.linear.shape
    u = np.ones((program.n_groups, program.X.shape[1]))
    best = 0.0
    for _ in range(200):
        lam, shares = rng.random(shape[0]), rng.random(shape)
        bound = certify_hinge(program, u, lam, shares).dual_objective
        # By hand, in the letters of the proof.
        v = [
            sum(
                lam[n] * (program.linear[n, h] - shares[n, h] * program.hinges[n, h]) * program.X[n]
                for n in range(shape[0])
            )
            for h in range(shape[1])
        ]
        assert bound == pytest.approx(lam.sum() / np.linalg.norm(v, axis=1).max(), rel=1e-10)
        best = max(best, bound)
    assert 0 < best <= optimum


def test_points_that_prove_nothing_get_no_bound() -> None:
    program = random_program(0)
    n, H = program.linear.shape
    D = program.X.shape[1]
    found = certify_hinge(program, np.zeros((H, D)), np.zeros(n), np.zeros((n, H)))
    assert found.objective == np.inf and found.dual_objective == 0 and found.gap == np.inf
    nan = certify_hinge(program, np.full((H, D), np.nan), np.full(n, np.nan), np.zeros((n, H)))
    assert nan.gap == np.inf


def test_contradictory_samples_are_not_separable() -> None:
    X = np.array([[1.0, 0.0], [1.0, 0.0]])
    program = HingeProgram(X, np.array([[1.0, 0.0], [0.0, 1.0]]), 1 - np.eye(2))
    solution = solve_hinge(program)
    assert solution.status is Status.NOT_SEPARABLE
    assert solution.certificate.gap == np.inf


@pytest.mark.parametrize(
    ("linear", "hinges", "message"),
    [
        (np.ones((2, 3)), np.ones((3, 3)), "`hinges` must have shape"),
        (np.ones((3, 3)), np.ones((2, 3)), "`linear` must have shape"),
        (np.ones((2, 3)), -np.ones((2, 3)), "`hinges` must not be negative"),
        (np.full((2, 3), np.nan), np.ones((2, 3)), "`linear` has entries"),
    ],
)
def test_malformed_programs_are_refused(linear, hinges, message) -> None:
    with pytest.raises(ValueError, match=message):
        HingeProgram(np.ones((2, 4)), linear, hinges)
