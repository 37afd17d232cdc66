"""Saved runs, read back: the report of a folder, or what else a file holds."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._extras import naming_extras
from .._files import write_atomically
from .._saved import check_format, kind_of, read_saved
from .encoding import Decoder
from .files import INDEX, REPORT, RESULTS
from .finding import Finding
from .report import Report
from .saving import KIND, PLAIN

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["is_run", "load"]

PACKAGE = __name__.split(".")[0]


@naming_extras()
def load(path: str | os.PathLike[str]) -> Any:
    """What was saved: the report of a run's folder, or what else a file of this package holds.

    Parameters
    ----------
    path : path
        The folder that `run(..., save=path)`, ``compare --save`` or `Report.save` wrote: its report
        comes back, with limits, networks (on the CPU), trajectories and comparisons, and draws its
        pictures. Or a file: a limit, a gating or a trajectory that its `save` wrote.

    Raises
    ------
    FileNotFoundError
        If there is nothing.
    ValueError
        If it is something else, of another version, damaged, or a run that is not finished.

    Examples
    --------
    >>> ib.run("linear", n_train=40, steps=200, save="runs/x")
    >>> ib.load("runs/x").limit.objective
    """
    path = Path(path)
    if path.is_dir():
        return _read_report(path)
    if not path.exists():
        raise FileNotFoundError(f"there is no {str(path)!r} to load")
    if path.name == REPORT:
        return _read_report(path.parent)
    name = kind_of(path)
    places = (
        import_module(f"{PACKAGE}{place}")
        for place in ("", ".limits", ".kernels", ".equivalence", ".gates")
    )
    found: Any = next((getattr(place, name) for place in places if name in place.__all__), None)
    if not hasattr(found, "load"):
        raise ValueError(
            f"{str(path)!r} holds {name} of a run: load the folder that it is in, or read its "
            "arrays with safetensors"
        )
    return found.load(path)


def is_run(folder: str | os.PathLike[str]) -> bool:
    """Whether a folder is that of a run, finished or not."""
    return any((Path(folder) / name).is_file() for name in (INDEX, RESULTS, REPORT))


def _read_report(folder: Path) -> Report:
    _check_folder(folder)
    path = folder / REPORT
    arrays, record = read_saved(path, KIND)
    try:
        return _report(record, arrays, folder)
    except (KeyError, ValueError, AttributeError, ImportError, TypeError) as error:
        raise KIND.refused(path, f"this version does not know a part of it ({error})") from error


def _report(record: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], folder: Path) -> Report:
    decoder = Decoder(arrays)
    return Report(
        heading=decoder.decode(record["heading"]),
        findings=tuple(_finding(decoder, tree, folder) for tree in record["findings"]),
        interrupted=record["interrupted"],
        failure=record["failure"],
        call=record["call"],
    )


def _finding(decoder: Decoder, tree: Mapping[str, Any], folder: Path) -> Finding:
    # In the order in which they were written: what was met first holds what later ones share.
    objects = {name: decoder.decode(one) for name, one in tree["objects"]}
    panels = tuple(decoder.decode(one) for one in tree["panels"])
    plain = {name: decoder.decode(tree[name]) for name in PLAIN}
    return Finding(
        **plain,
        objects=objects,
        panels=panels,
        files={name: partial(_copy, folder / Path(name).name) for name in tree["files"]},
        parts={name: _finding(decoder, part, folder) for name, part in tree["parts"]},
    )


def _copy(source: Path, path: Path) -> None:
    if source.resolve() != path.resolve():
        write_atomically(path, source.read_bytes())


def _check_folder(folder: Path) -> None:
    """Refuse a folder without a report, and say what it is instead."""
    if (folder / REPORT).is_file():
        return
    where = repr(str(folder))
    if (folder / RESULTS).is_file():
        check_format(folder, _plain_json(folder / RESULTS) | {"format": None})
    if (folder / INDEX).is_file():
        raise ValueError(
            f"{where} holds a run that is not finished: go on with it by `--resume`, or "
            "`run(..., resume=True)`"
        )
    if any(folder.glob("*.parquet")):
        raise ValueError(
            f"{where} holds the rows of a sweep and no single run: read it with pandas.read_parquet"
            ", or see it with `implicit-bias show`"
        )
    raise ValueError(f"{where} holds no saved run: name the folder of `--save`")


def _plain_json(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ValueError(f"{str(path)!r} cannot be read ({error}): run it again") from error
    return found if isinstance(found, dict) else {}
