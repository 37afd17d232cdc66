"""Extrapolated direction of a network, with a cone as its error bar."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._support.doors import door
from .._support.kinds import measured
from .._support.shown import ReadOnly, Shown
from .._support.solve import Status
from .growth.extrapolation import CAUTION
from .growth.series import OTHERS, WIDE, fit_series

Array = NDArray[np.float64]

# In networks of higher degree units go on trading norms while the margin hardly changes: angles
# fall like roots of the margin's distance. GLNs at margin ratios of 0.4 to 0.9 were up to 2.3 times
# as far from the limit as the fits, this one among them, were from each other.
SLOW, SLOW_CAUTION = ("root", WIDE), 2.5


@dataclass(frozen=True, eq=False, repr=False)
class DirectionExtrapolation(ReadOnly, Shown):
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
    window : int
        Checkpoints that the fit uses.
    residual : float
        Root mean square of its residuals, of unit vectors.
    status : Status
        ESTIMATED, or why there is no estimate.
    """

    direction: Array
    error: float
    moved: float
    window: int
    residual: float
    status: Status

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


@door(u=measured("T>=0"), directions=measured("T P: one row a checkpoint"))
def extrapolate_direction(
    u: ArrayLike, directions: ArrayLike, *, degree: int = 1
) -> DirectionExtrapolation:
    """Estimate the limit of directions as u falls to 0, by `extrapolate` of every coordinate.

    Parameters
    ----------
    u : (T,) array
        1 / log(1/loss) at every checkpoint, in the order of the run.
    directions : (T, P) array
        Vectors of any length, scaled to unit length here; zero vectors are left out.
    degree : int
        Degree of homogeneity of the network. Above 1 directions converge more slowly than u, in
        ways that no series of polynomials catches: the cone gets wider, and counts on roots of u.

    Returns
    -------
    DirectionExtrapolation
        With a status that says why where there is no estimate.

    Raises
    ------
    ValueError
        If the shapes do not fit.

    Examples
    --------
    >>> u = np.linspace(0.4, 0.1, 30)
    >>> directions = np.stack([np.cos(u), np.sin(u)], axis=1)  # of angle u, which tends to 0
    >>> found = ib.dynamics.extrapolate_direction(u, directions)
    >>> found.status.name, bool(found.angle([1.0, 0.0]) <= found.error)
    ('ESTIMATED', True)
    """
    x, d = np.asarray(u), np.asarray(directions)
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
