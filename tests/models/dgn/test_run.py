"""`compare --model dgn`: a bound, local limits of several starts, and the kernel of the start."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file

import implicit_bias as ib
from implicit_bias.runs import Seeds
from tests.commands import dataset_of, results, without_times

SMALL: dict[str, Any] = {"n_train": 30, "n_val": 40, "hidden_units": 6, "steps": 150}
SMALL |= {"checkpoints": 8}
RICH = ("--model", "dgn", "--n-train", 30, "--n-val", 40, "--hidden-units", 6, "--steps", 150,
        "--checkpoints", 8)  # fmt: skip
COLUMNS = ("score_cosine", "agreement", "error_limit", "local_agreement", "local_error")


@pytest.mark.long
def test_with_one_hidden_layer_the_bound_is_the_limit_and_every_start_goes_there() -> None:
    report = ib.run("dgn", depth=2, starts=3, **SMALL | {"n_train": 20})
    gates = report.objects["network"].prepare(np.zeros((1, 6))).shape
    assert gates == (1, 6) and report.limit.is_tight()
    assert report.results["n_limits"] == 1
    row = report.row()
    assert row["local_status"] == "LOCAL_OPTIMUM"
    assert row["local_value"] == pytest.approx(row["objective"], rel=1e-7)
    assert row["local_bound_ratio"] == pytest.approx(1, rel=1e-7)
    assert 0.9 < row["margin_ratio"] == pytest.approx(row["local_ratio"], rel=1e-7)


def test_what_is_said_of_a_run_is_true_of_its_saved_files(tmp_path) -> None:
    record = results(*RICH, "--gating", "dlgn", "--starts", 2, "--save", tmp_path)
    data, comparison = dataset_of(record), record["comparison"]
    w1, w2, w3 = (W for _, W in sorted(load_file(tmp_path / "network.safetensors").items()))
    gating = ib.gates.layered.LinearGates.load(tmp_path / "gating.safetensors")
    gates = gating.transform(data.X_train)
    np.testing.assert_array_equal(gates, data.X_train @ gating.normals().T >= 0)
    hidden = gates[:, 6:] * ((gates[:, :6] * (data.X_train @ w1.T)) @ w2.T)
    margin = (data.y_train * (hidden @ w3[0])).min()
    value = (sum((w**2).sum() for w in (w1, w2, w3)) / 3) ** 1.5 / margin
    assert comparison["value"] == pytest.approx(value)
    limit = ib.solve_path_lasso(data.X_train, data.y_train, gates, widths=(6, 6))
    assert comparison["bound"] == pytest.approx(limit.dual_objective, rel=1e-7)
    assert comparison["bound_ratio"] == pytest.approx(limit.dual_objective / value, rel=1e-7)
    local = record["local_limit"]
    assert local["residual"] < 1e-10 and limit.dual_objective < local["value"] < value
    assert [start["start"] for start in record["starts"]] == [1, 2]
    kernel = ib.kernels.neural_path_kernel(data.X_train, gates, widths=(6, 6))
    machine = ib.solve_kernel_svm(kernel, data.y_train)
    new = gating.transform(data.X_val)
    cross = ib.kernels.neural_path_kernel(data.X_val, new, data.X_train, gates, widths=(6, 6))
    error = np.mean(machine.predictor(cross) * data.y_val <= 0)
    assert comparison["classifiers"]["NPK"]["error"] == error


def test_the_run_comes_nearer_to_the_limit_that_its_end_is_next_to() -> None:
    # Other starts are still far from theirs, where the rounding of a machine decides.
    comparison = ib.run("dgn", starts=1, seed=1, **SMALL | {"steps": 600}).comparison
    assert comparison.earlier_same and comparison.distance < 0.9 * comparison.earlier_distance
    assert comparison.local_ratio > 0.999


@pytest.mark.long
def test_random_gates_say_nothing_of_new_inputs() -> None:
    report = ib.run("dgn", gating="random", gate_rate=0.7, data="quadrants", starts=1, **SMALL)
    row = report.row()
    assert (row["gating"], row["status"]) == ("random", "SOLVED")
    assert [row[name] for name in COLUMNS] == [None] * len(COLUMNS)
    assert 0 < row["local_bound_ratio"] < 1


@pytest.mark.long
def test_errors_at_output_scales_follow_the_kernel_of_the_start_up_to_one_over_the_scale() -> None:
    report = ib.run("dgn", regime="lazy", output_scales=(1e2, 1e3, 1e4), **SMALL)
    found = report.results
    for name, slope in found["exponents"].items():
        assert slope == pytest.approx(-1, abs=0.02), name
    assert [float(scale) for scale in report.network] == [1e2, 1e3, 1e4]
    # The law, step by step.
    law = report.limit
    kernel = law.eigenvectors @ np.diag(law.eigenvalues) @ law.eigenvectors.T
    errors = law.start.copy()
    for _ in range(SMALL["steps"]):
        errors -= kernel @ errors / law.eigenvalues[-1]
    left = np.linalg.norm(errors) / np.linalg.norm(law.start)
    assert found["scales"][-1]["remaining"] == pytest.approx(left, rel=1e-3)
    departure = found["departure"]
    assert departure["weight_drift"] > 100 * found["scales"][-1]["weight_drift"]
    assert departure["largest_kernel_ratio"] > 1, "no network linearised at its start has that"


def test_contexts_stand_in_place_of_gates() -> None:
    report = ib.run("dgn", gating="contexts", starts=1, **SMALL | {"hidden_units": 3})
    assert report.row()["contexts"] == 2
    assert report.network.layers[1].shape == (3, 2, 3)
    assert report.comparison.bound_ratio <= report.comparison.local_bound_ratio <= 1


def test_gates_frozen_in_every_layer_stand_beside_a_bound_and_a_local_limit(tmp_path) -> None:
    small = ("--n-train", 40, "--n-val", 50, "--hidden-units", 8, "--steps", "60,140",
             "--learning-rate", "0.05,0.05", "--depth", 3, "--freeze-at", 50,
             "--trainer", "constant")  # fmt: skip
    record = results("--model", "relu", *small, "--save", tmp_path)
    data, frozen = dataset_of(record), record["frozen"]
    gates = ib.gates.NetworkGates.load(tmp_path / "frozen-gating.safetensors").transform(
        data.X_train
    )
    w1, w2, w3 = (W for _, W in sorted(load_file(tmp_path / "frozen-network.safetensors").items()))
    hidden = gates[:, 8:] * ((gates[:, :8] * (data.X_train @ w1.T)) @ w2.T)
    margin = (data.y_train * (hidden @ w3[0])).min()
    value = (sum((w**2).sum() for w in (w1, w2, w3)) / 3) ** 1.5 / margin
    assert frozen["comparison"]["value"] == pytest.approx(value)
    bound = ib.solve_path_lasso(data.X_train, data.y_train, gates, widths=(8, 8))
    assert frozen["limit"]["objective"] == pytest.approx(bound.objective, rel=1e-7)
    local = frozen["local_limit"]
    assert local["residual"] < 1e-10 and bound.dual_objective <= local["value"] < value
    assert (frozen["freeze_at"], frozen["network"]["steps_since"]) == (50, 150)


# Gates of one's own


class Sides:
    """Each unit looks at one input of its own; all layers alike, or of the widths it is told."""

    def __init__(self, n_units: int, widths: tuple[int, ...] | None = None) -> None:
        self.n_units = n_units
        if widths is not None:
            self.widths = widths

    def transform(self, X: Any) -> Any:
        gates = X[:, : self.n_units] > -1
        gates[:, [0, -1]] = True
        return gates


DATA_RNG = np.random.default_rng(3)
OWN_X = DATA_RNG.normal(size=(60, 12))
OWN_Y = np.sign(OWN_X @ np.ones(12))
OWN: dict[str, Any] = {"X": OWN_X[:40], "y": OWN_Y[:40], "steps": 50, "starts": 1, "checkpoints": 4}
OWN |= {"X_val": OWN_X[40:], "y_val": OWN_Y[40:]}


def test_the_model_s_own_gates_given_as_the_user_s_find_the_same() -> None:
    sizes = {"starts": 1, "seed": 1, "n_train": 30, "n_val": 40, "steps": 50, "checkpoints": 4}
    gating = ib.gates.layered.LinearGates(65, widths=(6, 6), random_state=Seeds.from_seed(1).gating)
    named = ib.run("dgn", gating="dlgn", hidden_units=6, **sizes)
    again = ib.run("dgn", gating=gating, **sizes)
    for key in ("limit", "comparison"):
        assert without_times(again.results[key]) == without_times(named.results[key])
    assert again.results["options"]["gating"] == "given"
    assert again.results["options"]["widths"] == (6, 6)


def test_layers_of_a_gating_may_differ_in_width_and_are_bounded_as_they_are() -> None:
    report = ib.run("dgn", gating=Sides(9, (4, 3, 2)), **OWN)
    assert [p.shape for p in report.objects["network"].parameters()] == [
        (4, 12), (3, 4), (2, 3), (1, 2)
    ]  # fmt: skip
    gates = Sides(9).transform(OWN["X"]).astype(float)
    limit = ib.solve_path_lasso(OWN["X"], OWN["y"], gates, widths=(4, 3, 2))
    assert report.comparison.bound == pytest.approx(limit.dual_objective, rel=1e-7)
    row = report.row()
    assert (row["gating"], row["widths"], row["depth"]) == ("Sides", "4,3,2", 4)
    even = ib.run("dgn", gating=Sides(9), depth=4, **OWN)
    assert even.results["options"]["widths"] == (3, 3, 3)
    lazy = {name: value for name, value in OWN.items() if name != "starts"}
    assert ib.run("dgn", gating=Sides(9, (5, 4)), regime="lazy", **lazy).status.name == "SOLVED"


def test_contexts_of_a_gating_make_a_deep_gln() -> None:
    report = ib.run("dgn", gating=ib.HyperplaneContexts(4, 4), **OWN)
    assert [p.shape for p in report.objects["network"].parameters()] == [
        (2, 4, 12), (2, 4, 2), (1, 2)
    ]  # fmt: skip
    assert report.limit.context_sizes.tolist() == [4, 4]


@pytest.mark.parametrize(
    ("gating", "options", "message"),
    [
        (Sides(9), {}, "9 columns, which the 2 gated layers of `depth` 3 cannot share equally"),
        (Sides(9, (4, 4)), {}, r"layers of \(4, 4\) units, and gives 9 columns"),
        (Sides(9, (5, 4)), {"depth": 3}, "`depth` follows from the layers of your `gating`"),
        (Sides(8), {"hidden_units": 4}, "`hidden_units` follows from `gating`"),
        (Sides(8), {"depth": 1}, "without a gated layer"),
        (Sides(8), {"gate_rate": 0.5}, "and this run has `--gating given`"),
        (
            ib.gates.RandomGates(widths=(4, 4)),
            {},
            "a network with such gates does not predict other inputs",
        ),
        (object(), {}, r"`gating` must have `transform\(X\)`"),
    ],
)
def test_gates_that_do_not_come_in_layers_are_refused_with_the_way_out(
    gating, options, message
) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        ib.run("dgn", gating=gating, **OWN, **options)
