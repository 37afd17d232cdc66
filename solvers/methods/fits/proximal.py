"""Accelerated proximal gradients, for norms whose program has no solver of its own."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...norms.regularisers import Regulariser
from ...programs.fits import FitProgram
from ...programs.images import Floats
from ...programs.mean_losses import Squared

_LOOK = 20  # steps between two looks at the gap
_POWER = 60
_GROWTH = 1.1


def solve_proximal(
    problem: FitProgram,
    regulariser: Regulariser,
    gap: Callable[[Floats], float],
    tol: float,
    max_iterations: int,
) -> tuple[Floats, int]:
    """Return coefficients of least loss and regulariser, and the steps, restarted where they rise.

    Steps grow where the loss bends less than it can at most, as a small one does: each is as long
    as a quadratic of that step bounds the loss above.

    References
    ----------
    K. Scheinberg, D. Goldfarb, X. Bai, "Fast first-order methods for composite convex optimization
    with backtracking", for the weights where steps grow.
    """
    loss, y = problem.loss, problem.y
    least = step = 1 / _curvature(problem)
    zeta = point = np.zeros(problem.shape)
    weight, iterations = 1.0, 0
    scores = at = problem.scores(zeta)  # of zeta, of the point
    best, best_gap = zeta, np.inf
    while iterations < max_iterations:
        iterations += 1
        before, step = step, step * _GROWTH
        pull = loss.multipliers(at, y)
        slope = -problem.adjoint(pull)
        while True:
            following = regulariser.proximal(point - step * slope, step)
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
    return best, iterations


def _curvature(problem: FitProgram) -> float:
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
