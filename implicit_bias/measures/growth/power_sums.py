r"""Bounds on what a series that falls to 0 may still do: all sums of admissible powers that fit it.

What a margin ratio lacks of its bound is a sum of powers of u = 1 / log(1/loss) with coefficients
of one sign. Of a network of degree L with balanced layers that nears a KKT point:

* 1 is the power of the loss itself, which weighs all samples and not the nearest alone;
* a part of a unit that no support vector asks for stays as it is while the unit grows, so its share
  of the unit falls like :math:`u^{1/L}`, and what it costs like the square, :math:`u^{2/L}`;
* a unit with a dual norm nu below 1 dies like :math:`u^{2 (1 - \nu) / L}` beside the live ones, and
  while it holds the share s of the norm it costs (1 - nu) s;
* one with a dual norm above 1 that is too small to be seen keeps the network at a KKT point of
  fewer units, power 0. Multipliers divided by the largest dual norm are feasible for the dual
  program, so that point lacks at most 1 - 1 / max nu.

So powers below that of the loss, and of parts of units, come from units alone and are bounded by
what dual norms and shares say. A network of one unit has none.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import OptimizeResult, linprog

from ..._support.doors import door, result
from ..._support.kinds import measured

Array = NDArray[np.float64]

# A sum has to pass each point to this share of it, or to half as much again as the nearest sum can:
# dual norms drift, steps with momentum swing, and neither is a sum of powers.
TOLERANCE, SLACK = 0.01, 1.5
# Sums with coefficients of one sign flatten out on logarithmic axes, never steepen. Networks may do
# both: units wake, and what has begun to hurry goes on. The bar reaches to the steepest sum's value
# to this power. The four numbers here and the reach of the window were chosen on 75 runs, of which
# 74 then lie in their bars; `experiments.coverage` measures others.
STEEPER = 1.35
# A part of a unit that support vectors do ask for, a little, fades more slowly than one that they
# do not: powers from this share of the least fast one on are as free as those above.
LEAST_FAST = 0.7
_FAST = (0.7, 0.8, 0.9, 1.0, 1.15, 1.35, 1.6, 2.0, 2.5, 3.0)
_SLOW = tuple(0.05 * k for k in range(14))


@result()
@dataclass(frozen=True, eq=False)
class Powers:
    """Powers that a sum may have.

    Attributes
    ----------
    values : (k,) array
        Ascending.
    n_slow : int
        How many of them, the first, are those of units that die or sleep.
    budget : float
        What the slow terms may come to together, in units of the series; infinite where nothing is
        known of the units.

    Examples
    --------
    A unit with dual norm 1/2 that holds a quarter of the norm costs at most 1/8:

    >>> powers = ib.measures.Powers.of_network(2, np.array([1.0, 0.5]), np.array([0.75, 0.25]))
    >>> powers.budget
    0.125
    """

    values: Array
    n_slow: int
    budget: float

    @classmethod
    @door(dual_norms=measured("H"), shares=measured("H: one number a unit"))
    def of_network(
        cls, degree: int, dual_norms: Array | None = None, shares: Array | None = None
    ) -> Self:
        """Return the powers of a network.

        Parameters
        ----------
        degree : int
            Degree of homogeneity.
        dual_norms, shares : (H,) arrays, optional
            Dual norms of the units and their shares of the norm, which add up to 1.
        """
        if shares is not None and dual_norms is None:
            raise ValueError("`shares` are those of units, whose `dual_norms` are missing")
        # A predictor that is linear in its weights has powers 1, 2, ... alone, and logarithms.
        least = LEAST_FAST * min(2 / degree, 1.0) if degree > 1 else 1.0
        between = np.linspace(least, 1.0, 4) if degree > 1 else np.empty(0)
        fast = np.unique([*between, *(p for p in _FAST if p >= least)])
        one_unit = dual_norms is not None and len(dual_norms) == 1
        slow = [] if one_unit or degree == 1 else [p for p in _SLOW if p < least - 1e-9]
        budget = np.inf
        if dual_norms is not None and shares is not None:
            gap = 1 - 1 / max(float(dual_norms.max()), 1.0)
            budget = float(np.abs(1 - dual_norms) @ shares) + gap
        return cls(np.array([*slow, *fast]), len(slow), budget)


@result()
@dataclass(frozen=True, eq=False)
class PowerSums:
    """Every sum of `powers`, coefficients >= 0, that passes near the points of a series.

    Attributes
    ----------
    u, values : (T,) arrays
        Positive, in the order of the run, u falling.
    powers : Powers

    Examples
    --------
    >>> u = np.array([1.0, 0.5, 0.25])
    >>> powers = ib.measures.Powers(np.array([1.0, 2.0]), 0, np.inf)
    >>> sums = ib.measures.PowerSums(u, 3 * u, powers)
    >>> nearest, low, high = sums.at(0.125)
    >>> round(nearest, 6), low < nearest < high
    (0.375, True)
    """

    u: Array
    values: Array
    powers: Powers

    @property
    def misfit(self) -> float:
        """Largest error of the nearest sum, as a share of the point that it belongs to."""
        return float(self._nearest.x[-1])

    @door()
    def at(self, u: float) -> tuple[float, float, float]:
        """Value of the nearest sum and the range of all of them, at 0 <= u <= the last u."""
        row, last = self._row(u), float(self.values[-1])
        low, high = (self._extreme(row, sign) for sign in (1.0, -1.0))
        # A power small enough looks like a constant for as long as anybody looks, and falls to 0.
        low = min(max(low, 0.0), 1.0) ** STEEPER if u > 0 else 0.0
        high = max(min(high, 1.0), low)
        nearest = min(max(float(row @ self._nearest.x[:-1]), low), high)
        return last * nearest, last * low, last * high

    def _row(self, u: float) -> Array:
        # 0 ** 0 is 1: of the constant nothing fades.
        row: Array = (u / self.u[-1]) ** self.powers.values
        return row

    def _extreme(self, row: Array, sign: float) -> float:
        """The least (sign 1) or largest (-1) value; the bound itself where no solver finds it."""
        away = max(TOLERANCE, SLACK * self.misfit)
        points, design = self._points, self._design
        found = linprog(
            sign * row,
            A_ub=np.vstack([design, -design, self._slow]),
            b_ub=np.concatenate([points * (1 + away), -points * (1 - away), [self._budget]]),
        )
        return sign * float(found.fun) if found.success else (0.0 if sign > 0 else 1.0)

    @cached_property
    def _nearest(self) -> OptimizeResult:
        """Coefficients, and as the last entry the largest relative error, which is least."""
        design, points = self._design, self._points[:, None]
        found: Any = linprog(
            np.append(np.zeros(design.shape[1]), 1.0),
            A_ub=np.block([[design, -points], [-design, -points], [self._slow, np.zeros((1, 1))]]),
            b_ub=np.concatenate([points[:, 0], -points[:, 0], [self._budget]]),
        )
        if not found.success:  # coefficients 0 and an error of 1 are always feasible
            raise RuntimeError(f"the nearest sum of powers was not found: {found.message}")
        return found

    @cached_property
    def _design(self) -> Array:
        design: Array = (self.u / self.u[-1])[:, None] ** self.powers.values
        return design

    @cached_property
    def _points(self) -> Array:
        points: Array = self.values / self.values[-1]
        return points

    @cached_property
    def _slow(self) -> Array:
        slow: Array = np.zeros((1, len(self.powers.values)))
        slow[0, : self.powers.n_slow] = 1.0
        return slow

    @property
    def _budget(self) -> float:
        # All coefficients add up to the last point, 1, give or take an error of less than 1.
        return min(self.powers.budget / float(self.values[-1]), 2.0)
