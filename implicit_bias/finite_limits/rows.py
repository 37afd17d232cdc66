"""Group penalties in the rows: a primal-dual interior point with one unknown a sample."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from .._solve import longest_step
from ..data.arrays import Floats
from .losses import Logistic, MeanLoss

__all__ = ["RowsProgram", "RowsSolution", "solve_rows"]

_KEPT = 0.98  # of the way to the edge of what is positive
_LEAST_CENTRING, _MOST_CENTRING = 1e-5, 0.5


@dataclass(frozen=True, eq=False)
class RowsProgram:
    """``max -F*(-r)  s.t.  ||V_h(r)|| <= lam``; without a loss F is ``scores = y``.

    Attributes
    ----------
    gram : (n, n) array
        ``X X'``.
    columns : (n, J), group : (J,)
        Columns of gates, and their units.
    y : (n,) array
    loss : MeanLoss or None
    lam : float
    """

    gram: Floats
    columns: Floats
    group: NDArray[np.int64]
    y: Floats
    loss: MeanLoss | None
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

    def wanted(self, r: Floats) -> Floats:
        """Return the scores at which the loss has the slopes -r."""
        if self.loss is None:
            return self.y
        if isinstance(self.loss, Logistic):
            q = self.y * r / self.loss.shares
            return np.asarray(self.y * (np.log1p(-q) - np.log(q)))
        return self.y - r / self.loss.shares

    def stiffness(self, r: Floats) -> Floats:
        """Return minus the derivative of `wanted`, (n,)."""
        if self.loss is None:
            return np.zeros(len(r))
        if isinstance(self.loss, Logistic):
            q = self.y * r / self.loss.shares
            return np.asarray(1 / (self.loss.shares * q * (1 - q)))
        return np.asarray(1 / self.loss.shares)

    def is_inside(self, r: Floats) -> bool:
        """Return whether the loss has finite slopes at r."""
        if not isinstance(self.loss, Logistic):
            return True
        q = self.y * r / self.loss.shares
        return bool(np.all(q > 0) and np.all(q < 1))

    def room(self, r: Floats, dr: Floats) -> float:
        """Return the longest step along dr that keeps r in the domain of the loss."""
        if not isinstance(self.loss, Logistic):
            return np.inf
        shares = self.loss.shares
        q, dq = self.y * r / shares, self.y * dr / shares
        return min(longest_step(q, dq), longest_step(1 - q, -dq))

    def start(self) -> Floats:
        """Return multipliers well inside."""
        r = self.y / 2 if self.loss is None else self.y * self.loss.shares / 2
        largest = np.sqrt(np.max(self.products(r).T @ r))
        return np.asarray(r * min(1.0, self.lam / (2 * largest)) if largest > 0 else r)


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

        wanted(r) = sum_h t_h K_h r,    s_h = lam^2 - <r, K_h r>,    t_h s_h = mu.

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
    r = program.start() if start is None else _inside(program, start)
    U = program.products(r)
    s = np.maximum(lam2 - U.T @ r, 1e-3 * lam2)
    S = U.sum(axis=1)
    t0 = max(float(program.wanted(r) @ S) / (float(S @ S) or 1.0), 1e-12 / program.lam)
    t = np.mean(t0 * s) / s
    best, iterations, stalls = (np.inf, r, t), 0, 0
    for iterations in range(max_iterations + 1):  # noqa: B007
        found = gap(r, t)
        stalls = 0 if found < 0.5 * best[0] else stalls + 1
        if found < best[0]:
            best = (found, r, t)
        if found <= tol or (stalls >= 12 and best[0] < 1e-6) or stalls >= 40:
            break
        if not program.is_inside(r):  # rounding: weights of samples that are far apart
            break
        system = _System(program, r, t, s)
        mu = float(np.mean(t * s))
        dr, dt, ds = system.direction(0.0, np.zeros_like(t))
        a = min(1.0, longest_step(s, ds), longest_step(t, dt), program.room(r, dr))
        left = float(np.mean((t + a * dt) * (s + a * ds))) / mu
        centring = min(max(left**3, _LEAST_CENTRING), _MOST_CENTRING)
        dr, dt, ds = system.direction(centring * mu, dt * ds)
        a = min(1.0, _KEPT * min(longest_step(s, ds), longest_step(t, dt), program.room(r, dr)))
        if not np.all(np.isfinite(dr)) or a < 1e-12:
            break
        r, t, s = r + a * dr, t + a * dt, s + a * ds
    return RowsSolution(best[1], best[2], iterations)


class _System:
    """The linear system of one step, reduced to the samples and to the units."""

    def __init__(self, program: RowsProgram, r: Floats, t: Floats, s: Floats) -> None:
        U = program.products(r)
        self.residual = program.wanted(r) - U @ t
        self.slack = s - (program.lam**2 - U.T @ r)
        matrix = program.weighted(t)
        diagonal = matrix.diagonal() + program.stiffness(r)
        if program.loss is None:  # dependent rows: a trace of stiffness keeps them where they are
            diagonal = diagonal + 1e-14 * float(diagonal.max())
        matrix[np.diag_indices(len(r))] = diagonal
        d = 1 / np.sqrt(diagonal)
        self._d, self._matrix = d, matrix * d[:, None] * d
        self._factor = _factored(self._matrix)
        self._P = self._solve(U)
        self._U, self._t, self._s = U, t, s
        self._coupling = 2 * U.T @ self._P + np.diag(s / t)

    def direction(self, mu: float, correction: Floats) -> tuple[Floats, Floats, Floats]:
        """Return the step (dr, dt, ds) to ``t s = mu``, less second-order products."""
        wanted = (mu - correction) / self._t - self._s + self.slack
        dt: Floats = np.asarray(
            np.linalg.solve(self._coupling, wanted + 2 * self._P.T @ self.residual),
            dtype=np.float64,
        )
        dr = self._solve(self.residual - self._U @ dt)
        return dr, np.asarray(dt), np.asarray(-2 * self._U.T @ dr - self.slack)

    def _solve(self, right: Floats) -> Floats:
        d = self._d if right.ndim == 1 else self._d[:, None]
        x = cho_solve(self._factor, right * d)
        x = x + cho_solve(self._factor, right * d - self._matrix @ x)
        return np.asarray(x * d)


def _factored(matrix: Floats) -> tuple[Floats, bool]:
    """Return the Cholesky factor, of as little more on the diagonal as it takes."""
    more = 0.0
    while True:
        try:
            factor, lower = cho_factor(matrix + more * np.eye(len(matrix)), lower=True)
        except np.linalg.LinAlgError:
            more = max(10 * more, 1e-15)
            if more > 1.0:
                raise
            continue
        return factor, lower


def _inside(program: RowsProgram, start: Floats) -> Floats:
    """Return multipliers near `start` that are strictly inside."""
    r = np.array(start)
    if isinstance(program.loss, Logistic):
        shares = program.loss.shares
        q = np.clip(program.y * r / shares, 1e-300, 1 - 1e-9)
        r = program.y * q * shares
    largest = float(np.sqrt(np.max(program.products(r).T @ r)))
    return r * min(1.0, 0.9 * program.lam / largest) if largest > 0 else r
