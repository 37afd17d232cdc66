"""Cells in the jobs of a Slurm cluster, by submitit."""

from __future__ import annotations

import os
import signal
import tempfile
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from types import FrameType
from typing import Any

from ..._support.interrupts import handled
from ..cells import Cell
from ..records import Follower, NotWritten, Outcome
from ..store import Store
from ..work import Work

LOCAL = "local"
# Seconds between two looks at the folder for what the jobs have written.
PAUSE = 0.5
UNSEEN = "a worker wrote there what cannot be seen here: name a folder that all share"


def check_slurm(scheduler: str | None, options: Mapping[str, Any]) -> None:
    """Raise ValueError where submitit finds no such cluster, or it does not take the options."""
    with tempfile.TemporaryDirectory() as folder:
        _executor(folder, scheduler, options)


def run_on_slurm(
    work: Work, cells: Sequence[Cell], jobs: int, scheduler: str | None, options: Mapping[str, Any]
) -> Generator[Outcome]:
    """Run cells in an array of `jobs` jobs, each with its share of them.

    Raises
    ------
    NotWritten
        If a job has ended well, and nothing of what it wrote can be seen here.
    """
    if scheduler == LOCAL:
        work = replace(work, parent=os.getpid())
    # Beside the folder: what submitit writes are logs and pickles.
    logs = work.folder.with_name(f"{work.folder.name}.slurm")
    shares = [cells[k::jobs] for k in range(min(jobs, len(cells)))]
    store = Store(work.folder)
    follower = store.follower()
    follower.look()
    handles = _executor(logs, scheduler, options).map_array(partial(_share, work), shares)
    over = False
    try:
        yield from _outcomes(store, follower, handles, shares)
        over = True
    finally:
        for handle in handles:
            if over:
                handle.exception()  # their last cell is written: they end by themselves
            elif not handle.done():
                handle.cancel()


def _executor(
    folder: str | os.PathLike[str], scheduler: str | None, options: Mapping[str, Any]
) -> Any:
    import submitit

    try:
        executor = submitit.AutoExecutor(folder=os.fspath(folder), cluster=scheduler or "slurm")
        executor.update_parameters(**options)
    except (AssertionError, NameError, RuntimeError, TypeError, ValueError) as error:
        raise ValueError(f"the engine slurm, by submitit: {error}") from error
    return executor


def _outcomes(
    store: Store, follower: Follower, handles: Sequence[Any], shares: Sequence[Sequence[Cell]]
) -> Iterator[Outcome]:
    """Yield the outcome of every cell as its record comes, and at the end those without one."""
    left = {cell.digest: handle for handle, share in zip(handles, shares, strict=True)
            for cell in share}  # fmt: skip
    while left:
        # First: a job that is over now has written before the folder is looked at.
        over = {id(handle): handle for handle in handles if handle.done()}
        done = follower.look()
        if len(over) == len(handles):
            done = store.outcomes()  # also what another process has compacted meanwhile
        for digest in [digest for digest in left if digest in done]:
            del left[digest]
            yield done[digest]
        if len(over) == len(handles):
            yield from _lost(store, left)
            return
        if left:
            time.sleep(PAUSE)


def _lost(store: Store, left: Mapping[str, Any]) -> Iterator[Outcome]:
    """Yield the cells that jobs have left, which are over, by a time-out or otherwise."""
    reasons: dict[int, str] = {}
    for digest, handle in left.items():
        if id(handle) not in reasons:
            error = handle.exception()
            if error is None:
                raise NotWritten(2, UNSEEN, str(store.folder))
            reasons[id(handle)] = f"its job has ended ({_first_line(error)})"
        yield Outcome(digest, lost=reasons[id(handle)])


def _first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0] if lines else 'no message'}"


def _share(work: Work, cells: Sequence[Cell]) -> None:
    """Run a share, without what another job has done: of a sweep before that was killed."""
    follower = Store(work.folder).follower()
    done: set[str] = set()
    with _time_outs_of_jobs():
        for cell in cells:
            done |= {one.cell for one in follower.look().values() if one.error is None}
            if cell.digest not in done:
                work(cell)


class _JobEnds(BaseException):
    """The error by which submitit ends a job, as nothing that a cell could have failed of."""


@contextmanager
def _time_outs_of_jobs() -> Iterator[None]:
    """Let what submitit raises at the signal of a time-out end the job, and no cell."""
    number = getattr(signal, "SIGUSR2", None)
    ends = None if number is None else signal.getsignal(number)
    if number is None or not callable(ends):
        yield
        return

    def handle(number: int, frame: FrameType | None) -> None:
        """Do what submitit does."""
        try:
            ends(number, frame)
        except Exception as error:
            raise _JobEnds from error

    try:
        with handled(number, handle):
            yield
    except _JobEnds as end:
        assert end.__cause__ is not None
        raise end.__cause__ from None
