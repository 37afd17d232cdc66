"""Checks of what users give: arrays of real numbers, and sizes that memory can hold."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["refuse_disguised", "refuse_masked", "require_memory", "require_real"]


def require_real(name: str, value: Any, wanted: str = "real numbers") -> None:
    """See that `value` is an array of real numbers, or what NumPy makes one of.

    Raises
    ------
    TypeError
        If it is complex, masked, sparse, ragged, or holds strings or other objects.
    """
    refuse_disguised(name, value)
    if hasattr(value, "toarray"):
        raise TypeError(f"`{name}` must be dense, got a sparse array: give `{name}.toarray()`")
    dtype = value.dtype if hasattr(value, "detach") else _dtype(name, value)
    if "complex" in str(dtype):
        raise TypeError(f"`{name}` must hold {wanted}, got dtype {dtype}: take real features of it")
    if isinstance(dtype, np.dtype) and dtype.kind not in "biuf":
        got = "None" if value is None else f"dtype {dtype}"
        raise TypeError(f"`{name}` must hold {wanted}, got {got}: convert it to float64")


def refuse_disguised(name: str, value: Any) -> None:
    """Refuse masked arrays, and strings, which NumPy and scikit-learn read as numbers silently.

    Raises
    ------
    TypeError
    """
    refuse_masked(name, value)
    if isinstance(value, list | tuple | np.ndarray) and _dtype(name, value).kind in "US":
        raise TypeError(f"`{name}` must hold numbers, got strings: convert it to float64")


def refuse_masked(name: str, value: Any) -> None:
    """Refuse masked arrays, whose mask NumPy and scikit-learn drop silently.

    Raises
    ------
    TypeError
    """
    if isinstance(value, np.ma.MaskedArray):
        raise TypeError(
            f"`{name}` is a masked array, whose mask would be lost: drop the samples that it marks "
            "or fill them in"
        )


def _dtype(name: str, value: Any) -> np.dtype[Any]:
    try:
        return np.asarray(value).dtype
    except ValueError as error:  # a ragged list
        raise TypeError(
            f"`{name}` must be an array of numbers, got {type(value).__name__} ({error}): "
            "encode the samples as float64"
        ) from error


def require_memory(n_numbers: int, what: str, way_out: str) -> None:
    """See that so many float64 fit into this machine's memory, which is the least they take.

    Raises
    ------
    ValueError
        With the size of `what`, and `way_out`.
    """
    needed, there = 8 * n_numbers, _memory()
    if needed > there:
        raise ValueError(
            f"{what} would take {_gib(needed)} GiB, and this machine has {_gib(there)}: {way_out}"
        )


def _gib(n_bytes: float) -> str:
    return f"{n_bytes / 2**30:,.3g}" if n_bytes < 2**40 else f"{n_bytes / 2**30:,.0f}"


def _memory() -> float:
    """Bytes that a process can have at most: the machine's, or its control group's if fewer."""
    try:
        memory = float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, OSError, ValueError):  # not POSIX
        return float("inf")
    try:
        return min(memory, float(Path("/sys/fs/cgroup/memory.max").read_text()))
    except (OSError, ValueError):  # no such group, or "max"
        return memory
