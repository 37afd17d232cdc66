"""`sweep`: one model over a grid of its options, into one table."""

from __future__ import annotations

import logging
import os
import signal
import socket
import threading
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from .._support.doors import door, parameters, result
from .._support.extras import naming_extras, require
from .._support.kinds import anything, check_of, count
from .._support.shown import Shown
from .._support.words import EngineName
from ..options.choices import GridOptions, ModelName, RunOptions
from ..options.resolve import showing_options
from ..runs.progress import Progress, ProgressCallback, progress_of
from .cells import Cell, plan
from .ends import StepCallback
from .engines.engine import Engine, as_engine
from .grids import Grid
from .kept import Rule, as_rules, lacks, load_report
from .records import Outcome
from .store import Store
from .stored_data import stored
from .table import (
    averaged,
    choices_beside,
    measured,
    varying_beside_first,
    with_trainers,
)
from .work import CellSettings, Work

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from ..runs.reports.report import Report

log = logging.getLogger(__name__)

# Of what type checkers know more: the names of options, and their values.
_GRID, _ = check_of("Grid | Mapping[str, Any]", names={"Grid": Grid})


@result()
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
    ended : mapping of str to str
        Cells that a time limit or the callback has ended early, with which of them.
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
    ended: Mapping[str, str] = field(default_factory=dict)
    lost: Mapping[str, str] = field(default_factory=dict)
    finished: bool = True

    @door()
    def frame(
        self, *, over: str | Sequence[str] = (), columns: Sequence[str] | None = None
    ) -> pd.DataFrame:
        """Return the rows of the cells that are done, in the order of the grid; NaN where null.

        Parameters
        ----------
        over : str or sequence of str
            Options to average over, such as "seed": a row for all that share the others then.
        columns : sequence of str, optional
            What is averaged; by default what there usually is.

        Returns
        -------
        DataFrame
            With the columns of `Report.row`, and before them those of `sweep_schema`: ``cell``,
            ``cell_error`` (the message of a cell that failed, whose results are null) and others.
            Averages have the options that differ, ``runs``, ``solved`` (limits that are certified
            to the tolerance), and of every column its mean by its name, its standard deviation as
            ``NAME_spread`` and the runs that have a value as ``NAME_count``.

        Raises
        ------
        ValueError
            For a name that is no column, or none of numbers.

        Examples
        --------
        >>> grid = {"n_train": [20, 40], "seed": range(3)}
        >>> done = ib.sweep("linear", grid, out="runs", steps=0)
        >>> done.frame(over="seed", columns=["objective"])["objective_count"].tolist()
        [3, 3]
        """
        frame = Store(self.folder).frame(self.cells)
        away = (over,) if isinstance(over, str) else tuple(over)
        if not away:
            return frame if columns is None else frame[list(columns)]
        by = choices_beside(frame, away)
        names = [name for name in columns or measured(frame) if name not in by]
        return averaged(frame, by, names).reset_index()

    @door()
    def plot(self, *columns: str, by: str | Sequence[str] | None = None) -> Figure:
        """Draw columns against an option, with the spread of the runs as bars.

        Parameters
        ----------
        *columns : str
            A panel each; by default what there usually is.
        by : str or sequence of str, optional
            The option of the x axis, and those that there is a line for each value of. By default
            those that differ, the seed aside, and what follows from the first of them.

        Returns
        -------
        Figure

        Raises
        ------
        ValueError
            For a name that is no column, none of numbers, or too many lines.
        MissingExtra
            Without matplotlib.

        Examples
        --------
        >>> grid = {"n_train": [20, 40], "seed": range(3)}
        >>> done = ib.sweep("linear", grid, out="runs", steps=0)
        >>> done.plot("objective").savefig("objective.png")
        """
        require("matplotlib")
        from .figure import sweep_figure

        frame = self.frame()
        chosen = (by,) if isinstance(by, str) else by
        shared = with_trainers(frame, chosen or varying_beside_first(frame))
        names = columns or tuple(measured(frame))
        return sweep_figure(averaged(frame, shared, names), names)

    @door()
    def load(self, cell: str) -> Report:
        """Return the report of a cell, which `sweep` was to keep by ``save=("report",)``.

        Parameters
        ----------
        cell : str
            Its digest, an entry of `cells` and of the column ``cell``.

        Returns
        -------
        Report

        Raises
        ------
        ValueError
            If there is no such cell, or its report was not kept.

        Examples
        --------
        >>> done = ib.sweep("linear", {"seed": [0, 1]}, out="runs", n_train=20, steps=0,
        ...                 save=("report",))
        >>> done.load(done.cells[1]).limit.status.name
        'SOLVED'
        """
        return load_report(self.kept(cell))

    @door()
    def kept(self, cell: str) -> Path:
        """Return the folder of what was kept of a cell, `limit.safetensors` for instance.

        Parameters
        ----------
        cell : str
            Its digest.

        Returns
        -------
        Path
            There is no such folder where nothing was kept.

        Raises
        ------
        ValueError
            If there is no such cell.
        """
        if cell not in self.cells:
            raise ValueError(f"`cell`: {cell!r} is no cell of this sweep: take one of `cells`")
        return Store(self.folder).kept(cell)


@showing_options
@naming_extras()
@door(grid=_GRID, options=anything, jobs=count(1), save=anything)
def sweep(
    model: ModelName | str,
    grid: Grid | GridOptions,
    *,
    out: str | os.PathLike[str],
    jobs: int = 1,
    engine: EngineName | Engine = "joblib",
    retry: bool = False,
    time_limit: float | None = None,
    callback: StepCallback | None = None,
    save: str | Sequence[str] | Mapping[str, Rule | None] = (),
    sync: bool = False,
    progress: bool | ProgressCallback | Progress = False,
    **options: Unpack[RunOptions],  # type: ignore[misc]
) -> Sweep:
    """Run a model for many choices of its options, by default for every combination of values.

    Parameters
    ----------
    model : str
        A name of the table of models: "gln", "frelu", "linear", ...
    grid : mapping or Grid
        Options by their names, with the values that each takes in turn: a list, a range, or one
        such as "0:10"; or a function of the cell. `sweeps.zipped` and `sweeps.drawn` make others.
        Type checkers read a mapping as `sweeps.GridOptions`.
    out : path
        Folder, made if it is not there. Cells whose rows are there are not run again: a sweep that
        was cut short goes on where it was.
    jobs : int
        Cells at a time.
    engine : str or Engine
        The engine that runs the cells, or its name: "joblib" for processes of this machine.
    retry : bool
        True to run cells again that failed before, or that a time limit ended.
    time_limit : float, optional
        Seconds of a cell. Training ends there as by an interrupt, and the row says so in
        ``cell_ended``; a cell that has found nothing by then fails.
    callback : callable, optional
        ``callback(step, n_steps, log_loss)`` along the training of every cell, in the process that
        runs it; by StopIteration it ends the training, and the row is of what there is.
    save : sequence of str, or mapping of str to function
        What is kept of every cell beside its row: "report", which `Sweep.load` gives back, or
        single files of "limit", "network" and "trajectory", in `Sweep.kept`. A mapping has a rule
        for each, a function of the row that returns True for the cells in question. Cells that are
        done and lack something are run again.
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
    runs_with = as_engine(engine)
    of_cells = CellSettings(runs_with.threads, sync, time_limit, callback, as_rules(save))
    how = Settings(runs_with, of_cells, jobs, retry)
    return sweeping(model, grid, options, Store(out), how, shown)


@parameters(jobs=count(1))
@dataclass(frozen=True, eq=False)
class Settings:
    """The arguments of `sweep` that no digest follows from, checked.

    Raises
    ------
    ValueError
        If one is out of range.
    """

    engine: Engine
    cells: CellSettings
    jobs: int = 1
    retry: bool = False

    def done(self, outcome: Outcome | None) -> bool:
        """Return True for a cell that is not run again."""
        if outcome is None:
            return False
        return not (self.retry and (outcome.error is not None or outcome.out_of_time))


def sweeping(
    model: str,
    grid: Grid | Mapping[str, Any],
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
    unkept = _unkept(store, names, known, how)
    left = [cell for cell in cells if cell.digest in unkept or not how.done(known.get(cell.digest))]
    log.info("%d of %d cells are to be done in %s", len(left), len(cells), store.folder)
    work = Work(model, stored(given, store.arrays()), store.folder, how.cells)
    lost: dict[str, str] = {}
    with progress as shown:
        shown.stage(f"{model}: {len(left)} of {len(cells)} cells to do")
        finished = not left or _run(how.engine.outcomes(work, left, how.jobs), shown, left, lost)
        store.tidy()
    done = store.outcomes()
    own = [done[cell] for cell in names if cell in done]
    return Sweep(
        folder=store.folder,
        cells=names,
        n_skipped=len(cells) - len(left),
        n_done=len(own),
        failures={one.cell: one.error for one in own if one.error is not None},
        ended={one.cell: one.ended for one in own if one.ended is not None},
        lost=lost,
        finished=finished and not lost,
    )


def _unkept(
    store: Store, cells: Sequence[str], known: Mapping[str, Outcome], how: Settings
) -> set[str]:
    """Return the cells that are done, but of which something is to be kept and was not."""
    rules = how.cells.save
    done = [cell for cell in cells if cell in known and known[cell].error is None]
    if not (rules and done):
        return set()
    rows: dict[str, list[Mapping[str, Any]]] = {}
    for row in store.rows(done):
        rows.setdefault(row["cell"], []).append(row)
    return {cell for cell in done if lacks(rules, rows[cell], store.kept(cell))}


def _run(
    outcomes: Generator[Outcome], progress: Progress, left: Sequence[Cell], lost: dict[str, str]
) -> bool:
    """Run all cells, noting those that are lost; False if an interrupt came before the last."""
    progress.advance(0, len(left))
    try:
        with _interrupts_noted() as interrupted:
            for done, outcome in enumerate(outcomes, start=1):
                if outcome.lost is not None:
                    lost[outcome.cell] = outcome.lost
                progress.advance(done, len(left))
                if interrupted():
                    return False
    except KeyboardInterrupt:
        return False
    finally:
        # The engine ends its processes now, and not when this is collected.
        outcomes.close()
    return True


@contextmanager
def _interrupts_noted() -> Iterator[Callable[[], bool]]:
    """Yield a function that says whether Ctrl-C or SIGTERM has come.

    Their exception does not always arrive here: training that ends at that step is finished, and
    where it falls into a function that C calls, of ctypes for instance, it is lost. One run would
    only go on to its end, a sweep through all its cells. So the numbers of signals are read, which
    Python writes as they come.
    """
    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    told, telling = socket.socketpair()
    with told, telling:
        told.setblocking(False)
        telling.setblocking(False)
        usual = signal.set_wakeup_fd(telling.fileno(), warn_on_full_buffer=False)
        try:
            yield lambda: _interrupted(told)
        finally:
            signal.set_wakeup_fd(usual)


def _interrupted(told: socket.socket) -> bool:
    """Return True if signals have come of which one is an interrupt."""
    try:
        numbers = told.recv(4096)
    except BlockingIOError:
        return False
    # The time limit of a cell sends one to itself.
    own = bytes((getattr(signal, "SIGALRM", 0), signal.SIGINT))
    return bool({signal.SIGINT, signal.SIGTERM} & set(numbers.replace(own, b"")))
