"""Models x options: each is obeyed, or refused with the models that take it; none is ignored."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args, get_type_hints

import numpy as np
import pandas as pd
import pytest
from click import Choice
from safetensors.numpy import load_file

from implicit_bias.data import DRAWN, IMAGE_SETS, NAMES, TABLES, TableName
from implicit_bias.models import MODELS
from implicit_bias.options import ClassOptions, flag, model_parameters
from implicit_bias.training import MARGIN_LOSSES, TRAINERS, TrainingSettings, losses_of
from tests.commands import results, run, small_runs, typed, without_times, write_mnist
from tests.long import each_pairwise

# Runs of a second, by trainers that take what is varied below.
SMALL = {
    model: typed(options)
    for model, options in small_runs(
        {
            "trainer": "constant",
            "n_train": 40,
            "n_val": 40,
            "steps": 20,
            "hidden_units": 3,
            "checkpoints": 3,
        },
        {
            "collapse": {"n_train": None, "learning_rate": 1.0, "batch_size": 0},
            "dgn": {"hidden_units": 8},
            "diagonal": {"n_train": 12},
            "distillation": {"n_train": 12},
            "dlgn": {"hidden_units": 8, "gate_steps": 10},
            "fixed-outer": {"n_train": 8},
            "gdln": {"n_train": 300},
            "heads": {
                "n_train": 60,
                "hidden_units": 6,
                "depth": 2,
                "trunk_steps": 30,
            },
            "next-token": {"trainer": "normalised", "descent_steps": 20},
            "orthosep": {"hidden_units": 6, "learning_rate": 0.05, "batch_size": 0},
            "relu": {"trainer": "constant", "hidden_units": 4},
            "shallow-gln": {"hidden_units": 2},
        },
    ).items()
}
# Another value of every option, typed after the small run's own.
OTHER = {
    "batch_size": "7",
    "beside": "machines",
    "beta": "2",
    "checkpoints": "2",
    "class_sizes": "3,1",
    "classes": "all",
    "constant": "",
    "context": "2",
    "contexts": "4",
    "cutoffs": "axes",
    "data": "orthants",
    "data_dir": "{mnist}",
    "decoupled": "",
    "depth": "4",
    "descent_steps": "9",
    "device": "cuda:77",
    "dimension": "3",
    "dtype": "float32",
    "experts": "constant",
    "exits": "2",
    "final_beta": "20",
    "freeze_at": "3",
    "frozen_trainer": "same",
    "gate_rate": "0.8",
    "gate_steps": "20",
    "gating": "dlgn",
    "group": "8,8",
    "hidden_units": "5",
    "init": "balanced",
    "init_scale": "0.7",
    "inputs": "7",
    "label": "other",
    "kappa": "2",
    "learning_rate": "0.003",
    "length_scales": "4,2",
    "loss": "exponential",
    "momentum": "0.5",
    "n_labelled": "50",
    "n_train": "31",
    "n_val": "21",
    "network": "residual",
    "parameters": "key-query",
    "output_scales": "50",
    "positive": "2",
    "regime": "lazy",
    "seed": "5",
    "share": "0.3",
    "slope": "0.3",
    "solver": "cvxpy:CLARABEL",
    "standardize": "",
    "starts": "2",
    "steps": "9",
    "temperature": "2",
    "tokens": "5",
    "tol": "1e-5",
    "trainer": "normalised",
    "trunk": "random",
    "trunk_steps": "20",
    "upper_units": "5",
    "weight_decay": "0.05",
    "width": "5",
}
REPORTED = (0, 3, 4, 5)
WITH = {
    ("attention", "data"): "equal",
    ("orthosep", "data"): "quadrants",
    ("collapse", "data"): "iris",
    ("collapse", "n_train"): "31 --data iris",
    ("diagonal", "loss"): "logistic",
    ("distillation", "data"): "digits",
    ("gdln", "batch_size"): "150",  # fewer samples want smaller steps
    ("gdln", "data"): "pulse",
    ("gdln", "tol"): "1e-17",
    ("heads", "classes"): "two",
    ("heads", "data"): "iris",
    ("heads", "n_train"): "70",
    ("next-token", "data"): "{mnist}/text.csv",
    ("next-token", "trainer"): "momentum",
    ("shallow-gln", "init"): "kaiming",
    ("fixed-outer", "init"): "orthogonal",
    ("fixed-outer", "n_train"): "9",
    # What ten classes and files need beside the option itself.
    "classes": "--n-train 100",
    "loss": "--learning-rate 0.0001",
    "data_dir": "--data mnist --n-train 90",
    "trainer": "--batch-size 0",
    "decoupled": "--weight-decay 2 --trainer spectral",
    "upper_units": "--depth 3",
    "width": "--parameters key-query",
}

# Options of one kind of gates or of one regime, which others refuse.
NEEDS = {
    ("deep-linear", "decoupled"): "--depth 2",
    ("deep-linear", "weight_decay"): "--depth 2",
    ("frelu", "decoupled"): "--trainer sign",
    ("gln", "decoupled"): "--trainer sign",
    ("dgn", "contexts"): "--gating contexts",
    ("dgn", "gate_rate"): "--gating random",
    ("dgn", "output_scales"): "--regime lazy",
    ("heads", "trainer"): "--share 1",
}

# Those of losses of margins.
MARGIN_TRAINERS = [name for name in TRAINERS if "logistic" in losses_of(name)]


# Options of data, which all models load by one function: tried on one of them, on a file.
OF_FILES = ("constant", "label", "positive", "standardize")


def known_options() -> list[str]:
    return sorted({name for model in MODELS.values() for name in model.option_names})


def arguments(model: str, name: str, folder: Any) -> list[str]:
    value = WITH.get((model, name), OTHER[name]).format(mnist=folder)
    further = f"{WITH.get(name, '')} {NEEDS.get((model, name), '')}"
    return [*SMALL[model], *further.split(), flag(name), *value.split()]


def answer(record: dict[str, Any]) -> dict[str, Any]:
    """What a run found, without what it was asked for."""
    asked = {"options", "seeds", "version", "packages", "python"}
    return {key: entry for key, entry in without_times(record).items() if key not in asked}


def lengths_of_trajectories(folder: Path) -> set[int]:
    """How many checkpoints each trajectory of a saved run has, of tables and of runs alike."""
    tables = [len(pd.read_parquet(file)) for file in folder.glob("*trajectory*.parquet")]
    steps = [load_file(file).get("row.step", ()) for file in folder.glob("*run.safetensors")]
    return {*tables, *map(len, steps)}


@pytest.fixture(scope="module")
def usual() -> dict[str, dict[str, Any]]:
    return {}


TAKEN = [
    (model, name)
    for model in sorted(MODELS)
    for name in MODELS[model].option_names
    if name not in OF_FILES
]
REFUSED = [
    (model, name)
    for model in sorted(MODELS)
    for name in known_options()
    if name not in MODELS[model].option_names
]


@pytest.mark.parametrize(
    ("model", "name"), each_pairwise(TAKEN, times=1) + each_pairwise(REFUSED, times=1)
)
def test_an_option_changes_what_is_found_or_is_refused(model, name, usual, tmp_path) -> None:
    if name == "data_dir":
        write_mnist(tmp_path, n=900)
    if (model, name) == ("next-token", "data"):
        rows = {"x": [1, 1, 2], "y": [0, 1, 1], "z": [0, 0, 1]}
        pd.DataFrame(rows).to_csv(tmp_path / "text.csv", index=False)
    given = arguments(model, name, tmp_path)
    if name not in MODELS[model].option_names:
        typed = f"{flag(name)} {given[-1]}" if given[-1] != flag(name) else flag(name)
        result = run("--model", model, *SMALL[model], *typed.split())
        takers = [key for key, one in MODELS.items() if name in one.option_names]
        assert result.exit_code == 2
        assert f"`{typed}` is not for the model {model}" in result.stderr
        assert f"take one of {', '.join(takers)}" in result.stderr
        return
    if name == "device":
        assert "torch cannot use device 'cuda:77' here" in run("--model", model, *given).stderr
        return
    if name == "checkpoints":
        # Of trajectories alone: most results are of the last step.
        results("--model", model, *given, "--save", tmp_path / "run", code=REPORTED)
        assert lengths_of_trajectories(tmp_path / "run") == {2}
        return
    if model not in usual:
        usual[model] = results("--model", model, *SMALL[model], code=REPORTED)
    record = results("--model", model, *given, code=REPORTED)
    assert answer(record) != answer(usual[model]), f"{flag(name)} is ignored by {model}"
    assert record["options"][name] != usual[model]["options"][name]


@pytest.mark.parametrize("name", OF_FILES)
def test_an_option_of_data_changes_what_is_found_on_a_file(name, tmp_path) -> None:
    X = np.random.default_rng(0).normal(3, [1, 2, 3, 4], size=(90, 4))
    table = pd.DataFrame(X, columns=list("abcd"))
    table["y"], table["other"] = np.digitize(X[:, 0], [2, 3]), np.digitize(X[:, 1], [2, 3])
    table.to_csv(tmp_path / "table.csv", index=False)
    two = ["--positive", "0"] if name != "positive" else []
    small = ["--model", "linear", "--data", tmp_path / "table.csv", "--steps", "0"]
    usual = results(*small, "--positive", "0", code=REPORTED)
    asked = [flag(name), *OTHER[name].split()]
    record = results(*small, *two, *asked, code=REPORTED)
    assert answer(record)["data"] != answer(usual)["data"]
    assert record["options"][name] != usual["options"][name]


def test_every_option_is_tried() -> None:
    assert sorted(OTHER) == known_options()


def test_the_values_of_an_option_are_those_that_there_are() -> None:
    (data,) = [p for p in model_parameters(MODELS["gln"]) if p.name == "data"]
    assert data.metavar == f"[{'|'.join(NAMES)}|FILE]"
    assert set(NAMES) == {*DRAWN, *IMAGE_SETS, *TABLES}
    assert set(get_args(TableName)) == set(TABLES)
    assert get_args(get_type_hints(ClassOptions)["classes"]) == ("two", "all", "joint")
    (trainer,) = [p for p in model_parameters(MODELS["gln"]) if p.name == "trainer"]
    (loss,) = [p for p in model_parameters(MODELS["gln"]) if p.name == "loss"]
    assert trainer.metavar == f"[{'|'.join(sorted(MARGIN_TRAINERS))}],..."
    assert isinstance(loss.type, Choice)
    assert set(loss.type.choices) == {*MARGIN_LOSSES, "squared"}


@pytest.mark.parametrize("model", sorted(MODELS))
def test_help_explains_every_option_of_a_model_and_no_other(model) -> None:
    text = run("--model", model, "--help").stdout
    for name in known_options():
        assert (f"\n  {flag(name)} " in text) == (name in MODELS[model].option_names), name


def test_defaults_are_the_model_s_and_the_trainer_s() -> None:
    published = MODELS["gln"].choose(trainer="constant")
    assert (published.steps, published.learning_rate) == ((1600, 1600), (0.04, 0.01))
    assert (published.batch_size, published.momentum) == (128, 0.0)
    assert (published.hidden_units, published.contexts, published.cutoffs) == (10, 2, "median")
    assert published.checkpoints == TrainingSettings().n_checkpoints
    own = MODELS["relu"].choose()
    assert (own.trainer, own.steps, own.hidden_units) == ("smoothed", (2000,), 20)
    heads = MODELS["heads"].choose(trainer="constant")
    assert (heads.steps, heads.learning_rate, heads.batch_size) == ((2000,), (), 0)
    assert heads.momentum == 0.98 == MODELS["heads"].choose(trainer="constant", share=1.0).momentum
    assert MODELS["heads"].choose(trainer="constant", steps=(500,)).learning_rate == ()
    steps = MODELS["relu"].choose(trainer="constant")
    assert (steps.steps, steps.learning_rate, steps.momentum) == ((1600, 1600), (0.04, 0.01), 0.9)
    other = MODELS["relu"].choose(trainer="momentum", seed=3)
    assert (other.momentum, other.batch_size, other.learning_rate) == (0.0, 0, ())
    assert (other.init, other.seed) == ("kaiming", 3)
    plane = MODELS["gln"].choose(data="quadrants", contexts=4)
    assert (plane.hidden_units, plane.contexts, plane.cutoffs) == (2, 4, "axes")


@pytest.mark.parametrize(
    ("trainer", "steps", "rates", "expected"),
    [
        ("constant", None, None, ((1600, 1600), (0.04, 0.01))),
        ("constant", (200,), None, ((200,), (0.04,))),
        ("constant", (7, 8), None, ((7, 8), (0.04, 0.01))),
        ("constant", None, (0.5,), ((1600,), (0.5,))),
        ("constant", None, (0.5, 1.0), ((1600, 1600), (0.5, 1.0))),
        ("constant", (9, 5, 2), (3.0, 2.0, 1.0), ((9, 5, 2), (3.0, 2.0, 1.0))),
        ("annealed", (20, 30), None, ((20, 30), ())),
        ("normalised", None, (0.1,), ((3000,), (0.1,))),
        ("normalised", (4, 5), (), ((4, 5), ())),
        ("constant", (9,), (0.1, 0.2), "1 phase of steps, but 2 learning rates: give as many"),
        ("constant", (1, 2, 3), None, "3 phases of steps, but 2 learning rates"),
        ("constant", (1, 2), (0.1,), "2 phases of steps, but 1 learning rate:"),
        ("normalised", None, (0.1, 0.2), "1 phase of steps, but 2 learning rates"),
    ],
)
def test_steps_and_learning_rates_cut_each_other_to_as_many_phases(
    trainer, steps, rates, expected
) -> None:
    both = {"steps": steps, "learning_rate": rates}
    given = {name: value for name, value in both.items() if value is not None}
    if isinstance(expected, str):
        with pytest.raises(ValueError, match=expected):
            MODELS["gln"].choose(trainer=trainer, **given)
    else:
        options = MODELS["gln"].choose(trainer=trainer, **given)
        assert (options.steps, options.learning_rate) == expected
