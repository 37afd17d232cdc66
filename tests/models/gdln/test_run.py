"""`compare --model gdln`: a gated linear network on its predicted path, and its ReLU twin."""

from __future__ import annotations

import numpy as np
import pytest
from safetensors.numpy import load_file

import implicit_bias as ib
from implicit_bias.datasets import make_nlgp, make_single_pulse
from implicit_bias.limits import GatedOLS
from implicit_bias.runs.reports import screen_table
from tests.commands import cut, results, run

QUICK = ("--model", "gdln", "--n-train", "600", "--steps", "60", "--hidden-units", "3")


@pytest.mark.parametrize(
    ("arguments", "last", "error"),
    [
        ("--learning-rate 2", (60, 120.0), 1e-12),
        ("--steps 30,50 --learning-rate 2,3", (80, 210.0), 1e-12),
        ("--dtype float32 --learning-rate 2", (60, 120.0), 1e-4),
    ],
)
def test_a_gated_network_follows_its_predicted_path_through_every_phase(
    arguments, last, error, tmp_path
) -> None:
    record = results(*QUICK, *arguments.split(), "--save", tmp_path)
    assert record["path_error"] < error
    assert record["path_error"] > 1e-9 or "float32" not in arguments
    saved = load_file(tmp_path / "gated-network.safetensors")
    assert (saved["step"][-1], saved["time"][-1]) == last
    # The limit is that of the initial gates; an infinite time is null in JSON.
    initial = [p for p in record["comparison"]["predictions"] if p["gates"] == "initial"]
    assert [p["time"] for p in initial] == [last[1], None]
    assert record["limit"]["loss"] == pytest.approx(initial[1]["loss"], rel=1e-9)


def test_the_rate_is_stable_whatever_gates_open(tmp_path) -> None:
    """Where none is given, for inputs of any size."""
    rng = np.random.default_rng(0)
    X = 40 * np.abs(rng.normal(size=(30, 4)))  # whose units, once open, are so on all samples
    options = {"X": X, "y": rng.integers(2, size=30), "hidden_units": 3, "steps": 200}
    ib.run("gdln", **options, save=tmp_path)
    stable = 2 * 3 / np.linalg.eigvalsh(X.T @ X / 30)[-1]
    for name in ("network", "gated-network"):
        path = load_file(tmp_path / f"{name}.safetensors")
        assert path["time"][-1] == pytest.approx(200 * 0.9 * stable)
        assert np.all(np.diff(path["loss"]) <= 0)


def test_the_sentence_on_relu_units_says_the_distance_of_the_table() -> None:
    report = ib.run("gdln", n_train=600, steps=60, hidden_units=3)
    (sentence,) = (one.sentence for one in report.verdicts if one.word == "NO THEOREM")
    _, rows = screen_table(report)
    (cells,) = (row for row in rows if row[0].startswith("off the limit"))
    assert f"its weights are {cells[-1]} off the limit of its first gates" in sentence


@pytest.mark.parametrize(("data", "make"), [("ring", make_nlgp), ("pulse", make_single_pulse)])
def test_it_keeps_what_it_takes_to_see_its_numbers_again(data, make, tmp_path) -> None:
    record = results(*QUICK, "--data", data, "--save", tmp_path)
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


@pytest.mark.parametrize("stage", ["training a ReLU network", "training its gated linear twin"])
def test_steps_that_are_done_are_not_done_again(stage, monkeypatch, tmp_path) -> None:
    there = (*QUICK, "--save", tmp_path)
    cut(monkeypatch, there, stage, at=0.5)
    first: dict[str, int] = {}

    def progress(text: str, done: int, of: int) -> None:
        if of > 0:
            first.setdefault(text, done)

    options = {"n_train": 600, "steps": 60, "hidden_units": 3}
    ib.run("gdln", save=tmp_path, resume=True, progress=progress, **options)
    (begun,) = [done for text, done in first.items() if text.startswith(stage)]
    assert begun == 31


def test_a_fit_above_its_tolerance_says_so_in_its_own_words() -> None:
    result = run(*QUICK, "--tol", "1e-17")
    assert result.exit_code == 4
    assert "INACCURATE: inaccurate: the normal equations" in " ".join(result.stderr.split())
    assert "separable" not in result.stderr


def test_it_takes_the_length_scales_in_both_orders() -> None:
    digests = set()
    for data, make, scales in (
        ("ring", make_nlgp, (5.0, 1.0)),
        ("ring", make_nlgp, (1.0, 5.0)),
        ("pulse", make_single_pulse, (3, 7)),
    ):
        given = ",".join(f"{scale:g}" for scale in scales)
        record = results(*QUICK, "--data", data, "--length-scales", given)
        rows = make(600, xi_1=scales[0], xi_0=scales[1], random_state=record["seeds"]["data"])
        assert record["data"]["sha256"] == rows.digest()
        assert record["data"]["description"] == rows.description
        digests.add(record["data"]["sha256"])
    assert len(digests) == 3
    assert results(*QUICK)["data"]["sha256"] in digests
