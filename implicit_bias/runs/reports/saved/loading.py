"""Saved runs, read back: the report of a folder, or what else a file holds."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from types import NoneType
from typing import Any, TypeVar, get_args, get_origin, overload

from ...._support.doors import door
from ...._support.extras import naming_extras
from ...._support.files import check_plain, from_json, read_plain, write_atomically
from ...._support.kinds import anything
from ...._support.names import PROMISED, Unreadable, found
from ...._support.saved import filled, kind_of, read_saved
from ..finding import Finding
from ..report import Report
from ..row import NAMES
from ..verdict import WORDS, Verdict
from ..views import Views
from .encoding import Decoder, entry
from .files import INDEX, REPORT, RESULTS, is_beside
from .saving import KIND, PLAIN

T = TypeVar("T")


@overload
def load(path: str | os.PathLike[str]) -> Report: ...
@overload
def load(path: str | os.PathLike[str], kind: type[T]) -> T: ...
@naming_extras()
@door(kind=anything)
def load(path: str | os.PathLike[str], kind: type[Any] | None = None) -> Any:
    """Load what was saved: the report of a run's folder, or a single result from its file.

    Nothing in a file is run, and nothing in it is proved: certificates are as they were written.
    `limit.certify(X, y, gates)` proves a limit anew, on the data.

    Parameters
    ----------
    path : path
        The folder that `run(..., save=path)`, ``compare --save`` or `Report.save` wrote, or the
        file of a limit, a gating or a trajectory, which its `save` wrote.
    kind : type, optional
        The class of what is there. By default whatever it is; type checkers take that for a report
        of a model with the limit of the SVM's kind, so that files, and reports of other models,
        are loaded typed as `load("limit.safetensors", ib.limits.GLNLimit)` and
        `load("runs/x", ib.Report[Literal["gdln"]])`.

    Returns
    -------
    Report or object
        Of a folder the report, with limits, networks (on the CPU), trajectories and comparisons;
        it draws its pictures. Of a file an object of the class that saved it.

    Raises
    ------
    FileNotFoundError
        If there is no such folder or file.
    TypeError
        If it is of another class than `kind`, or the report of another model.
    ValueError
        If it is something else, of another version, damaged, or a run that is not finished.

    Examples
    --------
    >>> report = ib.run("linear", n_train=40, steps=20, save="runs/x")
    >>> ib.load("runs/x").limit.objective == report.limit.objective
    True
    """
    loaded = _loaded(Path(path))
    if kind is not None:
        _check_kind(loaded, kind, path)
    return loaded


def _check_kind(loaded: object, kind: type[Any], path: str | os.PathLike[str]) -> None:
    """Refuse what is of another class, or a report of another model than `Report[...]` names."""
    wanted = get_origin(kind) or kind
    if not isinstance(wanted, type):
        raise TypeError(f"`kind` must be a class, such as Report or GLNLimit, got {kind!r}")
    if not isinstance(loaded, wanted):
        got = type(loaded).__name__
        raise TypeError(f"`kind`: {str(path)!r} holds {got}, not {wanted.__name__}: name that")
    models = get_args(get_args(kind)[0]) if get_args(kind) else ()
    if isinstance(loaded, Report) and models and loaded.heading.model not in models:
        raise TypeError(
            f"`kind`: {str(path)!r} is a run of the model {loaded.heading.model!r}, not of "
            f"{' or '.join(map(repr, models))}: name that"
        )


def _loaded(path: Path) -> Any:
    if path.is_dir():
        return _read_report(path)
    if not path.exists():
        raise FileNotFoundError(f"there is no {str(path)!r} to load")
    if path.name == REPORT:
        return _read_report(path.parent)
    name = kind_of(path)
    saved: Any = found(name) if name in PROMISED else None
    if not hasattr(saved, "load"):
        raise ValueError(
            f"{str(path)!r} holds {name}, which is no result by itself: load the folder of the run "
            "that it is in, or by the class that saved it, or read its arrays with safetensors"
        )
    return saved.load(path)


def is_run(folder: str | os.PathLike[str]) -> bool:
    """Return True for the folder of a run, finished or not."""
    return any((Path(folder) / name).is_file() for name in (INDEX, RESULTS, REPORT))


def _read_report(folder: Path) -> Report:
    _check_folder(folder)
    path = folder / REPORT
    arrays, record = read_saved(path, KIND)
    with KIND.complete(path, "it"):
        try:
            report = _report(record, Decoder(arrays), folder)
            _check_shown(report)
            return report
        except Unreadable:
            raise
        except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError) as error:
            raise Unreadable(f"it is not built as a report is ({error})") from error


def _check_shown(report: Report) -> None:
    """Let a report say all that it has to say, pictures aside: what cannot is no report."""
    from ..shown.page import page_tables

    report.details(), report.rows(), report.to_json(), report._repr_html_(), page_tables(report)
    texts = [str(report), *map(repr, (report, report.heading, *report.objects.values()))]
    if not all(isinstance(text, str) for text in texts):
        raise Unreadable("it has no text")


def _report(record: Mapping[str, Any], decoder: Decoder, folder: Path) -> Report:
    heading = decoder.decode(entry(record, "heading", dict))
    findings = tuple(_finding(decoder, tree, folder) for tree in entry(record, "findings", list))
    if not isinstance(heading, found("class:Heading")) or not findings:
        raise Unreadable("it has no heading or no findings")
    return Report(
        heading=heading,
        findings=findings,
        interrupted=entry(record, "interrupted", bool),
        failure=entry(record, "failure", str, NoneType),
        call=entry(record, "call", str),
    )


def _finding(decoder: Decoder, tree: Any, folder: Path) -> Finding:
    # In the order in which they were written: what was met first holds what later ones share.
    objects = {name: decoder.decode(one) for name, one in entry(tree, "objects", list)}
    panels = tuple(decoder.decode(one) for one in entry(tree, "panels", list))
    plain = {name: decoder.decode(tree[name]) for name in PLAIN if name in tree}
    for name, value in plain.items():
        if not isinstance(value, PLAIN[name]):
            raise Unreadable(f"{name!r} of a finding is {type(value).__name__}")
    for one in plain.get("verdicts", ()):
        if not (isinstance(one, Verdict) and one.word in WORDS):
            raise Unreadable("a verdict has none of the known words")
    files = [_plain_name(name) for name in entry(tree, "files", list)]
    row = {name: value for name, value in plain.get("row", {}).items() if name in NAMES}
    state = plain | {
        "row": row,
        "objects": objects,
        "panels": panels,
        "files": {name: partial(_copy, folder / name) for name in files},
    }
    parts = {name: _finding(decoder, part, folder) for name, part in entry(tree, "parts", list)}
    key: str = filled(Finding, state)["key"]
    return Finding(key, further=Views(**filled(Views, state)), parts=parts)


def _plain_name(name: Any) -> str:
    """Return the name of a file beside the report, so that a copy of it lies beside the copy."""
    if not (isinstance(name, str) and is_beside(name)):
        raise Unreadable(f"{name!r} is no plain name of a file")
    return name


def _copy(source: Path, path: Path) -> None:
    if source.resolve() != path.resolve():
        write_atomically(path, read_plain(source))


def _check_folder(folder: Path) -> None:
    """Refuse a folder without a report, and say what it is instead."""
    where = repr(str(folder))
    try:
        check_plain(folder / REPORT)
    except OSError as error:
        raise ValueError(f"{REPORT} in {where} cannot be read: {error.strerror}") from error
    if (folder / REPORT).is_file():
        return
    if (folder / RESULTS).is_file():
        raise ValueError(
            f"{where} holds the results of a run by implicit-bias {_version(folder / RESULTS)}, "
            f"but {REPORT} is missing, from which it is loaded: bring it back, or run it again"
        )
    if (folder / INDEX).is_file():
        raise ValueError(
            f"{where} holds a run that is not finished: go on with it by `--resume`, or "
            "`run(..., resume=True)`"
        )
    if any(folder.glob("*.parquet")) or any(folder.glob("_new/*")):
        raise ValueError(
            f"{where} holds the rows of a sweep and no single run: read it with `sweeps.read_rows`"
            ", or see it with `implicit-bias show`"
        )
    raise ValueError(f"{where} holds no saved run: name the folder of `--save`")


def _version(results: Path) -> str:
    """Return the version that wrote these results."""
    try:
        record = from_json(read_plain(results))
    except (OSError, ValueError) as error:
        raise ValueError(f"{str(results)!r} cannot be read ({error}): run it again") from error
    known = isinstance(record, dict) and "version" in record
    return str(record["version"]) if known else "of an unknown version"
