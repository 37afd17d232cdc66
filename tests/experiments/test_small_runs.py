"""Experiments behind the tables of pages, by the real path on small sizes: a fact of each."""

from __future__ import annotations

import click
import numpy as np
import pandas as pd
import pytest
import torch
from click.testing import CliRunner

import implicit_bias as ib
from experiments import (
    activations,
    batched,
    convolution_figure,
    coverage,
    coverage_runs,
    deep_limits,
    descent,
    examples,
    finite_time,
    kernel_speed,
    limits,
    next_token,
    norms,
    printed,
    relu_speed,
    step_cost,
    sweeps,
    tables,
)
from implicit_bias.sweeps import read_rows
from tests.experiments.test_tables_of_pages import rows


def test_networks_side_by_side_are_timed_beside_the_same_networks_alone(monkeypatch) -> None:
    for name, value in (("N_SAMPLES", 8), ("N_INPUTS", 4), ("STEPS", 3)):
        monkeypatch.setattr(batched, name, value)
    first, second = batched.networks("gln", 2, 2, "cpu")
    assert not torch.equal(first.w1, second.w1)
    row = batched.measure("frelu", 2, "constant", 0, n_runs=2, repeats=1, device="cpu")
    assert row["batch_size"] == 8
    assert row["ratio"] == pytest.approx(row["ms_a_step_alone"] / row["ms_a_step_together"])


def test_bars_cover_what_goes_on_as_it_went_and_not_what_turns_round() -> None:
    step = np.unique(np.geomspace(10, 100_000, 81).astype(int)).astype(float)
    u = 1 / np.log(step)
    ones = np.ones((len(step), 1))
    case = coverage_runs.Case("linear", "digits", "dual")
    covered = {}
    for name, late in (("goes on", 0.0), ("turns round", 0.4)):
        ratio = 1 - 0.5 * u - late * (step > 20_000)
        series = coverage_runs.Series(step, -np.log(step), ratio, ones, ones)
        found = pd.DataFrame(coverage.rows(case, 1, {"orthogonal": series}))
        assert found.times.tolist() == [10, 20] and set(found.status) == {"ESTIMATED"}
        covered[name] = coverage.summary(found).loc["linear", "dual"].covered_20
    assert covered == {"goes on": 1.0, "turns round": 0.0}


def test_gates_of_the_first_layer_alone_have_a_bound_that_starts_attain(monkeypatch) -> None:
    monkeypatch.setattr(deep_limits, "N", 10)
    monkeypatch.setattr(deep_limits, "STEPS", 100)
    (row,) = deep_limits.rows_of(deep_limits.Case("first layer", (3, 2)), 1)
    assert row["bound"] <= row["value"] * (1 + 1e-9) <= row["network"] * (1 + 1e-6)
    assert row["factor"] == pytest.approx(1, abs=1e-6) and row["limit"] == 1
    assert deep_limits.draw(pd.DataFrame([row])).axes


@pytest.mark.long
def test_a_student_follows_its_flow_on_the_way_to_its_limit(monkeypatch) -> None:
    monkeypatch.setattr(descent, "TEMPERATURES", (4.0,))
    (found,) = descent.student_rows(n_train=30)
    assert found["path_error"] < 0.02 < found["limit_error"] < 0.5
    assert found["score_cosine"] > 0.99 and found["risk"] >= found["risk_limit"]


def gln_case(n_units: int) -> finite_time.Case:
    data = ib.load_digits(n_train=60, n_val=200, random_state=1)
    gating = ib.HyperplaneContexts(n_units, 2, random_state=1).fit(data.X_train)
    return finite_time.Case(data, gating, 1)


def test_the_groups_of_the_published_program_are_right_for_one_unit_alone() -> None:
    for n_units, same in ((1, True), (3, False)):
        train, held_out = gln_case(n_units).samples()
        _, wrong = printed.wrong_groups(train, held_out, 2)
        limit = ib.solve_gln_svm(*train, n_contexts=2).require()
        right = limit.predictor(held_out.X, held_out.gates)
        assert np.allclose(wrong, right, atol=1e-4 * np.abs(right).max()) == same


def test_the_machine_at_the_shares_of_the_limit_is_the_limit() -> None:
    train, held_out = gln_case(3).samples()
    limit = ib.solve_gln_svm(*train, n_contexts=2).require()
    network = ib.GLN.from_zeta(limit.zeta)
    machine = finite_time.own_shares(network, train, held_out)
    right = limit.predictor(held_out.X, held_out.gates)
    np.testing.assert_allclose(machine, right, atol=1e-3 * np.abs(right).max())


def test_both_ways_lead_to_one_kernel() -> None:
    row = kernel_speed.row(6, 5, 3, 1)
    assert row["difference"] < 1e-12
    assert row["ratio"] == pytest.approx(row["jacobian_seconds"] / row["layerwise_seconds"])


def test_a_run_of_the_frontier_has_its_limit_and_its_way_there() -> None:
    options = {"n_train": 40, "n_val": 40, "steps": (200,), "trainer": "momentum"}
    row, way = limits.run(limits.Case("linear", options), 1, None)
    assert row["status"] == "SOLVED" and row["steps"] == 200
    assert way.margin_ratio.iloc[-1] == pytest.approx(row["margin_ratio"]) and row["gap"] < 1e-6
    assert 0 < row["margin_ratio"] <= 1 + 1e-9


@pytest.mark.long
def test_a_decoder_in_two_parts_is_nearer_than_one_that_descends() -> None:
    found = pd.DataFrame(next_token.courses(steps=100, descent_steps=100))
    last = found[found.steps == 100].set_index(["context", "network"]).margin_ratio
    for context in (1, 2):
        assert last[context, "in two parts"] > 0.95 > 0.5 > last[context, "descent"]


def test_one_unit_leaves_the_two_norms_no_choice() -> None:
    one = norms.row(None, 60, (1, 2), 1)
    assert one["gln_error"] == one["l2_error"]
    several = norms.row(None, 60, (4, 2), 1)
    assert several["gln_error"] != several["l2_error"]
    assert max(several["gln_gap"], several["l2_gap"]) < 1e-6


def test_the_timed_program_has_the_optimum_that_clarabel_finds(monkeypatch) -> None:
    monkeypatch.setattr(relu_speed, "STEPS", 100)
    row = relu_speed.row(30, 10)
    assert abs(row["clarabel_difference"]) < 1e-5 and row["first_gap"] < 1e-6
    assert row["gap"] < 1e-6 and 0 < row["live"] <= 10


def test_the_passes_that_steps_are_measured_by_have_one_gradient() -> None:
    network, data = step_cost.problem(20, 5, "cpu")
    by_autograd = step_cost.by_autograd(network, data)()
    by_hand = step_cost.by_hand(network, data)()
    for mine, other in zip(by_hand, by_autograd, strict=True):
        # By hand the head is left out of the gradient of the first layer's scores.
        assert mine.numel() == other.numel()
        assert torch.allclose(mine.flatten(), other.flatten(), atol=1e-9)


def test_stages_of_a_sweep_are_of_all_its_cells(tmp_path) -> None:
    stages = list(sweeps._swept("small", 3, tmp_path))
    assert [one["stage"] for one in stages] == ["small: planned", "small: done, into the table"]
    assert len(read_rows(tmp_path)) == 3 == stages[-1]["cells"]


def test_the_picture_of_features_has_figures_3_3_and_3_4() -> None:
    tables = {name: rows(f"convolution_{name}_digits") for name in ("layers", "heads", "neurons")}
    figure = convolution_figure.draw(tables, "digits")
    assert len(figure.axes) == 6 and all(ax.has_data() for ax in figure.axes[:2])


def test_exchanged_classes_mirror_units_of_erf_and_sigmoid_and_not_rectified_ones() -> None:
    data = ib.datasets.make_nlgp(60, xi_1=5.0, xi_0=1.0, random_state=0)
    start = activations.Units.random(0)
    for name, constant, same in (("erf", 1.0, True), ("sigmoid", 0.0, True), ("relu", 1.0, False)):
        mirrored = activations.Units(-start.w, -start.b, constant - start.c)
        one, loss = activations.train(name, start, data.X, data.y, steps=20)
        other, of_other = activations.train(name, mirrored, data.X, 1 - data.y, steps=20)
        assert torch.allclose(one.w, -other.w, atol=1e-9) == same
        assert (abs(loss - of_other) < 1e-9) == same
    assert activations.fast_share(np.cos(2 * np.pi * np.arange(40) / 10)) < 1e-20
    assert activations.fast_share((-1.0) ** np.arange(40)) == pytest.approx(1)


def test_examples_that_are_run_again_replace_their_rows(monkeypatch, tmp_path) -> None:
    out = tmp_path / "x.csv"
    for name, value in (("classes", 1.0), ("penalties", 3.0), ("classes", 5.0)):
        monkeypatch.setitem(examples.EXAMPLES, name, lambda v=value: iter([("a", "x", v)]))
        done = CliRunner().invoke(examples.main, ["--only", name, "--out", str(out)])
        assert done.exit_code == 0, done.output
    table = pd.read_csv(out).set_index(["example", "case", "quantity"]).value
    assert table.to_dict() == {("penalties", "a", "x"): 3.0, ("classes", "a", "x"): 5.0}


@pytest.mark.parametrize(
    ("given", "size"), [([], 1), (["--full"], 5), (["--full", "--seeds", "2"], 2)]
)
def test_sizes_are_small_and_those_of_the_source_with_full(given, size) -> None:
    seen = []

    @click.command()
    @tables.sizes(seeds=(1, 5))
    def main(seeds: int) -> None:
        seen.append(seeds)

    assert CliRunner().invoke(main, given).exit_code == 0 and seen == [size]
    assert CliRunner().invoke(main, ["--seeds", "0"]).exit_code == 2


def test_an_example_has_the_columns_of_its_row() -> None:
    report, values = examples.row_of("few", "linear", "objective gap kkt_residual",
                                     n_train=30, n_val=30, steps=0)  # fmt: skip
    case, names, numbers = zip(*values, strict=True)
    assert set(case) == {"few"} and names == ("objective", "gap", "kkt_residual")
    assert numbers[0] == report.limit.objective and numbers[1] < 1e-8
    assert np.isnan(numbers[2])  # nothing was trained
