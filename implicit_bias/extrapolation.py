"""Where a run is heading: limits of recorded series, with error bars that say what they hold."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import t as student

__all__ = [
    "DirectionExtrapolation",
    "Extrapolation",
    "SeriesStatus",
    "extrapolate",
    "extrapolate_direction",
    "inverse_log_loss",
]

Array = NDArray[np.float64]

# The wide window reaches back to twice the last u, the narrow one to 1.4 times; where checkpoints
# are sparse they take at least so many points: three parameters and as many to judge them by.
WIDE, NARROW = (2.0, 8), (1.4, 6)
CONFIDENCE = 0.95
# How much farther than the other fits the truth may be. On synthetic series with curvature of all
# orders, logarithms and noise it then lies within the bar in at least 96 % of cases; series with a
# logarithm alone would lie at the very end of a bar without it.
CAUTION = 1.5


class SeriesStatus(Enum):
    """What came of a fit to a series; the value says what that means."""

    ESTIMATED = "the series was long enough and under way to its limit"
    TOO_FEW = (
        f"fewer than {WIDE[1]} usable checkpoints in the window of a fit: record more of them, or "
        "train longer"
    )
    NOT_SEPARATING = (
        "the last checkpoint has no value, or a loss that is not below 1: train until the data "
        "are separated"
    )
    NOT_DECREASING = (
        "the variable does not fall from checkpoint to checkpoint in the last part of the run, so "
        "there is no direction to extrapolate in: use a smaller learning rate or larger batches"
    )

    @property
    def advice(self) -> str:
        """The value."""
        return self.value


# Bases in v = u / (last u), constant first. Directions and margins are analytic in u where the
# bounded part of the weights converges, and have terms in u log u where it grows like log log t.
MODELS: Mapping[str, Callable[[Array], Array]] = MappingProxyType(
    {
        "linear": lambda v: np.stack([np.ones_like(v), v], axis=-1),
        "quadratic": lambda v: np.stack([np.ones_like(v), v, v**2], axis=-1),
        "cubic": lambda v: np.stack([np.ones_like(v), v, v**2, v**3], axis=-1),
        "root": lambda v: np.stack([np.ones_like(v), np.sqrt(v), v], axis=-1),
        "logarithmic": lambda v: np.stack(
            [np.ones_like(v), v, v * np.log(np.where(v > 0, v, 1.0))], axis=-1
        ),
    }
)
# One is believed, the others are asked how far wrong it may be: what the curvature brings in, what
# the next order would, and what a logarithm in its place.
BELIEVED = "quadratic"
OTHERS = (("cubic", WIDE), ("logarithmic", WIDE), ("linear", NARROW))
# In networks of higher degree units go on trading norms while the margin hardly changes: angles
# fall like roots of the margin's distance. GLNs at margin ratios of 0.4 to 0.9 were up to 2.3 times
# as far from the limit as the fits, this one among them, were from each other.
SLOW, SLOW_CAUTION = ("root", WIDE), 2.5
# The believed form is also fitted to the run as it was at this multiple of the last u: an estimate
# that still moves has not settled, whatever its residuals say.
EARLIER = 1.4


@dataclass(frozen=True, eq=False)
class _Fit:
    """Least squares of values (T, P) on one basis over the last points of a series."""

    model: str
    n_points: int
    scale: float
    coefficients: Array
    inverse: Array
    residual: float

    @classmethod
    def to(cls, model: str, u: Array, values: Array) -> _Fit:
        design = MODELS[model](u / u[-1])
        coefficients, *_ = np.linalg.lstsq(design, values, rcond=None)
        rest = values - design @ coefficients
        freedom = len(u) - design.shape[1]
        return cls(
            model=model,
            n_points=len(u),
            scale=float(u[-1]),
            coefficients=np.asarray(coefficients, dtype=np.float64),
            inverse=np.asarray(np.linalg.inv(design.T @ design), dtype=np.float64),
            residual=math.sqrt(float(np.sum(rest**2)) / freedom),
        )

    def at(self, u: float) -> tuple[Array, float]:
        """Prediction (P,) and the half-width of its confidence interval (a norm if P > 1)."""
        row = MODELS[self.model](np.array([u / self.scale]))[0]
        quantile = student.ppf((1 + CONFIDENCE) / 2, self.n_points - len(row))
        spread = self.residual * math.sqrt(float(row @ self.inverse @ row))
        return row @ self.coefficients, float(quantile) * spread


@dataclass(frozen=True, eq=False)
class Extrapolation:
    """The limit of a scalar series.

    Attributes
    ----------
    value : float
        Of the believed fit, limit - a u - b u^2, at u = 0; NaN unless `status` is ESTIMATED.
        Knows no bound: the limit of margin ratios may come out above 1, within its error.
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
    _fits: tuple[_Fit, ...] = ()

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
    """Return u = 1 / log(1/loss) (T,), the variable in which directions converge; NaN at loss >= 1.

    Under constant steps log(1/loss) grows like log t, under normalised ones like t, under
    accelerated ones like t^2; errors of directions and margins fall like u under each.
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
    status, fits = _fit_all(x, y[:, None], OTHERS)
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
    status, fits = _fit_all(x, units, OTHERS if degree == 1 else (*OTHERS, SLOW))
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


def _fit_all(
    u: Array, values: Array, others: Sequence[tuple[str, tuple[float, int]]]
) -> tuple[SeriesStatus, tuple[_Fit, ...]]:
    usable = np.isfinite(u) & (u > 0) & np.isfinite(values).all(axis=1)
    if len(u) == 0 or not usable[-1]:
        return SeriesStatus.NOT_SEPARATING, ()
    u, values = u[usable], values[usable]
    if len(u) < WIDE[1]:
        return SeriesStatus.TOO_FEW, ()
    before = len(u) - _points(u, (EARLIER, 1))
    first = len(u) - _points(u, WIDE)
    if before >= WIDE[1]:
        first = min(first, before - _points(u[:before], WIDE))
    if not np.all(np.diff(u[first:]) < 0):
        return SeriesStatus.NOT_DECREASING, ()
    if before < WIDE[1]:
        return SeriesStatus.TOO_FEW, ()
    fits = [_fit_window(BELIEVED, u, values, WIDE)]
    fits += [_fit_window(model, u, values, window) for model, window in others]
    fits.append(_fit_window(BELIEVED, u[:before], values[:before], WIDE))
    return SeriesStatus.ESTIMATED, tuple(fits)


def _fit_window(model: str, u: Array, values: Array, window: tuple[float, int]) -> _Fit:
    last = _points(u, window)
    return _Fit.to(model, u[-last:], values[-last:])


def _points(u: Array, window: tuple[float, int]) -> int:
    """How many of the last points a window has: an unbroken run of them below its reach."""
    reach, least = window
    beyond = np.flatnonzero(u > reach * u[-1])
    return max(len(u) - 1 - int(beyond[-1]) if len(beyond) else len(u), least)


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
