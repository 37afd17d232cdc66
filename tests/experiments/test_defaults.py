"""The defaults of the quick models reach what they show, and what falls short is told."""

from __future__ import annotations

import pytest

from experiments.defaults import THEOREMS, falls_short, row_of, rows_of
from implicit_bias.runs.reports import Verdict
from tests.long import some_of


@pytest.mark.parametrize(
    "model", some_of(["linear", "deep-linear", "distillation", "shallow-gln"], one_in=3)
)
def test_a_quick_model_ends_within_a_hundredth_of_its_limit(model) -> None:
    rows = list(rows_of(model))
    assert rows[0]["verdict"] == "AT ITS LIMIT" and rows[0]["distance"] <= 0.01
    assert falls_short(rows) == []


def test_models_that_are_far_or_slow_fall_short_and_controls_do_not() -> None:
    near, far = (
        Verdict(word, "", {"margin_ratio": ratio})
        for word, ratio in (("AT ITS LIMIT", 0.999), ("NOT THERE YET", 0.9))
    )
    rows = [row_of("gln", far, 1.0), row_of("gln", near, 1.0), row_of("frelu", far, 1.0),
            row_of("heads", near, 61.0), row_of("gln-l2", far, 1.0)]  # fmt: skip
    assert falls_short(rows) == ["frelu", "heads"]
    assert rows[2]["quantity"] == "margin_ratio"
    assert rows[2]["distance"] == pytest.approx(0.1)
    assert "gln-l2" not in THEOREMS and "relu" in THEOREMS
