"""Certificates that were wrong once: bounds that cross, proofs that are missing, bad points."""

from __future__ import annotations

import dataclasses
import math
from fractions import Fraction
from pkgutil import resolve_name

import cvxpy as cp
import numpy as np
import pytest
import torch

import implicit_bias as ib
import solvers
from implicit_bias.limits import solve_fit
from implicit_bias.limits.relu import ReLUProblem, on_one_line
from solvers import Status, gap_between


def test_a_bound_above_its_objective_proves_no_gap() -> None:
    # Bounds that contain their rounding may not cross at all, others by rounding alone.
    assert gap_between(1.0, 1.0) == pytest.approx(0, abs=1e-15)
    assert gap_between(1.0, 1.0012) == gap_between(1.0, 1.0 + 1e-14) == math.inf
    assert gap_between(1.0, 1.0012, 1.0) == math.inf and gap_between(1.0, 1 + 1e-12, 1.0) == 0
    assert gap_between(0.0, 0.0, 0.0) == 0 and gap_between(1.0, 0.0, 0.0) == math.inf
    assert gap_between(math.nan, 1.0, 1.0) == gap_between(1.0, -math.inf, 1.0) == math.inf


def test_a_sample_of_size_1e_16_is_interpolated_by_a_coefficient_of_1e7() -> None:
    limit = solve_fit(np.diag([1, 1e-16]), [1, 1e-9], loss="squared", norm="l2").require()
    np.testing.assert_allclose(limit.zeta, [1, 1e7], rtol=1e-8)
    # Sizes far apart are no proof that there is none.
    assert solve_fit(np.diag([1, 1e-16]), [1, 1], loss="squared").require().objective > 9e15


def test_equal_samples_of_targets_that_differ_by_1e_9_have_no_interpolant() -> None:
    X, y = np.array([[1.0, 0.0], [1.0, 0.0]]), np.array([1.0, 1 + 1e-9])
    limit = solve_fit(X, y, loss="squared", norm="l1")
    assert limit.status is Status.NOT_INTERPOLABLE
    np.testing.assert_allclose(X.T @ limit.proof, 0, atol=1e-20)
    assert y @ limit.proof > 0


def test_coefficients_shorter_than_their_lower_bound_are_not_solved() -> None:
    X, y = np.eye(2), np.array([1.0, 1.0])
    limit = solve_fit(X, y, loss="squared", norm="l2").require()
    # Coefficients that leave out a sample are shorter than any interpolant: they are moved onto
    # it. Where that is impossible there is no gap.
    wide = dataclasses.replace(limit, zeta=np.array([1.0, 0.0])).certify(X, y)
    assert (
        wide.certificate.objective == pytest.approx(math.sqrt(2)) and wide.status is Status.SOLVED
    )
    torn = limit.certify(np.array([[1.0, 0.0], [1.0, 0.0]]), np.array([1.0, 2.0]))
    assert torn.gap == math.inf and torn.certificate.misfit > 0.1
    assert torn.status is Status.INACCURATE


def test_a_transport_below_its_bound_has_no_gap() -> None:
    certificate = resolve_name("implicit_bias.measures.equivalence.measure:TransportCertificate")
    assert certificate(0.5, 0.6, 0.0).gap == math.inf
    assert certificate(0.5, 0.4, 0.0).gap == pytest.approx(0.1)


def test_a_point_that_violates_a_constraint_has_the_distance_of_its_bounds() -> None:
    one, group = np.ones((1, 1)), np.zeros(1, dtype=np.int64)
    program = solvers.MaxMarginProgram(
        solvers.GatedDesign(np.array([[3.0, 4.0]]), one, group), one[0]
    )
    plain = solvers.to_cvxpy(program)
    flat = plain.var_dict["zeta"][:, 0] <= 0
    problem = cp.Problem(plain.objective, [*plain.constraints, flat])
    problem.solve(solver="CLARABEL")
    # The shortest w without the constraint is (3, 4) / 25, of norm 1/5 below the optimum 1/4.
    plain.var_dict["zeta"].value = np.array([[0.12, 0.16]])
    found = solvers.certify_constrained(program, problem)
    assert found.objective == pytest.approx(0.2) and found.dual_objective == pytest.approx(0.25)
    assert found.gap == pytest.approx(0.25) and not found.proves_optimality(0.1, violation=1.0)


def interpolation(X: np.ndarray, Y: np.ndarray, norm: str) -> float:
    """Least norm of W (K, D) with X W' = Y, by Clarabel."""
    W = cp.Variable((Y.shape[1], X.shape[1]))
    value = {
        "l2": cp.norm(W, "fro"), "l1": cp.sum(cp.abs(W)), "linf": cp.max(cp.abs(W)),
        "nuclear": cp.normNuc(W), "spectral": cp.sigma_max(W),
        "rows": cp.sum(cp.norm(W, axis=1)), "largest-column": cp.max(cp.norm(W, axis=0)),
    }[norm]  # fmt: skip
    return float(cp.Problem(cp.Minimize(value), [X @ W.T == Y]).solve(solver="CLARABEL"))


@pytest.mark.parametrize(
    "norm", ["l2", "l1", "linf", "nuclear", "spectral", "rows", "largest-column"]
)
def test_interpolants_of_several_scores_are_solved(norm) -> None:
    limit = solve_fit(np.eye(2), np.eye(2), loss="squared", norm=norm).require()
    np.testing.assert_allclose(limit.zeta, np.eye(2), atol=1e-8)  # the only one
    rng = np.random.default_rng(3)
    X, Y = rng.normal(size=(4, 7)), rng.normal(size=(4, 3))
    limit = solve_fit(X, Y, loss="squared", norm=norm).require()
    np.testing.assert_allclose(limit.scores, Y, atol=1e-8)
    assert limit.objective == pytest.approx(interpolation(X, Y, norm), rel=1e-6)


def test_several_scores_that_nothing_interpolates_are_proved_so() -> None:
    X, Y = np.array([[1.0, 0.0], [1.0, 0.0]]), np.eye(2)
    for norm in ("l2", "l1", "linf", "nuclear", "spectral"):
        limit = solve_fit(X, Y, loss="squared", norm=norm)
        assert limit.status is Status.NOT_INTERPOLABLE and limit.gap == math.inf
        np.testing.assert_allclose(X.T @ limit.proof, 0, atol=1e-12)
        assert np.sum(Y * limit.proof) > 0.1
        # Without its proof it is not told so.
        bare = dataclasses.replace(limit, proof=None).certify(X, Y)
        assert bare.status is Status.INACCURATE


def test_one_score_in_the_l1_norm_is_solved_at_a_degenerate_dual() -> None:
    assert solve_fit(np.eye(2), [1.0, 2.0], loss="squared", norm="l1").require().objective == 3.0
    limit = solve_fit([[3.0, 1.0]], [1.0], loss="squared", norm="linf").require()
    np.testing.assert_allclose(limit.zeta, [0.25, 0.25], rtol=1e-9)


def test_samples_at_an_angle_of_1e_7_are_on_two_rays() -> None:
    X, y = np.array([[1.0, 0.0], [1.0, 1e-7]]), np.array([1.0, -1.0])
    # Scores of the first unit are 1 and 0, of the second 0 and -2: a network with margins 1 and 2.
    network = ib.ReLU.from_weights([[1.0, -2e7], [0.0, 2e7]], [1.0, -1.0])
    with torch.no_grad():
        assert network(torch.tensor(X)).tolist() == pytest.approx([1.0, -2.0])
    assert not on_one_line(ReLUProblem.checked(X, y), 1.0)
    # Multiples are on one ray, by the rounding of their entries too.
    for factor in (3.0, 1 / 3, 1e-9):
        x = np.array([0.1, 0.7])
        both = ib.limits.solve_relu_minnorm(np.array([x, factor * x]), y)
        assert both.status is Status.NOT_SEPARABLE and "one ray" in both.reason


def test_the_start_has_the_value_of_weights_that_no_input_sees() -> None:
    # (1, 5) scores (1, 0) as (1, 0) does, and is sqrt(26) long.
    network = ib.ReLU.from_weights([[1.0, 5.0]], [1.0])
    X, y = np.array([[1.0, 0.0], [2.0, 0.0]]), np.array([1.0, 1.0])
    limit = ib.limits.relu_local_limit(network, X, y)
    assert limit.start_value == pytest.approx(math.sqrt(26)) and limit.value == pytest.approx(1.0)
    start = ib.limits.solve_relu_minnorm(X, y, start=network).start_value
    assert start == pytest.approx(math.sqrt(26))


def test_an_odd_part_that_nothing_linear_separates_is_proved_inseparable() -> None:
    X = np.array([[1.0, 0], [-1, 0], [0, 1], [0, -1], [1, 1], [-1, -1]])
    # f(e1) - f(-e1) > 0 and the same of e2, so that it is positive at e1 + e2: labels say no.
    limit = ib.limits.solve_relu_minnorm(X, [1, -1, 1, -1, -1, 1])
    assert limit.status is Status.NOT_SEPARABLE and "linear" in limit.reason
    for labels in ([1, -1, 1, -1, 1, -1], [1, 1, -1, -1, 1, 1], [1, -1, 1, 1, -1, -1]):
        found = ib.limits.solve_relu_minnorm(X, labels)
        assert found.status is Status.GLOBAL_OPTIMUM and np.all(found.scores * labels > 0.99)


@pytest.mark.parametrize(
    ("classes", "norm", "kind"),
    [(True, "l1", "penalty"), (False, "linf", "penalty")],
)
def test_inputs_of_sizes_a_million_apart_have_the_optimum_of_cvxpy(classes, norm, kind) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(9, 4)) * [1e-3, 1e3, 1.0, 1e2]
    y = np.eye(3)[rng.integers(3, size=9)] if classes else np.sign(rng.normal(size=9))
    limit = solve_fit(X, y, loss="softmax" if classes else "logistic", norm=norm, **{kind: 0.05})
    assert limit.status is Status.SOLVED
    W = cp.Variable((3 if classes else 1, 4))
    if classes:
        loss = cp.sum(cp.log_sum_exp(X @ W.T, axis=1)) - cp.sum(cp.multiply(y, X @ W.T))
    else:
        loss = cp.sum(cp.logistic(-cp.multiply(y, (X @ W.T)[:, 0])))
    size = {"l2": cp.norm(W, "fro"), "l1": cp.sum(cp.abs(W)), "linf": cp.max(cp.abs(W))}[norm]
    stated = (
        cp.Problem(cp.Minimize(loss / 9 + 0.05 * size)) if kind == "penalty"
        else cp.Problem(cp.Minimize(loss / 9), [size <= 0.05])
    )  # fmt: skip
    assert limit.objective == pytest.approx(stated.solve(solver="CLARABEL"), rel=1e-6)


# Each norm and its dual one.
NORMS = {
    "l1": (lambda W: np.abs(W).sum(), lambda V: np.abs(V).max()),
    "linf": (lambda W: np.abs(W).max(), lambda V: np.abs(V).sum()),
    "l2": (np.linalg.norm, np.linalg.norm),
    "rows": (lambda W: np.linalg.norm(W, axis=1).sum(), lambda V: np.linalg.norm(V, axis=1).max()),
    "spectral": (lambda W: np.linalg.norm(W, 2), lambda V: np.linalg.norm(V, "nuc")),
    "nuclear": (lambda W: np.linalg.norm(W, "nuc"), lambda V: np.linalg.norm(V, 2)),
}


@pytest.mark.parametrize(
    ("seed", "norm"),
    # Sums over classes that the ball alone sees, multipliers that rounding moves away,
    # turned inputs, bounds that cross.
    [(9, "linf"), (39, "l1"), (62, "rows"), (43, "l2"), (48, "spectral"), (66, "spectral"),
     (76, "nuclear")],
)  # fmt: skip
def test_small_inputs_beside_large_ones_decide_on_a_joint_margin(seed, norm) -> None:
    rng = np.random.default_rng(seed)
    n, D, K = (int(rng.integers(*ends)) for ends in ((6, 30), (2, 9), (3, 5)))
    X = rng.normal(size=(n, D))
    labels = (X @ rng.normal(size=(D, K))).argmax(axis=1)
    labels[:K] = np.arange(K)
    # Products of samples lose what is 1e-12 of the largest input.
    X *= np.logspace(-6, 6, D)[rng.permutation(D)]
    limit = ib.limits.solve_multiclass_svm(X, labels, norm=norm)
    exact = np.vectorize(Fraction, otypes=[object])
    inputs, own = exact(X), np.eye(K, dtype=int)[labels]
    scores = inputs @ exact(limit.zeta).T
    apart = (scores * own).sum(axis=1)[:, None] - scores
    margin = float(min(apart[own == 0]))
    above, below = NORMS[norm]
    lam = exact(limit.dual)
    point = (own * lam.sum(axis=1)[:, None] - lam).T @ inputs
    lower = float(lam.sum()) / below(point.astype(float))
    upper = above(limit.zeta) / margin
    assert upper == pytest.approx(limit.objective, rel=1e-8)
    # Multipliers, each rounded once, cancel terms as large as an input times the optimum.
    assert 1 - 1e-8 < upper / lower < 1 + 20 * 2.0**-52 * np.abs(X).max() * upper


def test_a_rate_of_values_that_do_not_vary_is_0_without_an_error() -> None:
    rate = ib.measures.fit_rate(np.arange(1.0, 20.0), np.full(19, 0.3))
    assert (rate.exponent, rate.error) == (0.0, 0.0)


def test_weights_that_overflow_are_said_to_and_no_scores_are_compared_with_none() -> None:
    X, y = np.eye(2), np.array([1.0, -1.0])
    network = ib.DeepLinear.from_weights([[1.7e308, -1.7e308]])
    with pytest.raises(ValueError, match=r"overflows: train at a smaller learning rate"):
        ib.kkt_distance(network, X, y, None)
    for measure in (ib.measures.agreement, ib.measures.error_rate):
        with pytest.raises(ValueError, match="n >= 1"):
            measure([], [])


def test_other_labels_at_the_limit_of_a_margin_are_explained() -> None:
    from implicit_bias.runs.reports import Evidence, decide

    said = [decide(Evidence(near={"margin_ratio": 1.0}, beside={"agreement": a})).sentence
            for a in (0.83, 0.97)]  # fmt: skip
    assert "leaves labels held out open" in said[0] and "open" not in said[1]
