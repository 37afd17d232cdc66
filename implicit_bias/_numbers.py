"""Check of whole numbers, for modules that must stay light; all others use those of the solvers."""

from __future__ import annotations

from numbers import Integral
from typing import Any

__all__ = ["whole_number"]


def whole_number(name: str, value: Any, *, least: int = 1) -> int:
    """Return `value` as an int.

    Parameters
    ----------
    name : str
        What messages call it, such as "`n_units`".
    value : int or numpy integer
    least : int
        The smallest that is allowed.

    Raises
    ------
    TypeError
        If it is no whole number.
    ValueError
        If it is below `least`.
    """
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"{name} must be an integer, got {value!r}: give a whole number")
    if value < least:
        raise ValueError(f"{name} must be at least {least}, got {value}")
    return int(value)
