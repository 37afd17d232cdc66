"""Classifiers of several classes by one program, beside scikit-learn's and the limit itself."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from implicit_bias import HyperplaneContexts, HyperplaneGates, NotCertified, Status
from implicit_bias.estimators import (
    FReLULimitClassifier,
    GLNLimitClassifier,
    InseparableWarning,
    LinearLimitClassifier,
)
from implicit_bias.limits import solve_multiclass_svm

RNG = np.random.default_rng(5)
X, B0 = RNG.normal(size=(24, 9)), RNG.normal(size=(3, 9))
LABELS = (X @ B0.T).argmax(axis=1)
NAMES = np.array(["ash", "birch", "cedar"])[LABELS]
OPTIMUM = 2.93201800  # cvxpy with Clarabel


@pytest.mark.filterwarnings("ignore::implicit_bias.estimators.InseparableWarning")
@parametrize_with_checks([LinearLimitClassifier(multi_class="joint")])
def test_scikit_learn_accepts_the_joint_estimator(estimator, check) -> None:
    check(estimator)


def test_the_joint_program_is_that_of_crammer_and_singer_without_slack() -> None:
    found = LinearLimitClassifier(add_constant=False, multi_class="joint").fit(X, NAMES)
    peer = LinearSVC(
        multi_class="crammer_singer", C=1e4, fit_intercept=False, tol=1e-8, max_iter=100_000
    ).fit(X, NAMES)
    np.testing.assert_allclose(found.coef_, peer.coef_, atol=1e-6)
    assert found.limit_.objective == pytest.approx(OPTIMUM, rel=1e-8)
    assert found.status_ is Status.SOLVED and found.dual_gap_ <= 1e-8 and found.n_iter_ > 0
    np.testing.assert_array_equal(found.predict(X), NAMES)
    assert found.decision_function(X).shape == (24, 3)


def test_rows_that_repeat_share_their_multipliers_and_support() -> None:
    once = LinearLimitClassifier(multi_class="joint").fit(X, LABELS)
    twice = LinearLimitClassifier(multi_class="joint").fit(np.vstack([X, X]), np.tile(LABELS, 2))
    np.testing.assert_allclose(twice.zeta_, once.zeta_, atol=1e-9)
    np.testing.assert_allclose(twice.dual_[:24], once.dual_ / 2, atol=1e-9)
    np.testing.assert_array_equal(twice.support_[: len(once.support_)], once.support_)
    assert np.all(once.dual_[np.arange(24), LABELS] == 0)


def test_sparse_inputs_and_two_classes_have_the_programs_of_dense_and_of_today() -> None:
    dense = LinearLimitClassifier(multi_class="joint").fit(X, LABELS)
    sparse = LinearLimitClassifier(multi_class="joint").fit(csr_array(X), LABELS)
    np.testing.assert_allclose(sparse.zeta_, dense.zeta_, atol=1e-12)
    np.testing.assert_allclose(
        sparse.decision_function(csr_array(X)), dense.decision_function(X), atol=1e-12
    )
    kinds = ("joint", "one-vs-rest")
    two = [LinearLimitClassifier(multi_class=kind).fit(X, LABELS > 0) for kind in kinds]
    np.testing.assert_array_equal(two[0].zeta_, two[1].zeta_)


GATED = {
    "gates": (FReLULimitClassifier, HyperplaneGates(2, random_state=0), None),
    "contexts": (GLNLimitClassifier, HyperplaneContexts(2, 2, random_state=0), 2),
}


@pytest.mark.parametrize("kind", GATED)
def test_gated_classes_have_the_least_sum_of_nuclear_norms(kind) -> None:
    machine, gating, C = GATED[kind]
    found = machine(gating, add_constant=False, multi_class="joint").fit(X, LABELS)
    gates = found.gating_.transform(X)
    limit = solve_multiclass_svm(X, LABELS, gates, norm="sum-nuclear", n_contexts=C)
    assert found.limit_.objective == pytest.approx(limit.objective, rel=1e-6)
    np.testing.assert_array_equal(found.predict(X), LABELS)
    nuclear = np.linalg.svd(found.zeta_.reshape(*found.zeta_.shape[:2], -1), compute_uv=False).sum()
    assert nuclear == pytest.approx(found.limit_.objective, rel=1e-6)
    # A few rows of both classes alike: with weight decay, by the same program's penalty.
    doubled, labels = np.vstack([X, X[:1]]), np.append(LABELS, (LABELS[0] + 1) % 3)
    with pytest.warns(InseparableWarning):
        decayed = machine(found.gating_, add_constant=False, multi_class="joint", tol=1e-6).fit(
            doubled, labels
        )
    (finite,) = decayed.finite_limits_
    assert finite is not None and finite.status is Status.SOLVED and finite.norm == "sum-nuclear"
    np.testing.assert_array_equal(decayed.zeta_, finite.zeta)
    assert decayed.zeta_.shape == found.zeta_.shape
    opened = decayed.gating_.transform(doubled)
    np.testing.assert_allclose(
        decayed.decision_function(doubled), finite.predictor(doubled, opened), atol=1e-12
    )


def test_inseparable_classes_fall_back_on_the_limit_of_the_softmax_with_weight_decay() -> None:
    doubled, labels = np.vstack([X, X[:1]]), np.append(LABELS, (LABELS[0] + 1) % 3)
    with pytest.warns(InseparableWarning, match=r"^NOT_SEPARABLE\. Predictions are"):
        found = LinearLimitClassifier(multi_class="joint").fit(doubled, labels)
    assert found.status_ is Status.NOT_SEPARABLE
    constant = np.hstack([doubled, np.ones((len(doubled), 1))])
    logistic = LogisticRegression(C=100 / len(doubled), fit_intercept=False, tol=1e-10)
    logistic.fit(constant, labels)  # its penalty is that of the sum of the losses
    np.testing.assert_allclose(found.zeta_, logistic.coef_, atol=1e-4)
    with pytest.raises(NotCertified):
        LinearLimitClassifier(multi_class="joint", on_inseparable="raise").fit(doubled, labels)
    with pytest.raises(ValueError, match=r"`multi_class`.*'both'"):
        LinearLimitClassifier(multi_class="both").fit(X, LABELS)  # type: ignore[arg-type]
