"""The table of goals: what rows say of each, and what it takes to measure them anew."""

from __future__ import annotations

import math
from importlib import import_module
from pathlib import Path

import pandas as pd
import pytest
from click.testing import CliRunner

from experiments import goals
from tests.commands import write_mnist


def goal(most: float, folder: Path, floor: str = "memory") -> tuple[str, ...]:
    one = goals.Goal("a", most, "{:.1f} s", goals.one("times", "seconds", "n == 2"), floor)
    return one.cells(lambda name: pd.read_csv(folder / f"{name}.csv"))


def test_a_goal_is_met_or_says_what_forbids_it(tmp_path) -> None:
    table = pd.DataFrame({"n": [1, 2], "seconds": [9.0, 0.25]})
    table.to_csv(tmp_path / "times.csv", index=False)
    assert goal(0.3, tmp_path) == ("a", "0.3 s", "0.2 s", "met")
    assert goal(0.25, tmp_path)[-1] == "met"
    assert goal(0.2, tmp_path) == ("a", "0.2 s", "0.2 s", "memory")
    table[:1].to_csv(tmp_path / "times.csv", index=False)
    assert goal(0.3, tmp_path) == ("a", "0.3 s", "", "not measured")
    most = goals.largest("times", "seconds", "n > 0")(lambda name: table)
    assert most == 9 and math.isnan(goals.one("times", "n", "n == 7")(lambda name: table))


def test_every_goal_is_measured_by_the_committed_rows_and_met_or_has_a_reason() -> None:
    found = list(goals.lines(goals.RESULTS))
    assert len(found) == len(goals.GOALS) > 15
    for cells in found:
        assert cells[2] and cells[3] not in ("", "not measured"), cells


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--measure"], "--data-dir"),
        (["--measure", "--data-dir", "{mnist}"], "--out FOLDER"),
        (["--out", "{empty}"], "--measure writes it"),
    ],
)
def test_what_is_missing_is_said(words, message, tmp_path) -> None:
    words = [one.format(mnist=write_mnist(tmp_path), empty=tmp_path) for one in words]
    done = CliRunner().invoke(goals.main, words)
    assert done.exit_code == 2 and message in done.output


def test_every_table_of_a_goal_is_written_by_a_command(monkeypatch, tmp_path) -> None:
    ran: list[str] = []

    class Done:
        returncode = 0

    def run(words: list[str]) -> Done:
        ran.append(" ".join(words[2:]))
        return Done()

    monkeypatch.setattr(goals.subprocess, "run", run)
    folder = tmp_path / "new"
    words = ["--measure", "--data-dir", str(write_mnist(tmp_path)), "--out", str(folder)]
    done = CliRunner().invoke(goals.main, words)
    assert "is not there" in done.output  # nothing ran
    for command in ran:
        understood(*command.split())
    for one in goals.GOALS:
        with pytest.raises(Asked) as asked:
            one.measured(ask)
        (name,) = asked.value.args
        assert any(f"{folder}/{name}.csv" in words or f"experiments.{name} " in words
                   for words in ran)  # fmt: skip


def understood(module: str, *words: str) -> None:
    """Let a command read its words, and not begin."""
    found = import_module(module)
    if hasattr(found, "__path__"):
        found = import_module(f"{module}.__main__")
    found.main.make_context(module, list(words))


class Asked(Exception):
    """For a table of this name."""


def ask(name: str) -> pd.DataFrame:
    raise Asked(name)
