"""Columns of several classes in one row."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...quantities.definition import Rule
from ...quantities.table import MEASURED

RULES: Mapping[Rule, Callable[[Sequence[Any]], Any]] = {
    "least": min, "largest": max, "sum": sum,
}  # fmt: skip


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
