"""`compare --classes joint`: all classes by one network and one program."""

from __future__ import annotations

import json
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from matplotlib import pyplot as plt
from numpy.typing import NDArray

import implicit_bias as ib
from implicit_bias.limits import MulticlassLimit, solve_multiclass_svm
from implicit_bias.runs.drawing import plot_pair_margins
from tests.commands import run
from tests.long import some_of

K, N, D = 3, 24, 9
RNG = np.random.default_rng(5)
X, B0 = RNG.normal(size=(N, D)), RNG.normal(size=(K, D))
LABELS = (X @ B0.T).argmax(axis=1)
X_VAL = RNG.normal(size=(40, D))
LABELS_VAL = (X_VAL @ B0.T).argmax(axis=1)
DATA: dict[str, Any] = {"X": X, "y": LABELS, "X_val": X_VAL, "y_val": LABELS_VAL}
DATA |= {"checkpoints": 6}
CHOICES: dict[str, dict[str, Any]] = {
    "linear": {"trainer": "dual", "steps": (400,)},
    "deep-linear": {"trainer": "annealed", "hidden_units": 4, "steps": (300,), "tol": 1e-6},
    "shallow-gln": {"trainer": "annealed", "hidden_units": 1, "steps": (300,)},
    "frelu": {"trainer": "annealed", "hidden_units": 2, "steps": (400,)},
    "gln": {"trainer": "annealed", "hidden_units": 2, "steps": (300,)},
}


@pytest.fixture(scope="module")
def reports() -> dict[str, Any]:
    return {name: ib.run(name, classes="joint", **DATA, **own) for name, own in CHOICES.items()}


@pytest.mark.parametrize("name", some_of(CHOICES, one_in=2))
def test_a_network_of_all_classes_reaches_the_program_of_its_layers(reports, name) -> None:
    report = reports[name]
    limit, comparison = report.limit, report.comparison
    assert isinstance(limit, MulticlassLimit) and limit.status.name == "SOLVED"
    assert 0.99 < comparison.margin_ratio <= 1 + 1e-9
    assert report.verdict.word == "AT ITS LIMIT"
    assert comparison.agreement > 0.97
    # What the network is, in the norm of the program, by its own coefficients.
    zeta = report.network.zeta().detach().numpy()
    if name == "gln":  # one matrix a unit, over both of its contexts
        zeta = zeta.reshape(2, K, 2 * D)
    values = np.linalg.svd(zeta, compute_uv=False)
    nuclear = name in ("deep-linear", "frelu", "gln")
    norm = float(values.sum() if nuclear else np.linalg.norm(zeta))
    assert comparison.network_norm == pytest.approx(norm, rel=1e-9)
    if limit.is_unique:
        assert comparison.zeta_cosine > 0.99
    else:
        assert np.isnan(comparison.zeta_cosine)  # solutions of one value differ


def test_the_limit_of_a_linear_predictor_is_the_textbook_s_program(reports) -> None:
    B = cp.Variable((K, D))
    scores = X @ B.T
    margins = [
        scores[n, LABELS[n]] - scores[n, k] >= 1 for n in range(N) for k in range(K)
        if k != LABELS[n]
    ]  # fmt: skip
    optimum = cp.Problem(cp.Minimize(cp.norm(B, "fro")), margins).solve(solver="CLARABEL")
    limit = reports["linear"].limit
    assert limit.objective == pytest.approx(optimum, rel=1e-6)
    nuclear = cp.Problem(cp.Minimize(cp.normNuc(B)), margins).solve(solver="CLARABEL")
    assert reports["deep-linear"].limit.objective == pytest.approx(nuclear, rel=1e-5)


def test_units_of_the_limit_have_the_norms_of_the_network_s(reports) -> None:
    for name in ("frelu", "gln"):
        limit, network = reports[name].limit, reports[name].network
        H = len(limit.zeta)
        values = np.linalg.svd(limit.zeta.reshape(H, K, -1), compute_uv=False)
        assert limit.unit_norms == pytest.approx(values.sum(1), rel=1e-9)
        assert limit.unit_norms.sum() == pytest.approx(limit.objective, rel=1e-6)
        assert limit.live.tolist() == (limit.unit_norms > 1e-3).tolist()
        norms = network.unit_norms().detach().numpy()
        shares = limit.unit_norms / limit.unit_norms.sum()
        assert norms / norms.sum() == pytest.approx(shares, abs=0.01)
    whole = reports["linear"].limit
    assert whole.unit_norms == pytest.approx([whole.objective], rel=1e-6) and whole.live.all()


def test_gates_of_the_limit_are_those_of_the_network(reports) -> None:
    for name in ("frelu", "gln"):
        report = reports[name]
        assert report.limit.zeta.shape == tuple(report.network.zeta().shape)
    contexts = reports["shallow-gln"]
    zeta, trained = contexts.limit.zeta, contexts.network.zeta().detach().numpy()
    for own, other in zip(zeta, trained, strict=True):  # context by context, in one order
        own, other = own - own.mean(axis=0), other - other.mean(axis=0)
        assert np.sum(own * other) > 0.99 * np.linalg.norm(own) * np.linalg.norm(other)


def labels_of(scores: NDArray[Any]) -> NDArray[Any]:
    return np.asarray(scores).argmax(axis=1)


def test_held_out_labels_are_those_of_both_predictors(reports) -> None:
    import torch

    report = reports["linear"]
    limit = labels_of(report.limit.predictor(X_VAL))
    network = labels_of(report.network(torch.tensor(X_VAL)).detach())
    labels = json.loads(report.to_json())["multiclass"]
    confusion = np.zeros((K, K), dtype=int)
    np.add.at(confusion, (limit, network), 1)
    assert labels["confusion"] == confusion.tolist()
    assert labels["accuracy_limit"] == pytest.approx(np.mean(limit == LABELS_VAL))
    row = report.row()
    assert row["error_limit"] == pytest.approx(np.mean(limit != LABELS_VAL))
    assert row["agreement"] == pytest.approx(np.mean(limit == network))
    assert row["margin_ratio"] == report.comparison.margin_ratio
    assert row["classes"] == "joint" and row["n_support"] <= N


def test_pairs_on_the_margin_have_one_in_the_picture(reports) -> None:
    scores = np.asarray(reports["linear"].limit.predictor(X))
    own = scores[np.arange(N), LABELS][:, None] - scores
    pairs = np.array([own[LABELS == k].min(axis=0) for k in range(K)])
    np.fill_diagonal(pairs, np.nan)
    _, ax = plt.subplots()
    plot_pair_margins(pairs, range(K), "least margins", ax)
    assert np.nanmin(ax.images[0].get_array()) == pytest.approx(1, abs=1e-6)
    assert ax.get_ylabel() == "class of the samples"
    plt.close("all")


def test_several_trainers_of_one_norm_stand_side_by_side() -> None:
    report = ib.run("linear", classes="joint", trainer="momentum,annealed", steps=(60,), **DATA)
    verdicts = {one.trainer: one.numbers["margin_ratio"] for one in report.verdicts}
    assert sorted(verdicts) == ["annealed", "momentum"]
    assert all(0 < ratio <= 1 + 1e-9 for ratio in verdicts.values())
    figure = report.plot()
    assert figure is not None
    plt.close("all")


def test_a_trainer_in_another_norm_goes_to_its_own_program() -> None:
    report = ib.run("linear", classes="joint", trainer="spectral", steps=(1500,), **DATA)
    expected = solve_multiclass_svm(X, LABELS, norm="spectral", n_classes=K)
    assert report.limit.norm == "spectral"
    assert report.limit.objective == pytest.approx(expected.objective, rel=1e-7)
    assert 0.9 < report.comparison.margin_ratio <= 1 + 1e-9
    values = np.linalg.svd(report.network.zeta().detach().numpy(), compute_uv=False)
    assert report.comparison.network_norm == pytest.approx(values[0], rel=1e-9)


@pytest.mark.long
def test_trainers_of_several_norms_stand_beside_their_own_programs() -> None:
    report = ib.run("linear", classes="joint", trainer="sign,spectral,dual", steps=(1500,), **DATA)
    networks = json.loads(report.to_json())["networks"]
    assert report.limit.norm == "l2"  # the limit of the one that descends the gradient
    for trainer, norm in (("sign", "linf"), ("spectral", "spectral"), ("dual", "l2")):
        found, expected = networks[trainer]["norms"], solve_multiclass_svm(X, LABELS, norm=norm)
        assert found["norm"] == norm and found["exact"]
        assert found["objective"] == pytest.approx(expected.objective, rel=1e-7)
        assert 0.85 < found["certified_ratio"] <= found["margin_ratio"] * (1 + 1e-7) <= 1 + 1e-6
        others = found["others"]
        assert max(others, key=others.get) == norm
        # The margin of the network in this norm, by its own coefficients, over the largest.
        assert others[norm] == pytest.approx(found["margin_ratio"], rel=1e-6)
    kkt = {name: one["norms"]["kkt_ratio"] for name, one in networks.items()}
    assert min(kkt.values()) > 0.85
    # Of one layer the linearised problem is the program: its ratio is known, and is low in the
    # wrong norm, where the two bounds hold it between them.
    own, rows = report.by_trainer["sign"].network, np.eye(K)[LABELS]
    (name,) = (name for name, _ in own.named_parameters())
    wrong = ib.kkt_distance(own, X, rows, None, norm={name: "spectral"})
    rho = networks["sign"]["norms"]["others"]["spectral"]
    assert wrong.ratio_bound <= rho * (1 + 1e-6) <= wrong.ratio * (1 + 2e-6) and rho < 0.85
    # Values of programs in several norms have their norms on the screen.
    (line,) = [line for line in report.first_screen().splitlines() if line.startswith("optimum")]
    assert line.split()[-1] in ("linf", "spectral") and "2.93" in line


def test_signs_of_a_network_that_is_linear_in_its_weights_have_a_program_of_their_own() -> None:
    own = {"hidden_units": 1, "trainer": "signum", "steps": (1500,)}
    report = ib.run("shallow-gln", classes="joint", **own, **DATA)
    assert report.limit.norm == "linf" and report.verdict.word != "BOUND"
    zeta = report.network.zeta().detach().numpy()
    assert report.comparison.network_norm == pytest.approx(np.abs(zeta).max(), rel=1e-9)
    assert 0.9 < report.comparison.margin_ratio <= 1 + 1e-9


def test_what_has_no_program_is_a_bound_or_refused_by_name() -> None:
    own = {**DATA, "steps": (150,), "trainer": "annealed"}
    deep = ib.run("deep-linear", classes="joint", depth=3, hidden_units=4, **own)
    assert deep.verdict.word == "BOUND" and deep.comparison.margin_ratio <= 1
    layers = {**own, "trainer": "sign", "hidden_units": 4}
    signs = ib.run("deep-linear", classes="joint", depth=2, **layers)
    assert signs.verdict.word in ("BOUND", "NOT SEPARATED") and signs.limit.norm == "linf"
    narrow = ib.run("deep-linear", classes="joint", depth=2, hidden_units=1, **own)
    assert narrow.verdict.word in ("BOUND", "NOT SEPARATED")
    for name, more, message in (
        ("gln-l2", {}, "'joint' has no program for the model gln-l2"),
        ("gln", {"trainer": "sign"}, "gln and the trainer 'sign'"),
        ("deep-linear", {"trainer": "muon"}, "deep-linear and the trainer 'muon'"),
        ("frelu", {"trainer": "dual,sign"}, "frelu and the trainer 'sign'"),
    ):
        with pytest.raises(ValueError, match=message):
            ib.run(name, classes="joint", **{**own, **more})


def test_the_command_draws_saves_and_states_the_program(tmp_path) -> None:
    small = ("--model", "linear", "--classes", "joint", "--n-train", "40")
    result = run(*small, "--steps", "200", "--plot", tmp_path / "x.png", "--save",
                 tmp_path / "run", "--json")  # fmt: skip
    record = json.loads(result.stdout)
    assert record["limit"]["n_classes"] == 10 and record["limit"]["gap"] < 1e-8
    assert record["comparison"]["margin_ratio"] <= 1
    assert "softmax" in record["theorem"]
    assert (tmp_path / "x.png").stat().st_size > 10_000
    saved = MulticlassLimit.load(tmp_path / "run" / "limit.safetensors")
    assert saved.objective == record["limit"]["objective"]
    stated = run(*small, "--program")
    assert stated.exit_code == 0 and "K classes under softmax" in stated.stdout
    assert "360 inequalities" in stated.stdout  # of 40 samples over 9 other classes


def test_a_kept_run_draws_the_margins_of_pairs_and_goes_on(tmp_path, caplog) -> None:
    small = ("--model", "gln", "--classes", "joint", "--data", "wine", "--n-train", "40",
             "--hidden-units", "2", "--steps", "40", "--save", tmp_path)  # fmt: skip
    first = json.loads(run(*small, "--json").stdout)
    assert "leaves out" not in caplog.text
    kept = ib.load(tmp_path)
    figure = kept.plot()
    assert "Least margins of pairs: limit" in [ax.get_title() for ax in figure.axes]
    assert kept.network.zeta().shape == kept.limit.zeta.shape == (2, 3, 2, 14)
    resumed = json.loads(run(*small, "--json", "--resume").stdout)
    assert resumed["comparison"] == first["comparison"]
    plt.close("all")
