"""`python -m experiments.exit_heads`: rows, the picture, and what the thesis says otherwise."""

from __future__ import annotations

import math

import pandas as pd
import pytest
from click.testing import CliRunner

from experiments import exit_heads


def test_every_part_writes_its_rows_and_the_picture_is_drawn(monkeypatch, tmp_path) -> None:
    monkeypatch.setattr(exit_heads, "LABELS", (5,))
    monkeypatch.setattr(exit_heads, "STEPS", 150)
    some = {name: exit_heads.COURSES[name] for name in ("exit-wise", "tau = 1", "annealed")}
    monkeypatch.setattr(exit_heads, "COURSES", some)
    done = CliRunner().invoke(exit_heads.main, ["--draws", "1", "--out", str(tmp_path)])
    assert done.exit_code == 0, done.output
    limits, joint = (pd.read_csv(tmp_path / f"exit_heads_{name}.csv") for name in
                     ("limits", "together"))  # fmt: skip
    assert len(limits) == 3 * 3 and len(joint) == 3 * 4
    for rows in (limits, joint):
        assert rows[["budget", "anytime"]].min().min() > 50
        # With one exit there is nothing to choose nor to average.
        first = rows[rows.exit == 1]
        assert (first.budget == first.anytime).all()
    assert limits.error_bound.max() < math.sqrt(1e-4 * 2.1)
    assert (tmp_path / "exit_heads.png").stat().st_size > 50_000


def test_algorithm_6_1_as_printed_has_a_teacher_at_temperature_squared() -> None:
    found = {row["what"].split(" ")[0]: row for row in exit_heads.errata()}
    confident, slope, empty = found["teacher's"], found["slope"], found["(6.4):"]
    assert confident["printed"] == pytest.approx(0.217, abs=2e-3)
    assert confident["right"] == pytest.approx(0.610, abs=2e-3)
    assert slope["right"] < 1e-12 < 0.1 < slope["printed"]
    assert math.isnan(empty["printed"]) and empty["right"] == 0


def test_the_tables_bear_the_text_out_but_for_a_rounded_digit_and_three_ties() -> None:
    tables = exit_heads.reported()
    assert len(tables) == 2 * (4 * 5 + 4 * 11)
    rows = tables.set_index(["table", "data", "exit"]).sort_index()
    assert rows.loc[(6.2, "CIFAR(250)", 11), "exit_wise"] == 87.9
    assert rows.loc[(6.4, "CIFAR(150)", 11), "semi"] == 82.1
    claims = {what: (printed, right) for what, printed, right in exit_heads.claims(tables)}
    assert claims["ImageNet: gains of up to, points"] == (3.8, 3.7)
    assert claims["CIFAR100: budgets at which distillation is no better"] == (0, 3)
    apart = rows.distilled - rows.exit_wise
    # Two entries of one digit, each off by up to half of it: a gain of 3.75 can be among them.
    assert apart.loc[6.1].max() + 2 * 0.05 > 3.75
    equal = apart.loc[6.2][apart.loc[6.2].abs() < 1e-9]
    assert list(equal.index) == [("CIFAR(500)", k) for k in (9, 10, 11)]
    assert (apart.loc[6.2].dropna() > -1e-9).all()  # nowhere worse
    # What the text says and the tables bear out: exit 1 matches all exits of ImageNet(100) within
    # the errors, early exits of the full ImageNet gain, late ones lose, and gains are largest with
    # few labels, at exit 1.
    few = rows.loc[6.1, "ImageNet(100)"]
    assert few.exit_wise.max() - few.distilled[1] < few.distilled_error[1]
    full = (rows.distilled - rows.exit_wise).loc[6.1, "ImageNet(full)"]
    assert (full[:2] > 0).all() and (full[2:] < 0).all() and len(full) == 5
    gain = (rows.distilled - rows.exit_wise).loc[6.2]
    assert gain.max() == pytest.approx(gain["CIFAR(150)", 1]) == pytest.approx(6.3)
    assert (
        gain.groupby("data").idxmax()
        == [(name, 1) for name in sorted({"CIFAR(150)", "CIFAR(250)", "CIFAR(350)", "CIFAR(500)"})]
    ).all()
