"""Fits in a box: a primal-dual interior point in the coefficients."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ...numerics.central_path import PairSystem, Patience, follow
from ...numerics.factor import Factor
from ...programs.images import Floats
from ...programs.mean_losses import FlatLoss

# Gap, relative to the loss, at which it ends; steps, and those within which a gap is to shrink by a
# tenth.
_GAP, _STEPS, _PATIENCE = 1e-12, 200, 10


@dataclass(frozen=True, eq=False)
class _Point:
    """Coefficients w, multipliers of both walls, and what is left to these; or a step.

    Distances to the walls are unknowns of their own, so that none is a difference.
    """

    w: Floats
    high: Floats
    low: Floats
    up: Floats
    down: Floats


def solve_box(F: FlatLoss, radius: float) -> tuple[Floats, int]:
    """Minimise ``F(A w)`` over ``|w_i| <= radius``; return w and the number of steps."""
    w = np.zeros(F.A.shape[1])
    high = np.full_like(w, max(float(np.abs(F.gradient(w)).mean()), 1e-300))
    up, at_zero, least = np.full_like(w, radius), F.value(w), math.inf
    patience, done = Patience(_PATIENCE), 0

    def goes_on(at: _Point, steps: int) -> bool:
        nonlocal done, least
        done = steps
        missed = radius * np.abs(at.high - at.low + F.gradient(at.w)).sum()
        least = min(least, left := float(at.high @ at.up + at.low @ at.down + missed))
        # Of a ball that does not bind the least loss may be 0.
        enough = _GAP * max(F.value(at.w), 1e-3 * _GAP * at_zero)
        return left > enough and not patience.ends(least)

    point = _Point(w, high, high, up, up)
    return follow(point, lambda at: _System(F, at), goes_on, limit=_STEPS).w, done


class _System(PairSystem[_Point, tuple[Floats, Floats], _Point]):
    """The linear system of one step, reduced to the coefficients."""

    inner, shares, pairs = 0.99, (1e-4, 0.5), (("high", "up"), ("low", "down"))

    def __init__(self, F: FlatLoss, at: _Point) -> None:
        self.point, self.missed = at, at.high - at.low + F.gradient(at.w)
        walls = np.diag(at.high / at.up + at.low / at.down)
        self._reduced = Factor(F.hessian(at.w) + walls).solve

    def predicting(self) -> tuple[Floats, Floats]:
        zeros = np.zeros_like(self.point.w)
        return zeros, zeros

    def correcting(self, affine: _Point, mu: float) -> tuple[Floats, Floats]:
        return mu - affine.high * affine.up, mu - affine.low * affine.down

    def solve(self, target: tuple[Floats, Floats]) -> _Point:
        at = self.point
        high, low = target[0] / at.up - at.high, target[1] / at.down - at.low
        dw = self._reduced(low - high - self.missed)
        return _Point(dw, high + at.high / at.up * dw, low - at.low / at.down * dw, -dw, dw)
