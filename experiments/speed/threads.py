"""Programs and default runs at one, two and all threads, on the machine as it is and beside work.

Programs are six of images and one of every family whose growth is measured.

The limits of BLAS and torch take turns in one process, as a caller would set them, after one call
that does not count. "Busy" are rounds beside one more process that never waits.
"""

from __future__ import annotations

import multiprocessing
import os
import statistics
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

import implicit_bias as ib

from ..tables import keep_rows
from .cases import halves
from .families import GROWTHS, Growth
from .norms import digits
from .timing import timed

Call = Callable[[], object]
# Short calls go on for so many processor seconds, but not for more rounds than this.
SHORT, MOST = 5.0, 50
# Samples, units behind gates, and classes' samples of the programs.
SAMPLES, UNITS, OF_CLASSES = 500, 20, 300


def programs(data_dir: Path | None) -> dict[str, Call]:
    """Return calls by name: six of images, and of every family that grows its second size."""
    X, y = halves(data_dir, SAMPLES)
    gates = ib.HyperplaneGates(UNITS, random_state=0).fit_transform(X).astype(np.float64)
    classes = digits(OF_CLASSES)
    network = ib.FReLU(X.shape[1], gates.shape[1], init="kaiming", random_state=0)
    settings = ib.TrainingSettings(trainer="annealed", schedule=((300, None),))
    ib.train(network, X, y, gates, settings=settings)
    of_images: dict[str, Call] = {
        "fit, squared": lambda: ib.limits.solve_fit(X, y, loss="squared", penalty=1e-3),
        "fit, logistic": lambda: ib.limits.solve_fit(X, y, penalty=1e-3),
        "linear, linf": lambda: ib.solve_linear_svm(X, y, norm="linf"),
        "frozen ReLU, l2": lambda: ib.solve_frelu_svm(X, y, gates),
        "ten classes, nuclear": lambda: ib.limits.solve_multiclass_svm(
            classes.X, classes.labels, norm="nuclear"
        ),
        "KKT fit": lambda: ib.kkt_distance(network, X, y, gates),
    }
    families = dict[str, Growth]()
    for growth in GROWTHS:
        families.setdefault(growth.family, growth)
    of_families = {
        f"{one.family} {one.held}, {one.letter} = {one.values[1]}": one.made(
            data_dir, one.values[1]
        )
        for one in families.values()
    }
    return of_images | of_families


def run_threads(
    data_dir: Path | None, out: Path | None, models: Sequence[str], rounds: int
) -> None:
    """Print rows as they come, and with `out` add them to a CSV file.

    Parameters
    ----------
    data_dir : Path or None
        Of MNIST's files; bundled digits without.
    out : Path or None
    models : sequence of str
        Models whose default runs are timed too.
    rounds : int
        Of each program and run; short ones have more.
    """
    calls = programs(data_dir) | {f"compare --model {name}": _run_of(name) for name in models}

    def rows() -> Iterator[dict[str, Any]]:
        """Yield the rows of quiet rounds, then of busy ones."""
        for beside, context in (("quiet", nullcontext), ("busy", one_busy_process)):
            with context():
                for name, call in calls.items():
                    yield from rows_of(name, beside, call, rounds)

    keep_rows(rows(), out, digits=".3g")


def _run_of(model: str) -> Call:
    return lambda: ib.run(model)  # type: ignore[type-var]


def counts() -> list[int]:
    """Return the numbers of threads: one, two and all."""
    return sorted({1, 2, os.cpu_count() or 1})


def rows_of(name: str, beside: str, call: Call, rounds: int) -> Iterator[dict[str, Any]]:
    """Yield a row for every number of threads, with medians and ratios to one thread."""
    took = {count: list[tuple[float, float]]() for count in counts()}
    with _limited(1):
        call()
    total = 0.0
    while len(took[1]) < rounds or (total < SHORT and len(took[1]) < MOST):
        for count, seconds in took.items():
            with _limited(count):
                spent = timed(call)[1]
            seconds.append((spent.cpu, spent.wall))
            total += spent.cpu
    for count, seconds in took.items():
        cpu, wall = (statistics.median(column) for column in zip(*seconds, strict=True))
        ratio = statistics.median(
            many[0] / one[0] for many, one in zip(seconds, took[1], strict=True)
        )
        yield {
            "what": name, "beside": beside, "threads": count, "cpu_seconds": cpu,
            "wall_seconds": wall, "ratio": ratio,
        }  # fmt: skip


@contextmanager
def _limited(count: int) -> Iterator[None]:
    import torch

    usual = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        with threadpool_limits(count, user_api="blas"):
            yield
    finally:
        torch.set_num_threads(usual)


@contextmanager
def one_busy_process() -> Iterator[None]:
    """Let another process compute for as long as this lasts."""
    process = multiprocessing.get_context("spawn").Process(target=_spin, daemon=True)
    process.start()
    try:
        yield
    finally:
        process.kill()
        process.join()


def _spin() -> None:
    while True:
        pass
