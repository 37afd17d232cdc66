"""Newton's method on the dual of a separable potential: as many unknowns as there are samples."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from .._solve import longest_step
from ..data.arrays import Floats
from .potential import Potential

__all__ = ["Dual", "infeasibility", "solve_equalities", "solve_margins"]

EPS = float(np.finfo(np.float64).eps)
_DECREASE, _SHRINK, _HALVINGS = 1e-4, 0.5, 60
_SMALLEST_BARRIER = 1e-13


class Dual(NamedTuple):
    """Coefficients b (m,) and multipliers nu (n,), and how many steps they took."""

    b: Floats
    nu: Floats
    iterations: int


def solve_equalities(
    potential: Potential, features: Floats, y: Floats, *, rcond: float, max_iterations: int
) -> Dual:
    """Minimise the potential over ``features b = y``.

    In the row space of the features, through an orthonormal basis of it, so that dependent rows
    cost nothing. Singular values up to `rcond` of the largest count as zero.
    """
    left, values, rows = np.linalg.svd(features, full_matrices=False)
    kept = values > rcond * np.max(values, initial=0.0)
    rows, back = rows[kept], left[:, kept] / values[kept]
    wanted = back.T @ y

    def value(w: Floats) -> float:
        with np.errstate(over="ignore", invalid="ignore"):
            return float(wanted @ w - potential.conjugate(rows.T @ w).sum())

    w, iterations, worst = np.zeros(len(rows)), 0, np.inf
    while iterations < max_iterations:
        iterations += 1
        z = rows.T @ w
        slopes = potential.slopes(z)
        missing = wanted - rows @ potential.coefficients(z)
        step = _solved(rows * slopes @ rows.T, missing)
        decrement = float(missing @ step)
        size = potential.step_to_the_edge(z, rows.T @ step)
        miss = float(np.linalg.norm(missing))
        if size == 1.0 and miss <= 1e-12 * np.linalg.norm(wanted) and miss >= worst / 2:
            break  # rounding
        worst = min(worst, miss) if size == 1.0 else np.inf
        if size < 1.0 or miss > 1e-9 * np.linalg.norm(wanted):
            size = _searched(value, w, step, size, decrement)
        if size == 0.0:
            break
        w = w + size * step
    z = rows.T @ w
    slopes, b = potential.slopes(z), potential.coefficients(z)
    # Onto the samples exactly, by one more step of the primal, which keeps signs that are locked.
    for _ in range(2):
        b = b + slopes * (rows.T @ _solved(rows * slopes @ rows.T, wanted - rows @ b))
    return Dual(b, back @ w, iterations)


def solve_margins(
    potential: Potential, signed: Floats, margin: float, *, max_iterations: int
) -> Dual:
    """Minimise the potential over ``signed b >= margin``, `signed` being y times the features.

    By a barrier on the multipliers: at every stage margins are strictly above. A start whose
    margins are no smaller is the limit itself, of multipliers 0.
    """
    n = len(signed)
    start = potential.coefficients(np.zeros(signed.shape[1]))
    if np.all(signed @ start >= margin * (1 - 4 * EPS)):
        return Dual(start, np.zeros(n), 0)
    lam = np.full(n, 0.1 / (n * max(float(np.abs(signed).max()), np.finfo(float).tiny)))
    barrier, iterations = margin * float(lam.mean()), 0
    while True:

        def value(lam: Floats, mu: float = barrier) -> float:
            if not np.all(lam > 0):
                return -np.inf
            with np.errstate(over="ignore", invalid="ignore"):
                conjugate = potential.conjugate(signed.T @ lam).sum()
            return float(margin * lam.sum() - conjugate + mu * np.log(lam).sum())

        while iterations < max_iterations:
            iterations += 1
            z = signed.T @ lam
            slope = margin - signed @ potential.coefficients(z) + barrier / lam
            curved = signed * potential.slopes(z) @ signed.T + np.diag(barrier / lam**2)
            step = _solved(curved, slope)
            decrement = float(slope @ step)
            if decrement <= 1e-4 * n * barrier:
                break
            inside = longest_step(lam, step)
            size = min(potential.step_to_the_edge(z, signed.T @ step), 0.9 * inside)
            size = _searched(value, lam, step, size, decrement)
            if size == 0.0:
                break
            lam = lam + size * step
        b = potential.coefficients(signed.T @ lam)
        reached = barrier <= _SMALLEST_BARRIER * margin * float(lam.mean())
        if reached or iterations >= max_iterations:
            return Dual(b, lam, iterations)
        barrier *= 0.1


def infeasibility(
    signs: NDArray[np.int_], features: Floats, y: Floats, margin: float | None
) -> Floats | None:
    """Return multipliers that prove no coefficients of these signs to exist; None without any.

    They are nu with ``<y, nu> > 0`` and ``features' nu`` 0 for free coefficients, at most 0 for
    those that stay positive, and at least 0 for those that stay negative. For margins they are
    those of the samples, none below 0.
    """
    from scipy.optimize import linprog

    rows = features.T / max(float(np.abs(features).max()), np.finfo(float).tiny)
    goal = y / max(float(np.abs(y).max()), np.finfo(float).tiny)
    if margin is not None:
        rows, goal = rows * y, np.ones(len(y))
    bounds = (0.0, 1.0) if margin is not None else (-1.0, 1.0)
    kept = np.isin(signs, (1, -1))
    upper = rows[kept] * signs[kept, None]
    equal = rows[signs == 0]
    found = linprog(
        -goal,
        A_ub=upper if len(upper) else None, b_ub=np.zeros(len(upper)) if len(upper) else None,
        A_eq=equal if len(equal) else None, b_eq=np.zeros(len(equal)) if len(equal) else None,
        bounds=bounds, method="highs",
    )  # fmt: skip
    if found.status != 0 or not -found.fun > 1e-7 * np.linalg.norm(goal):
        return None
    return np.asarray(found.x)


def _searched(
    value: Callable[[Floats], float], at: Floats, step: Floats, size: float, decrement: float
) -> float:
    """Return a step size at which a concave function has grown enough; 0 if none is found."""
    before = value(at)
    for _ in range(_HALVINGS):
        if value(at + size * step) >= before + _DECREASE * size * decrement:
            return size
        size *= _SHRINK
    return 0.0


def _solved(matrix: Floats, right: Floats) -> Floats:
    """Return the solution of a positive semidefinite system, equilibrated."""
    d = np.sqrt(np.diag(matrix))
    d = np.where(d > 0, d, 1.0)
    scaled = matrix / np.outer(d, d)
    try:
        factor = cho_factor(scaled, lower=True)
        x = cho_solve(factor, right / d)
        x = x + cho_solve(factor, right / d - scaled @ x)
    except np.linalg.LinAlgError:
        x = np.linalg.lstsq(scaled, right / d, rcond=None)[0]
    return np.asarray(x / d)
