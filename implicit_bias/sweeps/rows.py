"""The rows of a sweep as Arrow tables: their columns, and one record for each cell."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from .._support.extras import naming_extras
from ..runs.reports.row import Column, row_schema
from .records import Record

if TYPE_CHECKING:
    import pyarrow as pa

CELL_COLUMNS = (
    Column("cell", "string", "Digest of the choices and the data of the cell."),
    Column("cell_error", "string", "Why the cell failed; null where it did not."),
    Column("cell_ended", "string", "What ended its run early; null where it came to its end."),
    Column("cell_seconds", "float64", "Of the whole cell, by the clock."),
    Column("cell_written", "float64", "When it was done, in seconds since 1970, by its machine."),
)
# Records taken into an Arrow table at a time: as Python objects they take 20 times as much.
CHUNK = 4096


@naming_extras()
def sweep_schema() -> pa.Schema:
    """Return the columns of a sweep as a pyarrow schema, descriptions as metadata.

    Returns
    -------
    pyarrow.Schema
        The columns of a cell, ``cell``, ``cell_error``, ``cell_ended``, ``cell_seconds`` and
        ``cell_written``, before those of `row_schema`.

    Raises
    ------
    MissingExtra
        Without pyarrow.

    Examples
    --------
    >>> ib.sweeps.sweep_schema().names[:3]
    ['cell', 'cell_error', 'cell_ended']
    """
    import pyarrow as pa

    types = {"string": pa.string(), "float64": pa.float64()}
    own = [pa.field(one.name, types[one.type], metadata={"doc": one.doc}) for one in CELL_COLUMNS]
    rows = row_schema()
    return pa.schema([*own, *rows], metadata=rows.metadata)


@cache
def columns(names: tuple[str, ...] | None = None) -> pa.Schema:
    """Return the columns of these names, by default all, without their descriptions."""
    import pyarrow as pa

    every = sweep_schema()
    chosen = every.names if names is None else names
    return pa.schema([every.field(name).remove_metadata() for name in chosen])


def tabled(records: Iterable[Record], names: Sequence[str]) -> Iterator[pa.Table]:
    """Yield records as tables with the columns of these names, many in each.

    Raises
    ------
    ArrowException, TypeError
        For a value that is none of its column.
    """
    import pyarrow as pa

    schema = columns(tuple(names))
    rows = ({**row, **record.own} for record in records for row in record.rows)
    while chunk := list(islice(rows, CHUNK)):
        yield pa.Table.from_pylist(chunk, schema=schema)


def newest(tables: Sequence[pa.Table]) -> pa.Table:
    """Return the rows of the tables together, of each cell those of one record.

    A record that has not failed goes before one that has, then the newer one. Tables have the
    columns `CELL_COLUMNS`; later ones go before earlier ones with the same record.
    """
    import pandas as pd
    import pyarrow as pa

    table = pa.concat_tables(tables)
    part = np.repeat(np.arange(len(tables)), [len(one) for one in tables])
    cell, _ = pd.factorize(table["cell"].to_numpy(), use_na_sentinel=False)
    good = table["cell_error"].is_null().to_numpy()
    written = np.nan_to_num(table["cell_written"].to_numpy(), nan=-np.inf)
    order = np.lexsort((part, written, good, cell))
    # The last of every cell in this order is of the record that stays.
    last = np.flatnonzero(np.diff(cell[order], append=-1))
    stays = order[last][cell]
    same = (part == part[stays]) & (written == written[stays]) & (good == good[stays])
    return table if same.all() else table.filter(pa.array(same))


def in_order(table: pa.Table, cells: Sequence[str]) -> pa.Table:
    """Return the rows of these cells, in the order of the cells; some may have no rows."""
    import pandas as pd

    places = pd.Index(cells).get_indexer(table["cell"].to_pandas())
    order = np.argsort(places, kind="stable")
    return table.take(order[np.count_nonzero(places < 0) :])
