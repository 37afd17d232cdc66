"""What a sweep costs beside the work of its cells: 100,000 of them, interrupted in the middle.

    python -m experiments.sweeps
    python -m experiments.sweeps --cells 1000 --out sweeps.csv

The run of a cell hands out a report of before. The cells are planned and done up to an interrupt,
gone on with, and read, by one process; and some by two, beside `joblib.Parallel` with a function
that returns at once. A thousand cells with their runs, limits of 20 samples each, stand for scale.
A row a stage: seconds by the clock and of the processor, milliseconds of it a cell, and the largest
memory of the process so far.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

import click

from experiments.tables import keep_rows, out_file
from implicit_bias import run, sweep
from implicit_bias.runs.reports.report import Report
from implicit_bias.sweeps import read_rows
from implicit_bias.sweeps.cells import Cell, plan
from implicit_bias.sweeps.ends import Ends
from implicit_bias.sweeps.engines.processes import run_on_processes
from implicit_bias.sweeps.store import Store
from implicit_bias.sweeps.table import averaged
from implicit_bias.sweeps.work import CellSettings, Work

SMALL = {"n_train": 20, "n_val": 20, "steps": 0}
# Cells by two processes, and cells with their runs.
BY_TWO, RUN = 5000, 1000
READ = "import sys; from implicit_bias.sweeps import read_rows; print(len(read_rows(sys.argv[1])))"


@click.command()
@click.option("--cells", default=100_000, show_default=True)
@out_file(Path("runs/sweeps.csv"))
def main(cells: int, out: Path) -> None:
    """Print and write a row a stage."""
    with tempfile.TemporaryDirectory() as folder:
        keep_rows(_stages(cells, Path(folder)), out, digits=".4g")


class _Clock:
    """Seconds since the last row."""

    def __init__(self) -> None:
        self._clock, self._processor = time.perf_counter(), time.process_time()

    def row(self, stage: str, cells: int) -> dict[str, Any]:
        """Return the row of a stage that ends now."""
        clock, processor = time.perf_counter(), time.process_time()
        seconds, own = clock - self._clock, processor - self._processor
        self._clock, self._processor = clock, processor
        return {
            "stage": stage,
            "cells": cells,
            "seconds": round(seconds, 3),
            "processor_seconds": round(own, 3),
            "ms_a_cell": round(1e3 * own / cells, 4),
            "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        }


def _stages(cells: int, folder: Path) -> Iterator[dict[str, Any]]:
    ready = _ready()
    list(_swept("", 2, folder / "first"))  # what loads once is loaded
    yield _Clock().row("nothing: what is loaded", 1)
    left = cells // 2

    def until(model: str, **options: Any) -> Report:
        """Return the report of before; press Ctrl-C in the middle."""
        nonlocal left
        left -= 1
        if left < 0:
            raise KeyboardInterrupt
        return ready

    out = folder / "runs"
    with patch("implicit_bias.sweeps.work.run", until):
        yield from _swept("begun and interrupted", cells, out, done=cells // 2)
        left = cells
        yield from _swept("gone on with", cells, out, done=cells - cells // 2)
    clock = _Clock()
    frame = read_rows(out)
    yield clock.row("read as a frame", len(frame))
    averaged(frame, ["model"], ["objective", "gap"])
    yield clock.row("averaged", cells)
    subprocess.run([sys.executable, "-c", READ, str(out)], check=True, stdout=subprocess.DEVNULL)
    yield clock.row("read by a process that starts", cells)
    sizes = [path.stat().st_size for path in out.rglob("*") if path.is_file()]
    yield {"stage": f"{len(sizes)} file of {sum(sizes)} bytes", "cells": cells}
    yield from _by_two(min(BY_TWO, cells), folder / "two")
    yield from _swept("with their runs", min(RUN, cells), folder / "run")


def _swept(
    name: str, cells: int, folder: Path, *, done: int | None = None
) -> Iterator[dict[str, Any]]:
    """Sweep, and yield the rows of planning and of the cells."""
    rows: list[dict[str, Any]] = []
    clock = _Clock()

    def told(stage: str, count: int, of: int) -> None:
        """Take the time as the cells begin."""
        if not rows:
            rows.append(clock.row(f"{name}: planned", cells))

    sweep(
        "linear", {"seed": range(cells)}, out=folder, progress=told, n_train=20, n_val=20, steps=0
    )
    yield from rows
    yield clock.row(f"{name}: done, into the table", done or cells)


class ReadyWork(Work):
    """The work for each cell but its run."""

    def _run(self, cell: Cell, ends: Ends) -> Report:
        return _ready()


@cache
def _ready() -> Report:
    """Return the report that every run hands out."""
    return run("linear", n_train=20, n_val=20, steps=0)


def _nothing(cell: Cell) -> str:
    """Return at once."""
    return cell.digest


def _by_two(cells: int, folder: Path) -> Iterator[dict[str, Any]]:
    """Yield what a pool of two processes takes, alone and for the cells of a sweep."""
    from joblib import Parallel, delayed

    planned: Sequence[Cell] = plan("linear", {"seed": range(cells)}, SMALL)
    Store(folder).open()
    work = ReadyWork("linear", SMALL, folder, CellSettings())
    list(run_on_processes(work, planned[:10], 2, None, {}))  # loads PyTorch in both
    clock = _Clock()
    pool = Parallel(n_jobs=2, return_as="generator_unordered", batch_size=1)
    list(pool(delayed(_nothing)(cell) for cell in planned))
    yield clock.row("by two processes: joblib alone", cells)
    list(run_on_processes(work, planned, 2, None, {}))
    yield clock.row("by two processes: cells", cells)


if __name__ == "__main__":
    # By its name: other processes cannot import what is defined in the main module.
    from experiments.sweeps import main as main_by_name

    main_by_name()
