"""Findings of a run: a key, the things that were found, and what is true of this step alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

from ..._support.shown import Shown
from ...quantities.assumptions import Assumption
from .telling import told
from .verdict import Evidence, decide
from .views import Views

if TYPE_CHECKING:
    from ..drawing.figures import Panel, Panels, Row

DIVERGED = "diverged"
"""The key of the finding that training diverged, whichever network it was of."""


@dataclass(frozen=True, eq=False, repr=False)
class Finding(Shown):
    """One thing that a run has found. It pickles.

    Attributes
    ----------
    key : str
        What it is about: a later finding about the same thing takes the place of an earlier one.
    things : mapping
        What was found, by name: results, networks, trajectories, comparisons, or `Several` of them.
        All that is said of them follows from their classes, see `telling.told`.
    called : str
        The name of its program, or of its network.
    assumptions : tuple of Assumption
    evidence : tuple of Evidence
        On its networks, one each; of a bound, on all networks.
    panels : tuple of Panel, Row and Panels
        Pictures of several things together.
    further : Views
        What none of the things says by itself; of entries of one name these stand.
    parts : mapping of trainer to Finding
        What it is put together from, where several trainers trained a network each.
    """

    key: str
    things: Mapping[str, Any] = field(default_factory=dict)
    called: str = ""
    assumptions: tuple[Assumption, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    panels: tuple[Panel | Row | Panels, ...] = ()
    further: Views = field(default_factory=Views)
    parts: Mapping[str, Finding] = field(default_factory=dict)

    @classmethod
    def said(cls, key: str, **views: Any) -> Self:
        """Return a finding of which this is said, as of `Views`, and nothing else."""
        return cls(key, further=Views(**views))

    def but(self, **views: Any) -> Finding:
        """Return the same with other views: what is given takes the place of what there was."""
        return Finding(self.key, further=replace(self.views, **views), parts=self.parts)

    def also(self, **views: Any) -> Finding:
        """Return the same of which more is said: of entries of one name what is given stands."""
        return replace(self, further=self.further + Views(**views))

    @cached_property
    def views(self) -> Views:
        """All that is said of it, first of its things and then of the step."""
        of_step = Views(
            assumptions=self.assumptions,
            panels=self.panels,
            verdicts=tuple(map(decide, self.evidence)),
        )
        of_things = (told(name, thing, self.called) for name, thing in self.things.items())
        return sum(of_things, start=Views()) + of_step + self.further
