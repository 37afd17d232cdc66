"""Fits to the last part of a series, and what stands in the way of one."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student

from ..._support.doors import door
from ..._support.kinds import measured
from ..._support.solve import Status

Array = NDArray[np.float64]

# The wide window reaches back to twice the last u, the narrow one to 1.4 times; where checkpoints
# are sparse they take at least so many points: three parameters and as many to judge them by.
WIDE, NARROW = (2.0, 8), (1.4, 6)
CONFIDENCE = 0.95


# Bases in v = u / (last u), beside the constant. Directions and margins of predictors that are
# linear in their weights are analytic in u where the bounded part of the weights converges, and
# have terms in u log u where it grows like log log t. Units of gated networks trade shares in
# powers of u that depend on their dual norms: no base has those.
MODELS: Mapping[str, Callable[[Array], Sequence[Array]]] = MappingProxyType(
    {
        "linear": lambda v: (v,),
        "quadratic": lambda v: (v, v**2),
        "cubic": lambda v: (v, v**2, v**3),
        "root": lambda v: (np.sqrt(v), v),
        "logarithmic": lambda v: (v, v * np.log(np.where(v > 0, v, 1.0))),
    }
)
# One is believed, the others are asked how far wrong it may be: what the curvature brings in, what
# the next order would, and what a logarithm in its place.
BELIEVED = "quadratic"
OTHERS = (("cubic", WIDE), ("logarithmic", WIDE), ("linear", NARROW))
# The believed form is also fitted to the run as it was at this multiple of the last u: an estimate
# that still moves has not settled, whatever its residuals say.
EARLIER = 1.4


@dataclass(frozen=True, eq=False)
class SeriesFit:
    """Least squares of values (T, P) on one basis over the last points of a series."""

    model: str
    n_points: int
    scale: float
    coefficients: Array
    inverse: Array
    residual: float

    @classmethod
    def to(cls, model: str, u: Array, values: Array) -> SeriesFit:
        """Fit a model to the points (T,) and their values (T, P) by least squares."""
        design = _design(model, u / u[-1])
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
        row = _design(self.model, np.array([u / self.scale]))[0]
        quantile = student.ppf((1 + CONFIDENCE) / 2, self.n_points - len(row))
        spread = self.residual * math.sqrt(float(row @ self.inverse @ row))
        return row @ self.coefficients, float(quantile) * spread


def last_part(u: Array, values: Array, window: tuple[float, int]) -> tuple[Status, Array, Array]:
    """The usable points (T,) of a series in a window at its end, and whether they can be fitted."""
    status, u, values = usable(u, values, window[1])
    if status is not Status.ESTIMATED:
        return status, u, values
    last = _points(u, window)
    u, values = u[-last:], values[-last:]
    falling = bool(np.all(np.diff(u) < 0))
    return (Status.ESTIMATED if falling else Status.NOT_MONOTONE), u, values


@door(u=measured("T>=0"), values=measured("T P>=0: one row a point"))
def fit_series(
    u: Array, values: Array, others: Sequence[tuple[str, tuple[float, int]]]
) -> tuple[Status, tuple[SeriesFit, ...]]:
    """Fit the end of a series by several models, the one that is believed first.

    Parameters
    ----------
    u : (T,) array
        What falls to 0 along the run, in its order.
    values : (T, P) array
        P numbers a checkpoint. Checkpoints at which one of them or u is not finite, or u is not
        positive, are left out.
    others : sequence of (str, (float, int))
        Models beside the quadratic that is believed, "linear", "cubic", "root" or "logarithmic",
        each with its window: how many times the last u it reaches back to, and its fewest points.

    Returns
    -------
    status : Status
        ESTIMATED, or what stands in the way of a fit.
    fits : tuple of SeriesFit
        The believed model, the others, and the believed one as it was earlier in the run; none
        without an estimate.

    Examples
    --------
    >>> u = np.linspace(0.4, 0.1, 30)
    >>> status, fits = ib.measures.fit_series(u, 2 - u[:, None], [("linear", (1.4, 6))])
    >>> status.name, [fit.model for fit in fits]
    ('ESTIMATED', ['quadratic', 'linear', 'quadratic'])
    >>> value, half_width = fits[0].at(0.0)
    >>> value.round(6).tolist(), half_width < 1e-6
    ([2.0], True)
    """
    status, u, values = usable(u, values, WIDE[1])
    if status is not Status.ESTIMATED:
        return status, ()
    before = len(u) - _points(u, (EARLIER, 1))
    first = len(u) - _points(u, WIDE)
    if before >= WIDE[1]:
        first = min(first, before - _points(u[:before], WIDE))
    if not np.all(np.diff(u[first:]) < 0):
        return Status.NOT_MONOTONE, ()
    if before < WIDE[1]:
        return Status.TOO_FEW, ()
    fits = [_fit_window(BELIEVED, u, values, WIDE)]
    fits += [_fit_window(model, u, values, window) for model, window in others]
    fits.append(_fit_window(BELIEVED, u[:before], values[:before], WIDE))
    return Status.ESTIMATED, tuple(fits)


def usable(u: Array, values: Array, least: int) -> tuple[Status, Array, Array]:
    """Return the points that are numbers, and whether the last one is and there are so many."""
    known = np.isfinite(u) & (u > 0)
    known &= np.isfinite(values).all(axis=tuple(range(1, values.ndim)))
    if not known[-1:].any():
        return Status.NOT_SEPARATING, u, values
    enough = known.sum() >= least
    return Status.ESTIMATED if enough else Status.TOO_FEW, u[known], values[known]


def _design(model: str, v: Array) -> Array:
    return np.stack([np.ones_like(v), *MODELS[model](v)], axis=-1)


def _fit_window(model: str, u: Array, values: Array, window: tuple[float, int]) -> SeriesFit:
    last = _points(u, window)
    return SeriesFit.to(model, u[-last:], values[-last:])


def _points(u: Array, window: tuple[float, int]) -> int:
    """Count the last points of a window: an unbroken run of them below its reach."""
    reach, least = window
    beyond = np.flatnonzero(u > reach * u[-1])
    return max(len(u) - 1 - int(beyond[-1]) if len(beyond) else len(u), least)
