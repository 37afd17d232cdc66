"""Where a run is heading: limits of recorded series, with error bars that say what they hold."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .series import OTHERS, WIDE, SeriesFit, SeriesStatus, fit_series

__all__ = [
    "DirectionExtrapolation",
    "Extrapolation",
    "SeriesStatus",
    "extrapolate",
    "extrapolate_direction",
    "inverse_log_loss",
]

Array = NDArray[np.float64]

# How much farther than the other fits the truth may be. On synthetic series with curvature of all
# orders, logarithms and noise it then lies within the bar in at least 96 % of cases; series with a
# logarithm alone would lie at the very end of a bar without it.
CAUTION = 1.5
# In networks of higher degree units go on trading norms while the margin hardly changes: angles
# fall like roots of the margin's distance. GLNs at margin ratios of 0.4 to 0.9 were up to 2.3 times
# as far from the limit as the fits, this one among them, were from each other.
SLOW, SLOW_CAUTION = ("root", WIDE), 2.5


@dataclass(frozen=True, eq=False)
class Extrapolation:
    """The limit of a scalar series.

    Attributes
    ----------
    value : float
        Of the believed fit, limit - a u - b u^2, at u = 0; NaN unless `status` is ESTIMATED.
        Knows no bound: the limit of margin ratios may come out above 1, within its error. `within`
        cuts the bar at bounds that are known.
    error : float
        Half-width of the believed fit's 95 % confidence interval, for noise, plus one and a half
        times its largest disagreement with four others, for what it leaves open: one with u^3 as
        well, one with u log u in place of u^2, a straight line through the last part, and what it
        was itself when u was 1.4 times as large. It cannot cover a change that the run has not
        yet come to.
    window : int
        Checkpoints in the believed fit.
    model : str
        Its form.
    residual : float
        Its root mean square residual.
    status : SeriesStatus
    """

    value: float
    error: float
    window: int
    model: str
    residual: float
    status: SeriesStatus
    _fits: tuple[SeriesFit, ...] = ()

    def predict(self, u: float) -> tuple[float, float]:
        """Value and error, as above, at u >= 0: of a run that has come so far.

        Raises
        ------
        ValueError
            If u is negative or NaN.
        """
        if not u >= 0:
            raise ValueError(f"`u` must be at least 0, got {u}")
        if not self._fits:
            return math.nan, math.nan
        (value, half), *others = ((float(p[0]), half) for p, half in (f.at(u) for f in self._fits))
        return value, half + CAUTION * max(abs(other - value) for other, _ in others)

    def within(self, low: float, high: float) -> tuple[float, float]:
        """What is left of the bar, `value` +- `error`, between two known bounds.

        Both NaN without an estimate, or where the whole bar lies outside: then it is wrong.
        """
        left, right = max(self.value - self.error, low), min(self.value + self.error, high)
        return (left, right) if left <= right else (math.nan, math.nan)

    def describe(self, low: float, high: float) -> str:
        """`within` in words, for a table."""
        if self.status is not SeriesStatus.ESTIMATED:
            return str(self)
        left, right = self.within(low, high)
        if math.isnan(left):
            return f"no estimate: {self} contradicts the bounds, {low:.4f} to {high:.4f}"
        said = f"{left:.4f} to {right:.4f}"
        return f"{said}: no more than the bounds" if (left, right) == (low, high) else said

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain Python values."""
        names = ("value", "error", "window", "model", "residual")
        return {name: getattr(self, name) for name in names} | {
            "status": self.status.name,
            "advice": self.status.advice,
        }

    def __str__(self) -> str:
        if self.status is SeriesStatus.ESTIMATED:
            return f"{self.value:.6g} +- {self.error:.2g}"
        return f"no estimate: {self.status.advice}"


@dataclass(frozen=True, eq=False)
class DirectionExtrapolation:
    """The limit of a series of directions.

    Attributes
    ----------
    direction : (P,) array
        Unit vector, read-only; NaN unless `status` is ESTIMATED.
    error : float
        Radius in radians of a cone around `direction`, made like that of `Extrapolation`: at most
        pi.
    moved : float
        Angle between the last recorded direction and `direction`.
    window, residual, status
        As in `Extrapolation`; the residual is that of unit vectors.
    """

    direction: Array
    error: float
    moved: float
    window: int
    residual: float
    status: SeriesStatus

    def __post_init__(self) -> None:
        self.direction.flags.writeable = False

    def angle(self, other: ArrayLike) -> float:
        """Angle in radians between `direction` and another vector (P,) of any length."""
        return _angle(self.direction, np.asarray(other, dtype=np.float64).ravel())

    def to_dict(self) -> dict[str, Any]:
        """Everything but the direction, as plain Python values."""
        names = ("error", "moved", "window", "residual")
        return {name: getattr(self, name) for name in names} | {
            "status": self.status.name,
            "advice": self.status.advice,
        }


def inverse_log_loss(log_loss: ArrayLike) -> Array:
    """Return u = 1 / log(1/loss) (T,), the variable of `extrapolate`; NaN at loss >= 1.

    Under constant steps log(1/loss) grows like log t, under normalised ones like t, under
    accelerated ones like t^2. Errors of directions and margins of predictors that are linear in
    their weights fall like u under each. Those of gated networks need not: a unit with dual norm
    nu gains on the others like (1/u)^(nu - 1), which is slow where nu is near 1.
    """
    log_inverse = -np.asarray(log_loss, dtype=np.float64)
    return np.where(log_inverse > 0, 1 / np.where(log_inverse > 0, log_inverse, 1.0), np.nan)


def extrapolate(u: ArrayLike, values: ArrayLike) -> Extrapolation:
    r"""Estimate the limit of a series as u falls to 0.

    .. math:: y(u) = y_\infty - a u - b u^2

    Parameters
    ----------
    u : (T,)
        Of every checkpoint, in the order of the run; see `inverse_log_loss`.
    values : (T,)
        Margin ratios, for instance. Checkpoints at which u or the value is NaN are left out.

    Raises
    ------
    ValueError
        If the shapes differ or are not one-dimensional.
    """
    x, y = np.asarray(u, dtype=np.float64), np.asarray(values, dtype=np.float64)
    if x.ndim != 1 or y.shape != x.shape:
        raise ValueError(
            f"`u` and `values` must have one shape (T,), got {x.shape} and {y.shape}: one entry a "
            "checkpoint"
        )
    status, fits = fit_series(x, y[:, None], OTHERS)
    if not fits:
        return Extrapolation(math.nan, math.nan, 0, "", math.nan, status)
    believed = fits[0]
    found = Extrapolation(
        math.nan, math.nan, believed.n_points, believed.model, believed.residual, status, fits
    )
    value, error = found.predict(0.0)
    return Extrapolation(
        value, error, believed.n_points, believed.model, believed.residual, status, fits
    )


def extrapolate_direction(
    u: ArrayLike, directions: ArrayLike, *, degree: int = 1
) -> DirectionExtrapolation:
    """Estimate the limit of directions as u falls to 0, by `extrapolate` of every coordinate.

    Parameters
    ----------
    u : (T,)
    directions : (T, P)
        Vectors of any length, scaled to unit length here; zero vectors are left out.
    degree : int
        Degree of homogeneity of the network. Above 1 directions converge more slowly than u, in
        ways that no series of polynomials catches: the cone gets wider, and counts on roots of u.

    Raises
    ------
    ValueError
        If the shapes do not fit.
    """
    x, d = np.asarray(u, dtype=np.float64), np.asarray(directions, dtype=np.float64)
    if x.ndim != 1 or d.ndim != 2 or len(d) != len(x) or d.shape[1] == 0:
        raise ValueError(
            f"`u` must have shape (T,) and `directions` (T, P), got {x.shape} and {d.shape}: one "
            "row a checkpoint"
        )
    units = _unit_rows(d)
    status, fits = fit_series(x, units, OTHERS if degree == 1 else (*OTHERS, SLOW))
    if not fits:
        nothing = np.full(d.shape[1], np.nan)
        return DirectionExtrapolation(nothing, math.nan, math.nan, 0, math.nan, status)
    (limit, half), *others = (fit.at(0.0) for fit in fits)
    believed, length = _unit_rows(limit[None])[0], float(np.linalg.norm(limit))
    blur = math.asin(half / length) if half < length else math.pi
    caution = CAUTION if degree == 1 else SLOW_CAUTION
    error = blur + caution * max(_angle(believed, other) for other, _ in others)
    return DirectionExtrapolation(
        direction=believed,
        error=min(error, math.pi),
        moved=_angle(believed, units[-1]),
        window=fits[0].n_points,
        residual=fits[0].residual,
        status=status,
    )


def _unit_rows(rows: Array) -> Array:
    # The largest entry first: squares of far-trained weights overflow.
    peaks = np.abs(rows).max(axis=1, keepdims=True)
    rows = rows / np.where(peaks > 0, peaks, np.nan)
    units: Array = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return units


def _angle(a: Array, b: Array) -> float:
    # By the chord: the arc cosine loses half of the digits of a small angle.
    a, b = _unit_rows(np.stack([a, b]))
    return 2 * math.asin(min(float(np.linalg.norm(a - b)) / 2, 1.0))
