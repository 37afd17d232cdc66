"""The interior point of programs of hinges: cvxpy's optimum, by itself and from near by."""

from __future__ import annotations

from dataclasses import replace
from pkgutil import resolve_name

import numpy as np
import pytest

from solvers import HingeProgram, Status, certify_hinge, solve_hinge
from tests.solvers.test_hinge_program import by_cvxpy, random_program

hinges = resolve_name("solvers.methods.hinges")
newton = resolve_name("solvers.methods.hinge_newton")
path = resolve_name("solvers.methods.interior.hinges")


def leaky(program: HingeProgram, slope: float) -> HingeProgram:
    """The same gates of a leaky ReLU: hinges have a linear part."""
    linear = np.where(program.hinges > 0, -slope, slope + (1 - slope) * program.linear)
    return HingeProgram(program.X, linear, (1 - slope) * program.hinges)


def started(seed: int, slope: float = 0.0) -> tuple[HingeProgram, np.ndarray]:
    """A program of many inputs, and groups of positive margins far from its solution."""
    program = leaky(random_program(seed, n=30, D=16, H=16), slope)
    rng = np.random.default_rng(seed)
    exact = solve_hinge(program)
    for size in (0.3, 0.1, 0.03, 0.01):
        u = exact.u + size * rng.normal(size=exact.u.shape)
        if program.margins(u).min() > 0:
            return program, u
    raise AssertionError("no start")


@pytest.fixture
def every_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hinges, "_LARGE", 1)


@pytest.mark.parametrize(("seed", "slope"), [(0, 0.0), (1, 0.0), (2, 0.2)])
def test_the_path_alone_comes_to_the_optimum_of_cvxpy(seed, slope) -> None:
    program, u = started(seed, slope)
    gaps = []

    def goes_on(point, done):
        certificate = certify_hinge(program, point.u, point.lam, point.shares)
        gaps.append(certificate.gap)
        pairs = program.hinges > 0
        # What each point keeps: multipliers that add up, hinges above their arguments.
        added = point.nu + point.mu - program.hinges * point.lam[:, None]
        if done:
            assert np.abs(added[pairs]).max() < 1e-9 * max(point.lam.max(), 1.0)
        products = program.X @ point.u.T
        assert (point.t - point.z)[pairs] == pytest.approx(products[pairs], abs=1e-9)
        assert min(point.t.min(), point.z.min(), point.lam.min(), point.s.min()) > 0
        assert np.all(np.linalg.norm(point.u, axis=1) < point.r)
        assert np.linalg.norm(point.v, axis=1).max() < 1
        return certificate.gap > 1e-6

    path.hinge_path(program, u, None, goes_on, limit=40)
    assert gaps[-1] < 1e-6 and 5 < len(gaps) < 30
    exact = solve_hinge(program).certificate.objective
    assert exact == pytest.approx(by_cvxpy(program), rel=1e-6)


@pytest.mark.parametrize("seed", [0, 3])
def test_the_path_and_newton_end_where_lassos_do(seed, every_size) -> None:
    program, u = started(seed)
    found = solve_hinge(program, u)
    assert found.status is Status.SOLVED and found.certificate.gap < 1e-10
    assert found.solves == 0 and found.iterations > 3 and found.steps > 0
    assert found.certificate.objective == pytest.approx(by_cvxpy(program), rel=1e-6)
    rough = solve_hinge(program, u, ends_at=1e-2)
    assert rough.steps == 0 and 1e-8 < rough.certificate.gap < 1e-2


def test_a_start_near_the_solution_is_further_on_the_path() -> None:
    program, u = started(1)
    near = solve_hinge(program, u)
    rng = np.random.default_rng(0)
    moved = HingeProgram(
        program.X * (1 + 0.02 * rng.normal(size=program.X.shape)), program.linear, program.hinges
    )
    optimum, gaps = by_cvxpy(moved), []

    def goes_on(point, done):
        certificate = certify_hinge(moved, point.u, point.lam, point.shares)
        assert certificate.dual_objective <= optimum * (1 + 1e-6)
        assert certificate.objective >= optimum * (1 - 1e-6)
        gaps[-1].append(certificate.gap)
        return certificate.gap > 1e-3

    for guess in ((near.multipliers, near.shares), None):
        gaps.append([])
        path.hinge_path(moved, near.u, guess, goes_on, limit=40)
    warm, cold = gaps
    assert 1 < len(warm) < len(cold) < 20 and warm[0] < cold[0]


def test_a_guess_without_multipliers_is_none(every_size) -> None:
    program, u = started(1)
    nothing = 0 * program.X[:, 0], 0 * program.linear
    found = solve_hinge(program, u, guess=nothing)
    assert found.status is Status.SOLVED and found.iterations > 3


def test_a_restart_is_inside_of_all_cones_and_near_the_guess() -> None:
    program, u = started(1)
    exact = solve_hinge(program)
    point = path._restart(program, exact.u, exact.multipliers, exact.shares)
    pairs = program.hinges > 0
    products = program.X @ point.u.T
    assert (point.t - point.z)[pairs] == pytest.approx(products[pairs], abs=1e-12)
    added = (point.nu + point.mu)[pairs]
    assert added == pytest.approx((program.hinges * point.lam[:, None])[pairs])
    assert min(point.t.min(), point.z.min(), point.nu.min(), point.mu.min()) > 0
    weights = point.lam[:, None] * program.linear - np.where(pairs, point.mu, 0.0)
    assert point.v == pytest.approx(weights.T @ program.X)
    assert np.linalg.norm(point.v, axis=1).max() == pytest.approx(1 - path._OFF)
    found = certify_hinge(program, point.u, point.lam, point.shares)
    assert found.gap < 1.0 < certify_hinge(program, u, np.ones(len(program.X)), 0 * products).gap
    # Products of pairs are those that the path has there, within what the shares are off.
    level = path._mean_product(program, point)
    of_pairs = (point.t * point.nu)[pairs] / (path._OF_PAIR * level)
    assert np.median(of_pairs) == pytest.approx(1.0, abs=0.9)


@pytest.mark.parametrize("seed", range(3))
def test_the_longest_step_in_second_order_cones_is_where_one_is_left(seed) -> None:
    rng = np.random.default_rng(seed)
    u, du = rng.normal(size=(2, 8, 3))
    r, dr = np.linalg.norm(u, axis=1) * 1.5, rng.normal(size=8)
    longest = path._longest_in_cones((r, u), (dr, du))

    def room(length: float) -> float:
        return float(np.min(r + length * dr - np.linalg.norm(u + length * du, axis=1)))

    assert 0 < longest < np.inf
    assert room(longest * (1 - 1e-6)) > 0 > room(longest * (1 + 1e-6))
    assert path._longest_in_cones((r, u), (2 * np.linalg.norm(du, axis=1), du)) == np.inf


@pytest.mark.parametrize("slope", [0.0, 0.2])
def test_a_whole_newton_step_satisfies_every_linear_condition(slope, monkeypatch) -> None:
    """Also from points that satisfy none, to products that are wanted to the first order."""
    monkeypatch.setattr(path, "_FLAT", 0.0)
    program, u = started(2, slope)
    rng = np.random.default_rng(0)
    pairs, begun = program.hinges > 0, path._start(program, u)
    shape = program.linear.shape
    at = replace(
        begun,
        s=begun.s * rng.uniform(0.5, 2, len(begun.s)),
        nu=np.where(pairs, begun.nu * rng.uniform(0.5, 2, shape), 1.0),
        mu=np.where(pairs, begun.mu * rng.uniform(0.5, 2, shape), 1.0),
        v=0.9 * begun.v,
    )
    system = path._System(program, program.X @ program.X.T, at)
    aimed = system._aimed(0.1)
    step = system.solve(aimed)
    new = system.moved(step, (1.0, 1.0))
    products = program.X @ new.u.T
    hinges = program.hinges * np.where(pairs, new.t, 0.0)
    margins = (program.linear * products - hinges).sum(axis=1)
    assert margins - new.s == pytest.approx(1.0, abs=1e-9)
    assert (new.t - new.z)[pairs] == pytest.approx(products[pairs], abs=1e-9)
    added = (new.nu + new.mu - program.hinges * new.lam[:, None])[pairs]
    assert np.abs(added).max() < 1e-9 * np.abs(new.lam).max()
    weights = new.lam[:, None] * program.linear - np.where(pairs, new.mu, 0.0)
    assert new.v == pytest.approx(weights.T @ program.X, abs=1e-8)
    # Products to the first order: theirs at the point, and what the step adds to each side.
    assert at.s * at.lam + at.s * step.lam + at.lam * step.s == pytest.approx(0.1, abs=1e-9)
    for value, multiplier in (("t", "nu"), ("z", "mu")):
        x, y = getattr(at, value), getattr(at, multiplier)
        first = x * y + x * getattr(step, multiplier) + y * getattr(step, value)
        assert first[pairs] == pytest.approx(0.1 * path._OF_PAIR, abs=1e-9)
    # The scaling takes multipliers of the cones to their points.
    ones, zero = np.ones_like(at.r), np.zeros_like(at.r)
    scaled = system._scaled(*system._scaled(ones, -at.v, 1), 1)
    assert scaled[0] == pytest.approx(at.r) and scaled[1] == pytest.approx(at.u)
    moved = system._scaled(*system._scaled(zero, step.v, 1), 1)
    assert step.u - moved[1] == pytest.approx(aimed.u - at.u, abs=1e-8)
    assert step.r - moved[0] == pytest.approx(aimed.r - at.r, abs=1e-8)


def test_second_order_terms_are_what_the_affine_step_leaves_of_the_products() -> None:
    program, u = started(1)
    system = path._System(program, program.X @ program.X.T, path._restart(
        program, u, np.ones(len(program.X)), np.full(program.linear.shape, 0.5)
    ))  # fmt: skip
    affine = system.solve(system.predicting())
    assert min(system.longest(affine)) > path._BLOCKED
    aimed, target = system._aimed(0.3), system.correcting(affine, 0.3)
    pairs = program.hinges > 0
    for name, value, multiplier in (
        ("margins", affine.s, affine.lam),
        ("of_t", affine.t, affine.nu),
        ("of_z", affine.z, affine.mu),
    ):
        less = (getattr(aimed, name) - getattr(target, name)).ravel()
        chosen = slice(None) if name == "margins" else pairs.ravel()
        assert less[chosen] == pytest.approx((value * multiplier).ravel()[chosen])
    # In the cones: the Jordan product of the scaled halves of the step, over the scaled point.
    none = np.zeros_like(affine.r)
    x = system._scaled(affine.r, affine.u, -1)
    y = system._scaled(none, -affine.v, 1)
    at = system._scaled(none + 1, -system.point.v, 1)
    less = system._scaled(aimed.r - target.r, aimed.u - target.u, -1)

    def jordan(p, q):
        both = p[0] * q[0] + (p[1] * q[1]).sum(axis=1)
        return both, p[0][:, None] * q[1] + q[0][:, None] * p[1]

    for own, other in zip(jordan(at, less), jordan(x, y), strict=True):
        assert own == pytest.approx(other, abs=1e-9)


def test_a_cone_that_only_shrinks_is_left_at_its_room() -> None:
    u = np.array([[3.0, 4.0], [0.0, 1.0]])
    longest = path._longest_in_cones((np.array([6.0, 8.0]), u), (np.array([-2.0, -1.0]), 0 * u))
    assert longest == pytest.approx(0.5)


def test_a_run_keeps_the_best_of_each_side() -> None:
    program, u = started(0)
    exact = solve_hinge(program)
    run = newton.HingeRun(program, 1e-12, np.inf)
    far = 0.5 + 0 * exact.shares
    assert run.take(newton.HingePoint(exact.u, exact.multipliers[::-1], far))
    best = exact.certificate.objective
    assert not run.take(newton.HingePoint(u, 0 * exact.multipliers, far))
    assert run.take(newton.HingePoint(u, exact.multipliers, exact.shares))
    assert run.found.u is exact.u and run.found.lam is exact.multipliers
    assert run.gap < 1e-10 and run.found.shares is exact.shares
    assert not run.take(newton.HingePoint(u, exact.multipliers[::-1], far))
    assert run.found.lam is exact.multipliers and best == exact.certificate.objective


def test_a_path_that_no_longer_closes_in_is_left_to_lassos(every_size, monkeypatch) -> None:
    program, u = started(0)
    stuck = replace(path._start(program, u))
    seen = []

    def standing(program, u, guess, goes_on, *, limit):
        while goes_on(stuck, len(seen)):
            seen.append(1)
            assert len(seen) < 20

    monkeypatch.setattr(hinges, "hinge_path", standing)
    found = solve_hinge(program, u)
    assert found.solves > 0 and found.status is Status.SOLVED
    assert found.certificate.objective == pytest.approx(by_cvxpy(program), rel=1e-6)
