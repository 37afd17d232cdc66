"""The rows of a sweep together: selected, grouped, averaged."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .._support.doors import door
from .._support.extras import naming_extras
from .._support.words import nearest
from ..quantities.said import Table
from ..runs.reports.row import COLUMNS, OPTIONS
from ..runs.reports.saved.files import RESULTS
from .rows import CELL_COLUMNS
from .store import Store

if TYPE_CHECKING:
    import pandas as pd

CHOICES = ("model", "data", *(column.name for column in OPTIONS), "data_digest", "gating_digest")
# Shown where no columns are asked for, if there is something in them.
USUAL = ("objective", "gap", "margin_ratio", "agreement", "error_limit", "error_network",
         "cell_seconds")  # fmt: skip
NUMBERS = tuple(
    column.name for column in (*COLUMNS, *CELL_COLUMNS) if column.type in ("float64", "int64")
)


@door()
@naming_extras()
def read_rows(folder: str | os.PathLike[str]) -> pd.DataFrame:
    """Read all rows in the folder of one or several sweeps, as they were done.

    Those that are not in one table are brought into one, where no sweep is at work on them.

    Parameters
    ----------
    folder : path

    Returns
    -------
    DataFrame
        With the columns of `sweep_schema`; NaN where null.

    Raises
    ------
    ValueError
        If there are none, or a file is damaged.
    MissingExtra
        Without pandas or pyarrow.

    Examples
    --------
    >>> done = ib.sweep("linear", {"seed": [0, 1]}, out="runs", n_train=20, steps=0)
    >>> ib.sweeps.read_rows("runs")["status"].tolist()
    ['SOLVED', 'SOLVED']
    """
    store = Store(folder)
    if (store.folder / RESULTS).exists():
        raise ValueError(
            f"{os.fspath(folder)!r} holds a single run, which `load` gives back: name the "
            "folder of `sweep --out`"
        )
    if store.is_empty():
        raise ValueError(
            f"{os.fspath(folder)!r} holds no rows of a sweep: name the folder of `sweep --out`"
        )
    if store.quiet():
        store.tidy()
    return store.frame()


def matching(frame: pd.DataFrame, where: Mapping[str, str]) -> pd.DataFrame:
    """Select the rows whose columns have these values, as they are typed.

    Raises
    ------
    ValueError
        For a column that there is not, and if no row is left.
    """
    for name, text in where.items():
        check_columns([name], frame)
        column = frame[name]
        frame = frame[[_typed(value) == _typed(text) for value in column.tolist()]]
        if frame.empty:
            known = ", ".join(sorted({_shown(value) for value in column.tolist()})[:10])
            raise ValueError(f"no row has {name}={text}: there {name} is {known}")
    return frame


def check_columns(names: Iterable[str], frame: pd.DataFrame, known: Sequence[str] = ()) -> None:
    """Raise ValueError, with the nearest, for the first name that is no column."""
    for name in names:
        if name not in (known or frame.columns):
            choices = known or tuple(frame.columns)
            kind = "column of numbers" if known else "column"
            raise ValueError(
                f"there is no {kind} {name!r}{nearest(name, choices)}; `columns`, `by` and "
                "`where` name columns"
            )


def varying_beside_first(frame: pd.DataFrame) -> list[str]:
    """Return the choices in which rows differ, without those that follow from the first of them.

    The held-out samples that training samples leave over would make a line of every point.
    """
    first, *others = varying(frame) or [""]
    if not first:
        return []
    groups = frame.groupby(first, dropna=False)
    return [first, *(one for one in others if groups[one].nunique(dropna=False).max() > 1)]


def varying(frame: pd.DataFrame) -> list[str]:
    """Return the choices in which rows differ, numbers first, without those that seeds change."""
    by_seed = {"seed", "data_digest", "gating_digest"}
    found = [name for name in CHOICES if name in frame and frame[name].nunique(dropna=False) > 1]
    found.sort(key=lambda name: name not in NUMBERS)
    return [name for name in found if name not in by_seed] or ["model"]


def choices_beside(frame: pd.DataFrame, over: Sequence[str]) -> list[str]:
    """Return the choices in which rows differ beside those that are averaged over.

    Raises
    ------
    ValueError
        For a name that is no choice.
    """
    for name in over:
        if name not in CHOICES:
            raise ValueError(
                f"there is no option {name!r}{nearest(name, CHOICES)}; `over` names options"
            )
    return [name for name in varying(frame) if name not in over] or ["model"]


def with_trainers(frame: pd.DataFrame, by: Sequence[str]) -> list[str]:
    """Return the choices `by`, the trainer among them where rows are of several.

    Each of the trainers of one run has a row: their mean says nothing about any of them.
    """
    several = "trainer" not in by and frame["trainer"].nunique(dropna=False) > 1
    return [*by, "trainer"] if several else list(by)


def averaged_over(frame: pd.DataFrame, by: Sequence[str]) -> list[str]:
    """Return the choices that differ within groups, seeds first."""
    groups = frame.groupby(list(by), dropna=False)
    names = [name for name in CHOICES if name not in by and not name.endswith("_digest")]
    differ = [name for name in names if groups[name].nunique(dropna=False).max() > 1]
    return sorted(differ, key=lambda name: name != "seed")


def measured(frame: pd.DataFrame) -> list[str]:
    """Return the usual columns that hold something."""
    return [name for name in USUAL if frame[name].notna().any()]


def failures_of(frame: pd.DataFrame) -> dict[str, int]:
    """Count the rows that failed by their messages, the most frequent first."""
    counts: dict[str, int] = frame["cell_error"].dropna().value_counts().to_dict()
    return counts


def averaged(frame: pd.DataFrame, by: Sequence[str], columns: Sequence[str]) -> pd.DataFrame:
    """Average columns over the rows that share the choices `by`, sorted by them.

    Returns
    -------
    DataFrame
        By these choices: ``runs``, of which in ``solved`` the limit is certified to the tolerance,
        and of every column its mean by its name, NaN where none has a value, the standard
        deviation of a sample as ``NAME_spread``, NaN of one row, and the rows that have a value as
        ``NAME_count``.

    Raises
    ------
    ValueError
        For a name that is no column, or none of numbers.
    """
    check_columns(by, frame)
    check_columns(columns, frame, NUMBERS)
    rows = frame[frame["cell_error"].isna()]
    values = rows[list(columns)].astype("float64").assign(solved=rows["status"] == "SOLVED")
    groups = values.groupby([rows[name] for name in by], dropna=False)
    measures = {"": "mean", "_spread": "std", "_count": "count"}
    every = {f"{name}{end}": (name, measure)
             for name in columns for end, measure in measures.items()}  # fmt: skip
    return groups.agg(runs=("solved", "size"), solved=("solved", "sum"), **every)


def summary_table(
    averages: pd.DataFrame, columns: Sequence[str], over: Sequence[str] = ()
) -> Table:
    """Format averages as text: mean and spread in one cell, `over` what was meant."""
    choices = averages.index.to_frame(index=False)
    rows = tuple(
        (*map(_shown, chosen), str(row["runs"]), str(row["solved"]),
         *(_mean(row, name) for name in columns))
        for chosen, row in zip(
            choices.itertuples(index=False), averages.to_dict("records"), strict=True
        )
    )  # fmt: skip
    title = f"mean +- spread over {', '.join(over)}" if over else "mean +- spread"
    return Table(title, (*choices, "runs", "solved", *columns), rows)


def rows_table(frame: pd.DataFrame, by: Sequence[str], columns: Sequence[str]) -> Table:
    """Format rows as text, a line each."""
    check_columns([*by, *columns], frame)
    head = list(dict.fromkeys([*by, "seed", "status", *columns]))
    values = frame.sort_values([*by, "seed"])[head].values.tolist()
    return Table("rows", tuple(head), tuple(tuple(map(_shown, row)) for row in values))


def _mean(row: Mapping[str, Any], name: str) -> str:
    """Return mean and spread of a column, and how many rows have it where not all do."""
    mean, spread, count = row[name], row[f"{name}_spread"], row[f"{name}_count"]
    if mean != mean:
        return "-"
    text = f"{mean:.4g}" if spread != spread else f"{mean:.4g} +- {spread:.2g}"
    return text if count == row["runs"] else f"{text} ({count})"


def _shown(value: Any) -> str:
    if value is None or value != value:
        return "-"
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else f"{value:.4g}"
    return str(value)


def _typed(value: Any) -> Any:
    """Return a number where it is one, so that 10, 10.0 and 1e1 are the same; null is `none`."""
    if value is None or value != value or value == "none":
        return None
    try:
        return float(value)
    except ValueError:
        return str(value)
