"""Tables of tests, of which a change waits for a part and `pytest --long` tries every cell."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import pytest


def some_of(cells: Iterable[Any], *, one_in: int) -> list[Any]:
    """Parameters of a test, of which the first of so many runs by default; a tuple is several."""
    return [cell if i % one_in == 0 else _long(cell) for i, cell in enumerate(cells)]


def each_pairwise(cells: Sequence[tuple[str, str]], *, times: int) -> list[Any]:
    """Parameters that are pairs, as many by default as every value needs to come so many times."""
    seen: Counter[tuple[int, str]] = Counter()
    kept = set()
    # From both ends, so that values do not all meet the first of the others.
    for i in range(len(cells)):
        cell = cells[-1 - i // 2] if i % 2 else cells[i // 2]
        if any(seen[at] < times for at in enumerate(cell)):
            kept.add(cell)
            seen.update(enumerate(cell))
    return [cell if cell in kept else _long(cell) for cell in cells]


def _long(cell: Any) -> Any:
    if hasattr(cell, "marks"):  # a parameter with an id of its own
        return pytest.param(*cell.values, marks=(*cell.marks, pytest.mark.long), id=cell.id)
    values = cell if isinstance(cell, tuple) else (cell,)
    return pytest.param(*values, marks=pytest.mark.long)
