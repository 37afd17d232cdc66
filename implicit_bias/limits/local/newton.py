"""Newton's method on the KKT conditions, with corrections of the active set."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from scipy.optimize import nnls
from torch import Tensor

from .problem import MarginProblem
from .reduced import ActiveGradients, ReducedHessian

# Steps with one active set, and sets tried; quadratic convergence takes 4 to 7 steps.
_STEPS, _SETS = 20, 8
# Halvings of a step before the iteration counts as stuck.
_HALVINGS = 6
# Margins below one by more than this are violated; multipliers below this share of the largest
# count as zero. Both far above the rounding at a residual of 1e-12.
_VIOLATED, _NO_MULTIPLIER = 1e-9, 1e-10
# Below this no step can be seen to improve: norms of P terms have rounding of this size.
_ROUNDING = 1e-14


@dataclass(frozen=True, eq=False)
class Point:
    """A point near a KKT point: weights (P,), multipliers (n,), active samples (n,) boolean."""

    w: Tensor
    lam: Tensor
    active: Tensor

    @property
    def index(self) -> Tensor:
        """(a,) numbers of the active samples."""
        return self.active.nonzero()[:, 0]

    def gradients(self, problem: MarginProblem) -> Tensor:
        """(a, P) gradients of the active margins."""
        return problem.gradients(self.w, self.index)

    def residual(self, problem: MarginProblem) -> float:
        """Return the KKT residual: the larger error of stationarity and of active margins."""
        return _conditions(problem, self).residual


@dataclass(frozen=True, eq=False)
class _Conditions:
    # Stationarity (P,), excess of active margins (a,), active gradients (a, P) at a point.
    stationarity: Tensor
    excess: Tensor
    rows: Tensor
    size: float

    @property
    def merit(self) -> float:
        """Sum of the relative stationarity error and the norm of the margins' errors."""
        return float(self.stationarity.norm() / self.size + self.excess.norm())

    @property
    def residual(self) -> float:
        """Larger of the relative stationarity error and the largest margin's error."""
        largest = float(self.excess.abs().max()) if len(self.excess) else 0.0
        return max(float(self.stationarity.norm()) / self.size, largest)


def polish(problem: MarginProblem, start: Point, tol: float) -> Point | None:
    """Refine a point to a KKT point of residual `tol`; None where Newton's method fails.

    Multipliers that come out negative leave the active set, violated samples enter it.
    """
    point = _refit(problem, start)
    for _ in range(_SETS):
        solved = _solve_active(problem, point, tol)
        if solved is None:
            return None
        point = _corrected(problem, solved)
        if bool((point.active == solved.active).all()):
            return solved
    return None


def _solve_active(problem: MarginProblem, point: Point, tol: float) -> Point | None:
    # Equality constraints on the active set alone.
    now = _conditions(problem, point)
    for _ in range(_STEPS):
        if now.residual <= min(tol, _ROUNDING):
            break
        moved = _step(problem, point, now)
        if moved is None:
            break
        point = moved
        now = _conditions(problem, point)
    if not now.residual <= tol:
        return None
    return _nonnegative(problem, point, tol)


def _step(problem: MarginProblem, point: Point, now: _Conditions) -> Point | None:
    r"""One damped step: range and null space of the active gradients apart.

    .. math:: A\,dw = 1 - m, \qquad H\,dw - A'\,d\lambda = A'\lambda - w

    dw is the shortest that restores the margins, plus z in the null space with
    :math:`Q H Q z = -Q (r + H\,dw)`, r the stationarity.
    """
    active = ActiveGradients.of(now.rows)
    hessian = problem.hessian(point.w, point.lam)
    restore = active.restoring(-now.excess)
    inside = active.project(now.stationarity + hessian @ restore)
    dw = restore - ReducedHessian.of(hessian, active).solve(inside)
    dlam = torch.zeros_like(point.lam)
    dlam[point.active] = active.multipliers(now.stationarity + hessian @ dw)
    for halving in range(_HALVINGS):
        step = 0.5**halving
        moved = replace(point, w=point.w + step * dw, lam=point.lam + step * dlam)
        if _conditions(problem, moved).merit < now.merit:
            return moved
    return None


def _conditions(problem: MarginProblem, point: Point) -> _Conditions:
    rows = point.gradients(problem)
    return _Conditions(
        stationarity=point.w - rows.T @ point.lam[point.index],
        excess=problem.margins(point.w)[point.index] - 1,
        rows=rows,
        size=float(point.w.norm()),
    )


def _refit(problem: MarginProblem, point: Point) -> Point:
    # Multipliers of the active samples alone, by least squares.
    lam = torch.zeros_like(point.lam)
    lam[point.index] = ActiveGradients.of(point.gradients(problem)).multipliers(point.w)
    return replace(point, lam=lam)


def _corrected(problem: MarginProblem, point: Point) -> Point:
    # Without samples of negative multipliers, with violated ones; as it is if it is right.
    lam, largest = point.lam, float(point.lam.max())
    kept = point.active & (lam > _NO_MULTIPLIER * largest)
    violated = problem.margins(point.w) < 1 - _VIOLATED
    active = kept | violated
    return replace(point, lam=torch.where(active, lam.clamp(min=0), 0.0), active=active)


def _nonnegative(problem: MarginProblem, point: Point, tol: float) -> Point:
    # Of dependent gradients the shortest multipliers may be negative where others are not.
    if not bool((point.lam < 0).any()):
        return point
    rows = point.gradients(problem)
    if not ActiveGradients.of(rows).dependent:
        return point
    try:
        fit, distance = nnls(rows.T.numpy(), point.w.numpy())
    except RuntimeError:  # it went round in circles
        return point
    if not (math.isfinite(distance) and distance <= tol * float(point.w.norm())):
        return point
    lam = torch.zeros_like(point.lam)
    lam[point.index] = torch.from_numpy(fit)
    return replace(point, lam=lam, active=lam > 0)
