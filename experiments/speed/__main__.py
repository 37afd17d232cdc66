"""Seconds and memory of the structured solver, beside peers, beside cvxpy, and as sizes grow.

    python -m experiments.speed --data-dir DIR --out experiments/results/speed.csv
    python -m experiments.speed --peers [--data-dir DIR] --out experiments/results/peers.csv
    python -m experiments.speed --growth [--data-dir DIR] --out experiments/results/growth.csv
    python -m experiments.speed --norms --out experiments/results/norms.csv
    python -m experiments.speed --norms --data-dir DIR --out experiments/results/norms_of_images.csv
    python -m experiments.speed --finite --out experiments/results/finite_speed.csv
    python -m experiments.speed --finite --data-dir DIR --out experiments/results/fits_of_images.csv
    python -m experiments.speed --threads [--data-dir DIR] --out experiments/results/threads.csv

The tables of peers and of growth keep the rows that their files already hold: interrupted, they go
on; for a new measurement name a new file. Peers that are not installed are left out with a line.
"""

from __future__ import annotations

from pathlib import Path

import click

from implicit_bias.models import MODELS

from ..tables import data_folder, out_file
from .cases import peer_cases
from .finite import LIMIT as FINITE_LIMIT
from .finite import run_finite
from .gln import CVXPY, OURS, SIZES, Size, run_sizes, write_as_they_come
from .growth import run_growth
from .norms import LIMIT as NORMS_LIMIT
from .norms import run_norms
from .peers import TARGETS
from .race import markdown, run_peers
from .threads import run_threads

# Seconds for one run of cvxpy on a GLN program; for all runs of a peer on one program.
CVXPY_LIMIT, PEER_LIMIT = 1200.0, 20.0


def _sizes(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> tuple[Size, ...]:
    try:
        sizes = tuple(tuple(int(part) for part in value.split(",")) for value in values)
    except ValueError as error:
        raise click.BadParameter("a size is three numbers H,C,n") from error
    if any(len(size) != 3 for size in sizes):
        raise click.BadParameter("a size is three numbers H,C,n")
    return sizes or SIZES  # type: ignore[return-value]


@click.command()
@click.option("--peers", "table", flag_value="peers", help="Every peer to the same gaps.")
@click.option("--growth", "table", flag_value="growth", help="Time and memory against size.")
@click.option("--norms", "table", flag_value="norms", help="Several classes, in every norm.")
@click.option("--finite", "table", flag_value="finite", help="Limits of weight decay.")
@click.option("--threads", "table", flag_value="threads", help="At one, two and all threads.")
@click.option(
    "--model",
    "models",
    multiple=True,
    type=click.Choice(sorted(MODELS)),
    help="Default runs that --threads times too; may be repeated.  [default: all]",
)
@data_folder
@click.option(
    "--size",
    "sizes",
    multiple=True,
    callback=_sizes,
    help="H,C,n beside cvxpy; may be repeated.  [default: four up to 100,4,8000]",
)
@click.option("--solver", "solvers", multiple=True, default=(OURS, *CVXPY), show_default=True)
@click.option(
    "--repeats",
    type=click.IntRange(min=1),
    default=5,
    show_default=True,
    help="Runs of the structured solver, and of peers that take less than half a second.",
)
@click.option(
    "--time-limit", type=float,
    help=f"Seconds: of a run of cvxpy [{CVXPY_LIMIT:g}], of a peer on a program [{PEER_LIMIT:g}], "
    f"of a run in a norm [{NORMS_LIMIT:g}], of a penalised fit [{FINITE_LIMIT:g}].",
)  # fmt: skip
@out_file()
def main(
    table: str | None, data_dir: Path | None, out: Path | None, repeats: int,
    time_limit: float | None, **beside_cvxpy: tuple[str, ...],
) -> None:  # fmt: skip
    """Time the structured solver: SVM-GLN beside cvxpy, or one of the tables below."""
    if table == "growth":
        run_growth(data_dir, out)
    elif table == "norms":
        run_norms(out, time_limit, data_dir=data_dir)
    elif table == "finite":
        run_finite(out, time_limit, data_dir)
    elif table == "threads":
        run_threads(data_dir, out, beside_cvxpy["models"] or sorted(MODELS), repeats)
    elif table == "peers":
        rows = run_peers(peer_cases(data_dir), out, repeats, time_limit or PEER_LIMIT)
        for target in (TARGETS[0], TARGETS[-1]):
            click.echo(f"\nProcessor seconds to a certified gap of {target:g}\n")
            click.echo(markdown(rows, target))
    elif data_dir is None:
        raise click.UsageError("name the folder of MNIST's files: --data-dir DIR")
    else:
        sizes, solvers = beside_cvxpy["sizes"], beside_cvxpy["solvers"]
        rows_so_far = run_sizes(data_dir, sizes, solvers, repeats, time_limit or CVXPY_LIMIT)  # type: ignore[arg-type]
        write_as_they_come(rows_so_far, out)


if __name__ == "__main__":
    main()
