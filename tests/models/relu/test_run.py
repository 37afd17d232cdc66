"""`compare --model relu`: a network that learns its gates, four machines, a copy that froze them.

What the copy is compared with is checked against the library, the machines against cvxpy.
"""

from __future__ import annotations

import copy
import json
from typing import Any

import cvxpy as cp
import numpy as np
import pandas as pd
import pytest
import torch
from safetensors.torch import load_file

import implicit_bias as ib
from implicit_bias import ReLU, Report, TrainingSettings, solve_frelu_svm, train
from implicit_bias.gates import ReLUGates
from implicit_bias.limits import FReLULimit, relu_local_limit
from implicit_bias.models.relu import train_then_freeze
from implicit_bias.networks import DeepReLU
from implicit_bias.runs.reports import render_text
from tests.commands import cut, dataset_of, home, results, run, without_times
from tests.long import some_of

H = 8
SMALL = ("--model", "relu", "--n-train", 30, "--n-val", 80, "--hidden-units", H,
         "--trainer", "constant", "--steps", "60,40", "--learning-rate", "0.05,0.01")  # fmt: skip
SETTINGS: dict[str, Any] = {"schedule": ((60, 0.05), (40, 0.01)), "momentum": 0.9}
MACHINES = (*SMALL, "--beside", "machines")
DEEP = (*SMALL, "--depth", 3)


def report(**given: Any) -> Report:
    sizes = {"n_train": 30, "n_val": 80, "hidden_units": H, "steps": (60, 40)}
    rates = {"trainer": "constant", "learning_rate": (0.05, 0.01)}
    return ib.run("relu", **{**sizes, **rates, **given})


# The local optimum next to the network


def plane() -> dict[str, np.ndarray]:
    """Points of a square by whether they are in a diamond, with a constant column."""
    points = np.random.default_rng(1).uniform(-1, 1, (80, 2))
    y = np.where(np.abs(points).sum(axis=1) < 0.8, 1.0, -1.0)
    X = np.column_stack([points, np.ones(80)])
    return {"X": X[:40], "y": y[:40], "X_val": X[40:], "y_val": y[40:]}


def digits() -> dict[str, np.ndarray]:
    data = ib.load_digits(n_train=40, n_val=60, random_state=0)
    return {"X": data.X_train, "y": data.y_train, "X_val": data.X_val, "y_val": data.y_val}


@pytest.mark.parametrize(("data", "steps"), some_of([(plane, 700), (digits, 300)], one_in=2))
def test_the_default_trainer_ends_at_a_certified_local_optimum(data, steps) -> None:
    given = data()
    found = ib.run("relu", **given, hidden_units=12, steps=steps)
    assert found.results["options"]["trainer"] == "smoothed"
    network, limit = copy.deepcopy(found.network).double(), found.objects["local_limit"]
    same = relu_local_limit(network, given["X"], given["y"])
    assert limit.status is same.status and limit.gap < 1e-8
    assert limit.status.name in ("GLOBAL_OPTIMUM", "LOCAL_OPTIMUM", "LIVE_OPTIMUM")
    assert limit.value == pytest.approx(same.value, rel=1e-7)
    # The ratio, by the network's own margins and weights.
    with torch.no_grad():
        margins = given["y"] * network(torch.tensor(given["X"])).numpy()
        scores = network(torch.tensor(given["X_val"])).numpy()
    norms = network.unit_norms().detach().numpy().sum()
    row = found.row()
    assert row["local_ratio"] == pytest.approx(limit.value * margins.min() / norms, rel=1e-9)
    assert 0.8 < row["local_ratio"] <= 1 and row["local_status"] == limit.status.name
    assert row["local_agreement"] == np.mean(
        limit.predictor.predict(given["X_val"]) == np.sign(scores)
    )
    (verdict,) = (one for one in found.verdicts if one.network == "ReLU network")
    near = row["local_ratio"] >= 0.99
    assert verdict.word == ("AT A LOCAL LIMIT" if near else "NOT THERE YET")
    text = render_text(found, 100)
    assert "local limit / network" in text and "half the steps" in text


@pytest.mark.long
def test_a_constant_column_is_the_bias_of_the_network_and_of_its_local_limit(tmp_path) -> None:
    given = plane()
    points = np.concatenate([given["X"], given["X_val"]])[:, :2]
    labels = np.concatenate([given["y"], given["y_val"]])
    np.savez(tmp_path / "diamond.npz", X=points, y=labels)
    file = ("--model", "relu", "--data", tmp_path / "diamond.npz", "--n-train", 40, "--n-val", 40)
    trained = ("--hidden-units", 12, "--trainer", "annealed", "--steps", 400)
    record = results(*file, *trained, "--constant", "--save", tmp_path / "run")
    limit = ib.limits.ReLULocalLimit.load(tmp_path / "run" / "local-limit.safetensors")
    seed = record["seeds"]["data"]
    data = ib.load_data(tmp_path / "diamond.npz", n_train=40, n_val=40, random_state=seed)
    assert data.X_train.shape == (40, 2)
    X = np.column_stack([data.X_train, np.ones(40)])
    # Proved on the points with a one behind each, and no better than the best of all widths there.
    assert limit.certify(X, data.y_train).gap < 1e-8 and limit.units.shape[1] == 3
    assert limit.value == pytest.approx(record["local_limit"]["comparison"]["local_value"])
    best = ib.limits.solve_relu_minnorm(X, data.y_train)
    assert best.status.name == "GLOBAL_OPTIMUM" and best.value <= limit.value * (1 + 1e-8)
    assert np.abs(limit.units[:, 2]).max() > 0.1 * np.abs(limit.units).max()
    # Without a bias scores are homogeneous, and these units separate no diamond about 0.
    plain = results(*file, *trained, "--no-constant", code=3)
    assert plain["local_limit"]["status"] == "FAILED"


# The copy that froze its gates


@pytest.mark.parametrize(("arguments", "step"), [((), 50), (("--freeze-at", "70"), 70)])
def test_the_frozen_network_is_the_librarys_and_its_limit_has_its_gates(
    arguments, step, tmp_path
) -> None:
    record = results(*SMALL, *arguments, "--frozen-trainer", "same", "--save", tmp_path)
    frozen, data, seeds = record["frozen"], dataset_of(record), record["seeds"]
    assert (frozen["freeze_at"], frozen["network"]["steps_since"]) == (step, 100 - step)
    network = ReLU(data.X_train.shape[1], H, init="kaiming", random_state=seeds["weights"])
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
    gating = ReLUGates.load(tmp_path / "frozen-gating.safetensors")
    np.testing.assert_array_equal(gating.transform(data.X_train), gates)
    # What is said of both, from the saved files.
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


@pytest.mark.long
def test_the_step_of_the_freeze_decides_about_the_copy_and_nothing_else() -> None:
    start, late, end = (report(freeze_at=step).results for step in (0, 90, 100))
    for key in ("comparison", "gate_changes"):
        assert json.dumps(start[key]) == json.dumps(late[key]) == json.dumps(end[key])
    assert start["network"]["log_loss"] == end["network"]["log_loss"]
    frozen = [record["frozen"] for record in (start, late, end)]
    assert [one["network"]["steps_since"] for one in frozen] == [100, 10, 0]
    changed = [one["gates_that_changed_later"] for one in frozen]
    assert changed[0] > changed[1] >= changed[2] == 0
    assert frozen[0]["limit"]["objective"] != frozen[1]["limit"]["objective"]
    # Frozen at the end it is the ReLU network itself, and its limit is SVM-LC.
    optimum = end["limits"]["lc"]["objective"]
    assert frozen[2]["limit"]["objective"] == pytest.approx(optimum, rel=1e-7)
    machine, learned = frozen[2]["comparison"]["machine"], end["comparison"]["lc"]
    for key in ("margin_ratio", "error", "agreement", "score_cosine"):
        assert machine[key] == pytest.approx(learned[key], abs=1e-6)
    assert frozen[2]["comparison"]["error_network"] == end["comparison"]["error_network"]
    texts = [one["text"] for one in end["assumptions"]]
    assert "the loss of the copy that froze them tends to 0" in texts  # and no number of no step


def test_gates_in_which_the_data_are_not_separable_are_reported_with_3() -> None:
    result = run(*SMALL, "--hidden-units", "1", "--n-train", "300", "--freeze-at", "5", "--json")
    assert result.exit_code == 3
    frozen = json.loads(result.stdout)["frozen"]
    assert frozen["limit"]["status"] == "NOT_SEPARABLE"
    assert frozen["comparison"]["machine"]["agreement"] is None
    assert "NOT_SEPARABLE (SVM-LC, SVM-FReLU on the gates of step 5)" in result.stderr
    found = {one["name"]: one["holds"] for one in json.loads(result.stdout)["assumptions"]}
    assert found["separable in frozen gates"] is False


def test_a_row_has_all_machines_beside_the_network() -> None:
    given = digits()
    found = ib.run("relu", **given, hidden_units=H, steps=300, seed=0, beside="machines")
    row, w1 = found.row(), found.network.w1.detach().numpy()
    Z, y = given["X_val"] @ w1.T, given["y_val"]
    with torch.no_grad():
        network = found.network(torch.tensor(given["X_val"])).numpy()
    limit = found.limit
    scores = {
        "hl": limit["hl"].predictor(np.maximum(Z, 0)),
        "lc": limit["lc"].predictor(given["X_val"], (Z >= 0).astype(float)),
    }
    for key, own in scores.items():
        assert row[f"{key}_status"] == "SOLVED" and row[f"{key}_gap"] == limit[key].gap < 1e-8
        assert row[f"{key}_error"] == np.mean(own * y <= 0)
        assert row[f"{key}_agreement"] == np.mean(np.sign(own) == np.sign(network))
        assert 0 < row[f"{key}_margin_ratio"] <= 1
    assert (row["lc_error"], row["lc_agreement"]) == (row["error_limit"], row["agreement"])
    assert len({row["rc_error"], row["hl_error"], row["gates_only_error"]}) > 1


def test_beside_machines_alone_the_run_is_the_same_without_the_rest() -> None:
    every, alone = (report(beside=beside) for beside in ("all", "machines"))
    for key in ("limits", "comparison", "gate_changes"):
        own, other = (json.dumps(without_times(one.results[key])) for one in (alone, every))
        assert own == other
    assert every.results["frozen"] and alone.results["frozen"] is None
    assert "local_limit" in every.results and "local_limit" not in alone.results
    rows, own = every.row(), alone.row()
    missing = {name for name in rows if rows[name] is not None and own.get(name) is None}
    assert missing - {"shortfall"} == {
        name for name in missing if name.startswith(("local_", "frozen_", "freeze_at"))
    } and {"local_ratio", "frozen_margin_ratio"} < missing  # fmt: skip
    machines = [name for name in own if name.startswith(("hl_", "lc_", "rc_", "gates_only_"))]
    assert len(machines) > 12 and all(own[name] == rows[name] for name in machines)
    assert "local optimum next to it was not looked for" in alone.results["theorem"]
    with pytest.raises(ValueError, match="`--freeze-at 3` needs `--beside all`"):
        report(beside="machines", freeze_at=3)


# What is told


def test_every_table_names_what_it_is_about_within_the_width() -> None:
    found = report()
    network, local, machines, frozen, neurons = found.tables
    assert local.columns == ("", "value") and "certified local optimum" in local.title
    assert neurons.columns == ("", "SVM-LC", "local limit") and neurons.title.startswith(
        "neurons of the network"
    )
    assert dict(network.rows)["hidden units"] == str(H) and f"of {H} units" in found.heading.title
    assert machines.columns == ("", "SVM-RC", "SVM-LC", "SVM-HL", "gates-only")
    rows = {label: cells for label, *cells in machines.rows}
    assert rows["sees"][:3] == ["random gates", "learned gates", "activations"]
    assert rows["is the limit of it with"] == ["none", "gates kept", "units kept", "none"]
    # Those of which the network is a candidate bound it; gates alone separate nothing here.
    assert rows["verdict"] == ["NOT THIS LIMIT", "BOUND", "BOUND", "NOT SEPARABLE"]
    error = found.results["comparison"]["error_network"]
    assert rows["held-out error, network"] == [f"{error:.2%}"] * 4
    rows = {label: cells for label, *cells in frozen.rows}
    assert rows["sees"] == ["gates of step 50"]
    error = found.results["frozen"]["comparison"]["error_network"]
    assert rows["held-out error, network"] == [f"{error:.2%}"]
    for width in (80, 100):
        assert max(map(len, render_text(found, width).splitlines())) <= width
    assert list(found.certificates) == [
        "local limit", "SVM-RC", "SVM-LC", "SVM-HL", "gates-only", "frozen gates"
    ]  # fmt: skip
    # Controls that do not separate decide nothing.
    assert found.certificates["gates-only"]["status"] == "NOT_SEPARABLE"
    assert found.status is not None and found.status.name == "SOLVED"


def test_one_phase_of_steps_has_the_first_of_the_models_rates() -> None:
    result = run("--model", "relu", "--trainer", "constant", "--n-train", 50, "--steps", "60",
                 "--beside", "machines", "--json")  # fmt: skip
    assert result.exit_code == 0, result.stderr
    assert "training a ReLU network of 20 units for 60 steps" in result.stderr
    assert json.loads(result.stdout)["options"]["learning_rate"] == [0.04]


def test_a_network_that_does_not_separate_its_data_ends_with_5() -> None:
    result = run(*MACHINES, "--momentum", "0", "--n-train", "100", "--details")
    assert result.exit_code == 5
    assert "NOT SEPARATED: the network does not separate its training data" in result.stderr
    assert "the network separates the training data: DOES NOT HOLD" in result.stdout
    same = report(momentum=0.0, n_train=100, frozen_trainer="same")
    (frozen,) = (one for one in same.findings if one.key == "frozen")
    assert "the copy with frozen gates does not separate" in frozen.views.shortfall


@pytest.mark.long
def test_the_picture_has_the_maps_of_the_plane_and_the_freeze() -> None:
    def axes(**given: Any) -> dict[str, Any]:
        figure = report(n_train=40, **given).figure()
        assert figure is not None
        return {ax.get_title() or ax.get_ylabel(): ax for ax in figure.axes}

    gates = "gates changed since the start"
    shallow, plane = axes(), axes(data="quadrants", depth=3)
    assert list(shallow)[-6:] == [
        gates,
        next(title for title in shallow if ", gap " in title),
        "frozen copy: 1 - margin ratio",
        *(f"{name}: where it bends" for name in ("network", "SVM-LC", "local limit")),
    ]
    legend = shallow[gates].get_legend().get_texts()
    assert [text.get_text() for text in legend] == ["a copy freezes them at 50"]
    assert plane[gates].get_legend() is None
    assert list(plane)[-5:-1] == [
        "SVM-LC, gates of the end",
        *(f"network after {step} steps" for step in (5, 22, 100)),
    ]


# Interrupts, divergence, resume


@pytest.mark.parametrize(
    ("stage", "where", "missing"),
    some_of(
        [
            ("training a ReLU network", {"at": 0.3}, {"frozen"}),
            ("solving four SVMs", {"count": 0}, {"limits", "comparison", "frozen"}),
            ("comparing", {"count": 0}, {"comparison", "frozen"}),
            ("solving SVM-FReLU", {"count": 0}, {"frozen"}),
            ("training a copy of it", {"at": 0.6}, set()),
        ],
        one_in=3,
    ),
)
def test_an_interrupt_keeps_what_was_found(stage, where, missing, monkeypatch, tmp_path) -> None:
    page = tmp_path / "run.html"
    cut(monkeypatch, (*SMALL, "--save", tmp_path, "--report", page), stage, **where)
    record = json.loads((tmp_path / "results.json").read_text())
    whole = {"network", "gate_changes", "limits", "comparison", "frozen"}
    assert {key for key in whole if record.get(key) is not None} == whole - missing
    assert record["finished"] is False and "interrupted" in page.read_text()
    assert record["network"]["finished"] is (stage != "training a ReLU network")
    if not missing:
        assert record["frozen"]["network"]["finished"] is False
        assert record["frozen"]["network"]["steps_since"] == 30
    frozen = {path.name for path in tmp_path.glob("frozen-*") if not path.stem.endswith("-run")}
    kept = {"frozen-network.safetensors", "frozen-gating.safetensors", "frozen-trajectory.parquet"}
    if stage == "solving SVM-FReLU":
        assert frozen == kept
    else:
        assert frozen == (set() if missing else kept | {"frozen-limit.safetensors"})


def test_training_that_diverges_ends_with_2_and_what_was_found_before(monkeypatch) -> None:
    result = run(*SMALL, "--loss", "exponential", "--learning-rate", "1e6,1e6")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "Error: training diverged" in result.stderr

    def diverge(*_: Any, **__: Any) -> None:
        raise FloatingPointError("the copy diverged")

    monkeypatch.setattr(home(train_then_freeze), "train", diverge)
    result = run(*SMALL, "--json")
    assert result.exit_code == 2 and "Error: the copy diverged" in result.stderr
    record = json.loads(result.stdout)
    assert (record["failure"], record["frozen"]) == ("the copy diverged", None)
    assert record["finished"] and record["comparison"]["lc"]["status"] == "SOLVED"


def test_a_copy_that_begins_anew_from_shorter_weights_has_not_diverged() -> None:
    """Its network separates at a tiny loss, and 'annealed' is halted before it does again."""
    report = ib.run("relu", data="wine", steps=50)
    (copy,) = (one for one in report.verdicts if one.subject.startswith("copy"))
    after = report.objects["frozen"].after
    assert after.smallest_margin[0] > 0 > after.smallest_margin[-1]
    assert copy.word == "NOT SEPARATED" and "give more `--steps`" in copy.sentence


def test_the_network_is_measured_along_its_training(tmp_path) -> None:
    record = results(*MACHINES, "--steps", "200,100", "--save", tmp_path)
    frame = pd.read_parquet(tmp_path / "trajectory.parquet")
    assert frame["error_network"].iloc[-1] == record["comparison"]["error_network"]
    changes = record["gate_changes"]
    assert frame["step"].tolist() == changes["step"]
    assert frame["gate_changes"].tolist() == changes["since_start"]
    assert frame["gate_flips"].tolist() == changes["since_last"]
    assert changes["since_start"][0] == 0 < changes["since_start"][-1]
    below, above = (
        W.numpy() for _, W in sorted(load_file(tmp_path / "network.safetensors").items())
    )
    drift = np.abs((below**2).sum(axis=1) - above[0] ** 2).max()
    balance = drift / ((below**2).sum() + (above**2).sum())
    assert frame["balancedness"].iloc[-1] == pytest.approx(balance)
    assert np.isfinite(frame["kkt_residual"].iloc[-1])
    assert "margin_ratio" not in frame  # no theorem names a limit


# Several hidden layers


@pytest.fixture(scope="module")
def deep(tmp_path_factory) -> tuple[dict[str, Any], Any, str]:
    """Results, folder and text of a network of three layers."""
    folder = tmp_path_factory.mktemp("deep")
    result = run(*DEEP, "--n-train", 40, "--save", folder, "--json")
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout), folder, " ".join(result.stderr.split())


@pytest.mark.parametrize("depth", [2, 3, 5])
def test_depth_counts_layers_of_the_libraries_network(depth, tmp_path) -> None:
    record = results(*MACHINES, "--depth", depth, "--save", tmp_path)
    data, seeds = dataset_of(record), record["seeds"]
    network = DeepReLU(data.X_train.shape[1], (H,) * (depth - 1), random_state=seeds["weights"])
    settings = TrainingSettings(**SETTINGS, random_state=seeds["batches"])
    start = network.gates(data.X_train)
    trajectory = train(network, data.X_train, data.y_train, None, settings=settings)
    assert record["network"]["log_loss"] == pytest.approx(trajectory.log_loss[-1], rel=1e-10)
    saved = load_file(tmp_path / "network.safetensors")
    assert len(saved) == depth
    for index, weight in enumerate(network.layers):
        torch.testing.assert_close(saved[f"layers.{index}"], weight.detach())
    flips = float((start != network.gates(data.X_train)).double().mean())
    assert record["gate_changes"]["since_start"][-1] == pytest.approx(flips)


def test_the_machines_see_every_hidden_layer_or_the_last_one(deep) -> None:
    record, folder, _ = deep
    data = dataset_of(record)
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
    assert f"training a ReLU network of 2 hidden layers of {H} units" in text
    (layers,) = (one for one in record["assumptions"] if one["name"] == "one hidden layer")
    assert "it has 2, and SVM-LC and gates-only see the gates of all of them" in layers["text"]
    assert layers["holds"] is False
    assert "local_limit" not in record
    assert "sum of unit norms" not in text and "SVM-FReLU" not in text
    assert record["comparison"]["lc"]["margin_ratio"] is None
    assert 0 < record["comparison"]["hl"]["margin_ratio"] <= 1
    assert not list(folder.glob("frozen-*"))


def test_a_network_whose_units_have_closed_is_not_told_to_go_on() -> None:
    dead = report(learning_rate=(1e6, 1e6), steps=(20, 20), n_val=20)
    assert dead.objects["trajectory"].smallest_margin[-1] == 0
    assert "exactly 0" in dead.shortfall and "smaller `--learning-rate`" in dead.shortfall
    assert "give more `--steps`" not in str(dead)


@pytest.mark.parametrize(("checkpoints", "known"), [(2, False), (8, True)])
def test_an_earlier_network_is_one_of_a_checkpoint_before_the_last(checkpoints, known) -> None:
    """The network at the end is no evidence that its local optimum was the same before."""
    small = {"data": "quadrants", "n_train": 12, "n_val": 12, "hidden_units": 3, "steps": 8}
    report = ib.run("relu", trainer="constant", checkpoints=checkpoints, **small)
    step = report.results["local_limit"]["comparison"]["half_step"]
    assert 4 <= step < 8 if known else step is None
