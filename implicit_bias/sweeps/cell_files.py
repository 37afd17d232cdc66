"""The folder of a sweep: a Parquet file a cell, named by its digest, whole or not there."""

from __future__ import annotations

import io
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._extras import naming_extras, require
from .._files import check_writable, clear_unfinished, write_atomically
from ..reports.row import Column, row_schema

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

__all__ = ["CELL_COLUMNS", "NotWritten", "CellFiles", "sweep_schema"]

CELL_COLUMNS = (
    Column("cell", "string", "Digest of the choices and the data of the cell."),
    Column("cell_error", "string", "Why the cell failed; null where it did not."),
    Column("cell_seconds", "float64", "Of the whole cell, by the clock."),
)
PART = "*.parquet"
# 85 columns of a row: compressed, with dictionaries and statistics they take 19 kB and 3.6 ms of a
# processor in place of 9 kB and 1.3 ms.
LEAN = {"compression": "none", "use_dictionary": False, "write_statistics": False,
        "store_schema": False}  # fmt: skip


class NotWritten(OSError):
    """The file of a cell could not be written: nothing is wrong with the cell.

    An `OSError` with its number, its words and the path. Once the folder can be written again, the
    same call of `sweep` goes on where it was.

    Examples
    --------
    >>> error = ib.sweeps.NotWritten(28, "No space left on device", "runs/3f.parquet")
    >>> print(error)
    [Errno 28] No space left on device: 'runs/3f.parquet'
    >>> error.filename
    'runs/3f.parquet'
    """


class CellFiles:
    """The files of the cells of a sweep, in its folder.

    Parameters
    ----------
    folder : path

    Raises
    ------
    ValueError
        If nothing can be written there.
    MissingExtra
        Without pyarrow.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        require("pandas", "pyarrow")
        check_writable(folder, folder=True)
        self.folder = Path(folder).absolute()

    def open(self) -> None:
        """Make the folder; clear away what killed writers have left in it."""
        self.folder.mkdir(parents=True, exist_ok=True)
        clear_unfinished(self.folder)

    def path(self, cell: str) -> Path:
        """Return the file of a cell."""
        return self.folder / f"{cell}.parquet"

    def done(self) -> set[str]:
        """Return the digests of all cells whose files are there."""
        return {path.stem for path in self.folder.glob(PART)}

    def write(self, cell: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Write the rows of a cell: NaN is null.

        Raises
        ------
        NotWritten
            If the disk is full or the folder gone; files of other cells stay as they are.
        """
        import pyarrow as pa
        import pyarrow.parquet as pq

        # What the columns hold stands once, in `sweep_schema`, and not in each of many files.
        table = pa.Table.from_pylist([_plain(row) for row in rows], schema=_columns())
        content = io.BytesIO()
        pq.write_table(table, content, **LEAN)
        try:
            write_atomically(self.path(cell), content.getvalue())
        except OSError as error:
            raise NotWritten(error.errno, error.strerror, error.filename) from error

    def remove(self, cells: Iterable[str]) -> None:
        """Forget these cells."""
        for cell in cells:
            self.path(cell).unlink(missing_ok=True)

    def errors(self, cells: Iterable[str]) -> dict[str, str]:
        """Return the messages of those of these cells that failed."""
        table = _read([self.path(cell) for cell in cells], ["cell", "cell_error"])
        rows = table.to_pylist()
        return {row["cell"]: row["cell_error"] for row in rows if row["cell_error"] is not None}

    def frame(self, cells: Iterable[str]) -> pd.DataFrame:
        """Return the rows of these cells, in this order."""
        return _read([self.path(cell) for cell in cells]).to_pandas()


def sweep_schema() -> pa.Schema:
    """Return the columns of a sweep as a pyarrow schema, descriptions as metadata.

    Returns
    -------
    pyarrow.Schema
        The columns of a cell, ``cell``, ``cell_error`` and ``cell_seconds``, before those of
        `row_schema`.

    Examples
    --------
    >>> ib.sweeps.sweep_schema().names[:3]
    ['cell', 'cell_error', 'cell_seconds']
    """
    import pyarrow as pa

    types = {"string": pa.string(), "float64": pa.float64()}
    own = [pa.field(one.name, types[one.type], metadata={"doc": one.doc}) for one in CELL_COLUMNS]
    rows = row_schema()
    return pa.schema([*own, *rows], metadata=rows.metadata)


@naming_extras()
def _read(paths: Sequence[Path], columns: list[str] | None = None) -> pa.Table:
    import pyarrow as pa
    from pyarrow import dataset

    schema = _columns()
    files = [str(path) for path in paths]
    try:
        # Of files of other versions: columns that they have not are null.
        return dataset.dataset(files, schema=schema, format="parquet").to_table(columns=columns)
    except (pa.ArrowException, OSError) as error:
        raise ValueError(
            f"the files of the sweep cannot be read ({error}): delete the one that is damaged, and "
            "the sweep computes it again"
        ) from error


@cache
def _columns() -> pa.Schema:
    """Return the columns, without their descriptions."""
    import pyarrow as pa

    return pa.schema([field.remove_metadata() for field in sweep_schema()])


def _plain(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: None if isinstance(value, float) and math.isnan(value) else value
        for name, value in row.items()
    }
