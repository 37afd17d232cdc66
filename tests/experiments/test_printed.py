"""Programs with the errors of the published ones: stated again by hand, in cvxpy."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import implicit_bias as ib
from experiments import printed
from experiments.paper.recipe import recipe_points

H, C = 4, 2


@pytest.fixture(scope="module")
def samples() -> tuple[ib.Sample, ib.Sample]:
    data = ib.load_digits(n_train=40, n_val=60, random_state=0)
    X, new = data.X_train[:, 20:40], data.X_val[:, 20:40]
    gating = ib.HyperplaneContexts(H, C, random_state=1).fit(X)
    return (
        ib.Sample(X, data.y_train, gating.transform(X)),
        ib.Sample(new, data.y_val, gating.transform(new)),
    )


def rows_read_in_columns(zeta: cp.Variable) -> list[cp.Expression]:
    """Units of coefficients (H C, D) that lie in rows, as a reshape in columns reads them."""
    return [cp.vstack([zeta[r + H * j] for j in range(C)]) for r in range(H)]


def solved(cost, zeta: cp.Variable, train: ib.Sample) -> np.ndarray:
    scores = [sum(zeta[h * C + c] @ x for h, c in enumerate(contexts))
              for x, contexts in zip(train.X, train.gates, strict=True)]  # fmt: skip
    margins = [y * score >= 1 for y, score in zip(train.y, scores, strict=True)]
    cp.Problem(cp.Minimize(cost), margins).solve(solver="CLARABEL")
    return np.asarray(zeta.value)


def scores_of(zeta: np.ndarray, sample: ib.Sample) -> np.ndarray:
    return np.array([sum(zeta[h * C + c] @ x for h, c in enumerate(contexts))
                     for x, contexts in zip(sample.X, sample.gates, strict=True)])  # fmt: skip


def test_wrong_groups_are_those_of_a_reshape_in_columns(samples) -> None:
    train, held_out = samples
    zeta = cp.Variable((H * C, train.X.shape[1]))
    cost = sum(cp.norm(group, "fro") for group in rows_read_in_columns(zeta))
    expected = scores_of(solved(cost, zeta, train), held_out)
    solution, found = printed.wrong_groups(*samples, C)
    assert solution.certificate.gap < 1e-7
    assert found == pytest.approx(expected, abs=1e-3)


def test_the_wrong_norm_is_that_of_the_printed_root(samples) -> None:
    train, held_out = samples
    zeta = cp.Variable((H * C, train.X.shape[1]))
    units = rows_read_in_columns(zeta)
    total = sum(cp.sum(unit, axis=0) for unit in units)
    image = [C * unit[c] - cp.sum(unit, axis=0) + total / (H * C) for unit in units
             for c in range(C)]  # fmt: skip
    cost = sum(cp.sum_squares(row) for row in image) + printed.RIDGE * cp.sum_squares(zeta)
    expected = scores_of(solved(cost, zeta, train), held_out)
    _, found = printed.wrong_norm(*samples, C)
    assert found == pytest.approx(expected, rel=1e-2, abs=1e-2 * np.abs(expected).max())


@pytest.mark.long
def test_the_printed_root_has_optima_that_err_differently() -> None:
    n_units, size = 10, 20
    data = ib.load_digits(n_train=500, random_state=1)
    gating = ib.HyperplaneContexts(n_units, C, random_state=1).fit(data.X_train)
    train, held_out = (
        ib.Sample(X, y, gating.transform(X))
        for X, y in ((data.X_train, data.y_train), (data.X_val, data.y_val))
    )
    group = np.arange(size) % n_units
    root = C * np.eye(size) - (group[:, None] == group) + 1 / size
    root = sparse.kron(sparse.csc_matrix(root), sparse.eye(train.X.shape[1]))
    z, new = (printed.one_hot(one.required_gates, C) for one in (train, held_out))
    rows = train.y[:, None, None] * z[:, :, None] * train.X[:, None, :]
    margins = sparse.csc_matrix(rows.reshape(len(rows), -1))
    zeta = cp.Variable(margins.shape[1])
    costs, errors = [], []
    for ridge in (0.0, printed.RIDGE):
        cost = cp.sum_squares(root @ zeta) + ridge * cp.sum_squares(zeta)
        problem = cp.Problem(cp.Minimize(cost), [margins @ zeta >= 1])
        problem.solve(solver="OSQP", max_iter=10_000)  # as published
        assert problem.status == "optimal" and (margins @ zeta.value).min() > 0.999
        costs.append(np.sum((root @ zeta.value) ** 2))
        scores = np.einsum("nj,nd,jd->n", new, held_out.X, zeta.value.reshape(size, -1))
        errors.append(np.mean(scores * held_out.y <= 0))
    assert costs[0] == pytest.approx(costs[1], rel=1e-3)
    _, found = printed.wrong_norm(train, held_out, C)
    assert np.mean(found * held_out.y <= 0) == pytest.approx(errors[1], abs=0.003)
    assert errors == pytest.approx([0.23, 0.13], abs=0.01)  # as the page has them


def test_every_program_stands_beside_the_same_network(tmp_path) -> None:
    cell = {"hidden_units": 3, "contexts": 2, "n_train": 40, "seed": 1, "cutoffs": "median"}
    given = {"data": "digits", "n_val": 60, "steps": 40, "trainer": "constant"}
    path, grid = tmp_path / "points.csv", {name: [value] for name, value in cell.items()}
    assert len(list(recipe_points(grid, given, path))) == 1
    points = pd.read_csv(path).set_index("program")
    for model, program in (("gln", "svm-gln"), ("gln-l2", "svm-l2")):
        row = ib.run(model, **cell, **given).row()
        assert points.loc[program, "error_program"] == pytest.approx(row["error_limit"])
        assert points.loc[program, "inconsistency"] == pytest.approx(1 - row["agreement"])
        assert (points["error_network"] == row["error_network"]).all()
    assert list(points.index) == ["svm-gln", "svm-l2", "svm-gln-printed", "svm-l2-printed"]
    assert list(recipe_points(grid, given, path)) == []


def test_a_network_loses_the_cutoffs_that_are_fitted(samples) -> None:
    train, held_out = samples
    network = ib.networks.GLN(train.X.shape[1], H, C, random_state=3)
    for cutoffs, kept in (("random", True), ("median", False)):
        gating = ib.HyperplaneContexts(H, C, cutoffs=cutoffs, random_state=1).fit(train.X)
        own = ib.measures.scores(
            network, ib.Sample(held_out.X, held_out.y, gating.transform(held_out.X))
        )
        again = printed.forgotten(network, gating, train, held_out)
        assert np.allclose(own, again) == kept
