"""The law by which the shares of units in the norm grow, and the times that it predicts.

Near a KKT point a unit whose dual norm is nu grows, relative to those of dual norm 1, like a
power of log(1/loss): 2 (nu - 1) / L in a network of L layers. `docs/slow-units.md` derives it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..._support.doors import door, result
from ..._support.shown import ReadOnly, Shown
from ..scalars import DUAL_SLACK
from .clocks import Clock

Array = NDArray[np.float64]

# Shares of the norm whose times are predicted, in addition to the one in the limit.
MARKS = (0.01, 0.1)
# A unit's share changes if it will differ by more than this part of the whole norm.
CHANGE = 1e-3
# The law is first order in the distance from a KKT point. In 12 networks of eight units, two and
# three layers, at 30 to 1000 steps of momentum against three times as many, 31 states had residual
# and complementarity of at most 0.2. The dual norm of their median unit was off by 0.15 of the
# larger of the two in the median state, by less than a third in 26; of their worst unit by 0.7.
# Both constants were chosen on these runs.
NEAR = 0.2
UNCERTAIN = 1 / 3
# Logarithm of what float64 holds, with room for the margins.
LARGEST = 600.0


def share_exponents(dual_norms: ArrayLike, degree: int) -> Array:
    """Return the powers (H,) of log(1/loss) like which units grow relative to dual norm 1.

    Parameters
    ----------
    dual_norms : (H,)
        In units in which live units have 1.
    degree : int
        L >= 2, the number of layers.

    Raises
    ------
    ValueError
        If `degree` is below 2: coefficients that are no products of weights follow no such law.
    """
    if degree < 2:
        raise ValueError(
            f"`degree` must be at least 2, got {degree}: the units of a network that is linear in "
            "its weights have no powers of their own"
        )
    exponents: Array = 2 * (np.asarray(dual_norms, dtype=np.float64) - 1) / degree
    return exponents


@dataclass(frozen=True)
class Arrival:
    """When a unit comes to a share of the norm.

    Attributes
    ----------
    share : float
    log_inverse_loss : float
        Infinite if it never does, or beyond the range of numbers.
    earliest, latest : float
        The same with the dual norm as far off as `UnitGrowth.uncertainty`.
    log10_steps : tuple of (str, float)
        Decimal logarithm of the steps, from the start on, by the trainer's name.
    """

    share: float
    log_inverse_loss: float
    earliest: float
    latest: float
    log10_steps: tuple[tuple[str, float], ...]


@dataclass(frozen=True)
class UnitChange:
    """A unit whose share of the norm is on its way elsewhere.

    Attributes
    ----------
    unit : int
    share : float
        Of the sum of unit norms, now.
    dual_norm, exponent : float
        The share goes like log(1/loss) to that power.
    growth_now : float
        The power by which it is growing now, which tends to `exponent` as the unit's weights turn
        to its dual vector and its layers balance.
    predicted_share : float
        In the limit; NaN where none was given.
    arrivals : tuple of Arrival
        At 1 %, 10 % and the predicted share, those that lie ahead. The time of the last is too
        early: as a unit nears its share its dual norm comes to 1.
    """

    unit: int
    share: float
    dual_norm: float
    exponent: float
    growth_now: float
    predicted_share: float
    arrivals: tuple[Arrival, ...]


@result()
@dataclass(frozen=True, eq=False, repr=False)
class UnitGrowth(ReadOnly, Shown):
    """Predicted growth of a network's units under gradient flow, to first order.

    Attributes
    ----------
    degree : int
        L, the number of layers.
    log_inverse_loss : float
        log(1/loss) of the mean exponential loss; that of the logistic one is the same up to a share
        of the loss itself.
    mean_margin : float
        Mean of the margins in the weights that the samples have in that loss: what the norm is
        exactly proportional to while these weights stay.
    squared_norm : float
        Squared Euclidean norm of all trained weights.
    residual, complementarity : float
        Relative residual and complementarity of the KKT conditions, 0 at a KKT point.
    shares : (H,) array
        Share of the norm that each unit has. Arrays are read-only.
    dual_norms : (H,) array
        Norm of each unit's dual vector, in units in which live units have 1.
    exponents : (H,) array
        Power of log(1/loss) like which the share grows by its dual norm.
    growth_now : (H,) array
        The same power by the present gradient.
    limit_shares : (H,) array
        NaN where no limit was given.
    changes : tuple of UnitChange
        Units whose share will change by more than a thousandth of the norm; empty if there is a
        `reason`.
    reason : str
        Why the law predicts nothing here; empty where it does.

    Examples
    --------
    >>> X, y, gates = np.array([[3.0, 4.0]]), np.ones(1), np.array([[1.0, 1.0]])
    >>> network = ib.FReLU.from_zeta(np.array([[6.0, 8.0], [3.0, 4.0]]))
    >>> found = ib.dynamics.unit_growth(network, X, y, gates)
    >>> found.degree, found.shares.round(6).tolist(), found.exponents.round(6).tolist()
    (2, [0.666667, 0.333333], [0.0, 0.0])
    """

    degree: int
    log_inverse_loss: float
    mean_margin: float
    squared_norm: float
    residual: float
    complementarity: float
    shares: Array
    dual_norms: Array
    exponents: Array
    growth_now: Array
    limit_shares: Array
    changes: tuple[UnitChange, ...]
    reason: str

    @property
    def offset(self) -> float:
        """log(1/loss) - mean margin: log(n) less the entropy of the samples' weights."""
        return self.log_inverse_loss - self.mean_margin

    @property
    def uncertainty(self) -> float:
        """Typical error of the dual norms: a third of the distance from a KKT point. No bound."""
        return UNCERTAIN * max(self.residual, self.complementarity)

    @door()
    def shares_at(self, log_inverse_loss: float) -> Array:
        """Shares (H,) at a log(1/loss), dual norms frozen.

        Raises
        ------
        ValueError
            If the law predicts nothing here, or the mean margin is not positive there.
        """
        if self.reason:
            raise ValueError(f"no shares are predicted: {self.reason}")
        further = (log_inverse_loss - self.offset) / self.mean_margin
        if not further > 0:
            raise ValueError(
                f"`log_inverse_loss` must be above {self.offset:.4g}, got {log_inverse_loss}"
            )
        # Relative to the fastest, so that nothing overflows.
        powers = self.exponents * math.log(further)
        grown: Array = self.shares * np.exp(powers - powers.max())
        shares: Array = grown / grown.sum()
        return shares

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain Python values."""
        arrays = {k: v.tolist() for k, v in vars(self).items() if isinstance(v, np.ndarray)}
        rest = {k: v for k, v in vars(self).items() if k not in arrays and k != "changes"}
        return rest | arrays | {"changes": [asdict(change) for change in self.changes]}


def changes_of(growth: UnitGrowth, clocks: Sequence[Clock]) -> tuple[UnitChange, ...]:
    """The units whose shares will change, in their order, with the steps that clocks count."""
    return tuple(
        UnitChange(
            h,
            float(growth.shares[h]),
            float(growth.dual_norms[h]),
            float(growth.exponents[h]),
            float(growth.growth_now[h]),
            float(growth.limit_shares[h]),
            tuple(_arrival(growth, h, mark, clocks) for mark in _ahead(growth, h)),
        )
        for h in range(len(growth.shares))
        if _matters(growth, h)
    )


def _matters(growth: UnitGrowth, h: int) -> bool:
    """True if the share will differ by more than `CHANGE`, as far as that is known."""
    if not abs(growth.dual_norms[h] - 1) > max(DUAL_SLACK, growth.uncertainty):
        return False
    share, predicted = growth.shares[h], growth.limit_shares[h]
    if math.isnan(predicted):
        return bool(growth.exponents[h] > 0 or share > CHANGE)
    return bool(abs(predicted - share) > CHANGE)


def _ahead(growth: UnitGrowth, h: int) -> list[float]:
    """The shares that a unit comes through, in their order."""
    share, end = float(growth.shares[h]), float(growth.limit_shares[h])
    grows = growth.exponents[h] > 0
    last = (1.0 if grows else 0.0) if math.isnan(end) else end
    low, high = min(share, last), max(share, last)
    marks = {mark for mark in MARKS if low < mark < high} | ({last} if 0 < last < 1 else set())
    return sorted(marks, reverse=not grows) if grows == (last > share) else []


def _arrival(growth: UnitGrowth, h: int, mark: float, clocks: Sequence[Clock]) -> Arrival:
    """Arrival by the power law of the share over that of all others, exact if these stay."""
    log_ratio = _log_odds(mark) - _log_odds(float(growth.shares[h]))
    exponent = float(growth.exponents[h])
    error = math.copysign(2 * growth.uncertainty / growth.degree, exponent)
    times = []
    for power in (exponent, exponent + error, exponent - error):
        # A power of the other sign leads away from the mark.
        exact = log_ratio / power if power * exponent > 0 else math.inf
        factor = math.exp(exact) if exact < LARGEST else math.inf
        times.append(growth.offset + growth.mean_margin * factor)
    steps = tuple((c.name, c.log10_steps(times[0], growth)) for c in clocks if c.is_flow)
    about, earliest, latest = times
    return Arrival(mark, about, earliest, latest, steps)


def _log_odds(share: float) -> float:
    if not 0 < share < 1:
        return -math.inf if share <= 0 else math.inf
    return math.log(share) - math.log1p(-share)
