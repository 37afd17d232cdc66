"""Every row of the model table, from its command to its results."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

import implicit_bias as ib
from implicit_bias.models import MODELS
from implicit_bias.options import ClassOptions
from implicit_bias.runs.reports import LINES, WIDTH, WORDS
from tests.commands import DONE, small_runs, typed
from tests.commands import run as run_command
from tests.long import some_of

SEPARABLE = [name for name, model in MODELS.items() if issubclass(model.options, ClassOptions)]
QUICK = small_runs(
    {"n_train": 60, "steps": 200, "hidden_units": 3, "checkpoints": 8},
    {
        "collapse": {"n_train": None, "steps": 100},
        "dgn": {"hidden_units": 4, "starts": 2},
        "diagonal": {"n_train": 15},
        "distillation": {"n_train": None, "steps": "100,300", "n_val": 200},
        "dlgn": {"hidden_units": None, "gate_steps": 100},
        "fixed-outer": {"n_train": 10},
        "gdln": {"n_train": 600, "steps": 60},
        "heads": {"steps": 100, "hidden_units": 8, "trunk_steps": 30, "exits": 1},
        "next-token": {"descent_steps": 50},
        "orthosep": {"steps": "100,100", "hidden_units": 12},
        "relu": {"n_train": 100, "steps": "100,100", "hidden_units": 8},
        "shallow-gln": {"hidden_units": 2},
    },
)


def run(*arguments: str) -> tuple[int, dict[str, Any], str]:
    result = run_command(*arguments, "--json")
    record = json.loads(result.stdout) if result.stdout else {}
    return result.exit_code, record, result.stderr


@pytest.mark.parametrize("model", some_of(sorted(MODELS), one_in=3))
def test_every_model_predicts_trains_compares_and_draws(model, tmp_path) -> None:
    picture = tmp_path / "run.png"
    code, record, text = run(
        "--model", model, *typed(QUICK[model]), "--plot", str(picture),
        "--save", str(tmp_path / "saved"),
    )  # fmt: skip
    assert code in DONE, text
    assert record["model"] == model and record["theorem"] == MODELS[model].theorem
    saved = ib.load(tmp_path / "saved")
    assert " ".join(MODELS[model].theorem.split()) in " ".join(saved.details().split())
    assert str(saved) in text
    assert_a_first_screen(saved)
    named = {one["name"] for one in record["assumptions"]}
    assert named == {one["name"] for one in saved.results["assumptions"]}
    assert named == assumed(model, record), "all that the theorem assumes, and nothing else"
    if saved.verdict.word not in ("NOT SEPARATED", "NOT SEPARABLE"):
        assert not [one.name for one in saved.assumptions if one.how.endswith(" yet")]
    assert picture.stat().st_size > 10_000
    assert json.loads((tmp_path / "saved" / "results.json").read_text()) == record
    if model in SEPARABLE:
        assert_certified_and_of_a_margin_ratio_of_at_most_one(record)


def assumed(model: str, record: dict[str, Any]) -> set[str]:
    """The names of what the theorem of a run assumes, by the table of models."""
    options = SimpleNamespace(**record["options"])
    return {one.name for one in MODELS[model].premises(options)}


def assert_a_first_screen(report: ib.Report) -> None:
    lines = str(report).splitlines()
    assert len(lines) <= LINES and max(map(len, lines)) <= WIDTH
    # Every verdict stands at the beginning of a line, the run's first of all, below model and data.
    found = [next(word for word in WORDS if line.startswith(f"{word}  ")) for line in lines
             if line.startswith(tuple(f"{word}  " for word in WORDS))]  # fmt: skip
    assert found == [one.word for one in report.verdicts]
    assert lines.index(next(one for one in lines if one.startswith(found[0]))) <= 5
    assert report.heading.source.split(",")[0] in str(report)
    assert report.row()["verdict"] == found[0] == report.results["verdicts"][0]["word"]


def assert_certified_and_of_a_margin_ratio_of_at_most_one(record: dict[str, Any]) -> None:
    limit, comparison = record["limit"], record["comparison"]
    assert limit["status"] == "SOLVED" and limit["gap"] <= 1e-8
    assert limit["objective"] == pytest.approx(limit["dual_objective"], rel=1e-7)
    margin, norm = record["network"]["smallest_margin"], comparison["network_norm"]
    assert comparison["margin_ratio"] == pytest.approx(margin / norm * limit["dual_objective"])
    assert comparison["margin_ratio"] <= 1


@pytest.mark.long
def test_with_its_defaults_a_convex_model_comes_near_its_limit() -> None:
    code, record, _ = run("--model", "linear")
    assert code == 0
    assert 0.95 < record["comparison"]["margin_ratio"] <= 1
    assert record["comparison"]["zeta_cosine"] > 0.98


# The half-spaces of a DLGN are trained before there is a limit, by steps of their own.
ALONE = {"collapse": {"data": "wine"}, "dlgn": {"gate_steps": 50}, "gdln": {"n_train": 200}}


@pytest.mark.parametrize("model", sorted(set(MODELS) - {"relu"}))
def test_without_steps_the_limit_stands_alone(model) -> None:
    said: list[str] = []
    report = ib.run(
        model, steps=0, progress=lambda stage, done, of: said.append(stage),
        **{"n_train": 40, **ALONE.get(model, {})},
    )  # fmt: skip
    assert report.finished and report.status is not None and report.status.name == "SOLVED"
    assert not hasattr(report, "comparison") and report.row()["n_steps"] is None
    assert not [stage for stage in said if stage.startswith(("training a", "going on"))]


@pytest.mark.parametrize(
    ("model", "options"), [("relu", {}), ("dgn", {"gating": "learned"}), ("gln", {"steps": (0, 9)})]
)
def test_no_steps_are_refused_where_the_limit_is_of_what_is_learned(model, options) -> None:
    with pytest.raises(ValueError, match="`steps`"):
        ib.run(model, **{"steps": 0, **options})
