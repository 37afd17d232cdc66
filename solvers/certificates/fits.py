"""Certificates of fits: bounds of the optimum, status and uniqueness, in plain arithmetic."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ..norms.norm import Norm
from ..norms.regularisers import Ball, Barrier, Interpolation, Penalty, Regulariser, Ridge
from ..programs.fits import FitProgram
from ..programs.images import Floats
from ..programs.mean_losses import LEAST, Squared
from .max_margin import CROSSED, gap_between
from .status import Status

_FELT = 1e-6  # share of the scale that a ball's constraint must cost to first order
LIVE = 1e-6  # slack of a dual norm below which a unit counts as live


class FitBounds(NamedTuple):
    """Bounds of the optimum of a fit, their relative gap, and the misfit of interpolation."""

    objective: float
    dual_objective: float
    gap: float
    misfit: float


def fit_bounds(
    problem: FitProgram, regulariser: Regulariser, zeta: Floats, r: Floats | None = None
) -> FitBounds:
    """Return the bounds that coefficients and multipliers give; no solver is asked.

    Parameters
    ----------
    problem : FitProgram
    regulariser : Regulariser
    zeta : array
        Coefficients in the shape of the problem's.
    r : array like `y`, optional
        Multipliers; by default those of the loss at the coefficients.

    Returns
    -------
    FitBounds
    """
    r = problem.multipliers(zeta) if r is None else r
    V, y = problem.adjoint(r), problem.y
    if isinstance(regulariser, Interpolation):
        (A, sizes), missing = problem.unit_rows(), y - problem.scores(zeta)
        change = np.asarray(np.linalg.lstsq(A, (missing.T / sizes).T)[0], np.float64)
        moved = zeta + problem.shaped(change)
        objective = regulariser.value(moved)
        left = float(np.linalg.norm(y - problem.scores(moved)))
        misfit = left / (float(np.linalg.norm(y)) or 1.0)
        bound = float(np.sum(y * r)) * regulariser.scale(V)
        # Of coefficients that do not interpolate the norm is no bound.
        gap = gap_between(objective, bound, objective) if misfit <= CROSSED else math.inf
        return FitBounds(objective, bound, gap, misfit)
    B = regulariser.pulled(zeta)
    objective = problem.loss.value(problem.scores(B), y) + regulariser.value(B)
    factor = regulariser.scale(V)
    # A factor up to 1 keeps the multipliers in the domain of the loss.
    bound = problem.loss.dual(factor * r, y) - regulariser.conjugate(factor * V)
    gap = gap_between(objective, bound, _scale(problem, regulariser, objective))
    if isinstance(regulariser, Ball) and not isinstance(problem.loss, Squared):
        # It is above 0, and of the smallest numbers no digits are known.
        gap = gap if objective > LEAST else math.inf
    return FitBounds(objective, bound, gap, 0.0)


def _scale(problem: FitProgram, regulariser: Regulariser, objective: float) -> float:
    """Return what differences of values are divided by: the value itself.

    In a ball the least squared loss may be 0: half the mean square of the targets there.
    """
    attains_zero = isinstance(regulariser, Ball) and isinstance(problem.loss, Squared)
    return problem.loss_at_zero if attains_zero else objective


def ball_binds(problem: FitProgram, regulariser: Regulariser, V: Floats, objective: float) -> bool:
    """Return whether the constraint of a ball is felt: the loss falls as the ball grows.

    Parameters
    ----------
    problem, regulariser
        As `fit_bounds` takes them.
    V : array
        What the adjoint makes of the multipliers.
    objective : float
        Value of the coefficients.

    Returns
    -------
    bool
    """
    if not isinstance(regulariser, Ball):
        return False
    # A loss too small for a number other than 0 still falls.
    return bool(regulariser.conjugate(V) >= _FELT * _scale(problem, regulariser, objective))


def fit_status(
    problem: FitProgram,
    regulariser: Regulariser,
    proved: FitBounds,
    proof: Floats | None,
    tol: float,
) -> Status:
    """Return what bounds, and multipliers that may prove that nothing interpolates, say.

    Parameters
    ----------
    problem, regulariser
        As `fit_bounds` takes them.
    proved : FitBounds
    proof : array like `y` or None
    tol : float
        Of gap and misfit.

    Returns
    -------
    Status
    """
    if proof is not None and isinstance(regulariser, Interpolation) and _proves(problem, proof):
        return Status.NOT_INTERPOLABLE
    return Status.SOLVED if proved.gap <= tol and proved.misfit <= tol else Status.INACCURATE


def unreachable(problem: FitProgram) -> Floats | None:
    """Return multipliers that prove that nothing interpolates; None where none are found.

    They are the part of the targets outside the range of the scores, of samples of size 1.

    Parameters
    ----------
    problem : FitProgram

    Returns
    -------
    array like `y`, or None
    """
    A, sizes = problem.unit_rows()
    left = (problem.y.T / sizes).T
    for _ in range(2):  # once more for what rounding of the targets leaves of a small part
        left = left - A @ np.linalg.lstsq(A, left)[0]
    nu = np.asarray((left.T / sizes).T)
    return nu if _proves(problem, nu) else None


def _proves(problem: FitProgram, nu: Floats) -> bool:
    """Return whether nu rules interpolants out, but for those of sizes that rounding hides."""
    terms = np.abs(problem.matrix()).T @ np.abs(nu)
    gain, size = float(np.sum(problem.y * nu)), float(np.sum(np.abs(problem.y * nu)))
    return bool(np.abs(problem.adjoint(nu)).max() <= 1e-10 * terms.max() and gain > 1e-11 * size)


def is_unique(problem: FitProgram, regulariser: Regulariser, V: Floats) -> bool:
    """Return whether coefficients are those of the scores alone.

    Parameters
    ----------
    problem, regulariser
        As `fit_bounds` takes them.
    V : array
        What the adjoint makes of the multipliers.

    Returns
    -------
    bool
    """
    if isinstance(regulariser, Ridge | Barrier):
        return True
    if isinstance(regulariser, Interpolation) or problem.several:
        return False
    if not isinstance(regulariser, Penalty):
        A = problem.matrix()
        return bool(np.linalg.matrix_rank(A) == A.shape[1])
    if not problem.in_rows(regulariser.norm):
        return False
    if regulariser.norm == Norm.of("l2"):
        return True
    # Coefficients are t_h V_h with t >= 0, and V is known: unique if the scores of the V_h are
    # independent, over all units whose dual norm is as large as the penalty.
    blocks = V.reshape(len(problem.group), -1)
    each = problem.columns * (problem.X @ blocks.T)
    if regulariser.norm == Norm.of("l1"):
        each, sizes = problem.matrix() * V.reshape(-1), np.abs(V).reshape(-1)
    else:
        starts = np.flatnonzero(np.diff(problem.group, prepend=-1))
        each, sizes = np.add.reduceat(each, starts, axis=1), problem.unit_norms(V)
    full = each[:, sizes >= (1 - LIVE) * regulariser.lam]
    return bool(np.linalg.matrix_rank(full, tol=None) == full.shape[1])
