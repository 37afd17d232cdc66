"""Group penalties in the rows: a primal-dual interior point with one unknown a sample."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...numerics.central_path import Lengths, PairSystem, Patience, follow
from ...numerics.factor import Factor
from ...programs.images import Floats
from ...programs.mean_losses import Exact, MeanLoss

# Of the way from multipliers of another program to the middle; a ridge for dependent rows.
_OFF, _RIDGE = 1e-9, 1e-14
# Steps within which the gap is to shrink by a tenth, and fewer once it is small.
_PATIENCE, _NEAR, _SMALL = 40, 12, 1e-6


@dataclass(frozen=True, eq=False)
class RowsProgram:
    """``max -F*(-r)  s.t.  ||V_h(r)|| <= lam``.

    Attributes
    ----------
    gram : (n, n) array
        ``X X'``.
    columns : (n, J), group : (J,)
        Columns of gates, and their units.
    y : (n,) array
    loss : MeanLoss
    lam : float
    """

    gram: Floats
    columns: Floats
    group: NDArray[np.int64]
    y: Floats
    loss: MeanLoss
    lam: float

    def products(self, r: Floats) -> Floats:
        """Return ``K_h r`` in columns, (n, H): the scores of ``zeta_h = V_h(r)``."""
        each = self.columns * (self.gram @ (self.columns * r[:, None]))
        if len(self.group) == self.group[-1] + 1:
            return each
        starts = np.flatnonzero(np.diff(self.group, prepend=-1))
        return np.asarray(np.add.reduceat(each, starts, axis=1))

    def weighted(self, t: Floats, added: Floats) -> Floats:
        """Return ``sum_h t_h K_h``, (n, n), with `added` (n,) on its diagonal."""
        matrix = (self.columns * t[self.group]) @ self.columns.T
        matrix *= self.gram
        matrix.flat[:: len(matrix) + 1] += added
        return np.asarray(matrix)

    def inside(self, r: Floats, share: float) -> Floats:
        """Return multipliers r that are scaled into this share of the dual balls."""
        largest = np.sqrt(np.max(self.products(r).T @ r))
        return r * min(1.0, share * self.lam / largest) if largest > 0 else r


@dataclass(frozen=True, eq=False)
class RowsPoint:
    """Multipliers r (n,), t (H,) with ``zeta_h = t_h V_h(r)``, and slacks s (H,); or a step."""

    r: Floats
    t: Floats
    s: Floats


def solve_rows(
    program: RowsProgram,
    gap: Callable[[RowsPoint], float],
    *,
    tol: float,
    max_iterations: int,
    start: Floats | None = None,
) -> tuple[RowsPoint, int]:
    """Solve the dual of a group penalty in its rows; return the best point and the iterations.

    With slacks ``s_h = lam^2 - ||V_h||^2`` as unknowns of their own, so that none is a difference
    of two numbers that agree, the conditions are

        scores(r) = sum_h t_h K_h r,    s_h = lam^2 - <r, K_h r>,    t_h s_h = mu.

    Parameters
    ----------
    program : RowsProgram
    gap : callable
        The certified relative gap at a point.
    tol : float
        The gap at which to end.
    max_iterations : int
    start : (n,) array, optional
        Multipliers of a program nearby.
    """
    lam2, loss, y = program.lam**2, program.loss, program.y
    r = program.inside(y * loss.shares / 2, 0.5)
    if start is not None:
        r = program.inside((1 - _OFF) * start + _OFF * y * loss.shares / 2, 0.9)
    U = program.products(r)
    s = np.maximum(lam2 - U.T @ r, 1e-3 * lam2)
    S = U.sum(axis=1)
    t0 = max(float(loss.scores(r, y) @ S) / (float(S @ S) or 1.0), 1e-12 / program.lam)
    point = RowsPoint(r, np.mean(t0 * s) / s, s)
    best, iterations = (math.inf, point), 0
    patience, near = Patience(_PATIENCE), Patience(_NEAR)

    def goes_on(point: RowsPoint, done: int) -> bool:
        nonlocal best, iterations
        found, iterations = gap(point), done
        best = (found, point) if found < best[0] else best
        stuck = near.ends(best[0]) and best[0] < _SMALL
        return not (patience.ends(best[0]) or stuck or best[0] <= tol)

    follow(point, lambda at: _System(program, at), goes_on, limit=max_iterations)
    return best[1], iterations


class _System(PairSystem[RowsPoint, Floats, RowsPoint]):
    """The linear system of one step, reduced to the samples and to the units."""

    inner, shares, pairs = 0.998, (1e-5, 0.5), (("t", "s"),)

    def __init__(self, program: RowsProgram, point: RowsPoint) -> None:
        self.point, self.program = point, program
        loss, y, U = program.loss, program.y, program.products(point.r)
        self.residual = loss.scores(point.r, y) - U @ point.t
        self.slack = point.s - (program.lam**2 - U.T @ point.r)
        # Of interpolation, dependent rows: a trace of stiffness keeps them where they are.
        matrix = program.weighted(point.t, loss.stiffness(point.r, y))
        self._reduced = Factor(matrix, _RIDGE * isinstance(loss, Exact)).solve
        self._U, self._P = U, self._reduced(U)
        self._coupling = 2 * U.T @ self._P + np.diag(point.s / point.t)

    def predicting(self) -> Floats:
        return np.zeros_like(self.point.t)

    def correcting(self, affine: RowsPoint, mu: float) -> Floats:
        return mu - affine.t * affine.s

    def solve(self, target: Floats) -> RowsPoint:
        wanted = target / self.point.t - self.point.s + self.slack
        dt = np.linalg.solve(self._coupling, wanted + 2 * self._P.T @ self.residual)
        dr = self._reduced(self.residual - self._U @ dt)
        return RowsPoint(dr, np.asarray(dt), -2 * self._U.T @ dr - self.slack)

    def longest(self, step: RowsPoint) -> Lengths:
        length, _ = super().longest(step)
        length = min(length, self.program.loss.room(self.point.r, step.r, self.program.y))
        return length, length
