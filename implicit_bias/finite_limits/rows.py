"""Group penalties in the rows: a primal-dual interior point with one unknown a sample."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._solve import Factor, longest_step
from ..data.arrays import Floats
from .losses import Exact, MeanLoss

__all__ = ["RowsProgram", "RowsSolution", "solve_rows"]

_KEPT = 0.98  # of the way to the edge of what is positive
# Of the way from multipliers of another program to the middle; a ridge for dependent rows.
_OFF, _RIDGE = 1e-9, 1e-14
_LEAST_CENTRING, _MOST_CENTRING = 1e-5, 0.5


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

    def weighted(self, t: Floats) -> Floats:
        """Return ``sum_h t_h K_h``, (n, n)."""
        return np.asarray((self.columns * t[self.group]) @ self.columns.T * self.gram)

    def inside(self, r: Floats, share: float) -> Floats:
        """Return multipliers r that are scaled into this share of the dual balls."""
        largest = np.sqrt(np.max(self.products(r).T @ r))
        return r * min(1.0, share * self.lam / largest) if largest > 0 else r


class RowsSolution(NamedTuple):
    """Multipliers r (n,), and t (H,) with ``zeta_h = t_h V_h(r)``."""

    r: Floats
    t: Floats
    iterations: int


def solve_rows(
    program: RowsProgram,
    gap: Callable[[Floats, Floats], float],
    *,
    tol: float,
    max_iterations: int,
    start: Floats | None = None,
) -> RowsSolution:
    """Solve the dual of a group penalty in its rows.

    With slacks ``s_h = lam^2 - ||V_h||^2`` as unknowns of their own, so that none is a difference
    of two numbers that agree, the conditions are

        scores(r) = sum_h t_h K_h r,    s_h = lam^2 - <r, K_h r>,    t_h s_h = mu.

    Parameters
    ----------
    program : RowsProgram
    gap : callable
        ``gap(r, t)``, the certified relative gap.
    tol : float
        The gap at which to end.
    max_iterations : int
    start : (n,) array, optional
        Multipliers of a program nearby.
    """
    lam2 = program.lam**2
    loss, y = program.loss, program.y
    r = program.inside(y * loss.shares / 2, 0.5)
    if start is not None:
        r = program.inside((1 - _OFF) * start + _OFF * y * loss.shares / 2, 0.9)
    U = program.products(r)
    s = np.maximum(lam2 - U.T @ r, 1e-3 * lam2)
    S = U.sum(axis=1)
    t0 = max(float(loss.scores(r, y) @ S) / (float(S @ S) or 1.0), 1e-12 / program.lam)
    t = np.mean(t0 * s) / s
    best, iterations, stalls = (np.inf, r, t), 0, 0
    for iterations in range(max_iterations + 1):  # noqa: B007
        found = gap(r, t)
        stalls = 0 if found < 0.5 * best[0] else stalls + 1
        if found < best[0]:
            best = (found, r, t)
        if found <= tol or (stalls >= 12 and best[0] < 1e-6) or stalls >= 40:
            break
        if not np.all(np.isfinite(loss.scores(r, y))):  # weights of samples that are far apart
            break
        system = _System(program, r, t, s)
        mu = float(np.mean(t * s))
        dr, dt, ds = system.direction(0.0, np.zeros_like(t))
        a = min(1.0, longest_step(s, ds), longest_step(t, dt), loss.room(r, dr, y))
        left = float(np.mean((t + a * dt) * (s + a * ds))) / mu
        centring = min(max(left**3, _LEAST_CENTRING), _MOST_CENTRING)
        dr, dt, ds = system.direction(centring * mu, dt * ds)
        a = min(1.0, _KEPT * min(longest_step(s, ds), longest_step(t, dt), loss.room(r, dr, y)))
        if not np.all(np.isfinite(dr)) or a < 1e-12:
            break
        r, t, s = r + a * dr, t + a * dt, s + a * ds
    return RowsSolution(best[1], best[2], iterations)


class _System:
    """The linear system of one step, reduced to the samples and to the units."""

    def __init__(self, program: RowsProgram, r: Floats, t: Floats, s: Floats) -> None:
        U = program.products(r)
        loss, y = program.loss, program.y
        self.residual = loss.scores(r, y) - U @ t
        self.slack = s - (program.lam**2 - U.T @ r)
        # Of interpolation, dependent rows: a trace of stiffness keeps them where they are.
        matrix = program.weighted(t) + np.diag(loss.stiffness(r, y))
        self._solve = Factor(matrix, _RIDGE * isinstance(loss, Exact)).solve
        self._P = self._solve(U)
        self._U, self._t, self._s = U, t, s
        self._coupling = 2 * U.T @ self._P + np.diag(s / t)

    def direction(self, mu: float, correction: Floats) -> tuple[Floats, Floats, Floats]:
        """Return the step (dr, dt, ds) to ``t s = mu``, less second-order products."""
        wanted = (mu - correction) / self._t - self._s + self.slack
        dt = np.asarray(np.linalg.solve(self._coupling, wanted + 2 * self._P.T @ self.residual))
        dr = self._solve(self.residual - self._U @ dt)
        return dr, dt, np.asarray(-2 * self._U.T @ dr - self.slack)
