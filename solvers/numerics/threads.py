"""Threads of the BLAS during a solve, by the size of its work and the cores that stand idle."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

# Seconds over which the load is measured: the system counts idle time in hundredths.
WINDOW = 0.3
# Flops of an iteration from which more threads than one may pay, 0.3 s of one core at 40 GFLOP/s:
# below it the elementwise products, which are no part of BLAS, take too large a share.
WORTHWHILE = 1.2e10
# A core counts as free if so much of it is.
FREE = 0.85


@dataclass(frozen=True)
class CpuTimes:
    """Clocks of wall, process and idle time, read at one moment; seconds from any origin.

    Attributes
    ----------
    wall : float
    own : float
        CPU time of all threads of this process.
    idle : float
        Time that the processors this process may run on, all together, have stood idle.
    """

    wall: float
    own: float
    idle: float

    @staticmethod
    def now() -> CpuTimes:
        """Read the clocks."""
        return CpuTimes(time.perf_counter(), time.process_time(), _idle_seconds())


def threads_for(before: CpuTimes, after: CpuTimes, limit: int) -> int:
    """Count the threads that find a free core each, from the clocks at two moments.

    This process can have the time that it used and the time that nobody used; time that others
    used, or that a hypervisor took, it cannot. A product with threads tells less: for a few
    milliseconds the scheduler favours threads that have just been woken, and a long factorisation
    then waits for one that has been put aside (measured beside busy processes on two cores: a
    product up to twice as fast by two threads, the factorisation after it 1.2 to 10 times as slow).

    Parameters
    ----------
    before, after : CpuTimes
    limit : int
        The most threads.

    Returns
    -------
    int
        From 1 to `limit`; 1 where the system does not tell idle time.
    """
    wall = after.wall - before.wall
    if wall <= 0:
        return 1
    cores = (after.own - before.own + after.idle - before.idle) / wall
    return max(1, min(limit, int(cores + 1 - FREE)))


class _Threads:
    """Thread counts of the BLAS libraries of this process, which concurrent solves share."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._solves, self._limits = 0, [1]
        self._fixed: int | None = None
        self._since, self._free, self._worthwhile = CpuTimes(0.0, 0.0, 0.0), 1, False

    def begin(self, fixed: int | None) -> None:
        """Take over the libraries at the first of several solves."""
        with self._lock:
            if self._solves == 0:
                self._limits = [library.get_num_threads() for library in _libraries()]
                self._fixed, self._free, self._worthwhile = fixed, 1, False
                if self._adapts:
                    self._since = CpuTimes.now()
                self._set(fixed or 1)
            self._solves += 1

    def end(self) -> None:
        """Restore the libraries at the last of several solves."""
        with self._lock:
            self._solves -= 1
            if self._solves == 0:
                for library, limit in zip(_libraries(), self._limits, strict=True):
                    library.set_num_threads(limit)

    def choose(self, work: float | None) -> None:
        """Set the threads for the piece of work to come."""
        with self._lock:
            if self._solves == 0 or not self._adapts:
                return
            if work is not None:
                self._worthwhile = work >= WORTHWHILE
            if time.perf_counter() - self._since.wall >= WINDOW:
                now = CpuTimes.now()
                self._free = threads_for(self._since, now, max(self._limits))
                self._since = now
            self._set(self._free if self._worthwhile else 1)

    @property
    def _adapts(self) -> bool:
        """True if there is a choice."""
        return self._fixed is None and max(self._limits, default=1) > 1

    def _set(self, threads: int) -> None:
        for library in _libraries():
            if library.get_num_threads() != threads:
                library.set_num_threads(threads)


_THREADS = _Threads()


@contextmanager
def blas_threads(fixed: int | None = None) -> Iterator[None]:
    """Give BLAS one thread to begin with, and as many as before at the end.

    Within it `choose_threads` may give more, but never more than BLAS had before (`OMP_NUM_THREADS`
    and threadpoolctl decide that); with `fixed` it has so many throughout. Solves that run at the
    same time share one BLAS: the first one's setting holds for all of them.
    """
    _THREADS.begin(fixed)
    try:
        yield
    finally:
        _THREADS.end()


def choose_threads(work: float | None = None) -> None:
    """Give BLAS as many threads as `threads_for` says, for the piece of `work` flops to come.

    Without `work` the piece is part of the last one: look whether the load has changed.
    """
    _THREADS.choose(work)


@cache
def _libraries() -> list[Any]:
    """Controllers of the BLAS libraries that NumPy and SciPy have loaded."""
    from threadpoolctl import ThreadpoolController

    found = ThreadpoolController().select(user_api="blas")
    return list(found.lib_controllers)


def _idle_seconds() -> float:
    """Idle time of the processors that this process may run on; 0 where Linux does not tell it."""
    try:
        lines = Path("/proc/stat").read_text(encoding="ascii").splitlines()
    except OSError:
        return 0.0
    mine = {f"cpu{number}" for number in os.sched_getaffinity(0)}
    rows = [line.split() for line in lines if line.startswith("cpu")]
    # Columns 4 and 5: idle, and idle while waiting for a disk.
    ticks = sum(int(row[4]) + int(row[5]) for row in rows if row[0] in mine)
    return ticks / os.sysconf("SC_CLK_TCK")
