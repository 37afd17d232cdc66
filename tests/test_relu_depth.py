"""`compare --model relu --depth L`: ReLU networks of several hidden layers beside the machines."""

from __future__ import annotations

import json
from typing import Any

import cvxpy as cp
import numpy as np
import pandas as pd
import pytest
import torch
from click.testing import CliRunner, Result
from safetensors.torch import load_file

from implicit_bias import TrainingSettings, cli, load_digits, train
from implicit_bias.models.relu.network import DeepReLU, ReLU

N, H = 40, 10
SMALL = f"--model relu --n-train {N} --hidden-units {H} --steps 60,40 --learning-rate 0.05,0.01"


def run(*arguments: object) -> Result:
    result = CliRunner().invoke(cli.compare, [*SMALL.split(), *map(str, arguments)])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exc_info
    return result


@pytest.fixture(scope="module")
def deep(tmp_path_factory) -> tuple[dict[str, Any], Any, str]:
    """Results, folder and text of a network of three layers."""
    folder = tmp_path_factory.mktemp("deep")
    result = run("--depth", 3, "--save", folder, "--plot", folder / "run.png", "--json")
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout), folder, result.stderr


def data_of(record: dict[str, Any]) -> Any:
    sizes = {"n_train": N, "n_val": record["data"]["n_val"]}
    return load_digits(**sizes, random_state=record["seeds"]["data"])


@pytest.mark.parametrize("depth", [2, 3, 5])
def test_depth_counts_layers_of_the_libraries_network(depth, tmp_path) -> None:
    result = run("--depth", depth, "--save", tmp_path, "--json", "--quiet")
    assert result.exit_code == 0, result.stderr
    record = json.loads(result.stdout)
    data = data_of(record)
    network = DeepReLU(
        data.X_train.shape[1], (H,) * (depth - 1), random_state=record["seeds"]["weights"]
    )
    settings = TrainingSettings(
        schedule=((60, 0.05), (40, 0.01)), momentum=0.9, random_state=record["seeds"]["batches"]
    )
    start = network.gates(data.X_train)
    trajectory = train(network, data.X_train, data.y_train, None, settings=settings)
    assert record["network"]["log_loss"] == pytest.approx(trajectory.log_loss[-1], rel=1e-10)
    saved = load_file(tmp_path / "network.safetensors")
    assert len(saved) == depth
    for index, weight in enumerate(network.layers):
        torch.testing.assert_close(saved[f"layers.{index}"], weight.detach())
    flips = float((start != network.gates(data.X_train)).double().mean())
    assert record["gate_changes"]["since_start"][-1] == pytest.approx(flips)
    frame = pd.read_parquet(tmp_path / "trajectory.parquet")
    assert frame["gate_changes"].iloc[-1] == pytest.approx(flips)


def test_one_hidden_layer_is_the_default() -> None:
    usual, asked = (json.loads(run(*a, "--json").stdout) for a in ((), ("--depth", "2")))
    assert usual["options"]["depth"] == 2
    assert usual["comparison"] == asked["comparison"]
    assert usual["frozen"] is not None


def test_the_machines_see_every_hidden_layer_or_the_last_one(deep) -> None:
    record, folder, _ = deep
    data = data_of(record)
    w1, w2, _ = (W.numpy() for _, W in sorted(load_file(folder / "network.safetensors").items()))
    first = data.X_train @ w1.T
    second = np.maximum(first, 0) @ w2.T
    gates = np.hstack([first, second]) >= 0

    def optimum(norm: cp.Expression, scores: cp.Expression) -> float:
        constraints = [cp.multiply(data.y_train, scores) >= 1]
        return float(cp.Problem(cp.Minimize(norm), constraints).solve(solver=cp.CLARABEL))

    w = cp.Variable(H)
    hidden = optimum(cp.norm(w), np.maximum(second, 0) @ w)
    assert record["limits"]["hl"]["objective"] == pytest.approx(hidden, rel=1e-5)
    zeta = cp.Variable((2 * H, data.X_train.shape[1]))
    scores = sum(cp.multiply(gates[:, h], data.X_train @ zeta[h]) for h in range(2 * H))
    learned = optimum(cp.sum(cp.norm(zeta, 2, axis=1)), scores)
    assert record["limits"]["lc"]["objective"] == pytest.approx(learned, rel=1e-5)
    # As many random gates as learned ones, and one that is always open.
    assert len(record["limits"]["rc"]["unit_norms"]) == 2 * H + 1


def test_what_a_deep_network_does_not_have_is_left_out_and_said(deep) -> None:
    record, folder, text = deep
    assert record["frozen"] is None and record["theorem"].startswith("no theorem")
    assert "it has 2, and SVM-LC and gates-only see the gates of all of them" in text
    assert "no copy freezes them here: DOES NOT HOLD" in text
    assert "sum of unit norms" not in text and "SVM-FReLU" not in text
    assert record["comparison"]["lc"]["margin_ratio"] is None
    assert 0 < record["comparison"]["hl"]["margin_ratio"] <= 1
    assert not list(folder.glob("frozen-*"))
    assert (folder / "run.png").stat().st_size > 10_000


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--depth 1", "`--depth 1` leaves a ReLU network without a hidden layer"),
        ("--depth 0", "Invalid value for '--depth'"),
        ("--depth 3 --freeze-at 5", "`--freeze-at 5` is for `--depth 2`"),
        ("--depth 3 --trainer dual --steps 5", "needs a network that is linear in its weights"),
    ],
)
def test_depths_without_a_meaning_end_with_2_before_any_work(arguments, message) -> None:
    rates = ("--learning-rate", "auto") if "dual" in arguments else ()
    momentum = ("--momentum", "0") if "dual" in arguments else ()
    result = run(*arguments.split(), *rates, *momentum)
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr and "training" not in result.stderr


def test_a_map_of_the_plane_is_drawn_for_deep_networks(tmp_path) -> None:
    arguments = ("--data", "quadrants", "--depth", 3, "--plot", tmp_path / "plane.png")
    assert run(*arguments).exit_code in (0, 3)
    flat = run("--depth", 3, "--plot", tmp_path / "flat.png")
    assert flat.exit_code == 0
    sizes = [(tmp_path / name).stat().st_size for name in ("plane.png", "flat.png")]
    assert sizes[0] > 1.5 * sizes[1]


def test_two_layers_are_the_two_layer_network() -> None:
    X = np.random.default_rng(0).normal(size=(9, 4))
    deep, shallow = DeepReLU(4, (5,), random_state=1), ReLU(4, 5, random_state=1)
    torch.testing.assert_close(deep(torch.tensor(X)), shallow(torch.tensor(X)))
