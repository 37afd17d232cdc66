"""The table of ratios: both ways are called in turn, and its rows are what came of it."""

from __future__ import annotations

import time

import pandas as pd
import pytest
from click.testing import CliRunner

from experiments import ratios


def spin(seconds: float) -> None:
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


def test_a_ratio_is_of_calls_in_turn() -> None:
    seen: list[str] = []
    row = ratios.compared(
        "a", "1", lambda: seen.append("a") or spin(0.02), "b",
        lambda: seen.append("b") or spin(0.01), 3,
    )  # fmt: skip
    assert seen == ["a", "b"] * 4
    assert row.seconds == pytest.approx(0.02, rel=0.3) and row.ratio == pytest.approx(2, rel=0.4)


def test_rows_are_written_as_they_are_said(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(ratios, "COMPARISONS", (lambda rounds: ratios.surfaces(rounds),))
    done = CliRunner().invoke(ratios.main, ["--rounds", "1", "--out", str(tmp_path)])
    assert done.exit_code == 0 and "chords on one line" in done.output
    (row,) = pd.read_csv(tmp_path / "ratios.csv").to_dict("records")
    assert row["ratio"] < 0.5 and row["seconds"] < row["other_seconds"]


def test_small_programs_of_every_comparison_of_solves_are_solved() -> None:
    for rows in (ratios.few_dimensions(1, n=500, D=3), ratios.sparse_inputs(1, n=60, D=2000)):
        assert all(row.seconds > 0 and row.other_seconds > 0 for row in rows)
