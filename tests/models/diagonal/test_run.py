"""Runs of diagonal networks: the limit of their start, and of what their steps make of it."""

import numpy as np
import pytest
from scipy.optimize import linprog

import implicit_bias as ib

RNG = np.random.default_rng(0)
X = RNG.normal(size=(12, 40))
Y = np.sign(X[:, 0] - X[:, 1])


def dataset(X: np.ndarray, y: np.ndarray) -> ib.datasets.Dataset:
    held_out = {"X_val": X[:4], "y_val": y[:4]}
    return ib.datasets.Dataset(name="own", X_train=X, y_train=y, description="drawn", **held_out)


@pytest.fixture(scope="module")
def reports() -> dict[float, ib.Report]:
    return {
        scale: ib.run("diagonal", data=dataset(X, Y), init_scale=scale, steps=steps)
        for scale, steps in ((0.01, 4000), (0.3, 2000), (10.0, 1500))
    }


@pytest.mark.parametrize("scale", [0.01, 0.3, 10.0])
def test_a_network_ends_at_the_limit_of_its_start(scale, reports) -> None:
    report = reports[scale]
    found, limit = report.comparison, report.limit
    assert report.verdict.word == "AT ITS LIMIT" and found.limit_error < 0.01
    np.testing.assert_allclose(limit.u0, np.sqrt(2) * scale)
    assert not limit.v0.any() and limit.gap < 1e-8
    np.testing.assert_allclose(X @ limit.zeta, Y, atol=1e-10)
    # The limit of what its steps amount to is nearer than that of the flow.
    assert found.start_error < 1e-3 and found.start_error < found.limit_error
    assert 0.999 < found.potential_ratio <= 1 + 1e-9 and found.off_span < 0.02
    row, zeta = report.row(), report.network.zeta().detach().numpy()
    assert row["l1_limit"] == pytest.approx(np.abs(limit.zeta).sum())
    assert row["l2_norm"] == pytest.approx(np.linalg.norm(zeta))
    assert row["potential_ratio"] == found.potential_ratio and row["off_span"] == found.off_span


def test_small_starts_have_the_least_l1_norm_and_large_ones_the_least_l2_norm(reports) -> None:
    both = np.hstack([X, -X])
    least_l1 = linprog(np.ones(80), A_eq=both, b_eq=Y).fun
    least_l2 = np.linalg.norm(np.linalg.pinv(X) @ Y)
    l1, l2 = ([one.row()[name] for one in reports.values()] for name in ("l1_limit", "l2_limit"))
    assert least_l1 <= l1[0] * (1 + 1e-9) and l1[0] < 1.05 * least_l1
    assert l2[-1] == pytest.approx(least_l2, rel=1e-5)
    assert l1[0] < l1[1] < l1[2] and l2[0] > l2[1] > l2[2]


def test_batches_and_large_steps_are_at_the_limit_of_another_start() -> None:
    own = {"batch_size": 3, "learning_rate": 0.12, "steps": 1500, "init_scale": 0.3}
    report = ib.run("diagonal", data=dataset(X, Y), **own)
    found = report.comparison
    assert report.verdict.word == "NOT THERE YET" and "effective start" in report.verdict.sentence
    assert found.start_error < 1e-6 < 0.01 < found.limit_error
    assert found.effective_scale < 0.99 * 0.3 and found.potential_ratio < 0.9999
    limit = ib.limits.solve_diagonal(X, Y, *found.effective_start)
    zeta = report.network.zeta().detach().numpy()
    assert np.linalg.norm(zeta - limit.zeta) < 1e-6 * np.linalg.norm(limit.zeta)
    broken = {one.name for one in report.assumptions if one.holds is False}
    assert broken == {"gradient flow", "full batches"}


def test_targets_that_nothing_interpolates_have_the_limit_of_their_best_fit() -> None:
    wide = X.T[:, :6]
    y = np.sign(RNG.normal(size=40))
    report = ib.run("diagonal", data=dataset(wide, y), init_scale=0.3, steps=0)
    best = np.linalg.lstsq(wide, y, rcond=None)[0]
    np.testing.assert_allclose(report.limit.zeta, best, atol=1e-9)
    (found,) = (one for one in report.assumptions if one.name == "interpolation")
    assert report.limit.status.name == "SOLVED" and found.holds is False
