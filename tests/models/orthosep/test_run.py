"""`compare --model orthosep`: the theorem's network, and four layers with skips."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.figure import Figure
from safetensors.numpy import load_file

from implicit_bias import solve_orthosep
from implicit_bias.data import orthosep_dataset
from implicit_bias.models import MODELS
from implicit_bias.models.orthosep import halving_phases, layer_rows, plot_layers
from tests.commands import results, run
from tests.long import some_of

FEW = ("--model", "orthosep", "--checkpoints", "4")
TWO_LAYER = (*FEW, "--n-train", "40", "--hidden-units", "8")
RESIDUAL = (*FEW, "--network", "residual")
SMALL = (*RESIDUAL, "--n-train", "60", "--hidden-units", "12", "--steps", "200")


@pytest.fixture(scope="module")
def usual():
    return results(*TWO_LAYER)


def test_with_its_defaults_it_comes_to_its_limit_in_phases_that_follow_from_the_data(usual) -> None:
    assert usual["comparison"]["margin_ratio"] > 0.999
    assert usual["comparison"]["zeta_cosine"] > 0.999
    data = orthosep_dataset(n_train=40, random_state=usual["seeds"]["data"])
    chosen = [usual["options"][name] for name in ("steps", "learning_rate")]
    assert list(zip(*chosen, strict=True)) == list(halving_phases(data.X_train))
    # The trained neurons, as a measure, are the two predicted ones with masses like their norms.
    transport, norms = usual["transport"], solve_orthosep(data.X_train, data.y_train).unit_norms
    assert transport["gap"] < 1e-6 < transport["distance"] < 0.01
    assert transport["positive_b"] == pytest.approx(norms[0] / norms.sum(), rel=1e-6)


@pytest.mark.parametrize(
    ("arguments", "steps"),
    some_of(
        [
            ("--loss exponential", 7750),
            ("--loss exponential --steps 5", 5),
            ("--momentum 0.5", 7750),
            ("--learning-rate 0.05", 3000),
            ("--learning-rate auto", 3000),
            ("--steps 70", 70),
            ("--trainer constant --learning-rate 0.1 --batch-size 10", 1600),
        ],
        one_in=3,
    ),
)
def test_every_option_of_training_is_obeyed_by_itself(arguments, steps, usual) -> None:
    record = results(*TWO_LAYER, *arguments.split())
    assert record["network"]["steps"] == steps == sum(record["options"]["steps"])
    assert record["network"]["log_loss"] != usual["network"]["log_loss"]
    # The loss that is descended is the loss that is spoken of.
    log_inverse = -record["network"]["log_loss"]
    assert record["diagnosis"]["log_inverse_loss"] == pytest.approx(log_inverse)


def test_batches_are_refused_where_they_would_change_the_limit() -> None:
    result = run(*TWO_LAYER, "--batch-size", "10")
    assert result.exit_code == 2
    assert "trainer 'normalised' works with the loss over all samples" in result.stderr


def test_on_other_data_margins_and_accuracies_are_of_one_function() -> None:
    result = run(*TWO_LAYER, "--data", "digits", "--steps", "50", "--details")
    assert "orthogonally separable: samples" in result.stdout and "DOES NOT HOLD" in result.stdout
    lines = {line[:24].strip(): line.split()[2:] for line in result.stdout.splitlines()}
    margins, accuracies = lines["smallest margin"], lines["training accuracy"]
    assert float(accuracies[0].rstrip("%")) < 100
    for margin, accuracy in zip(margins, accuracies, strict=True):
        assert (float(margin) > 0) == (accuracy == "100.00%")


@pytest.mark.long
def test_the_residual_network_shows_what_the_experiment_reports(tmp_path) -> None:
    # M. Phuong, section 3.4.2: all weight matrices near rank two, rows along the max-margin pair.
    record = results(*RESIDUAL, "--save", tmp_path)
    options = record["options"]
    published = {"batch_size": 50, "steps": [5000], "learning_rate": [0.1], "init_scale": 0.05}
    assert options | published | {"hidden_units": 100} == options
    assert record["data"]["n_train"] == 500
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


def test_nothing_is_proved_of_the_residual_network_and_no_theorem_lends_it_numbers() -> None:
    result = run(*SMALL, "--details")
    text = " ".join(result.stdout.split())
    assert "model orthosep: nothing is proved for the residual network" in text
    assert "is homogeneous in its weights (here network residual): DOES NOT HOLD" in text
    assert "constants u" not in result.stdout
    assert "nan" not in result.stdout and "dead units of the network" not in result.stdout
    lines = {line.split("  ")[0]: line for line in result.stdout.splitlines()}
    assert lines["margin ratio (ideal 1)"].split()[-1] == "-"
    assert {"W_1", "W_2", "W_3"} <= set(lines)
    record = results(*SMALL)
    for key in ("margin_ratio", "zeta_cosine", "kkt_cosine"):
        assert record["comparison"][key] is None
    assert "nothing is proved" in record["theorem"]
    assert record["transport"] is None and "transport" not in result.stdout


def test_the_two_layer_network_stays_the_default_with_its_theorem_and_one_layer(usual) -> None:
    assert usual["theorem"] == MODELS["orthosep"].theorem
    assert usual["options"]["network"] == "two-layer" and usual["options"]["init_scale"] == 0.01
    (values,) = usual["layer_singular_values"]
    np.testing.assert_allclose(values, usual["diagnosis"]["singular_values"], rtol=1e-12)


def test_the_singular_values_are_those_of_the_saved_layers(tmp_path) -> None:
    record = results(*SMALL, "--save", tmp_path, "--plot", tmp_path / "x.png")
    saved = load_file(tmp_path / "network.safetensors")
    for k, values in enumerate(record["layer_singular_values"]):
        expected = np.linalg.svd(saved[f"layers.{k}"], compute_uv=False)
        np.testing.assert_allclose(values, expected, rtol=1e-9, atol=1e-12)
    assert (tmp_path / "x.png").stat().st_size > 10_000


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


@pytest.mark.long
def test_leaky_neurons_turn_to_the_two_vectors_of_their_program() -> None:
    record = results(*TWO_LAYER, "--slope", 0.2)
    assert record["comparison"]["margin_ratio"] > 0.999
    assert record["comparison"]["zeta_cosine"] > 0.999
    data = orthosep_dataset(n_train=40, random_state=record["seeds"]["data"])
    limit = solve_orthosep(data.X_train, data.y_train, slope=0.2)
    assert record["limit"]["objective"] == pytest.approx(limit.objective, rel=1e-7)
    # Less than ReLUs take, and neurons of both kinds in the shares of the program.
    assert limit.objective < 0.99 * solve_orthosep(data.X_train, data.y_train).objective
    assert record["transport"]["distance"] < 0.01
    assert record["diagnosis"]["share_dead"] == 0
    held = {one["name"]: one["holds"] for one in record["assumptions"]}
    assert held["both kinds stay"] is True and held["separates"] is True
    assert "support examples span the inputs" not in held


def test_a_kind_of_leaky_neurons_that_has_vanished_is_told() -> None:
    # One neuron has one sign.
    record = results(
        *TWO_LAYER[:-2], "--hidden-units", 1, "--slope", 0.5, "--steps", 200, code=(0, 3)
    )
    held = {one["name"]: one["holds"] for one in record["assumptions"]}
    assert held["both kinds stay"] is False
