"""`compare --resume` of the models with pipelines of their own, and what is kept of their runs."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.commands import clocks, cut, results, run, saved_arrays, without_times
from tests.long import some_of

FEW = ("--checkpoints", "6")
ORTHOSEP = (
    *FEW, "--model", "orthosep", "--n-train", "30", "--hidden-units", "8", "--steps", "200,200",
)  # fmt: skip
RESIDUAL = (*ORTHOSEP, "--network", "residual", "--steps", "100", "--batch-size", "10")
GDLN = (
    *FEW, "--model", "gdln", "--n-train", "200", "--hidden-units", "3", "--steps", "40,20",
    "--learning-rate", "2,1", "--batch-size", "100",
)  # fmt: skip
RELU = (
    *FEW, "--model", "relu", "--n-train", "30", "--n-val", "50", "--hidden-units", "8", "--trainer",
    "constant", "--steps", "60,40", "--learning-rate", "0.05,0.01", "--batch-size", "16",
)  # fmt: skip
DGN = (
    *FEW, "--model", "dgn", "--n-train", "14", "--n-val", "20", "--hidden-units", "7", "--steps",
    "30", "--trainer", "normalised",
)  # fmt: skip
CLASSES = (
    *FEW, "--model", "frelu", "--classes", "all", "--n-train", "60", "--n-val", "100",
    "--hidden-units", "5", "--steps", "40",
)  # fmt: skip


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Callable[[tuple[str, ...]], tuple[dict[str, Any], Path]]:
    """The record and the folder of a run that never stopped, which each choice has once."""

    @cache
    def run_whole(arguments: tuple[str, ...]) -> tuple[dict[str, Any], Path]:
        folder = tmp_path_factory.mktemp("whole")
        return results(*arguments, "--save", folder), folder

    return run_whole


@pytest.mark.parametrize(
    ("arguments", "stage", "at"),
    some_of(
        [
            (ORTHOSEP, "training a ReLU network", 0.02),
            (RESIDUAL, "training a residual ReLU network", 0.5),
            (GDLN, "training a ReLU network", 0.5),
            (GDLN, "training its gated linear twin", 0.5),
            (RELU, "training a ReLU network", 0.7),  # after the freeze of its copy
            (RELU, "training a copy of it", 0.6),
            ((*RELU, "--depth", "3"), "training a ReLU network", 0.6),
            ((*DGN, "--gating", "learned", "--starts", "2"), "training a network", 0.5),
            ((*DGN, "--regime", "lazy"), "training at output scale 1000", 0.5),
        ],
        one_in=3,
    ),
)
def test_a_run_that_is_resumed_ends_like_one_that_never_stopped(
    arguments, stage, at, whole, monkeypatch, tmp_path
) -> None:
    expected_record, folder = whole(arguments)
    there = (*arguments, "--save", tmp_path / "cut")
    cut(monkeypatch, there, stage, at=at)
    resumed = results(*there, "--resume")
    assert without_times(resumed) == without_times(expected_record)
    expected, found = saved_arrays(folder), saved_arrays(tmp_path / "cut")
    assert found.keys() == expected.keys() and len(found) >= 8
    for name, array in expected.items():
        np.testing.assert_array_equal(found[name], array, err_msg=name)
    # What is done is not done again: its clocks stand still.
    before = clocks(tmp_path / "cut")
    results(*there, "--resume")
    assert clocks(tmp_path / "cut") == before


def test_without_a_run_of_these_options_there_is_nothing_to_go_on_with(
    monkeypatch, tmp_path
) -> None:
    there = (*ORTHOSEP, "--save", tmp_path)
    nothing = run(*there, "--resume")
    assert nothing.exit_code == 2 and "there is no run to resume" in nothing.stderr
    cut(monkeypatch, there, "training a ReLU network", at=0.01)
    other = run(*there, "--seed", "1", "--resume")
    assert other.exit_code == 2 and "of other data or other settings" in other.stderr
    other = run(*there, "--init-scale", "0.5", "--resume")
    assert other.exit_code == 2 and "began from other weights" in other.stderr


@pytest.mark.parametrize(
    ("arguments", "change"), [(GDLN, ("--seed", "1")), (RELU, ("--freeze-at", "20"))]
)
def test_a_new_run_forgets_what_an_older_one_kept_of_its_second_network(
    arguments, change, whole, monkeypatch, tmp_path
) -> None:
    shutil.copytree(whole(arguments)[1], tmp_path, dirs_exist_ok=True)
    other = (*arguments, *change)
    cut(monkeypatch, (*other, "--save", tmp_path), "training a ReLU network", at=0.5)
    resumed = results(*other, "--save", tmp_path, "--resume")
    assert without_times(resumed) == without_times(results(*other))


# What is observed along training


def test_neurons_are_followed_towards_the_two_directions(tmp_path) -> None:
    record = results(*ORTHOSEP, "--save", tmp_path)
    frame = pd.read_parquet(tmp_path / "trajectory.parquet")
    for name in ("mean_cosine", "share_positive", "share_negative", "share_dead", "u", "z"):
        assert frame[name].iloc[-1] == pytest.approx(record["diagnosis"][name], rel=1e-12)
    cosines = [c for c in record["diagnosis"]["cosines"] if c is not None]
    assert frame["smallest_cosine"].iloc[-1] == pytest.approx(min(cosines))
    assert frame["mean_cosine"].iloc[-1] > 0.99 > frame["mean_cosine"].iloc[0]
    assert frame["margin_ratio"].iloc[-1] == pytest.approx(record["comparison"]["margin_ratio"])


def test_every_class_is_measured_along_its_training_without_kkt_fits(tmp_path) -> None:
    record = results(*CLASSES, "--save", tmp_path)
    assert len(record["one_vs_rest"]) == 10
    for entry in record["one_vs_rest"]:
        frame = pd.read_parquet(tmp_path / f"trajectory-{entry['class']}.parquet")
        for name in ("margin_ratio", "zeta_cosine", "score_cosine", "agreement"):
            last = entry["comparison"][name]
            assert frame[name].iloc[-1] == pytest.approx(last), name
        assert np.isnan(frame["kkt_residual"]).all()
