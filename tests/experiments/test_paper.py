"""Figures of the papers: published points are those in print, ours those of runs."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import implicit_bias as ib
from experiments.paper import __main__ as command
from experiments.paper.figures import draw
from experiments.paper.points import COLUMNS, of_figure, points_of, published_points
from experiments.paper.settings import FIGURES, Sweep, recipe_grids, sweeps_of


def mean(points: pd.DataFrame, **given: object) -> list[float]:
    """Errors of program and network and labels that differ, in per cent, over seeds."""
    for name, value in given.items():
        points = points[points[name] == value]
    assert len(points) == 3
    shown = points[["error_program", "error_network", "inconsistency"]].astype(float).mean()
    return [round(100 * one, 2) for one in shown]


def test_published_points_are_those_in_print() -> None:
    gln = published_points("gln")
    size = {"hidden_units": 20, "contexts": 2, "n_train": 500, "cutoffs": "median"}
    assert mean(gln, program="svm-gln", **size) == [14.56, 15.49, 17.7]
    relu = published_points("relu")
    wide = {"hidden_units": 50, "n_train": 500, "momentum": 0.9}
    printed = {"svm-hl": [12.07, 12.08, 0.77], "svm-lc": [12.91, 12.08, 6.97],
               "svm-rc": [14.38, 12.08, 11.48]}  # fmt: skip
    for name, expected in printed.items():
        assert mean(relu, program=name, **wide) == pytest.approx(expected, abs=0.02)


def test_the_full_sweeps_are_the_48_and_24_settings_of_the_paper() -> None:
    (recipe,) = recipe_grids(FIGURES["gln-4"], full=True)
    grids = {"recipe": recipe}
    for name in ("gln-4", "relu-5"):
        grids |= {part.name: part.grid for part in sweeps_of(FIGURES[name], full=True)}
    sizes = {name: np.prod([len(values) for values in grid.values()])
             for name, grid in grids.items()}  # fmt: skip
    # Three seeds; as published and brought to the limit, whose steps have no momentum.
    assert sizes["recipe"] == sizes["gln-to-the-limit"] == 48 * 3
    assert sizes["relu"] == 2 * sizes["relu-to-the-limit"] == 24 * 3
    # The best gated linear network beside ReLU networks is none of another figure.
    (beside,) = recipe_grids(FIGURES["relu-3"], full=True)
    assert all(set(values) <= set(grids["recipe"][name]) for name, values in beside.items())


def test_a_relu_network_has_a_point_beside_every_machine() -> None:
    (part, limit) = sweeps_of(FIGURES["relu-3"], full=False)
    cell = {"hidden_units": 6, "n_train": 40, "seed": 1, "momentum": 0.5}
    report = ib.run("relu", **cell, **part.options, data="digits", n_val=60, steps=60)
    points = points_of(pd.DataFrame([report.row()])).set_index("program")
    assert list(points.index) == ["svm-rc", "svm-lc", "svm-hl", "gates-only"]
    assert "local_limit" not in report.results  # and nothing is found that no figure shows
    network = report.comparison
    assert set(points["error_network"]) == {network.error_network}
    assert set(points["n_val"]) == {60} and set(points["momentum"]) == {0.5}
    for program, machine in zip(
        points.itertuples(), (network.rc, network.lc, network.hl, network.gates_only), strict=True
    ):
        known = (program.error_program, program.inconsistency, program.margin_ratio)
        own = (machine.error, 1 - machine.agreement, machine.margin_ratio)
        assert known == pytest.approx(own, nan_ok=True), program
    assert points.loc["svm-hl", "status"] == "SOLVED" and points.loc["svm-hl", "gap"] < 1e-8
    assert not np.isnan(points.loc["svm-lc", "margin_ratio"])
    # "to the limit" is of steps that have no momentum
    assert "momentum" not in {**limit.grid, **limit.options}


def test_a_figure_has_its_own_points_and_the_best_of_other_networks() -> None:
    ours = of_figure(published_points("gln"), FIGURES["relu-3"])
    assert set(ours["program"]) == {"svm-gln"} and set(ours["contexts"]) == {2}
    assert ours["hidden_units"].max() == 50 and set(ours["cutoffs"]) == {"median"}
    assert of_figure(published_points("relu"), FIGURES["gln-2"]).empty
    for of, name in (("gln", "gln-4"), ("relu", "relu-5")):
        points = published_points(of)
        assert len(of_figure(points, FIGURES[name])) == len(points)


def test_a_panel_of_errors_by_size_has_means_over_seeds() -> None:
    sizes = {"hidden_units": [10, 10, 20], "n_train": 500, "contexts": 2, "cutoffs": "median",
             "momentum": 0.0, "trainer": "constant", "inconsistency": 0.1}  # fmt: skip
    found = {"error_program": [0.1, 0.2, 0.3], "error_network": [0.2, 0.3, 0.9]}
    points = pd.DataFrame({"program": "svm-gln", "seed": [1, 2, 1], **found, **sizes})
    picture = draw(FIGURES["gln-2"], points, points.assign(error_program=0.5), data="digits")
    assert (
        "; 1 network that was thrown off and stays at chance is left out" in picture.get_suptitle()
    )
    every = [ax for part in picture.subfigs for ax in part.axes]
    # "a: the error of the network against that of the program; b: inconsistency against the former"
    for ax, x, y in ((every[0], 50, 25), (every[1], 25, 10)):
        hollow = [one.get_xydata() for one in ax.lines if one.get_markerfacecolor() == "none"]
        assert any(len(one) and one[0] == pytest.approx([x, y]) for one in hollow)
    (panel,) = [ax for ax in every
                if ax.get_title("left") == "median cutoffs, 2 contexts, 500 samples"]  # fmt: skip
    drawn = {one.get_label(): one.lines for one in panel.containers}
    for name, mean, deviation in (("SVM-GLN", 15, 50**0.5), ("network", 25, 50**0.5)):
        points, _, (bars,) = drawn[name]
        assert points.get_xydata() == pytest.approx(np.array([[10, mean]]))
        expected = np.array([[10, mean - deviation], [10, mean + deviation]])
        assert bars.get_segments()[0] == pytest.approx(expected)


def test_a_figure_is_drawn_from_rows_that_a_second_call_keeps(tmp_path, monkeypatch) -> None:
    grid = {"hidden_units": [2], "contexts": [2], "n_train": [40], "seed": [1],
            "cutoffs": ["median"]}  # fmt: skip
    monkeypatch.setattr(command, "recipe_grids", lambda figure, full: [grid])
    monkeypatch.setattr(command, "RECIPE", {"trainer": "constant", "steps": 40, "n_val": 60})
    none = Sweep("shallow-gln", "shallow-gln", grid, {"steps": 0, "n_val": 60})
    monkeypatch.setattr(command, "sweeps_of", lambda figure, full: [none])
    typed = ["gln-2", "--folder", str(tmp_path / "runs"), "--out", str(tmp_path)]
    first = CliRunner().invoke(command.main, typed)
    assert first.exit_code == 0, first.output
    kept = (tmp_path / "paper_gln_2_digits.csv").read_text()
    points = pd.read_csv(tmp_path / "paper_gln_2_digits.csv")
    assert tuple(points) == COLUMNS
    assert list(points["program"]) == ["svm-gln", "svm-l2", "shallow"]
    assert points["error_network"].isna().tolist() == [False, False, True]
    assert (tmp_path / "paper_gln_2_digits.png").stat().st_size > 20_000
    monkeypatch.setattr(ib, "run", None)
    again = CliRunner().invoke(command.main, typed)
    assert again.exit_code == 0 and (tmp_path / "paper_gln_2_digits.csv").read_text() == kept
    printed = CliRunner().invoke(command.main, [*typed, "--printed"])
    assert printed.exit_code == 0 and "svm-l2-printed" in printed.output
    sweep = ib.sweep

    def failing(*given, **options):
        done = sweep(*given, **options)
        return SimpleNamespace(failures={0: "why"}, frame=done.frame, finished=True)

    monkeypatch.setattr(ib, "sweep", failing)
    failed = CliRunner().invoke(command.main, typed)
    assert failed.exit_code == 1 and "not in the figure: 1" in failed.output


def test_an_interrupt_keeps_the_networks_that_were_trained(tmp_path, monkeypatch) -> None:
    def interrupted(grid, given, path, *, jobs):
        path.parent.mkdir(parents=True)
        path.write_text("hidden_units\n")
        yield "hidden_units 2"
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "recipe_points", interrupted)
    typed = ["gln-2", "--folder", str(tmp_path / "runs"), "--out", str(tmp_path)]
    result = CliRunner().invoke(command.main, typed)
    assert result.exit_code == 130 and "recipe.csv has the networks" in result.output
