"""Cells on the processes of this machine, by joblib."""

from __future__ import annotations

import inspect
import os
from collections.abc import Generator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..._support.words import nearest
from ..cells import Cell
from ..records import Outcome
from ..store import Store
from ..work import Work

ENDED = "the process that ran the cell was ended from outside: by lack of memory, or by hand"
# Arguments of joblib.Parallel that the sweep sets, and what says them instead.
SET = {"n_jobs": "give `jobs`", "return_as": "it is set here", "batch_size": "it is set here"}


def check_processes(scheduler: str | None, options: Mapping[str, Any]) -> None:
    """Raise ValueError or TypeError for options that joblib.Parallel does not take."""
    if not options:
        return
    from joblib import Parallel

    check_names("joblib.Parallel", Parallel.__init__, options, SET)
    try:
        Parallel(**options)
    except (TypeError, ValueError) as error:
        raise type(error)(f"joblib.Parallel does not take these `options`: {error}") from error


def check_names(
    whose: str, function: Any, options: Mapping[str, Any], own: Mapping[str, str]
) -> None:
    """Raise ValueError for the first option that a function does not name, or that is set here."""
    known = [name for name, one in inspect.signature(function).parameters.items()
             if one.kind is not one.VAR_KEYWORD and name != "self" and name not in own]  # fmt: skip
    for name in options:
        if name in own:
            raise ValueError(f"the engine's option `{name}` is the sweep's own: {own[name]}")
        if name not in known:
            raise ValueError(f"{whose} has no option `{name}`{nearest(name, known)}")


def run_on_processes(
    work: Work, cells: Sequence[Cell], jobs: int, scheduler: str | None, options: Mapping[str, Any]
) -> Generator[Outcome]:
    """Run cells in processes of this machine, one of them in this process.

    A process that is killed costs the cell that it ran. It is tried once more, alone.
    """
    if jobs == 1:
        yield from map(work, cells)
        return
    work = replace(work, parent=os.getpid())
    follower = Store(work.folder).follower()
    follower.look()
    left = {cell.digest: cell for cell in cells}
    while left:
        for outcome in _pool(work, list(left.values()), jobs, options):
            if left.pop(outcome.cell, None):
                yield outcome
        yield from _written(follower.look(), left)
        # Cells are begun in their order: one of the first that are left has ended its process.
        for cell in list(left.values())[:jobs]:
            ended = Outcome(cell.digest, lost=ENDED)
            yield next(_pool(work, [cell], jobs, options), None) or ended
            del left[cell.digest]


def _written(found: Mapping[str, Outcome], left: dict[str, Cell]) -> Generator[Outcome]:
    """Yield the outcomes of cells whose processes were ended after they had written."""
    for digest, outcome in found.items():
        if left.pop(digest, None):
            yield outcome


def _pool(
    work: Work, cells: Sequence[Cell], jobs: int, options: Mapping[str, Any]
) -> Generator[Outcome]:
    """Yield the outcomes of a pool of processes, those that there were if one of them has died."""
    from joblib import Parallel, delayed
    from joblib.externals.loky.process_executor import BrokenProcessPool

    pool = Parallel(n_jobs=jobs, return_as="generator_unordered", batch_size=1, **options)
    try:
        yield from pool(delayed(work)(cell) for cell in cells)
    except BrokenProcessPool:
        return
