"""What is kept of a cell beside its rows: its report, or single results, in a folder of its own."""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import uuid
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from .._support.files import from_json, read_plain, write_atomically
from ..options.values import not_one_of
from ..runs.reports.report import Report
from ..runs.reports.row import COLUMNS
from ..runs.reports.saved.files import REPORT
from ..runs.reports.saved.loading import load
from .records import NotWritten

KEPT = ("report", "limit", "network", "trajectory")
# Which of them were kept of a cell, with or without a file.
KEPT_INDEX = "kept.json"
NUMBERS = frozenset(one.name for one in COLUMNS if one.type in ("float64", "int64"))
Rule = Callable[[Mapping[str, Any]], bool]


def as_rules(save: str | Iterable[str] | Mapping[str, Rule | None]) -> dict[str, Rule | None]:
    """Return what is kept, with the rules that name the cells; None is all of them.

    Raises
    ------
    TypeError, ValueError
        If it is none of `KEPT`, or a rule is no function.
    """
    names = (save,) if isinstance(save, str) else save
    if isinstance(names, type) or not isinstance(names, Iterable):
        raise TypeError(f"`save` must be names of what is kept, got {save!r}: {', '.join(KEPT)}")
    rules = dict(names) if isinstance(names, Mapping) else dict.fromkeys(names)
    for name, rule in rules.items():
        if name not in KEPT:
            raise ValueError(f"`save`: {not_one_of(name, KEPT)}")
        if rule is not None and not callable(rule):
            raise TypeError(
                f"`save`: the rule of {name!r} must be a function of a row, got "
                f"{type(rule).__name__}"
            )
    return rules


def named(rules: Mapping[str, Rule | None], rows: Sequence[Mapping[str, Any]]) -> set[str]:
    """Return what the rules keep of the cell with these rows, whose missing numbers are NaN."""
    known = [{name: math.nan if value is None and name in NUMBERS else value
              for name, value in row.items()} for row in rows]  # fmt: skip
    return {name for name, rule in rules.items() if rule is None or any(map(rule, known))}


def keep(report: Report, wanted: Collection[str], folder: Path) -> None:
    """Write what is wanted into a folder, whole or not at all, in place of an earlier one.

    Raises
    ------
    NotWritten
        If it cannot be written.
    """
    if not wanted:
        return
    new = folder.with_name(f".{folder.name}-{uuid.uuid4().hex[:12]}.new")
    try:
        new.mkdir(parents=True)
        if "report" in wanted:
            report.save(new)
        else:
            for name, write in report.files.items():
                if not set(re.split(r"[-.]", name)).isdisjoint(wanted):
                    write(new / name)
        write_atomically(new / KEPT_INDEX, json.dumps(sorted(wanted)).encode())
        shutil.rmtree(folder, ignore_errors=True)
        _move(new, folder)
    except OSError as error:
        raise NotWritten(error.errno, error.strerror, error.filename) from error
    finally:
        shutil.rmtree(new, ignore_errors=True)


def lacks(
    rules: Mapping[str, Rule | None], rows: Sequence[Mapping[str, Any]], folder: Path
) -> bool:
    """Return True where the rules name a cell, by its rows, of which something is not kept."""
    wanted = named(rules, rows)
    try:
        there = set(from_json(read_plain(folder / KEPT_INDEX))) if wanted else set()
    except (FileNotFoundError, ValueError, TypeError):
        return True
    return not ("report" in there or wanted <= there)


def load_report(folder: Path) -> Report:
    """Load the report that is kept in a folder.

    Raises
    ------
    ValueError
        If there is none, or it is damaged.
    """
    if not folder.is_dir():
        raise ValueError('the report of this cell was not kept: sweep with save=("report",)')
    if not (folder / REPORT).is_file():
        names = ", ".join(sorted({path.name for path in folder.iterdir()} - {KEPT_INDEX}))
        raise ValueError(
            f"of this cell {names} were kept in {str(folder)!r}, and no report: sweep with "
            'save=("report",)'
        )
    report: Report = load(folder)
    return report


def _move(new: Path, folder: Path) -> None:
    try:
        os.replace(new, folder)
    except OSError:
        if not folder.is_dir():  # else another process has kept the same meanwhile
            raise
