"""Seconds to a certified SVM-GLN solution: the structured solver beside cvxpy's.

Every run is a process of its own, so that its peak memory is its own and a time limit can end it.
Rows are written as they come: an interrupted benchmark keeps what it has finished.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

import click
import numpy as np

from solvers import Settings, Solution, SolverName, solve

from .cases import halves_gln
from .timing import Ended, OverTheLimit, dgemm_rate, in_child, machine, peak_mib, timed

Size = tuple[int, int, int]

SIZES: tuple[Size, ...] = ((10, 2, 500), (20, 2, 1000), (100, 4, 2000), (100, 4, 8000))
CVXPY = ("cvxpy:CLARABEL", "cvxpy:ECOS", "cvxpy:SCS")
OURS = "interior-point"
N_INPUTS = 785
# The literal program holds its constraint matrix in several copies; beyond this many entries
# (half of 24 GB at 8 bytes and four copies) it is not started.
ENTRIES = 4e8


@dataclass(frozen=True)
class Row:
    """One solve: size, solver, what the certificate says, medians over the repeats."""

    hidden_units: int
    contexts: int
    n_train: int
    solver: str
    status: str
    gap: float
    objective: float
    iterations: int
    seconds: float
    fastest: float
    repeats: int
    peak_gib: float


def measure(data_dir: Path, size: Size, solver: SolverName, repeats: int) -> Iterator[Row]:
    """Solve `repeats` times; medians, and the process's peak memory beyond what it began with."""
    program, before = halves_gln(data_dir, size), peak_mib()
    seconds: list[float] = []
    for _ in range(repeats):
        solution, took = timed(partial(solve, program, solver=solver, settings=Settings()))
        seconds.append(took.wall)
    yield _row(size, solution, seconds, (peak_mib() - before) / 1024)


def _row(size: Size, solution: Solution, seconds: list[float], peak_gib: float) -> Row:
    return Row(
        *size,
        solver=solution.solver,
        status=solution.status.name,
        gap=solution.certificate.gap,
        objective=solution.certificate.objective,
        iterations=solution.iterations,
        seconds=statistics.median(seconds),
        fastest=min(seconds),
        repeats=len(seconds),
        peak_gib=peak_gib,
    )


def required_flops(size: Size, n_inputs: int, iterations: int) -> float:
    """Flops that `iterations` of the dual interior point on all samples cannot avoid.

    Per iteration: the weighted Gram matrix of H (C - 1) columns (one triangle), the Cholesky
    factor, H + 1 + 4 triangular solves, the Schur complement, two sets of kernel products through
    the cheaper of Gram matrix and features; once: the Gram matrix.
    """
    H, C, n = size
    columns = H * max(C - 1, 1)
    products = 2 * n * columns * min(n, 2 * n_inputs)
    each = n * n * columns + n**3 / 3 + 2 * n * n * (H + 5) + 2 * n * (H + 1) ** 2 + 2 * products
    return n * n * n_inputs + iterations * each


def run_sizes(
    data_dir: Path,
    sizes: tuple[Size, ...],
    solvers: tuple[SolverName, ...],
    repeats: int,
    limit: float,
) -> Iterator[Row]:
    """A row for every size and solver that memory can hold, said as it comes."""
    rate = dgemm_rate()
    click.echo(machine())
    for size in sizes:
        ours: float | None = None
        for solver in solvers:
            entries = float(size[0]) * size[1] * size[2] * N_INPUTS
            if solver != OURS and entries > ENTRIES:
                click.echo(f"{size} {solver}: not started, {entries:.1e} matrix entries")
                continue
            row = _in_process(data_dir, size, solver, repeats if solver == OURS else 1, limit)
            yield row
            ours = row.seconds if solver == OURS else ours
            click.echo(_said(row, size, ours))
            if solver == OURS and row.repeats and size[2] < Settings().working_set_from:
                ideal = required_flops(size, N_INPUTS, row.iterations) / rate
                click.echo(
                    f"    required flops at dgemm's rate: {ideal:.3g} s, "
                    f"{ideal / row.seconds:.0%} of the time"
                )


def _in_process(data_dir: Path, size: Size, solver: SolverName, repeats: int, limit: float) -> Row:
    blank = Row(*size, solver, "", np.inf, np.inf, 0, limit, limit, 0, np.nan)
    try:
        return next(in_child(partial(measure, data_dir, size, solver, repeats), limit))
    except OverTheLimit:
        return replace(blank, status="over the time limit")
    except Ended as error:
        return replace(blank, status=f"failed: {error}")


def _said(row: Row, size: Size, ours: float | None) -> str:
    ratio = f", {row.seconds / ours:.0f} x {OURS}" if ours and row.solver != OURS else ""
    return (
        f"{size} {row.solver}: {row.status}, gap {row.gap:.1e}, {row.seconds:.3g} s{ratio}, "
        f"{row.peak_gib:.2f} GiB, {row.iterations} iterations"
    )


def write_as_they_come(rows: Iterator[Row], out: Path | None) -> None:
    """Take all rows, and keep those so far in the CSV file `out`."""
    import pandas as pd

    kept = []
    for row in rows:
        kept.append(asdict(row))
        if out is not None:
            out.parent.mkdir(parents=True, exist_ok=True)
            pd.DataFrame(kept).to_csv(out, index=False)
