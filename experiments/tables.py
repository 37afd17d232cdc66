"""Tables of an experiment, and its sizes.

Rows are written as they come, and those of an earlier run are kept. An experiment that redoes a
published figure is small as it is, minutes at most, and has the published sizes with `--full`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from pathlib import Path
from types import MappingProxyType
from typing import Any

import click
import pandas as pd

__all__ = ["IMAGES", "begun", "images_of", "keep_rows", "out_folder", "sizes"]

Command = Callable[..., None]
NOTHING: Mapping[str, int] = MappingProxyType({})


# Images of digits, as files of results are named after them, and as pictures say it.
IMAGES: Mapping[str, str] = MappingProxyType(
    {"digits": "scikit-learn's digits", "mnist": "MNIST's test images"}
)


def images_of(data_dir: Path | None) -> tuple[str, str]:
    """Return the name of the images of a folder, bundled ones without it, and how it is said."""
    name = "digits" if data_dir is None else "mnist"
    return name, IMAGES[name]


def sizes(
    least: Mapping[str, int] = NOTHING, **given: tuple[int, int]
) -> Callable[[Command], Command]:
    """Options of a command that are small, or of the published size with its option `--full`.

    `sizes(seeds=(1, 5))` adds `--seeds`: 1 where it is not given, and 5 with `--full`. `least` has
    what a size is at least, where that is not 1.
    """

    def decorated(command: Command) -> Command:
        @wraps(command)
        def sized(*, full: bool, **options: Any) -> None:
            for name, pair in given.items():
                if options[name] is None:
                    options[name] = pair[full]
            command(**options)

        for name, (small, large) in reversed(given.items()):
            told = f"{small:,}, and {large:,} with --full." if small != large else f"{small:,}."
            kind = click.IntRange(min=least.get(name, 1))
            sized = click.option(f"--{name.replace('_', '-')}", type=kind, help=told)(sized)
        told = "The published sizes; small ones without it."
        return click.option("--full", is_flag=True, help=told)(sized)

    return decorated


out_folder = click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("runs"),
    show_default=True,
    help="Folder to write to; that of the committed rows is experiments/results.",
)


def begun(
    path: Path, key: Sequence[str], **reading: Any
) -> tuple[pd.DataFrame, set[tuple[Any, ...]]]:
    """The table that an earlier run left at `path`, empty without one, and its values of `key`.

    `reading` goes to `pandas.read_csv`.
    """
    table = pd.read_csv(path, **reading) if path.exists() else pd.DataFrame()
    done = set() if table.empty else set(zip(*(table[name] for name in key), strict=True))
    return table, done


def keep_rows(
    rows: Iterable[Mapping[str, Any]],
    path_of: Path | Callable[[Mapping[str, Any]], Path] | None,
    *,
    digits: str,
) -> None:
    """Show rows one by one, floats in the format `digits`, and write all there are so far.

    `path_of` is the CSV file, or names it by a row; its folder is made. None writes nothing.
    """
    written: list[Mapping[str, Any]] = []
    for row in rows:
        written.append(row)
        click.echo(
            "  ".join(
                f"{name} {format(value, digits) if isinstance(value, float) else value}"
                for name, value in row.items()
            )
        )
        if path_of is not None:
            path = path_of(row) if callable(path_of) else path_of
            path.parent.mkdir(parents=True, exist_ok=True)
            pd.DataFrame(written).to_csv(path, index=False)
