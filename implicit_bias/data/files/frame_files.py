"""Readers of tables, .csv and .parquet, one column of which is the label."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._support.solve import require_memory
from ..arrays import Floats
from ..table import FEWER, Table, listed, numbered

# Names of the column of labels by default.
LABELS = ("label", "labels", "target", "class", "y")


def read_csv(path: Path, label: str | None) -> Table:
    """Read a .csv file whose first line names its columns, `label` that of the labels.

    Raises
    ------
    ValueError, TypeError
        If it is no such table, or a column holds no numbers.
    """
    import pandas as pd

    # Numbers as text take about as many bytes as float64.
    require_memory(path.stat().st_size // 8, f"the table {str(path)!r}", FEWER)
    try:
        frame, (heads, *first) = pd.read_csv(path), _first_lines(path)
    except (ValueError, OSError, csv.Error) as error:  # of pandas and of decoding are ValueErrors
        reason = str(error).strip().splitlines()[0]
        raise ValueError(
            f"{str(path)!r} is no table of comma-separated values: {reason}"
        ) from error
    if len(frame.columns) < 2:
        raise ValueError(
            f"{str(path)!r} must have columns with commas between them, got one column, "
            f"{str(frame.columns[0])[:40]!r}"
        )
    nameless = [place for place, name in enumerate(frame.columns) if name == f"Unnamed: {place}"]
    if nameless:
        raise ValueError(
            f"column {nameless[0]} (from 0) of {str(path)!r} has no name: if it holds row numbers, "
            "write the table without them, to_csv(path, index=False); otherwise name it"
        )
    if all(_is_number(name) for name in frame.columns):
        raise ValueError(
            f"the first line of {str(path)!r} holds numbers, and must name the columns: put a line "
            "such as a,b,label before it"
        )
    if first and len(first[0]) > len(heads):  # pandas would take what is too much for an index
        raise ValueError(
            f"the first line of {str(path)!r} names {len(heads)} columns, and the next line has "
            f"{len(first[0])} fields: name each column once, and end no line with a comma"
        )
    _check_names(path, heads)
    return _as_table(path, frame, label)


def _first_lines(path: Path) -> list[list[str]]:
    """Return the fields of the first two lines that have any."""
    with path.open(newline="", encoding="utf-8-sig") as lines:
        return [*islice((one for one in csv.reader(lines) if "".join(one).strip() or one[1:]), 2)]


def _check_names(path: Path, columns: Sequence[str]) -> None:
    twice = [name for name in columns if columns.count(name) > 1]
    if twice:
        raise ValueError(f"{str(path)!r} has two columns {twice[0]!r}: rename one")


def read_parquet(path: Path, label: str | None) -> Table:
    """Read a .parquet file, `label` the name of its column of labels.

    Raises
    ------
    ValueError, TypeError
        If it is no such table, or a column holds no numbers.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        about = pq.read_metadata(path)
        # As a table and as an array; words are kept once each, whatever the number of rows.
        stored = sum(about.row_group(i).total_byte_size for i in range(about.num_row_groups)) // 8
        n_numbers = max(2 * about.num_rows * about.num_columns, stored)
        require_memory(n_numbers, f"the table {str(path)!r}", FEWER)
        schema = about.schema.to_arrow_schema()
        _check_names(path, schema.names)
        texts = pa.string(), pa.large_string(), pa.binary(), pa.large_binary()
        words = [column.name for column in schema if column.type in texts]
        frame = pq.read_table(path, read_dictionary=words).to_pandas()
    except (pa.ArrowException, OSError) as error:
        raise ValueError(f"{str(path)!r} is no Parquet file, or is damaged: {error}") from error
    return _as_table(path, frame, label)


def _as_table(path: Path, frame: Any, label: str | None) -> Table:
    columns = [str(name) for name in frame.columns]
    frame = frame.set_axis(columns, axis="columns")
    label = _label_column(path, columns, label)
    features = [name for name in columns if name != label]
    if len(frame) == 0 or not features:
        raise ValueError(f"{str(path)!r} must have rows and a column beside {label!r}, got none")
    labels, names = numbered(f"the labels, column {label!r} of {path.name},", _plain(frame[label]))
    X = np.column_stack([_numbers(path, name, frame[name]) for name in features])
    return Table(path.stem, X, labels, names, tuple(features), path.name)


def _label_column(path: Path, columns: Sequence[str], label: str | None) -> str:
    known = f"it has the columns {listed(columns)}"
    if label is not None:
        if label not in columns:
            raise ValueError(f"`label`: {str(path)!r} has no column {label!r}: {known}")
        return label
    found = [name for name in columns if name.lower() in LABELS]
    if len(found) != 1:
        what = f"{len(found)} columns" if found else "no column"
        raise ValueError(
            f"`label` must name the column of the labels, since {what} of {str(path)!r} "
            f"{'are' if found else 'is'} called {', '.join(LABELS[:-1])} or {LABELS[-1]}: {known}"
        )
    return found[0]


def _plain(series: Any) -> NDArray[Any]:
    """Labels as a NumPy array; strings and missing ones among them as objects."""
    from pandas.api.types import is_bool_dtype, is_numeric_dtype

    plain = is_numeric_dtype(series.dtype) and not series.isna().any()
    if plain and not is_bool_dtype(series.dtype):
        return np.asarray(series.to_numpy())
    found = series.astype(object)
    return np.asarray(found.where(found.notna(), None).to_numpy(dtype=object))


def _numbers(path: Path, name: str, series: Any) -> Floats:
    from pandas.api.types import is_complex_dtype, is_numeric_dtype

    if not is_numeric_dtype(series.dtype) or is_complex_dtype(series.dtype):
        raise TypeError(
            f"column {name!r} of {str(path)!r} must hold numbers, got {series.dtype}: leave it "
            "out, encode it as numbers, or name it as `label` if it is the label"
        )
    values: Floats = series.to_numpy(dtype=np.float64, na_value=np.nan)
    bad = np.flatnonzero(~np.isfinite(values))
    if len(bad):
        raise ValueError(
            f"column {name!r} of {str(path)!r} has {len(bad)} missing or infinite values, the "
            f"first in sample {bad[0]}: drop these samples or fill them in"
        )
    return values


def _is_number(name: Any) -> bool:
    try:
        float(name)
    except ValueError:
        return False
    return True
