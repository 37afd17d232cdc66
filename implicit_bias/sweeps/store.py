"""The folder of a sweep: records as they come, compacted into one Parquet table.

Nothing is locked, and nothing that holds a row goes before a file that has the row as well is on
the disk. So any number of writers, readers and compactions may be at work on a file system that
several machines share: at worst a row is there twice for a while, and is read once.
"""

from __future__ import annotations

import io
import logging
import os
import re
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from .._support.extras import naming_extras, require
from .._support.files import check_plain, check_writable, clear_unfinished, write_atomically
from .records import Follower, Outcome, Record, read_records, record_files, writer_of
from .rows import CELL_COLUMNS, columns, in_order, newest, sweep_schema, tabled

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

log = logging.getLogger(__name__)

Result = TypeVar("Result")

TABLES = "*.parquet"
# Sweeps used to leave a table for every cell.
A_CELL = re.compile(r"[0-9a-f]{20}\.parquet")
# Folders that pyarrow and pandas pass over, when they read the folder of a sweep as one data set.
RECORDS, ARRAYS, KEPT = "_new", "_data", "_kept"
# Without a record for so long, no sweep is at work.
QUIET_SECONDS = 60.0
# How often a reader looks again where another process has compacted what it was about to read.
LOOKS = 10
OUTCOME = ("cell", "cell_error", "cell_ended")
# Tables that are held apart while many are read: each has 140 columns of its own.
APART = 200


class Store:
    """The rows of one or several sweeps, in a folder.

    Parameters
    ----------
    folder : path

    Raises
    ------
    ValueError
        If it is a file.
    MissingExtra
        Without pandas or pyarrow.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        require("pandas", "pyarrow")
        self.folder = Path(folder).absolute()
        if self.folder.exists() and not self.folder.is_dir():
            raise ValueError(f"{os.fspath(folder)!r} is a file: name the folder of a sweep")

    def check_writable(self) -> None:
        """Raise ValueError, with the reason, where nothing can be written."""
        check_writable(self.folder, folder=True)

    def open(self) -> None:
        """Make the folder; clear away what killed writers have left in it."""
        (self.folder / RECORDS).mkdir(parents=True, exist_ok=True)
        clear_unfinished(self.folder)

    def arrays(self) -> Path:
        """Return the folder of the arrays that the cells share."""
        return self.folder / ARRAYS

    def kept(self, cell: str) -> Path:
        """Return the folder of what is kept of a cell beside its rows."""
        return self.folder / KEPT / cell

    def is_empty(self) -> bool:
        """Return True where nothing of a sweep is in the folder."""
        return not (any(self.folder.glob(TABLES)) or self._records())

    def write(self, record: Record, *, sync: bool) -> None:
        """Add the record of a cell, by a file that this thread alone writes to.

        Raises
        ------
        NotWritten
            If the disk is full or the folder gone; other records stay as they are.
        """
        writer_of(self.folder / RECORDS, sync=sync).write(record)

    def follower(self) -> Follower:
        """Return a follower of the records that are not compacted."""
        return Follower(self.folder / RECORDS)

    def outcomes(self) -> dict[str, Outcome]:
        """Return the outcomes of all cells that are done."""
        table = self._read([column.name for column in CELL_COLUMNS])
        told = zip(*(table[name].to_pylist() for name in OUTCOME), strict=True)
        return {cell: Outcome(cell, error, ended) for cell, error, ended in told}

    def frame(self, cells: Sequence[str] | None = None) -> pd.DataFrame:
        """Return the rows of these cells, in this order; by default all, as they were done."""
        table = self._read(columns().names)
        table = table.sort_by("cell_written") if cells is None else in_order(table, cells)
        return table.to_pandas(self_destruct=True)

    def rows(self, cells: Sequence[str]) -> Iterator[Mapping[str, Any]]:
        """Yield the rows of these cells, in this order; None where null."""
        for batch in in_order(self._read(columns().names), cells).to_batches(max_chunksize=1000):
            yield from batch.to_pylist()

    def tidy(self) -> None:
        """Bring all rows into one table, or leave them as they are where that cannot be written."""
        try:
            self.compact()
        except OSError as error:
            # Of two at the same time, one may find that the other has been faster.
            if not isinstance(error, FileNotFoundError):
                log.warning("the rows in %s stay apart: %s", self.folder, error)

    def compact(self) -> None:
        """Bring all rows into one table.

        Raises
        ------
        OSError
            If it cannot be written; no row is lost then.
        """
        tables = sorted(self.folder.glob(TABLES))
        taken = {path: path.stat().st_size for path in map(_taken, self._records())}
        if not taken and len(tables) <= 1:
            return
        table = self._gathered(tables, list(taken), columns().names)
        content = _parquet(table)
        name = f"rows-{uuid.uuid4().hex[:12]}.parquet"
        write_atomically(self.folder / name, content)
        for path in tables:
            path.unlink(missing_ok=True)
        for path, size in taken.items():
            if _size(path) == size:  # else its writer was late: the next compaction has the rest
                path.unlink(missing_ok=True)

    def quiet(self) -> bool:
        """Return True where no record has come for a while, so that no sweep is at work."""
        now = time.time()
        return all(now - _written(path) > QUIET_SECONDS for path in self._records())

    def _records(self) -> list[Path]:
        return record_files(self.folder / RECORDS)

    def _read(self, names: Sequence[str]) -> pa.Table:
        return _looking(
            lambda: self._gathered(sorted(self.folder.glob(TABLES)), self._records(), names)
        )

    @naming_extras()
    def _gathered(
        self, tables: Iterable[Path], records: Iterable[Path], names: Sequence[str]
    ) -> pa.Table:
        """Return the rows of these files, of each cell those of one record."""
        found: list[Any] = [columns(tuple(names)).empty_table()]
        for number, path in enumerate(tables, start=1):
            found.append(_table(path, names))
            if number % APART == 0:
                found = [newest(found).combine_chunks()]
        for path in records:
            found += _reading(path, lambda path=path: list(  # type: ignore[misc]
                tabled((record for record, _ in read_records(path)), names)))  # fmt: skip
        return newest(found)


def _looking(read: Callable[[], Result]) -> Result:
    """Read the files that there are; again where a compaction has removed one meanwhile."""
    for _ in range(LOOKS - 1):
        try:
            return read()
        except FileNotFoundError:
            time.sleep(0.05)
    return read()


def _table(path: Path, names: Sequence[str]) -> pa.Table:
    from pyarrow import parquet

    def read() -> pa.Table:
        check_plain(path)
        if not {"cell", "model"} <= set(parquet.read_schema(path).names):
            raise ValueError("it has no columns `cell` and `model`")
        # Of any version: columns that it has not are null.
        return parquet.read_table(path, schema=columns(tuple(names)), partitioning=None)

    try:
        return _reading(path, read)
    except ValueError:
        if not A_CELL.fullmatch(path.name):
            raise
        log.warning("%s is damaged: its cell is done again", path)
        return columns(tuple(names)).empty_table()


def _reading(path: Path, read: Callable[[], Result]) -> Result:
    import pyarrow as pa

    try:
        return read()
    except FileNotFoundError:
        raise
    except (pa.ArrowException, ValueError, TypeError, OSError) as error:
        raise ValueError(
            f"{str(path)!r} cannot be read as rows of a sweep ({error}): delete it if it is damaged"
            ", and the sweep computes its cells again; move it if it is something else"
        ) from error


def _parquet(table: pa.Table) -> bytes:
    from pyarrow import parquet

    content = io.BytesIO()
    parquet.write_table(table.cast(sweep_schema()), content, compression="zstd")
    return content.getvalue()


def _taken(path: Path) -> Path:
    """Take a file of records from its writer, who begins it anew."""
    taken = path.with_name(f"{path.name}.{uuid.uuid4().hex[:12]}")
    path.rename(taken)
    return taken


def _size(path: Path) -> int | None:
    """Return the size of a file as it is on the disk; one that was opened is not out of a cache."""
    try:
        with path.open("rb") as content:
            return os.fstat(content.fileno()).st_size
    except FileNotFoundError:
        return None


def _written(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return 0.0
