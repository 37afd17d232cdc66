"""The table of peers: every peer states the program, and rows say what came of it."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from experiments.speed import growth, race
from experiments.speed.__main__ import main
from experiments.speed.cases import gaussian_program, halves_frelu, halves_gln
from experiments.speed.families import GROWTHS
from experiments.speed.finite import FiniteCase, time_finite
from experiments.speed.gln import required_flops
from experiments.speed.norms import digits, time_norms
from experiments.speed.peers import OURS, PEERS, Peer, gap_of, gap_with_intercept
from experiments.speed.race import Rows, markdown, run_peers
from experiments.speed.timing import Ended, OverTheLimit, forget_peak, in_child, peak_mib
from solvers import GatedRows, solve
from tests.oracles import hard_margin
from tests.problems import gln_construction, linear_program

PROGRAM = gaussian_program(60, 4)
A = PROGRAM.design.X * PROGRAM.y[:, None]


@pytest.mark.parametrize("peer", [p for p in PEERS if p.installed], ids=lambda p: p.name)
def test_a_peer_states_the_program_and_its_pair_is_certified(peer) -> None:
    answer = peer.run(PROGRAM, 1e-8)
    bound = 1 / np.linalg.norm(hard_margin(A))  # the best margin
    gap = peer.gap(PROGRAM, answer, 1 / bound)
    assert gap < 1e-4
    if peer.gap is gap_of:
        w = answer[0].ravel()
        assert (A @ w).min() / np.linalg.norm(w) == pytest.approx(bound, rel=1e-4)


def test_a_free_intercept_has_the_gap_of_the_nearest_points_of_both_hulls() -> None:
    # Rows of one label and, as the classifier sees them, of the other in turns: (2, 1), (0, -1).
    program = linear_program([[2, 1], [0, 1], [3, 1], [1, 4]], [1, 1, 1, 1])
    # Of the hulls of (2, 1), (3, 1) and of (0, -1), (-1, -4) the points (2, 1), (0, -1) are
    # nearest: w = (2, 2) / 4 and equal multipliers.
    w, lam = np.array([[1.0, 1.0]]), np.array([1.0, 1.0, 0.0, 0.0])
    assert gap_with_intercept(program, (w, lam), np.nan) == pytest.approx(0, abs=1e-12)
    off = np.array([1.0, 0.0])
    # w = (1, 0): half the distance 2 of the classes along it, against half of sqrt(8).
    assert gap_with_intercept(program, (off, lam), np.nan) == pytest.approx(np.sqrt(2) - 1)


def _stub(name: str, run, tolerances: tuple[float, ...] = (1e-4, 1e-8)) -> Peer:
    return Peer(name, "numpy", run, tolerances)


def _forever(program, tol):
    while program.n_samples == len(A):  # not where imports are warmed up
        time.process_time()
    return None, None


def test_rows_say_what_was_reached_and_stay_when_the_command_runs_again(
    tmp_path, monkeypatch, capsys
) -> None:
    def loose(program, tol):
        solution = solve(program)
        return solution.primal + 1e-3 * np.abs(solution.primal).max(), solution.dual

    ours = next(peer for peer in PEERS if peer.name == OURS)
    absent = replace(ours, name="absent", package="no_such_package")
    stubs = (ours, _stub("loose", loose), _stub("endless", _forever), absent)
    monkeypatch.setattr(race, "PEERS", stubs)
    monkeypatch.setattr(race, "machine", lambda: "here")
    out = tmp_path / "peers.csv"
    rows = run_peers({"small": lambda: PROGRAM}, out, repeats=2, limit=1.0)
    said = capsys.readouterr().out
    assert "absent: not installed" in said
    found = {(row.solver, row.target): row for row in rows}
    assert all(found[OURS, t].status == "reached" and found[OURS, t].gap <= t for t in race.TARGETS)
    assert {row.repeats for row in rows if row.solver == OURS} == {2}
    assert found["loose", 1e-8].status == "not reached" and found["loose", 1e-8].gap > 1e-8
    assert found["endless", 1e-4].status == "over 1 s" and found["endless", 1e-4].repeats == 0
    written = out.read_text()
    again = run_peers({"small": lambda: PROGRAM}, out, repeats=2, limit=1.0)
    assert "small:" not in capsys.readouterr().out and out.read_text() == written
    assert {row.key for row in again} == {row.key for row in Rows(out).by_key.values()}
    assert "| endless | over 1 s |" in markdown(again, 1e-4)


def test_a_child_hands_over_what_it_makes_and_how_it_ended() -> None:
    assert list(in_child(lambda: range(3), 10)) == [0, 1, 2]
    with pytest.raises(OverTheLimit, match=r"within 0\.3 s"):
        list(in_child(lambda: [_forever(PROGRAM, 1.0)], 0.3))
    with pytest.raises(Ended, match="ZeroDivisionError"):
        list(in_child(lambda: [1 // 0], 10))


def test_the_floor_counts_every_set_of_groups_that_the_solver_works_on() -> None:
    with growth.flops_within() as flops:
        iterations = solve(halves_gln(None, (3, 2, 40))).iterations
    assert flops == [required_flops((3, 2, 40), 65, iterations)]
    many = gln_construction().program
    with growth.flops_within() as flops:
        solve(many, settings=growth_settings())
    assert len(flops) > 1 and min(flops) > 0
    with growth.flops_within() as flops:
        solve(PROGRAM)  # of one group
    assert flops == []


def growth_settings():
    from solvers import Settings

    return Settings(group_set_from=1)


def _power(family: str, letter: str, value: int, seconds: float, mib: float) -> dict:
    return {"family": family, "held": f"({letter})", "letter": letter, "value": value,
            "status": "SOLVED", "gap": np.nan, "cpu_seconds": seconds, "floor_seconds": np.nan,
            "peak_mib": mib, "machine": ""}  # fmt: skip


def test_a_growth_is_foretold_by_the_slope_of_its_last_points() -> None:
    square = [_power("square", "n", n, 3e-6 * n**2, 4e-3 * n) for n in (1000, 2000, 4000)]
    first = _power("square", "n", 100, 5.0, 700.0)  # no part of the slope
    cubic = [_power("cubic", "K", K, 1e-5 * K**3, 0.25) for K in (50, 100, 200)]
    found = list(growth.summary(pd.DataFrame([first, *square, *cubic])))
    assert found == [
        ["square (n)", "4,000", "solved", "48", "n^2.0", "16", "n^1.0",
         "80 min, 160 MiB", "Dask", "5.6 days, 1,600 MiB", "Slurm"],
        ["cubic (K)", "200", "solved", "80", "K^3.0", "0", "K^0.0",
         "22 h, 1 MiB", "Slurm", "2.5 years, 1 MiB", "none: time"],
    ]  # fmt: skip
    assert growth.engine(1.0, 1e6) == "none: memory" and growth.engine(600, 4096) == "joblib"


def test_growths_are_measured_in_processes_and_rows_stay(tmp_path, monkeypatch, capsys) -> None:
    named = [(one.family, one.held) for one in GROWTHS]
    assert len(set(named)) == len(named)
    assert all(one.letter in one.held for one in GROWTHS)
    monkeypatch.setattr(growth, "machine", lambda: "here")
    monkeypatch.setattr(growth, "dgemm_rate_of_one_thread", lambda: 1e9)
    monkeypatch.setattr(growth, "COLUMNS", 1)
    small = {"GLN": (20, 40), "distillation": (30, 60)}
    few = [replace(one, values=small[one.family], further=()) for one in GROWTHS
           if one.family in small and one.letter == "n"]  # fmt: skip
    out = tmp_path / "growth.csv"
    growth.run_growth(None, out, few)
    table = pd.read_csv(out)
    assert table.status.tolist() == ["SOLVED"] * 4 and (table.cpu_seconds > 0).all()
    assert table.gap.notna().tolist() == table.floor_seconds.notna().tolist()
    assert table.gap.notna().tolist() == [True, True, False, False]
    assert (tmp_path / "growth.png").stat().st_size > 1000
    assert "| GLN (20, 2, n) | 40 |" in capsys.readouterr().out
    written = out.read_text()
    monkeypatch.setattr(growth, "draw", lambda *_: None)
    growth.run_growth(None, out, few)
    assert out.read_text() == written


def test_a_peak_that_is_forgotten_is_not_counted() -> None:
    def peaks():
        np.ones(50 * 2**17)  # 50 MiB
        yield peak_mib()
        forget_peak()
        yield peak_mib()

    before, after = in_child(peaks, 10)
    assert after < before - 40


def test_sizes_and_a_missing_folder_are_refused_with_the_way_out() -> None:
    assert "H,C,n" in CliRunner().invoke(main, ["--size", "1,2"]).output
    assert "--data-dir" in CliRunner().invoke(main, []).output


def test_the_solvers_of_every_norm_come_to_one_optimum() -> None:
    image = digits(120)
    # A few of three digits: small, and separable.
    few = np.flatnonzero(image.labels < 3)[:24]
    image = replace(image, X=image.X[few], labels=image.labels[few], n_classes=3)
    rows = list(time_norms(image, ("l2", "linf"), ("interior-point", "highs", "liblinear")))
    assert [(row.norm, row.solver) for row in rows] == [
        ("l2", "interior-point"), ("l2", "liblinear"), ("linf", "interior-point"),
        ("linf", "highs"),
    ]  # fmt: skip
    assert [row.outcome for row in rows] == ["SOLVED", "COEFFICIENTS", "SOLVED", "SOLVED"]
    assert rows[1].objective == pytest.approx(rows[0].objective, rel=1e-3)
    assert 0 < rows[1].gap < 1e-3
    assert rows[2].objective == pytest.approx(rows[3].objective, rel=1e-8)
    assert all(row.cpu_seconds > 0 and row.l2_units > 0 for row in rows)
    gated = GatedRows(halves_frelu(None, 60, 12), (12, 65))
    rows = list(time_norms(gated, ("linf", "l1"), ("interior-point", "highs")))
    assert [row.outcome for row in rows] == ["SOLVED"] * 4 and {row.units for row in rows} == {12}
    for ours, theirs in (rows[:2], rows[2:]):
        assert ours.objective == pytest.approx(theirs.objective, rel=1e-8)


@pytest.mark.parametrize(("loss", "norm"), [("squared", "l1"), ("logistic", "ridge")])
def test_penalised_fits_beside_their_peers(loss, norm) -> None:
    found = {row.solver: row for row in time_finite(FiniteCase(30, 4, 0, loss, norm, 0.05), 60.0)}
    assert len(found) >= 3 and all(row.outcome == "returned" for row in found.values())
    assert all(row.gap < 1e-5 for row in found.values()) and found["solve_fit"].gap < 1e-9
