"""The work of one cell, in whatever process an engine gives it to."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from .._version import __version__
from ..reports.row import COLUMNS, make_row
from ..run_model import run
from .cell_files import CellFiles
from .cells import Cell

__all__ = ["Outcome", "Work", "own_threads"]

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Outcome:
    """The outcome of a cell: its digest, with the message of one that failed."""

    cell: str
    error: str | None = None


@dataclass(frozen=True, eq=False)
class Work:
    """The work for each cell; it pickles.

    Attributes
    ----------
    model : str
    fixed : mapping
        Options that all cells share, and data and gates of the user.
    folder : Path
        Where the files of the cells are.
    threads : int
        Of BLAS and PyTorch, in every process.
    """

    model: str
    fixed: Mapping[str, Any]
    folder: Path
    threads: int

    def __call__(self, cell: Cell) -> Outcome:
        """Run the cell and write its file, unless it is there by now.

        Whatever ends its run is the message of its row, and ends no other.

        Raises
        ------
        NotWritten
            If the file cannot be written.
        KeyboardInterrupt
            If an interrupt came: an unfinished run is no result.
        """
        files = CellFiles(self.folder)
        if files.path(cell.digest).exists():
            return Outcome(cell.digest)
        fix_threads(self.threads, os.getpid())
        begun = time.perf_counter()
        rows, error = self._rows(cell)
        seconds = time.perf_counter() - begun
        self.write(cell, rows, error=error, seconds=seconds)
        return Outcome(cell.digest, error)

    def fail(self, cell: Cell, error: str) -> Outcome:
        """Write the row of a cell that its process did not live to write."""
        self.write(cell, [self._failed(cell)], error=error, seconds=None)
        return Outcome(cell.digest, error)

    def write(
        self, cell: Cell, rows: list[dict[str, Any]], *, error: str | None, seconds: float | None
    ) -> None:
        """Write the rows of a cell, its own columns before them."""
        own = {"cell": cell.digest, "cell_error": error, "cell_seconds": seconds}
        CellFiles(self.folder).write(cell.digest, [own | row for row in rows])

    def _rows(self, cell: Cell) -> tuple[list[dict[str, Any]], str | None]:
        try:
            report = run(self.model, **{**self.fixed, **cell.choices})  # type: ignore[type-var]
        except Exception as error:
            log.debug("cell %s failed", cell.digest, exc_info=True)
            return [self._failed(cell)], f"{type(error).__name__}: {error}"
        if not report.finished:
            raise KeyboardInterrupt
        return report.rows(), None

    def _failed(self, cell: Cell) -> dict[str, Any]:
        known = {column.name for column in COLUMNS}
        options = {name: value for name, value in cell.options.items() if name in known}
        return make_row(options | {"model": self.model, "version": __version__})


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
