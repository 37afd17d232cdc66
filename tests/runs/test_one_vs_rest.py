"""`compare --classes all`: every class against the rest."""

from __future__ import annotations

import json
import os
from pathlib import Path

import cvxpy as cp
import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from sklearn.metrics import confusion_matrix

from implicit_bias import GLN, HyperplaneContexts, cli
from implicit_bias.data import load_idx_classes
from implicit_bias.limits import GLNLimit, LinearLimit
from implicit_bias.models import MODELS
from implicit_bias.options import ClassOptions
from tests.commands import DONE, classes_of, interrupting, results, run, without_times, write_idx
from tests.long import some_of

EVERY_CLASS = [name for name, model in MODELS.items() if issubclass(model.options, ClassOptions)]
ALL = ("--classes", "all", "--checkpoints", "5")
SMALL = ("--model", "gln", *ALL, "--trainer", "constant", "--n-train", "120",
         "--hidden-units", "3", "--steps", "40", "--learning-rate", "0.1")  # fmt: skip
# One linear predictor for 1000 digits: one of the ten problems is not separable.
INSEPARABLE = (*SMALL, "--hidden-units", "1", "--contexts", "1", "--n-train", "1000")


def test_every_class_has_the_optimum_and_labels_of_its_own_quadratic_program(tmp_path) -> None:
    record = results("--model", "linear", *ALL, "--steps", "50", "--save", tmp_path)
    data = classes_of(record)
    assert [entry["class"] for entry in record["one_vs_rest"]] == list(range(10))
    columns = []
    for k, entry in enumerate(record["one_vs_rest"]):
        y = np.where(data.labels_train == k, 1.0, -1.0)
        b = cp.Variable(data.X_train.shape[1])
        problem = cp.Problem(cp.Minimize(cp.norm(b)), [cp.multiply(y, data.X_train @ b) >= 1])
        optimum = problem.solve(solver=cp.CLARABEL)
        assert entry["limit"]["status"] == "SOLVED" and entry["limit"]["gap"] <= 1e-8
        assert entry["limit"]["objective"] == pytest.approx(optimum, rel=1e-6)
        saved = LinearLimit.load(tmp_path / f"limit-{k}.safetensors")
        np.testing.assert_allclose(saved.zeta, b.value, atol=1e-4 * np.linalg.norm(b.value))
        columns.append(data.X_val @ b.value)
    labels = np.argmax(np.stack(columns, axis=1), axis=1)
    expected = np.mean(labels == data.labels_val)
    assert record["multiclass"]["accuracy_limit"] == pytest.approx(expected, abs=2 / len(labels))
    assert record["worst_gap"] == max(entry["limit"]["gap"] for entry in record["one_vs_rest"])


@pytest.mark.parametrize("model", some_of(EVERY_CLASS, one_in=6))
def test_every_family_compares_all_classes(model, tmp_path) -> None:
    result = run("--model", model, *ALL, "--n-train", "60", "--steps", "30",
                 "--plot", tmp_path / "x.png", "--json", "--details")  # fmt: skip
    assert result.exit_code in DONE, result.stderr
    record = json.loads(result.stdout)
    assert record["theorem"] == MODELS[model].theorem
    for entry in record["one_vs_rest"]:
        assert entry["comparison"]["margin_ratio"] <= 1
        assert entry["network"]["steps"] == 30
    rows = [line.split() for line in result.stderr.splitlines() if line[:1].isdigit()]
    assert [row[:2] for row in rows if "SOLVED" in row] == [[str(k), "SOLVED"] for k in range(10)]
    assert "label by the largest score" in result.stderr
    assert (tmp_path / "x.png").stat().st_size > 10_000


def test_saved_limits_networks_and_gates_give_the_reported_agreement(tmp_path) -> None:
    record = results(*SMALL, "--save", tmp_path)
    data = classes_of(record)
    contexts = HyperplaneContexts.load(tmp_path / "gating.safetensors").transform(data.X_val)
    predicted, trained = [], []
    for k, entry in enumerate(record["one_vs_rest"]):
        limit = GLNLimit.load(tmp_path / f"limit-{k}.safetensors")
        predicted.append(limit.predictor(data.X_val, contexts))
        network = GLN(data.X_train.shape[1], 3, 2)
        network.load_state_dict(load_file(tmp_path / f"network-{k}.safetensors"))
        with torch.no_grad():
            trained.append(network(torch.tensor(data.X_val), torch.tensor(contexts)).numpy())
        y = np.where(data.labels_val == k, 1, -1)
        assert entry["comparison"]["error_network"] == np.mean(y * trained[-1] <= 0)
        assert entry["comparison"]["error_limit"] == np.mean(y * predicted[-1] <= 0)
    labels = [np.argmax(np.stack(scores, axis=1), axis=1) for scores in (predicted, trained)]
    found = record["multiclass"]
    assert found["agreement"] == np.mean(labels[0] == labels[1])
    assert found["confusion"] == confusion_matrix(*labels, labels=range(10)).tolist()
    assert found["accuracy_network"] == np.mean(labels[1] == data.labels_val)
    # Every network starts from weights of its own.
    weights = [load_file(tmp_path / f"network-{k}.safetensors")["w1"].flatten() for k in (0, 1)]
    assert abs(torch.nn.functional.cosine_similarity(*weights, dim=0)) < 0.5
    assert set(os.listdir(tmp_path)) >= {"results.json", "trajectory-9.parquet"}
    assert json.loads((tmp_path / "results.json").read_text()) == record


def test_classes_that_are_not_separable_end_with_3_and_are_named_with_their_proof(tmp_path) -> None:
    result = run(
        *INSEPARABLE, "--json", "--details", "--save", tmp_path, "--plot", tmp_path / "x.png"
    )
    assert result.exit_code == 3
    record = json.loads(result.stdout)
    statuses = {entry["class"]: entry["limit"]["status"] for entry in record["one_vs_rest"]}
    failed = [k for k, status in statuses.items() if status == "NOT_SEPARABLE"]
    assert 0 < len(failed) < 10 and set(statuses.values()) == {"NOT_SEPARABLE", "SOLVED"}
    names = ", ".join(map(str, failed))
    assert f"NOT_SEPARABLE ({', '.join(f'class {k}' for k in failed)}): not" in result.stderr
    assert f"class {names} can be separated from the rest in these gates: DOES NOT HOLD" in (
        result.stderr
    )
    assert all("network" not in entry for entry in record["one_vs_rest"])
    assert record["multiclass"] is None and not (tmp_path / "x.png").exists()
    data = classes_of(record)
    for k in failed:
        lam = GLNLimit.load(tmp_path / f"limit-{k}.safetensors").dual
        assert lam.min() >= 0 and lam.sum() == pytest.approx(1)
        block = (lam * np.where(data.labels_train == k, 1, -1)) @ data.X_train
        assert np.linalg.norm(block) < 1e-12 * np.linalg.norm(data.X_train, axis=1).max()


def test_classes_short_of_the_tolerance_end_with_4_and_are_named() -> None:
    result = run(*SMALL, "--tol", "1e-16", "--json")
    assert result.exit_code == 4
    record = json.loads(result.stdout)
    short = [e["class"] for e in record["one_vs_rest"] if e["limit"]["status"] == "INACCURATE"]
    assert f"INACCURATE ({', '.join(f'class {k}' for k in short)}): separable" in result.stderr
    assert record["multiclass"] is not None


def test_training_that_diverges_names_the_class_and_keeps_the_limits() -> None:
    result = run(*SMALL, "--learning-rate", "1e6", "--json")
    assert result.exit_code == 2
    assert "Error: class 0: training diverged" in result.stderr
    record = json.loads(result.stdout)
    assert {entry["limit"]["status"] for entry in record["one_vs_rest"]} == {"SOLVED"}
    assert record["multiclass"] is None


@pytest.mark.parametrize(
    ("stage", "solved", "trained"),
    [("training a GLN for class 3", list(range(10)), [0, 1, 2]), ("solving", [0, 1, 2, 3], [])],
)
def test_an_interrupt_keeps_the_classes_that_are_done(
    stage, solved, trained, monkeypatch, tmp_path
) -> None:
    monkeypatch.setattr(cli, "watched", interrupting(stage, count=4))
    picture = tmp_path / "x.png"
    result = run(*SMALL, "--json", "--save", tmp_path, "--plot", picture)
    assert result.exit_code == 130
    record = json.loads(result.stdout)
    assert [entry["class"] for entry in record["one_vs_rest"]] == solved
    assert [e["class"] for e in record["one_vs_rest"] if "network" in e] == trained
    assert record["multiclass"] is None
    assert picture.exists() == bool(trained)
    files = os.listdir(tmp_path)
    assert sum(name.startswith("network-") for name in files) == len(trained)
    assert sum(name.startswith("limit-") for name in files) == len(solved)


@pytest.mark.long
def test_a_run_that_is_resumed_ends_like_one_that_never_stopped(monkeypatch, tmp_path) -> None:
    whole = results(*SMALL)
    assert run(*SMALL, "--save", tmp_path, "--resume").exit_code == 2  # nothing to go on with
    with monkeypatch.context() as patched:
        patched.setattr(cli, "watched", interrupting("training a GLN for class 3", count=4))
        results(*SMALL, "--save", tmp_path, code=130)
    resumed = results(*SMALL, "--save", tmp_path, "--resume")
    assert without_times(resumed) == without_times(whole)
    # What had been done was not done again: its clock stands still.
    first = resumed["one_vs_rest"][0]["network"]["seconds"]
    assert (
        first
        == results(*SMALL, "--save", tmp_path, "--resume")["one_vs_rest"][0]["network"]["seconds"]
    )


def test_idx_files_have_their_classes(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    images, labels = rng.integers(0, 256, size=(150, 6, 6)), np.arange(150) % 10
    for stem, array in (("images-idx3", images), ("labels-idx1", labels)):
        write_idx(tmp_path / f"t10k-{stem}-ubyte", array, zipped=True)
    record = results(*SMALL, "--data", "mnist", "--data-dir", tmp_path, "--n-train", "90")
    data = load_idx_classes(tmp_path, n_train=90, random_state=record["seeds"]["data"])
    assert data.digest() == record["data"]["sha256"]
    assert (len(record["one_vs_rest"]), record["data"]["n_inputs"]) == (10, 37)
    number = {
        tuple(row): k for row, k in zip(images.reshape(150, 36).tolist(), labels, strict=True)
    }
    pixels = np.rint((data.X_val[:, :-1] + 1) * 127.5).astype(int)
    assert [number[tuple(row)] for row in pixels.tolist()] == data.labels_val.tolist()
