"""`compare --model orthosep --network residual`: four layers with skips; nothing is proved."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from click.testing import CliRunner, Result
from matplotlib.figure import Figure
from safetensors.numpy import load_file

from implicit_bias import cli, solve_orthosep
from implicit_bias.data.orthants import orthosep_dataset
from implicit_bias.models import MODELS
from implicit_bias.models.orthosep.diagnosis import layer_rows
from implicit_bias.models.orthosep.figure import plot_layers

RESIDUAL = ("--model", "orthosep", "--network", "residual")
SMALL = (*RESIDUAL, "--n-train", "60", "--hidden-units", "12", "--steps", "200")


def run(*arguments: object) -> Result:
    result = CliRunner().invoke(cli.compare, [str(argument) for argument in arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exc_info
    assert "Traceback" not in result.stderr
    return result


def results(*arguments: object) -> dict[str, Any]:
    result = run(*arguments, "--json", "--quiet")
    assert result.exit_code == 0, result.stderr
    record: dict[str, Any] = json.loads(result.stdout)
    return record


def test_with_its_defaults_it_shows_what_the_experiment_reports(tmp_path) -> None:
    # M. Phuong, section 3.4.2: all weight matrices near rank two, rows along the max-margin pair.
    record = results(*RESIDUAL, "--save", tmp_path)
    options = record["options"]
    assert (options["batch_size"], options["steps"], options["learning_rates"]) == (
        50,
        [5000],
        [0.1],
    )
    assert (options["init_scale"], options["hidden_units"], record["data"]["n_train"]) == (
        0.05, 100, 500,
    )  # fmt: skip
    saved = load_file(tmp_path / "network.safetensors")
    layers = [saved[f"layers.{k}"] for k in range(4)]
    for W in layers[:3]:
        values = np.linalg.svd(W, compute_uv=False)
        assert values[2] < 0.45 * values[1]
        assert np.sum(values[:2] ** 2) > 0.85 * np.sum(values**2)
    data = orthosep_dataset(random_state=record["seeds"]["data"])
    assert data.digest() == record["data"]["sha256"]
    limit = solve_orthosep(data.X_train, data.y_train)
    units = [w / np.linalg.norm(w) for w in (limit.w_plus, limit.w_minus)]
    rows = layers[0] / np.linalg.norm(layers[0], axis=1, keepdims=True)
    nearer = np.maximum(rows @ units[0], rows @ units[1])
    assert np.median(nearer) > 0.9
    diagnosis = record["diagnosis"]
    np.testing.assert_allclose(np.sort(diagnosis["cosines"]), np.sort(nearer), atol=1e-9)
    assert diagnosis["function_cosine"] > 0.99


def test_it_says_that_nothing_is_proved_and_has_no_number_that_a_theorem_would_need() -> None:
    result = run(*SMALL)
    assert result.exit_code == 0
    assert result.stdout.startswith("model orthosep: nothing is proved for the residual network")
    assert "has two layers and is homogeneous in its weights: DOES NOT HOLD" in result.stdout
    assert "balanced" not in result.stdout and "constants u" not in result.stdout
    assert "nan" not in result.stdout and "dead units of the network" not in result.stdout
    lines = {line.split("  ")[0]: line for line in result.stdout.splitlines()}
    assert lines["margin ratio (1 at the limit)"].split()[-1] == "-"
    assert {"W_1", "W_2", "W_3"} <= set(lines)
    record = results(*SMALL)
    for key in ("margin_ratio", "zeta_cosine", "kkt_cosine"):
        assert record["comparison"][key] is None
    assert "nothing is proved" in record["theorem"]


def test_the_two_layer_network_stays_the_default_with_its_theorem_and_one_layer() -> None:
    record = results("--model", "orthosep", "--n-train", "60", "--hidden-units", "12",
                     "--steps", "200", "--learning-rate", "0.1", "--batch-size", "0")  # fmt: skip
    assert record["theorem"] == MODELS["orthosep"].theorem
    assert record["options"]["network"] == "two-layer" and record["options"]["init_scale"] == 0.01
    assert len(record["layer_singular_values"]) == 1
    np.testing.assert_allclose(
        record["layer_singular_values"][0], record["diagnosis"]["singular_values"], rtol=1e-12
    )
    assert record["comparison"]["margin_ratio"] is not None


def test_the_singular_values_are_those_of_the_saved_layers(tmp_path) -> None:
    record = results(*SMALL, "--save", tmp_path, "--plot", tmp_path / "x.png")
    saved = load_file(tmp_path / "network.safetensors")
    for k, values in enumerate(record["layer_singular_values"]):
        expected = np.linalg.svd(saved[f"layers.{k}"], compute_uv=False)
        np.testing.assert_allclose(values, expected, rtol=1e-9, atol=1e-12)
    assert (tmp_path / "x.png").stat().st_size > 10_000


def test_options_that_are_given_are_kept_and_other_models_refuse_the_network() -> None:
    assert results(*SMALL, "--init-scale", "0.2")["options"]["init_scale"] == 0.2
    result = run("--model", "relu", "--network", "residual")
    assert result.exit_code == 2
    assert "`--network residual` is not for the model relu" in result.stderr
    assert "orthosep" in result.stderr


def test_the_table_of_layers_measures_the_distance_from_rank_two() -> None:
    layers = [np.array([4.0, 3.0, 1.5, 0.0]), np.array([2.0, 1.0]), np.array([7.0])]
    assert layer_rows(layers, n_shown=3) == [
        ("W_1", "4, 3, 1.5", "0.500", f"{25 / 27.25:.4f}"),
        ("W_2", "2, 1", "0.000", "1.0000"),
    ]


def test_the_picture_has_a_line_for_every_layer_of_several_values() -> None:
    layers = [np.array([4.0, 2.0, 1.0]), np.array([5.0, 5.0, 0.0]), np.array([7.0])]
    ax = plot_layers(layers, Figure().subplots(), largest=2)
    lines = {line.get_label(): list(line.get_ydata()) for line in ax.lines}
    assert lines["W_1"] == [1.0, 0.5] and lines["W_2"] == [1.0, 1.0]
    assert "W_3" not in lines
