"""What is to be as fast as that, beside what was measured: one table of all goals.

    python -m experiments.goals
    python -m experiments.goals --measure --data-dir DIR --out FOLDER

The first reads the rows of a folder, those committed by default, and prints the table of
docs/speed.md. The second runs every command that writes such rows, one after the other, into a
folder of its own and prints the table of these: an hour, of which fits of images and their joint
programs take most. Seconds are those of the processor, on one thread. A goal that is missed has
what forbids it.
"""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import click
import pandas as pd

from .tables import data_folder

Rows = Callable[[str], pd.DataFrame]
RESULTS = Path(__file__).with_name("results")

# Commands behind `python -m experiments.`, which write rows into the folder F.
COMMANDS = (
    "speed --norms --data-dir {data} --out {F}/norms_of_images.csv",
    "speed --finite --data-dir {data} --out {F}/fits_of_images.csv",
    "speed --threads --repeats 3 --data-dir {data} --out {F}/threads.csv",
    "ratios --out {F}",
    "relu_speed --data-dir {data} --out {F}",
    "defaults --out {F}/defaults.csv",
    "fuzz --programs 1000 --out {F}/fuzz.csv",
)


@dataclass(frozen=True)
class Goal:
    """One goal.

    Attributes
    ----------
    what : str
    most : float
        What it may come to.
    unit : str
        Of both numbers, as a format of one: ``"{:.3g} s"``.
    measured : callable
        Takes what returns a table by its name, and returns the number.
    floor : str
        What forbids it, where it is missed.
    """

    what: str
    most: float
    unit: str
    measured: Callable[[Rows], float]
    floor: str = ""

    def cells(self, rows: Rows) -> tuple[str, str, str, str]:
        """Return a line of the table."""
        value = self.measured(rows)
        most, found = self.unit.format(self.most), self.unit.format(value)
        if math.isnan(value):
            return self.what, most, "", "not measured"
        return self.what, most, found, "met" if value <= self.most else self.floor


def one(table: str, column: str, query: str) -> Callable[[Rows], float]:
    """Return what takes a column of the one row that a query finds; NaN where there is none."""

    def measured(rows: Rows) -> float:
        found = rows(table).query(query)[column]
        return float(found.item()) if len(found) else math.nan

    return measured


def largest(table: str, column: str, query: str) -> Callable[[Rows], float]:
    """Return what takes the largest of an expression in columns, in the rows a query finds."""
    return lambda rows: float(rows(table).query(query).eval(column).max())


def _joint(n: int, norm: str, column: str = "cpu_seconds") -> Callable[[Rows], float]:
    return one("norms_of_images", column, f"n == {n} and norm == '{norm}' and units == 0")


def _ratio(what: str, size: str, other: str) -> Callable[[Rows], float]:
    return one("ratios", "ratio", f"what == '{what}' and size == '{size}' and other == '{other}'")


DEFAULT_RUNS = "what.str.startswith('compare')"
FEW, DAQP = "linear SVM, few dimensions", "DAQP alone"
GOALS = (
    *(
        Goal(f"ten classes, 500 images, {norm}", most, "{:.2g} s", _joint(500, norm))
        for norm, most in (("linf", 5), ("l1", 5), ("spectral", 3), ("nuclear", 3))
    ),
    *(
        Goal(f"20 ReLU units, 500 images, {norm}", 10, "{:.1f} of l2",
             one("norms_of_images", "l2_units", f"norm == '{norm}' and units == 20"))
        for norm in ("linf", "l1", "spectral", "nuclear")
    ),
    Goal("ten classes, 10,000 images, l2", 60, "{:.3g} s", _joint(10_000, "l2")),
    Goal("its memory", 2000, "{:.0f} MiB", _joint(10_000, "l2", "mib")),
    Goal("ten classes, 60,000 images, l2", 900, "{:.3g} s", _joint(60_000, "l2")),
    Goal("its memory", 6000, "{:.0f} MiB", _joint(60_000, "l2", "mib")),
    *(
        Goal(f"linear, {norm}, beside HiGHS alone", 1, "{:.2g}",
             _ratio(f"linear SVM, {norm}", "500 x 785", "HiGHS alone"))
        for norm in ("linf", "l1")
    ),
    *(
        Goal(f"few dimensions, {size}, beside DAQP alone", 1.3, "{:.2g}",
             _ratio(FEW, size, DAQP), floor)
        for size, floor in (
            ("3000 x 20", "calls of Python in checks and certificate: a millisecond whatever n"),
            ("200000 x 10", ""), ("1000000 x 10", ""),
        )
    ),
    *(
        Goal(f"penalised fit behind 20 gates, {n:,} images, {loss}", 20, "{:.3g} s",
             one("fits_of_images", "cpu_seconds", f"n == {n} and loss == '{loss}'"))
        for n in (2000, 9999) for loss in ("logistic", "squared")
    ),
    Goal("local optimum, 1,000 images and 200 units", 120, "{:.3g} s",
         one("relu_speed", "seconds", "data == 'mnist' and units == 200")),
    Goal("local optimum, 1,000 images and 50 units", 120, "{:.3g} s",
         one("relu_speed", "seconds", "data == 'mnist' and units == 50")),
    Goal("default run of relu", 10, "{:.2g} s", largest("defaults", "seconds", "model == 'relu'"),
         "3,000 steps of 2 ms, most of it calls of torch, and a local optimum of a second"),
    Goal("the slowest other default run", 8, "{:.2g} s",
         largest("defaults", "seconds", "model != 'relu'")),
    Goal("programs: two threads beside one, quiet or busy, at most", 1.1, "{:.3g}",
         largest("threads", "ratio", f"threads == 2 and not {DEFAULT_RUNS}")),
    Goal("default runs: cores at work where two are allowed, at most", 1.1, "{:.3g}",
         largest("threads", "cpu_seconds / wall_seconds", f"threads == 2 and {DEFAULT_RUNS}")),
    Goal("wrong statuses of 1,000 random programs", 0, "{:.0f}",
         lambda rows: float((rows("fuzz").verdict == "wrong").sum())),
)  # fmt: skip


def lines(folder: Path) -> Iterator[tuple[str, str, str, str]]:
    """Yield the lines of the table of the rows in a folder."""

    @cache
    def rows(name: str) -> pd.DataFrame:
        path = folder / f"{name}.csv"
        if not path.exists():
            raise click.UsageError(f"{path} is not there: --measure writes it")
        return pd.read_csv(path)

    for goal in GOALS:
        yield goal.cells(rows)


@click.command()
@click.option("--measure", is_flag=True, help="Run every command first, into the folder.")
@data_folder
@click.option(
    "--out", "folder", type=click.Path(path_type=Path, file_okay=False), default=RESULTS,
    help="Folder of the rows.  [default: experiments/results]",
)  # fmt: skip
def main(measure: bool, data_dir: Path | None, folder: Path) -> None:
    """Print all goals beside what was measured."""
    if measure:
        if data_dir is None:
            raise click.UsageError("name the folder of MNIST's files: --data-dir DIR")
        if folder == RESULTS:
            raise click.UsageError("name a folder of their own for the new rows: --out FOLDER")
        folder.mkdir(parents=True, exist_ok=True)
        for command in COMMANDS:
            click.echo(command.split(" --out")[0], err=True)
            words = [part.format(data=data_dir, F=folder) for part in command.split()]
            done = subprocess.run([sys.executable, "-m", f"experiments.{words[0]}", *words[1:]])
            if done.returncode:
                raise SystemExit(done.returncode)
    click.echo("| what | goal | measured | |\n| --- | --- | --- | --- |")
    for cells in lines(folder):
        click.echo(f"| {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
