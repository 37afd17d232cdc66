"""Engines: a map of cells to outcomes, which come as they are done, in any order.

The cells write their own files, so that an engine that ends, however it does, takes none with it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import Any, Literal

from .._doors import door, parameters
from .._extras import naming_extras, require
from .._kinds import anything, count
from ..options.values import not_one_of
from .cell_files import CellFiles, NotWritten
from .cells import Cell
from .work import Outcome, Work, own_threads

__all__ = ["Engine", "as_engine"]

ENDED = "the process that ran the cell was ended from outside: by lack of memory, or by hand"
# Seconds between two looks at the folder for what the jobs of a cluster have written.
PAUSE = 0.5


@parameters(name=anything)
@dataclass(frozen=True)
class Engine:
    """An engine that runs the cells of a sweep.

    Attributes
    ----------
    name : {"joblib", "dask", "slurm"}
        Processes of this machine; the workers of a Dask scheduler; jobs of a Slurm cluster.
    scheduler : str, optional
        The address of the Dask scheduler. For slurm "local" runs the jobs on this machine.
    threads : int
        Threads of BLAS and PyTorch in every process; of an engine's settings, rounding depends on
        this one alone.
    options : mapping
        Further arguments of `joblib.Parallel`, `distributed.Client`, or of submitit's
        `update_parameters`: ``{"slurm_partition": "long", "timeout_min": 600}``.

    Raises
    ------
    ValueError
        If there is no such engine, or its scheduler is missing.
    MissingExtra
        If a package that it needs is not installed.

    Examples
    --------
    >>> engine = ib.sweeps.Engine("joblib", threads=2)
    >>> grid = {"seed": [0, 1]}
    >>> ib.sweep("linear", grid, out="runs", engine=engine, n_train=20, steps=0).finished
    True
    """

    name: Literal["joblib", "dask", "slurm"] = "joblib"
    scheduler: str | None = None
    threads: int = 1
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _known("name", self.name)
        if self.name == "dask" and self.scheduler is None:
            raise ValueError(
                "the engine dask needs a scheduler: give its address, as tcp://HOST:8786, that "
                "`dask scheduler` prints"
            )
        if self.name == "joblib" and self.scheduler is not None:
            raise ValueError(
                f"`scheduler` {self.scheduler!r} is for the engine dask or slurm: name one"
            )
        if isinstance(self.threads, bool) or self.threads < 1:
            raise ValueError(f"`threads` must be a whole number from 1 on, got {self.threads!r}")
        require(*ENGINES[self.name].modules)

    @door(jobs=count(1))
    @naming_extras()
    def outcomes(self, work: Work, cells: Sequence[Cell], jobs: int) -> Generator[Outcome]:
        """Yield the outcomes of all cells, `jobs` at a time."""
        return ENGINES[self.name].run(work, cells, jobs, self)


def as_engine(wanted: str | Engine) -> Engine:
    """Return an engine, or the engine of that name.

    Raises
    ------
    ValueError, MissingExtra
        For the reasons of `Engine`.
    """
    if isinstance(wanted, Engine):
        return wanted
    _known("engine", wanted)
    return Engine(wanted)  # type: ignore[arg-type]


def _known(argument: str, name: str) -> None:
    if not isinstance(name, str) or name not in ENGINES:
        raise ValueError(f"`{argument}`: {not_one_of(name, ENGINES)}")


def _joblib(work: Work, cells: Sequence[Cell], jobs: int, engine: Engine) -> Generator[Outcome]:
    """Run cells in processes of this machine; one that is killed costs the cell that it ran."""
    if jobs == 1:
        with own_threads(engine.threads):
            yield from map(work, cells)
        return
    left = {cell.digest: cell for cell in cells}
    while left:
        for outcome in _pool(work, list(left.values()), jobs, engine):
            del left[outcome.cell]
            yield outcome
        # Cells are begun in their order: one of the first that are left has ended its process.
        for cell in list(left.values())[:jobs]:
            yield next(_pool(work, [cell], jobs, engine), None) or work.fail(cell, ENDED)
            del left[cell.digest]


def _pool(work: Work, cells: Sequence[Cell], jobs: int, engine: Engine) -> Generator[Outcome]:
    """Yield the outcomes of a pool of processes, those that there were if one of them has died."""
    from joblib import Parallel, delayed
    from joblib.externals.loky.process_executor import BrokenProcessPool

    pool = Parallel(n_jobs=jobs, return_as="generator_unordered", batch_size=1, **engine.options)
    try:
        yield from pool(delayed(work)(cell) for cell in cells)
    except BrokenProcessPool:
        return


def _dask(work: Work, cells: Sequence[Cell], jobs: int, engine: Engine) -> Generator[Outcome]:
    """Run cells on the workers of a scheduler, `jobs` at a time."""
    from distributed import Client, as_completed

    with Client(engine.scheduler, **engine.options) as client:
        waiting = iter(cells)
        begun = {client.submit(work, cell, pure=False): cell
                 for _, cell in zip(range(jobs), waiting, strict=False)}  # fmt: skip
        arriving = as_completed(list(begun))
        try:
            for future in arriving:
                cell = begun.pop(future)
                yield _arrived(work, cell, future.exception())
                for further in (one for _, one in zip(range(1), waiting, strict=False)):
                    again = client.submit(work, further, pure=False)
                    begun[again] = further
                    arriving.add(again)
        finally:
            client.cancel(list(begun))


def _arrived(work: Work, cell: Cell, error: BaseException | None) -> Outcome:
    """Return the outcome of a cell that another machine has run, or died of."""
    if isinstance(error, NotWritten):
        raise error
    if error is not None:
        return work.fail(cell, f"{type(error).__name__}: {error}")
    files = CellFiles(work.folder)
    if not files.path(cell.digest).exists():
        raise NotWritten(
            2, "a worker wrote there what cannot be seen here: name a folder that all share",
            str(files.path(cell.digest)),
        )  # fmt: skip
    return _read(files, cell)


def _slurm(work: Work, cells: Sequence[Cell], jobs: int, engine: Engine) -> Generator[Outcome]:
    """Run cells in an array of `jobs` jobs, each with its share of them."""
    import submitit

    # Beside the folder, which holds nothing but the files of cells.
    logs = work.folder.with_name(f"{work.folder.name}.slurm")
    executor = submitit.AutoExecutor(folder=logs, cluster=engine.scheduler or "slurm")
    executor.update_parameters(**engine.options)
    shares = [cells[k::jobs] for k in range(min(jobs, len(cells)))]
    handles = executor.map_array(partial(_share, work), shares)
    try:
        for handle, cell in _watched(CellFiles(work.folder), handles, shares):
            if handle is None:
                yield _read(CellFiles(work.folder), cell)
            else:
                yield _arrived(work, cell, handle.exception())
    finally:
        for handle in handles:
            handle.cancel()


def _watched(
    files: CellFiles, handles: Sequence[Any], shares: Sequence[Sequence[Cell]]
) -> Iterator[tuple[Any, Cell]]:
    """Yield every cell as its file comes, with its job if that is over and there is none."""
    waiting = [(handle, cell) for handle, share in zip(handles, shares, strict=True)
               for cell in share]  # fmt: skip
    while waiting:
        # First: a job that is over now has written before the folder is looked at.
        over = {id(handle) for handle in handles if handle.done()}
        done = files.done()
        left = []
        for handle, cell in waiting:
            if cell.digest in done:
                yield None, cell
            elif id(handle) in over:
                yield handle, cell
            else:
                left.append((handle, cell))
        waiting = left
        if waiting:
            time.sleep(PAUSE)


def _share(work: Work, cells: Sequence[Cell]) -> None:
    for cell in cells:
        work(cell)


def _read(files: CellFiles, cell: Cell) -> Outcome:
    return Outcome(cell.digest, files.errors([cell.digest]).get(cell.digest))


@dataclass(frozen=True)
class _Kind:
    """An engine of the table: its map, and what it needs."""

    run: Callable[[Work, Sequence[Cell], int, Engine], Generator[Outcome]]
    modules: tuple[str, ...]


ENGINES: Mapping[str, _Kind] = MappingProxyType(
    {
        "joblib": _Kind(_joblib, ()),
        "dask": _Kind(_dask, ("distributed",)),
        "slurm": _Kind(_slurm, ("submitit",)),
    }
)
