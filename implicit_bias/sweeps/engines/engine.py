"""Engines: what runs the cells of a sweep, and with which settings."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from ..._support.doors import door, parameters
from ..._support.extras import naming_extras, require
from ..._support.kinds import anything, count
from ..._support.words import EngineName
from ...options.values import not_one_of
from ..cells import Cell
from ..records import Outcome
from ..work import Work
from .dask import address_of, check_dask, run_on_dask
from .processes import check_processes, run_on_processes
from .slurm import check_slurm, run_on_slurm


@parameters(name=anything, scheduler=anything)
@dataclass(frozen=True)
class Engine:
    """An engine that runs the cells of a sweep.

    Attributes
    ----------
    name : {"joblib", "dask", "slurm"}
        Processes of this machine; the workers of a Dask scheduler; jobs of a Slurm cluster.
    scheduler : str, distributed.Client or cluster, optional
        The Dask scheduler: its address, a client of it, or a cluster such as
        `distributed.LocalCluster`; kept as its address. For slurm "local" runs the jobs on this
        machine.
    threads : int
        Threads of BLAS and PyTorch in every process; of an engine's settings, rounding depends on
        this one alone.
    options : mapping
        Further arguments of `joblib.Parallel`, `distributed.Client`, or of submitit's
        `update_parameters`: ``{"slurm_partition": "long", "timeout_min": 600}``.

    Raises
    ------
    ValueError
        If there is no such engine, its scheduler is missing, or it has no such option.
    TypeError
        If an option or the scheduler is of another type.
    MissingExtra
        If a package that it needs is not installed.

    Examples
    --------
    >>> engine = ib.sweeps.Engine("joblib", threads=2)
    >>> grid = {"seed": [0, 1]}
    >>> ib.sweep("linear", grid, out="runs", engine=engine, n_train=20, steps=0).finished
    True
    """

    name: EngineName = "joblib"
    scheduler: Any = None
    threads: int = 1
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _known("name", self.name)
        object.__setattr__(self, "scheduler", address_of(self.scheduler))
        if self.name == "dask" and self.scheduler is None:
            raise ValueError(
                "the engine dask needs a scheduler: give its address, as tcp://HOST:8786, that "
                "`dask scheduler` prints"
            )
        if self.name == "joblib" and self.scheduler is not None:
            raise ValueError(
                f"`scheduler` {self.scheduler!r} is for the engine dask or slurm: name one"
            )
        if self.threads < 1:
            raise ValueError(f"`threads` must be a whole number from 1 on, got {self.threads!r}")
        require(*ENGINES[self.name].modules)
        ENGINES[self.name].check(self.scheduler, self.options)

    @door(jobs=count(1))
    @naming_extras()
    def outcomes(self, work: Work, cells: Sequence[Cell], jobs: int) -> Generator[Outcome]:
        """Yield the outcomes of all cells, `jobs` at a time, as they are done, in any order.

        The cells write their own records, so that an engine that ends, however it does, takes none
        with it.
        """
        return ENGINES[self.name].run(work, cells, jobs, self.scheduler, self.options)


def as_engine(wanted: str | Engine) -> Engine:
    """Return an engine, or the engine of that name.

    Raises
    ------
    TypeError, ValueError, MissingExtra
        For the reasons of `Engine`.
    """
    if isinstance(wanted, Engine):
        return wanted
    _known("engine", wanted)
    return Engine(wanted)  # type: ignore[arg-type]


def _known(argument: str, name: str) -> None:
    if not isinstance(name, str) or name not in ENGINES:
        raise ValueError(f"`{argument}`: {not_one_of(name, ENGINES)}")


@dataclass(frozen=True)
class _Kind:
    """An engine of the table: how it runs cells, how its settings are checked, what it needs."""

    run: Callable[[Work, Sequence[Cell], int, str | None, Mapping[str, Any]], Generator[Outcome]]
    check: Callable[[str | None, Mapping[str, Any]], None]
    modules: tuple[str, ...]


ENGINES: Mapping[str, _Kind] = MappingProxyType(
    {
        "joblib": _Kind(run_on_processes, check_processes, ()),
        "dask": _Kind(run_on_dask, check_dask, ("distributed",)),
        "slurm": _Kind(run_on_slurm, check_slurm, ("submitit",)),
    }
)
