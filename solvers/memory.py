"""Sizes that memory cannot hold are refused before anything is allocated."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["require_memory"]


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
