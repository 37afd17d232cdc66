"""Weights of samples and classes: what they move, and what they leave where it is."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.ensemble import BaggingClassifier
from sklearn.linear_model import LogisticRegression

from implicit_bias import HyperplaneContexts, HyperplaneGates
from implicit_bias.estimators import (
    FReLULimitClassifier,
    GLNLimitClassifier,
    InseparableWarning,
    LinearLimitClassifier,
)
from implicit_bias.gates import RandomGates

CLASSIFIERS = [LinearLimitClassifier, GLNLimitClassifier, FReLULimitClassifier]
RNG = np.random.default_rng(4)
N, D = 40, 4
LABELS = np.arange(N) % 2
X = RNG.normal(size=(N, D)) + 4 * np.eye(2, D)[LABELS]
WEIGHTS = np.exp(RNG.normal(scale=3, size=N))


def fixed(classifier, **keywords):
    """With a gating that is fitted already, which no weight moves."""
    if classifier is LinearLimitClassifier:
        return classifier(add_constant=False, **keywords)
    kind = HyperplaneContexts if classifier is GLNLimitClassifier else HyperplaneGates
    return classifier(kind(3).fit(X), add_constant=False, **keywords)


@pytest.mark.parametrize("classifier", CLASSIFIERS)
def test_positive_weights_do_not_move_the_limit(classifier) -> None:
    plain = fixed(classifier).fit(X, LABELS)
    weighted = fixed(classifier, class_weight={0: 30.0, 1: 0.1}).fit(X, LABELS, WEIGHTS)
    assert weighted.limit_.objective == pytest.approx(plain.limit_.objective, rel=1e-8)
    np.testing.assert_allclose(
        weighted.decision_function(X + 1), plain.decision_function(X + 1), rtol=1e-4, atol=1e-5
    )
    np.testing.assert_array_equal(weighted.support_, plain.support_)
    np.testing.assert_allclose(weighted.dual_, plain.dual_, atol=1e-4 * plain.dual_.max())


@pytest.mark.parametrize("classifier", CLASSIFIERS)
def test_rows_of_weight_zero_are_not_there(classifier) -> None:
    keep = RNG.random(N) < 0.7
    some = fixed(classifier).fit(X[keep], LABELS[keep])
    zeros = fixed(classifier).fit(X, LABELS, sample_weight=keep)
    assert zeros.limit_.objective == pytest.approx(some.limit_.objective, rel=1e-8)
    np.testing.assert_array_equal(zeros.support_, np.flatnonzero(keep)[some.support_])
    assert zeros.dual_.shape == (N,)
    assert np.all(zeros.dual_[~keep] == 0)
    assert np.sum(zeros.dual_) == pytest.approx(zeros.limit_.objective)


def test_equal_rows_are_solved_once_and_share_their_multiplier() -> None:
    once = fixed(LinearLimitClassifier).fit(X, LABELS)
    thrice = fixed(LinearLimitClassifier).fit(np.tile(X, (3, 1)), np.tile(LABELS, 3))
    assert len(thrice.limit_.dual) == N
    copies = thrice.dual_.reshape(3, N)
    assert np.all(copies == copies[0])
    np.testing.assert_allclose(copies.sum(axis=0), once.dual_, atol=1e-5)
    assert thrice.support_.tolist() == [i + k * N for k in range(3) for i in once.support_]


def test_equal_inputs_with_gates_of_their_own_stay_apart() -> None:
    inputs, labels = np.ones((2, 1)), np.array([1, 0])
    gating = RandomGates(widths=(6,), rate=0.5, random_state=0).fit(inputs)
    assert not np.array_equal(*gating.table_)
    fitted = FReLULimitClassifier(gating, add_constant=False).fit(inputs, labels)
    assert fitted.score(inputs, labels) == 1
    twice = RandomGates(widths=(6,), rate=0.5, random_state=0).fit(np.ones((4, 1)))
    fitted = FReLULimitClassifier(twice, add_constant=False).fit(np.ones((4, 1)), [1, 0, 1, 0])
    assert len(fitted.limit_.dual) == 4


@pytest.mark.parametrize("class_weight", [None, {0: 5.0, 1: 0.5}, "balanced"])
def test_the_limit_with_weight_decay_of_inseparable_data_is_weighted(class_weight) -> None:
    labels = np.random.default_rng(1).integers(0, 2, size=N)
    fitted = LinearLimitClassifier(add_constant=False, class_weight=class_weight)
    with pytest.warns(InseparableWarning):
        fitted.fit(X, labels, sample_weight=WEIGHTS)
    costs = WEIGHTS.copy()
    if class_weight == "balanced":
        costs = WEIGHTS / np.bincount(labels, WEIGHTS)[labels]
    elif class_weight:
        costs = WEIGHTS * np.array([5.0, 0.5])[labels]
    logistic = LogisticRegression(C=100 / costs.sum(), fit_intercept=False, tol=1e-12)
    logistic.fit(X, labels, sample_weight=costs)  # its penalty is that of the sum of the losses
    np.testing.assert_allclose(fitted.zeta_, logistic.coef_[0], rtol=1e-5)


@pytest.mark.parametrize("kind", [HyperplaneContexts, HyperplaneGates])
def test_weighted_medians_are_those_of_repeated_rows(kind) -> None:
    counts = RNG.integers(0, 4, size=N)
    weighted = kind(8).fit(X, sample_weight=counts).transform(X)
    np.testing.assert_array_equal(weighted, kind(8).fit(np.repeat(X, counts, 0)).transform(X))
    assert not np.array_equal(weighted, kind(8).fit(X).transform(X))


def test_a_class_of_weight_zero_is_no_class() -> None:
    labels = np.arange(N) % 3
    fitted = LinearLimitClassifier(class_weight={0: 1, 1: 0, 2: 1}).fit(
        X + 3 * labels[:, None], labels
    )
    assert fitted.classes_.tolist() == [0, 2]


def test_bagging_hands_its_weights_on() -> None:
    bag = BaggingClassifier(LinearLimitClassifier(), n_estimators=3, random_state=0).fit(X, LABELS)
    assert bag.score(X, LABELS) == 1


@pytest.mark.parametrize(
    ("weights", "class_weight", "match"),
    [
        (np.ones(3), None, r"shape \(40,\), got \(3,\)"),
        (np.where(LABELS, 1.0, -1.0), None, "no weight negative"),
        (np.where(LABELS, 1.0, np.nan), None, "must be finite"),
        (np.zeros(N), None, "every weight is zero"),
        (LABELS, None, "one class.*positive weight"),
        (None, {0: -1.0, 1: 1.0}, "`class_weight` must be finite"),
        (None, {0: 0.0, 1: 0.0}, "not all of them zero"),
        (None, "equal", "class_weight"),
    ],
)
def test_what_are_no_weights_is_refused(weights, class_weight, match) -> None:
    with pytest.raises(ValueError, match=match):
        LinearLimitClassifier(class_weight=class_weight).fit(X, LABELS, sample_weight=weights)


def test_sparse_inputs_have_the_same_limit_with_weight_decay() -> None:
    rng = np.random.default_rng(5)
    wide = rng.normal(size=(12, 30)) * (rng.random((12, 30)) < 0.3)
    wide, labels = np.vstack([wide, wide[:2]]), np.append(np.arange(12) % 2, [1, 0])
    found = []
    for inputs in (wide, csr_array(wide)):
        with pytest.warns(InseparableWarning):
            found.append(LinearLimitClassifier().fit(inputs, labels))
    np.testing.assert_allclose(found[1].zeta_, found[0].zeta_, atol=1e-9)
    assert found[1].finite_limits_[0].gap <= 1e-8
