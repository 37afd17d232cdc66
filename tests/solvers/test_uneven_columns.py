"""Programs whose inputs are of very unequal sizes, beside Clarabel on cvxpy's own statement."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest

import implicit_bias as ib
from solvers.norms.balls import Blocks
from solvers.norms.matrix_barriers import NuclearBall, SmoothNuclear, SpectralCone
from solvers.norms.norm import Norm

N_CLASSES = 3


def uneven(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Inputs in units from 1e-3 to 1e3, labels that a linear map has, and targets."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(9, 3))
    labels = (X @ rng.normal(size=(3, N_CLASSES))).argmax(axis=1)
    return X * [1e-3, 1.0, 1e3], labels, rng.normal(size=(9, N_CLASSES))


@pytest.mark.parametrize("norm", ["spectral", "nuclear"])
@pytest.mark.parametrize("loss", ["softmax", "squared"])
@pytest.mark.parametrize("given", [{"penalty": 0.05}, {"radius": 3.0}], ids=["penalty", "radius"])
def test_fits_with_norms_of_matrices_are_solved_on_uneven_inputs(norm, loss, given) -> None:
    X, labels, targets = uneven(1)
    y = np.eye(N_CLASSES)[labels] if loss == "softmax" else targets
    limit = ib.limits.solve_fit(X, y, loss=loss, norm=norm, **given).require()
    B = cp.Variable((N_CLASSES, X.shape[1]))
    scores = X @ B.T
    if loss == "softmax":
        own = cp.sum(cp.log_sum_exp(scores, axis=1)) - cp.sum(cp.multiply(y, scores))
    else:
        own = cp.sum_squares(scores - y) / 2
    size = cp.sigma_max(B) if norm == "spectral" else cp.normNuc(B)
    if "penalty" in given:
        program = cp.Problem(cp.Minimize(own / len(X) + given["penalty"] * size))
    else:
        program = cp.Problem(cp.Minimize(own / len(X)), [size <= given["radius"]])
    program.solve(solver="CLARABEL")
    assert limit.objective == pytest.approx(program.value, rel=1e-5)


@pytest.mark.parametrize("norm", ["l2", "l1", "linf", "spectral", "nuclear"])
def test_tiny_softmax_losses_in_a_ball_are_solved_relative_to_the_optimum(norm) -> None:
    X, labels, _ = uneven(1)
    limit = ib.limits.solve_fit(X, np.eye(3)[labels], loss="softmax", norm=norm, radius=300.0)
    assert limit.require().objective < 1e-9
    B = cp.Variable((N_CLASSES, 3))
    scores = X @ B.T
    # Of a tiny loss the logarithm is that of the sum of exp(-margin), over samples and classes.
    margins = [
        scores[i, y] - scores[i, k] for i, y in enumerate(labels) for k in range(3) if k != y
    ]
    size = {"l2": cp.norm(B, "fro"), "l1": cp.sum(cp.abs(B)), "linf": cp.max(cp.abs(B)),
            "spectral": cp.sigma_max(B), "nuclear": cp.normNuc(B)}[norm]  # fmt: skip
    program = cp.Problem(cp.Minimize(cp.log_sum_exp(-cp.hstack(margins))), [size <= 300])
    expected = program.solve(solver="CLARABEL") - np.log(len(X))
    assert np.log(limit.objective) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("norm", ["l2", "nuclear"])
def test_margins_on_uneven_inputs_are_known_as_well_as_floats_allow(norm) -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(8, 2))
    labels = (X @ rng.normal(size=(2, N_CLASSES))).argmax(axis=1)
    X = X * [1e-4, 3e4]
    found = ib.limits.solve_multiclass_svm(X, labels, norm=norm, n_classes=N_CLASSES)
    # Multipliers of size 1 cancel to the margin at norm 1, beside inputs of size 3e4.
    assert 0 <= found.gap < 100 * np.finfo(float).eps * found.objective * np.abs(X).max()


@pytest.mark.parametrize("norm", ["spectral", "max-spectral", "nuclear", "sum-nuclear"])
def test_smooth_norms_of_matrices_have_their_derivatives(norm) -> None:
    shape = (2, 3, 2) if "-" in norm else (2, 3)
    blocks, rng = Blocks.of(Norm.of(norm), shape), np.random.default_rng(3)
    w = 0.3 * rng.normal(size=blocks.size)
    smooth = [SmoothNuclear(blocks, 0.7, 0.2), NuclearBall(blocks, 6.0, 0.2)]
    if "spectral" in norm:
        w, smooth = np.append(w, 1.5), [SpectralCone(blocks, 0.7, 2.0, 0.2)]
    steps = 1e-6 * np.eye(len(w))
    for one in smooth:
        slopes = [(one.value(w + h) - one.value(w - h)) / 2e-6 for h in steps]
        bends = [(one.gradient(w + h) - one.gradient(w - h)) / 2e-6 for h in steps]
        np.testing.assert_allclose(one.gradient(w), slopes, atol=1e-7)
        np.testing.assert_allclose(one.hessian(w), bends, atol=1e-7)
