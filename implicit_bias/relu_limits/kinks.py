"""Kinks at which a unit helps: one more program decides over all their sides."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .descent import kinks_of
from .problem import Flags, ReLUProblem, Units

__all__ = ["MAX_KINKS", "split_units", "too_many_kinks"]

# Kinks of one unit whose sides are all looked at, 2^k copies of it, and copies in all.
MAX_KINKS, MAX_COPIES = 8, 4096


def too_many_kinks(helping: Flags) -> bool:
    """Return whether helping kinks (n, H) are more than all sides of which can be looked at."""
    counts = helping.sum(axis=0)
    return bool(np.max(counts, initial=0) > MAX_KINKS or np.sum(2.0**counts) > MAX_COPIES)


def split_units(problem: ReLUProblem, units: Units, lam: np.ndarray) -> tuple[Units, np.ndarray]:
    """Return a copy of each unit for every side pattern of its helping kinks, and whose they are.

    Copies share the norm of their unit, so that the network is the same. It is a local optimum
    among networks whose units may also split iff the program of the copies has the same value.
    """
    helping, _ = kinks_of(problem, units, lam)
    parts, parents = [], []
    for h in range(len(units.u)):
        rows = np.flatnonzero(helping[:, h])
        n_copies = 2 ** len(rows)
        patterns = (np.arange(n_copies) >> np.arange(len(rows))[:, None]) & 1
        copies = units.take(np.full(n_copies, h))
        gates = copies.gates.copy()
        gates[rows] = patterns > 0
        parts.append(replace(copies, u=copies.u / n_copies, gates=gates))
        parents += [h] * n_copies
    joined = parts[0]
    for part in parts[1:]:
        joined = joined.joined(part)
    return joined, np.array(parents)
