"""Names in saved files: which there are, what they stand for, and that they stay."""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import logging
import re
import subprocess
import sys
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

import numpy as np
import pytest
import torch

import implicit_bias as ib
from implicit_bias.gates import Gating
from implicit_bias.limits import Limit
from implicit_bias.runs.drawing import each_panel
from implicit_bias.runs.reports import (
    PROMISED,
    WEIGHTS,
    Unreadable,
    filled,
    found,
    kind_of,
    name_of,
    read_saved,
)
from tests.commands import ROOT
from tests.long import some_of
from tests.reports.kept import CORNERS, NAMES, NETWORKS, PRODUCTS, parts_of

SORTS = ("class", "enum", "network", "gating", "panel", "function")


def package_modules() -> list[Any]:
    paths = [path for top in ("implicit_bias", "solvers") for path in (ROOT / top).rglob("*.py")]
    names = [".".join(path.relative_to(ROOT).with_suffix("").parts) for path in paths]
    return [importlib.import_module(name.removesuffix(".__init__"))
            for name in names if not name.endswith("__main__")]  # fmt: skip


def package_classes() -> list[type]:
    return [
        value
        for module in package_modules()
        for value in vars(module).values()
        if isinstance(value, type) and value.__module__ == module.__name__
    ]


@pytest.mark.parametrize("name", PROMISED)
def test_a_promised_name_is_of_one_thing_that_can_be_saved(name) -> None:
    sort, _, bare = name.partition(":")
    thing = found(name, sort)
    assert sort in SORTS and re.fullmatch(r"\w+(\.\w+)?", bare)
    assert name_of(thing) == name  # where it is defined, and under no second name
    assert {
        "class": is_dataclass(thing) or hasattr(thing, "_fields"),
        "enum": inspect.isclass(thing) and issubclass(thing, Enum),
        "network": inspect.isclass(thing) and issubclass(thing, torch.nn.Module),
        "gating": inspect.isclass(thing) and issubclass(thing, Gating),
        "panel": inspect.isfunction(thing),
        "function": inspect.isfunction(thing),
    }[sort]
    if sort == "panel":
        assert {"ax", "axes"} & set(inspect.signature(thing).parameters)


def test_the_names_of_this_format_are_those_that_were_promised() -> None:
    promised = json.loads(NAMES.read_text())
    assert list(promised) == list(dict.fromkeys(promised))
    missing, new = set(promised) - set(PROMISED), set(PROMISED) - set(promised)
    assert not missing, "a name of saved files never goes: let it name the thing's new place"
    assert not new, "run `python -m tests.reports.kept --names`, which promises them from now on"


@pytest.mark.parametrize("name", json.loads(NAMES.read_text()))
def test_what_a_file_says_beside_a_name_is_understood_for_good(name) -> None:
    promised, now, sort = json.loads(NAMES.read_text())[name], parts_of(name), name.split(":")[0]
    thing = found(name)
    if sort == "class":
        # A file without the fields that are new is filled; those that are no more are left out.
        assert set(filled(thing, dict.fromkeys(promised))) == set(now)
    elif sort == "enum":
        assert set(promised) <= set(now)
    elif sort == "gating":
        assert set(now) - set(thing.absent) <= set(promised)
    elif sort == "network":
        # A new attribute has a value of the class; weights keep their names.
        assert all(hasattr(thing, one) for one in set(now) - set(promised))
        assert [one for one in promised if one not in now] == []
    else:
        # Arguments keep their names and places; new ones come last, with a default.
        more = [*inspect.signature(thing).parameters.values()][len(promised) :]
        assert now[: len(promised)] == promised
        assert all(one.default is not one.empty for one in more)


def test_all_that_can_be_saved_by_itself_has_a_name() -> None:
    savers = [
        kind
        for kind in package_classes()
        if hasattr(kind, "save") and hasattr(kind, "load") and not kind.__subclasses__()
    ]
    assert {kind.__name__ for kind in savers if name_of(kind) is None} == set()
    assert len(savers) > 20


def test_every_network_and_limit_is_public_and_has_a_name() -> None:
    bases = {"GatedStack", "GatedLayers", "GateFree", "LayeredNetwork", "Limit", "UnitsLimit"}
    # Around a module of the user's own.
    bases |= {"InDouble", "LeadingTerm", "OpenedNetwork", "OverScales", "RecognisedNetwork"}
    bases |= {"RelativeScores", "UnitsNetwork"}
    whole = [kind for kind in package_classes() if not kind.__name__.startswith("_")]
    for names, base in ((ib.networks.__all__, torch.nn.Module), (ib.limits.__all__, Limit)):
        kinds = {kind for kind in whole if issubclass(kind, base)}
        concrete = {kind for kind in kinds if kind.__name__ not in bases}
        assert {kind.__name__ for kind in concrete} - set(names) == set(), "in no stub"
        assert [kind for kind in concrete if name_of(kind) is None] == []
        networks = {name_of(kind) for kind in concrete if issubclass(kind, torch.nn.Module)}
        assert networks <= set(NETWORKS), "tests.reports.kept has no example"


def test_what_saved_classes_are_made_of_has_a_name_too() -> None:
    kinds = [kind for kind in package_classes()
             if is_dataclass(kind) or issubclass(kind, (tuple, Enum))]  # fmt: skip
    named = {kind.__name__ for kind in kinds if name_of(kind)}
    nameless = {kind.__name__ for kind in kinds} - named - {"Limit", "UnitsLimit"}
    for name in (name for name in PROMISED if name.startswith("class:")):
        kind = found(name)
        types = [one.type for one in fields(kind)] if is_dataclass(kind) else [
            *kind.__annotations__.values()]  # fmt: skip
        words = {word for hint in types for word in re.findall(r"\w+", str(hint))}
        assert words & nameless == set(), name


def test_functions_that_draw_are_promised_where_they_become_panels() -> None:
    nameless = []
    for module in package_modules():
        if module.__name__.startswith("implicit_bias.sweeps"):
            continue  # whose pictures belong to no report
        for node in ast.walk(ast.parse(inspect.getsource(module))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "partial":
                function = getattr(module, ast.unparse(node.args[0]), None)
                if inspect.isfunction(function) and name_of(function) is None:
                    nameless += [function] * bool(
                        {"ax", "axes"} & set(inspect.signature(function).parameters)
                    )
    assert nameless == []


def test_the_table_loads_nothing_of_what_it_names() -> None:
    program = (
        "import sys, implicit_bias._support.names as n; n.name_of(dict); "
        "print([name for name in sys.modules if name.split('.')[0] in "
        "('torch', 'numpy', 'solvers', 'matplotlib') or name.startswith('implicit_bias.models')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("name", "sorts"),
    [("class:Popen", ()), ("os:system", ()), ("implicit_bias.cli:main", ()), (5, ()), ([], ()),
     ("enum:Status", ("class",)), ("panel:gdln.losses", ("function", "enum"))],
)  # fmt: skip
def test_what_is_not_in_the_table_is_refused(name, sorts) -> None:
    with pytest.raises(Unreadable, match=re.escape(repr(name))):
        found(name, *sorts)


# Choices that change what reports are made of, beside those of `tests/reports/test_row.py`.
FEW = {"checkpoints": 4}
SMALL = FEW | {"n_train": 40, "steps": 30}
PLANE = FEW | {"n_train": 40, "steps": 40, "data": "quadrants"}
DGN = FEW | {"n_train": 20, "steps": 30, "hidden_units": 3, "data": "quadrants"}
DLGN = FEW | {"n_train": 40, "steps": 40, "hidden_units": 30, "gate_steps": 100}
HEADS = SMALL | {"hidden_units": 8, "trunk_steps": 10}
VARIANTS: list[tuple[str, dict[str, Any]]] = [
    ("linear", SMALL | {"trainer": "dual"}),
    ("linear", SMALL | {"classes": "all", "n_train": 60}),
    ("linear", SMALL | {"steps": 0}),
    ("deep-linear", SMALL),
    ("gln", PLANE | {"trainer": ("annealed", "momentum")}),
    ("gln-l2", SMALL),
    ("shallow-gln", PLANE),
    ("frelu", PLANE | {"cutoffs": "axes", "hidden_units": 2}),
    ("orthosep", SMALL | {"data": "orthants", "starts": 2}),
    ("orthosep", SMALL | {"network": "residual"}),
    ("gdln", {"n_train": 100, "steps": 30, "hidden_units": 3}),
    ("relu", PLANE),
    ("relu", SMALL | {"depth": 3, "hidden_units": 6, "seed": 1}),
    ("dgn", DGN | {"gating": "contexts", "starts": 1}),
    ("dgn", DGN | {"gating": "learned"}),
    ("dgn", DGN | {"gating": "dlgn", "steps": 0}),
    ("dgn", DGN | {"regime": "lazy", "gating": "random"}),
    ("dlgn", DLGN | {"data": "circle", "gate_steps": 200, "n_train": 60}),
    ("dlgn", DLGN | {"data": "quadrants", "experts": "constant"}),
    ("dlgn", DLGN | {"depth": 3, "hidden_units": 8}),
    ("distillation", {"steps": (20, 40), "n_val": 50}),
    ("distillation", {"steps": 20, "n_val": 50, "data": "digits", "depth": 3}),
    ("heads", HEADS),
    ("heads", HEADS | {"share": 1.0, "classes": "two"}),
    ("gln", {"X": CORNERS, "y": PRODUCTS, "X_val": CORNERS, "y_val": PRODUCTS, "steps": 20,
             "gating": ib.HyperplaneContexts(6, 2).fit(CORNERS)}),
]  # fmt: skip
# Modules of this package and of torch, as Python writes them.
PATHS = re.compile(rb"(implicit_bias|solvers|torch)\.[a-z_]+[.:]")


@pytest.mark.parametrize(
    ("model", "options"),
    some_of(VARIANTS, one_in=3),
    ids=[f"{k}-{model}" for k, (model, _) in enumerate(VARIANTS)],
)
def test_every_report_is_kept_whole_and_names_no_module(model, options, tmp_path, caplog) -> None:
    report = ib.run(model, **options)
    with caplog.at_level(logging.WARNING, "implicit_bias"):
        report.save(tmp_path)
    assert "leaves out" not in caplog.text
    for path in tmp_path.iterdir():
        assert not PATHS.search(path.read_bytes()), path.name
    again = ib.load(tmp_path)
    assert again.to_json() == report.to_json() and str(again) == str(report)
    assert list(again.objects) == list(report.objects)
    kept = [len(one.panels) for one in again.views]
    assert kept == [len([*each_panel(one.panels)]) for one in report.views]


def test_a_saved_network_and_its_gating_name_themselves(tmp_path) -> None:
    gating = ib.gates.RandomGates(widths=(3, 2)).fit(CORNERS)
    gating.save(tmp_path / "gating")
    assert kind_of(tmp_path / "gating") == "gating:RandomGates"
    again = ib.load(tmp_path / "gating")
    np.testing.assert_array_equal(again.transform(CORNERS), gating.transform(CORNERS))
    ib.run("linear", X=CORNERS, y=CORNERS[:, 0], X_val=CORNERS, y_val=PRODUCTS, steps=2).save(
        tmp_path
    )
    assert kind_of(tmp_path / "limit.safetensors") == "class:LinearLimit"
    assert kind_of(tmp_path / "network.safetensors") == "weights"
    assert read_saved(tmp_path / "network.safetensors", WEIGHTS)[1] == {
        "network": "network:DeepLinear"
    }
    with pytest.raises(ValueError, match="holds weights, which is no result by itself"):
        ib.load(tmp_path / "network.safetensors")


def test_a_gating_of_a_users_own_class_is_saved_under_its_name_and_loaded_by_it(tmp_path) -> None:
    class Mine(ib.HyperplaneContexts):
        pass

    Mine(2).fit(CORNERS).save(tmp_path / "gating")
    assert Mine.load(tmp_path / "gating").transform(CORNERS).shape == (4, 2)
    with pytest.raises(ValueError, match=r"holds Mine, which is no result.*class that saved it"):
        ib.load(tmp_path / "gating")
