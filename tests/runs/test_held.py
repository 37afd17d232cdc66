"""What reports hold is of the classes that the table of models names for type checkers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from importlib import import_module
from pkgutil import resolve_name
from typing import Any, Literal

import pytest

import implicit_bias as ib
from implicit_bias.models import MODELS
from tests.commands import small_runs
from tests.long import some_of
from typed_models import held

QUICK = small_runs(
    {"n_train": 60, "steps": 20, "hidden_units": 3, "checkpoints": 3},
    {
        "collapse": {"n_train": None},
        "dgn": {"hidden_units": 4},
        "diagonal": {"n_train": 15},
        "distillation": {"n_train": None, "n_val": 100},
        "dlgn": {"hidden_units": None, "gate_steps": 20},
        "fixed-outer": {"n_train": 10},
        "gdln": {"n_train": 600},
        "heads": {"hidden_units": 8, "trunk_steps": 10},
        "orthosep": {"hidden_units": 12},
        "relu": {"n_train": 100, "hidden_units": 8},
        "shallow-gln": {"hidden_units": 2},
    },
)
# Options that go with those that tell what a report holds.
FURTHER: dict[tuple[str, str], dict[str, Any]] = {
    ("distillation", "all"): {"depth": 1, "data": "digits", "n_train": 100},
    ("frelu", "joint"): {"data": "wine"},
    ("gln", "joint"): {"data": "wine"},
}
CASES = [(name, choice) for name, model in MODELS.items() for choice, _ in held(model)]


@pytest.mark.parametrize(("name", "choice"), some_of(CASES, one_in=6))
def test_a_report_holds_what_the_table_of_models_says(name, choice) -> None:
    expected = next(holds for one, holds in held(MODELS[name]) if one == choice)
    further = {}
    for value in choice.values():
        further |= FURTHER.get((name, value), {})
    given = QUICK[name] | choice | further
    report = ib.run(name, **{key: value for key, value in given.items() if value is not None})
    for thing, place in asdict(expected).items():
        assert_of(getattr(report, thing), place)


def test_a_model_names_its_network_of_all_classes_where_it_has_one() -> None:
    for name, model in MODELS.items():
        if model.parts:
            parts = resolve_name(model.parts)(model.choose(trainer="constant"))
            assert bool(model.joint) == (parts.joint is not None), name
        else:
            assert not model.joint


def assert_of(thing: Any, place: str) -> None:
    """Assert that a thing is of the class at "module:class", or several by keys of one kind."""
    several, _, one = place.rpartition(" ")
    module, _, name = one.partition(":")
    path = module if module == "torch.nn" else f"implicit_bias.{module}"
    cls = getattr(import_module(path), name)
    if several == "tuple":
        assert isinstance(thing, tuple) and thing
        things = thing
    elif several:
        key = {"Mapping[int]": int, "Mapping[str]": str}[several]
        assert isinstance(thing, Mapping) and thing and all(type(k) is key for k in thing)
        things = tuple(thing.values())
    else:
        things = (thing,)
    assert all(isinstance(one, cls) for one in things), (thing, place)


def test_a_saved_report_is_loaded_as_one_of_its_model_alone(tmp_path) -> None:
    report = ib.run("linear", n_train=40, steps=5, save=tmp_path)
    assert ib.load(tmp_path, ib.Report).limit.objective == report.limit.objective
    assert ib.load(tmp_path, ib.Report[Literal["linear"]]).heading.model == "linear"
    with pytest.raises(TypeError, match=r"`kind`: .* model 'linear', not of 'gdln'"):
        ib.load(tmp_path, ib.Report[Literal["gdln"]])
    path = tmp_path / "limit.safetensors"
    assert isinstance(ib.load(path, ib.limits.LinearLimit), ib.limits.LinearLimit)
    with pytest.raises(TypeError, match=r"`kind`: .* holds LinearLimit, not GLNLimit: name that"):
        ib.load(path, ib.limits.GLNLimit)
    with pytest.raises(TypeError, match=r"`kind` must be a class, .* got 'gln'"):
        ib.load(path, "gln")
