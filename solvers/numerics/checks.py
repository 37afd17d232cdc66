"""What arrays and settings must be, each with its one message."""

from __future__ import annotations

import math
import os
from collections.abc import Collection
from numbers import Integral, Real
from typing import Any

import numpy as np

from .arrays import Array, array_namespace, entries_of, largest_entry
from .intake import real_array

# Numbers


def require_number(name: str, value: Any, *, finite: bool = True) -> Any:
    """Return a real number, that of an array without axes as Python's own, and refuse all else.

    Parameters
    ----------
    name : str
        Name of the number in the message.
    value : object
    finite : bool
        Whether NaN and infinities are refused too.

    Raises
    ------
    TypeError
        If the value is no real number, or True or False.
    ValueError
        If it is NaN, or infinite.

    Examples
    --------
    >>> require_number("rate", "fast")
    Traceback (most recent call last):
    TypeError: `rate` must be a number, got 'fast'
    """
    if getattr(value, "shape", None) == () and hasattr(value, "item"):
        value = value if isinstance(value, float) else value.item()
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"`{name}` must be a number, got {shown(value)}")
    if finite and not math.isfinite(value):
        raise ValueError(f"`{name}` must be finite, got {value}")
    return float(value) if isinstance(value, np.longdouble) else value


def require_tolerance(tol: float) -> None:
    """Refuse a tolerance outside (0, 1).

    Parameters
    ----------
    tol : float

    Raises
    ------
    TypeError
        If it is no number.
    ValueError
        If `tol` is at most 0, at least 1 or NaN.
    """
    require_number("tol", tol, finite=False)
    if not 0 < tol < 1:
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
    require_number(name, value, finite=False)
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
    require_number(name, value, finite=False)
    if not 0 <= value < 1:
        raise ValueError(f"`{name}` must lie in [0, 1), got {value}{_tail(reason)}")


def require_count(name: str, value: Any, otherwise: str = "", least: int = 1) -> int:
    """Return a whole number from `least` on as an int, and refuse all else.

    Parameters
    ----------
    name : str
        Name of the number in the message; where it is more than a name, with backticks of its own.
    value : object
    otherwise : str, optional
        What else is taken, such as " or None".
    least : int

    Returns
    -------
    int

    Raises
    ------
    TypeError
        If the value is no integer; True and 2.0 are none.
    ValueError
        If it is smaller than `least`.

    Examples
    --------
    >>> require_count("n_units", 2.5)
    Traceback (most recent call last):
    TypeError: `n_units` must be an integer, got 2.5: give a whole number
    """
    name = name if "`" in name else f"`{name}`"
    if getattr(value, "shape", None) == () and hasattr(value, "item"):
        value = value.item()
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(
            f"{name} must be an integer{otherwise}, got {shown(value)}: give a whole number"
        )
    if value < least:
        raise ValueError(f"{name} must be at least {least}{otherwise}, got {value}")
    return int(value)


def require_counts(name: str, values: object, least: int = 1) -> tuple[int, ...]:
    """Return a sequence of whole numbers from `least` on as a tuple, and refuse all else.

    Parameters
    ----------
    name : str
        Name of the sequence in the message.
    values : sequence of int, or array of integers (k,)
    least : int

    Returns
    -------
    tuple of int

    Raises
    ------
    TypeError
        If it is no sequence, or an entry is no integer.
    ValueError
        If an entry is smaller than `least`.

    Examples
    --------
    >>> require_counts("widths", (3.7, 3))
    Traceback (most recent call last):
    TypeError: `widths[0]` must be an integer, got 3.7: give a whole number
    """
    if isinstance(values, str | bytes | dict | set) or not hasattr(values, "__len__"):
        raise TypeError(f"`{name}` must be a sequence of integers, got {shown(values)}")
    if isinstance(values, type) or getattr(values, "ndim", 1) != 1:
        raise TypeError(f"`{name}` must be a sequence of integers, got {shown(values)}")
    entries: Any = values.tolist() if hasattr(values, "tolist") else values
    return tuple(
        require_count(f"{name}[{k}]", entry, least=least) for k, entry in enumerate(entries)
    )


def require_seed(name: str, value: object) -> None:
    """Refuse what is no source of random numbers: whole numbers from 0 on, and Generators are.

    Parameters
    ----------
    name : str
        Name of the source in the message.
    value : object

    Raises
    ------
    TypeError, ValueError
    """
    if isinstance(value, np.random.Generator):
        return
    require_count(name, value, " or a numpy Generator", least=0)


# Words


def require_flag(name: str, value: object) -> None:
    """Refuse all but True and False.

    Parameters
    ----------
    name : str
        Name of the argument in the message.
    value : object

    Raises
    ------
    TypeError
    """
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"`{name}` must be True or False, got {shown(value)}")


def require_text(name: str, value: object) -> None:
    """Refuse all but strings.

    Parameters
    ----------
    name : str
        Name of the argument in the message.
    value : object

    Raises
    ------
    TypeError
    """
    if not isinstance(value, str):
        raise TypeError(f"`{name}` must be a string, got {shown(value)}")


def require_choice(name: str, value: object, choices: Collection[str]) -> None:
    """Refuse all but some strings.

    Parameters
    ----------
    name : str
        Name of the argument in the message.
    value : object
    choices : collection of str

    Raises
    ------
    TypeError
        If it is no string.
    ValueError
        If it is none of the choices.

    Examples
    --------
    >>> require_choice("loss", "hinge", ("logistic", "exponential"))
    Traceback (most recent call last):
    ValueError: `loss` must be one of 'logistic', 'exponential', got 'hinge'
    """
    if isinstance(value, str) and value in choices:
        return
    wanted = f"`{name}` must be one of {', '.join(map(repr, choices))}, got {shown(value)}"
    raise ValueError(wanted) if isinstance(value, str) else TypeError(wanted)


def require_instance(name: str, value: object, kind: type) -> None:
    """Refuse all but instances of a class.

    Parameters
    ----------
    name : str
        Name of the argument in the message.
    value : object
    kind : type

    Raises
    ------
    TypeError
    """
    if not isinstance(value, kind):
        raise TypeError(f"`{name}` must be a {kind.__name__}, got {shown(value)}")


def require_path(name: str, value: object) -> None:
    """Refuse what names no file: strings and path objects do.

    Parameters
    ----------
    name : str
        Name of the argument in the message.
    value : object

    Raises
    ------
    TypeError
    """
    if not isinstance(value, str | os.PathLike):
        raise TypeError(f"`{name}` must be a path, got {shown(value)}")


# Arrays


def require_real(name: str, value: Any, wanted: str = "real numbers") -> None:
    """Refuse what is no array of real numbers, nor converted to such by NumPy.

    Parameters
    ----------
    name : str
        Name of the array in the message.
    value : array or nested sequence, of any shape
    wanted : str
        What it must hold, in the message.

    Raises
    ------
    TypeError
        If it is complex, masked, sparse, ragged, or holds strings or other objects.
    """
    real_array(name, value, wanted)


def require_array(name: str, value: Any) -> None:
    """Refuse what is no array of finite real numbers, nor converted to such by NumPy.

    Parameters
    ----------
    name : str
        Name of the array in the message.
    value : array or nested sequence, of any shape

    Raises
    ------
    TypeError
        If it holds no real numbers.
    ValueError
        If one is NaN or infinite.
    """
    require_finite(name, real_array(name, value))


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
    array = entries_of(array)
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
    require_size(name, largest_entry(array), power=power)


def require_size(name: str, size: float, *, power: int = 1) -> None:
    """Refuse an array by the size of its largest entry, as `require_scale` does.

    Parameters
    ----------
    name : str
        Name of the array in the message.
    size : float
    power : int

    Raises
    ------
    ValueError
    """
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


def shown(value: object) -> str:
    """Return what a message shows of a wrong value: short, and numbers as a user types them.

    Parameters
    ----------
    value : object

    Returns
    -------
    str
    """
    if hasattr(value, "shape") and getattr(value, "shape", ()) != ():
        return f"an array of shape {tuple(value.shape)}"
    if isinstance(value, type):
        return f"the class {value.__name__}"
    text = repr(value.item() if isinstance(value, np.generic) else value)
    return text if len(text) <= 60 else f"a {type(value).__name__}"


def _tail(reason: str) -> str:
    return f": {reason}" if reason else ""
