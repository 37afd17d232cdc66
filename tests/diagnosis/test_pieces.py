"""Pieces of a diagnosis, on modules that are not trained, beside programs and sums of their own."""

from __future__ import annotations

import math
from fractions import Fraction
from pkgutil import resolve_name

import cvxpy as cp
import numpy as np
import pytest
import torch
from torch import nn

import implicit_bias as ib
from implicit_bias import Status
from implicit_bias.networks.recognition import Form, recognise, take_subject
from tests.own_modules import (
    Circular,
    HardGated,
    OwnGLN,
    TiedAutoencoder,
    drawn,
    linear,
    perceptron,
)

HOME = "implicit_bias.runs.diagnosis"
find_optimum, quadratic_bound, unseparated_twins, gates_of_inputs, score_gradients, Optimum = (
    resolve_name(f"{HOME}.optimum:{name}")
    for name in (
        "find_optimum", "quadratic_bound", "unseparated_twins", "_gates_of_inputs",
        "score_gradients", "Optimum",
    )
)  # fmt: skip
RNG = np.random.default_rng(5)
X, NEW = RNG.normal(size=(7, 3)), RNG.normal(size=(4, 3))
Y = np.where(X @ [1.0, -0.5, 0.2] > 0, 1.0, -1.0)


def structure_of(network, inputs=X, labels=Y, gates=None):
    return recognise(take_subject(network, inputs, labels, gates))


def optimum_of(network, inputs=X, labels=Y, gates=None):
    structure = structure_of(network, inputs, labels, gates)
    return structure, find_optimum(structure, structure.subject.data.y.numpy())


@pytest.fixture
def memory(monkeypatch) -> list[int]:
    """Numbers that are asked for, as they are asked for."""
    asked: list[int] = []
    monkeypatch.setattr(f"{HOME}.optimum.require_memory", lambda n, *_: asked.append(n))
    return asked


def least(design: np.ndarray, norm, labels=Y) -> float:
    """The least norm of weights whose margins on the rows of a design are at least 1."""
    w = cp.Variable(design.shape[1])
    problem = cp.Problem(cp.Minimize(norm(w)), [cp.multiply(labels, design @ w) >= 1])
    return float(problem.solve(solver="CLARABEL"))


# Optima and bounds


def test_an_optimum_of_no_form_says_nothing() -> None:
    _, none = optimum_of(HardGated(3, 2)), Optimum()
    assert math.isnan(none.bound) and none.limit is None and not none.present_gates
    assert none.name == none.remark == "" and none.features is None
    structure, found = optimum_of(TiedAutoencoder(3, 2))
    assert structure.form is Form.QUADRATIC and found.limit is None and math.isnan(found.bound)


@pytest.mark.parametrize("make", [
    lambda: linear(3, 1), lambda: linear(3, 1, bias=True),
    lambda: perceptron(3, 2, act=nn.Identity), lambda: perceptron(3, 1, act=nn.Identity),
])  # fmt: skip
def test_linear_scores_have_the_maximum_margin(make, memory) -> None:
    structure, found = optimum_of(make())
    bias = "bias" in structure.subject.weights
    design = np.c_[X, np.ones(7)] if bias else X
    assert found.limit.objective == pytest.approx(least(design, cp.norm2), rel=1e-6)
    assert found.bound == found.limit.dual_objective and not found.present_gates
    assert found.name == "hard-margin SVM" and memory == [7 * structure.subject.n_weights]
    other = structure.subject.on(torch.tensor(NEW), None)
    w = np.linalg.lstsq(design, found.scores(structure.subject), rcond=None)[0]
    expected = (np.c_[NEW, np.ones(4)] if bias else NEW) @ w
    np.testing.assert_allclose(found.scores(other), expected, atol=1e-8)
    assert (Y * found.scores(structure.subject)).min() == pytest.approx(1, abs=1e-6)


def test_data_that_nothing_separates_have_no_finite_bound() -> None:
    for network in (linear(1, 1), perceptron(1, 2, act=nn.Identity)):
        _, found = optimum_of(network, np.ones((2, 1)), np.array([1.0, -1.0]))
        assert found.bound == math.inf and found.limit.status is Status.NOT_SEPARABLE


def test_units_behind_gates_have_the_least_sum_of_norms(memory) -> None:
    contexts = np.random.default_rng(1).integers(0, 2, (7, 2))
    network = OwnGLN(3, 2, 2)
    structure, found = optimum_of(network, gates=contexts)
    assert structure.form is Form.UNITS and memory == [7 * structure.subject.n_weights]
    open_ = np.stack([contexts == 0, contexts == 1], axis=2).astype(float)  # (n, H, C)
    design = np.einsum("nhc,nd->nhcd", open_, X).reshape(7, -1)
    norms = lambda w: cp.norm2(w[:6]) + cp.norm2(w[6:])  # noqa: E731
    assert found.limit.objective == pytest.approx(least(design, norms), rel=1e-6)
    assert found.name == "group lasso"
    other = contexts[[3, 1, 2, 0]]
    scores = found.scores(structure.subject.on(torch.tensor(NEW), torch.tensor(other)))
    zeta = np.asarray(found.limit.zeta).reshape(2, 2, 3)
    expected = [
        sum(zeta[h, other[n, h]] @ NEW[n] for h in range(2)) for n in range(4)
    ]  # fmt: skip
    np.testing.assert_allclose(scores, expected, atol=1e-9)


def test_gates_are_read_off_features_that_are_multiples_of_the_inputs() -> None:
    gates = RNG.normal(size=(7, 4))
    features = (gates[:, :, None] * X[:, None]).reshape(7, -1)
    for n_units in (1, 2, 4):
        np.testing.assert_allclose(gates_of_inputs(features, X, n_units), gates)
    assert gates_of_inputs(features, X, 3) is None
    off = np.zeros_like(features)
    off[2, 1] = 4e-12 * np.abs(features).max()
    assert gates_of_inputs(features + off, X, 2) is None
    assert gates_of_inputs(features + off / 8, X, 2) is not None
    small = 1e-3 * features
    assert gates_of_inputs(small + 1e-3 * off / 8, X, 2) is not None
    assert gates_of_inputs(small + 1e-3 * off, X, 2) is None
    at_zero = X.copy()
    at_zero[0] = 0.0
    assert gates_of_inputs(np.where(np.arange(7)[:, None] > 0, features, 0), at_zero, 2) is None
    tiny = 1e-3 * X
    np.testing.assert_allclose(gates_of_inputs(1e-3 * features, tiny, 2), gates)


@pytest.mark.parametrize("K", [2, 3])
def test_outputs_of_several_classes_have_every_margin(K, memory) -> None:
    labels, inputs = np.array([0, 1, 2, 0, 1, 2, 0]) % K, np.eye(7)[:, :3] + 0.3 * X
    structure, found = optimum_of(linear(3, K), inputs, labels)
    W = cp.Variable((K, 3))
    scores = inputs @ W.T
    margins = [
        scores[n, labels[n]] - scores[n, k] >= 1
        for n in range(7) for k in range(K) if k != labels[n]
    ]  # fmt: skip
    known = cp.Problem(cp.Minimize(cp.norm(W, "fro")), margins).solve(solver="CLARABEL")
    assert found.limit.objective == pytest.approx(known, rel=1e-6)
    assert found.name == "margins of all classes" and memory == [7 * K * K * 3]
    assert found.bound == found.limit.dual_objective and found.limit.status is Status.SOLVED
    np.testing.assert_allclose(found.scores(structure.subject), inputs @ W.value.T, atol=1e-3)


class Picked(nn.Module):
    """Features of every sample as columns of a parameter, under a linear layer."""

    def __init__(self, n: int) -> None:
        super().__init__()
        self.W, self.H = drawn(3, 4), drawn(4, n, seed=1)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return inputs @ self.H.T @ self.W.T


def test_unconstrained_features_have_the_least_nuclear_norm() -> None:
    labels = np.array([0, 0, 0, 1, 1, 2])
    structure, found = optimum_of(Picked(6), np.eye(6), labels)
    assert structure.form is Form.UNCONSTRAINED
    Z = cp.Variable((3, 6))
    margins = [Z[labels[n], n] - Z[k, n] >= 1 for n in range(6) for k in range(3) if k != labels[n]]
    known = cp.Problem(cp.Minimize(cp.normNuc(Z)), margins).solve(solver="CLARABEL")
    assert found.limit.objective == pytest.approx(known, rel=1e-5)
    assert found.bound == found.limit.dual_objective == pytest.approx(known, rel=1e-5)
    assert found.name == "nuclear norm" and found.limit.status is Status.SOLVED


@pytest.mark.parametrize(("depth", "D"), [(2, 5), (3, 4)])
def test_convolutions_have_the_least_norm_of_frequencies(depth, D, memory) -> None:
    inputs = np.random.default_rng(6).normal(size=(5, D))
    labels = np.where(inputs[:, :4] @ [1.0, 0.3, -0.5, 0.2] > 0, 1.0, -1.0)
    structure, found = optimum_of(Circular(depth, D), inputs, labels)
    assert structure.form is (Form.CONVOLUTION if depth == 2 else Form.DEEP_CONVOLUTION)
    assert memory[0] == 3 * D * (D + 5)
    # Orthonormal frequencies of a product of L kernels are D^((L-1)/2) times those of each.
    F = np.fft.fft(np.eye(D)) / math.sqrt(D)
    w = cp.Variable(D)
    objective = cp.Minimize(cp.norm1(F @ w) / D ** ((depth - 1) / 2))
    known = cp.Problem(objective, [cp.multiply(labels, inputs @ w) >= 1])
    known.solve(solver="CLARABEL")
    if depth == 2:
        assert found.limit.objective == pytest.approx(known.value, rel=1e-5)
    np.testing.assert_allclose(found.scores(structure.subject), inputs @ w.value, atol=1e-4)
    assert math.isfinite(found.bound) and found.bound == found.limit.dual_objective


def test_layers_have_a_bound_of_their_paths_and_relus_of_their_gates(monkeypatch) -> None:
    gates = (np.random.default_rng(2).random((7, 2)) < 0.7).astype(float)
    _, found = optimum_of(ib.DGN(3, widths=(2, 2)), gates=np.c_[gates, gates])
    known = ib.solve_path_lasso(X, Y, np.c_[gates, gates], widths=(2, 2))
    assert found.name == "path lasso" and not found.present_gates and found.features is None
    assert found.limit.objective == pytest.approx(known.objective, rel=1e-6)
    network = perceptron(3, 3, 2)
    structure, found = optimum_of(network)
    W1, W2, _ = (p.detach().numpy() for p in network.parameters())
    first = X @ W1.T >= 0
    frozen = [first, X @ W1.T * first @ W2.T >= 0]
    known = ib.solve_path_lasso(X, Y, [one.astype(float) for one in frozen])
    assert found.present_gates and found.name == "its gates frozen" and found.remark == ""
    if known.status is Status.SOLVED:
        assert found.bound == pytest.approx(known.dual_objective, rel=1e-6)
    else:
        assert math.isnan(found.bound)
    for most, listed in ((6, True), (5, False)):
        monkeypatch.setattr(f"{HOME}.optimum.MOST_PATHS", most)
        found = find_optimum(structure, Y)
        assert (found.limit is not None) is listed
        assert found.remark == ("" if listed else "no bound: 6 paths are more than 5")


@pytest.mark.parametrize("scale", [1.0, 1e-3])
def test_the_bound_of_quadratic_forms_is_by_the_largest_eigenvalue(scale, memory) -> None:
    structure = structure_of(TiedAutoencoder(3, 2))
    lam = scale * np.random.default_rng(3).random(7)
    probe = np.linspace(1, 2, 3)
    # Scores are <x, C'C p>: half the Hessian in each row of C is x p' + p x', over two.
    halves = [np.outer(x, probe) + np.outer(probe, x) for x in X]
    A = sum(one * label * half for one, label, half in zip(lam, Y, halves, strict=True))
    largest = float(np.linalg.eigvalsh(A)[-1])
    bound = quadratic_bound(structure.subject, lam)
    assert bound == pytest.approx(lam.sum() / largest, rel=1e-10) and memory == [3 * 6**2]
    # Of n + P roundings of the matrix there is room, and of no thousand times as many.
    room = (lam.sum() / bound - largest) / (math.sqrt(2) * np.linalg.norm(A) * 2.0**-53)
    assert 2 * 13 <= room <= 1e3
    # No weights separate what has no positive eigenvalue.
    subject = structure_of(TiedAutoencoder(1, 1), np.array([[1.0], [2.0]]), [-1.0, 1.0]).subject
    assert quadratic_bound(subject, np.array([1.0, 0.0])) == math.inf
    # Of one entry, 4, all is exact but for the room: 4 (n + P) of the matrix, n + 2 of the sum.
    room = float(1 - 4 * Fraction(quadratic_bound(subject, np.array([0.0, 1.0])))) / 2.0**-53
    assert 14 <= room <= 100
    subject = structure_of(TiedAutoencoder(1, 1), np.ones((2, 1)), [-1.0, 1.0]).subject
    assert quadratic_bound(subject, np.ones(2)) == math.inf


def test_equal_samples_of_two_labels_are_told_with_their_gates() -> None:
    twice = np.array([[1.0, 2.0], [3.0, 4.0], [3.0, 4.0], [1.0, 2.0], [3.0, 4.0]])
    for labels, twins in (
        ([1, 1, 1, 1, -1], (1, 4)), ([1, -1, -1, -1, -1], (0, 3)), ([1, -1, -1, 1, -1], None),
    ):  # fmt: skip
        subject = take_subject(linear(2, 1), twice, np.array(labels, dtype=float))
        assert unseparated_twins(subject) == twins
    contexts = np.array([[0, 0], [0, 0], [0, 1], [0, 0], [0, 0]])
    labels = np.array([1.0, 1.0, -1.0, 1.0, 1.0])
    gated = take_subject(OwnGLN(2, 2, 2), twice, labels, contexts)
    assert unseparated_twins(gated) is None
    assert unseparated_twins(take_subject(OwnGLN(2, 2, 2), twice, labels, 0 * contexts)) == (1, 2)


def test_gradients_of_scores_are_rows_of_all_weights() -> None:
    subject = take_subject(linear(3, 1, bias=True), X, Y)
    np.testing.assert_allclose(score_gradients(subject), np.c_[X, np.ones(7)])
    several = score_gradients(take_subject(linear(3, 2, bias=True), X, np.arange(7) % 2))
    # Of output k, the inputs in row k of the matrix, and then 1 at place k of the bias.
    expected = [np.r_[np.kron(unit, x), unit] for x in X for unit in np.eye(2)]
    np.testing.assert_allclose(several.flatten(0, 1), expected)
