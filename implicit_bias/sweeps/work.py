"""The work of one cell, in whatever process an engine gives it to."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from .._support import __version__
from .._support.doors import parameters
from .._support.kinds import anything, count, positive
from .._support.solve import few_threads
from ..models.run_model import parted, resolve, run
from ..runs.reports.report import Report
from ..runs.reports.row import NAMES, make_row
from .cells import Cell
from .ends import Ends, StepCallback
from .kept import Rule, keep, named
from .records import Outcome, Record
from .store import Store
from .stored_data import opened

log = logging.getLogger(__name__)

# Seconds between two looks of a worker at the process of its sweep.
LOOK_SECONDS = 1.0


@parameters(threads=count(1), time_limit=positive, save=anything)
@dataclass(frozen=True, eq=False)
class CellSettings:
    """The way in which every cell is run and kept; no digest follows from it.

    Attributes
    ----------
    threads : int
        Of BLAS and PyTorch, in every process.
    sync : bool
        True to wait for the disk with each record.
    time_limit : float, optional
        Seconds of a run.
    callback : callable, optional
        Of the user, which may end training.
    save : mapping
        What is kept of the cells that a rule names, None being all.

    Raises
    ------
    TypeError, ValueError
        If one is out of range.
    """

    threads: int = 1
    sync: bool = False
    time_limit: float | None = None
    callback: StepCallback | None = None
    save: Mapping[str, Rule | None] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Work:
    """The work for each cell; it pickles, and is small: data of the user's own are in files.

    Attributes
    ----------
    model : str
    fixed : mapping
        Options that all cells share, gates of the user, and where the user's data are.
    folder : Path
        Where the records go.
    how : CellSettings
    parent : int, optional
        The process of the sweep, without which one of this machine ends.
    """

    model: str
    fixed: Mapping[str, Any]
    folder: Path
    how: CellSettings
    parent: int | None = None

    def __call__(self, cell: Cell) -> Outcome:
        """Run the cell and write its record.

        Whatever ends its run is the message of its row, and ends no other.

        Raises
        ------
        NotWritten
            If the record, or what is to be kept, cannot be written.
        KeyboardInterrupt
            If an interrupt came: an unfinished run is no result.
        """
        if self.parent is not None:
            end_with(self.parent, os.getpid())
        store, ends = _store(self.folder), Ends(self.how.time_limit, self.how.callback)
        begun = time.perf_counter()
        try:
            with few_threads(self.how.threads):
                report = self._run(cell, ends)
            rows = report.rows()
            wanted = named(self.how.save, rows)
            error, ended = None, None if report.finished else ends.reason
        except Exception as failure:
            log.debug("cell %s failed", cell.digest, exc_info=True)
            report, rows, wanted = None, [self._failed(cell)], set()
            error, ended = f"{type(failure).__name__}: {failure}", ends.reason
        own = {
            "cell": cell.digest,
            "cell_error": error,
            "cell_ended": ended,
            "cell_seconds": time.perf_counter() - begun,
            "cell_written": time.time(),
        }
        if report is not None:
            keep(report, wanted, store.kept(cell.digest))
        record = Record(own, rows)
        store.write(record, sync=self.how.sync)
        return record.outcome

    def _run(self, cell: Cell, ends: Ends) -> Report[Any, Any, Any, Any]:
        """Run the cell, as far as it may."""
        options: Any = {**opened(self.fixed), **cell.choices}
        try:
            with ends.watching() as progress:
                report = run(self.model, **options, progress=progress)  # type: ignore[type-var]
        except KeyboardInterrupt:
            if ends.reason is None:
                raise
            raise TimeoutError(f"nothing was found within {ends.reason}") from None
        if not report.finished and ends.reason is None:
            raise KeyboardInterrupt
        return report

    def _failed(self, cell: Cell) -> dict[str, Any]:
        """Return the row of a cell without a result: its options, as far as they can be read."""
        plain = parted(self.fixed)[1]
        options = vars(resolve(self.model, {**plain, **cell.choices}).options)
        known = {name: value for name, value in options.items() if name in NAMES}
        return make_row(known | {"model": self.model, "version": __version__})


@cache
def _store(folder: Path) -> Store:
    return Store(folder)


@cache
def end_with(parent: int, process: int) -> None:
    """End this process, from now on, as soon as that of the sweep is gone.

    A worker would go on with what it has, and then wait for more, for minutes.
    """
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: int) -> None:
    own = os.getppid() == parent
    while (os.getppid() == parent) if own else _exists(parent):
        time.sleep(LOOK_SECONDS)
    os._exit(1)


def _exists(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
