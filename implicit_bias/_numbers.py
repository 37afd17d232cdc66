"""Checks of single numbers that users give."""

from __future__ import annotations

import operator
from typing import Any

__all__ = ["whole_number"]


def whole_number(name: str, value: Any, *, least: int = 1) -> int:
    """Return `value` as an int.

    Parameters
    ----------
    name : str
        What messages call it, such as "`n_units`".
    value : int or another object with `__index__`, such as NumPy's integers
    least : int
        The smallest that is allowed.

    Raises
    ------
    TypeError
        If it is no whole number.
    ValueError
        If it is below `least`.
    """
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be a whole number, got {value!r}") from None
    if number < least:
        raise ValueError(f"{name} must be at least {least}, got {number}")
    return number
