"""Every number of a measured kind on a page is held: by rows, by a test, or exempt with a reason.

The tests of tables and of sentences note what they find on a page (`tests/pages.py`); here they are
run again, and what is left must stand in `EXEMPT`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from types import ModuleType

import pytest

from tests.experiments import (
    test_depth_codes,
    test_path_regions,
    test_prose_of_pages,
    test_tables_of_pages,
)
from tests.generated import PAGES as GENERATED
from tests.pages import FOUND, ROOT, pieces

PAGES = ["README.md", *(
    name for path in sorted((ROOT / "docs").glob("**/*.md"))
    if (name := path.relative_to(ROOT / "docs").as_posix()) not in GENERATED
)]  # fmt: skip
MODULES = (test_tables_of_pages, test_prose_of_pages)

# Numbers that no rows and no test of a page hold: page ("*": any), what is said, and why it may.
SET = "set by who runs it, not measured"
MACHINE = "of the machine at hand"
PRINTED = "what a source prints"
EXEMPT = [
    ("*", r"gaps? of 1e-8|to 1e-8|gap of 1e-8 or less", "the tolerance, which statuses assert"),
    ("*", r"(?:rate|Adam|RMSprop at|SGD with momentum|momentum|beta) [\d.e-]+", SET),
    ("*", r"rate of [\d.]+ with momentum [\d.]+", SET),
    ("*", r"1\.96 standard errors", "a quantile of the normal distribution"),
    ("*", r"\d+ GFLOP/s", MACHINE),
    ("*", r"`tests/[\w/]+\.py::[\w:]+`", "the test that is named in the line"),
]


def claims() -> Iterator[Callable[[], None]]:
    for module in MODULES:
        yield from _tests_of(module)


def _tests_of(module: ModuleType) -> Iterator[Callable[[], None]]:
    for name, test in vars(module).items():
        if name.startswith("test_"):
            marks = [one.args[1] for one in getattr(test, "pytestmark", ())]
            yield from ((lambda t=test, v=value: t(v)) for value in marks[0]) if marks else (test,)
