"""Reports that were committed: every version of their format reads them, and their numbers hold."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
import torch
from safetensors import safe_open

import implicit_bias as ib
from implicit_bias.runs.reports import FORMAT
from tests.reports.kept import CORNERS, DATA, HELD_OUT, NOW, POINTS, PRODUCTS, RUNS, TARGETS

# Of four corners labelled by their products, in the half-planes of the axes. With uniform
# multipliers a the dual norms are a sqrt(8), at most 1: their sum of sqrt(2) is a lower bound.
# zeta[0] = (0, s), (0, -s) and zeta[1] = 0 has margins s and norm s sqrt(2): s = 1 attains it.
OPTIMUM = 2**0.5
CONTEXTS = (CORNERS >= 0).astype(np.int64)


@pytest.fixture(scope="module", params=RUNS)
def report(request) -> ib.Report:
    return ib.load(NOW / request.param)


@pytest.fixture(scope="module")
def gln() -> ib.Report:
    return ib.load(NOW / "gln")


@pytest.fixture(scope="module")
def gdln() -> ib.Report:
    return ib.load(NOW / "gdln")


def test_this_format_has_its_reports_and_others_are_refused_in_words(tmp_path) -> None:
    assert {path.name for path in NOW.iterdir()} == {*RUNS, "names.json"}
    for folder in (path for path in DATA.iterdir() if path != NOW):
        for run in (path for path in folder.iterdir() if path.is_dir()):
            number = folder.name.removeprefix("format-")
            with pytest.raises(
                ValueError, match=f"in format {number}, and .* reads format {FORMAT}"
            ):
                ib.load(run)


def test_a_kept_report_prints_and_draws_itself(report, tmp_path) -> None:
    text = report.details()
    assert report.heading.theorem.split()[0] in text
    assert all(table.title in text for table in report.tables)
    assert report.finished and report.status is ib.Status.SOLVED
    figure = report.figure()
    assert sum(bool(ax.lines or ax.images or ax.collections) for ax in figure.axes) >= 5
    figure.savefig(tmp_path / "picture.png")
    assert (tmp_path / "picture.png").stat().st_size > 10_000
    assert report.row()["model"] == report.heading.model and len(report.rows()) == 1
    assert report.to_json().startswith("{")


def test_the_kept_gln_limit_is_certified_by_its_arrays_on_the_data(gln) -> None:
    limit = gln.limit
    program = ib.programs.SVMGLN(n_contexts=2).program(CORNERS, PRODUCTS, CONTEXTS)
    proof = ib.certify(program, limit.zeta.reshape(-1, 2), limit.dual)
    assert proof.dual_objective <= OPTIMUM <= proof.objective * (1 + 1e-15)
    assert proof.gap < 1e-8
    assert (
        limit.objective == pytest.approx(OPTIMUM, rel=1e-8) and limit.objective == proof.objective
    )
    np.testing.assert_array_equal(ib.load(NOW / "gln" / "limit.safetensors").zeta, limit.zeta)
    np.testing.assert_allclose(limit.predictor(CORNERS, CONTEXTS) * PRODUCTS, limit.margins)


def test_the_kept_gating_and_network_are_the_functions_that_they_were(gln) -> None:
    gating = ib.load(NOW / "gln" / "gating.safetensors")
    np.testing.assert_array_equal(gating.transform(CORNERS), CONTEXTS)
    np.testing.assert_array_equal(gating.transform(HELD_OUT), CONTEXTS)
    with safe_open(NOW / "gln" / "network.safetensors", framework="numpy") as file:
        w1, w2 = file.get_tensor("w1"), file.get_tensor("upper.0")[0]
    units = [np.sum(w1[h, CONTEXTS[:, h]] * CORNERS, axis=1) for h in range(2)]
    scores = w2[0] * units[0] + w2[1] * units[1]
    with torch.no_grad():
        found = gln.network(torch.tensor(CORNERS), torch.tensor(CONTEXTS)).numpy()
    np.testing.assert_allclose(found, scores, rtol=1e-14)
    margin, norm = (PRODUCTS * scores).min(), np.abs(w2) @ np.sqrt((w1**2).sum(axis=(1, 2)))
    assert gln.trajectory.smallest_margin[-1] == pytest.approx(margin, rel=1e-12)
    assert gln.comparison.margin_ratio == pytest.approx(margin / norm * OPTIMUM, rel=1e-8)


def test_the_kept_gated_limit_is_the_least_solution_of_its_normal_equations(gdln) -> None:
    start = gdln.trajectory["relu"].observed["weights"][0]
    gates = (POINTS @ start.T > 0).astype(float)
    columns = (gates[:, :, None] * POINTS[:, None, :]).reshape(len(POINTS), -1)
    expected, *_ = np.linalg.lstsq(columns, TARGETS, rcond=None)
    np.testing.assert_allclose(gdln.limit.zeta.ravel(), expected, atol=1e-12)
    loss = 0.5 * np.mean((columns @ expected - TARGETS) ** 2)
    assert gdln.limit.loss == pytest.approx(loss, abs=1e-14)


def test_the_kept_relu_network_is_where_its_trajectory_ends(gdln) -> None:
    weights = gdln.trajectory["relu"].observed["weights"][-1]
    scores = np.maximum(POINTS @ weights.T, 0).mean(axis=1)
    with torch.no_grad():
        found = gdln.network["relu"](torch.tensor(POINTS)).numpy()
    np.testing.assert_allclose(found, scores, rtol=1e-14)
    loss = 0.5 * np.mean((scores - TARGETS) ** 2)
    assert gdln.trajectory["relu"].loss[-1] == pytest.approx(loss, rel=1e-12)
    assert gdln.comparison.loss == pytest.approx(loss, rel=1e-12)


def test_a_report_whose_file_is_gone_says_which(tmp_path) -> None:
    shutil.copytree(NOW / "gln", tmp_path / "x")
    (tmp_path / "x" / "report.safetensors").unlink()
    message = r"results of a run by implicit-bias \S+, but report\.safetensors is missing"
    with pytest.raises(ValueError, match=message):
        ib.load(tmp_path / "x")
