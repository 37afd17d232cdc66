"""The heading of a report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..._support.shown import Shown
from ...quantities.assumptions import Assumption


@dataclass(frozen=True, repr=False)
class Heading(Shown):
    """All that stands above the findings of a run.

    Attributes
    ----------
    model, theorem, program : str
        The model, the theorem of which paper predicts its limit, and the program that it is of.
    source : str
        The paper and the number of the theorem, in a few words.
    more : str
        Where to look for more, in the last line of the first screen; the options of the command if
        it is left out.
    setup : str
        The data and the choices that matter, in a line.
    title : str
        Of the picture.
    record : mapping
        All that it takes to repeat the run: versions, choices, seeds, data.
    assumptions : tuple of Assumption
        All that the theorem assumes, as far as options alone tell whether it holds.
    """

    model: str
    theorem: str
    program: str
    setup: str
    title: str
    record: Mapping[str, Any]
    source: str = ""
    more: str = ""
    assumptions: tuple[Assumption, ...] = ()
