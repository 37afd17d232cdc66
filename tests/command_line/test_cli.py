"""The command line through its entry point: exit codes, streams, files, and what options do."""

from __future__ import annotations

import errno
import json
import os
import shlex
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from safetensors.torch import load_file

import implicit_bias as ib
from implicit_bias import GLN, HyperplaneContexts, TrainingSettings, __version__, cli, train
from implicit_bias.limits import GLNLimit
from implicit_bias.models import MODELS
from implicit_bias.options import flag
from tests.commands import (
    dataset_of,
    entry_point,
    environment,
    home,
    interrupting,
    python,
    results,
    run,
    without_times,
    write_idx,
    write_mnist,
)
from tests.long import some_of

N_TRAIN, N_VAL = 60, 50
SMALL = (
    f"--model gln --n-train {N_TRAIN} --n-val {N_VAL} --trainer constant --steps 30 "
    "--learning-rate 0.5 --checkpoints 6"
).split()
# One linear predictor for 700 digits of ten kinds: not separable.
INSEPARABLE = [*SMALL, *["--hidden-units", "1", "--contexts", "1", "--n-train", "700"]]
TOO_TIGHT = ["--n-train", "500", "--tol", "1e-16"]
HEAVY = {"torch", "numpy", "scipy", "cvxpy", "sklearn", "pandas", "matplotlib", "safetensors"}


@pytest.fixture(scope="module")
def base() -> dict[str, Any]:
    return results(*SMALL)


def test_the_entry_point_ends_with_0_and_writes_one_json_object_to_stdout_alone() -> None:
    done = entry_point(*SMALL, "--json", code=0)
    record = json.loads(done.stdout, parse_constant=pytest.fail)
    assert done.stdout.count("\n") == 1
    assert set(record) >= {"model", "version", "options", "seeds", "data", "limit", "network"}
    assert record["limit"]["status"] == "SOLVED"
    for text in ("solving SVM-GLN", "training a GLN", "margin ratio"):
        assert text in done.stderr


def test_the_entry_point_ends_with_3_and_the_proof_of_inseparability(tmp_path) -> None:
    folder = tmp_path / "saved"
    done = entry_point(
        *INSEPARABLE, "--steps", "0", "--json", "--details", "--save", folder, code=3
    )
    limit = json.loads(done.stdout, parse_constant=pytest.fail)["limit"]
    assert limit["status"] == "NOT_SEPARABLE"
    assert limit["separation_bound"] <= limit["separation_rounding"]
    assert limit["objective"] is None
    assert "drop samples, or use a predictor that tells more of them apart" in done.stderr
    assert "the data are separable in these gates (certified): DOES NOT HOLD" in done.stderr
    # The multipliers themselves, against the data of that seed.
    record = json.loads((folder / "results.json").read_text())
    data, lam = dataset_of(record), GLNLimit.load(folder / "limit.safetensors").dual
    assert lam.min() >= 0
    assert lam.sum() == pytest.approx(1)
    block = (lam * data.y_train) @ data.X_train
    assert np.linalg.norm(block) < 1e-12 * np.linalg.norm(data.X_train, axis=1).max()


def test_the_entry_point_ends_with_4_and_the_bounds_that_hold() -> None:
    done = entry_point(*SMALL, *TOO_TIGHT, "--steps", "0", "--json", "--quiet", code=4)
    record = json.loads(done.stdout)
    assert record["limit"]["status"] == "INACCURATE"
    assert 1e-16 < record["limit"]["gap"] < 1e-6
    assert results(*SMALL, *TOO_TIGHT, code=4)["comparison"]["margin_ratio"] is not None
    assert done.stderr.startswith("INACCURATE: separable, but the certified gap is above")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "Missing option '--model'"),
        (["--model", "nonsense"], "Invalid value for '--model'"),
        (["--model", "gln", "--hidden-units", "0"], "Invalid value for '--hidden-units'"),
        (["--model", "gln", "--no-such"], "No such option"),
    ],
)
def test_the_entry_point_ends_with_2_for_wrong_usage(arguments, message) -> None:
    assert message in entry_point(*arguments, code=2).stderr


@pytest.mark.parametrize("arguments", [["--help"], ["compare", "--help"], ["--version"]])
def test_help_and_version_import_nothing_heavy(arguments) -> None:
    program = (
        "import sys; from implicit_bias.cli import main\n"
        f"try: main({arguments!r}, prog_name='implicit-bias')\n"
        f"except SystemExit as end: print('code', end.code, {HEAVY} & set(sys.modules))"
    )
    done = python("-c", program)
    assert done.stdout.splitlines()[-1] == "code 0 set()"
    assert done.stdout.startswith(("Usage: implicit-bias", f"implicit-bias, version {__version__}"))


def test_the_plain_command_is_compare_itself() -> None:
    program = "from implicit_bias.__main__ import compare_main; compare_main()"
    done = python("-c", program, "--help")
    assert done.stdout.startswith("Usage: compare [OPTIONS]")


def test_help_names_every_option_its_default_and_the_exit_codes() -> None:
    text = run("--help").stdout
    for name in {f.name for model in MODELS.values() for f in fields(model.options)}:
        assert flag(name) in text
    flat = " ".join(text.split())
    for part in (
        "[default: by model]",
        "--contexts dgn, gln, gln-l2, shallow-gln",
        "0 done",
        "130 interrupted",
    ):
        assert part in flat


def test_the_table_goes_to_stdout_and_progress_to_stderr() -> None:
    result = run(*SMALL)
    assert result.exit_code == 0
    assert "Theory: Lippl" in result.stdout
    assert "solving SVM-GLN" not in result.stdout
    assert "solving SVM-GLN on 60 samples (interior-point)" in result.stderr
    assert "training a GLN for 30 steps" in result.stderr


def test_quiet_says_nothing() -> None:
    result = run(*SMALL, "--quiet")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "")


def test_quiet_leaves_the_json_object_and_bad_news() -> None:
    result = run(*SMALL, "--quiet", "--json")
    assert json.loads(result.stdout)["model"] == "gln"
    assert result.stderr == ""
    assert run(*INSEPARABLE, "--quiet").stderr.startswith("NOT_SEPARABLE: not separable")


def test_the_printed_numbers_are_those_of_the_json_object(base) -> None:
    text = run(*SMALL, "--details").stdout
    limit, network, comparison = base["limit"], base["network"], base["comparison"]
    lines = {line[: line.find("  ")]: line for line in text.splitlines() if "  " in line.strip()}
    assert f"{limit['objective']:.8g}" in lines["norm per unit margin"]
    assert f"{limit['n_support']} of {N_TRAIN}" in lines["support vectors"]
    for row, key in (("training accuracy", "train_accuracy"), ("held-out accuracy", "val_acc")):
        full = "val_accuracy" if key == "val_acc" else key
        assert f"{limit[full]:.2%}" in lines[row]
        assert f"{network[full]:.2%}" in lines[row]
    assert f"{comparison['agreement']:.2%}" in lines["agreement on held-out labels (ideal 100%)"]
    assert f"{comparison['margin_ratio']:.4f}" in lines["margin ratio (ideal 1)"]


def spoil_labels(folder: Path) -> None:
    write_idx(folder / "t10k-labels-idx1-ubyte", np.zeros(3), zipped=True)


def cut_images(folder: Path) -> None:
    path = folder / "t10k-images-idx3-ubyte.gz"
    path.write_bytes(path.read_bytes()[:1000])


def wrong_magic(folder: Path) -> None:
    (folder / "t10k-labels-idx1-ubyte.gz").write_bytes(b"not an IDX file at all")


def no_labels(folder: Path) -> None:
    (folder / "t10k-labels-idx1-ubyte.gz").unlink()


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (spoil_labels, "130 images and 3 labels"),
        (cut_images, "is damaged: it cannot be unzipped"),
        (wrong_magic, "is damaged: it must begin with"),
        (no_labels, "without either"),
    ],
)
def test_damaged_idx_files_end_with_2(tmp_path, damage, message) -> None:
    damage(write_mnist(tmp_path))
    result = run(*SMALL, "--data", "mnist", "--data-dir", tmp_path)
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stdout == ""


# Small runs to which the tables below add what has no meaning.
BEGUN = {
    "gln": " ".join(SMALL),
    "relu": "--model relu --n-train 60 --n-val 200 --hidden-units 8 --trainer constant "
    "--steps 60,40 --learning-rate 0.05,0.01",
    "gdln": "--model gdln",
    "all": "--model gln --classes all --trainer constant --n-train 120 --hidden-units 3 --steps 40 "
    "--learning-rate 0.1",
}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("{gln} --data mnist", "needs `--data-dir DIR`"),
        ("{gln} --data mnist --data-dir /no/such/folder", "is not a folder"),
        ("{gln} --n-train 1800", "must be at most 1797"),
        ("{gln} --n-train 1790 --n-val 50", "must be at most 1797"),
        ("{gln} --n-train 1", "must hold both classes"),
        ("{gln} --contexts 3", "3 is no power of two: take 2 or 4"),
        ("{gln} --tol 0", "0 is not above 0"),
        ("{gln} --tol nan", "nan is no finite number"),
        ("{gln} --tol x", "Invalid value for '--tol'"),
        ("{gln} --solver simplex", "unknown solver 'simplex'"),
        ("{gln} --solver cvxpy:NOSUCH", "cvxpy has no solver 'NOSUCH'"),
        ("{gln} --solver cvxpy:OSQP", "use a conic solver"),
        ("{gln} --steps a,b", "'a,b' is not a list such as 1600,1600"),
        ("{gln} --steps 10,10", "2 phases of steps, but 1 learning rate"),
        ("{gln} --steps -1", "-1 is below 0"),
        ("{gln} --learning-rate nan", "nan is no finite number"),
        ("{gln} --learning-rate 0", "0.0 is not above 0"),
        ("{gln} --learning-rate ,", "is not a list such as 0.04,0.01"),
        ("{gln} --momentum 1", "`momentum` must lie in [0, 1)"),
        ("{gln} --batch-size -1", "Invalid value for '--batch-size'"),
        ("{gln} --trainer normalised --batch-size 9", "full batch"),
        ("{gln} --trainer annealed", "must be None (auto on the command line)"),
        ("{gln} --trainer annealed --momentum 0.5 --learning-rate auto", "a momentum of its own"),
        (
            "{gln} --learning-rate auto",
            "must be numbers for trainer 'constant'",
        ),
        ("{gln} --trainer dual --learning-rate auto", "network that is linear in its"),
        ("{gln} --trainer sideways", "Invalid value for '--trainer'"),
        ("{gln} --resume", "`--resume` needs `--save DIR`"),
        ("{gln} --init-scale 0", "`init_scale` must be positive"),
        ("{gln} --init nonsense", "Invalid value for '--init'"),
        ("{gln} --dtype float16", "Invalid value for '--dtype'"),
        ("{gln} --device nonsense", "torch cannot use device 'nonsense' here"),
        ("{gln} --device meta", "torch cannot use device 'meta' here"),
        ("{gln} --seed -1", "Invalid value for '--seed'"),
        ("{gln} --plot run.gif", "run.gif must end in .png, .svg or .pdf"),
        ("{gln} --plot no/such/run.png", "there is no folder 'no/such'"),
        ("--model orthosep --classes all", "is not for the model orthosep"),
        ("--model relu --classes all", "is not for the model relu"),
        ("--model gdln --classes all", "take one of convolution, deep-linear, "),
        ("{all} --data orthants", "needs data of several classes"),
        ("{all} --data mnist", "needs `--data-dir DIR`"),
        ("{all} --n-train 12", "the training part has no sample of class"),
        ("{all} --n-train 1797", "leaves no held-out samples"),
        ("{all} --solver simplex", "unknown solver 'simplex'"),
        ("{all} --classes three", "Invalid value for '--classes'"),
        ("{relu} --freeze-at 101", "lies beyond the 100 steps"),
        ("{relu} --freeze-at -1", "Invalid value for '--freeze-at'"),
        ("--model gln --freeze-at 5", "`--freeze-at 5` is not for the model gln"),
        ("{relu} --depth 1", "`--depth 1` leaves a ReLU network without a hidden layer"),
        ("{relu} --depth 0", "Invalid value for '--depth'"),
        ("{relu} --depth 3 --freeze-at 101", "lies beyond the 100 steps"),
        ("--model dgn --depth 1", "leaves a network without a gated layer"),
        ("--model dgn --hidden-units 300000", "`hidden_units` of 300000 would take"),
        ("--model dgn --contexts 4", "`--contexts` is for `--gating contexts`"),
        ("--model dgn --regime lazy --starts 2", "`--starts` is for `--regime rich`"),
        ("--model dgn --gating random --gate-rate 0", "must lie in (0, 1]"),
        ("--model dgn --regime lazy --output-scales 10,-1", "must be positive and finite"),
        ("{relu} --trainer dual --learning-rate auto --momentum 0 --steps 5", "linear in its"),
        ("{gdln} --length-scales 5", "must be two numbers"),
        ("{gdln} --length-scales 5,1,1", "must be two numbers"),
        ("{gdln} --length-scales five,1", "is not a list such as 5,1"),
        ("{gdln} --length-scales 5,0", "length scales must be positive"),
        ("{gdln} --length-scales 5,nan", "nan is no finite number"),
        ("{gdln} --length-scales 5,2.5 --data pulse", "must be whole numbers"),
        ("{gdln} --length-scales 5,41 --data pulse", "must lie in 1 .. 40"),
        ("{gdln} --resume --save {folder}", "there is no run to resume"),
        ("{gdln} --trainer annealed", "is not for the model gdln"),
        ("{gdln} --steps 30,50 --learning-rate 2", "2 phases of steps, but 1 learning rate"),
        ("{gdln} --init-scale 0", "zero opens every gate"),
        # Data of another kind.
        ("--model gln --data ring", "'ring' is not one of"),
        ("--model gln --data pulse", "'pulse' is not one of"),
        ("--model gdln --data digits", "'digits' is not one of 'ring', 'pulse'"),
        ("--model gln --n-train 1797", "held-out"),
    ],
)
def test_what_has_no_meaning_ends_with_2_and_one_message_before_any_work(
    arguments, message, tmp_path
) -> None:
    result = run(*arguments.format(**BEGUN, folder=tmp_path).split())
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr
    assert "training a" not in result.stderr


@pytest.mark.parametrize(
    ("option", "path", "message"),
    [
        ("--save", "file", "is a file: name a folder"),
        ("--save", "file/below", "is a file, not a folder"),
        ("--plot", "file/x.png", "is a file, not a folder"),
        ("--plot", "folder.png", "it is a folder, name a file"),
        ("--report", "r.txt", "must end in .html or .htm"),
        ("--report", "no/such/r.html", "there is no folder"),
        ("--report", "folder.html", "it is a folder, name a file"),
    ],
)
def test_paths_that_cannot_be_written_end_with_2_before_any_work(
    tmp_path, option, path, message
) -> None:
    (tmp_path / "file").touch()
    for name in ("folder.png", "folder.html"):
        (tmp_path / name).mkdir()
    result = run(*SMALL, option, tmp_path / path)
    assert result.exit_code == 2
    assert message in result.stderr
    assert "solving" not in result.stderr


def test_results_are_shown_even_if_they_cannot_be_saved_in_the_end(tmp_path, monkeypatch) -> None:
    def full(*anything, **further):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(ib.Report, "save", full)
    result = run(*SMALL, "--json", "--quiet", "--save", tmp_path)
    assert result.exit_code == 2
    assert "the results could not be written" in result.stderr
    assert json.loads(result.stdout)["limit"]["status"] == "SOLVED"


def test_memory_that_does_not_suffice_ends_with_2(monkeypatch) -> None:
    def too_large(*run):
        raise MemoryError("Unable to allocate 48.4 GiB")

    monkeypatch.setattr(home(ib.run), "resolve_name", lambda path: too_large)
    result = run(*SMALL, "--quiet")
    assert result.exit_code == 2
    assert result.stderr == (
        "Error: out of memory: Unable to allocate 48.4 GiB: take a smaller network, or fewer "
        "samples\n"
    )


def test_training_that_diverges_ends_with_2_and_the_limit_is_reported(tmp_path) -> None:
    arguments = (*SMALL, "--learning-rate", "1e6", "--save", tmp_path, "--plot", tmp_path / "x.png")
    result = run(*arguments, "--json")
    assert result.exit_code == 2
    assert "Error: training diverged" in result.stderr
    assert "smaller learning rate" in result.stderr
    assert "nothing was trained, so there is no picture" in result.stderr
    record = json.loads(result.stdout)
    assert record["limit"]["status"] == "SOLVED"
    assert "network" not in record
    assert GLNLimit.load(tmp_path / "limit.safetensors").objective == record["limit"]["objective"]
    assert not (tmp_path / "x.png").exists()


def test_training_that_is_interrupted_ends_with_130_and_a_table(monkeypatch, tmp_path) -> None:
    monkeypatch.setattr(cli, "watched", interrupting("training", at=0.5))
    result = run(*SMALL, "--details", "--save", tmp_path, "--plot", tmp_path / "x.png")
    assert result.exit_code == 130
    line = next(line for line in result.stdout.splitlines() if line.startswith("iterations | "))
    assert line.split()[-1] == "15"
    assert "interrupted" in result.stdout
    assert json.loads((tmp_path / "results.json").read_text())["network"]["steps"] == 15
    assert (tmp_path / "x.png").stat().st_size > 0


def test_an_interrupt_before_training_ends_with_130_and_says_so(monkeypatch) -> None:
    monkeypatch.setattr(cli, "watched", interrupting("solving", count=0))
    result = run(*SMALL)
    assert result.exit_code == 130
    assert result.stdout == ""
    assert "interrupted before there was anything to report" in result.stderr


def test_what_was_saved_loads_and_gives_the_reported_results(tmp_path, pages) -> None:
    record = results(*SMALL, "--contexts", "4", "--seed", "3", "--save", tmp_path)
    assert sorted(os.listdir(tmp_path)) == [
        "gating.safetensors", "limit.safetensors", "network.safetensors", "page.html",
        "report.safetensors", "results.json", "run.json", "run.safetensors", "screen.txt",
        "trajectory.parquet",
    ]  # fmt: skip
    assert json.loads((tmp_path / "results.json").read_text()) == record
    assert record["version"] == __version__
    # The index has builds whose metadata do not name the build, `torch.__version__` does.
    assert record["packages"]["torch"].split("+")[0] == torch.__version__.split("+")[0]
    data = dataset_of(record)
    assert data.digest() == record["data"]["sha256"]
    contexts = HyperplaneContexts.load(tmp_path / "gating.safetensors").transform(data.X_val)

    limit = GLNLimit.load(tmp_path / "limit.safetensors")
    assert limit.objective == record["limit"]["objective"]
    predicted = limit.predictor(data.X_val, contexts)
    assert np.mean(predicted * data.y_val > 0) == record["limit"]["val_accuracy"]

    weights = load_file(tmp_path / "network.safetensors")
    network = GLN(data.X_train.shape[1], 10, 4)
    network.load_state_dict(weights)
    with torch.no_grad():
        trained = network(torch.tensor(data.X_val), torch.tensor(contexts)).numpy()
    assert np.mean(trained * data.y_val > 0) == record["network"]["val_accuracy"]
    lengths = np.linalg.norm(predicted) * np.linalg.norm(trained)
    cosine = predicted @ trained / lengths
    assert cosine == pytest.approx(record["comparison"]["score_cosine"], rel=1e-12)

    trajectory = pd.read_parquet(tmp_path / "trajectory.parquet")
    assert trajectory["step"].tolist()[:: len(trajectory) - 1] == [0, 30]
    last = trajectory.iloc[-1]
    for key in ("log_loss", "smallest_margin", "normalised_margin"):
        assert last[key] == pytest.approx(record["network"][key], rel=1e-12)


def test_saved_files_can_be_read_by_those_who_may_read_new_files(tmp_path) -> None:
    results(*SMALL, "--save", tmp_path)
    mode = (tmp_path / "results.json").stat().st_mode
    assert (tmp_path / "limit.safetensors").stat().st_mode == mode


def test_one_seed_gives_one_result(base) -> None:
    assert without_times(results(*SMALL)) == without_times(base)


def test_another_seed_gives_other_data_contexts_and_weights(tmp_path) -> None:
    saved = []
    for seed in ("1", "2"):
        results(*SMALL, "--seed", seed, "--save", tmp_path / seed)
        saved.append(tmp_path / seed)
    records = [json.loads((folder / "results.json").read_text()) for folder in saved]
    assert records[0]["data"]["sha256"] != records[1]["data"]["sha256"]
    assert len({*records[0]["seeds"].values(), *records[1]["seeds"].values()}) == 8
    normals = [HyperplaneContexts.load(folder / "gating.safetensors").normals_ for folder in saved]
    assert not np.any(normals[0] == normals[1])
    # Weights after training stay near those they began with, which differ.
    weights = [load_file(folder / "network.safetensors")["w1"].flatten() for folder in saved]
    assert abs(torch.nn.functional.cosine_similarity(*weights, dim=0)) < 0.5


@pytest.mark.parametrize(
    ("ending", "magic"),
    some_of([("PNG", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF-")], one_in=3),
)
def test_the_picture_is_written_in_the_format_of_its_name_without_a_warning(
    tmp_path, ending, magic, recwarn
) -> None:
    path = tmp_path / f"run.{ending}"
    assert run(*SMALL, "--quiet", "--plot", path).exit_code == 0
    assert path.read_bytes().startswith(magic)
    assert path.stat().st_size > 5000
    assert not recwarn.list


def test_data_that_are_not_separable_have_no_picture_and_say_so(tmp_path) -> None:
    result = run(*INSEPARABLE, "--quiet", "--plot", tmp_path / "x.png")
    assert result.exit_code == 3
    assert "nothing was trained, so there is no picture" in result.stderr
    assert not (tmp_path / "x.png").exists()


@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.parametrize("pair", ["train", "t10k"])
def test_idx_files_are_read_zipped_or_not_whichever_pair_is_there(tmp_path, zipped, pair) -> None:
    write_mnist(tmp_path, pair=pair, zipped=zipped)
    given = ("--data", "mnist", "--data-dir", tmp_path, "--hidden-units", "2", "--steps", "0")
    record = results(*SMALL, *given)
    assert record["data"]["n_inputs"] == 785
    assert (record["data"]["n_train"], record["data"]["n_val"]) == (N_TRAIN, N_VAL)
    assert f"({pair} pair), 28x28 images" in record["data"]["description"]
    assert record["data"]["sha256"] == dataset_of(record).digest()
    assert record["options"]["data_dir"] == str(tmp_path)


def expected_network(record: dict[str, Any], **changes: Any) -> float:
    """The logarithm of the loss of a run, put together from the library's parts."""
    given = {
        "units": 10, "contexts": 2, "cutoffs": "median", "network": {},
        "settings": {"schedule": ((30, 0.5),)}, "dtype": torch.float64,
    } | changes  # fmt: skip
    seeds, data = record["seeds"], dataset_of(record)
    gating = HyperplaneContexts(
        given["units"], given["contexts"], cutoffs=given["cutoffs"], random_state=seeds["gating"]
    ).fit(data.X_train)
    network = GLN(
        data.X_train.shape[1], given["units"], given["contexts"], dtype=given["dtype"],
        random_state=seeds["weights"], **given["network"],
    )  # fmt: skip
    settings = TrainingSettings(
        **({"schedule": ((30, 0.5),)} | given["settings"]), random_state=seeds["batches"]
    )
    contexts = gating.transform(data.X_train)
    trajectory = train(network, data.X_train, data.y_train, contexts, settings=settings)
    return float(trajectory.log_loss[-1])


@pytest.mark.parametrize(
    ("arguments", "changes"),
    [
        ("--momentum 0.9", {"settings": {"momentum": 0.9}}),
        ("--batch-size 7", {"settings": {"batch_size": 7}}),
        (
            "--batch-size 0 --trainer normalised",
            {"settings": {"batch_size": 0, "trainer": "normalised"}},
        ),
        (
            "--trainer momentum --learning-rate auto --batch-size 0",
            {"settings": {"batch_size": 0, "trainer": "momentum", "schedule": ((30, None),)}},
        ),
        (
            "--loss exponential --learning-rate 0.1",
            {"settings": {"loss": "exponential", "schedule": ((30, 0.1),)}},
        ),
        (
            "--steps 10,20 --learning-rate 0.2,0.05",
            {"settings": {"schedule": ((10, 0.2), (20, 0.05))}},
        ),
        ("--init kaiming", {"network": {"init": "kaiming"}}),
        ("--init balanced --init-scale 0.5", {"network": {"init": "balanced", "init_scale": 0.5}}),
        ("--dtype float32 --device cpu", {"dtype": torch.float32}),
        ("--hidden-units 3", {"units": 3}),
        ("--contexts 8", {"contexts": 8}),
        ("--cutoffs random", {"cutoffs": "random"}),
        ("--seed 5", {}),
    ],
)
def test_an_option_does_what_the_library_does(base, arguments, changes) -> None:
    record = results(*SMALL, *arguments.split())
    log_loss = record["network"]["log_loss"]
    assert log_loss == pytest.approx(expected_network(record, **changes), rel=1e-10)
    assert log_loss != pytest.approx(base["network"]["log_loss"], rel=1e-10)


def test_a_batch_size_of_zero_is_the_full_batch() -> None:
    record = results(*SMALL, "--n-train", "200", "--batch-size", "0")
    expected = expected_network(record, settings={"batch_size": 0})
    assert record["network"]["log_loss"] == pytest.approx(expected, rel=1e-10)
    other = results(*SMALL, "--n-train", "200")
    assert other["network"]["log_loss"] != record["network"]["log_loss"]


def test_solver_and_tolerance_reach_the_solver(base) -> None:
    record = results(*SMALL, "--solver", "cvxpy:clarabel", "--tol", "1e-6")["limit"]
    assert record["solver"] == "cvxpy:CLARABEL"
    assert record["tol"] == 1e-6
    assert record["gap"] <= 1e-6
    assert record["objective"] == pytest.approx(base["limit"]["objective"], rel=2e-6)
    assert base["limit"]["solver"] == "interior-point"
    loose = results(*SMALL, "--tol", "0.01")["limit"]
    assert loose["iterations"] < base["limit"]["iterations"]


def test_training_on_all_the_data_says_that_nothing_is_held_out() -> None:
    result = run("--model", "gln", "--n-train", "1797")
    assert result.exit_code == 2
    assert "held-out" in result.stderr


@pytest.mark.parametrize(
    ("streams", "code", "said"),
    [
        ("2>&-", 0, "Theory: "),  # closed: what would have gone there is lost
        (">/dev/full", 2, "the results could not be printed"),
    ],
)
def test_streams_that_cannot_be_written_to_leave_the_others(streams, code, said, tmp_path) -> None:
    command = shlex.join(
        [sys.executable, "-m", "implicit_bias", "compare", *SMALL, "--steps", "0", "--save",
         str(tmp_path)]
    )  # fmt: skip
    done = subprocess.run(
        f"{command} {streams}", shell=True, capture_output=True, text=True, env=environment()
    )
    assert done.returncode == code
    assert said in done.stdout + done.stderr and "Traceback" not in done.stderr
    assert (tmp_path / "results.json").exists()


def test_a_reader_that_has_read_enough_is_told_nothing() -> None:
    command = shlex.join([sys.executable, "-m", "implicit_bias", "which"])
    done = subprocess.run(
        f"{command} | head -1", shell=True, capture_output=True, text=True, env=environment()
    )
    assert len(done.stdout.splitlines()) == 1 and done.stderr == ""
