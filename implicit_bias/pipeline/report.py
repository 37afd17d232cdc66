"""What a comparison leaves behind: tables for people, one object for programs, files to keep."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from .._solve import Status

__all__ = ["Assumption", "Report", "Table", "check_writable"]


@dataclass(frozen=True)
class Table:
    """Rows of text under column titles; the first column is the label."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(f"row {row} of table {self.title!r} has not {len(self.columns)}")

    def __str__(self) -> str:
        cells = [self.columns, *self.rows]
        widths = [max(len(row[k]) for row in cells) for k in range(len(self.columns))]
        lines = [
            "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in cells
        ]
        rule = "-" * max(len(line) for line in lines)
        return "\n".join([self.title, rule, lines[0], rule, *lines[1:], rule])


@dataclass(frozen=True)
class Assumption:
    """One assumption of a theorem and whether it holds in this run; None where nothing tells."""

    text: str
    holds: bool | None

    def __str__(self) -> str:
        mark = {True: "holds", False: "DOES NOT HOLD", None: "not checked"}[self.holds]
        return f"{self.text}: {mark}"


@dataclass(frozen=True, eq=False)
class Report:
    """The outcome of one `compare` run.

    Attributes
    ----------
    model : str
    theorem : str
        What is predicted, and by which theorem of which paper.
    setup : str
        The data and the choices that matter, in a line.
    assumptions : tuple of Assumption
    tables : tuple of Table
        For people.
    results : dict
        For programs: plain Python values, floats may be infinite or NaN.
    status : Status
        Of the predicted limit.
    finished : bool
        False if training was interrupted; everything else is of what was finished.
    failure : str, optional
        Why there is a prediction but no comparison, for instance that training diverged.
    artefacts : mapping of file name to writer
        `writer(path)` writes one file of the saved results.
    figure : callable, optional
        Makes the picture of the run.
    concerns : str
        What the status is of, where a report has several limits; empty where it has one.
    """

    model: str
    theorem: str
    setup: str
    assumptions: tuple[Assumption, ...]
    tables: tuple[Table, ...]
    results: dict[str, Any]
    status: Status
    finished: bool
    failure: str | None = None
    artefacts: Mapping[str, Callable[[Path], None]] = field(default_factory=dict)
    figure: Callable[[], Figure] | None = None
    concerns: str = ""

    def __str__(self) -> str:
        head = [
            f"model {self.model}: {self.theorem}",
            f"data: {self.setup}",
            *(f"  - {a}" for a in self.assumptions),
        ]
        return "\n\n".join(["\n".join(head), *(str(table) for table in self.tables)])

    def to_json(self) -> str:
        """`results` as one JSON object; infinities and NaN become null."""
        return json.dumps(_finite(self.results), allow_nan=False)

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write every artefact and `results.json` into `folder`, made if it is not there."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "results.json").write_text(self.to_json() + "\n", encoding="utf-8")
        for name, write in self.artefacts.items():
            write(folder / name)


def check_writable(path: str | os.PathLike[str], *, folder: bool) -> None:
    """See that a file or folder can be written, before any long work.

    Raises
    ------
    ValueError
        With what stands in the way.
    """
    path = Path(path)
    target = path if folder else path.parent
    if folder and path.exists() and not path.is_dir():
        raise ValueError(f"cannot save into {str(path)!r}: it is a file, name a folder")
    if not folder and path.is_dir():
        raise ValueError(f"cannot write {str(path)!r}: it is a folder, name a file")
    # The nearest folder that exists decides whether those below it can be made.
    existing = target
    while not existing.exists():
        existing = existing.parent
    if not existing.is_dir():
        raise ValueError(f"cannot write {str(path)!r}: {str(existing)!r} is a file, not a folder")
    if not os.access(existing, os.W_OK | os.X_OK):
        raise ValueError(f"cannot write {str(path)!r}: no permission to write in {str(existing)!r}")
    if not folder and not target.exists():
        raise ValueError(f"cannot write {str(path)!r}: there is no folder {str(target)!r}")


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
