"""Findings of a run: one object for each thing, in every form that a reader may ask for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from .._shown import Shown
from .._solve import Status
from ..drawing.figures import Panel, Row
from ..quantities.assumptions import Assumption
from ..quantities.measured import Measured
from ..quantities.said import Side, Table, Writer
from .verdict import Evidence, Verdict, decide

__all__ = ["DIVERGED", "Finding", "Side", "Table", "Writer"]

DIVERGED = "diverged"
"""The key of the finding that training diverged, whichever network it was of."""


@dataclass(frozen=True, eq=False, repr=False)
class Finding(Shown):
    """One thing that a run has found. It pickles: writers and panels are no closures.

    Attributes
    ----------
    key : str
        What it is about: a later finding about the same thing takes the place of an earlier one.
    record : mapping
        Its entries of `results.json`: plain Python values, floats may be infinite or NaN.
    tables : tuple of Table
    files : mapping of file name to writer
        `writer(path)` writes one file of the saved results.
    panels : tuple of Panel and Row
        Its part of the picture: functions of axes, and whole rows of them.
    assumptions : tuple of Assumption
    statuses : mapping of name to status
        Of its limits; the name says which, where a report has several.
    certificates : mapping of name to mapping
        What is proved about each of its limits, for the page.
    objects : mapping
        The things themselves, by name, for a script that goes on with them: `limit`, `network`,
        `trajectory`, `comparison`, or mappings of them where there are several.
    row : mapping
        Its columns of the run's row, of `row.COLUMNS`.
    finished : bool
        False if training was interrupted; the finding is of what was finished.
    shortfall : str
        What training did not reach, and the way out; empty where there is nothing to say.
    verdicts : tuple of Verdict
        On its networks, one each; of a bound, what is proved of all networks.
    sides : tuple of Side
        Columns of the first screen.
    parts : mapping of trainer to Finding
        What it is put together from, where several trainers trained a network each.
    """

    key: str
    record: Mapping[str, Any] = field(default_factory=dict)
    tables: tuple[Table, ...] = ()
    files: Mapping[str, Writer] = field(default_factory=dict)
    panels: tuple[Panel | Row, ...] = ()
    assumptions: tuple[Assumption, ...] = ()
    statuses: Mapping[str, Status] = field(default_factory=dict)
    certificates: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    objects: Mapping[str, Any] = field(default_factory=dict)
    row: Mapping[str, Any] = field(default_factory=dict)
    finished: bool = True
    shortfall: str = ""
    verdicts: tuple[Verdict, ...] = ()
    sides: tuple[Side, ...] = ()
    parts: Mapping[str, Finding] = field(default_factory=dict)

    @classmethod
    def judged(cls, *evidence: Evidence, key: str = "verdict") -> Self:
        """Return a finding of verdicts alone, decided from this evidence."""
        return cls(key, verdicts=tuple(map(decide, evidence)))

    @classmethod
    def measured(cls, key: str, found: Measured, **further: Any) -> Self:
        """Return a finding about one result of declared quantities.

        Parameters
        ----------
        key : str
            Its key, and its name in the record and among the objects.
        found : Measured
            Read for the entry of the record and the columns of the row.
        further
            As of `Finding`; entries of `record`, `objects` and `row` come on top.
        """
        own: dict[str, dict[str, Any]] = {
            "record": {key: found.to_dict()},
            "objects": {key: found},
            "row": found.cells(),
        }
        joined: dict[str, Any] = {
            name: entries | dict(further.pop(name, {})) for name, entries in own.items()
        }
        return cls(key, **joined, **further)
