"""Separability, with the proof either way: beside linear programs, and by construction."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.optimize import linprog

import implicit_bias as ib

CORNERS = np.array([[1.0, 1.0], [-1.0, -1.0], [1.0, -1.0], [-1.0, 1.0]])
XOR = np.array([1.0, 1.0, -1.0, -1.0])


def features(X, kind, gates):
    """(n, P): what the coefficients of each kind are multiplied by, written out."""
    if kind is None:
        return X
    if kind == "contexts":
        gates = np.eye(gates.max() + 1)[gates].reshape(len(X), -1)
    return (gates[:, :, None] * X[:, None, :]).reshape(len(X), -1)


def is_feasible(margins):
    """Whether some w has ``margins @ w >= 1``, by HiGHS."""
    free = {"bounds": (None, None), "method": "highs"}
    right = -np.ones(len(margins))
    return bool(linprog(np.zeros(margins.shape[1]), A_ub=-margins, b_ub=right, **free).status == 0)


@pytest.mark.parametrize("kind", [None, "gates", "contexts"])
def test_it_is_what_a_linear_program_says_and_the_proof_is_one(kind) -> None:
    rng = np.random.default_rng(5)
    answers = []
    for trial in range(40):
        n, n_inputs, n_units = rng.integers(2, 30), rng.integers(1, 6), rng.integers(1, 4)
        X = (
            rng.normal(size=(n, n_inputs))
            if trial % 2
            else rng.integers(-2, 3, (n, n_inputs)) * 1.0
        )
        y = rng.choice([-1.0, 1.0], n)
        gates = rng.integers(0, 2 + trial % 2 * (kind == "contexts"), size=(n, n_units))
        found = ib.is_separable(X, y, **({} if kind is None else {kind: gates}))
        margins = y[:, None] * features(X, kind, gates)
        assert found.separable is bool(found) is is_feasible(margins)
        answers.append(bool(found))
        if found:
            assert found.multipliers is None
            reached = margins @ found.direction.ravel()
            assert reached.min() / np.linalg.norm(found.direction) >= found.margin > 0
            assert found.margin <= found.largest_margin <= found.margin * (1 + 1e-7)
        else:
            lam = found.multipliers
            assert found.direction is None and lam.min() >= 0
            assert lam.sum() == pytest.approx(1)
            assert np.all(np.abs(lam @ margins) <= 1e-15 * (lam @ np.abs(margins)) + 1e-300)
            assert found.residual <= 2.0**-52
    assert set(answers) == {True, False}


def test_corners_are_told_apart_by_contexts_and_by_no_gate_alone() -> None:
    right = (CORNERS[:, :1] > 0).astype(int)
    none = ib.is_separable(CORNERS, XOR)
    assert none.status is ib.Status.NOT_SEPARABLE
    assert none.separable is False and none.multipliers.tolist() == [0.25] * 4
    assert "not separable: multipliers of 4 samples cancel" in none.message
    assert not ib.is_separable(CORNERS, XOR, right)
    found = ib.is_separable(CORNERS, XOR, contexts=right).require()
    # In each half x_2, up to its sign, is the margin: zeta = ((0, -1), (0, 1)), of norm sqrt 2.
    np.testing.assert_allclose(found.direction, [[[0, -1], [0, 1]]], atol=1e-7)
    assert found.margin == pytest.approx(1 / np.sqrt(2))


def test_margins_far_below_what_products_of_features_resolve_are_found() -> None:
    # w = (0, 1) has the margins 1e-12, and lam = (1, 1) / 2 leaves a block of that size.
    close = np.array([[1.0, 1e-12], [-1.0, 1e-12], [3.0, 7.0], [-2.0, 1.0], [0.1, 0.2]])
    mixed = close @ np.array([[0.6, 0.8], [-0.8, 0.6]])
    found = ib.is_separable(mixed, np.ones(5))
    assert found and (mixed @ found.direction).min() > 0
    assert found.margin == pytest.approx(1e-12, rel=1e-2)


def test_a_small_margin_is_found_among_samples_that_do_not_matter() -> None:
    rng = np.random.default_rng(0)
    for n_inputs in range(3, 11):
        # Independent rows, whose last nearly undoes the others: some w has equal margins on all.
        rows = rng.normal(size=(n_inputs - 1, n_inputs))
        rows[-1] = -(rng.uniform(0.05, 1, n_inputs - 2) @ rows[:-1])
        rows[-1] += 1e-11 * rng.normal(size=n_inputs)
        w = np.linalg.lstsq(rows, np.ones(n_inputs - 1), rcond=None)[0]
        further = rng.normal(size=(3 * n_inputs, n_inputs))
        further *= np.sign(further @ w)[:, None]
        X = np.vstack([rows, further])
        found = ib.is_separable(X, np.ones(len(X)))
        assert found and (X @ found.direction).min() > 0


def test_what_float64_cannot_decide_is_said_to_be_undecided() -> None:
    # Rows that sum to 3e-16 of a third direction: data within their own rounding go either way.
    base = np.array([[1.0, 0.3, 0.7], [0.2, -1.1, 0.4]])
    X = np.vstack([base, -base.sum(axis=0) + [5e-16, 3e-16, -4e-16]])
    found = ib.is_separable(X, np.ones(3))
    assert found.separable is None and not found
    assert found.status is ib.Status.UNDECIDED
    assert found.direction is None and found.multipliers is None
    assert found.message.startswith("undecided: ") and found.residual > 2.0**-52


def test_tensors_come_back_as_tensors() -> None:
    found = ib.is_separable(torch.tensor(CORNERS[:2]), torch.tensor([1.0, -1.0]))
    assert isinstance(found.direction, torch.Tensor)
    torch.testing.assert_close(found.direction, torch.tensor([0.5, 0.5], dtype=torch.float64))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"gates": np.ones((4, 1)), "contexts": np.ones((4, 1), int)}, "both given"),
        ({"gates": np.ones(4)}, r"`gates` must have shape \(4, H\)"),
        ({"contexts": np.ones((3, 2), int)}, r"`contexts` must have shape \(4, H\)"),
        ({"contexts": np.ones((4, 2))}, "must hold integers"),
        ({"contexts": -np.ones((4, 2), int)}, "must lie in 0"),
        ({"X": CORNERS * np.nan}, "NaN or infinite"),
        ({"X": CORNERS[0]}, r"must have shape \(n, D\)"),
        ({"y": [0, 1, 0, 1]}, "labels -1 and [+]1 only"),
    ],
)
def test_what_is_no_data_is_refused(given, message) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        ib.is_separable(**{"X": CORNERS, "y": XOR, **given})
