"""Interior point in the coefficients for the l2 norm, where margins are many more than these.

The game of `coefficient_point`, squared, needs no ball:

    max gamma - |B|^2 / 2  s.t.  A(B) >= gamma        min |A'lam|^2 / 2  s.t.  lam in the simplex,

a quadratic program with interior points on both sides whatever the data, and at its optimum
B = A'lam and gamma = |B|^2. Newton's matrix is `I + A' diag(lam / s) A`.

References
----------
S. Mehrotra, "On the implementation of a primal-dual interior point method", 1992 (predictor and
corrector).
"""

from __future__ import annotations

import logging
import math
import time
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from ...numerics.step_length import longest_step
from ...programs.coordinates import coordinates_of
from ...programs.images import Floats, Map, Room
from ...programs.norm_program import NormProgram, NormSolution, conclude_norm
from ..settings import Settings

__all__ = ["solve_quadratic"]

log = logging.getLogger(__name__)

ITERATIONS = 100
# Share of the longest step that is taken.
INNER = 0.99
# Stop once so many iterations have not narrowed the bounds by a tenth.
PATIENCE = 6


@dataclass(frozen=True, eq=False)
class _Point:
    """Coefficients B and gamma with slacks `s = A(B) - gamma`, against multipliers lam of sum 1."""

    B: Floats
    gamma: float
    s: Floats
    lam: Floats
    # A'lam.
    V: Floats

    def mu(self) -> float:
        return float(self.s @ self.lam) / len(self.s)

    def lower(self) -> float:
        """Margin of B over its norm."""
        norm = float(np.linalg.norm(self.B))
        return float(self.s.min() + self.gamma) / norm if norm > 0 else -math.inf

    def upper(self) -> float:
        """Largest margin over norm that the multipliers allow."""
        return float(np.linalg.norm(self.V)) / float(self.lam.sum())


def solve_quadratic(program: NormProgram, settings: Settings) -> NormSolution:
    """Solve a program of the l2 norm without equalities, by Newton steps in the coefficients.

    Parameters
    ----------
    program : NormProgram
    settings : Settings

    Returns
    -------
    NormSolution
        As far as the bounds could be narrowed.
    """
    start = time.perf_counter()
    own = coordinates_of(program.image, program.norm)
    image: Map = program.image if own is None else own
    point = primal = dual = _start(image)
    widths, iteration, room = [math.inf], 0, Room()
    for iteration in range(1, (settings.max_iterations or ITERATIONS) + 1):
        try:
            point = _advance(image, point, room)
        except np.linalg.LinAlgError:
            break
        primal = max(primal, point, key=_Point.lower)
        dual = min(dual, point, key=_Point.upper)
        lower, upper = primal.lower(), dual.upper()
        gap = upper / lower - 1 if lower > 0 else math.inf
        widths.append(upper - max(lower, 0.0))
        log.debug("%d: %.10g to %.10g", iteration, lower, upper)
        if settings.progress is not None:
            settings.progress(iteration, gap)
        # Half of what is asked, for what the certificate charges.
        if gap <= settings.tol / 2:
            break
        if len(widths) > PATIENCE and not widths[-1] < 0.9 * widths[-1 - PATIENCE]:
            break
    return conclude_norm(
        program,
        primal.B.reshape(program.image.shape) if own is None else own.lifted(primal.B),
        dual.lam,
        tol=settings.tol,
        iterations=iteration,
        seconds=time.perf_counter() - start,
        solver="interior-point",
    )


def _start(image: Map) -> _Point:
    """Begin at even multipliers, with slacks of the size of the margins."""
    m = image.n_rows
    lam = np.full(m, 1 / m)
    V = image.adjoint(lam)
    margins = image.scores(V)
    gamma = float(margins.min()) - (float(margins.std()) or 1.0)
    return _Point(V.ravel(), gamma, margins - gamma, lam, V.ravel())


def _advance(image: Map, point: _Point, room: Room) -> _Point:
    """Predict, correct, and step."""
    weights = point.lam / point.s
    matrix = image.gram(weights, room)
    matrix[np.arange(len(matrix)), np.arange(len(matrix))] += 1
    factor = cho_factor(matrix, lower=True, overwrite_a=True, check_finite=False)
    a = image.adjoint(weights).ravel()
    solved = cho_solve(factor, a)
    corner = float(weights.sum()) - float(a @ solved)

    def step(mu: float, second: Floats | float) -> tuple[Floats, float, Floats, Floats]:
        pull = (mu - second) / point.s - point.lam
        right = image.adjoint(pull).ravel() + point.V - point.B
        first = cho_solve(factor, right)
        dgamma = (1 - float(point.lam.sum()) - float(pull.sum()) + float(a @ first)) / corner
        dB = first + dgamma * solved
        ds = image.scores(dB.reshape(image.shape)) - dgamma
        return dB, dgamma, ds, pull - weights * ds

    mu = point.mu()
    _, _, ds, dlam = step(0.0, 0.0)
    longest = min(1.0, longest_step(point.s, ds)), min(1.0, longest_step(point.lam, dlam))
    reached = float((point.s + longest[0] * ds) @ (point.lam + longest[1] * dlam)) / len(ds)
    sigma = min(max(reached / mu, 0.0), 1.0) ** 3
    dB, dgamma, ds, dlam = step(sigma * mu, ds * dlam)
    # One length for both sides: B is next to A'lam in the objective.
    length = min(1.0, INNER * longest_step(point.s, ds), INNER * longest_step(point.lam, dlam))
    lam = point.lam + length * dlam
    return _Point(
        B=point.B + length * dB,
        gamma=point.gamma + length * dgamma,
        s=point.s + length * ds,
        lam=lam,
        V=image.adjoint(lam).ravel(),
    )
