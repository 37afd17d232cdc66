"""The scikit-learn classifiers: the limits behind any labels, with their certificates."""

from __future__ import annotations

import math
import pickle
import warnings

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from implicit_bias import (
    HyperplaneContexts,
    HyperplaneGates,
    NotCertified,
    Status,
    solve_frelu_svm,
    solve_gln_svm,
    solve_linear_svm,
)
from implicit_bias.estimators import (
    FReLULimitClassifier,
    GLNLimitClassifier,
    InseparableWarning,
    LinearLimitClassifier,
)
from implicit_bias.gates import ReLUGates

CLASSIFIERS = [LinearLimitClassifier, GLNLimitClassifier, FReLULimitClassifier]
# (0, 0), (1, 1) against (0, 1), (1, 0), every point twice: no line, with or without a bias.
XOR = np.array([[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0]] * 2)
XOR_LABELS = np.array([1, 1, 0, 0] * 2)


@pytest.mark.filterwarnings("ignore::implicit_bias.estimators.InseparableWarning")
@parametrize_with_checks([CLASSIFIERS[0]()])
def test_scikit_learn_accepts_an_estimator_of_their_base(estimator, check) -> None:
    check(estimator)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::implicit_bias.estimators.InseparableWarning")
@parametrize_with_checks([classifier() for classifier in CLASSIFIERS[1:]])
def test_scikit_learn_accepts_the_other_estimators(estimator, check) -> None:
    check(estimator)


def with_constant(X: np.ndarray) -> np.ndarray:
    return np.hstack([X, np.ones((len(X), 1))])


def blobs(n_classes: int, n: int = 60, D: int = 5, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Classes around `4 e_k`, shifted away from the origin: each is separable from the rest."""
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % n_classes
    X = 0.5 * rng.normal(size=(n, D)) + 4 * np.eye(n_classes, D)[labels] + 1
    return X, labels


def digits(n: int) -> tuple[np.ndarray, np.ndarray]:
    images, labels = load_digits(return_X_y=True)
    return images[:n] / 8 - 1, labels[:n]


@pytest.mark.parametrize("n_classes", [2, 3, 4])
def test_linear_limit_is_the_hard_margin_machine_of_scikit_learn(n_classes) -> None:
    X, labels = blobs(n_classes)
    ours = LinearLimitClassifier().fit(X, labels)
    theirs = LinearSVC(
        fit_intercept=False, C=1e4, loss="hinge", tol=1e-8, max_iter=10**6, random_state=0
    ).fit(with_constant(X), labels)
    np.testing.assert_allclose(
        np.atleast_2d(ours.zeta_), theirs.coef_, atol=1e-4 * np.abs(theirs.coef_).max()
    )
    new = X + 0.5
    np.testing.assert_array_equal(ours.predict(new), theirs.predict(with_constant(new)))


@pytest.mark.parametrize("add_constant", [True, False])
@pytest.mark.parametrize("classifier", CLASSIFIERS)
def test_two_classes_have_the_limit_of_their_function(classifier, add_constant) -> None:
    X, labels = blobs(2)
    inputs = with_constant(X) if add_constant else X
    y = 2.0 * labels - 1
    contexts = HyperplaneContexts().fit_transform(inputs)
    gates = HyperplaneGates().fit_transform(inputs)
    limit = {
        LinearLimitClassifier: lambda: solve_linear_svm(inputs, y),
        GLNLimitClassifier: lambda: solve_gln_svm(inputs, y, contexts),
        FReLULimitClassifier: lambda: solve_frelu_svm(inputs, y, gates),
    }[classifier]()
    fitted = classifier(add_constant=add_constant).fit(X, np.array(["no", "yes"])[labels])
    assert fitted.classes_.tolist() == ["no", "yes"]
    assert fitted.status_ is limit.require().status
    assert fitted.dual_gap_ == limit.gap <= 1e-8
    assert fitted.n_features_in_ == 5
    np.testing.assert_array_equal(fitted.zeta_, limit.zeta)
    np.testing.assert_array_equal(fitted.dual_, limit.dual)
    np.testing.assert_array_equal(fitted.support_, np.flatnonzero(limit.support))
    scores = fitted.decision_function(X)
    assert scores.shape == (60,)
    np.testing.assert_allclose(scores * y, limit.margins, rtol=1e-12)
    assert np.min(scores * y) == pytest.approx(1, rel=1e-12)
    np.testing.assert_array_equal(fitted.predict(X), np.array(["no", "yes"])[labels])


@pytest.mark.parametrize("classifier", CLASSIFIERS)
def test_the_names_of_two_classes_decide_the_sign_and_nothing_else(classifier) -> None:
    X, labels = blobs(2)
    one = classifier().fit(X, labels).decision_function(X)
    other = classifier().fit(X, np.array(["b", "a"])[labels]).decision_function(X)
    np.testing.assert_allclose(one, -other, rtol=1e-6)


def test_ten_digits_have_ten_certified_machines() -> None:
    X, labels = digits(600)
    train, held_out = slice(0, 400), slice(400, None)
    names = np.array([f"digit {k}" for k in range(10)])
    fitted = GLNLimitClassifier().fit(X[train], names[labels[train]])
    inputs = with_constant(X[train])
    contexts = HyperplaneContexts().fit_transform(inputs)
    scores = fitted.decision_function(X[train])
    assert scores.shape == (400, 10)
    assert fitted.zeta_.shape == (10, 10, 2, 65)
    assert fitted.dual_.shape == (10, 400)
    assert fitted.status_ == [Status.SOLVED] * 10
    assert fitted.dual_gap_.shape == (10,)
    assert np.all(fitted.dual_gap_ <= 1e-8)
    for k, limit in enumerate(fitted.limits_):
        y = np.where(labels[train] == k, 1.0, -1.0)
        alone = solve_gln_svm(inputs, y, contexts)
        assert limit.objective == pytest.approx(alone.objective, rel=1e-7)
        assert np.min(y * scores[:, k]) == pytest.approx(1, rel=1e-12)
        np.testing.assert_array_equal(fitted.support_[k], np.flatnonzero(alone.support))
    np.testing.assert_array_equal(fitted.predict(X[train]), names[labels[train]])
    # LinearSVC, scikit-learn's own one-against-rest, is right on 88 % of these.
    assert fitted.score(X[held_out], names[labels[held_out]]) > 0.85
    with pytest.raises(AttributeError, match="limits_"):
        _ = fitted.limit_


@pytest.mark.parametrize("classifier", CLASSIFIERS[1:])
def test_the_bias_is_a_constant_column_and_nothing_else(classifier) -> None:
    X, labels = blobs(3)
    one = classifier().fit(X, labels)
    other = classifier(add_constant=False).fit(with_constant(X), labels)
    np.testing.assert_array_equal(one.zeta_, other.zeta_)
    np.testing.assert_array_equal(
        one.decision_function(X + 1), other.decision_function(with_constant(X + 1))
    )


def test_a_fitted_gating_is_used_as_it_is() -> None:
    X, labels = blobs(2)
    gating = HyperplaneContexts(4, 4, cutoffs="random", random_state=5).fit(with_constant(3 * X))
    cutoffs = gating.cutoffs_.copy()
    fitted = GLNLimitClassifier(gating).fit(X, labels)
    assert fitted.gating_ is gating
    np.testing.assert_array_equal(gating.cutoffs_, cutoffs)
    alone = solve_gln_svm(
        with_constant(X), 2.0 * labels - 1, gating.transform(with_constant(X)), n_contexts=4
    )
    np.testing.assert_array_equal(fitted.zeta_, alone.zeta)


def test_any_other_gating_is_cloned_and_fitted_on_what_the_units_see() -> None:
    X, labels = blobs(2)
    gating = HyperplaneContexts(3, 2)
    fitted = GLNLimitClassifier(gating).fit(X, labels)
    assert fitted.gating_ is not gating
    assert not hasattr(gating, "normals_")
    np.testing.assert_array_equal(
        fitted.gating_.cutoffs_, HyperplaneContexts(3, 2).fit(with_constant(X)).cutoffs_
    )
    assert not hasattr(clone(fitted).gating, "normals_")


def test_contexts_that_training_did_not_see_have_coefficients() -> None:
    X, labels = blobs(2)
    gating = HyperplaneContexts(2, 8, random_state=3).fit(with_constant(100 * X))
    gating.cutoffs_ = np.full_like(gating.cutoffs_, 1e4)
    assert np.all(gating.transform(with_constant(X)) == 0)
    fitted = GLNLimitClassifier(gating).fit(X, labels)
    assert fitted.zeta_.shape == (2, 8, 6)
    far = -1e3 * np.sum(gating.normals_, axis=(0, 1))[None, :5]
    far = np.vstack([far, -far])
    assert gating.transform(with_constant(far)).max() > 0
    assert np.all(np.isfinite(fitted.decision_function(far)))


def test_a_frozen_gating_survives_cross_validation() -> None:
    X, labels = blobs(2)
    gating = HyperplaneContexts(4, 2, random_state=None).fit(with_constant(X))
    search = GridSearchCV(
        GLNLimitClassifier(FrozenEstimator(gating)), {"tol": [1e-6, 1e-8]}, cv=3
    ).fit(X, labels)
    assert search.best_score_ > 0.9
    np.testing.assert_array_equal(
        search.best_estimator_.gating_.transform(with_constant(X)),
        gating.transform(with_constant(X)),
    )


def test_gates_of_a_network_need_no_fit() -> None:
    X, labels = blobs(2)
    gating = ReLUGates(np.random.default_rng(0).normal(size=(7, 6)))
    fitted = clone(FReLULimitClassifier(gating)).fit(X, labels)
    alone = solve_frelu_svm(with_constant(X), 2.0 * labels - 1, gating.transform(with_constant(X)))
    np.testing.assert_array_equal(fitted.zeta_, alone.zeta)


def test_pipelines_and_grid_search_reach_the_gating() -> None:
    X, labels = blobs(3, n=90)
    pipeline = make_pipeline(StandardScaler(), GLNLimitClassifier(HyperplaneContexts()))
    search = GridSearchCV(pipeline, {"glnlimitclassifier__gating__n_units": [2, 5]}, cv=3)
    search.fit(X, labels)
    assert search.best_score_ > 0.9
    shapes = {
        n: clone(pipeline)
        .set_params(glnlimitclassifier__gating__n_units=n)
        .fit(X, labels)[-1]
        .zeta_.shape
        for n in (2, 5)
    }
    assert shapes == {2: (3, 2, 2, 6), 5: (3, 5, 2, 6)}
    assert np.mean(cross_val_score(LinearLimitClassifier(), X, labels)) > 0.9


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("classifier", CLASSIFIERS)
def test_pickles_keep_scores_and_certificates(classifier, n_classes) -> None:
    X, labels = blobs(n_classes)
    fitted = classifier().fit(X, labels)
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.decision_function(X), fitted.decision_function(X))
    assert again.status_ == fitted.status_
    assert [limit.certificate for limit in again.limits_] == [
        limit.certificate for limit in fitted.limits_
    ]


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_inseparable_data_fall_back_on_the_limit_with_weight_decay_and_say_so(scale) -> None:
    rng = np.random.default_rng(1)
    X, labels = scale * rng.normal(size=(80, 2)), rng.integers(0, 2, size=80)
    gating = HyperplaneContexts(3, 2).fit(X)
    fitted = GLNLimitClassifier(gating, add_constant=False, weight_decay=0.03 * scale)
    with pytest.warns(InseparableWarning, match="^NOT_SEPARABLE. Predictions"):
        fitted.fit(X, labels)
    assert fitted.status_ is fitted.limit_.status is Status.NOT_SEPARABLE
    assert fitted.dual_gap_ == math.inf
    assert np.sum(fitted.dual_) == pytest.approx(1)
    # The conditions of the group lasso, written out.
    y = 2.0 * labels - 1
    r = y / (1 + np.exp(y * fitted.decision_function(X))) / 80
    contexts = gating.transform(X)
    dead = 0
    for h, zeta in enumerate(fitted.zeta_):
        V = np.stack([(r * (contexts[:, h] == c)) @ X for c in range(2)])
        size = np.linalg.norm(zeta)
        if size > 0:
            np.testing.assert_allclose(V, 0.03 * scale * zeta / size, rtol=1e-4, atol=1e-5 * scale)
        else:
            assert np.linalg.norm(V) <= 0.03 * scale
            dead += 1
    assert dead < 3
    (finite,) = fitted.finite_limits_
    assert finite.status is Status.SOLVED and finite.gap <= 1e-8
    np.testing.assert_array_equal(finite.zeta, fitted.zeta_)


def test_the_warning_of_many_inseparable_classes_is_short() -> None:
    X, labels = np.zeros((10, 1)), [f"digit number {k}" for k in range(10)]
    with pytest.warns(InseparableWarning, match="other classes") as caught:
        LinearLimitClassifier().fit(X, labels)
    (one,) = (one for one in caught if one.category is InseparableWarning)
    assert len(str(one.message)) <= 200


@pytest.mark.parametrize("classifier", CLASSIFIERS)
def test_a_contradiction_raises_if_asked_and_leaves_no_earlier_answer(classifier) -> None:
    X, labels = blobs(2)
    fitted = classifier(on_inseparable="raise").fit(X, labels)
    with pytest.raises(NotCertified, match="NOT_SEPARABLE") as caught:
        fitted.fit(np.vstack([X, X[:1]]), np.append(labels, 1 - labels[0]))
    assert caught.value.result.status is Status.NOT_SEPARABLE
    with pytest.raises(NotFittedError):
        fitted.predict(X)
    with pytest.raises(NotFittedError):
        _ = fitted.status_


def test_only_the_inseparable_class_of_several_falls_back() -> None:
    # On a line the ends can be told from the rest, the middle cannot.
    X = np.array([[-1.0], [0.0], [1.0]])
    fitted = LinearLimitClassifier()
    with pytest.warns(InseparableWarning, match="^class middle against the rest: NOT_SEPARABLE. "):
        fitted.fit(X, ["left", "middle", "right"])
    assert [status.name for status in fitted.status_] == ["SOLVED", "NOT_SEPARABLE", "SOLVED"]
    np.testing.assert_allclose(fitted.zeta_[[0, 2]], [[-2, -1], [2, -1]], atol=1e-7)
    assert np.isinf(fitted.dual_gap_).tolist() == [False, True, False]
    assert [limit is None for limit in fitted.finite_limits_] == [True, False, True]
    # Labels (-1, 1, -1) have no slope, and the share of a third, moved by the decay of 0.01.
    slope, constant = fitted.zeta_[1]
    assert slope == pytest.approx(0, abs=1e-9)
    assert 1 / (1 + math.exp(-constant)) - 1 / 3 == pytest.approx(-0.01 * constant, abs=1e-9)


@pytest.mark.parametrize("classifier", CLASSIFIERS)
def test_gates_make_exclusive_or_separable_and_lines_do_not(classifier) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fitted = classifier().fit(XOR, XOR_LABELS)
    linear = classifier is LinearLimitClassifier
    assert [w.category for w in caught] == [InseparableWarning] * linear
    assert fitted.status_ is (Status.NOT_SEPARABLE if linear else Status.SOLVED)
    assert fitted.score(XOR, XOR_LABELS) == 1 or linear


def test_a_missed_tolerance_is_a_convergence_warning_and_no_fallback() -> None:
    X, labels = blobs(2)
    fitted = GLNLimitClassifier(max_iterations=5, on_inseparable="raise")
    with pytest.warns(ConvergenceWarning, match="gap"):
        fitted.fit(X, labels)
    assert fitted.status_ is Status.INACCURATE
    assert 1e-8 < fitted.dual_gap_ < math.inf
    np.testing.assert_array_equal(fitted.zeta_, fitted.limit_.zeta)


@pytest.mark.parametrize(
    ("estimator", "error", "match"),
    [
        (LinearLimitClassifier(on_inseparable="ignore"), ValueError, "on_inseparable"),
        (LinearLimitClassifier(tol=2), ValueError, "tol"),
        (LinearLimitClassifier(weight_decay=0.0), ValueError, "`weight_decay`"),
        (LinearLimitClassifier(solver="simplex"), ValueError, "`solver` must be one of"),
        (GLNLimitClassifier(gating="median"), TypeError, "transformer"),
        (
            GLNLimitClassifier(HyperplaneContexts().fit(np.eye(5))),
            ValueError,
            "fitted on 5 inputs.* constant column included",
        ),
    ],
)
def test_bad_parameters_are_refused_when_fitting(estimator, error, match) -> None:
    with pytest.raises(error, match=match):
        estimator.fit(*blobs(2))


@pytest.mark.parametrize("classifier", CLASSIFIERS)
def test_sparse_inputs_and_single_classes_are_refused_clearly(classifier) -> None:
    X, labels = blobs(2)
    if classifier is not LinearLimitClassifier:  # which takes them
        with pytest.raises(TypeError, match=r"[Ss]parse"):
            classifier().fit(csr_array(X), labels)
    with pytest.raises(ValueError, match="at least two classes"):
        classifier().fit(X, np.ones(60))
