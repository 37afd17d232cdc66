"""Certificates of saved runs that `show` proves again on their data, and files that claim more."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner

import implicit_bias as ib
from implicit_bias import cli
from implicit_bias.models import MODELS
from tests.commands import small_runs

RUNS = {
    name: options
    for name, options in small_runs(
        {"n_train": 20, "n_val": 5, "hidden_units": 2, "steps": 0, "seed": 1},
        {"fixed-outer": {"n_train": 8}},
    ).items()
    if MODELS[name].provable
}


def shown(folder) -> tuple[int, str]:
    result = CliRunner().invoke(cli.main, ["show", str(folder)])
    assert "Traceback" not in result.stderr and isinstance(result.exception, SystemExit | None)
    return result.exit_code, result.stderr


def forged(report: ib.Report, limit: object, **options: object) -> ib.Report:
    """The report with another limit in the place of its own, and other options as its own."""
    record = dict(report.heading.record)
    record["options"] = record["options"] | options
    first, *others = report.findings
    return replace(
        report,
        heading=replace(report.heading, record=record),
        findings=(first.but(objects={"limit": limit}, files={}), *others),
    )


@pytest.mark.parametrize("name", RUNS)
def test_a_limit_is_proved_again_and_that_of_other_data_is_found_out(name, tmp_path) -> None:
    report = ib.run(name, **RUNS[name], save=tmp_path / "true")
    code, said = shown(tmp_path / "true")
    gap = re.search(r"proved again on the data of the run: largest gap (\S+)", said)
    assert code == 0 and gap is not None
    assert float(gap[1].rstrip(",.;")) == pytest.approx(report.limit.gap, rel=0.01, abs=1e-14)

    other = ib.run(name, **RUNS[name] | {"seed": 2}).limit  # certified, and of these sizes
    assert other.status is report.status
    forged(report, other).save(tmp_path / "forged")
    assert ib.load(tmp_path / "forged").limit.status is report.status  # the file fits itself
    code, said = shown(tmp_path / "forged")
    assert code == 2 and "the report claims that its limit is SOLVED" in said


@pytest.fixture(scope="module")
def report() -> ib.Report:
    return ib.run("linear", **RUNS["linear"])


def test_a_smaller_gap_than_the_data_prove_is_found_out(tmp_path) -> None:
    report = ib.run("gln", **RUNS["gln"], tol=0.1)
    loose = report.limit
    better = replace(loose.certificate, dual_objective=loose.objective, gap=0.0)
    assert loose.gap > 1e-3
    forged(report, replace(loose, certificate=better)).save(tmp_path)
    code, said = shown(tmp_path)
    assert code == 2 and "SOLVED with the gap 0.00e+00, and its data prove SOLVED" in said


def test_every_class_is_proved(tmp_path) -> None:
    options = RUNS["linear"] | {"classes": "all", "n_train": 40}
    report = ib.run("linear", **options, save=tmp_path / "true")
    code, said = shown(tmp_path / "true")
    assert code == 0 and "10 certificates proved again" in said

    limits = dict(report.limit)
    limits[3], limits[4] = limits[4], limits[3]
    forged(report, limits).save(tmp_path / "forged")
    code, said = shown(tmp_path / "forged")
    assert code == 2 and "the report claims that its class 3 is SOLVED" in said
    forged(report, {11: limits[3]}).save(tmp_path / "eleven")
    code, said = shown(tmp_path / "eleven")
    assert code == 2 and "a limit of class 11, which its data have not" in said


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"data": "given"}, "its data came from Python"),
        ({"data": "gone.csv"}, "its data cannot be had again"),
        ({"seed": 7}, "its data are not those that 'digits' names now"),
        ({"n_train": 10**12}, "n_train 1000000000000 is more than its arrays have numbers"),
        ({"n_val": 10**12}, "n_val 1000000000000 is more than its arrays have numbers"),
        ({"n_train": "many"}, "n_train many is more than its arrays"),
        ({"colour": "red"}, "its data cannot be had again"),
    ],
)
def test_what_cannot_be_proved_is_said_to_be_as_it_was_written(
    changes, message, report, tmp_path
) -> None:
    forged(report, report.limit, **changes).save(tmp_path)
    code, said = shown(tmp_path)
    assert code == 0 and "certificates are as they were written, not proved again" in said
    assert message in said


def test_data_and_gates_of_the_callers_own_and_learned_gates_are_not_proved_again(
    tmp_path,
) -> None:
    X, y = np.array([[2.0, 0.0], [0.0, 1.0]]), np.array([1.0, -1.0])
    ib.run("linear", X=X, y=y, X_val=X, y_val=y, steps=0, save=tmp_path / "own")
    gating = ib.HyperplaneContexts(2, 2, random_state=0)
    ib.run("gln", gating=gating, n_train=20, n_val=5, steps=0, save=tmp_path / "gates")
    ib.run("gdln", n_train=20, hidden_units=2, steps=0, save=tmp_path / "gdln")
    said = {path.name: shown(path) for path in tmp_path.iterdir()}
    assert {code for code, _ in said.values()} == {0}
    assert "its data came from Python" in said["own"][1]
    assert "its gating came from Python" in said["gates"][1]
    assert "the model gdln predicts does not follow from its options" in said["gdln"][1]
