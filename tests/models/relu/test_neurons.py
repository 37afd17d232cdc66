"""Neurons of a trained ReLU network beside those of limits, and networks of several starts."""

from __future__ import annotations

import numpy as np
import pytest

import implicit_bias as ib
from implicit_bias.models.relu import compare_with_limit
from tests.commands import cut, results, run, saved_arrays, without_times
from tests.oracles import PLANE, PLANE_LABELS

# Theorem 3.1 on these six points: w_+ = (1/3, 1/3) and w_- = (-1, 0).
TWO = ib.equivalence.ReLUWeights.from_arrays([[[1 / 3, 1 / 3], [-1.0, 0.0]], [[1.0, -1.0]]])


@pytest.fixture(scope="module")
def plane() -> ib.Report:
    return ib.run(
        "relu", X=PLANE, y=PLANE_LABELS, X_val=PLANE, y_val=PLANE_LABELS, hidden_units=6, starts=2,
        trainer="normalised", momentum=0.0, init="balanced", init_scale=0.05,
        steps=(400, 200), learning_rate=(0.1, 0.02),
    )  # fmt: skip


@pytest.mark.long
def test_on_orthogonally_separable_points_limit_and_local_limit_are_the_two_neurons(plane) -> None:
    (found,) = (one for one in plane.findings if one.key == "neurons")
    beside = found.views.objects["neurons"]
    assert set(beside) == {"SVM-LC", "local limit"}
    for one in beside.values():
        # Gates that they set themselves: both are limits of a ReLU network.
        assert one.own_gates == 1
        assert ib.equivalence.measure_distance(one.weights, TWO).distance < 1e-6
        direct = ib.equivalence.measure_distance(plane.network, TWO)
        assert one.transport.distance == pytest.approx(direct.distance, abs=1e-6)
        assert 0 < one.transport.distance < 0.1 and one.transport.gap < 1e-7
    row = plane.row()
    assert row["neuron_distance"] == beside["SVM-LC"].transport.distance
    assert row["local_neuron_distance"] == beside["local limit"].transport.distance
    record = plane.results["neurons"]["SVM-LC"]
    assert record["n_neurons"] <= 6 and record["own_gates"] == 1
    shown = {label: cells for label, *cells in found.views.tables[0].rows}
    assert shown["gates that they set as learned (ideal 100%)"] == ["100.00%"] * 2


def test_a_copy_with_frozen_gates_is_near_the_units_of_its_limit(plane) -> None:
    neurons = plane.results["frozen"]["neurons"]
    assert neurons["own_gates"] == 1 and 0 < neurons["transport"]["distance"] < 0.1


def test_starts_that_reach_one_network_are_told_so(plane) -> None:
    (found,) = (one for one in plane.findings if one.key == "starts")
    first, second = found.views.objects["networks"]
    # Not one network as weights, nor as units in their order, but modulo symmetry.
    assert np.linalg.norm(first.zeta().detach() - second.zeta().detach()) > 1
    groups = plane.results["starts"]["networks"]
    assert groups["labels"] == [0, 0] and groups["within"] < 0.1
    assert plane.results["starts"]["limits"]["distances"][0][1] < 1e-6
    assert (plane.row()["n_networks"], plane.row()["n_limits"]) == (1, 1)
    (table,) = found.views.tables
    assert table.title.startswith("which network is reached: 1 from 2 starts")
    assert [row[3] for row in table.rows] == ["#1", "#1"] == [row[-1] for row in table.rows]


def test_a_limit_that_does_not_set_its_own_gates_is_said_not_to() -> None:
    # One unit, open on the second point alone, that has to give -1 there: its coefficient is
    # (0, -1), so that with a positive output weight its neuron would be closed there and open, at
    # pre-activation 0, on the first.
    X, y, gates = np.array([[0.0, 1.0]]), np.array([-1.0]), np.array([[1.0]])
    limit = ib.solve_frelu_svm(X, y, gates)
    for sign, own in ((1.0, 0.0), (-1.0, 1.0)):
        trained = ib.equivalence.ReLUWeights.from_arrays([[[0.6, 0.8]], [[sign]]])
        found = compare_with_limit(limit, trained, X, gates)
        assert found.own_gates == own
        np.testing.assert_allclose(found.weights.matrices[0] / sign, [[0, -1]], atol=1e-7)
        # The angle between (0.6, 0.8) and (0, -sign).
        expected = np.hypot(0.6, 0.8 + sign)
        assert found.transport.distance == pytest.approx(expected, abs=1e-6)


def test_starts_of_a_network_with_skips_are_refused() -> None:
    done = run("--model", "orthosep", "--network", "residual", "--starts", "2")
    assert done.exit_code == 2 and "is for `--network two-layer`" in done.stderr


def test_theorem_3_1_every_start_of_orthosep_reaches_the_prediction() -> None:
    report = ib.run(
        "orthosep", X=PLANE, y=PLANE_LABELS, X_val=PLANE, y_val=PLANE_LABELS, hidden_units=8,
        starts=2, steps=(400, 200), learning_rate=(0.1, 0.02),
    )  # fmt: skip
    starts = report.results["starts"]
    assert starts["networks"]["labels"] == [0, 0] and starts["limits"] is None
    far = starts["far"]["off the prediction"]
    assert max(far) < 0.05 and far[0] == report.row()["neuron_distance"]
    assert far[1] == pytest.approx(
        ib.equivalence.measure_distance(report.objects["networks"][1], TWO).distance
    )


def test_a_run_cut_in_its_second_start_goes_on_there(monkeypatch, tmp_path) -> None:
    arguments = (
        "--model", "relu", "--data", "quadrants", "--n-train", "20", "--n-val", "20",
        "--hidden-units", "5", "--trainer", "constant", "--steps", "60",
        "--learning-rate", "0.05", "--starts", "2",
    )  # fmt: skip
    whole = results(*arguments, "--save", tmp_path / "whole", code=(0, 3, 5))
    there = (*arguments, "--save", tmp_path / "cut")
    cut(monkeypatch, there, "training a ReLU network of 5 units from 1 further start", at=0.5)
    again = results(*there, "--resume", code=(0, 3, 5))
    assert without_times(again) == without_times(whole)
    assert whole["starts"]["networks"]["distances"][0][1] > 0.01
    expected, found = saved_arrays(tmp_path / "whole"), saved_arrays(tmp_path / "cut")
    assert any(name.startswith("network-2.safetensors ") for name in expected)
    for name, array in expected.items():
        np.testing.assert_array_equal(found[name], array, err_msg=name)
