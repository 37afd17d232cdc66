"""Records of finished cells: a line of JSON each, written whole, in files that have one writer."""

from __future__ import annotations

import errno
import json
import logging
import math
import os
import platform
import re
import threading
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from .._support.files import from_json, open_plain

log = logging.getLogger(__name__)

ENDING = ".jsonl"
# What has ended a run early begins so, where it was its time limit.
TIME_LIMIT = "the time limit of"
# Of a file that was moved or removed by another machine after it was opened here.
GONE = (errno.ENOENT, errno.ESTALE)


class NotWritten(OSError):
    """The record of a cell could not be written: nothing is wrong with the cell.

    An `OSError` with its number, its words and the path. Once the folder can be written again, the
    same call of `sweep` goes on where it was.

    Examples
    --------
    >>> error = ib.sweeps.NotWritten(28, "No space left on device", "runs/_new/a.jsonl")
    >>> print(error)
    [Errno 28] No space left on device: 'runs/_new/a.jsonl'
    >>> error.filename
    'runs/_new/a.jsonl'
    """


@dataclass(frozen=True)
class Outcome:
    """The outcome of a cell.

    Attributes
    ----------
    cell : str
        Its digest.
    error : str, optional
        The message of one that failed.
    ended : str, optional
        What has ended its run early.
    lost : str, optional
        Of a cell without a record the reason: its process or its job has ended before it.
    """

    cell: str
    error: str | None = None
    ended: str | None = None
    lost: str | None = None

    @property
    def out_of_time(self) -> bool:
        """True where the time limit of a cell has ended it."""
        return self.ended is not None and self.ended.startswith(TIME_LIMIT)


@dataclass(frozen=True)
class Record:
    """What is kept of a cell that is done.

    Attributes
    ----------
    own : mapping
        Values of the columns that all cells have, of whatever model.
    rows : sequence of mapping
        Its rows: values by column, null where there is none.
    """

    own: Mapping[str, Any]
    rows: Sequence[Mapping[str, Any]]

    @property
    def outcome(self) -> Outcome:
        """The outcome of the cell."""
        return Outcome(self.own["cell"], self.own.get("cell_error"), self.own.get("cell_ended"))

    def line(self) -> bytes:
        """Return the record as a line of its own, whatever it is behind; null is left out."""
        content = _present(self.own) | {"rows": [_present(row) for row in self.rows]}
        return b"\n" + json.dumps(content, separators=(",", ":")).encode() + b"\n"

    @classmethod
    def of(cls, line: bytes) -> Record | None:
        """Read a line; None of one that is none, as a power cut may leave it."""
        try:
            content = from_json(line)
        except ValueError:
            return None
        if not (isinstance(content, dict) and isinstance(content.get("cell"), str)):
            return None
        rows = content.pop("rows", None)
        if not (isinstance(rows, list) and all(isinstance(row, dict) for row in rows)):
            return None
        return cls(content, rows)


def record_files(folder: Path) -> list[Path]:
    """Return the files of records in a folder, also those that a compaction has taken."""
    return sorted(path for path in folder.glob(f"*{ENDING}*"))


def read_records(path: Path, start: int = 0) -> Iterator[tuple[Record, int]]:
    """Yield the records from a byte on, each with the byte that it ends before.

    Lines that are torn are passed over: their cells are done again.
    """
    with open_plain(path) as content:
        end = content.seek(start)
        for line in content:
            if not line.endswith(b"\n"):
                return  # being written, or what a dead writer has left
            end += len(line)
            record = Record.of(line)
            if record is not None:
                yield record, end
            elif line.strip():
                log.warning("a torn record in %s: its cell is done again", path)


class Writer:
    """A file of records that nothing else writes to.

    It is opened for every record and closed after it, so that other machines see the record.

    Parameters
    ----------
    folder : Path
    sync : bool
        True to wait until the disk has each record.
    """

    def __init__(self, folder: Path, *, sync: bool) -> None:
        self._folder, self._sync = folder, sync
        self._path = self._new()

    def write(self, record: Record) -> None:
        """Append a record.

        Raises
        ------
        NotWritten
            If the disk is full or the folder gone; other records stay as they are.
        """
        line = record.line()
        try:
            try:
                self._append(line)
            except OSError as error:
                if error.errno not in GONE:
                    raise
                self._path = self._new()
                self._append(line)
        except OSError as error:
            raise NotWritten(error.errno, error.strerror, str(self._path)) from error

    def _append(self, line: bytes) -> None:
        with self._path.open("ab") as file:
            file.write(line)
            file.flush()
            if self._sync:
                os.fsync(file.fileno())

    def _new(self) -> Path:
        host = re.sub(r"[^\w-]", "-", platform.node())
        return self._folder / f"{host}-{os.getpid()}-{uuid.uuid4().hex[:12]}{ENDING}"


def writer_of(folder: Path, *, sync: bool) -> Writer:
    """Return the writer of this thread of this process."""
    return _writer(folder, sync, os.getpid(), threading.get_ident())


@cache
def _writer(folder: Path, sync: bool, process: int, thread: int) -> Writer:
    return Writer(folder, sync=sync)


class Follower:
    """The records of a folder as they come.

    Parameters
    ----------
    folder : Path
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read: dict[int, int] = {}

    def look(self) -> dict[str, Outcome]:
        """Return the outcomes of cells whose records are new since the last look."""
        found: dict[str, Outcome] = {}
        for path in record_files(self._folder):
            try:
                about = path.stat()
                start = self._read.get(about.st_ino, 0)
                if about.st_size < start:  # another file has that number now
                    start = 0
                for record, end in read_records(path, start):
                    found[record.outcome.cell] = record.outcome
                    self._read[about.st_ino] = end
            except FileNotFoundError:
                continue  # compacted meanwhile
        return found


def _present(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: value
        for name, value in row.items()
        if value is not None and not (isinstance(value, float) and math.isnan(value))
    }
