"""`run` does what the command does, and says what the command says."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import pytest

import implicit_bias as ib
import typed_models
from implicit_bias.models import MODELS
from implicit_bias.models.run_model import USER_DATA
from implicit_bias.options import Choices, ModelName, RunOptions, flag, kinds
from implicit_bias.runs import Seeds, training_settings
from implicit_bias.runs.reports import render_html
from implicit_bias.training import TRAINERS, losses_of
from tests.commands import full_disk, results, without_times
from tests.commands import run as run_command

SMALL: dict[str, Any] = {
    "n_train": 40, "n_val": 40, "hidden_units": 3, "trainer": "constant", "steps": (20, 10),
    "learning_rate": (0.5, 0.1), "seed": 3,
}  # fmt: skip
TYPED = [
    f"{flag(name)}={','.join(map(str, value)) if isinstance(value, tuple) else value}"
    for name, value in SMALL.items()
]


@pytest.fixture(scope="module")
def report() -> ib.Report:
    return ib.run("gln", **SMALL)


def as_json(report: ib.Report) -> Any:
    return without_times(json.loads(report.to_json()))


def test_a_run_finds_what_the_command_finds_and_prints_nothing(report, capfd) -> None:
    expected = results("--model", "gln", *TYPED)
    capfd.readouterr()
    assert as_json(report) == without_times(expected)
    ib.run("linear", n_train=40, steps=5)
    assert capfd.readouterr() == ("", "")


def test_a_report_hands_out_limit_network_trajectory_and_comparison(report) -> None:
    found = report.results
    assert report.limit.objective == found["limit"]["objective"]
    assert report.network.n_units == 3
    assert report.trajectory.step[-1] == 30
    assert report.comparison.margin_ratio == found["comparison"]["margin_ratio"]
    inseparable = ib.run("gln", **SMALL | {"n_train": 700, "hidden_units": 1, "contexts": 1})
    assert inseparable.limit.status.name == "NOT_SEPARABLE"
    for name in ("network", "trajectory", "comparison"):
        with pytest.raises(AttributeError, match=f"this report has no `{name}`: "):
            getattr(inseparable, name)


def test_with_several_classes_a_report_has_everything_by_class() -> None:
    report = ib.run("linear", classes="all", n_train=60, steps=5)
    things = (report.limit, report.network, report.trajectory, report.comparison)
    assert all(sorted(thing) == list(range(10)) for thing in things)
    assert report.row()["gap"] == report.results["worst_gap"]
    ratios = [one.margin_ratio for one in report.comparison.values()]
    assert report.row()["margin_ratio"] == min(ratios)


def test_values_are_taken_as_python_writes_them(report) -> None:
    np = pytest.importorskip("numpy")
    other = {
        "hidden_units": np.int64(3), "steps": [20, 10], "learning_rate": np.array([0.5, 0.1]),
        "momentum": 0, "n_val": 40, "batch_size": None,
    }  # fmt: skip
    assert as_json(ib.run("gln", **SMALL | other)) == as_json(report)
    assert MODELS["gln"].choose(steps=7).steps == (7,)
    assert MODELS["gln"].choose(learning_rate="auto").learning_rate == ()


# What is wrong, as Python has it and as it is typed, and the one message about it.
WRONG = [
    ({"hiden_units": 3}, "--hiden-units 3", "did you mean `{}hidden{}units`?"),
    ({"freeze_at": 5}, "--freeze-at 5", "is not for the model gln: leave it out"),
    ({"hidden_units": "a"}, "--hidden-units a", "'a' is not a whole number"),
    ({"hidden_units": 0}, "--hidden-units 0", "0 is below 1"),
    ({"cutoffs": "medain"}, "--cutoffs medain",
     "'medain' is not one of 'median', 'random', 'axes': did you mean 'median'?"),
    ({"trainer": "anealed"}, "--trainer anealed", "did you mean 'annealed'?"),
    ({"data": "digit"}, "--data digit", "did you mean 'digits'?"),
    ({"steps": "a,b"}, "--steps a,b", "'a,b' is not a list such as 1600,1600"),
    ({"tol": "x"}, "--tol x", "'x' is not a number"),
]  # fmt: skip


@pytest.mark.parametrize(("given", "typed", "message"), WRONG, ids=lambda value: str(value)[:30])
def test_a_wrong_option_has_one_message_from_python_and_from_the_command(
    given, typed, message
) -> None:
    with pytest.raises((TypeError, ValueError)) as caught:
        ib.run("gln", **given)
    assert message.format("", "_") in str(caught.value)
    result = run_command("--model", "gln", *typed.split())
    assert result.exit_code == 2
    assert message.format("--", "-") in result.stderr


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"hidden_units": True}, "`hidden_units`: True is not a whole number"),
        ({"seed": 1.5}, "`seed`: 1.5 is not a whole number"),
        ({"steps": (3, "x")}, "`steps`: (3, 'x') is not a list such as 1600,1600"),
        ({"solver": 3}, "`solver`: 3 is not a string"),
    ],
)
def test_a_value_of_another_type_is_a_type_error(given, message) -> None:
    with pytest.raises(TypeError) as caught:
        ib.run("gln", **given)
    assert str(caught.value) == message


def test_an_unknown_model_names_the_nearest_from_python_and_from_the_command() -> None:
    with pytest.raises(ValueError, match=r"'gnl' is not one of .*: did you mean 'gln'"):
        ib.run("gnl")  # type: ignore[arg-type]
    assert ": did you mean 'gln'?" in run_command("--model", "gnl").stderr


def test_editors_know_every_model_and_every_option_from_their_dataclasses() -> None:
    # Where the package is installed as editable.
    if (stub := typed_models.ROOT / typed_models.STUB).exists():
        assert stub.read_text(encoding="utf-8") == typed_models.typed_models(), (
            "the table of models has changed: `python typed_models.py`"
        )
    assert sorted(get_args(ModelName)) == sorted(MODELS)
    options = {field.name for model in MODELS.values() for field in fields(model.options)}
    assert set(Choices.__annotations__) | {"data", "gating"} == options
    assert set(RunOptions.__annotations__) == options | set(USER_DATA)
    assert set(ib.sweeps.GridOptions.__annotations__) == options - set(USER_DATA)


def test_choices_that_editors_offer_are_those_that_there_are() -> None:
    offered = get_type_hints(Choices)
    for name, hint in offered.items():
        taken = {
            word
            for model in MODELS.values()
            if name in model.option_names
            for word in kinds(model.options)[name].choices
        }
        # An option that takes several is a union of the names and of lists of them.
        words = {
            word for part in (hint, *get_args(hint)) if get_origin(part) is Literal
            for word in get_args(part)
        }  # fmt: skip
        assert not taken or taken == words, name


def test_progress_is_told_by_stages(report) -> None:
    told: list[tuple[str, int, int]] = []
    ib.run("gln", **SMALL, progress=lambda *about: told.append(about))
    stages = [stage for stage, done, of in told if (done, of) == (0, 0)]
    assert [stage.split()[0] for stage in stages] == ["solving", "training", "comparing"]
    assert ("training a GLN for 30 steps", 30, 30) in told
    with pytest.raises(TypeError, match="must be True or False or a function"):
        ib.run("gln", **SMALL, progress=3)
    with pytest.raises(TypeError, match=r"a function of \(stage, done, of\), got <lambda>"):
        ib.run("gln", **SMALL, progress=lambda stage: None)


def test_what_is_saved_is_what_the_command_saves_and_an_interrupted_run_goes_on(
    report, tmp_path
) -> None:
    def interrupt(stage: str, done: int, of: int) -> None:
        if stage.startswith("training") and done >= 10:
            raise KeyboardInterrupt

    cut = ib.run("gln", **SMALL, save=tmp_path, progress=interrupt)
    assert not cut.finished and cut.row()["finished"] is False
    with pytest.raises(ValueError, match="holds an unfinished run"):
        ib.run("gln", **SMALL, save=tmp_path)
    whole = ib.run("gln", **SMALL, save=tmp_path, resume=True)
    assert as_json(whole) == as_json(report)
    assert json.loads((tmp_path / "results.json").read_text()) == json.loads(whole.to_json())
    assert json.loads((tmp_path / "run.json").read_text())["finished"] is True


def test_results_that_cannot_be_written_are_not_lost(tmp_path) -> None:
    with full_disk(), pytest.raises(ib.NotSaved, match=r"not be written.*too large") as caught:
        ib.run("gln", **SMALL, save=tmp_path)
    found = caught.value.report
    assert found.limit.status.name == "SOLVED" and found.trajectory.finished
    assert [path.name for path in tmp_path.iterdir()] == ["run.json"]


def test_a_page_shows_the_call_that_made_the_report(report) -> None:
    assert report.call.startswith("implicit_bias.run('gln', n_train=40, ")
    again = eval(report.call, {"implicit_bias": ib})
    assert as_json(again) == as_json(report)
    assert "seed=3)" in render_html(report)


@pytest.mark.parametrize(
    "trainer", sorted(name for name in TRAINERS if "logistic" in losses_of(name))
)
def test_a_trainer_begins_alike_in_its_settings_and_in_a_run(trainer) -> None:
    seeds = Seeds.from_seed(0)
    options = MODELS["gln"].choose(trainer=trainer)
    expected = ib.TrainingSettings(trainer=trainer, random_state=seeds.batches)
    assert training_settings(options, seeds) == expected


def test_a_folder_that_cannot_be_written_is_told_before_any_work(tmp_path) -> None:
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(ValueError, match="is a file: name a folder"):
        ib.run("gln", save=Path(file))
    with pytest.raises(ValueError, match="`resume` needs `save`"):
        ib.run("gln", resume=True)
