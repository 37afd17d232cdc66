"""Accelerated proximal gradients, for norms whose program has no solver of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from .._solve import Norm
from ..data.arrays import Floats
from .losses import Squared
from .problem import FitProblem
from .regularisers import Ball, Penalty, Regulariser, Ridge

__all__ = ["Descended", "has_proximal", "solve_proximal"]

_LOOK = 20  # steps between two looks at the gap
_POWER = 60
_GROWTH = 1.1


class Descended(NamedTuple):
    """Coefficients, and the steps that they took."""

    zeta: Floats
    iterations: int


def solve_proximal(
    problem: FitProblem,
    regulariser: Regulariser,
    gap: Callable[[Floats], float],
    *,
    tol: float,
    max_iterations: int,
    start: Floats | None = None,
) -> Descended:
    """Minimise loss and regulariser by accelerated steps, restarted where they rise.

    Steps grow where the loss bends less than it can at most, as a small one does: each is as long
    as a quadratic of that step bounds the loss above.

    References
    ----------
    K. Scheinberg, D. Goldfarb, X. Bai, "Fast first-order methods for composite convex optimization
    with backtracking", for the weights where steps grow.
    """
    loss, y = problem.loss, problem.y
    least = step = 1 / _curvature(problem)
    zeta = np.zeros(problem.shape) if start is None else np.array(start)
    point, weight, iterations = zeta, 1.0, 0
    scores = at = problem.scores(zeta)  # of zeta, of the point
    best, best_gap = zeta, np.inf
    while iterations < max_iterations:
        iterations += 1
        before, step = step, step * _GROWTH
        pull = loss.multipliers(at, y)
        slope = -problem.adjoint(pull)
        while True:
            following = proximal(regulariser, point - step * slope, step)
            moved = problem.scores(following)
            rise = loss.value(moved, y) - loss.value(at, y) + float(np.sum(pull * (moved - at)))
            if step <= least or rise <= float(np.sum((following - point) ** 2)) / (2 * step):
                break
            step = max(step / 2, least)
        if np.sum((point - following) * (following - zeta)) > 0:
            weight = 1.0
        larger = (1 + np.sqrt(1 + 4 * before / step * weight**2)) / 2
        carried = (weight - 1) / larger
        point, at = following + carried * (following - zeta), moved + carried * (moved - scores)
        zeta, scores, weight = following, moved, larger
        if iterations % _LOOK == 0 or iterations == max_iterations:
            found = gap(zeta)
            if found < best_gap:
                best, best_gap = zeta, found
            if found <= tol:
                break
    return Descended(best, iterations)


def has_proximal(norm: Norm) -> bool:
    """Return whether steps in a norm are known here: of l2 norms, and of all singular values."""
    if norm.inside == "l2" or norm.blocks == "whole":
        return True
    return (norm.inside, norm.over) in (("nuclear", "sum"), ("spectral", "max"))


def proximal(regulariser: Regulariser, B: Floats, step: float) -> Floats:
    """Return ``argmin_U ||U - B||^2 / (2 step) + R(U)``."""
    if isinstance(regulariser, Ridge):
        return B / (1 + step * regulariser.lam)
    if not isinstance(regulariser, Penalty | Ball):
        raise TypeError(f"no proximal step of {type(regulariser).__name__}")
    norm = regulariser.norm
    sizes, rebuilt = _sizes(norm, B)
    summed = norm.over == "sum" if norm.blocks != "whole" else norm.inside != "spectral"
    if isinstance(regulariser, Ball):
        radius = regulariser.radius
        return rebuilt(_onto_sum(sizes, radius) if summed else np.minimum(sizes, radius))
    lam = step * regulariser.lam
    return rebuilt(np.maximum(sizes - lam, 0.0) if summed else sizes - _onto_sum(sizes, lam))


def _sizes(norm: Norm, B: Floats) -> tuple[Floats, Callable[[Floats], Floats]]:
    """Return the sizes of which the norm is sum or maximum, and B as a function of them."""
    rows = norm.blocks == "units" and B.ndim == 2
    if norm.inside != "l2" and not rows:  # singular values of all units, or of the one matrix
        left, values, right = np.linalg.svd(B, full_matrices=False)
        shape = values.shape

        def spectral(sizes: Floats) -> Floats:
            return np.asarray((left * sizes.reshape(shape)[..., None, :]) @ right)

        return values.ravel(), spectral
    if norm.blocks == "columns":
        sizes, back = _sizes(Norm("l2", norm.over, "rows"), B.T)
        return sizes, lambda changed: back(changed).T
    if norm.blocks == "whole":
        flat = B.reshape(1, -1)
    elif norm.blocks == "entries":
        flat = B.reshape(-1, 1)
    else:
        flat = B.reshape(len(B), -1)
    sizes = np.linalg.norm(flat, axis=1)
    safe = np.where(sizes > 0, sizes, 1.0)
    return sizes, lambda changed: np.asarray((flat * (changed / safe)[:, None]).reshape(B.shape))


def _onto_sum(sizes: Floats, radius: float) -> Floats:
    """Project numbers that are not negative onto those of sum at most `radius`."""
    if sizes.sum() <= radius:
        return sizes
    falling = np.sort(sizes)[::-1]
    excess = (np.cumsum(falling) - radius) / np.arange(1, len(sizes) + 1)
    last = int(np.flatnonzero(falling > excess)[-1])
    return np.asarray(np.maximum(sizes - excess[last], 0.0))


def _curvature(problem: FitProblem) -> float:
    """Return an upper bound of the loss's curvature along coefficients, by the power method."""
    V = np.random.default_rng(0).normal(size=problem.shape)
    shares = problem.loss.shares if not problem.several else problem.loss.shares[:, None]
    size = 1.0
    for _ in range(_POWER):
        V = V / np.linalg.norm(V)
        V = problem.adjoint(problem.scores(V) * shares)
        size = float(np.linalg.norm(V))
        if size == 0:
            return 1.0
    most = 1.0 if isinstance(problem.loss, Squared) else (0.5 if problem.several else 0.25)
    return 1.05 * most * size
