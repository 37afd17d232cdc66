"""Threads of BLAS and torch, by the size of the work and the cores that stand idle."""

from __future__ import annotations

import os
import sys
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
    """Thread counts of the libraries of this process, which concurrent calls share."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._forget()
        # A child has the threads that its parent began with, and takes none of its calls over.
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._begin_anew)

    def _forget(self) -> None:
        self._open: list[int | None] = []
        self._limits: dict[str, tuple[Any, int]] = {}
        self._since: CpuTimes | None = None
        self._free, self._worthwhile = 1, False

    def _begin_anew(self) -> None:
        self._lock = threading.RLock()
        self._restore()

    def begin(self, fixed: int | None) -> None:
        """Take over the libraries at the first of several calls, and those loaded since."""
        with self._lock:
            self._open.append(fixed)
            libraries = _libraries(tuple(name for name in _BRING if name in sys.modules))
            for name in libraries.keys() - self._limits.keys():
                library = libraries[name]
                self._limits[name] = (library, library.get_num_threads())
                self._set(*self._limits[name])
            if fixed is not None:
                self._set_all()

    def end(self, fixed: int | None) -> None:
        """Restore the libraries at the last of several calls."""
        with self._lock:
            self._open.remove(fixed)
            if not self._open:
                self._restore()
            elif fixed is not None or self._worthwhile:
                self._worthwhile = False
                self._set_all()

    def choose(self, work: float | None) -> None:
        """Set the threads for the piece of work to come."""
        with self._lock:
            limit = self._most()
            if self._fixed is not None or limit == 1:
                return
            if work is not None:
                self._worthwhile = work >= WORTHWHILE
            if self._worthwhile and self._since is None:
                self._since = CpuTimes.now()
            if self._since is not None and time.perf_counter() - self._since.wall >= WINDOW:
                now = CpuTimes.now()
                self._free = threads_for(self._since, now, limit)
                self._since = now
            self._set_all()

    def limit_of(self, name: str, now: int) -> int:
        """Return what a library may have at most: what is fixed, or had before, or else has now."""
        with self._lock:
            return self._fixed or self._limits.get(name, (None, now))[1]

    @property
    def _fixed(self) -> int | None:
        """The threads that the last call which fixes them asks for."""
        return next((one for one in reversed(self._open) if one is not None), None)

    def _most(self) -> int:
        return max((limit for _, limit in self._limits.values()), default=1)

    def _set(self, library: Any, limit: int) -> None:
        count = self._fixed or (min(self._free, limit) if self._worthwhile else 1)
        if library.get_num_threads() != count:
            library.set_num_threads(count)

    def _set_all(self) -> None:
        for library, limit in self._limits.values():
            self._set(library, limit)

    def _restore(self) -> None:
        for library, limit in self._limits.values():
            if library.get_num_threads() != limit:
                library.set_num_threads(limit)
        self._forget()


THREADS = _Threads()


@contextmanager
def few_threads(fixed: int | None = None) -> Iterator[None]:
    """Give BLAS and torch one thread to begin with, and as many as before at the end.

    Within it `choose_threads` may give more, but never more than they had before
    (`OMP_NUM_THREADS`, threadpoolctl and `torch.set_num_threads` decide that); with `fixed` they
    have so many throughout. Calls that run at the same time share the libraries: within one that
    fixes their threads, all have these.

    Parameters
    ----------
    fixed : int, optional

    Yields
    ------
    None
    """
    THREADS.begin(fixed)
    try:
        yield
    finally:
        THREADS.end(fixed)


def choose_threads(work: float | None = None) -> None:
    """Give the libraries as many threads as `threads_for` says, for `work` flops to come.

    Without `work` the piece is part of the last one: look whether the load has changed.
    """
    THREADS.choose(work)


# Modules that bring a library along, in the order in which they are looked for.
_BRING = ("numpy", "scipy.linalg", "torch.nn")


@cache
def _libraries(loaded: tuple[str, ...]) -> dict[str, Any]:
    """Return what sets the threads of the BLAS libraries of `loaded` modules, and of torch."""
    from threadpoolctl import ThreadpoolController

    found = ThreadpoolController().select(user_api="blas")
    libraries: dict[str, Any] = {one.filepath: one for one in found.lib_controllers}
    return libraries | ({"torch": sys.modules["torch"]} if "torch.nn" in loaded else {})


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
