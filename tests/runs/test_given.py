"""Data and gates of a user's own: as good as bundled ones, checked before any long work."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import implicit_bias as ib
from implicit_bias.models import MODELS
from implicit_bias.runs import Seeds
from tests.commands import without_times
from tests.long import some_of

SMALL: dict[str, Any] = {"steps": 10, "seed": 2}
SIZES = {"n_train": 40, "n_val": 30}
RNG = np.random.default_rng(0)
X = np.column_stack([RNG.normal(size=(80, 4)), np.ones(80)])
Y = np.where(X[:, 0] + 0.3 * X[:, 1] > 0, 1.0, -1.0)


def found(report: ib.Report) -> Any:
    """What a run found, without what it was asked for."""
    whole = without_times(json.loads(report.to_json()))
    return {key: whole[key] for key in ("limit", "network", "comparison", "seeds")}


@pytest.fixture(scope="module")
def bundled() -> ib.Report:
    return ib.run("gln", **SMALL, **SIZES, hidden_units=4, contexts=4)


@pytest.fixture(scope="module")
def digits() -> ib.Dataset:
    return ib.load_digits(**SIZES, random_state=Seeds.from_seed(2).data)


def gating() -> ib.HyperplaneContexts:
    return ib.HyperplaneContexts(4, 4, random_state=Seeds.from_seed(2).gating)


@pytest.mark.parametrize(
    "way", some_of(["arrays", "dataset", "fitted gating", "gating alone"], one_in=2)
)
def test_the_bundled_data_and_gates_given_again_find_the_same(way, bundled, digits) -> None:
    drawn = {"hidden_units": 4, "contexts": 4}
    parts = (digits.X_train, digits.y_train, digits.X_val, digits.y_val)
    ways: dict[str, dict[str, Any]] = {
        "arrays": dict(zip(("X", "y", "X_val", "y_val"), parts, strict=True)) | drawn,
        "dataset": {"data": digits, "gating": gating()},
        "fitted gating": {"data": digits, "gating": gating().fit(digits.X_train)},
        "gating alone": {"gating": gating(), **SIZES},
    }
    report = ib.run("gln", **SMALL, **ways[way])
    assert found(report) == found(bundled)
    options, row = report.results["options"], report.row()
    assert options["data"] == row["data"] == ("digits" if way == "gating alone" else "given")
    assert (options["hidden_units"], options["contexts"], options["cutoffs"]) == (4, 4, "median")
    assert (row["n_train"], row["n_val"]) == (40, 30)
    assert row["data_digest"] == digits.digest()
    assert row["gating"] == (None if way == "arrays" else "HyperplaneContexts")
    assert "gating=gating" in report.call or way == "arrays"


@pytest.mark.parametrize("model", some_of(sorted(MODELS), one_in=2))
def test_every_model_obeys_data_of_the_user_s_own_or_says_why_not(model) -> None:
    labels = {"gdln": (Y + 1) / 2, "heads": Y.astype(int)}  # targets, classes
    labels["next-token"] = (Y + 1) / 2  # tokens
    own = {"X": X, "y": labels.get(model, Y)}
    if model == "attention":
        own["X"] = np.stack([X, X[::-1]], axis=1)  # sequences of two tokens
    if MODELS[model].refusal("data"):
        with pytest.raises(ValueError, match=MODELS[model].refusal("data")):
            ib.run(model, **own)
        return
    few = {"learning_rate": 0.1} if model == "orthosep" else {}
    record = ib.run(model, **own, **SMALL, **few).results
    assert record["options"]["data"] == "given"
    # Features of samples are picked by unit vectors, as many as there are samples.
    assert record["data"]["n_inputs"] == (len(X) if model == "collapse" else 5)
    n_train = len(X) - 20 * (model not in ("attention", "collapse", "gdln", "next-token"))
    assert record["data"]["n_train"] == record["options"]["n_train"] == n_train
    if model == "linear":
        other = ib.run(model, X=X, y=Y, seed=2, steps=5, n_train=50, n_val=10)
        assert (other.row()["n_train"], other.row()["n_val"]) == (50, 10)


@pytest.mark.parametrize("model", sorted(MODELS))
def test_every_model_obeys_a_gating_of_the_user_s_own_or_says_why_not(model) -> None:
    class Quadrants:
        """Neither fitted nor saved: whether each of two inputs is positive."""

        def transform(self, X: Any) -> Any:
            return X[:, :2] > 0

    reason = MODELS[model].refusal("gating")
    if reason:
        with pytest.raises(ValueError, match=f"the model {model} takes no `gating`: {reason}"):
            ib.run(model, gating=Quadrants())
        return
    report = ib.run(model, X=X, y=Y, gating=Quadrants(), **SMALL)
    options = report.results["options"]
    # Those of `dgn` are in layers: one unit in each of two.
    assert options["hidden_units"] == (1 if model == "dgn" else 2)
    assert options.get("cutoffs") is None
    assert options.get("contexts") in ({None} if model == "dgn" else {None, 2})
    assert report.results["gating"]["name"] == "Quadrants"
    assert "gating.safetensors" not in report.files


def test_several_classes_of_the_user_s_own() -> None:
    labels = np.digitize(X[:, 0], [-0.5, 0.5]) + 7
    report = ib.run(
        "gln", X=X, y=labels, classes="all", gating=ib.HyperplaneContexts(8, 4), **SMALL
    )
    assert sorted(report.limit) == [7, 8, 9]
    assert report.row()["n_classes"] == 3


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"X": X}, "`y` is missing"),
    ({"X": X, "y": Y, "X_val": X}, "`y_val` is missing"),
    ({"X": X, "y": Y, "data": "digits"}, "`data` follows from `X` of your own"),
    ({"X": X, "y": Y, "hidden_units": 3, "gating": gating()}, "`hidden_units` follows from"),
    ({"X": X, "y": Y, "contexts": 4, "gating": gating()}, "`contexts` follows from"),
    ({"X": X, "y": Y, "X_val": X, "y_val": Y, "n_train": 9}, "`n_train` follows from"),
    ({"X": X, "y": Y, "positive": [1]}, "`positive` is of data by name or file"),
    ({"X": X, "y": Y, "n_train": 80}, "too few for 80 to train on"),
    ({"X": X, "y": Y[:9]}, r"`y` must have shape \(80,\)"),
    ({"X": X, "y": Y + 1}, "must hold -1 and [+]1 only"),
    ({"X": X, "y": np.ones(80)}, "must hold both classes"),
    ({"X": X * np.nan, "y": Y}, "must be finite"),
    ({"X": X, "y": Y, "X_val": X[:, :3], "y_val": Y}, "must have 5 columns"),
    ({"data": X}, "must be the name of bundled data or a Dataset"),
    ({"gating": 3}, "`gating` must have `transform"),
    ({"gating": ib.HyperplaneContexts}, "`gating` must have `transform"),
    ({"gating": gating().fit(X)}, "`gating` cannot transform inputs of shape"),
    ({"gating": ib.HyperplaneContexts(2, 3)}, "`gating` cannot be fitted"),
]


@pytest.mark.parametrize(("given", "message"), REFUSED, ids=lambda value: str(value)[-25:])
def test_what_contradicts_itself_or_is_no_data_has_one_message_before_any_work(
    given, message
) -> None:
    def never(stage: str, done: int, of: int) -> None:
        raise AssertionError(stage)

    with pytest.raises((TypeError, ValueError), match=message):
        ib.run("gln", **given, progress=never)


def test_gates_beyond_one_are_refused_where_units_are_open_or_shut() -> None:
    with pytest.raises(ValueError, match=r"must give gates in \{0, 1\}, got 3"):
        ib.run("frelu", X=X, y=Y, gating=gating())
