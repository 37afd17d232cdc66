"""Kinks at which a unit helps: one more program decides over all their sides."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .problem import Flags, Units

# Kinks of one unit whose sides are all looked at, 2^k copies of it, and copies in all.
MAX_KINKS, MAX_COPIES = 8, 4096


def too_many_kinks(helping: Flags) -> bool:
    """Return whether helping kinks (n, H) are more than all sides of which can be looked at."""
    counts = helping.sum(axis=0)
    return bool(np.max(counts, initial=0) > MAX_KINKS or np.sum(2.0**counts) > MAX_COPIES)


def split_units(units: Units, kinks: Flags) -> Units:
    """Return a copy of each unit for every side pattern of its helping kinks (n, H).

    Copies share the norm of their unit, so that the network is the same. It is a local optimum
    among networks whose units may also split iff the program of the copies has the same value.
    """
    parts = []
    for h in range(len(units.u)):
        rows = np.flatnonzero(kinks[:, h])
        n_copies = 2 ** len(rows)
        patterns = (np.arange(n_copies) >> np.arange(len(rows))[:, None]) & 1
        copies = units.take(np.full(n_copies, h))
        gates = copies.gates.copy()
        gates[rows] = patterns > 0
        parts.append(replace(copies, u=copies.u / n_copies, gates=gates))
    joined = parts[0]
    for part in parts[1:]:
        joined = joined.joined(part)
    return joined
