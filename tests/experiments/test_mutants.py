"""The table of mutants: rows of its page, and reasons that are of lines that are there."""

from __future__ import annotations

import pandas as pd
import pytest

from experiments.mutants import NEAREST, equivalent, mutants
from tests.pages import ROOT, lines

FRAME = pd.read_csv(ROOT / "experiments" / "results" / "mutants.csv")


def test_the_page_has_the_rows_of_the_command() -> None:
    for module, n_mutants, killed, same in FRAME.itertuples(index=False):
        alive = n_mutants - killed - same
        row = [f"`{module}`", *map(str, (n_mutants, killed, same, alive))]
        assert alive >= 0 and row in lines("mutants.md"), row


def test_every_module_and_every_test_of_the_table_is_there() -> None:
    assert set(FRAME.module) <= set(NEAREST)
    for module, tests in NEAREST.items():
        assert (ROOT / module).is_file() and (ROOT / tests[0]).exists()
        assert all((ROOT / path).exists() for path in tests if path.startswith("tests/"))


def test_what_is_named_as_equivalent_is_a_line_of_its_module_with_a_reason() -> None:
    for module, changes in equivalent().items():
        own = {line.strip() for line in (ROOT / module).read_text().splitlines()}
        for (was, becomes), reason in changes.items():
            assert was in own and becomes != was and len(reason.split()) > 3, (module, was)
    named = {module: len(changes) for module, changes in equivalent().items()}
    for row in FRAME.itertuples():
        assert bool(row.equivalent) == bool(named.get(row.module, 0)), row.module


def test_mutants_are_of_one_line_each_and_leave_annotations_alone() -> None:
    pytest.importorskip("cosmic_ray")
    text = "def f(x: int | None, n: int = 3) -> float | None:\n    return x + n if x > 0 else 1\n"
    found = {mutant.change.becomes for mutant in mutants(text)}
    assert "return x - n if x > 0 else 1" in found and "return x + n if x <= 0 else 1" in found
    assert "def f(x: int | None, n: int = 4) -> float | None:" in found
    assert not any("int &" in one or "float &" in one for one in found)
    assert all(mutant.text.count("\n") == 2 for mutant in mutants(text))
