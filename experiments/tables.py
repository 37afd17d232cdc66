"""Tables of an experiment, its sizes, and the folders that it reads and writes.

Rows are written as they come, and those of an earlier run are kept. All rows of a file are of the
same options, which `options.json` beside it has. An experiment that redoes a published figure is
small as it is, minutes at most, and has the published sizes with `--full`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from io import BytesIO
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

import click
import pandas as pd

from implicit_bias._support.files import check_writable, from_json, write_atomically
from implicit_bias.data.files.idx import idx_pair
from implicit_bias.data.images import load_idx_classes

Command = Callable[..., None]
NOTHING: Mapping[str, Any] = MappingProxyType({})

# Beside tables: the options that rows of each are of, by its name.
OPTIONS = "options.json"


# Images of digits, as files of results are named after them, and as pictures say it.
IMAGES: Mapping[str, str] = MappingProxyType(
    {
        "digits": "scikit-learn's digits",
        "mnist": "MNIST's test images",
        "mnist_train": "MNIST's training images",
    }
)


class Images(NamedTuple):
    """Images of digits, by the folder that they are read of.

    Attributes
    ----------
    data : {"digits", "mnist"}
        In the catalogue of data sets.
    file : str
        In names of files; training and test images are in files of their own.
    said : str
        In pictures.
    """

    data: Literal["digits", "mnist"]
    file: str
    said: str


def images_of(data_dir: Path | None) -> Images:
    """Return which images a folder has, bundled ones without it."""
    if data_dir is None:
        return Images("digits", "digits", IMAGES["digits"])
    file = "mnist_train" if idx_pair(data_dir) == "train" else "mnist"
    return Images("mnist", file, IMAGES[file])


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


def to_write_to(
    context: click.Context | None, option: click.Parameter, folder: Path | None
) -> Path | None:
    """Make the folder that an option names, before any work; one that cannot be is refused."""
    if folder is not None:
        _made(folder, folder, context, option)
    return folder


def _file_to_write(
    context: click.Context | None, option: click.Parameter, path: Path | None
) -> Path | None:
    """Make the folder of the file that an option names, before any work."""
    if path is not None:
        _made(path, path.parent, context, option)
    return path


def _made(
    named: Path, folder: Path, context: click.Context | None, option: click.Parameter
) -> None:
    try:
        check_writable(folder, folder=True)
        folder.mkdir(parents=True, exist_ok=True)
        check_writable(named, folder=named == folder)
    except ValueError as error:
        raise click.BadParameter(str(error), context, option) from None
    except OSError as error:
        why = f"cannot write {str(named)!r}: {error.strerror}"
        raise click.BadParameter(why, context, option) from None


def _of_images(
    context: click.Context | None, option: click.Parameter, folder: Path | None
) -> Path | None:
    """Read one image of the folder that an option names, before any work."""
    if folder is not None:
        try:
            load_idx_classes(folder, n_train=1, n_val=1)
        except (ValueError, OSError) as error:
            raise click.BadParameter(str(error), context, option) from None
    return folder


@contextmanager
def refused(option: str) -> Iterator[None]:
    """Say that a ValueError of what is done in here is of the value of this option."""
    try:
        yield
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint=option) from None


out_folder = click.option(
    "--out",
    type=click.Path(path_type=Path),
    callback=to_write_to,
    default=Path("runs"),
    show_default=True,
    help="Folder to write to; that of the committed rows is experiments/results.",
)


def out_file(default: Path | None = None) -> Callable[[Command], Command]:
    """Option of the CSV file to write, none without `default`."""
    return click.option(
        "--out",
        type=click.Path(path_type=Path),
        callback=_file_to_write,
        default=default,
        show_default=default is not None,
        help="CSV file to write.",
    )


data_folder = click.option(
    "--data-dir",
    type=click.Path(path_type=Path),
    callback=_of_images,
    help="Folder of MNIST's IDX files; scikit-learn's digits without it.",
)


class Kept:
    """Rows in a CSV file that are all of the same options; the file is whole after every change.

    Parameters
    ----------
    path : Path
    key : sequence of str
        Columns that name what was run: rows of an earlier run are kept, and `(1, "relu") in kept`
        tells whether there are some of these values. Without it rows are written anew.
    options : mapping
        What rows depend on besides, by the names of the command's options.
    float_format : str, optional
        Of floats in the file.
    reading
        For `pandas.read_csv`.

    Attributes
    ----------
    table : DataFrame
        The rows so far.

    Raises
    ------
    click.UsageError
        If the file has rows of other options, or is not what this has written.
    """

    def __init__(
        self, path: Path, key: Sequence[str] = (), *, options: Mapping[str, Any] = NOTHING,
        float_format: str | None = None, **reading: Any,
    ) -> None:  # fmt: skip
        self.path, self._key, self._reading = path, key, reading
        self._float_format = float_format
        self._options = {name: _plain(value) for name, value in options.items()}
        self.table = pd.DataFrame()
        if options and path.exists():
            _check_options(path, self._options)
        self._done = self._read()

    def _read(self) -> set[tuple[Any, ...]]:
        """Take over the rows in the file, and return their values of the key."""
        if not self._key or not self.path.exists():
            return set()
        self.table = _read(self.path, self._key, self._reading)
        return set(_keys(self.table, self._key))

    def __contains__(self, values: object) -> bool:
        return values in self._done

    def add(self, rows: pd.DataFrame | Iterable[Mapping[str, Any]]) -> None:
        """Write these rows after the others, those that another command has written meanwhile too.

        Rows that it has made as well are its own.
        """
        found = rows if isinstance(rows, pd.DataFrame) else pd.DataFrame(list(rows))
        if self._key:
            self._done |= (others := self._read() - self._done)
            found = found[[one not in others for one in _keys(found, self._key)]]
            self._done |= set(_keys(found, self._key))
        parts = [one for one in (self.table, found) if len(one)]
        self.replace(pd.concat(parts, ignore_index=True) if parts else found)

    def replace(self, table: pd.DataFrame) -> None:
        """Write these rows in place of the others."""
        self.table = table
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if self._options:
            _note_options(self.path, self._options)
        text = table.to_csv(index=False, float_format=self._float_format)
        write_atomically(self.path, text.encode())


def _keys(table: pd.DataFrame, key: Sequence[str]) -> list[tuple[Any, ...]]:
    """Return the values of the key of every row."""
    return list(zip(*(table[name] for name in key), strict=True)) if len(table) else []


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _read(path: Path, key: Sequence[str], reading: Mapping[str, Any]) -> pd.DataFrame:
    content = path.read_bytes()
    try:
        if not content.endswith(b"\n"):
            raise ValueError("its last line was cut short")
        table = pd.read_csv(BytesIO(content), **reading)
        if missing := [name for name in key if name not in table]:
            raise ValueError(f"it has no column {missing[0]!r}")
    except ValueError as error:
        raise click.UsageError(
            f"{path} is not as it was written: {error}; mend or delete it, or write to another "
            "folder"
        ) from None
    return table


def _options_in(folder: Path) -> dict[str, Any]:
    """Return the options of the tables of a folder, by their names."""
    path = folder / OPTIONS
    try:
        found = from_json(path.read_bytes()) if path.exists() else {}
        if not isinstance(found, dict):
            raise ValueError("it must be an object")
    except ValueError as error:
        raise click.UsageError(f"{path} cannot be read: {error}") from None
    return found


def _check_options(path: Path, options: Mapping[str, Any]) -> None:
    """Refuse a table of other options: its rows are not to be mixed with new ones, nor lost."""
    known = _options_in(path.parent).get(path.name)
    if known == options:
        return
    if isinstance(known, dict) and set(known) == set(options):
        other = [name for name in options if known[name] != options[name]]
        has, asked = (" ".join(_typed(name, of[name]) for name in other) for of in (known, options))
        why = f"has rows of {has}, and {asked} is asked for"
    else:
        why = f"has rows of which {path.parent / OPTIONS} does not tell the options"
    raise click.UsageError(f"{path} {why}: write to another folder, or delete it")


def _typed(name: str, value: Any) -> str:
    option = f"--{name.replace('_', '-')}"
    if isinstance(value, list):
        value = ", ".join(map(str, value)) or "not given"
    if isinstance(value, bool):
        return option if value else f"no {option}"
    return f"{option} {value}"


def _note_options(path: Path, options: Mapping[str, Any]) -> None:
    known = _options_in(path.parent)
    if known.get(path.name) != options:
        text = json.dumps({**known, path.name: options}, indent=2, sort_keys=True)
        write_atomically(path.parent / OPTIONS, f"{text}\n".encode())


def keep_rows(
    rows: Iterable[Mapping[str, Any]],
    to: Kept | Path | None,
    *,
    digits: str,
) -> None:
    """Show rows one by one, floats in the format `digits`, and write all there are so far.

    `to` is the CSV file, whose folder is made; rows of an earlier run stay where it is `Kept`. None
    writes nothing.
    """
    kept = Kept(to) if isinstance(to, Path) else to
    for row in rows:
        click.echo(
            "  ".join(
                f"{name} {format(value, digits) if isinstance(value, float) else value}"
                for name, value in row.items()
            )
        )
        if kept is not None:
            kept.add([row])
