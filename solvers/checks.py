"""What arrays and settings must be, each with its one message."""

from __future__ import annotations

import math
from numbers import Integral

from .arrays import Array, array_namespace

__all__ = [
    "require_count",
    "require_finite",
    "require_gated_inputs",
    "require_labels",
    "require_shape",
    "require_tolerance",
]


def require_tolerance(tol: float) -> None:
    """Refuse a tolerance outside (0, 1), NaN included, by a `ValueError`."""
    if not (math.isfinite(tol) and 0 < tol < 1):
        raise ValueError(f"`tol` must lie strictly between 0 and 1, got {tol}")


def require_count(name: str, value: object, otherwise: str = "") -> None:
    """Refuse all but whole numbers from 1 on, by a `TypeError` or a `ValueError`."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(
            f"`{name}` must be an integer{otherwise}, got {value!r}: give a whole number"
        )
    if value < 1:
        raise ValueError(f"`{name}` must be at least 1{otherwise}, got {value}")


def require_gated_inputs(X: Array, Z: Array, gates: str = "Z", columns: str = "J") -> None:
    """Refuse inputs and gates that are not (n, D) and (n, J) with n, D, J >= 1.

    Parameters
    ----------
    X, Z : arrays
    gates, columns : str
        What the message calls Z and J.

    Raises
    ------
    ValueError
    """
    if X.ndim != 2 or X.shape[0] == 0 or X.shape[1] == 0:
        raise ValueError(f"`X` must have shape (n, D) with n, D >= 1, got {tuple(X.shape)}")
    n_samples = int(X.shape[0])
    if Z.ndim != 2 or Z.shape[0] != n_samples or Z.shape[1] == 0:
        raise ValueError(
            f"`{gates}` must have shape ({n_samples}, {columns}) with {columns} >= 1, got "
            f"{tuple(Z.shape)}: one row of gates per row of X"
        )


def require_shape(name: str, array: Array, shape: tuple[int, ...], reason: str = "") -> None:
    """Refuse an array of another shape, by a `ValueError` that gives the reason."""
    if tuple(array.shape) != shape:
        why = f": {reason}" if reason else ""
        raise ValueError(f"`{name}` must have shape {shape}, got {tuple(array.shape)}{why}")


def require_finite(**arrays: Array) -> None:
    """Refuse arrays with entries that are NaN or infinite, by a `ValueError` with their names."""
    for name, array in arrays.items():
        xp = array_namespace(array)
        if not bool(xp.all(xp.isfinite(array))):
            raise ValueError(f"`{name}` has entries that are NaN or infinite: remove them first")


def require_labels(y: Array) -> None:
    """Refuse labels other than -1 and +1, NaN included, by a `ValueError`."""
    xp = array_namespace(y)
    if not bool(xp.all(xp.abs(y) == 1)):
        raise ValueError("`y` must hold labels -1 and +1 only: map other labels to these first")
