"""Threads of BLAS: as many as find a free core, none where a piece of work is short."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from solvers import MaxMarginProgram, Settings, Status, solve
from solvers.numerics import threads
from solvers.numerics.threads import CpuTimes, threads_for
from tests.problems import gln_construction

START = CpuTimes(wall=5.0, own=2.0, idle=40.0)


def after(own: float, idle: float, wall: float = 1.0) -> CpuTimes:
    """The times once so much has been used and left idle in `wall` seconds."""
    return CpuTimes(START.wall + wall, START.own + own, START.idle + idle)


@pytest.mark.parametrize(
    ("own", "idle", "limit", "threads"),
    [
        (1.0, 1.0, 2, 2),  # a quiet machine of two cores
        (1.0, 0.9, 2, 2),
        (2.0, 0.0, 2, 2),  # and one on which two threads have run undisturbed
        (1.0, 0.5, 2, 1),  # the other core is taken for half of the time
        (1.0, 0.02, 2, 1),
        (0.4, 0.0, 2, 1),  # not even one core of one's own
        (1.4, 0.0, 2, 1),  # two threads that wait for a core
        (1.0, 0.0, 8, 1),  # a system that does not tell idle time
        (1.0, 7.0, 2, 2),  # never more than the limit
        (3.0, 2.9, 8, 6),
    ],
)
def test_every_thread_has_a_free_core(own, idle, limit, threads) -> None:
    assert threads_for(START, after(own, idle), limit) == threads
    assert threads_for(START, after(own / 4, idle / 4, wall=0.25), limit) == threads


def test_no_time_tells_nothing() -> None:
    assert threads_for(START, START, 4) == 1


def blas() -> dict[str, int]:
    """Threads of every BLAS library of this process, by its file."""
    return {
        pool["filepath"]: pool["num_threads"]
        for pool in threadpool_info()
        if pool["user_api"] == "blas"
    }


def seen(program: MaxMarginProgram, **settings: Any) -> tuple[list[set[int]], np.ndarray]:
    """The threads of BLAS at every iteration of a solve that may have two, and its answer."""
    counts: list[set[int]] = []
    with threadpool_limits(2, user_api="blas"):
        before = blas()
        ours = {
            library.filepath for library in threads._libraries() if before[library.filepath] == 2
        }
        assert ours

        def note(*_: object) -> None:
            now = blas()
            counts.append({now[path] for path in ours})

        solution = solve(program, settings=Settings(progress=note, **settings))
        assert blas() == before, "BLAS has its threads back"
    assert solution.status is Status.SOLVED
    return counts, solution.primal


@pytest.fixture
def quiet_machine(monkeypatch) -> None:
    """Every call of the clock comes a second later, in which two cores were free."""
    moments = iter(range(1000))

    def now() -> CpuTimes:
        moment = float(next(moments))
        return CpuTimes(moment, moment, moment)

    monkeypatch.setattr(threads.CpuTimes, "now", staticmethod(now))
    monkeypatch.setattr(threads, "WINDOW", -np.inf)


@pytest.mark.usefixtures("quiet_machine")
def test_long_iterations_get_the_free_cores_and_short_ones_one_thread(monkeypatch) -> None:
    program = gln_construction().program
    assert seen(program)[0][-1] == {1}
    monkeypatch.setattr(threads, "WORTHWHILE", 0.0)
    counts, answer = seen(program)
    assert counts[-1] == {2}
    counts, alone = seen(program, threads=1)
    assert counts[-1] == {1}
    np.testing.assert_allclose(answer, alone, rtol=0, atol=1e-7 * np.abs(alone).max())


def test_threads_that_are_asked_for_are_there_throughout() -> None:
    counts, _ = seen(gln_construction().program, threads=2)
    assert set.union(*counts) == {2}
    with pytest.raises(ValueError, match="`threads` must be at least 1 or None, got 0"):
        Settings(threads=0)


def test_the_machine_tells_the_time_that_this_process_used() -> None:
    before = CpuTimes.now()
    while CpuTimes.now().own - before.own < 0.05:
        pass
    now = CpuTimes.now()
    assert now.wall > before.wall
    assert now.idle >= before.idle
