"""Extrapolated limits of recorded series, with error bars."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..._support.doors import door, result
from ..._support.kinds import measured
from ..._support.shown import Shown
from ..._support.solve import Status
from ..scalars import DUAL_SLACK
from .power_sums import Powers, PowerSums
from .series import OTHERS, WIDE, fit_series, last_part

Array = NDArray[np.float64]

# How much farther than the other fits the truth may be. On synthetic series with curvature of all
# orders, logarithms and noise it then lies within the bar in at least 96 % of cases; series with a
# logarithm alone would lie at the very end of a bar without it.
CAUTION = 1.5
# Sums of powers are fitted to what lies between the last u and three times that, or to as many
# checkpoints as a polynomial needs.
REACH = (3.0, WIDE[1])
# Ratios of margins and certified optima err by this much; a bar that is narrower than what is left
# by less than this share says nothing.
ROUNDING, LITTLE = 1e-9, 0.01


# A unit is named as one that keeps a network from its limit if its dual norm exceeds 1 by more than
# a fit's error and it holds less than this part of an equal share of the norm.
SLOW_SHARE = 0.1


@dataclass(frozen=True)
class Bar:
    """An estimate, and the ends that the truth should lie between; NaN without an estimate."""

    value: float = math.nan
    low: float = math.nan
    high: float = math.nan

    @property
    def error(self) -> float:
        """Distance from the value to the farther end."""
        return max(self.high - self.value, self.value - self.low)

    def contains(self, truth: float) -> bool:
        """Return whether a value lies between the ends, up to rounding."""
        return self.low - ROUNDING <= truth <= self.high + ROUNDING


@result()
@dataclass(frozen=True, eq=False, repr=False)
class Extrapolation(Shown):
    """The limit of a scalar series.

    Attributes
    ----------
    limit : Bar
        Of the series as u falls to 0. Without a bound: the believed fit, limit - a u - b u^2, and
        on either side the half-width of its 95 % confidence interval, for noise, plus one and a
        half times its largest disagreement with four others, for what it leaves open: one with u^3
        as well, one with u log u in place of u^2, a straight line through the last part, and what
        it was itself when u was 1.4 times as large. Below a bound: the range of `PowerSums`, which
        lies between what has been reached and the bound. Neither can cover a change that the run
        has not yet come to.
    window : int
        Checkpoints in the fit.
    model : str
        Its form.
    residual : float
        Root mean square residual of the believed fit; of sums of powers their `misfit`.
    status : Status
    reached, upper : float
        The last value and the bound; NaN for a series without one.
    slow_units : tuple of int
        Units that keep the series from its bound for longer than can be seen: dual norm above
        1.01, less than a tenth of an equal share of the norm.

    Examples
    --------
    >>> u = np.linspace(0.4, 0.1, 30)
    >>> found = ib.dynamics.extrapolate(u, 2 - u)
    >>> round(found.value, 6), round(found.predict(0.05).value, 6)
    (2.0, 1.95)
    """

    limit: Bar
    window: int
    model: str
    residual: float
    status: Status
    reached: float = math.nan
    upper: float = math.nan
    slow_units: tuple[int, ...] = ()
    _at: Callable[[float], Bar] = lambda _: Bar()

    @property
    def value(self) -> float:
        """Extrapolated value of the limit."""
        return self.limit.value

    @property
    def error(self) -> float:
        """Half-width of the bar of the limit."""
        return self.limit.error

    @property
    def informative(self) -> bool:
        """True if the bar says more than that the limit lies between `reached` and `upper`."""
        return self.says(self.limit)

    @door()
    def says(self, bar: Bar) -> bool:
        """Return whether a bar says more than that it lies between `reached` and `upper`."""
        return not bar.high - bar.low >= (1 - LITTLE) * (self.upper - self.reached)

    @door()
    def predict(self, u: float) -> Bar:
        """The bar at u >= 0: of a run that has come so far.

        Raises
        ------
        ValueError
            If u is negative or NaN.
        """
        if not u >= 0:
            raise ValueError(f"`u` must be at least 0, got {u}")
        return self._at(u)

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain Python values."""
        names = ("window", "model", "residual", "reached", "upper")
        own = {name: getattr(self, name) for name in names} | {"slow_units": list(self.slow_units)}
        status = {"status": self.status.name, "advice": self.status.advice}
        return asdict(self.limit) | own | status

    def __str__(self) -> str:
        if self.status is not Status.ESTIMATED:
            return f"no estimate: {self.status.advice}"
        if math.isnan(self.upper):
            return f"{self.value:.6g} +- {self.error:.2g}"
        return self.in_words(self.limit)

    @door()
    def in_words(self, bar: Bar) -> str:
        """A bar below the bound, for a table."""
        low, high = f"{bar.low:.4f}", f"{bar.high:.4f}"
        if not self.says(bar):
            return f"not known: anything from what is reached, {self.reached:.4f}, to {high}"
        if low == high:
            return low
        return f"{low} to {high}" if bar.high < self.upper else f"at least {low}"


@door(log_loss=measured())
def inverse_log_loss(log_loss: ArrayLike) -> Array:
    """Return u = 1 / log(1/loss), the variable of `extrapolate`.

    Under constant steps log(1/loss) grows like log t, under normalised ones like t, under
    accelerated ones like t^2. Errors of directions and margins of predictors that are linear in
    their weights fall like u under each. Those of gated networks need not: a unit with dual norm
    nu gains on the others like (1/u)^(nu - 1), which is slow where nu is near 1.

    Parameters
    ----------
    log_loss : (T,) array
        Natural logarithm of the mean loss.

    Returns
    -------
    (T,) array
        NaN where the loss is 1 or more.

    Examples
    --------
    >>> ib.measures.inverse_log_loss([0.0, -1.0, -4.0]).tolist()
    [nan, 1.0, 0.25]
    """
    log_inverse = -np.asarray(log_loss, dtype=np.float64)
    return np.where(log_inverse > 0, 1 / np.where(log_inverse > 0, log_inverse, 1.0), np.nan)


@door(
    u=measured("T>=0"),
    values=measured("T: one entry a checkpoint"),
    dual_norms=measured("H>=0"),
    unit_norms=measured("H: one entry a unit"),
)
def extrapolate(
    u: ArrayLike,
    values: ArrayLike,
    *,
    upper: float | None = None,
    degree: int = 2,
    dual_norms: ArrayLike | None = None,
    unit_norms: ArrayLike | None = None,
) -> Extrapolation:
    r"""Estimate the limit of a series as u falls to 0.

    Without a bound by a polynomial, :math:`y(u) = y_\infty - a u - b u^2`; below one by all sums of
    the powers that a network's dual norms prescribe,

    .. math:: y(u) = y_{upper} - \sum_p c_p u^p, \qquad c_p \ge 0,

    among which the powers below that of the loss have no more weight than the units allow.

    Parameters
    ----------
    u : (T,) array
        1 / log(1/loss) at every checkpoint, in the order of the run.
    values : (T,) array
        Margin ratios, for instance. Checkpoints at which u or the value is NaN are left out. Where
        there is a bound the last value must be positive, as it is of a network that separates.
    upper : float, optional
        A proved bound of a series that rises towards it: 1 for margin ratios.
    degree : int
        Degree of homogeneity of the network, for a series with a bound.
    dual_norms, unit_norms : (H,) arrays, optional
        Norms of the units at the last checkpoint, of a network whose limit attains the bound.
        Without them, or where one is NaN, nothing is known of the units and the bar is wide.

    Returns
    -------
    Extrapolation
        With a status that says why where there is no estimate.

    Raises
    ------
    ValueError
        If the shapes differ or are not one-dimensional, or `degree` is not positive.

    Examples
    --------
    >>> u = np.linspace(0.4, 0.1, 30)
    >>> found = ib.dynamics.extrapolate(u, 1 - u / 2 - u**2 / 4)
    >>> found.status.name, round(found.value, 6)
    ('ESTIMATED', 1.0)
    """
    x, y = np.asarray(u), np.asarray(values)
    if upper is None:
        return _unbounded(x, y)
    units = _units(dual_norms, unit_norms)
    return _bounded(x, y, float(upper), Powers.of_network(degree, *units), _slow(*units))


def _units(
    dual_norms: ArrayLike | None, unit_norms: ArrayLike | None
) -> tuple[Array, Array] | tuple[()]:
    """Return dual norms and shares of the norm, (H,) each; nothing where they are not known."""
    if dual_norms is None or unit_norms is None:
        return ()
    nu, norms = np.asarray(dual_norms), np.asarray(unit_norms)
    usable = len(nu) > 0 and np.isfinite(nu).all() and 0 < norms.sum() < np.inf
    return (nu, norms / norms.sum()) if usable else ()


def _slow(nu: Array | None = None, shares: Array | None = None) -> tuple[int, ...]:
    """Return the units that the dual condition wants larger and that are small still."""
    if nu is None or shares is None:
        return ()
    slow = (nu > 1 + DUAL_SLACK) & (shares < SLOW_SHARE / len(nu))
    return tuple(np.flatnonzero(slow).tolist())


def _unbounded(x: Array, y: Array) -> Extrapolation:
    status, fits = fit_series(x, y[:, None], OTHERS)
    if not fits:
        return Extrapolation(Bar(), 0, "", math.nan, status)

    def at(u: float) -> Bar:
        """Return the bar at a distance `u` from the limit."""
        (value, half), *others = ((float(p[0]), half) for p, half in (f.at(u) for f in fits))
        error = half + CAUTION * max(abs(other - value) for other, _ in others)
        return Bar(value, value - error, value + error)

    believed = fits[0]
    return Extrapolation(
        at(0.0), believed.n_points, believed.model, believed.residual, status, _at=at
    )


def _bounded(
    x: Array, y: Array, upper: float, powers: Powers, slow: tuple[int, ...]
) -> Extrapolation:
    status, x, y = last_part(x, y, REACH)
    if status is Status.ESTIMATED and not y[-1] > 0:
        status = Status.NOT_SEPARATING
    if status is Status.ESTIMATED and not y.max() <= upper + ROUNDING:
        status = Status.ABOVE_BOUND
    if status is not Status.ESTIMATED:
        return Extrapolation(Bar(), 0, "", math.nan, status, upper=upper, slow_units=slow)
    reached = min(float(y[-1]), upper)
    sums = PowerSums(x, np.maximum(upper - y, ROUNDING), powers)

    def at(u: float) -> Bar:
        """Return the bar at a distance `u` from the limit."""
        value, low, high = sums.at(min(u, float(x[-1])))
        return Bar(*(min(max(upper - lack, reached), upper) for lack in (value, high, low)))

    return Extrapolation(
        at(0.0), len(x), "sums of powers", sums.misfit, status, reached, upper, slow, at
    )
