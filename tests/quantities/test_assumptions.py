"""Assumptions of theorems: declared once, and said from there by options and by runs."""

from __future__ import annotations

import dataclasses
from string import Formatter
from types import SimpleNamespace

import pytest

from implicit_bias.models import MODELS
from implicit_bias.runs import KNOWN, Premise
from implicit_bias.runs.reports import Assumption

SMALL = Premise(
    name="small", text="steps are small", said="{text}: {size:.1f}", known="measured",
    holds=lambda size: size < 1, needs={"trainer": ("constant",)},
)  # fmt: skip
EVERY = [(name, one) for name, model in MODELS.items() for one in model.assumes]


def test_what_a_run_has_found_is_said_in_the_declared_words_and_judged_by_the_declared_rule() -> (
    None
):
    assert SMALL.found(size=0.5) == Assumption("steps are small: 0.5", True, "small", "measured")
    assert SMALL.found(size=2.0).holds is False
    assert SMALL.found(size=2.0, said="as was said", how="read") == Assumption(
        "as was said", False, "small", "read"
    )
    open_ended = dataclasses.replace(SMALL, holds=lambda size: None, how="up to {size:.0f}")
    assert open_ended.found(size=3.0) == Assumption(
        "steps are small: 3.0", None, "small", "up to 3"
    )


def test_a_premise_without_a_rule_holds_as_its_evidence_says_and_is_open_without() -> None:
    told = Premise(name="told", text="so it is", known="proved")
    assert [told.found(holds=one).holds for one in (True, False, None)] == [True, False, None]
    assert told.found().holds is None


def test_a_missing_number_is_an_error_and_no_gap_in_a_sentence() -> None:
    with pytest.raises(KeyError, match="size"):
        SMALL.found(misspelt=1.0)


def test_options_alone_tell_what_is_broken_and_leave_open_what_a_run_measures() -> None:
    broken = SMALL.declared(SimpleNamespace(trainer="adam"))
    assert (broken.holds, broken.how) == (False, "trainer adam")
    kept = SMALL.declared(SimpleNamespace(trainer="constant"))
    assert (kept.holds, kept.how) == (None, "not measured yet")


@pytest.mark.parametrize(("model", "premise"), EVERY, ids=lambda one: getattr(one, "name", one))
def test_every_declaration_is_whole(model, premise) -> None:
    assert premise.known in KNOWN
    for words in (premise.said, premise.how or ""):
        names = [field for _, field, _, _ in Formatter().parse(words) if field is not None]
        assert all(name.isidentifier() for name in names)
    assert [one.name for one in MODELS[model].assumes].count(premise.name) == 1
