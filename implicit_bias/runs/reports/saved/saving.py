"""What is written of a report, and in which order: what it takes to be a report again."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

from ...._support.saved import Kind, write_saved
from ...drawing.figures import each_panel
from ..contents import Contents
from ..finding import Finding
from .encoding import Encoder, NotSavable

KIND = Kind("Report", "Report.save", "run it again")
# Of a finding, what is written as it is, and of what kind; panels and objects are dropped where no
# file can hold them, and files are those that stand beside the report.
PLAIN: Mapping[str, type] = MappingProxyType(
    {
        "key": str, "record": Mapping, "tables": tuple, "assumptions": tuple, "statuses": Mapping,
        "certificates": Mapping, "row": Mapping, "finished": bool, "shortfall": str,
        "verdicts": tuple, "sides": tuple,
    }
)  # fmt: skip

log = logging.getLogger(__name__)


def write_report(report: Contents, path: str | os.PathLike[str]) -> None:
    """Write all of a report but its other files; `load` reads it.

    Raises
    ------
    OSError
        If it cannot be written.
    """
    encoder = Encoder()
    record = {
        "heading": encoder.encode(report.heading),
        "findings": [_tree(encoder, finding) for finding in report.findings],
        "interrupted": report.interrupted,
        "failure": report.failure,
        "call": report.call,
    }
    write_saved(path, KIND, encoder.arrays, record)


def _tree(encoder: Encoder, finding: Finding) -> dict[str, Any]:
    views = finding.views
    objects = _encoded(encoder, views.objects.items())
    panels = _encoded(
        encoder, ((f"a panel of {finding.key}", panel) for panel in each_panel(views.panels))
    )
    plain = {name: encoder.encode(getattr(views, name)) for name in PLAIN if name != "key"}
    return {
        "key": finding.key,
        **plain,
        "objects": objects,
        "panels": [tree for _, tree in panels],
        "files": list(views.files),
        "parts": [[name, _tree(encoder, part)] for name, part in finding.parts.items()],
    }


def _encoded(encoder: Encoder, named: Iterable[tuple[str, Any]]) -> list[tuple[str, Any]]:
    found = []
    for name, value in named:
        try:
            found.append((name, encoder.attempt(value)))
        except NotSavable as error:
            log.warning("the saved run leaves out %s: no file can hold %s", name, error)
    return found
