"""Run what a figure needs, write its rows, and draw it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import click
import numpy as np
import pandas as pd

import implicit_bias as ib
from experiments.tables import Kept, data_folder, images_of, out_folder, to_write_to

from .elsewhere import ELSEWHERE, Elsewhere
from .figures import AS_PRINTED, draw
from .points import MEASURED, of_figure, points_of, published_points
from .recipe import recipe_points
from .settings import FIGURES, RECIPE, recipe_grids, sweeps_of


class Papers(click.Group):
    """A command for every figure that is redone: of this paper, and of the other sources."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all figures."""
        return [*FIGURES, *ELSEWHERE]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command of a figure, None of one that there is not."""
        if cmd_name in ELSEWHERE:
            return Elsewhere(cmd_name)
        return _command(cmd_name) if cmd_name in FIGURES else None


@click.group(cls=Papers)
def main() -> None:
    """Redo a figure of one of the sources: its rows and its picture are written below --out.

    gln-2, relu-3, gln-4 and relu-5 are figures 2 to 5 of the paper on gated linear networks.
    """


def _command(name: str) -> click.Command:
    figure = FIGURES[name]
    options = [
        click.option("--full", is_flag=True, help="The published sizes; small ones without it."),
        data_folder,
        click.option(
            "--folder",
            type=click.Path(path_type=Path),
            callback=to_write_to,
            default=Path("runs/paper"),
            show_default=True,
            help="Of runs: those that it has are not done again, and what was cut short goes on.",
        ),
        out_folder,
        click.option("--jobs", type=click.IntRange(min=1), default=1, show_default=True),
    ]
    if figure.of == "gln":
        told = "Beside the right programs those that were published, errors included."
        options.append(click.option("--printed", is_flag=True, help=told))
    command = partial(redo, name)
    for option in reversed(options):
        command = option(command)
    return click.command(name, help=f"Redo {figure.title}.", short_help=figure.title)(command)


def redo(
    name: str,
    *,
    full: bool,
    data_dir: Path | None,
    folder: Path,
    out: Path,
    jobs: int,
    printed: bool = False,
) -> None:
    """Run what a figure needs, write its rows and draw it."""
    figure = FIGURES[name]
    images = images_of(data_dir)
    kept = Kept(
        out / f"paper_{name.replace('-', '_')}_{images.file}.csv", options={"full": full},
        float_format="%.6g",
    )  # fmt: skip
    given: dict[str, Any] = (
        {"data": images.data}
        if data_dir is None
        else {"data": images.data, "data_dir": str(data_dir)}
    )
    tables, lost = [], 0
    path = folder / images.file / "recipe.csv"
    for grid in recipe_grids(figure, full=full):
        try:
            for cell in recipe_points(grid, {**given, **RECIPE}, path, jobs=jobs):
                click.echo(cell, err=True)
        except KeyboardInterrupt:
            click.echo(f"interrupted: {path} has the networks that were trained", err=True)
            raise SystemExit(130) from None
        tables.append(of_figure(_of_grid(pd.read_csv(path), grid, printed=printed), figure))
    for part in sweeps_of(figure, full=full):
        cells, where = ib.sweeps.product(part.grid), folder / images.file / part.name
        done = ib.sweep(
            part.model, cells, out=where, jobs=jobs, progress=True, **given, **part.options
        )
        for failed, message in done.failures.items():
            click.echo(f"{part.name}, cell {failed}: {message}", err=True)
        lost += len(done.failures)
        tables.append(points_of(done.frame()))
        if not done.finished:
            raise SystemExit(130)
    points = pd.concat([one for one in tables if len(one)], ignore_index=True)
    kept.replace(points)
    published = pd.concat(of_figure(published_points(of), figure) for of in ("gln", "relu"))
    draw(figure, points, published, data=images.said).savefig(
        kept.path.with_suffix(".png"), dpi=130
    )
    keys = ["program", "trainer", "contexts", "hidden_units"]
    click.echo(
        points.groupby(keys, dropna=False)[list(MEASURED)]
        .mean()
        .to_string(float_format="{:.2%}".format)
    )
    if lost:
        raise click.ClickException(f"runs that failed and are not in the figure: {lost}")


def _of_grid(points: pd.DataFrame, grid: Mapping[str, Any], *, printed: bool) -> pd.DataFrame:
    """Return the points of a grid's cells: the file may have those of larger figures."""
    asked = [points[name].isin(values) for name, values in grid.items()]
    if not printed:
        asked.append(~points["program"].str.endswith(AS_PRINTED))
    return points[np.logical_and.reduce(asked)]


if __name__ == "__main__":
    main()
