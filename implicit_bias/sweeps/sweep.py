"""`sweep`: one model over a grid of its options, a file a cell."""

from __future__ import annotations

import logging
import os
from collections.abc import Generator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from .._doors import door, result
from .._extras import naming_extras
from .._kinds import anything
from .._shown import Shown
from ..options.choices import ModelName, RunOptions
from ..runs.progress import Progress, ProgressCallback, progress_of
from .cell_files import CellFiles
from .cells import plan
from .engines import Engine, as_engine
from .work import Outcome, Work

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Sweep", "sweep", "sweeping"]

log = logging.getLogger(__name__)


@result()
@dataclass(frozen=True, repr=False)
class Sweep(Shown):
    """The outcome of a sweep.

    Attributes
    ----------
    folder : Path
        A Parquet file a cell.
    cells : tuple of str
        The digests of all cells of the grid, which are the names of their files.
    n_skipped : int
        Cells whose files were there before.
    failures : mapping of str to str
        The messages of cells that failed, now or earlier, by digest.
    finished : bool
        False if Ctrl-C came: what was done by then is in the folder.

    Examples
    --------
    >>> done = ib.sweep("linear", {"n_train": [20, 40]}, out="runs", steps=0)
    >>> done.finished, len(done.cells), done.failures
    (True, 2, {})
    """

    folder: Path
    cells: tuple[str, ...]
    n_skipped: int
    failures: Mapping[str, str] = field(default_factory=dict)
    finished: bool = True

    def frame(self) -> pd.DataFrame:
        """Return the rows of the cells that are done, in the order of the grid; NaN where null.

        Columns are those of `Report.row`, and before them ``cell``, ``cell_error`` (the message of
        a cell that failed, whose results are null) and ``cell_seconds``.
        """
        files = CellFiles(self.folder)
        done = files.done()
        return files.frame(cell for cell in self.cells if cell in done)


@naming_extras()
@door(options=anything)
def sweep(
    model: ModelName,
    grid: Mapping[str, Any],
    *,
    out: str | os.PathLike[str],
    jobs: int = 1,
    engine: str | Engine = "joblib",
    retry: bool = False,
    progress: bool | ProgressCallback | Progress = False,
    **options: Unpack[RunOptions],
) -> Sweep:
    """Run a model for every combination of values of some of its options.

    Parameters
    ----------
    model : str
        A name of the table of models: "gln", "frelu", "linear", ...
    grid : mapping
        Options by their names, with the values that each takes in turn: a list, a range, or one
        such as "0:10".
    out : path
        Folder, made if it is not there, for a Parquet file a cell. Cells whose files are there are
        not run again: a sweep that was cut short goes on where it was.
    jobs : int
        Cells at a time.
    engine : str or Engine
        The engine that runs the cells, or its name: "joblib" for processes of this machine.
    retry : bool
        True to run cells again that failed before.
    progress : bool or callable
        True: a bar. A function is called as ``progress(stage, done, of)``, counting cells, with
        0, 0 as a stage begins.
    **options
        Options of `run` that all cells share, `X`, `y`, `data` and `gating` among them. With
        ``steps=0`` the limits alone are computed.

    Returns
    -------
    Sweep
        Also of a sweep that Ctrl-C has ended, `finished` then being False. A cell that fails is a
        row with its message and ends no other.

    Raises
    ------
    TypeError, ValueError, FileNotFoundError, MissingExtra
        If a name or a value is wrong, before any cell is run.
    NotWritten
        If the disk is full; all that was written before is there.

    Examples
    --------
    >>> done = ib.sweep("linear", {"seed": "0:3"}, out="runs", n_train=20, steps=0)
    >>> done.frame()["status"].tolist()
    ['SOLVED', 'SOLVED', 'SOLVED']
    """
    shown = progress_of(progress)
    return sweeping(
        model, grid, options, CellFiles(out), (as_engine(engine), jobs), shown, retry=retry
    )


def sweeping(
    model: str,
    grid: Mapping[str, Any],
    fixed: Mapping[str, Any],
    files: CellFiles,
    engine: tuple[Engine, int],
    progress: AbstractContextManager[Progress],
    *,
    retry: bool = False,
) -> Sweep:
    """Run a sweep from arguments that have been read; the engine comes with its number of jobs.

    Raises
    ------
    TypeError, ValueError, FileNotFoundError, NotWritten, MissingExtra
        For the reasons of `sweep`.
    """
    runs_with, jobs = engine
    if isinstance(jobs, bool) or not isinstance(jobs, int) or jobs < 1:
        raise ValueError(f"`jobs` must be a whole number from 1 on, got {jobs!r}")
    before = files.done()
    given = {name: value for name, value in fixed.items() if value is not None}
    cells = plan(model, grid, given, before)
    files.open()
    names = tuple(cell.digest for cell in cells)
    before &= set(names)
    if retry:
        failed = files.errors(before)
        files.remove(failed)
        before -= set(failed)
    left = [cell for cell in cells if cell.digest not in before]
    log.info("%d of %d cells are in %s already", len(before), len(cells), files.folder)
    work = Work(model, given, files.folder, runs_with.threads)
    with progress as shown:
        shown.stage(f"{model}: {len(left)} of {len(cells)} cells to do")
        finished = not left or _run(runs_with.outcomes(work, left, jobs), shown, len(left))
    failures = files.errors(files.done().intersection(names))
    return Sweep(files.folder, names, len(before), failures, finished)


def _run(outcomes: Generator[Outcome], progress: Progress, count: int) -> bool:
    """Run all cells; False if an interrupt came before the last."""
    progress.advance(0, count)
    try:
        for done, _ in enumerate(outcomes, start=1):
            progress.advance(done, count)
    except KeyboardInterrupt:
        return False
    finally:
        # The engine ends its processes now, and not when this is collected.
        outcomes.close()
    return True
