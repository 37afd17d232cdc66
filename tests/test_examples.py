"""The examples in the docstrings of exported names: each has one; `test_doors` runs them."""

from __future__ import annotations

import doctest
from collections.abc import Iterator
from operator import attrgetter

import numpy as np

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


def is_ours(path: str) -> bool:
    """False of constants, and of names of the solvers, whose examples run by themselves."""
    module = getattr(attrgetter(path)(ib), "__module__", "")
    return module.partition(".")[0] == "implicit_bias"


def examples(path: str) -> list[doctest.DocTest]:
    """The docstrings with examples of a class and its methods, or of a function."""
    thing = attrgetter(path)(ib)
    found = doctest.DocTestFinder().find(thing, f"ib.{path}", module=False, globs=GIVEN)
    return [test for test in found if test.examples]


def test_every_name_has_an_example() -> None:
    without = [path for path in exported() if is_ours(path) and not examples(path)]
    assert without == []
