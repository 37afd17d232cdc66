"""Compute what a figure of the thesis needs, write its rows, and draw it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import pandas as pd

from ..tables import Kept, data_folder, images_of, out_folder
from . import exits, labels, layers, surfaces

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SECONDS = 30  # between two writings of a table

full_sizes = click.option(
    "--full", is_flag=True, help="The published sizes; small ones without it."
)


@click.group()
def main() -> None:
    """Redo figures of the thesis: their rows and their picture are written below --out."""


@main.command("exits")
@full_sizes
@data_folder
@out_folder
def _exits(full: bool, data_dir: Path | None, out: Path) -> None:
    """Figures 6.2 to 6.7 and E.1: exits behind convolutions."""
    kept = _kept(out, f"exits_{images_of(data_dir).file}", full=full)
    _redo(kept, exits.rows(data_dir, full=full), exits.draw)


@main.command("surfaces")
@out_folder
def _surfaces(out: Path) -> None:
    """Figures 2.1 to 2.4: piecewise linear surfaces, as large as they are in print."""
    _redo(_kept(out, "surfaces"), surfaces.rows(), lambda table: surfaces.draw())


@main.command("labels")
@full_sizes
@out_folder
def _labels(full: bool, out: Path) -> None:
    """Figures 4.2 and 4.3: mutual autoencoders of ten labels and of a normal variable."""
    _redo(_kept(out, "labels", full=full), labels.rows(full=full), labels.draw)


@main.command("layers")
@full_sizes
@out_folder
def _layers(full: bool, out: Path) -> None:
    """Figures 3.1 and 3.2: singular values and rows of two networks."""
    _redo(_kept(out, "layers", full=full), layers.rows(full=full), layers.draw)


def _kept(out: Path, name: str, **options: bool) -> Kept:
    return Kept(out / f"thesis_{name}.csv", options=options, float_format="%.5g")


def _redo(
    kept: Kept, rows: Iterable[Mapping[str, Any]], draw: Callable[[pd.DataFrame], Figure]
) -> None:
    """Write rows, some at a time, and draw what is in the file."""
    found: list[Mapping[str, Any]] = []
    written = time.monotonic()
    for row in rows:
        found.append(row)
        if time.monotonic() > written + SECONDS:  # of a run that is cut short these are kept
            kept.add(found)
            found, written = [], time.monotonic()
    kept.add(found)
    draw(pd.read_csv(kept.path)).savefig(kept.path.with_suffix(".png"), dpi=110)


if __name__ == "__main__":
    main()
