"""Seconds and memory: of a call, and of a call in a process of its own that a limit can end."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import platform
import resource
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

T = TypeVar("T")


@dataclass(frozen=True)
class Seconds:
    """What a call took: of the processor, all threads of this process together, and of the wall."""

    cpu: float
    wall: float


def timed(call: Callable[[], T]) -> tuple[T, Seconds]:
    """What `call` returns, and its seconds."""
    cpu, wall = time.process_time(), time.perf_counter()
    found = call()
    return found, Seconds(time.process_time() - cpu, time.perf_counter() - wall)


def peak_mib() -> float:
    """Peak resident memory of this process in MiB (Linux counts it in KiB)."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10


def forget_peak() -> None:
    """Give free memory back, and begin the peak of this process anew (both as Linux has them)."""
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


class OverTheLimit(TimeoutError):
    """A process was ended because its time was up."""


class Ended(RuntimeError):
    """A process ended before it had said all."""


# A process that waits for what never comes uses no seconds of the processor: it has so many times
# the limit of the wall's, since others may be at work beside it.
PATIENCE = 20
# Seconds between two looks at what a process has used.
LOOK = 0.2


def in_child(produce: Callable[[], Iterable[T]], limit: float) -> Iterator[T]:
    """What `produce` yields in a forked process, which has `limit` processor seconds for it all.

    The fork begins with the data and the imported packages of this process, so that its peak
    memory beyond what it began with is that of the call. Solvers that start threads of their own
    belong into children alone: a fork takes along their locks and not their threads.

    Raises
    ------
    OverTheLimit
        After `limit` seconds; compiled solvers cannot be stopped otherwise.
    Ended
        With the message of the exception that `produce` raised, or the exit code.
    """
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=_send_all, args=(there, produce), daemon=True)
    process.start()
    there.close()
    end = time.perf_counter() + PATIENCE * limit
    try:
        while time.perf_counter() < end and _cpu_seconds(process.pid) < limit:
            if not here.poll(LOOK):
                continue
            kind, found = _received(here, process)
            if kind == "failed":
                raise Ended(found)
            if kind == "done":
                return
            yield found
        raise OverTheLimit(f"no answer within {limit:g} s")
    finally:
        process.kill()
        process.join()


def _cpu_seconds(pid: int | None) -> float:
    """What a process has used so far, in ticks of the system: fields 14 and 15 of its status.

    A limit set in the process itself (RLIMIT_CPU) would make its own clock tick as coarsely.
    """
    try:
        status = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except FileNotFoundError:  # a system without this file has the limit of the wall alone
        return 0.0
    user, system = status.rsplit(")", 1)[1].split()[11:13]
    return (int(user) + int(system)) / float(os.sysconf("SC_CLK_TCK"))


def _received(here: Connection, process: Any) -> tuple[str, Any]:
    try:
        kind, found = here.recv()
    except EOFError:
        process.join()
        return "failed", f"exit code {process.exitcode}"
    return kind, found


def _send_all(there: Connection, produce: Callable[[], Iterable[Any]]) -> None:
    try:
        for found in produce():
            there.send(("found", found))
    except Exception as error:  # handed over to the process that waits
        there.send(("failed", f"{type(error).__name__}: {error}".splitlines()[0]))
    else:
        there.send(("done", None))


def dgemm_rate(n: int = 2000) -> float:
    """Multiplications and additions a second of a square matrix product, the best of five."""
    return 2 * n**3 / min(took.wall for took in _products(n))


def dgemm_rate_of_one_thread(n: int = 2000) -> float:
    """The same in seconds of the processor: what else the machine does counts for less."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        return 2 * n**3 / min(took.cpu for took in _products(n))


def _products(n: int) -> list[Seconds]:
    A = np.random.default_rng(0).normal(size=(n, n))
    return [timed(lambda: A @ A)[1] for _ in range(5)]


def machine() -> str:
    """What rows are made on."""
    return (
        f"{_processor()}, {os.cpu_count()} cores, Python {platform.python_version()}, "
        f"NumPy {np.__version__}, dgemm {dgemm_rate_of_one_thread() / 1e9:.0f} GFLOP/s a thread"
    )


def _processor() -> str:
    path = Path("/proc/cpuinfo")
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()
