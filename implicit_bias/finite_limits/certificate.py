"""Certificates of fits: bounds of the optimum, status and uniqueness, in plain arithmetic."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from .._doors import result
from .._solve import Norm, Status
from ..data.arrays import Floats
from .problem import FitProblem
from .regularisers import Ball, Barrier, Interpolation, Penalty, Regulariser, Ridge

__all__ = [
    "LIVE",
    "FitLimitCertificate",
    "certificate_of",
    "is_unique",
    "ratio",
    "status_of",
    "unreachable",
]

LIVE = 1e-6  # slack of a dual norm below which a unit counts as live


@result()
@dataclass(frozen=True)
class FitLimitCertificate:
    """Bounds of the optimum, recomputed from coefficients and multipliers in plain arithmetic.

    Attributes
    ----------
    objective : float
        Mean loss and regulariser of the coefficients; their norm, for interpolation.
    dual_objective : float
        Lower bound of what any coefficients have.
    gap : float
        ``(objective - dual_objective) / objective``; for balls, where the optimum may be 0, over
        the loss of coefficients 0. 0 for 0 / 0.
    misfit : float
        ``||scores - y|| / ||y||`` of interpolation; 0 for the others.
    """

    objective: float
    dual_objective: float
    gap: float
    misfit: float


def certificate_of(
    problem: FitProblem, regulariser: Regulariser, zeta: Floats, r: Floats
) -> FitLimitCertificate:
    """Return the bounds that coefficients and multipliers give; no solver is asked."""
    V = problem.adjoint(r)
    y = problem.y
    if isinstance(regulariser, Interpolation):
        f = problem.scores(zeta)
        missing = y - f
        A = problem.matrix() if not problem.several else None
        moved = zeta
        if A is not None:
            moved = zeta + np.linalg.lstsq(A, missing, rcond=None)[0].reshape(problem.shape)
        objective = regulariser.value(moved)
        left = float(np.linalg.norm(y - problem.scores(moved)))
        misfit = left / (float(np.linalg.norm(y)) or 1.0)
        bound = float(np.sum(y * r)) * regulariser.scale(V)
        return FitLimitCertificate(objective, bound, ratio(objective - bound, objective), misfit)
    B = regulariser.pulled(zeta)
    objective = problem.loss.value(problem.scores(B), y) + regulariser.value(B)
    factor = regulariser.scale(V)
    # A factor up to 1 keeps the multipliers in the domain of the loss.
    bound = problem.loss.dual(factor * r, y) - regulariser.conjugate(factor * V)
    scale = objective
    if isinstance(regulariser, Ball):
        scale = problem.loss.value(np.zeros_like(y), y)
    return FitLimitCertificate(objective, bound, ratio(objective - bound, scale), 0.0)


def ratio(difference: float, scale: float) -> float:
    if not math.isfinite(difference):
        return math.inf
    if scale <= 0:
        return 0.0 if difference <= 0 else math.inf
    return max(difference, 0.0) / scale


def status_of(
    problem: FitProblem,
    regulariser: Regulariser,
    proved: FitLimitCertificate,
    proof: Floats | None,
    tol: float,
) -> Status:
    if proof is not None and isinstance(regulariser, Interpolation):
        reached = problem.adjoint(proof)
        sizes = float(np.abs(problem.X).max() * np.abs(problem.columns).max() * np.abs(proof).sum())
        gain = float(np.sum(problem.y * proof))
        if np.abs(reached).max() <= 1e-10 * sizes and gain > 0:
            return Status.NOT_INTERPOLABLE
    return Status.SOLVED if proved.gap <= tol and proved.misfit <= tol else Status.INACCURATE


def unreachable(problem: FitProblem) -> Floats | None:
    """Return the part of the targets outside the range of the scores; None where it is rounding."""
    if problem.several:
        return None
    A = problem.matrix()
    left = problem.y - A @ np.linalg.lstsq(A, problem.y, rcond=None)[0]
    large = float(np.linalg.norm(left)) > 1e-8 * float(np.linalg.norm(problem.y))
    return np.asarray(left) if large else None


def is_unique(problem: FitProblem, regulariser: Regulariser, zeta: Floats, V: Floats) -> bool:
    """Return whether coefficients are those of the scores alone."""
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
