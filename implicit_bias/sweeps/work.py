"""The work of one cell, in whatever process an engine gives it to."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from .._version import __version__
from ..reports.row import NAMES, make_row
from ..run_model import parted, resolve, run
from .cells import Cell
from .records import Record
from .store import Store
from .stored_data import opened

__all__ = ["Outcome", "Work", "own_threads"]

log = logging.getLogger(__name__)

# Seconds between two looks of a worker at the process of its sweep.
LOOK_SECONDS = 1.0


@dataclass(frozen=True)
class Outcome:
    """The outcome of a cell.

    Attributes
    ----------
    cell : str
        Its digest.
    error : str, optional
        The message of one that failed.
    lost : str, optional
        Of a cell without a record the reason: its process or its job has ended before it.
    """

    cell: str
    error: str | None = None
    lost: str | None = None


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
    threads : int
        Of BLAS and PyTorch, in every process.
    sync : bool
        True to wait for the disk with each record.
    parent : int, optional
        The process of the sweep, without which one of this machine ends.
    """

    model: str
    fixed: Mapping[str, Any]
    folder: Path
    threads: int
    sync: bool = False
    parent: int | None = None

    def __call__(self, cell: Cell) -> Outcome:
        """Run the cell and write its record.

        Whatever ends its run is the message of its row, and ends no other.

        Raises
        ------
        NotWritten
            If the record cannot be written.
        KeyboardInterrupt
            If an interrupt came: an unfinished run is no result.
        """
        if self.parent is not None:
            end_with(self.parent, os.getpid())
        fix_threads(self.threads, os.getpid())
        begun = time.perf_counter()
        rows, error = self._rows(cell)
        own = {
            "cell": cell.digest,
            "cell_error": error,
            "cell_seconds": time.perf_counter() - begun,
            "cell_written": time.time(),
        }
        _store(self.folder).write(Record(own, rows), sync=self.sync)
        return Outcome(cell.digest, error)

    def _rows(self, cell: Cell) -> tuple[list[dict[str, Any]], str | None]:
        try:
            report = run(self.model, **{**opened(self.fixed), **cell.choices})  # type: ignore[arg-type]
        except Exception as error:
            log.debug("cell %s failed", cell.digest, exc_info=True)
            return [self._failed(cell)], f"{type(error).__name__}: {error}"
        if not report.finished:
            raise KeyboardInterrupt
        return report.rows(), None

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
    while os.getppid() == parent if own else _exists(parent):
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


@cache
def fix_threads(threads: int, process: int) -> None:
    """Give BLAS, OpenMP and PyTorch so many threads in this process, once and for all."""
    _limit(threads)


@contextmanager
def own_threads(threads: int) -> Iterator[None]:
    """Fix the threads of cells in the caller's process, which gets its own back afterwards."""
    import torch

    before = torch.get_num_threads()
    limits = _limit(threads)
    try:
        yield
    finally:
        limits.restore_original_limits()
        torch.set_num_threads(before)
        fix_threads.cache_clear()


def _limit(threads: int) -> Any:
    import torch
    from threadpoolctl import threadpool_limits

    torch.set_num_threads(threads)
    return threadpool_limits(limits=threads)
