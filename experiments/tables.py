"""Tables of an experiment: rows are written as they come, and those of an earlier run are kept."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import pandas as pd

__all__ = ["begun", "keep_rows"]


def begun(
    path: Path, key: Sequence[str], **reading: Any
) -> tuple[pd.DataFrame, set[tuple[Any, ...]]]:
    """The table that an earlier run left at `path`, empty without one, and its values of `key`.

    `reading` goes to `pandas.read_csv`.
    """
    table = pd.read_csv(path, **reading) if path.exists() else pd.DataFrame()
    done = set() if table.empty else set(zip(*(table[name] for name in key), strict=True))
    return table, done


def keep_rows(
    rows: Iterable[Mapping[str, Any]],
    path_of: Path | Callable[[Mapping[str, Any]], Path] | None,
    *,
    digits: str,
) -> None:
    """Show rows one by one, floats in the format `digits`, and write all there are so far.

    `path_of` is the CSV file, or names it by a row; its folder is made. None writes nothing.
    """
    written: list[Mapping[str, Any]] = []
    for row in rows:
        written.append(row)
        click.echo(
            "  ".join(
                f"{name} {format(value, digits) if isinstance(value, float) else value}"
                for name, value in row.items()
            )
        )
        if path_of is not None:
            path = path_of(row) if callable(path_of) else path_of
            path.parent.mkdir(parents=True, exist_ok=True)
            pd.DataFrame(written).to_csv(path, index=False)
