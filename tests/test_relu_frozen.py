"""`compare --model relu`: the network that froze its gates on the way, beside its limit."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from click.testing import CliRunner, Result
from safetensors.torch import load_file

from implicit_bias import FReLU, FReLULimit, ReLU, ReLUGates, cli, load_digits, solve_frelu_svm
from implicit_bias.data.sample import Sample
from implicit_bias.models.relu.comparison import compare_frozen
from implicit_bias.models.relu.freezing import train_then_freeze
from implicit_bias.pipeline.options import Reporter
from implicit_bias.training.settings import TrainingSettings

SMALL = ("--model", "relu", "--n-train", "80", "--hidden-units", "8", "--steps", "60,40",
         "--learning-rate", "0.05,0.01")  # fmt: skip
SETTINGS = {"schedule": ((60, 0.05), (40, 0.01)), "momentum": 0.9}


def run(*arguments: object) -> Result:
    result = CliRunner().invoke(cli.compare, [str(argument) for argument in arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exc_info
    assert "Traceback" not in result.stderr
    return result


def results(*arguments: object, code: int = 0) -> dict[str, Any]:
    result = run(*arguments, "--json", "--quiet")
    assert result.exit_code == code, result.stderr
    record: dict[str, Any] = json.loads(result.stdout)
    return record


def data_of(record: dict[str, Any]) -> Any:
    sizes = {"n_train": record["data"]["n_train"], "n_val": record["data"]["n_val"]}
    return load_digits(**sizes, random_state=record["seeds"]["data"])


@pytest.mark.parametrize(("arguments", "step"), [((), 50), (("--freeze-at", "70"), 70)])
def test_the_frozen_network_is_the_librarys_and_its_limit_has_its_gates(
    arguments, step, tmp_path
) -> None:
    record = results(*SMALL, *arguments, "--save", tmp_path)
    frozen, data, seeds = record["frozen"], data_of(record), record["seeds"]
    assert (frozen["freeze_at"], frozen["network"]["steps_since"]) == (step, 100 - step)
    network = ReLU(data.X_train.shape[1], 8, init="kaiming", random_state=seeds["weights"])
    settings = TrainingSettings(**SETTINGS, random_state=seeds["batches"])
    expected = train_then_freeze(
        network, data.X_train, data.y_train, freeze_at=step, settings=settings
    )
    saved = load_file(tmp_path / "frozen-network.safetensors")
    torch.testing.assert_close(saved["w1"], expected.network.w1.detach())
    # The limit, by the library on gates computed here.
    gates = data.X_train @ network.w1.detach().numpy().T >= 0
    limit = FReLULimit.load(tmp_path / "frozen-limit.safetensors")
    alone = solve_frelu_svm(data.X_train, data.y_train, gates)
    assert limit.objective == pytest.approx(alone.objective, rel=1e-7)
    gating = ReLUGates.load(tmp_path / "frozen-gating.npz")
    np.testing.assert_array_equal(gating.transform(data.X_train), gates)
    # What stands in the row, from the saved files.
    held_out = gating.transform(data.X_val)
    predicted = limit.predictor(data.X_val, held_out)
    w1, w2 = saved["w1"].numpy(), saved["upper.0"].numpy()[0]
    trained = (np.maximum(held_out, 0) * (data.X_val @ w1.T)) @ w2
    row = frozen["comparison"]
    assert row["error_network"] == np.mean(trained * data.y_val <= 0)
    assert row["machine"]["error"] == np.mean(predicted * data.y_val <= 0)
    assert row["machine"]["agreement"] == np.mean(np.sign(predicted) == np.sign(trained))
    margins = data.y_train * ((gates * (data.X_train @ w1.T)) @ w2)
    norm = np.sum(np.abs(w2) * np.linalg.norm(w1, axis=1))
    ratio = margins.min() / norm * limit.dual_objective
    assert row["machine"]["margin_ratio"] == pytest.approx(ratio)
    trajectory = pd.read_parquet(tmp_path / "frozen-trajectory.parquet")
    assert trajectory["step"].iloc[-1] == 100 - step


def test_the_relu_network_beside_it_is_not_disturbed() -> None:
    early, late = results(*SMALL, "--freeze-at", "10"), results(*SMALL, "--freeze-at", "90")
    for key in ("network", "comparison", "gate_changes"):
        a, b = (json.dumps(r[key]) for r in (early, late))
        if key != "network":
            assert a == b
        else:
            assert early[key]["log_loss"] == late[key]["log_loss"]
    changed = [record["frozen"]["gates_that_changed_later"] for record in (early, late)]
    assert changed[0] > changed[1] >= 0
    assert early["frozen"]["limit"]["objective"] != late["frozen"]["limit"]["objective"]


def test_frozen_at_the_start_or_at_the_end() -> None:
    start, end = results(*SMALL, "--freeze-at", "0"), results(*SMALL, "--freeze-at", "100")
    steps = [record["frozen"]["network"]["steps_since"] for record in (start, end)]
    assert steps == [100, 0]
    # Frozen at the end it is the ReLU network itself, and its limit is SVM-LC.
    assert end["frozen"]["gates_that_changed_later"] == 0
    assert end["frozen"]["limit"]["objective"] == pytest.approx(
        end["limits"]["lc"]["objective"], rel=1e-7
    )
    machine, learned = end["frozen"]["comparison"]["machine"], end["comparison"]["lc"]
    for key in ("margin_ratio", "error", "agreement", "score_cosine"):
        assert machine[key] == pytest.approx(learned[key], abs=1e-6)
    assert end["frozen"]["comparison"]["error_network"] == end["comparison"]["error_network"]


def test_the_table_has_a_column_for_it_with_its_own_network(tmp_path) -> None:
    result = run(*SMALL, "--plot", tmp_path / "x.png")
    assert result.exit_code == 0, result.stderr
    lines = result.stdout.splitlines()
    columns = next(line for line in lines if "SVM-RC" in line)
    assert columns.split() == ["SVM-RC", "SVM-LC", "SVM-HL", "gates-only", "SVM-FReLU"]
    beside = next(line for line in lines if line.startswith("beside the network"))
    assert beside.split()[3:] == ["ReLU", "ReLU", "ReLU", "ReLU", "frozen", "at", "50"]
    record = results(*SMALL)
    errors = next(line for line in lines if line.startswith("held-out error, network")).split()
    expected = [record["comparison"]["error_network"]] * 4
    expected.append(record["frozen"]["comparison"]["error_network"])
    assert errors[3:] == [f"{error:.2%}" for error in expected]
    assert "the data are separable in the gates of step 50 (certified): holds" in result.stdout
    assert (tmp_path / "x.png").stat().st_size > 10_000


def test_gates_in_which_the_data_are_not_separable_are_reported_with_3() -> None:
    arguments = ("--hidden-units", "1", "--n-train", "300", "--freeze-at", "5")
    result = run(*SMALL, *arguments, "--json")
    assert result.exit_code == 3
    record = json.loads(result.stdout)
    assert record["frozen"]["limit"]["status"] == "NOT_SEPARABLE"
    assert record["frozen"]["comparison"]["machine"]["agreement"] is None
    assert "SVM-FReLU on the gates of step 5" in result.stderr.splitlines()[-1]
    assert "in the gates of step 5 (certified): DOES NOT HOLD" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((*SMALL, "--freeze-at", "101"), "lies beyond the 100 steps"),
        ((*SMALL, "--freeze-at", "-1"), "Invalid value for '--freeze-at'"),
        (("--model", "gln", "--freeze-at", "5"), "is not for the model gln"),
    ],
)
def test_steps_that_are_not_there_end_with_2_before_any_work(arguments, message) -> None:
    result = run(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr and "training" not in result.stderr


@pytest.mark.parametrize("at", [0.2, 0.8, "solving SVM-FReLU"])
def test_an_interrupt_of_the_second_run_keeps_the_first(at, monkeypatch, tmp_path) -> None:
    @contextlib.contextmanager
    def progress(quiet: bool) -> Iterator[Reporter]:
        stages: list[str] = []
        share = 2.0 if isinstance(at, str) else at

        def advance(done: int, of: int) -> None:
            if stages[-1].startswith("training it again") and done >= of * share:
                raise KeyboardInterrupt

        def stage(text: str) -> None:
            stages.append(text)
            if isinstance(at, str) and text.startswith(at):
                raise KeyboardInterrupt

        yield Reporter(stage=stage, advance=advance)

    monkeypatch.setattr(cli, "_progress", progress)
    record = results(*SMALL, "--save", tmp_path, code=130)
    assert record["network"]["finished"] and record["comparison"]["lc"]["status"] == "SOLVED"
    if at != 0.8:  # before there were frozen gates and a limit there is nothing to compare
        assert record["frozen"] is None
        assert not (tmp_path / "frozen-limit.safetensors").exists()
    else:
        assert record["frozen"]["network"]["finished"] is False
        assert record["frozen"]["network"]["steps_since"] == 30


def test_a_network_at_the_limit_on_its_gates_has_margin_ratio_and_cosine_one() -> None:
    rng = np.random.default_rng(0)
    X, gates = rng.normal(size=(20, 6)), (rng.random((20, 5)) < 0.6).astype(float)
    gates[:, 0] = 1
    y = np.sign(X[:, 0])
    limit = solve_frelu_svm(X, y, gates).require()
    sample = Sample(X, y, gates)
    found = compare_frozen(limit, FReLU.from_zeta(3 * limit.zeta), sample, sample, freeze_at=7)
    assert found.machine.margin_ratio == pytest.approx(1, abs=1e-6)
    assert found.zeta_cosine == pytest.approx(1) and found.machine.agreement == 1
    assert found.kkt_cosine == pytest.approx(1, abs=1e-6) and found.kkt_residual < 1e-3
    assert found.to_dict()["freeze_at"] == 7
    spoiled = limit.zeta.copy()
    spoiled[0] *= -1
    worse = compare_frozen(limit, FReLU.from_zeta(spoiled), sample, sample, freeze_at=7)
    assert worse.machine.margin_ratio < 0.9 and worse.zeta_cosine < 0.9
