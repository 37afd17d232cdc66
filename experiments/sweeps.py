"""What a sweep costs beside the work of its cells: a thousand small limits.

    python -m experiments.sweeps --jobs 1
    python -m experiments.sweeps --jobs 2

A first, short sweep starts the processes and loads PyTorch in them. Then the overhead is what the
clock says, times the processes, less what the cells took, planning and reading the result included.
"""

from __future__ import annotations

import tempfile
import time

import click

from implicit_bias import Sweep, sweep


@click.command()
@click.option("--cells", default=1000, show_default=True)
@click.option("--jobs", default=1, show_default=True)
def main(cells: int, jobs: int) -> None:
    """Print milliseconds of work and of overhead a cell."""
    with tempfile.TemporaryDirectory() as folder:
        _limits(2 * jobs, f"{folder}/first", jobs)
        begun = time.perf_counter()
        frame = _limits(cells, f"{folder}/runs", jobs).frame()
        seconds = jobs * (time.perf_counter() - begun)
        begun = time.perf_counter()
        _limits(cells, f"{folder}/runs", jobs)
        again = time.perf_counter() - begun
    work = float(frame["cell_seconds"].sum())
    click.echo(
        f"{cells} cells, {jobs} at a time, {int((frame['status'] == 'SOLVED').sum())} solved: a "
        f"cell {1e3 * work / cells:.1f} ms of work, {1e3 * (seconds - work) / cells:.1f} ms of "
        f"overhead; {1e3 * again / cells:.2f} ms where it is there"
    )


def _limits(cells: int, out: str, jobs: int) -> Sweep:
    grid = {"seed": range(cells)}
    return sweep("linear", grid, out=out, jobs=jobs, n_train=20, n_val=20, steps=0)


if __name__ == "__main__":
    main()
