"""Cases tried again: one by the real path, and the rows that are kept."""

from __future__ import annotations

import pandas as pd
from click.testing import CliRunner

from experiments import retry
from tests.experiments.test_tables_of_pages import rows


def test_a_case_is_tried_and_judged(tmp_path, monkeypatch) -> None:
    path = tmp_path / "retry.csv"
    arguments = ["--only", "interpolants of two scores on", "--out", str(path)]
    done = CliRunner().invoke(retry.main, arguments)
    assert done.exit_code == 0, done.output
    assert pd.read_csv(path).right.tolist() == [True]
    monkeypatch.setattr(retry.np, "eye", lambda n: 2.0 * retry.np.diag([1.0] * n) - 1)
    assert CliRunner().invoke(retry.main, arguments).exit_code == 1


def test_every_case_came_out_as_asked() -> None:
    kept = rows("retry")
    assert kept.tried.tolist() == [one.tried for one in retry.CASES]
    assert kept.asked.tolist() == [one.asked for one in retry.CASES]
    assert kept.right.all()
