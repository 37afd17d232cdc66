"""What arrays and settings must be, each with its one message."""

from __future__ import annotations

import math
from numbers import Integral

from .arrays import Array, array_namespace, float_of

__all__ = [
    "require_columns",
    "require_count",
    "require_finite",
    "require_fraction",
    "require_gated_inputs",
    "require_inputs",
    "require_labels",
    "require_positive",
    "require_scale",
    "require_shape",
    "require_tolerance",
]


def require_tolerance(tol: float) -> None:
    """Refuse a tolerance outside (0, 1).

    Parameters
    ----------
    tol : float

    Raises
    ------
    ValueError
        If `tol` is at most 0, at least 1 or NaN.
    """
    if not (math.isfinite(tol) and 0 < tol < 1):
        raise ValueError(f"`tol` must lie strictly between 0 and 1, got {tol}")


def require_positive(name: str, value: float) -> None:
    """Refuse a number that is not positive and finite.

    Parameters
    ----------
    name : str
        Name of the number in the message.
    value : float

    Raises
    ------
    ValueError
        If the value is at most 0, infinite or NaN.
    """
    if not 0 < value < math.inf:
        raise ValueError(f"`{name}` must be positive and finite, got {value}")


def require_fraction(name: str, value: float, reason: str = "") -> None:
    """Refuse a number outside [0, 1).

    Parameters
    ----------
    name : str
        Name of the number in the message.
    value : float
    reason : str, optional
        End of the message.

    Raises
    ------
    ValueError
        If the value is negative, at least 1 or NaN.
    """
    if not 0 <= value < 1:
        raise ValueError(f"`{name}` must lie in [0, 1), got {value}{_tail(reason)}")


def require_count(name: str, value: object, otherwise: str = "", least: int = 1) -> None:
    """Refuse all but whole numbers from `least` on.

    Parameters
    ----------
    name : str
        Name of the number in the message.
    value : object
    otherwise : str, optional
        What else is taken, such as " or None".
    least : int

    Raises
    ------
    TypeError
        If the value is no integer.
    ValueError
        If it is smaller than `least`.
    """
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(
            f"`{name}` must be an integer{otherwise}, got {value!r}: give a whole number"
        )
    if value < least:
        raise ValueError(f"`{name}` must be at least {least}{otherwise}, got {value}")


def require_inputs(X: Array) -> None:
    """Refuse inputs that are no table of samples.

    Parameters
    ----------
    X : (n, D) array

    Raises
    ------
    ValueError
        If X has not two dimensions, or n or D is 0.
    """
    if X.ndim != 2 or X.shape[0] == 0 or X.shape[1] == 0:
        raise ValueError(f"`X` must have shape (n, D) with n, D >= 1, got {tuple(X.shape)}")


def require_columns(name: str, array: Array, n_columns: int, reason: str = "") -> None:
    """Refuse an array that is no matrix of so many columns.

    Parameters
    ----------
    name : str
        Name of the array in the message.
    array : (n, n_columns) array
    n_columns : int
    reason : str, optional
        End of the message, such as "the predictor was made from 3 inputs".

    Raises
    ------
    ValueError
        If the array has not two dimensions, or another number of columns.
    """
    if array.ndim != 2 or array.shape[1] != n_columns:
        wanted, got = f"(n, {n_columns})", tuple(array.shape)
        raise ValueError(f"`{name}` must have shape {wanted}, got {got}{_tail(reason)}")


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
    require_inputs(X)
    n_samples = int(X.shape[0])
    if Z.ndim != 2 or Z.shape[0] != n_samples or Z.shape[1] == 0:
        raise ValueError(
            f"`{gates}` must have shape ({n_samples}, {columns}) with {columns} >= 1, got "
            f"{tuple(Z.shape)}: one row of gates per row of X"
        )


def require_shape(name: str, array: Array, shape: tuple[int, ...], reason: str = "") -> None:
    """Refuse an array of another shape.

    Parameters
    ----------
    name : str
        Name of the array in the message.
    array : array
    shape : tuple of int
        Shape that is asked for.
    reason : str, optional
        End of the message, such as "one label per row of X".

    Raises
    ------
    ValueError
        With both shapes and the reason.

    Examples
    --------
    >>> import numpy as np
    >>> require_shape("y", np.ones(2), (3,), "one label per row of X")
    Traceback (most recent call last):
    ValueError: `y` must have shape (3,), got (2,): one label per row of X
    """
    if tuple(array.shape) != shape:
        got = tuple(array.shape)
        raise ValueError(f"`{name}` must have shape {shape}, got {got}{_tail(reason)}")


def require_finite(name: str, array: Array) -> None:
    """Refuse an array with entries that are NaN or infinite.

    Parameters
    ----------
    name : str
        Name of the array in the message.
    array : array of real numbers, of any shape

    Raises
    ------
    ValueError
    """
    xp = array_namespace(array)
    if not bool(xp.all(xp.isfinite(array))):
        raise ValueError(f"`{name}` has entries that are NaN or infinite: remove them first")


def require_scale(name: str, array: Array, *, power: int = 1) -> None:
    """Refuse an array whose largest entry is beyond 1e152 or, if not zero, below 1e-152.

    In between no square of an entry overflows and none of the largest ones vanishes, so that every
    answer scales exactly with powers of two. Entries that are not finite are no concern of this.

    Parameters
    ----------
    name : str
        Name of the array in the message.
    array : array of real numbers, of any shape
    power : int
        2 for products of two inputs, such as kernels, whose bounds are 1e304 and 1e-304.

    Raises
    ------
    ValueError

    Examples
    --------
    >>> import numpy as np
    >>> require_scale("X", np.array([1e200, 1.0]))
    Traceback (most recent call last):
    ValueError: `X` has a largest entry of 1e+200: rescale it to lie between 1e-152 and 1e+152
    """
    xp = array_namespace(array)
    size = float_of(xp.max(xp.abs(array))) if math.prod(array.shape) > 0 else 0.0
    least, most = SMALLEST**power, LARGEST**power
    if 0 < size < least or most < size < math.inf:
        raise ValueError(
            f"`{name}` has a largest entry of {size:.3g}: rescale it to lie between "
            f"{least:.0e} and {most:.0e}"
        )


# Squares of numbers between these are normal numbers, and so are sums of millions of them.
SMALLEST, LARGEST = 1e-152, 1e152


def require_labels(y: Array) -> None:
    """Refuse labels other than -1 and +1.

    Parameters
    ----------
    y : (n,) array

    Raises
    ------
    ValueError
        If an entry is another number or NaN.
    """
    xp = array_namespace(y)
    if not bool(xp.all(xp.abs(y) == 1)):
        raise ValueError("`y` must hold labels -1 and +1 only: map other labels to these first")


def _tail(reason: str) -> str:
    return f": {reason}" if reason else ""
