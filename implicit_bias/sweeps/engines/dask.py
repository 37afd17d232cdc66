"""Cells on the workers of a Dask scheduler."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from itertools import islice
from typing import Any

from ..cells import Cell
from ..records import Outcome
from ..work import Work
from .processes import check_names

# Arguments of distributed.Client that the sweep sets, and what says them instead.
SET = {"address": "give `scheduler`", "asynchronous": "it is set here", "loop": "it is set here"}


def address_of(scheduler: Any) -> str | None:
    """Return the address of a scheduler: of a `distributed.Client`, of a cluster, or as it is.

    Raises
    ------
    TypeError
        If it is nothing of the kind.
    """
    if scheduler is None or isinstance(scheduler, str):
        return scheduler
    found = getattr(getattr(scheduler, "scheduler", None), "address", None)
    found = getattr(scheduler, "scheduler_address", found)
    if not isinstance(found, str):
        raise TypeError(
            "`scheduler` must be the address of a Dask scheduler, a distributed.Client or a "
            f"cluster such as LocalCluster, got {type(scheduler).__name__}"
        )
    return found


def check_dask(scheduler: str | None, options: Mapping[str, Any]) -> None:
    """Check that there is a scheduler, and that distributed.Client takes the options.

    Raises
    ------
    ValueError
        If it does not take one of them.
    OSError
        If there is no scheduler at that address.
    """
    from distributed import Client

    check_names("distributed.Client", Client.__init__, options, SET)
    with Client(scheduler, **{"set_as_default": False, **options}):
        pass


def run_on_dask(
    work: Work, cells: Sequence[Cell], jobs: int, scheduler: str | None, options: Mapping[str, Any]
) -> Generator[Outcome]:
    """Run cells on the workers of a scheduler, `jobs` at a time.

    Raises
    ------
    OSError
        If there is no scheduler at that address, or a worker cannot write.
    ValueError
        If a worker cannot read what it is to do.
    """
    from distributed import Client, as_completed

    with Client(scheduler, **options) as client:
        waiting = iter(cells)
        begun = {client.submit(work, cell, pure=False): cell for cell in islice(waiting, jobs)}
        arriving = as_completed(list(begun))
        try:
            for future in arriving:
                cell = begun.pop(future)
                yield _arrived(future, cell)
                for further in islice(waiting, 1):
                    again = client.submit(work, further, pure=False)
                    begun[again] = further
                    arriving.add(again)
        finally:
            client.cancel(list(begun))


def _arrived(future: Any, cell: Cell) -> Outcome:
    """Return the outcome of a cell that another process has run, or died of."""
    from distributed import KilledWorker

    if future.cancelled():
        return Outcome(cell.digest, lost="the scheduler has dropped it")
    error = future.exception()
    if isinstance(error, KilledWorker):
        return Outcome(cell.digest, lost=f"its workers were ended from outside: {error}")
    if isinstance(error, OSError):
        raise error
    if error is not None:
        # What a run raises is its row: this worker did not come as far as the run.
        raise ValueError(
            f"a worker of the engine dask cannot run the cells ({type(error).__name__}: {error}): "
            "give it the same packages and files as here"
        ) from error
    outcome: Outcome = future.result()
    return outcome
