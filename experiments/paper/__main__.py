"""Run what a figure needs, write its rows, and draw it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
import numpy as np
import pandas as pd

import implicit_bias as ib

from .as_printed import CELL, points_as_printed
from .figures import draw
from .points import points_of, published_points
from .settings import FIGURES, sweeps_of

SAID = {"digits": "bundled digits", "mnist": "MNIST's test images"}
RESULTS = Path(__file__).parents[1] / "results"


@click.command()
@click.argument("name", type=click.Choice(list(FIGURES)))
@click.option("--full", is_flag=True, help="The published sizes; small ones without it.")
@click.option(
    "--data-dir",
    type=click.Path(path_type=Path, exists=True),
    help="Folder of MNIST's IDX files; scikit-learn's digits without it.",
)
@click.option("--folder", type=click.Path(path_type=Path), default="runs/paper", show_default=True)
@click.option("--out", type=click.Path(path_type=Path), default=RESULTS, show_default=True)
@click.option(
    "--printed",
    is_flag=True,
    help="Beside the right programs those that were published, errors included (gln alone).",
)
@click.option("--jobs", type=click.IntRange(min=1), default=1, show_default=True)
def main(
    name: str, full: bool, data_dir: Path | None, folder: Path, out: Path, printed: bool, jobs: int
) -> None:
    """Redo figure NAME: its rows and its picture are written below --out.

    Runs that --folder has are not done again, so that what was cut short goes on.
    """
    figure = FIGURES[name]
    if printed and figure.of != "gln":
        raise click.UsageError("--printed is for gated linear networks: gln-2 and gln-4")
    data = "digits" if data_dir is None else "mnist"
    given: dict[str, Any] = (
        {"data": data} if data_dir is None else {"data": data, "data_dir": str(data_dir)}
    )
    tables = []
    for part in sweeps_of(figure, full=full):
        grid, cells = ib.sweeps.product(part.grid), folder / data / part.name
        done = ib.sweep(
            part.model, grid, out=cells, jobs=jobs, progress=True,
            **given, **part.options,
        )  # fmt: skip
        for cell, message in done.failures.items():
            click.echo(f"{part.name}, cell {cell}: {message}", err=True)
        tables.append(points_of(done.frame()))
        if not done.finished:
            raise SystemExit(130)
    if printed:
        path = folder / data / "as-printed.csv"
        whole = next(iter(sweeps_of(figure, full=full))).grid
        for cell in points_as_printed(whole, given, path):
            click.echo(f"as printed: {cell}", err=True)
        tables.append(_of_grid(pd.read_csv(path), whole))
    points = pd.concat([one for one in tables if len(one)], ignore_index=True)
    out.mkdir(parents=True, exist_ok=True)
    stem = out / f"paper_{name.replace('-', '_')}_{data}"
    points.to_csv(stem.with_suffix(".csv"), index=False, float_format="%.6g")
    published = published_points(figure.of)
    draw(figure, points, published, data=SAID[data]).savefig(stem.with_suffix(".png"), dpi=130)
    keys = ["program", "trainer", "contexts", "hidden_units"]
    said = ["error_program", "error_network", "inconsistency"]
    click.echo(
        points.groupby(keys, dropna=False)[said].mean().to_string(float_format="{:.2%}".format)
    )


def _of_grid(points: pd.DataFrame, grid: Mapping[str, Any]) -> pd.DataFrame:
    """Return the points of a grid's cells: the file may have those of larger sweeps."""
    asked = [points[name].isin(grid[name]) for name in CELL]
    return points[np.logical_and.reduce(asked)]


if __name__ == "__main__":
    main()
