"""The folder of a run: one run, one writer, nothing lost."""

from __future__ import annotations

import json
import os
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from filelock import FileLock

import implicit_bias as ib
from implicit_bias.training import RunFile
from tests.commands import DONE, cut, full_disk, home, results, run, without_times
from tests.long import each_pairwise

SMALL = ("--model", "linear", "--trainer", "constant", "--n-train", "40", "--steps", "60",
         "--checkpoints", "8")  # fmt: skip
CLASSES = (*SMALL, "--classes", "all", "--n-train", "100")


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def refusal(*arguments: object) -> str:
    result = run(*arguments)
    assert result.exit_code == 2 and "solving" not in result.stderr
    return result.stderr


def refusal_of_the_run(*arguments: object) -> str:
    """The message of a run that is refused once its network is there."""
    result = run(*arguments)
    assert result.exit_code == 2
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


def test_a_folder_holds_the_files_of_one_run(tmp_path, pages) -> None:
    results(*SMALL, "--save", tmp_path)
    (tmp_path / "notes.txt").write_text("mine")
    results(*CLASSES, "--save", tmp_path)
    names = set(os.listdir(tmp_path))
    assert {"limit-9.safetensors", "notes.txt"} <= names
    assert not names & {"limit.safetensors", "network.safetensors", "trajectory.parquet"}
    index = json.loads((tmp_path / "run.json").read_text())
    states = {name for name in names if name.startswith("run-")}
    assert set(index["files"]) == names - states - {"run.json", "notes.txt"}


def test_a_folder_holds_what_a_person_reads_of_its_run(tmp_path, pages) -> None:
    results(*SMALL, "--save", tmp_path)
    before = (tmp_path / "page.html").read_text()
    results(*SMALL, "--seed", "5", "--save", tmp_path)
    found = ib.load(tmp_path)
    assert (tmp_path / "screen.txt").read_text() == f"{found}\n"
    page = (tmp_path / "page.html").read_text()
    assert found.verdict.sentence in page and "seed=5" in page != before
    assert 'src="data:image/png' in page


def test_a_run_of_another_model_is_not_written_over(tmp_path, pages) -> None:
    results(*SMALL, "--save", tmp_path)
    kept = content(tmp_path)
    other = ("--model", "frelu", "--n-train", "40", "--hidden-units", "3", "--steps", "20",
             "--save", tmp_path)  # fmt: skip
    for arguments in (other, (*other, "--overwrite", "--init-scale", "0")):
        refused = refusal(*arguments)
        assert content(tmp_path) == kept
    assert "`init_scale`" in refused
    refused = refusal(*other)
    assert "holds a run of the model linear" in refused and "by `--overwrite`" in refused
    results(*other, "--overwrite")
    assert ib.load(tmp_path).heading.model == "frelu"
    names = set(json.loads((tmp_path / "run.json").read_text())["files"])
    states = {name for name in os.listdir(tmp_path) if name.startswith("run-")}
    assert names | states | {"run.json"} == set(os.listdir(tmp_path)) and len(states) == 2


FILES = ["limit.safetensors", "results.json", "page.html", "mine.parquet"]


@pytest.mark.parametrize(
    ("name", "beside"), each_pairwise([*product(FILES, ["nothing", "a run"])], times=1)
)
def test_files_of_the_user_are_not_written_over(name, beside, tmp_path, pages) -> None:
    if beside == "a run":
        results(*SMALL, "--save", tmp_path)
        index = json.loads((tmp_path / "run.json").read_text())
        index["files"] = [one for one in index["files"] if one != name]
        (tmp_path / "run.json").write_text(json.dumps(index))
    (tmp_path / name).write_bytes(b"mine")
    kept = content(tmp_path)
    refused = refusal(*SMALL, "--save", tmp_path)
    assert f"may replace ({name})" in refused and "`--overwrite`" in refused
    assert content(tmp_path) == kept
    results(*SMALL, "--save", tmp_path, "--overwrite")
    # What the run has no file of that name for stays even then.
    assert ((tmp_path / name).read_bytes() == b"mine") == (name == "mine.parquet")


def test_a_file_of_the_user_is_not_deleted_for_being_named_like_a_run(tmp_path) -> None:
    results(*SMALL, "--save", tmp_path)
    (tmp_path / "best-run.safetensors").write_bytes(b"mine")
    results(*SMALL, "--save", tmp_path, "--overwrite")
    assert (tmp_path / "best-run.safetensors").read_bytes() == b"mine"


@pytest.mark.parametrize("name", ["limit.safetensors", "run.json", "run.safetensors"])
@pytest.mark.parametrize("how", [(), ("--overwrite",), ("--resume",)])
def test_a_link_in_the_folder_is_refused_before_any_work(name, how, tmp_path) -> None:
    (tmp_path / "victim").write_bytes(b"mine")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / name).symlink_to(tmp_path / "victim")
    assert "it is no plain file" in refusal(*SMALL, "--save", tmp_path / "run", *how)
    assert (tmp_path / "victim").read_bytes() == b"mine"


def test_an_unfinished_run_is_begun_anew_where_that_is_asked_for(monkeypatch, tmp_path) -> None:
    there = (*SMALL, "--save", tmp_path)
    cut(monkeypatch, there, "training", at=0.5)
    assert "begin anew over it by `--overwrite`" in refusal(*there)
    assert without_times(results(*there, "--overwrite")) == without_times(results(*SMALL))


@pytest.mark.parametrize("damaged", [b"", b"x" * 49, b"[1]", None])
def test_a_damaged_index_strands_no_run(damaged, monkeypatch, tmp_path) -> None:
    there = (*SMALL, "--save", tmp_path)
    cut(monkeypatch, there, "training", at=0.5)
    (tmp_path / "run.json").unlink()
    if damaged is not None:
        (tmp_path / "run.json").write_bytes(damaged)
    refused = refusal(*there)
    assert "run.json" in refused and "go on with it by `--resume`" in refused
    # Of another model the run itself is not.
    assert "is of other data" in refusal_of_the_run("--model", "gln", *there[2:], "--resume")
    assert without_times(results(*there, "--resume")) == without_times(results(*SMALL))
    assert json.loads((tmp_path / "run.json").read_text())["finished"] is True


def test_a_second_writer_is_told_of_the_first_and_not_of_its_folder(monkeypatch, tmp_path) -> None:
    there = (*SMALL, "--save", tmp_path)
    cut(monkeypatch, there, "training", at=0.5)
    with FileLock(tmp_path / ".lock"):
        for how in ((), ("--resume",), ("--overwrite",)):
            refused = refusal(*there, *how)
            assert "another run is writing into" in refused and "overwrite" not in refused
    # Also while the first has not kept anything yet.
    (tmp_path / "new").mkdir()
    with FileLock(tmp_path / "new" / ".lock"):
        said = refusal(*SMALL, "--save", tmp_path / "new", "--resume")
        assert "another run is writing into" in said


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--overwrite",), "`--overwrite` needs `--save DIR`"),
        (("--save", "x", "--overwrite", "--resume"), "give one of them"),
    ],
)
def test_flags_of_the_folder_that_make_no_sense_are_refused(words, message) -> None:
    assert message in refusal(*SMALL, *words)
    chosen = {"save": "x"} if "--save" in words else {}
    chosen |= {
        word.removeprefix("--"): True for word in words if word in ("--overwrite", "--resume")
    }
    with pytest.raises(ValueError, match=message.split(" DIR")[0].replace("--", "")):
        ib.run("linear", **chosen)


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
    assert message in refusal(*arguments, "--save", tmp_path, "--overwrite")
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


@pytest.mark.parametrize("text", ["not JSON", "[1]", "{}"])
def test_an_index_that_cannot_be_read_is_told(text, tmp_path) -> None:
    (tmp_path / "run.json").write_text(text)
    said = refusal(*SMALL, "--save", tmp_path)
    assert "run.json' cannot be read" in said and "`--overwrite`" in said
    results(*SMALL, "--save", tmp_path, "--overwrite")


@pytest.mark.parametrize("files", [5, None, [5, "../mine.txt", "mine.txt"]])
def test_an_index_with_other_things_than_files_deletes_nothing(files, tmp_path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    index = {"model": "linear", "finished": True, "files": files}
    (tmp_path / "run.json").write_text(json.dumps(index))
    results(*SMALL, "--save", tmp_path)
    assert (tmp_path / "mine.txt").read_text() == "mine"


def test_a_disk_that_is_full_at_checkpoints_leaves_the_network(monkeypatch, tmp_path) -> None:
    def full(*arguments: object) -> None:
        raise OSError(28, "No space left on device", str(tmp_path / "run.safetensors"))

    monkeypatch.setattr(home(RunFile), "write_saved", full)
    result = run(*SMALL, "--save", tmp_path, "--json")
    assert result.exit_code in DONE
    (said,) = [line for line in result.stderr.splitlines() if line.startswith("warning:")]
    assert "could not be saved at step 0" in said and "run.safetensors" in said
    assert without_times(json.loads(result.stdout)) == without_times(results(*SMALL))
    assert ib.load(tmp_path).trajectory.finished


def test_a_disk_that_is_full_from_the_start_leaves_the_results_printed(tmp_path) -> None:
    with full_disk(10):
        result = run(*SMALL, "--save", tmp_path, "--json")
    assert result.exit_code == 2 and "the results could not be written" in result.stderr
    assert "nothing may be kept of it" in result.stderr
    assert without_times(json.loads(result.stdout)) == without_times(results(*SMALL))


@pytest.mark.parametrize(("stage", "done"), [("training", ()), ("comparing", ("network",))])
def test_an_interrupt_between_two_stages_reports_what_is_done(
    stage, done, monkeypatch, tmp_path
) -> None:
    cut(monkeypatch, (*SMALL, "--save", tmp_path), stage, count=0)
    record = json.loads((tmp_path / "results.json").read_text())
    assert record["limit"]["status"] == "SOLVED" and np.isfinite(record["limit"]["objective"])
    assert [key for key in ("network", "comparison") if key in record] == list(done)
