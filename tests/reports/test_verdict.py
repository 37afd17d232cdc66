"""The verdict on a network: its word at the edges, its sentence, and its places in a report."""

from __future__ import annotations

import math

import numpy as np
import pytest

import implicit_bias as ib
from implicit_bias.runs.reports import WITHIN, WORDS, Evidence, Verdict, decide, nearest_first

SOLVED, LOCAL = ib.Status.SOLVED, ib.Status.LOCAL_OPTIMUM


@pytest.mark.parametrize(
    ("near", "word"),
    [
        ({"margin_ratio": 1.0}, "AT ITS LIMIT"),
        ({"margin_ratio": 0.99}, "AT ITS LIMIT"),
        ({"margin_ratio": math.nextafter(0.99, 0) - 1e-9}, "NOT THERE YET"),
        ({"margin_ratio": 1 + 1e-9}, "AT ITS LIMIT"),
        # No network can exceed the certified optimum of its own program.
        ({"margin_ratio": 1.00001}, "NOT THIS LIMIT"),
        ({"margin_ratio": math.nan}, "NOT THERE YET"),
        ({"limit_error": 0.01}, "AT ITS LIMIT"),
        ({"limit_error": 0.0100001}, "NOT THERE YET"),
        # All of them decide.
        ({"margin_ratio": 0.999, "limit_error": 0.02}, "NOT THERE YET"),
        ({}, "NOT THERE YET"),
    ],
)
def test_a_network_is_at_its_limit_from_one_hundredth_on(near, word) -> None:
    assert WITHIN == 0.01
    assert decide(Evidence(status=SOLVED, near=near, smallest_margin=1.0)).word == word


@pytest.mark.parametrize(
    ("evidence", "word"),
    [
        (Evidence(status=SOLVED, trained=False), "PREDICTED"),
        (Evidence(status=ib.Status.INACCURATE, trained=False), "NOT SOLVED"),
        (Evidence(status=ib.Status.UNDECIDED, near={"margin_ratio": 1.0}), "NOT SOLVED"),
        # The ratio is to the certified lower bound, whatever the gap is.
        (Evidence(status=ib.Status.INACCURATE, near={"margin_ratio": 0.995}), "AT ITS LIMIT"),
        (Evidence(status=ib.Status.INACCURATE, near={"limit_error": 0.0}), "NOT SOLVED"),
        (Evidence(status=ib.Status.NOT_SEPARABLE, trained=False), "NOT SEPARABLE"),
        (Evidence(status=SOLVED, smallest_margin=0.0), "NOT SEPARATED"),
        (Evidence(status=SOLVED, smallest_margin=math.nan), "NOT SEPARATED"),
        (Evidence(theory="control", near={"margin_ratio": 0.995}), "NOT THIS LIMIT"),
        (Evidence(theory="control", smallest_margin=-1.0), "NOT SEPARATED"),
        (Evidence(theory="none", status=ib.Status.NOT_SEPARABLE), "NO THEOREM"),
        (Evidence(theory="none", smallest_margin=-1.0), "NOT SEPARATED"),
        (Evidence(diverged="from step 3 on", near={"margin_ratio": 1.0}), "DIVERGED"),
        (Evidence(theory="bound", status=SOLVED), "BOUND"),
        (Evidence(theory="bound", status=ib.Status.NOT_SEPARABLE), "NOT SEPARABLE"),
        (Evidence(theory="bound", status=ib.Status.INACCURATE), "BOUND"),
        (Evidence(theory="bound", status=ib.Status.FAILED), "NOT SOLVED"),
        (Evidence(theory="local limit", status=LOCAL, near={"local_ratio": 0.99}),
         "AT A LOCAL LIMIT"),
        (Evidence(theory="local limit", status=LOCAL, near={"local_ratio": 0.98}), "NOT THERE YET"),
        (Evidence(theory="local limit", status=LOCAL), "NOT THERE YET"),
        # Near a saddle, or near a point of which second order says nothing.
        (Evidence(theory="local limit", status=ib.Status.SADDLE, near={"local_ratio": 1.0}),
         "NOT THERE YET"),
        (Evidence(theory="local limit", status=ib.Status.FLAT, near={"local_ratio": 1.0}),
         "NO THEOREM"),
        (Evidence(theory="local limit"), "NO THEOREM"),
        (Evidence(theory="problem", smallest_margin=1.0), "PROBLEM NAMED"),
        (Evidence(theory="regime", smallest_margin=1.0), "ANOTHER REGIME"),
        (Evidence(theory="problem", smallest_margin=-1.0), "NOT SEPARATED"),
    ],
)  # fmt: skip
def test_every_word_has_its_evidence(evidence, word) -> None:
    assert decide(evidence).word == word in WORDS


def test_the_sentence_says_numbers_reasons_and_what_is_predicted() -> None:
    found = decide(
        Evidence(
            status=SOLVED, near={"margin_ratio": 0.92}, smallest_margin=2.0,
            beside={"agreement": 0.983, "error_limit": math.nan}, reason="slow units: 3, 6",
            predicted="0.96 later", remark="interrupted after 5 steps", trainer="momentum",
            network="copy",
        )
    )  # fmt: skip
    assert str(found) == (
        "NOT THERE YET: copy by momentum: margin ratio 0.9200, same label on 98.30% held out; "
        "slow units: 3, 6; 0.96 later; interrupted after 5 steps"
    )
    assert found.numbers == {"margin_ratio": 0.92, "agreement": 0.983}
    with pytest.raises(KeyError, match="ratio_of_margins"):
        decide(Evidence(near={"ratio_of_margins": 1.0}))
    with pytest.raises(ValueError, match="`network_norm` has no ideal value"):
        decide(Evidence(near={"network_norm": 1.0}))


def test_verdicts_stand_nearest_first() -> None:
    near, nearer, away = (
        Verdict(word, "", {"margin_ratio": ratio})
        for word, ratio in (
            ("AT ITS LIMIT", 0.991), ("AT ITS LIMIT", 0.999), ("NOT THERE YET", 0.9),
        )
    )  # fmt: skip
    bound = Verdict("BOUND", "")
    assert nearest_first([bound, away, near, nearer]) == (nearer, near, away, bound)


def test_a_report_has_its_verdict_in_every_form(tmp_path) -> None:
    report = ib.run("linear", n_train=40, trainer=("constant", "dual"), steps=300)
    first, second = report.verdicts
    assert (first.trainer, second.trainer) == ("dual", "constant")
    assert report.verdict is not None and report.verdict == first
    assert report.results["verdicts"] == [first.to_dict(), second.to_dict()]
    ratios = {one["trainer"]: one["margin_ratio"] for one in report.rows()}
    for one in (first, second):
        assert one.numbers["margin_ratio"] == ratios[one.trainer]
        (row,) = (row for row in report.rows() if row["trainer"] == one.trainer)
        assert (row["verdict"], row["verdict_sentence"]) == (one.word, one.alone)
    report.save(tmp_path)
    assert ib.load(tmp_path).verdicts == report.verdicts


@pytest.mark.parametrize(
    ("options", "word", "said"),
    [
        ({}, "AT ITS LIMIT", "margin ratio"),
        ({"steps": 0}, "PREDICTED", "nothing was trained"),
        ({"steps": 3}, "NOT SEPARATED", "after 3 steps"),
        ({"trainer": "constant", "learning_rate": 1e300, "steps": 50}, "DIVERGED", "overflows at"),
        ({"y": np.tile([1.0, -1.0], 20), "X": np.ones((40, 2))}, "NOT SEPARABLE", "these 30"),
    ],
)
def test_runs_of_one_model_come_to_every_end(options, word, said) -> None:
    own = {} if "X" in options else {"n_train": 60}
    report = ib.run("linear", **own, **options)
    assert (report.verdict.word, len(report.verdicts)) == (word, 1)
    assert said in report.verdict.sentence
    assert report.row()["verdict"] == word


def test_a_control_is_not_diagnosed_as_a_network_on_its_way() -> None:
    report = ib.run("gln-l2", n_train=100, steps=300)
    assert report.verdict.word == "NOT THIS LIMIT"
    assert "multipliers reach beyond the margin" not in report.to_json() + str(report)


def test_a_trainer_that_diverges_leaves_the_verdict_on_the_one_before_it(monkeypatch) -> None:
    train = ib.train

    def fails_second(*arguments, settings, **further):
        if settings.trainer == "constant":
            raise FloatingPointError("the loss is inf at step 7")
        return train(*arguments, settings=settings, **further)

    monkeypatch.setattr("implicit_bias.runs.fit.train", fails_second)
    report = ib.run("linear", n_train=40, trainer=("dual", "constant"), steps=100)
    assert [one.word for one in report.verdicts] == ["NOT THERE YET", "DIVERGED"]
    assert "the loss is inf at step 7" in report.verdicts[1].sentence
