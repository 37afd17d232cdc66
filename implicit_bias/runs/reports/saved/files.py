"""The names of the files in the folder of a run."""

from __future__ import annotations

import re
from typing import TypeGuard

# Which run the folder holds, whether it is finished, and the files that it has written.
INDEX = "run.json"
RESULTS, REPORT = "results.json", "report.safetensors"
# What a person reads: the first screen, and the page.
SCREEN, PAGE = "screen.txt", "page.html"
# Of all that a run writes beside its results: no folders, nothing hidden.
_BESIDE = re.compile(r"\w[^/\\:]*\.(safetensors|parquet)")


def is_beside(name: object) -> TypeGuard[str]:
    """Return True for a name that a run can give to a file beside its results."""
    return isinstance(name, str) and _BESIDE.fullmatch(name) is not None
