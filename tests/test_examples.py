"""The examples in the docstrings of exported names, run as a reader would paste them."""

from __future__ import annotations

import doctest
from collections.abc import Iterator
from operator import attrgetter

import numpy as np
import pytest

import implicit_bias as ib
from tests.test_package import NAMESPACES

# What examples may use without importing it.
GIVEN = {"ib": ib, "np": np}


def exported() -> Iterator[str]:
    """The names of all classes and functions as users call them; nothing is loaded for it."""
    for name in sorted(ib.__all__):
        if name in NAMESPACES:
            names = set(getattr(ib, name).__all__) - set(ib.__all__)
            yield from (f"{name}.{own}" for own in sorted(names))
        elif not name.startswith("__"):
            yield name


def examples(path: str, thing: object) -> list[doctest.DocTest]:
    """The docstrings with examples of a class and its methods, or of a function."""
    found = doctest.DocTestFinder().find(thing, f"ib.{path}", module=False, globs=GIVEN)
    return [test for test in found if test.examples]


@pytest.mark.parametrize("path", list(exported()))
def test_examples_do_what_they_say(path, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    thing = attrgetter(path)(ib)
    if getattr(thing, "__module__", "").partition(".")[0] != "implicit_bias":
        pytest.skip("a constant, or a name of the solvers, whose examples run by themselves")
    found = examples(path, thing)
    assert found, f"{path} has no example"
    report: list[str] = []
    for test in found:
        doctest.DocTestRunner(verbose=False).run(test, out=report.append)
    assert not report, "\n".join(report)
