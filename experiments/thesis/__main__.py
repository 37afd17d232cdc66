"""Compute what a figure of the thesis needs, write its rows, and draw it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import pandas as pd

from ..tables import out_folder
from . import exits, labels, layers, surfaces

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SECONDS = 30  # between two writings of a table

Rows = Callable[[bool, Path | None], Iterator[dict[str, Any]]]
FIGURES: dict[str, tuple[Rows, Callable[[pd.DataFrame], Figure]]] = {
    "exits": (lambda full, data_dir: exits.rows(data_dir, full=full), exits.draw),
    "surfaces": (lambda full, data_dir: surfaces.rows(), lambda table: surfaces.draw()),
    "labels": (lambda full, data_dir: labels.rows(full=full), labels.draw),
    "layers": (lambda full, data_dir: layers.rows(full=full), layers.draw),
}


@click.command()
@click.argument("name", type=click.Choice(list(FIGURES)))
@click.option("--full", is_flag=True, help="The published sizes; small ones without it.")
@click.option(
    "--data-dir",
    type=click.Path(path_type=Path, exists=True),
    help="Folder of MNIST's IDX files, for `exits`; scikit-learn's digits without it.",
)
@out_folder
def main(name: str, full: bool, data_dir: Path | None, out: Path) -> None:
    """Redo figure NAME: its rows and its picture are written below --out."""
    rows, draw = FIGURES[name]
    data = {"exits": "_digits" if data_dir is None else "_mnist"}.get(name, "")
    path = out / f"thesis_{name}{data}.csv"
    out.mkdir(parents=True, exist_ok=True)
    found: list[dict[str, Any]] = []
    written = time.monotonic()
    for row in rows(full, data_dir):
        found.append(row)
        if time.monotonic() > written + SECONDS:  # of a run that is cut short these are kept
            pd.DataFrame(found).to_csv(path, index=False, float_format="%.5g")
            written = time.monotonic()
    pd.DataFrame(found).to_csv(path, index=False, float_format="%.5g")
    draw(pd.read_csv(path)).savefig(path.with_suffix(".png"), dpi=110)


if __name__ == "__main__":
    main()
