"""Solvers of a fit: which one a regulariser has, and how coefficients that vanish are told."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from .._solve import Norm
from ..data.arrays import Floats
from .certificate import LIVE, certificate_of, ratio
from .descent import solve_proximal
from .losses import Exact
from .newton import solve_barrier, solve_box, solve_groups, solve_l2_ball, solve_ridge
from .problem import FitProblem
from .regularisers import Ball, Barrier, Interpolation, Penalty, Regulariser, Ridge
from .rows import RowsProgram, solve_rows

__all__ = ["minimised"]

# Samples for each coefficient from which one unknown a coefficient is less work, and coefficients
# up to which it is tried where the samples' method does not come through.
_TALL, _MOST_COEFFICIENTS = 2.0, 4000


def minimised(
    problem: FitProblem,
    regulariser: Regulariser,
    tol: float,
    max_iterations: int | None,
    start: Floats | None,
) -> tuple[Floats, Floats, str, int]:
    """Return coefficients, multipliers, the solver's name and its steps."""
    zero = np.zeros(problem.shape)
    at_zero = problem.loss.multipliers(np.zeros_like(problem.y), problem.y)
    V = problem.adjoint(at_zero)
    dead = not np.any(V)
    if isinstance(regulariser, Penalty) and not isinstance(regulariser, Interpolation):
        dead = float(regulariser.norm.dual.above(V)) <= regulariser.lam
    if dead:
        return zero, at_zero, "closed form", 0
    if not problem.several:
        flat = _by_newton(problem, regulariser)
        if flat is not None:
            zeta = flat[0].reshape(problem.shape)
            return zeta, problem.multipliers(zeta), "Newton", flat[1]
        if isinstance(regulariser, Penalty) and problem.in_rows(regulariser.norm):
            return _by_rows(problem, regulariser, tol, max_iterations or 100, start)

    def gap(zeta: Floats) -> float:
        return certificate_of(problem, regulariser, zeta, problem.multipliers(zeta)).gap

    found = solve_proximal(
        problem, regulariser, gap, tol=tol / 10, max_iterations=max_iterations or 20000
    )
    return found.zeta, problem.multipliers(found.zeta), "proximal gradient", found.iterations


def _by_newton(problem: FitProblem, regulariser: Regulariser) -> tuple[Floats, int] | None:
    """Return coefficients of smooth regularisers, box and l2 ball, and the steps; else None."""
    y, loss = problem.y, problem.loss
    if isinstance(regulariser, Ridge):
        return solve_ridge(problem.matrix(), y, loss, regulariser.lam)
    if isinstance(regulariser, Barrier):
        return solve_barrier(problem.matrix(), y, loss, regulariser.lam, regulariser.eps)
    if isinstance(regulariser, Ball) and regulariser.norm == Norm.of("linf"):
        return solve_box(problem.matrix(), y, loss, regulariser.radius)
    if isinstance(regulariser, Ball) and regulariser.norm == Norm.of("l2"):
        return solve_l2_ball(problem.matrix(), y, loss, regulariser.radius)
    return None


def _by_rows(
    problem: FitProblem,
    regulariser: Penalty,
    tol: float,
    max_iterations: int,
    start: Floats | None,
) -> tuple[Floats, Floats, str, int]:
    columns, group, inputs = problem.columns, problem.group, problem.X
    if regulariser.norm == Norm.of("l1"):  # every entry is a unit of a constant input
        columns = problem.matrix()
        group, inputs = np.arange(columns.shape[1]), np.ones((len(columns), 1))
    elif regulariser.norm == Norm.of("l2"):
        group = np.zeros_like(group)
    interpolating = isinstance(regulariser, Interpolation)
    loss = Exact(np.ones(len(problem.y))) if interpolating else problem.loss
    program = RowsProgram(inputs @ inputs.T, columns, group, problem.y, loss, regulariser.lam)

    def read(r: Floats, t: Floats) -> Floats:
        blocks = (columns * r[:, None]).T @ inputs
        return np.asarray(blocks * t[group][:, None]).reshape(problem.shape)

    def gap(r: Floats, t: Floats) -> float:
        if not interpolating:
            return certificate_of(problem, regulariser, read(r, t), r).gap
        zeta = read(r, t)  # as they are: to move them onto the samples takes a factorisation
        missing = float(np.linalg.norm(problem.scores(zeta) - problem.y))
        size = regulariser.value(zeta)
        bound = float(problem.y @ r) * regulariser.scale(problem.adjoint(r))
        return max(ratio(size - bound, size), missing / float(np.linalg.norm(problem.y)))

    by_groups = partial(_by_groups, problem, regulariser, group, tol)
    n, m = len(problem.y), columns.shape[1] * inputs.shape[1]
    if not interpolating and n > _TALL * m:
        return by_groups()
    found = solve_rows(program, gap, tol=tol / 30, max_iterations=max_iterations, start=start)
    r, t = found.r, found.t
    # Units whose dual norm stays clear of the penalty are 0, not small.
    slack = 1 - np.sqrt(np.maximum(program.products(r).T @ r, 0.0)) / regulariser.lam
    t, best = _pruned(t, slack, partial(gap, r), tol)
    if best > tol and not interpolating and m <= _MOST_COEFFICIENTS:
        other = by_groups()
        if certificate_of(problem, regulariser, *other[:2]).gap < best:
            return other
    return read(r, t), r, "interior point in the rows", found.iterations


def _by_groups(
    problem: FitProblem, regulariser: Penalty, group: NDArray[np.int64], tol: float
) -> tuple[Floats, Floats, str, int]:
    """Solve a group penalty with one unknown a coefficient."""
    A = problem.matrix()
    of_each = np.repeat(group, A.shape[1] // len(group))

    def gap(w: Floats) -> float:
        zeta = w.reshape(problem.shape)
        return certificate_of(problem, regulariser, zeta, problem.multipliers(zeta)).gap

    w, steps = solve_groups(A, problem.y, problem.loss, regulariser.lam, of_each, gap, tol / 30)
    V = (A.T @ problem.multipliers(w.reshape(problem.shape))) ** 2
    slack = 1 - np.sqrt(np.bincount(of_each, V)) / regulariser.lam
    w, _ = _pruned(w, slack[of_each], gap, tol)
    zeta = w.reshape(problem.shape)
    return zeta, problem.multipliers(zeta), "Newton on the groups", steps


def _pruned(
    values: Floats, slack: Floats, gap: Callable[[Floats], float], tol: float
) -> tuple[Floats, float]:
    """Return values with those of clear slack at 0, as far as the gap allows, and their gap."""
    best = gap(values)
    for share in (1e-3, 1e-5, LIVE):
        trial = np.where(slack > share, 0.0, values)
        found = gap(trial)
        if found <= max(best * (1 + 1e-3), tol / 30):
            values, best = trial, found
    return values, best
