"""Cells of a run's row: those of limits and trajectories."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._solve import to_numpy
from ..limits.multiclass import MarginLimit
from ..quantities.definition import Rule
from ..quantities.table import MEASURED

__all__ = [
    "limit_columns",
    "n_support",
    "over_classes",
    "supported",
]

RULES: Mapping[Rule, Callable[[Sequence[Any]], Any]] = {
    "least": min, "largest": max, "sum": sum,
}  # fmt: skip


def limit_columns(limit: MarginLimit, name: str) -> dict[str, Any]:
    """Return the cells of a limit, under the name of its program."""
    return {
        "limit": name,
        "objective": limit.objective,
        "lower_bound": limit.dual_objective,
        "gap": limit.gap,
        "n_support": n_support(limit),
        "n_units": len(limit.unit_norms),
        "n_live": int(limit.live.sum()),
        "iterations": limit.iterations,
        "limit_seconds": limit.seconds,
    }


def n_support(limit: MarginLimit) -> int:
    """Return how many samples are support vectors, of K classes beside any other class."""
    return int(supported(limit).sum())


def supported(limit: MarginLimit) -> NDArray[np.bool_]:
    """Return which samples (n,) are support vectors, of K classes beside any other class."""
    support = to_numpy(limit.support)
    return np.asarray(support.reshape(len(support), -1).any(axis=1))


def over_classes(cells: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the cells of several classes in one row, by the rules of their quantities.

    Parameters
    ----------
    cells : sequence of mappings
        Columns of limits, trajectories and comparisons, one mapping each.

    Returns
    -------
    dict of str to value
        Of quantities with a rule alone; NaN where one of the values is NaN.
    """
    found = {}
    for one in MEASURED:
        values = [own[one.name] for own in cells if one.name in own]
        if one.over_classes is not None and values:
            unknown = any(math.isnan(value) for value in values)
            found[one.name] = math.nan if unknown else RULES[one.over_classes](values)
    return found
