"""Points of a grid of networks in one CSV file, cell by cell."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import joblib
import pandas as pd

from experiments.tables import Kept

__all__ = ["Cell", "cell_points"]

Cell = Mapping[str, Any]


def cell_points(
    points: Callable[[Cell], pd.DataFrame],
    key: Sequence[str],
    grid: Mapping[str, Any],
    path: Path,
    *,
    jobs: int = 1,
) -> Iterator[str]:
    """Write the points of every cell to a CSV file, which keeps those that it has; yield each.

    Parameters
    ----------
    points : callable
        `points(cell)` makes the points of one.
    key : sequence of str
        Columns that name a cell.
    grid : mapping
        Their values.
    path : Path
    jobs : int
        Cells at a time.
    """
    kept = Kept(path, key)
    every = product(*(grid[name] for name in key))
    cells = [dict(zip(key, values, strict=True)) for values in every if values not in kept]
    work = joblib.Parallel(n_jobs=jobs, return_as="generator_unordered")
    for cell, found in work(joblib.delayed(_named)(points, cell) for cell in cells):
        kept.add(found)
        yield ", ".join(f"{name} {value}" for name, value in cell.items())


def _named(points: Callable[[Cell], pd.DataFrame], cell: Cell) -> tuple[Cell, pd.DataFrame]:
    return cell, points(cell)
