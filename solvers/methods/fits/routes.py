"""Solvers of a fit: which one a regulariser has, and how coefficients that vanish are told."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...certificates.fits import LIVE, fit_bounds
from ...certificates.max_margin import gap_between
from ...norms.balls import Blocks
from ...norms.norm import Norm
from ...norms.regularisers import Ball, Barrier, Interpolation, Penalty, Regulariser, Ridge
from ...programs.fits import FitProgram
from ...programs.images import Floats
from ...programs.mean_losses import Exact, LogLoss, Squared
from ..interior.box import solve_box
from ..interior.group_rows import RowsPoint, RowsProgram, solve_rows
from .conjugate import ManySamples, solve_many
from .interpolation import solve_interpolation
from .newton import (
    blocks_of,
    solve_barrier,
    solve_cones,
    solve_groups,
    solve_l2_ball,
    solve_matrices,
    solve_ridge,
    solve_walls,
)
from .proximal import solve_proximal

# Samples for each coefficient from which one unknown a coefficient is less work, and coefficients
# up to which it is tried where the samples' method does not come through.
_TALL, _MOST_COEFFICIENTS = 2.0, 4000
# Samples from which systems of them cost more than conjugate gradients.
_MANY = 3000
# Proximal gradients before Newton's method is tried, and coefficients up to which it is. Its steps
# take longer with norms of matrices, which have so many gradients more a pair of coefficients.
_TRIED, _MOST_CONES, _PER_PAIR = 500, 500, 0.05


class FitPoint(NamedTuple):
    """Coefficients zeta, multipliers r, the solver's name, and its steps."""

    zeta: Floats
    r: Floats
    solver: str
    iterations: int


def solve_fit_program(
    problem: FitProgram,
    regulariser: Regulariser,
    *,
    tol: float,
    max_iterations: int | None = None,
    start: Floats | None = None,
) -> FitPoint:
    """Minimise a mean loss with a regulariser, by what its norm and the numbers ask for.

    Parameters
    ----------
    problem : FitProgram
        In units in which inputs and targets are of size 1.
    regulariser : Regulariser
    tol : float
        Relative gap that the caller is to certify.
    max_iterations : int, optional
        By default 100 steps of an interior point, 20,000 of proximal gradients.
    start : (n,) array, optional
        Multipliers of a program nearby.

    Returns
    -------
    FitPoint
    """
    at_zero = problem.multipliers(np.zeros(problem.shape))
    V = problem.adjoint(at_zero)
    dead = not np.any(V)
    if isinstance(regulariser, Penalty) and not isinstance(regulariser, Interpolation):
        dead = float(regulariser.norm.dual.above(V)) <= regulariser.lam
    if dead:
        return FitPoint(np.zeros(problem.shape), at_zero, "closed form", 0)

    def gap(zeta: Floats) -> float:
        return fit_bounds(problem, regulariser, zeta.reshape(problem.shape)).gap

    if not problem.several:
        flat = _by_newton(problem, regulariser, gap, tol / 30)
        if flat is not None:
            return _point(problem, flat[0], "Newton", flat[1])
        if isinstance(regulariser, Penalty) and problem.in_rows(regulariser.norm):
            found = _by_rows(problem, regulariser, tol, max_iterations or 100, start)
            if not isinstance(regulariser, Interpolation):
                return found
            proved = fit_bounds(problem, regulariser, found.zeta, found.r)
            if max(proved.gap, proved.misfit) <= tol:
                return found
    if isinstance(regulariser, Interpolation):
        return FitPoint(*solve_interpolation(problem, regulariser.norm, tol))
    most, tried = max_iterations or 20000, _TRIED
    if isinstance(regulariser, Penalty | Ball) and regulariser.norm.inside != "l2":
        tried = max(tried, int(_PER_PAIR * np.prod(problem.shape) ** 2))
    zeta, steps = solve_proximal(problem, regulariser, gap, tol / 10, min(most, tried))
    if gap(zeta) <= tol or most <= tried:
        return _point(problem, zeta, "proximal gradient", steps)
    # Gradients do not come through where inputs or scores are of very unequal sizes.
    other = _by_cones(problem, regulariser, gap, tol / 10)
    if other is None or gap(other[0]) > tol:
        zeta, steps = solve_proximal(problem, regulariser, gap, tol / 10, most)
    if other is not None and not gap(zeta) < gap(other[0]):
        return _point(problem, other[0], "Newton on the cones", other[1])
    return _point(problem, zeta, "proximal gradient", steps)


def _by_cones(
    problem: FitProgram, regulariser: Regulariser, gap: Callable[[Floats], float], tol: float
) -> tuple[Floats, int] | None:
    """Return coefficients of ridges, norms of blocks and of matrices, and the steps; else None."""
    if np.prod(problem.shape) > _MOST_CONES:
        return None
    found = _by_newton(problem, regulariser, gap, tol)
    if found is not None or not isinstance(regulariser, Penalty | Ball):
        return found
    norm, F, at_zero = regulariser.norm, problem.flat(), np.zeros(problem.shape)
    fall = F.value(at_zero.reshape(-1))
    if isinstance(regulariser, Ball) and not isinstance(F.loss, Squared):
        F = LogLoss(F.A, F.y, F.loss)
        fall = regulariser.conjugate(F.gradient(at_zero.reshape(-1)).reshape(problem.shape))
    if (norm.inside, norm.over) in (("spectral", "max"), ("nuclear", "sum")) or (
        norm.inside != "l2" and norm.blocks == "whole"
    ):
        blocks = Blocks.of(norm, problem.shape)
        return solve_matrices(F, regulariser, blocks, fall, gap, tol)
    block = blocks_of(norm, problem.shape)
    return None if block is None else solve_cones(F, regulariser, block, fall, gap, tol)


def _point(problem: FitProgram, w: Floats, solver: str, steps: int) -> FitPoint:
    zeta = w.reshape(problem.shape)
    return FitPoint(zeta, problem.multipliers(zeta), solver, steps)


def _by_newton(
    problem: FitProgram, regulariser: Regulariser, gap: Callable[[Floats], float], tol: float
) -> tuple[Floats, int] | None:
    """Return coefficients of smooth regularisers, box and l2 ball, and the steps; else None."""
    if isinstance(regulariser, Ridge):
        return solve_ridge(problem.flat(), regulariser.lam)
    if isinstance(regulariser, Barrier):
        return solve_barrier(problem.flat(), regulariser)
    if not isinstance(regulariser, Ball) or regulariser.norm not in (
        Norm.of("linf"),
        Norm.of("l2"),
    ):
        return None
    F, radius, in_box = problem.flat(), regulariser.radius, regulariser.norm == Norm.of("linf")
    found = (solve_box if in_box else solve_l2_ball)(F, radius)
    if gap(found[0]) <= tol or isinstance(F.loss, Squared):
        return found
    # Slopes of a tiny loss fall as fast as it does, those of its logarithm do not.
    small = LogLoss(F.A, F.y, F.loss)
    other = solve_walls(small, radius, gap, tol) if in_box else solve_l2_ball(small, radius)
    return min(found, other, key=lambda one: gap(one[0]))


def _by_rows(
    problem: FitProgram,
    regulariser: Penalty,
    tol: float,
    max_iterations: int,
    start: Floats | None,
) -> FitPoint:
    columns, group, inputs = problem.columns, problem.group, problem.X
    if regulariser.norm == Norm.of("l1"):  # every entry is a unit of a constant input
        columns = problem.matrix()
        group, inputs = np.arange(columns.shape[1]), np.ones((len(columns), 1))
    elif regulariser.norm == Norm.of("l2"):
        group = np.zeros_like(group)
    interpolating = isinstance(regulariser, Interpolation)
    n, m = len(problem.y), columns.shape[1] * inputs.shape[1]
    if not interpolating and n > _TALL * m:
        return _by_groups(problem, regulariser, group, tol)
    if not interpolating and inputs is problem.X and n >= _MANY:
        found = _by_many(problem, regulariser, group, tol, max_iterations, start)
        if fit_bounds(problem, regulariser, found.zeta, found.r).gap <= tol:
            return found
    loss = Exact(np.ones(n)) if interpolating else problem.loss
    program = RowsProgram(inputs @ inputs.T, columns, group, problem.y, loss, regulariser.lam)

    def read(at: RowsPoint) -> Floats:
        blocks = (columns * at.r[:, None]).T @ inputs
        return np.asarray(blocks * at.t[group][:, None]).reshape(problem.shape)

    def gap(at: RowsPoint) -> float:
        zeta = read(at)
        if not interpolating:
            return fit_bounds(problem, regulariser, zeta, at.r).gap
        # As they are: to move them onto the samples takes a factorisation.
        missing = float(np.linalg.norm(problem.scores(zeta) - problem.y))
        size = regulariser.value(zeta)
        bound = float(problem.y @ at.r) * regulariser.scale(problem.adjoint(at.r))
        return max(gap_between(size, bound, size), missing / float(np.linalg.norm(problem.y)))

    at, iterations = solve_rows(
        program, gap, tol=tol / 30, max_iterations=max_iterations, start=start
    )
    # Units whose dual norm stays clear of the penalty are 0, not small.
    slack = 1 - np.sqrt(np.maximum(program.products(at.r).T @ at.r, 0.0)) / regulariser.lam
    t, best = _pruned(at.t, slack, lambda t: gap(replace(at, t=t)), tol)
    if best > tol and not interpolating and m <= _MOST_COEFFICIENTS:
        other = _by_groups(problem, regulariser, group, tol)
        if fit_bounds(problem, regulariser, other.zeta, other.r).gap < best:
            return other
    return FitPoint(read(replace(at, t=t)), at.r, "interior point in the rows", iterations)


def _by_many(
    problem: FitProgram,
    regulariser: Penalty,
    group: NDArray[np.int64],
    tol: float,
    max_iterations: int,
    start: Floats | None,
) -> FitPoint:
    """Solve a group penalty of many samples without a system of all of them."""

    def gap(blocks: Floats) -> float:
        return fit_bounds(problem, regulariser, blocks.reshape(problem.shape)).gap

    if start is None:
        start = problem.multipliers(np.zeros(problem.shape))
    program = ManySamples(problem, group, regulariser.lam)
    blocks, steps = solve_many(program, start, gap, tol=tol / 3, max_iterations=max_iterations)
    V = problem.adjoint(problem.multipliers(blocks)).reshape(blocks.shape)
    slack = 1 - program.norms(V) / regulariser.lam
    pruned, _ = _pruned(blocks, slack[group, None], gap, tol)
    return _point(problem, pruned, "Newton by conjugate gradients", steps)


def _by_groups(
    problem: FitProgram, regulariser: Penalty, group: NDArray[np.int64], tol: float
) -> FitPoint:
    """Solve a group penalty with one unknown a coefficient."""
    F, lam = problem.flat(), regulariser.lam
    of_each = np.repeat(group, F.A.shape[1] // len(group))

    def gap(w: Floats) -> float:
        return fit_bounds(problem, regulariser, w.reshape(problem.shape)).gap

    w, steps = solve_groups(F, lam, of_each, gap, tol / 30)
    slack = 1 - np.sqrt(np.bincount(of_each, F.gradient(w) ** 2)) / lam
    return _point(problem, _pruned(w, slack[of_each], gap, tol)[0], "Newton on the groups", steps)


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
