"""Seconds to a certified SVM-GLN solution: the structured solver beside cvxpy's.

    python -m experiments.speed --data-dir DIR --out experiments/results/speed.csv

Every run is a process of its own, so that its peak memory is its own and a time limit can end it.
Rows are written as they come: an interrupted benchmark keeps what it has finished.
"""

from __future__ import annotations

import json
import platform
import resource
import statistics
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import click
import numpy as np

from implicit_bias import HyperplaneContexts, load_idx
from implicit_bias.models.gln.formulation import gln_program
from solvers import MaxMarginProgram, Settings, solve

SIZES = ((10, 2, 500), (20, 2, 1000), (100, 4, 2000), (100, 4, 8000))
CVXPY = ("cvxpy:CLARABEL", "cvxpy:ECOS", "cvxpy:SCS")
OURS = "interior-point"
SEED = 1
# The literal program holds its constraint matrix in several copies; beyond this many entries
# (half of this machine's memory at 8 bytes and four copies) it is not started.
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


def mnist_program(data_dir: Path, size: tuple[int, int, int]) -> MaxMarginProgram:
    """SVM-GLN of digits 0-4 against 5-9 in median contexts, n samples."""
    n_units, n_contexts, n_train = size
    dataset = load_idx(data_dir, n_train=n_train, n_val=1, random_state=SEED)
    contexts = HyperplaneContexts(n_units, n_contexts, random_state=SEED).fit_transform(
        dataset.X_train
    )
    return gln_program(dataset.X_train, dataset.y_train, contexts, n_contexts=n_contexts)


def measure(program: MaxMarginProgram, solver: str, repeats: int) -> dict[str, float | int | str]:
    """Solve `repeats` times; medians, and the process's peak memory beyond what it began with."""
    before = peak_gib()
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        solution = solve(program, solver=solver, settings=Settings())
        seconds.append(time.perf_counter() - start)
    return {
        "status": solution.status.name,
        "gap": solution.certificate.gap,
        "objective": solution.certificate.objective,
        "iterations": solution.iterations,
        "seconds": statistics.median(seconds),
        "fastest": min(seconds),
        "repeats": repeats,
        "peak_gib": peak_gib() - before,
    }


def peak_gib() -> float:
    """Peak resident memory of this process in GiB (Linux counts it in KiB)."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def dgemm_rate(n: int = 2000) -> float:
    """Multiply-adds and adds a second of a square matrix product, the best of five."""
    A = np.random.default_rng(0).normal(size=(n, n))
    best = min(_timed(lambda: A @ A) for _ in range(5))
    return 2 * n**3 / best


def required_flops(size: tuple[int, int, int], n_inputs: int, iterations: int) -> float:
    """Flops that `iterations` of the dual interior point on all samples cannot avoid.

    Per iteration: the weighted Gram matrix of H (C - 1) columns (one triangle), the Cholesky
    factor, H + 1 + 4 triangular solves, the Schur complement, two sets of kernel products through
    the cheaper of Gram matrix and features; once: the Gram matrix.
    """
    H, C, n = size
    columns = H * (C - 1)
    products = 2 * n * columns * min(n, 2 * n_inputs)
    each = n * n * columns + n**3 / 3 + 2 * n * n * (H + 5) + 2 * n * (H + 1) ** 2 + 2 * products
    return n * n * n_inputs + iterations * each


def _timed(run: object) -> float:
    start = time.perf_counter()
    run()  # type: ignore[operator]
    return time.perf_counter() - start


def _in_process(
    data_dir: Path, size: tuple[int, int, int], solver: str, repeats: int, limit: float
) -> Row:
    command = [
        sys.executable,
        "-m",
        "experiments.speed",
        "--data-dir",
        str(data_dir),
        "--one",
        json.dumps([size, solver, repeats]),
    ]
    failed = {
        "gap": np.inf,
        "objective": np.inf,
        "iterations": 0,
        "seconds": limit,
        "fastest": limit,
        "repeats": 0,
        "peak_gib": np.nan,
    }
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit, check=False)
    except subprocess.TimeoutExpired:
        return Row(*size, solver=solver, status="over the time limit", **failed)  # type: ignore
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or [f"exit {done.returncode}"])[-1]
        return Row(*size, solver=solver, status=f"failed: {last}", **failed)  # type: ignore
    return Row(*size, solver=solver, **json.loads(done.stdout.splitlines()[-1]))


def _sizes(
    _: click.Context, __: click.Parameter, values: tuple[str, ...]
) -> tuple[tuple[int, int, int], ...]:
    try:
        sizes = tuple(tuple(int(part) for part in value.split(",")) for value in values)
    except ValueError as error:
        raise click.BadParameter("a size is three numbers H,C,n") from error
    if any(len(size) != 3 for size in sizes):
        raise click.BadParameter("a size is three numbers H,C,n")
    return sizes or SIZES  # type: ignore[return-value]


@click.command()
@click.option(
    "--data-dir",
    type=click.Path(path_type=Path),
    required=True,
    help="Folder of MNIST's IDX files.",
)
@click.option(
    "--size",
    "sizes",
    multiple=True,
    callback=_sizes,
    help="H,C,n; may be repeated.  [default: the four of the README]",
)
@click.option("--solver", "solvers", multiple=True, default=(OURS, *CVXPY), show_default=True)
@click.option(
    "--repeats",
    type=click.IntRange(min=1),
    default=5,
    show_default=True,
    help="Solves of the structured solver a size; cvxpy's run once.",
)
@click.option("--time-limit", type=float, default=1200.0, show_default=True, help="Seconds a run.")
@click.option("--out", type=click.Path(path_type=Path), help="CSV file to write.")
@click.option("--one", hidden=True, help="Solve one case in this process and print it as JSON.")
def main(
    data_dir: Path,
    sizes: tuple[tuple[int, int, int], ...],
    solvers: tuple[str, ...],
    repeats: int,
    time_limit: float,
    out: Path | None,
    one: str | None,
) -> None:
    """Benchmark solvers of SVM-GLN on MNIST digits 0-4 against 5-9."""
    if one is not None:
        size, solver, repeats = json.loads(one)
        click.echo(json.dumps(measure(mnist_program(data_dir, tuple(size)), solver, repeats)))
        return
    rate = dgemm_rate()
    click.echo(
        f"{platform.machine()}, {platform.processor() or 'processor unnamed'}, "
        f"Python {platform.python_version()}; dgemm {rate / 1e9:.0f} GFLOP/s"
    )
    rows: list[Row] = []
    for size in sizes:
        for solver in solvers:
            entries = float(size[0]) * size[1] * size[2] * 785
            if solver != OURS and entries > ENTRIES:
                click.echo(f"{size} {solver}: not started, {entries:.1e} matrix entries")
                continue
            row = _in_process(data_dir, size, solver, repeats if solver == OURS else 1, time_limit)
            rows.append(row)
            ours = next(
                (
                    r.seconds
                    for r in rows
                    if r.solver == OURS and (r.hidden_units, r.contexts, r.n_train) == size
                ),
                None,
            )
            ratio = f", {row.seconds / ours:.0f} x {OURS}" if ours and solver != OURS else ""
            click.echo(
                f"{size} {solver}: {row.status}, gap {row.gap:.1e}, "
                f"{row.seconds:.3g} s{ratio}, {row.peak_gib:.2f} GiB, "
                f"{row.iterations} iterations"
            )
            if solver == OURS and row.repeats and size[2] < Settings().working_set_from:
                ideal = required_flops(size, 785, row.iterations) / rate
                click.echo(
                    f"    required flops at dgemm's rate: {ideal:.3g} s, "
                    f"{ideal / row.seconds:.0%} of the time"
                )
            if out is not None:
                _write(rows, out)


def _write(rows: list[Row], out: Path) -> None:
    import pandas as pd

    out.parent.mkdir(parents=True, exist_ok=True)
    pd.DataFrame([asdict(row) for row in rows]).to_csv(out, index=False)


if __name__ == "__main__":
    main()
