"""Every row of the model table, from its command to its results."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from safetensors.numpy import load_file

from implicit_bias import GLN, solve_gln_l2_svm
from implicit_bias import compare as compare_network
from implicit_bias.data.sample import Sample
from implicit_bias.models import MODELS
from implicit_bias.models.gdln.data import make_nlgp, make_single_pulse
from implicit_bias.models.gdln.formulation import GatedOLS
from tests.commands import DONE
from tests.commands import run as run_command

SEPARABLE = [name for name, model in MODELS.items() if "classes" in model.option_names]
# Few steps, and for the models without defaults of their own a small problem.
QUICK = {
    "deep-linear": ("--steps", "300"),
    "frelu": ("--n-train", "100", "--steps", "300"),
    "gdln": ("--n-train", "600", "--steps", "60", "--hidden-units", "3"),
    "gln": ("--n-train", "100", "--steps", "100,100", "--hidden-units", "3"),
    "gln-l2": ("--n-train", "100", "--steps", "100,100", "--hidden-units", "3"),
    "linear": ("--steps", "300"),
    "orthosep": ("--n-train", "60", "--steps", "100,100", "--hidden-units", "12"),
    "relu": ("--n-train", "100", "--steps", "100,100", "--hidden-units", "8"),
    "shallow-gln": ("--n-train", "120", "--steps", "300"),
}


def run(*arguments: str) -> tuple[int, dict[str, object], str]:
    result = run_command(*arguments, "--json")
    record = json.loads(result.stdout) if result.stdout else {}
    return result.exit_code, record, result.stderr


@pytest.mark.parametrize("model", sorted(MODELS))
def test_every_model_predicts_trains_compares_and_draws(model, tmp_path) -> None:
    picture = tmp_path / "run.png"
    code, record, text = run(
        "--model", model, *QUICK[model], "--plot", str(picture), "--save", str(tmp_path / "saved")
    )
    assert code in DONE, text
    assert record["model"] == model and record["theorem"] == MODELS[model].theorem
    assert " ".join(MODELS[model].theorem.split()) in " ".join(text.split())
    assert record["assumptions"], "the assumptions of the theorem are part of the answer"
    assert picture.stat().st_size > 10_000
    assert json.loads((tmp_path / "saved" / "results.json").read_text()) == record


@pytest.mark.parametrize("model", SEPARABLE)
def test_every_family_reports_a_certified_limit_and_a_margin_ratio_of_at_most_one(model) -> None:
    _, record, _ = run("--model", model, *QUICK[model])
    limit, comparison = record["limit"], record["comparison"]
    assert limit["status"] == "SOLVED" and limit["gap"] <= 1e-8
    assert limit["objective"] == pytest.approx(limit["dual_objective"], rel=1e-7)
    margin, norm = record["network"]["smallest_margin"], comparison["network_norm"]
    assert comparison["margin_ratio"] == pytest.approx(margin / norm * limit["dual_objective"])
    assert comparison["margin_ratio"] <= 1


@pytest.mark.parametrize(("model", "least"), [("linear", 0.95), ("shallow-gln", 0.9)])
def test_with_its_defaults_a_convex_model_comes_near_its_limit(model, least) -> None:
    code, record, _ = run("--model", model)
    assert code == 0
    assert least < record["comparison"]["margin_ratio"] <= 1
    assert record["comparison"]["zeta_cosine"] > 0.98


def test_orthosep_with_its_defaults_comes_to_its_limit_and_its_constants() -> None:
    code, record, _ = run("--model", "orthosep", "--n-train", "100")
    assert code == 0
    assert record["comparison"]["margin_ratio"] > 0.999
    assert record["comparison"]["zeta_cosine"] > 0.999


def test_orthosep_warns_of_other_data_and_goes_on() -> None:
    code, record, text = run(
        "--model", "orthosep", "--data", "digits", "--n-train", "40", "--steps", "100",
        "--learning-rate", "0.01",
    )  # fmt: skip
    assert code in (0, 3), text
    assert "DOES NOT HOLD" in text
    assert "orthogonally separable" in json.dumps(record) or "orthogonally separable" in text


def test_relu_reports_machines_that_do_not_separate_as_such() -> None:
    _, record, text = run("--model", "relu", *QUICK["relu"])
    statuses = {name: entry["status"] for name, entry in record["limits"].items()}
    assert statuses["gates_only"] == "NOT_SEPARABLE" and "NOT_SEPARABLE" in text
    assert record["limits"]["gates_only"]["separation_bound"] <= 1e-12


def test_gdln_follows_its_predicted_path_to_rounding() -> None:
    _, record, _ = run("--model", "gdln", *QUICK["gdln"])
    assert record["path_error"] < 1e-12
    initial = [
        prediction
        for prediction in record["comparison"]["predictions"]
        if prediction["gates"] == "initial"
    ]
    # The limit is that of the initial gates; an infinite time is null in JSON.
    (at_infinity,) = [p for p in initial if p["time"] is None or math.isinf(p["time"])]
    assert record["limit"]["loss"] == pytest.approx(at_infinity["loss"], rel=1e-9)


@pytest.mark.parametrize(("data", "make"), [("ring", make_nlgp), ("pulse", make_single_pulse)])
def test_gdln_keeps_what_it_takes_to_see_its_numbers_again(data, make, tmp_path) -> None:
    _, record, _ = run("--model", "gdln", *QUICK["gdln"], "--data", data, "--save", str(tmp_path))
    rows = make(record["data"]["n_train"], random_state=record["seeds"]["data"])
    assert record["data"]["sha256"] == rows.digest()
    weights = load_file(tmp_path / "network.safetensors")["weights"]
    # The gates of the start are those of the network as it was drawn.
    limit = GatedOLS.load(tmp_path / "limit.safetensors")
    scores = np.einsum("nk,kd,nd->n", rows.X @ weights[0].T >= 0, limit.zeta, rows.X)
    assert np.mean((rows.y - scores) ** 2) / 2 == pytest.approx(record["limit"]["loss"])
    relu = np.maximum(rows.X @ weights[-1].T, 0).mean(axis=1)
    assert np.mean((rows.y - relu) ** 2) / 2 == pytest.approx(record["comparison"]["loss"])
    gated = load_file(tmp_path / "gated-network.safetensors")
    np.testing.assert_array_equal(gated["weights"][0], weights[0])
    trained = np.einsum("nk,kd,nd->n", rows.X @ weights[0].T >= 0, gated["weights"][-1], rows.X)
    loss = np.mean((rows.y - trained / len(weights[0])) ** 2) / 2
    assert gated["step"][-1] == 60 and gated["loss"][-1] == pytest.approx(loss)


def test_data_of_another_kind_are_refused_before_any_work() -> None:
    assert run("--model", "gln", "--data", "ring")[0] == 2
    assert run("--model", "gln", "--data", "pulse")[0] == 2
    code, _, text = run("--model", "gdln", "--data", "digits")
    assert code == 2 and "--data ring" in text


def test_gdln_takes_the_length_scales_in_both_orders() -> None:
    digests = set()
    for data, make, scales in (
        ("ring", make_nlgp, (5.0, 1.0)),
        ("ring", make_nlgp, (1.0, 5.0)),
        ("pulse", make_single_pulse, (3, 7)),
    ):
        given = ",".join(f"{scale:g}" for scale in scales)
        arguments = ("--model", "gdln", *QUICK["gdln"], "--data", data, "--length-scales", given)
        _, record, _ = run(*arguments)
        rows = make(600, xi_1=scales[0], xi_0=scales[1], random_state=record["seeds"]["data"])
        assert record["data"]["sha256"] == rows.digest()
        assert record["data"]["description"] == rows.description
        digests.add(record["data"]["sha256"])
    assert len(digests) == 3
    _, usual, _ = run("--model", "gdln", *QUICK["gdln"])
    assert usual["data"]["sha256"] in digests


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--length-scales 5", "must be two numbers"),
        ("--length-scales 5,1,1", "must be two numbers"),
        ("--length-scales five,1", "is not a list such as 5,1"),
        ("--length-scales 5,0", "length scales must be positive"),
        ("--length-scales 5,nan", "length scales must be positive"),
        ("--length-scales 5,2.5 --data pulse", "must be whole numbers"),
        ("--length-scales 5,41 --data pulse", "must lie in 1 .. 40"),
        ("--resume --save {folder}", "`--resume` is not for the model gdln"),
    ],
)
def test_gdln_refuses_what_it_cannot_do_before_any_work(arguments, message, tmp_path) -> None:
    given = arguments.format(folder=tmp_path).split()
    code, _, text = run("--model", "gdln", *given)
    assert code == 2 and message in text and "training" not in text


def test_a_network_at_the_l2_limit_has_margin_ratio_one_in_its_own_norm() -> None:
    rng = np.random.default_rng(0)
    X, contexts = rng.normal(size=(30, 4)), rng.integers(0, 3, size=(30, 2))
    y = np.sign(rng.normal(size=30))
    sample = Sample(X, y, contexts)
    limit = solve_gln_l2_svm(X, y, contexts, n_contexts=3).require()
    comparison = compare_network(limit, GLN.from_zeta(limit.zeta), sample, sample)
    assert comparison.margin_ratio == pytest.approx(1, abs=1e-7)
    assert comparison.network_norm == pytest.approx(limit.objective, rel=1e-7)
