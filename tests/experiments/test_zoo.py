"""Every module of the zoo is taken, and is what it is known to be by hand."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from experiments.zoo import BLOCKS, FIELD, ZOO, row

RESULTS = Path(__file__).parents[2] / "experiments" / "results"
TABLE = pd.read_csv(RESULTS / "zoo.csv").set_index("module")
QUICK = (
    "attention, W", "next tokens, linear", "leaky, fixed outer signs", "weight norm",
    "spectral norm, training mode", "dropout, training mode", "cosine head", "data parallel",
)  # fmt: skip


def test_the_committed_table_has_every_module_as_it_is_known() -> None:
    assert list(TABLE.index) == list(ZOO) and len(FIELD) >= 12 and len(BLOCKS) >= 40
    assert TABLE.known.tolist() == [case.known for case in ZOO.values()]
    assert TABLE.found.tolist() == TABLE.known.tolist()
    assert TABLE.said.str.len().min() > 20


@pytest.mark.parametrize("name", QUICK)
def test_modules_are_found_to_be_what_they_are_known_to_be(name) -> None:
    made = row(name)
    assert made["found"] == ZOO[name].known
    assert made["weights"] == TABLE.weights[name]
