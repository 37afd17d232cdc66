"""Refusal of sizes that memory cannot hold, before anything is allocated."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path


def require_memory(n_numbers: int, what: str, way_out: str) -> None:
    """Refuse arrays that are larger than this machine's memory.

    Parameters
    ----------
    n_numbers : int
        Number of float64 that live at the same time, at least.
    what : str
        Subject of the message, such as "the kernels of 10 samples".
    way_out : str
        End of the message: what to do instead.

    Raises
    ------
    ValueError
        With the size of `what`, that of the memory, and `way_out`.

    Examples
    --------
    >>> require_memory(100, "a small matrix", "take fewer samples")
    """
    needed, there = 8 * n_numbers, _memory()
    if needed > there:
        raise ValueError(
            f"{what} would take {_gib(needed)} GiB, and this machine has {_gib(there)}: {way_out}"
        )


def require_sizes(what: str, sizes: Mapping[str, int], *shapes: Sequence[int]) -> None:
    """Refuse sizes whose arrays are larger than this machine's memory, by the largest one's name.

    Parameters
    ----------
    what : str
        What has these sizes, such as "weights".
    sizes : mapping of str to int
        Sizes by the names of the arguments.
    *shapes : sequences of int
        Shapes of float64 arrays that live at the same time.

    Raises
    ------
    ValueError
        If memory cannot hold them.

    Examples
    --------
    >>> require_sizes("points", {"n": 100, "d": 3}, (100, 3))
    """
    name = max(sizes, key=lambda one: sizes[one])
    n_numbers = sum(math.prod(map(int, shape)) for shape in shapes)
    require_memory(n_numbers, f"{what} with `{name}` of {sizes[name]}", f"take a smaller `{name}`")


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
