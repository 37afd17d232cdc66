"""`sweep`: one model over a grid of its options, into one table."""

from __future__ import annotations

import logging
import os
from collections.abc import Generator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from .._extras import naming_extras
from .._shown import Shown
from ..options.choices import ModelName, RunOptions
from ..runs.progress import Progress, ProgressCallback, progress_of
from .cells import Cell, plan
from .engines import Engine, as_engine
from .store import Store
from .stored_data import stored
from .work import Outcome, Work

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Settings", "Sweep", "sweep", "sweeping"]

log = logging.getLogger(__name__)


@dataclass(frozen=True, repr=False)
class Sweep(Shown):
    """The outcome of a sweep.

    Attributes
    ----------
    folder : Path
        The rows of this sweep and of others.
    cells : tuple of str
        The digests of all cells of the grid, the column ``cell`` of their rows.
    n_skipped : int
        Cells whose rows were there before.
    n_done : int
        Cells whose rows are there now.
    failures : mapping of str to str
        The messages of cells that failed, now or earlier, by digest.
    lost : mapping of str to str
        Cells without rows whose process or job was ended from outside, with the reason: the same
        call runs them.
    finished : bool
        False if Ctrl-C came, or cells were lost: what was done is in the folder.

    Examples
    --------
    >>> done = ib.sweep("linear", {"n_train": [20, 40]}, out="runs", steps=0)
    >>> done.finished, len(done.cells), done.failures
    (True, 2, {})
    """

    folder: Path
    cells: tuple[str, ...]
    n_skipped: int
    n_done: int
    failures: Mapping[str, str] = field(default_factory=dict)
    lost: Mapping[str, str] = field(default_factory=dict)
    finished: bool = True

    def frame(self) -> pd.DataFrame:
        """Return the rows of the cells that are done, in the order of the grid; NaN where null.

        Columns are those of `Report.row`, and before them ``cell``, ``cell_error`` (the message of
        a cell that failed, whose results are null), ``cell_seconds`` and ``cell_written``.
        """
        return Store(self.folder).frame(self.cells)


@naming_extras()
def sweep(
    model: ModelName,
    grid: Mapping[str, Any],
    *,
    out: str | os.PathLike[str],
    jobs: int = 1,
    engine: str | Engine = "joblib",
    retry: bool = False,
    sync: bool = False,
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
        Folder, made if it is not there. Cells whose rows are there are not run again: a sweep that
        was cut short goes on where it was.
    jobs : int
        Cells at a time.
    engine : str or Engine
        The engine that runs the cells, or its name: "joblib" for processes of this machine.
    retry : bool
        True to run cells again that failed before.
    sync : bool
        True to wait for the disk after every cell, so that a power cut takes none.
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
    how = Settings(as_engine(engine), jobs, retry, sync)
    return sweeping(model, grid, options, Store(out), how, shown)


@dataclass(frozen=True)
class Settings:
    """The arguments of `sweep` that no cell follows from, checked.

    Raises
    ------
    ValueError
        If one is out of range.
    """

    engine: Engine
    jobs: int = 1
    retry: bool = False
    sync: bool = False

    def __post_init__(self) -> None:
        jobs = self.jobs
        if isinstance(jobs, bool) or not isinstance(jobs, int) or jobs < 1:
            raise ValueError(f"`jobs` must be a whole number from 1 on, got {jobs!r}")


def sweeping(
    model: str,
    grid: Mapping[str, Any],
    fixed: Mapping[str, Any],
    store: Store,
    how: Settings,
    progress: AbstractContextManager[Progress],
) -> Sweep:
    """Run a sweep from arguments that have been read.

    Raises
    ------
    TypeError, ValueError, FileNotFoundError, NotWritten, MissingExtra
        For the reasons of `sweep`.
    """
    store.check_writable()
    given = {name: value for name, value in fixed.items() if value is not None}
    known = store.outcomes()
    cells = plan(model, grid, given, known)
    store.open()
    names = tuple(cell.digest for cell in cells)
    before = {cell for cell in names if cell in known and not (how.retry and known[cell])}
    left = [cell for cell in cells if cell.digest not in before]
    log.info("%d of %d cells are in %s already", len(before), len(cells), store.folder)
    work = Work(model, stored(given, store.arrays()), store.folder, how.engine.threads, how.sync)
    lost: dict[str, str] = {}
    with progress as shown:
        shown.stage(f"{model}: {len(left)} of {len(cells)} cells to do")
        finished = not left or _run(how.engine.outcomes(work, left, how.jobs), shown, left, lost)
        store.compact()
    done = store.outcomes()
    return Sweep(
        folder=store.folder,
        cells=names,
        n_skipped=len(before),
        n_done=sum(cell in done for cell in names),
        failures={cell: error for cell in names if (error := done.get(cell)) is not None},
        lost=lost,
        finished=finished and not lost,
    )


def _run(
    outcomes: Generator[Outcome], progress: Progress, left: Sequence[Cell], lost: dict[str, str]
) -> bool:
    """Run all cells, noting those that are lost; False if an interrupt came before the last."""
    progress.advance(0, len(left))
    try:
        for done, outcome in enumerate(outcomes, start=1):
            if outcome.lost is not None:
                lost[outcome.cell] = outcome.lost
            progress.advance(done, len(left))
    except KeyboardInterrupt:
        return False
    finally:
        # The engine ends its processes now, and not when this is collected.
        outcomes.close()
    return True
