"""Interior point in the coefficients for the l2 norm, where margins are many more than these.

The game of `coefficients`, squared, needs no ball:

    max gamma - |B|^2 / 2  s.t.  A(B) >= gamma        min |A'lam|^2 / 2  s.t.  lam in the simplex,

a quadratic program with interior points on both sides whatever the data, and at its optimum
B = A'lam and gamma = |B|^2. Newton's matrix is `I + A' diag(lam / s) A`.

References
----------
S. Mehrotra, "On the implementation of a primal-dual interior point method", 1992 (predictor and
corrector).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from ...numerics.central_path import Best, Lengths, OnePairSystem, Watch, follow
from ...programs.coordinates import coordinates_of
from ...programs.images import Floats, Map, Room
from ...programs.norm_program import NormPoint, NormProgram
from ..settings import Settings

ITERATIONS = 100
# Stop once so many iterations have not narrowed the bounds by a tenth.
PATIENCE = 6


@dataclass(frozen=True, eq=False)
class _Step:
    """Changes of a point."""

    B: Floats
    gamma: float
    s: Floats
    lam: Floats


@dataclass(frozen=True, eq=False)
class _Point(_Step):
    """Coefficients B and gamma with slacks `s = A(B) - gamma`, against multipliers lam of sum 1."""

    # A'lam.
    V: Floats

    def bounds(self) -> Best[_Point]:
        """Margin of B over its norm, and the largest one that the multipliers allow."""
        norm = float(np.linalg.norm(self.B))
        lower = float(self.s.min() + self.gamma) / norm if norm > 0 else -math.inf
        return Best(lower, self, float(np.linalg.norm(self.V)) / float(self.lam.sum()), self)


def solve_quadratic(program: NormProgram, settings: Settings) -> NormPoint:
    """Solve a program of the l2 norm without equalities, by Newton steps in the coefficients.

    Parameters
    ----------
    program : NormProgram
    settings : Settings

    Returns
    -------
    NormPoint
        As far as the bounds could be narrowed.
    """
    own = coordinates_of(program.image, program.norm)
    image: Map = program.image if own is None else own
    # Half of what is asked, for what the certificate charges.
    watch = Watch(_Point.bounds, settings.tol / 2, PATIENCE, settings.progress)
    limit = settings.max_iterations or ITERATIONS
    follow(_start(image), partial(_System, image, Room()), watch, limit=limit)
    B = watch.best.primal.B
    B = B.reshape(program.image.shape) if own is None else own.lifted(B)
    return NormPoint(B, watch.best.dual.lam, iterations=watch.best.iterations)


def _start(image: Map) -> _Point:
    """Begin at even multipliers, with slacks of the size of the margins."""
    m = image.n_rows
    lam = np.full(m, 1 / m)
    V = image.adjoint(lam)
    margins = image.scores(V)
    gamma = float(margins.min()) - (float(margins.std()) or 1.0)
    return _Point(V.ravel(), gamma, margins - gamma, lam, V.ravel())


class _System(OnePairSystem[_Point, _Step]):
    """Newton's system in the coefficients, and gamma as its border.

    One length serves both sides: B is next to A'lam in the objective.
    """

    inner: ClassVar[float] = 0.99
    pairs: ClassVar[tuple[tuple[str, str], ...]] = (("s", "lam"),)

    def __init__(self, image: Map, room: Room, point: _Point) -> None:
        self.image, self.point = image, point
        self.weights = point.lam / point.s
        matrix = image.gram(self.weights, room)
        matrix[np.arange(len(matrix)), np.arange(len(matrix))] += 1
        self.factor = cho_factor(matrix, lower=True, overwrite_a=True, check_finite=False)
        self.a = image.adjoint(self.weights).ravel()
        self.solved = cho_solve(self.factor, self.a)
        self.corner = float(self.weights.sum()) - float(self.a @ self.solved)

    def solve(self, target: Floats) -> _Step:
        """Step towards products `target` of slacks and multipliers."""
        image, point = self.image, self.point
        pull = target / point.s - point.lam
        right = image.adjoint(pull).ravel() + point.V - point.B
        first = cho_solve(self.factor, right)
        missing = 1 - float(point.lam.sum()) - float(pull.sum())
        dgamma = (missing + float(self.a @ first)) / self.corner
        dB = first + dgamma * self.solved
        ds = image.scores(dB.reshape(image.shape)) - dgamma
        return _Step(dB, dgamma, ds, pull - self.weights * ds)

    def moved(self, step: _Step, lengths: Lengths) -> _Point:
        point = super().moved(step, lengths)
        return replace(point, V=self.image.adjoint(point.lam).ravel())
