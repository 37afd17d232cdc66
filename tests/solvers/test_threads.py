"""Threads of BLAS and torch: as many as find a free core, one where a piece of work is short."""

from __future__ import annotations

import multiprocessing
from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

import implicit_bias as ib
from solvers import THREADS, MaxMarginProgram, Settings, Status, few_threads, solve
from solvers.numerics import threads
from solvers.numerics.threads import CpuTimes, choose_threads, threads_for
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
        ours = {path for path in threads._libraries(()) if before.get(path) == 2}
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


class Library:
    """What counts the threads that it is set to, and begins with four."""

    def __init__(self) -> None:
        self.threads, self.sets = 4, 0

    def get_num_threads(self) -> int:
        return self.threads

    def set_num_threads(self, count: int) -> None:
        self.threads, self.sets = count, self.sets + 1


@pytest.fixture
def library(monkeypatch) -> Library:
    one = Library()
    monkeypatch.setattr(threads, "_libraries", lambda loaded: {"torch": one})
    return one


@pytest.mark.usefixtures("quiet_machine")
def test_there_is_one_thread_or_what_is_asked_for_or_what_pays(library) -> None:
    with few_threads():
        seen = [library.threads]
        with few_threads(3), few_threads():
            seen += [library.threads, THREADS.limit_of("torch", 9)]
        with few_threads():
            choose_threads(1e15)
            seen.append(library.threads)
        assert [*seen, library.threads, THREADS.limit_of("torch", 9)] == [1, 3, 3, 2, 1, 4]
    assert (library.threads, THREADS.limit_of("torch", 9)) == (4, 9)


def test_public_functions_begin_with_one_thread(library) -> None:
    seen = []
    network, settings = ib.DeepLinear(2), ib.TrainingSettings(schedule=((2, 0.1),))
    ib.train(network, np.eye(2), np.array([1.0, -1.0]), settings=settings,
             callback=lambda *_: seen.append(library.threads))  # fmt: skip
    assert set(seen) == {1}
    assert library.threads == 4


def test_a_library_that_is_loaded_on_the_way_is_held_from_the_next_door_on(monkeypatch) -> None:
    first, second = Library(), Library()
    with few_threads():
        monkeypatch.setattr(threads, "_libraries", lambda loaded: {"a": first, "b": second})
        with few_threads():
            assert (first.threads, second.threads) == (1, 1)
        assert (first.threads, first.sets, second.threads) == (1, 1, 1)
    assert (first.threads, first.sets, second.threads, second.sets) == (4, 2, 4, 2)


def test_a_forked_process_has_the_threads_that_its_parent_began_with(library) -> None:
    here, there = multiprocessing.Pipe()

    def tell() -> None:
        there.send((library.threads, THREADS.limit_of("torch", 9)))

    with few_threads():
        child = multiprocessing.get_context("fork").Process(target=tell)
        child.start()
        assert here.recv() == (4, 9)
        child.join()
        assert library.threads == 1


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
