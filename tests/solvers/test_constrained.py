"""Programs to which a user adds constraints in cvxpy, and what is proved of their optima."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import FrozenInstanceError, replace
from fractions import Fraction
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
import torch

from implicit_bias.programs import SVMGLN, HardMarginSVM
from solvers import MaxMarginProgram, certify, certify_constrained, to_cvxpy

RNG = np.random.default_rng(7)
N, D, H, C = 14, 4, 3, 2
X = RNG.normal(size=(N, D))
Y = np.sign(X @ [1.0, -2.0, 0.5, 1.0])
GLN = SVMGLN(C).program(X, Y, RNG.integers(0, C, size=(N, H)))
POINT = HardMarginSVM().program(np.array([[3.0, 4.0]]), np.array([1.0]))

Add = Callable[[cp.Variable], list[Any]]


def solved(program: MaxMarginProgram, add: Add, **options: Any) -> cp.Problem:
    plain = to_cvxpy(program)
    more = add(plain.var_dict["zeta"])
    problem = cp.Problem(plain.objective, plain.constraints + more)
    problem.solve(**({"solver": "CLARABEL"} | options))
    return problem


def test_the_problem_has_names_labels_and_margins_that_are_compiled_once() -> None:
    problem = to_cvxpy(GLN)
    assert problem.var_dict["zeta"].shape == (H * C, D)
    assert problem.is_dcp(dpp=True)
    margins = problem.param_dict["margins"]
    assert [c.label for c in problem.constraints] == ["margins"]
    assert np.all(margins.value == 1)
    once = problem.solve(solver="CLARABEL")
    margins.value = np.full(N, 3.0)
    assert problem.solve(solver="CLARABEL") == pytest.approx(3 * once, rel=1e-6)
    asked = np.exp(RNG.normal(size=N))
    margins.value = asked
    problem.solve(solver="CLARABEL")
    assert np.all(GLN.margins(problem.var_dict["zeta"].value) >= asked - 1e-6)
    found = certify_constrained(GLN, problem)
    assert found.dual_objective <= problem.value * (1 + 1e-9)
    assert found.proves_optimality(1e-6)


# Of min |z| with 3 a + 4 b >= 1 and one constraint more, by hand.
BY_HAND: dict[str, tuple[Add, float]] = {
    "nothing": (lambda z: [], 1 / 5),
    "what holds anyway": (lambda z: [z >= -1], 1 / 5),
    "a half-space": (lambda z: [z[0, 0] <= 0], 1 / 4),
    "a line": (lambda z: [z[0, 0] == z[0, 1]], math.sqrt(2) / 7),
    "a line, turned round": (lambda z: [2 * z[0, 1] == 2 * z[0, 0]], math.sqrt(2) / 7),
    "a point": (lambda z: [z == np.array([[1.0, 2.0]])], math.sqrt(5)),
    "a disc": (lambda z: [cp.norm(z - np.array([[0.0, 1.0]])) <= 0.5], 1 / 2),
    "a parabola": (lambda z: [cp.square(z[0, 0]) <= 0.01], math.hypot(0.1, 0.175)),
    "entries": (
        lambda z: [z[0, :] >= [0.0, 0.24]],
        math.hypot(0.04 / 3, 0.24),
    ),
    "two at once": (lambda z: [z[0, 0] >= 1, cp.sum(z) <= 1.5], 1.0),
}


@pytest.mark.parametrize("name", BY_HAND)
def test_bounds_enclose_the_optimum_that_is_known_by_hand(name) -> None:
    add, optimum = BY_HAND[name]
    found = certify_constrained(POINT, solved(POINT, add))
    assert found.dual_objective <= optimum * (1 + 1e-15)
    assert found.dual_objective == pytest.approx(optimum, rel=1e-6)
    assert found.objective == pytest.approx(optimum, rel=1e-6)
    assert found.objective >= optimum or found.violation > 0
    assert found.proves_optimality(1e-6, violation=1e-7)


ADDITIONS: dict[str, Add] = {
    "signs": lambda z: [z[:, 0] >= 0],
    "sums": lambda z: [cp.sum(z, axis=1) == 0],
    "a shared column": lambda z: [z[0, :] == z[1, :], z[2, :] <= z[3, :].T],
    "norms of units": lambda z: [cp.norm(z[0:2, :], "fro") <= 0.1, cp.norm(z[2, :]) <= 0.1],
    "entries": lambda z: [z <= 0.5, -0.5 <= z],
    "absolute values": lambda z: [cp.abs(z) <= 0.5],
    "eigenvalues": lambda z: [cp.lambda_max(z[:4, :] + z[:4, :].T) <= 1.0],
}


@pytest.mark.parametrize("name", ADDITIONS)
def test_two_solvers_agree_and_are_certified(name) -> None:
    ours = solved(GLN, ADDITIONS[name])
    theirs = solved(GLN, ADDITIONS[name], solver="SCS", eps=1e-9, max_iters=10**5)
    free = certify_constrained(GLN, solved(GLN, lambda z: []))
    found = certify_constrained(GLN, ours)
    assert found.proves_optimality(1e-6, violation=1e-6)
    assert found.dual_objective > 1.001 * free.objective  # the constraint matters
    assert found.dual_objective <= theirs.value * (1 + 1e-7)
    assert found.objective == pytest.approx(theirs.value, rel=1e-5)
    assert certify_constrained(GLN, theirs).gap <= 1e-4


@pytest.mark.parametrize("name", [*ADDITIONS, "kinks"])
def test_no_multipliers_prove_more_than_is_true(name) -> None:
    kinks: Add = lambda z: [cp.norm(z[2, :], 1) <= 0.2, cp.max(z) <= 0.4]  # noqa: E731
    problem = solved(GLN, ADDITIONS.get(name, kinks))
    optimum = certify_constrained(GLN, problem).objective
    rng = np.random.default_rng(3)
    duals = [c.dual_variables[0] for c in problem.constraints]
    kept = [np.asarray(dual.value) for dual in duals]
    bounds = []
    for scale in np.repeat([1e-3, 0.1, 1.0, 10.0], 15):
        for dual, value in zip(duals, kept, strict=True):
            noise = rng.normal(size=value.shape)
            dual.value = value + scale * np.abs(kept[0]).max() * noise
        bounds.append(certify_constrained(GLN, problem).dual_objective)
    assert max(bounds) <= optimum * (1 + 1e-6)
    assert max(bounds) > 0.9 * optimum  # small noise still proves something
    assert min(bounds) >= 0


def test_bounds_contain_the_rounding_of_sums_over_constraints() -> None:
    """Of one input, exact as fractions; the last multiplier leaves next to nothing of a sum."""
    exact = np.vectorize(Fraction, otypes=[object])
    rng = np.random.default_rng(11)
    x, y = np.abs(rng.normal(size=3)) + 0.1, np.array([1.0, 1.0, -1.0])
    program = HardMarginSVM().program(x[:, None], y)
    plain = to_cvxpy(program)
    zeta, zeta.value = plain.var_dict["zeta"], np.ones((1, 1))
    sides = [(cp.Parameter(2), cp.Parameter(2)) for _ in range(3)]
    more = [slope * zeta[0, 0] <= height for slope, height in sides]
    problem = cp.Problem(plain.objective, plain.constraints + more)
    for trial in range(30):
        a, h = rng.normal(size=(2, 3, 2))
        lam, mu = rng.random(3), rng.random((3, 2))
        if trial % 3 == 1:  # the bounds cancel
            mu[2, 0] += (lam.sum() - (mu * h).sum()) / h[2, 0] * (1 - 1e-14)
        if trial % 3 == 2:  # the blocks cancel
            a[2, 0] += ((lam * y * x).sum() - (mu * a).sum()) / mu[2, 0]
        for (slope, height), *values in zip(sides, a, h, strict=True):
            slope.value, height.value = values
        for constraint, dual in zip(problem.constraints, [lam, *mu], strict=True):
            constraint.dual_variables[0].value = dual
        mu = np.maximum(mu, 0)
        total = exact(lam).sum() - (exact(mu) * exact(h)).sum()
        block = (exact(lam) * exact(y) * exact(x)).sum() - (exact(mu) * exact(a)).sum()
        bound = Fraction(certify_constrained(program, problem).dual_objective)
        assert bound * abs(block) <= max(total, 0)
        assert trial % 3 or bound * abs(block) >= total * Fraction(1 - 1e-12)


def test_constraints_beside_the_margins_are_told_from_them() -> None:
    plain = to_cvxpy(POINT)
    margins, scores = plain.param_dict["margins"], plain.constraints[0].args[1]
    other = cp.Parameter(1, value=[0.5])
    for more in (other <= scores, margins == scores, np.full(1, 0.5) <= scores):
        problem = cp.Problem(plain.objective, [*plain.constraints, more])
        problem.solve(solver="CLARABEL")
        found = certify_constrained(POINT, problem)
        assert found.dual_objective == pytest.approx(1 / 5, rel=1e-6) and found.gap < 1e-6
    for size in (1e-6, 1e6):
        program = HardMarginSVM().program(size * X, Y)
        assert certify_constrained(program, solved(program, lambda z: [])).gap < 1e-5
    one = HardMarginSVM().program(np.array([[2.0]]), np.ones(1))
    kept = certify_constrained(one, solved(one, lambda z: [z[0, 0] <= 5, cp.sum(z) >= 0.1]))
    assert kept.objective == pytest.approx(0.5, rel=1e-6) and kept.proves_optimality(1e-6, 1e-6)


def test_points_are_lengthened_to_their_margins_alone() -> None:
    problem = solved(POINT, lambda z: [z[0, 0] >= 0.125, cp.sum(z) >= 0.375])
    zeta = problem.var_dict["zeta"]
    zeta.value = np.array([[0.25, 0.125]])  # margin 1.25: shorter it would violate the last
    found = certify_constrained(POINT, problem)
    assert found.violation == 0 and found.objective == pytest.approx(math.hypot(0.25, 0.125))
    zeta.value = np.array([[-0.125, 0.5]])  # margin 1.625
    assert certify_constrained(POINT, problem).violation == 0.25
    zeta.value = np.array([[-0.125, 0.0]])  # no margin at any length
    lost = certify_constrained(POINT, problem)
    assert lost.objective == lost.gap == math.inf and lost.violation == 0.5
    with pytest.raises(TypeError, match="`gap` must be a number"):
        replace(found, gap="0")
    with pytest.raises(FrozenInstanceError):
        found.gap = 0.0  # type: ignore[misc]
    for nothing in (cp.Problem, 3):
        with pytest.raises(TypeError, match=r"`problem` must be a cvxpy.Problem, got"):
            certify_constrained(POINT, nothing)  # type: ignore[arg-type]
    edge = solved(POINT, lambda z: [cp.sqrt(-z[0, 0]) >= 0])
    edge.var_dict["zeta"].value = np.array([[0.0, 0.25]])
    with pytest.raises(ValueError, match="cvxpy knows no slope"):
        certify_constrained(POINT, edge)


def test_without_constraints_it_is_the_certificate() -> None:
    problem = solved(GLN, lambda z: [])
    found = certify_constrained(GLN, problem)
    known = certify(GLN, problem.var_dict["zeta"].value, problem.constraints[0].dual_value)
    assert found.dual_objective == pytest.approx(known.dual_objective, rel=1e-12)
    assert found.objective == pytest.approx(known.objective, rel=1e-12) or known.smallest_margin > 1
    assert found.violation == 0


def test_a_point_that_misses_its_constraints_says_by_how_much() -> None:
    problem = solved(POINT, lambda z: [z[0, 0] <= 0])
    zeta = problem.var_dict["zeta"]
    zeta.value = np.array([[0.01, 0.22]])  # margin 0.91
    found = certify_constrained(POINT, problem)
    assert found.violation == pytest.approx(0.01 / 0.91)
    assert found.objective == pytest.approx(math.hypot(0.01, 0.22) / 0.91)
    assert found.dual_objective == pytest.approx(1 / 4, rel=1e-6)
    assert not found.proves_optimality(1e9)
    np.testing.assert_array_equal(zeta.value, [[0.01, 0.22]])


def test_a_program_of_tensors_is_certified_too() -> None:
    point = torch.tensor([[3.0, 4.0]]).double(), torch.tensor([1.0]).double()
    program = HardMarginSVM().program(*point)
    found = certify_constrained(program, solved(program, BY_HAND["a half-space"][0]))
    assert found.dual_objective == pytest.approx(1 / 4, rel=1e-6)


def unsolved() -> cp.Problem:
    return to_cvxpy(POINT)


def another_objective() -> cp.Problem:
    plain = to_cvxpy(POINT)
    problem = cp.Problem(cp.Minimize(cp.norm1(plain.var_dict["zeta"])), plain.constraints)
    problem.solve(solver="CLARABEL")
    return problem


def no_margins() -> cp.Problem:
    plain = to_cvxpy(POINT)
    problem = cp.Problem(plain.objective, [plain.var_dict["zeta"] >= 1])
    problem.solve(solver="CLARABEL")
    return problem


def infeasible() -> cp.Problem:
    return solved(POINT, lambda z: [z <= 0])


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (unsolved, "no solution to judge.*call its solve"),
        (infeasible, "no solution to judge"),
        (another_objective, "must minimise the norm of this program"),
        (no_margins, "under its margins"),
        (lambda: solved(POINT, lambda z: [z <= cp.Variable(name="s")]), "one variable 'zeta'"),
        (lambda: solved(GLN, lambda z: []), r"one variable 'zeta' \(1, 2\)"),
        (
            lambda: solved(
                HardMarginSVM().program(np.array([[3.0, 5.0]]), np.ones(1)), lambda z: []
            ),
            "under its margins",
        ),
        (
            lambda: solved(POINT, lambda z: [cp.SOC(z[0, 0], z[0, :])]),
            r"with <=, >= or ==, got \['SOC'\]",
        ),
    ],
)
def test_problems_of_which_nothing_is_proved_are_refused(make, match) -> None:
    with pytest.raises(ValueError, match=match):
        certify_constrained(POINT, make())
