"""The folder of a run: one run, one writer, nothing lost."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest
from filelock import FileLock

from implicit_bias.training import RunFile
from tests.commands import DONE, cut, home, results, run, without_times

SMALL = ("--model", "linear", "--trainer", "constant", "--n-train", "40", "--steps", "60")
CLASSES = (*SMALL, "--classes", "all", "--n-train", "100")


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def refusal(*arguments: object) -> str:
    result = run(*arguments)
    assert result.exit_code == 2 and "solving" not in result.stderr
    return result.stderr


def test_an_unfinished_run_is_not_written_over(monkeypatch, tmp_path) -> None:
    there = ("--save", tmp_path)
    cut(monkeypatch, (*SMALL, *there), "training", at=0.5)
    kept = content(tmp_path)
    assert "unfinished run of the model linear" in refusal(*SMALL, *there)
    assert "unfinished run of the model linear" in refusal("--model", "gln", *there)
    assert "holds a run of the model linear, not of gln" in refusal(
        "--model", "gln", *there, "--resume"
    )
    assert content(tmp_path) == kept
    resumed = results(*SMALL, *there, "--resume")
    assert without_times(resumed) == without_times(results(*SMALL))


def test_a_run_goes_on_with_the_trainer_that_it_began_with_alone(monkeypatch, tmp_path) -> None:
    pair = (*SMALL, "--trainer", "constant,momentum", "--save", tmp_path)
    cut(monkeypatch, pair, "training a linear predictor by constant", at=0.5)
    other = run(*SMALL, "--trainer", "constant", "--save", tmp_path, "--resume")
    assert other.exit_code == 2 and "there is no run to resume" in other.stderr
    # The second trainer had not begun: it begins now.
    assert not (tmp_path / "run-momentum.safetensors").exists()
    resumed = results(*pair, "--resume")
    assert without_times(resumed) == without_times(results(*pair[:-2]))


def test_a_folder_holds_the_files_of_one_run(tmp_path) -> None:
    results(*SMALL, "--save", tmp_path)
    (tmp_path / "notes.txt").write_text("mine")
    results(*CLASSES, "--save", tmp_path)
    names = set(os.listdir(tmp_path))
    assert {"limit-9.safetensors", "notes.txt"} <= names
    assert not names & {"limit.safetensors", "network.safetensors", "trajectory.parquet"}
    index = json.loads((tmp_path / "run.json").read_text())
    states = {name for name in names if name.startswith("run-")}
    assert set(index["files"]) == names - states - {"run.json", "notes.txt"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((*SMALL, "--n-train", "5000"), "must be at most 1797"),
        # What is refused last, by the network and by its trainer.
        ((*SMALL, "--init-scale", "0"), "`init_scale` must be positive"),
        (("--model", "gln", "--trainer", "dual", "--n-train", "40"), "linear in its weights"),
        (("--model", "orthosep", "--trainer", "dual", "--n-train", "40"), "linear in its weights"),
        (("--model", "relu", "--trainer", "dual", "--n-train", "40"), "linear in its weights"),
    ],
)
def test_bad_input_leaves_what_is_there(arguments, message, tmp_path) -> None:
    results(*SMALL, "--save", tmp_path)
    kept = content(tmp_path)
    assert message in refusal(*arguments, "--save", tmp_path)
    assert content(tmp_path) == kept


def test_names_of_other_folders_in_an_index_are_not_followed(tmp_path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    (tmp_path / "run").mkdir()
    index = {"model": "linear", "finished": True, "files": ["../mine.txt"]}
    (tmp_path / "run" / "run.json").write_text(json.dumps(index))
    results(*SMALL, "--save", tmp_path / "run")
    assert (tmp_path / "mine.txt").exists()


def test_two_runs_do_not_write_into_one_folder(tmp_path) -> None:
    with FileLock(tmp_path / ".lock"):
        assert "another run is writing into" in refusal(*SMALL, "--save", tmp_path)
    results(*SMALL, "--save", tmp_path)
    assert ".lock" not in os.listdir(tmp_path)


@pytest.mark.parametrize("text", ["not JSON", "[1]"])
def test_an_index_that_cannot_be_read_is_told_or_taken_for_none(text, tmp_path) -> None:
    (tmp_path / "run.json").write_text(text)
    code = run(*SMALL, "--save", tmp_path, "--quiet").exit_code
    assert code in ((2,) if text == "not JSON" else DONE)


def test_a_disk_that_fills_up_leaves_the_limit_reported(monkeypatch, tmp_path) -> None:
    def full(*arguments: object) -> None:
        raise OSError(28, "No space left on device", str(tmp_path / "run.safetensors"))

    monkeypatch.setattr(home(RunFile), "write_saved", full)
    result = run(*SMALL, "--save", tmp_path, "--json")
    assert result.exit_code == 2
    assert "No space left on device" in result.stderr and "run.safetensors" in result.stderr
    record = json.loads(result.stdout)
    assert record["limit"]["status"] == "SOLVED" and "network" not in record


@pytest.mark.parametrize(("stage", "done"), [("training", ()), ("comparing", ("network",))])
def test_an_interrupt_between_two_stages_reports_what_is_done(
    stage, done, monkeypatch, tmp_path
) -> None:
    cut(monkeypatch, (*SMALL, "--save", tmp_path), stage, count=0)
    record = json.loads((tmp_path / "results.json").read_text())
    assert record["limit"]["status"] == "SOLVED" and np.isfinite(record["limit"]["objective"])
    assert [key for key in ("network", "comparison") if key in record] == list(done)
