"""What readers see of a finding: its parts of record, row, tables, files, pictures and screen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

from ..._support.solve import Status
from ...quantities.assumptions import Assumption
from ...quantities.said import Side, Table, Writer
from .verdict import Verdict

if TYPE_CHECKING:
    from ..drawing.figures import Panel, Panels, Row


@dataclass(frozen=True, eq=False)
class Views:
    """All that is said of a finding, or of one of its objects. It pickles: no part is a closure.

    Attributes
    ----------
    record : mapping
        Entries of `results.json`: plain Python values, floats may be infinite or NaN.
    tables : tuple of Table
    files : mapping of file name to writer
        `writer(path)` writes one file of the saved results.
    panels : tuple of Panel, Row and Panels
        Parts of the picture: functions of axes, and whole rows of them.
    assumptions : tuple of Assumption
    statuses : mapping of name to status
        Of limits; the name says which, where a report has several.
    certificates : mapping of name to mapping
        What is proved about each of the limits, for the page.
    objects : mapping
        The things themselves, by name, for a script that goes on with them: `limit`, `network`,
        `trajectory`, `comparison`, or mappings of them where there are several.
    row : mapping
        Columns of the run's row, of `row.COLUMNS`.
    finished : bool
        False if training was interrupted; all else is of what was finished.
    shortfall : str
        What training did not reach, and the way out; empty where there is nothing to say.
    verdicts : tuple of Verdict
        On networks, one each; of a bound, what is proved of all networks.
    sides : tuple of Side
        Columns of the first screen.
    """

    record: Mapping[str, Any] = field(default_factory=dict)
    tables: tuple[Table, ...] = ()
    files: Mapping[str, Writer] = field(default_factory=dict)
    panels: tuple[Panel | Row | Panels, ...] = ()
    assumptions: tuple[Assumption, ...] = ()
    statuses: Mapping[str, Status] = field(default_factory=dict)
    certificates: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    objects: Mapping[str, Any] = field(default_factory=dict)
    row: Mapping[str, Any] = field(default_factory=dict)
    finished: bool = True
    shortfall: str = ""
    verdicts: tuple[Verdict, ...] = ()
    sides: tuple[Side, ...] = ()

    def __add__(self, other: Views) -> Views:
        """Return both: entries of one name are joined, those of `other` taking precedence."""
        found: dict[str, Any] = {
            "record": joined(self.record, other.record),
            "finished": self.finished and other.finished,
            "shortfall": other.shortfall or self.shortfall,
        }
        for name in (one.name for one in fields(self) if one.name not in found):
            own, further = getattr(self, name), getattr(other, name)
            found[name] = {**own, **further} if isinstance(own, Mapping) else (*own, *further)
        return Views(**found)


def joined(entries: Mapping[str, Any], further: Mapping[str, Any]) -> dict[str, Any]:
    """Merge two mappings, mappings of one name likewise; `further` takes precedence."""
    found = dict(entries)
    for name, entry in further.items():
        both = isinstance(entry, Mapping) and isinstance(found.get(name), Mapping)
        found[name] = joined(found[name], entry) if both else entry
    return found
