"""What scikit-learn's tools expect of estimators: names, frames, coefficients, files."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from implicit_bias import HyperplaneContexts, HyperplaneGates
from implicit_bias.estimators import FReLULimitClassifier, GLNLimitClassifier, LinearLimitClassifier
from implicit_bias.gates import LinearGates, NetworkGates, RandomGates, ReLUGates, SoftGates

RNG = np.random.default_rng(2)
N, D = 45, 4
LABELS = np.arange(N) % 3
X = RNG.normal(size=(N, D)) + 5 * np.eye(3, D)[LABELS]
FRAME = pd.DataFrame(X, columns=list("abcd"), index=np.arange(N) + 100)
LAYERS = [RNG.normal(size=(3, D)), RNG.normal(size=(2, 3))]
GATINGS = {
    "HyperplaneContexts": HyperplaneContexts(5),
    "HyperplaneGates": HyperplaneGates(4),
    "LinearGates": LinearGates(D, widths=(3, 2)),
    "NetworkGates": NetworkGates(LAYERS),
    "RandomGates": RandomGates(widths=(3, 2)),
    "ReLUGates": ReLUGates(RNG.normal(size=(5, D))),
    "SoftGates": SoftGates(LAYERS),
}
CLASSIFIERS = [LinearLimitClassifier, GLNLimitClassifier, FReLULimitClassifier]


@pytest.mark.parametrize("name", GATINGS)
def test_gatings_have_names_and_give_frames_of_the_same_gates(name) -> None:
    gating = clone(GATINGS[name]).fit(FRAME)
    plain = gating.transform(FRAME)
    assert isinstance(plain, np.ndarray)
    assert gating.feature_names_in_.tolist() == list("abcd")
    names = [f"{name.lower()}{k}" for k in range(5)]
    assert gating.get_feature_names_out().tolist() == names
    frame = gating.set_output(transform="pandas").transform(FRAME)
    pd.testing.assert_frame_equal(frame, pd.DataFrame(plain, index=FRAME.index, columns=names))
    pd.testing.assert_frame_equal(clone(gating).fit_transform(FRAME), frame)
    with pytest.raises(ValueError, match="feature names"):
        gating.transform(FRAME[["b", "a", "c", "d"]])


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("classifier", CLASSIFIERS)
def test_frames_and_arrays_have_the_same_scores(classifier) -> None:
    plain = classifier().fit(X, LABELS)
    framed = classifier().fit(FRAME, pd.Series(LABELS))
    assert framed.feature_names_in_.tolist() == list("abcd")
    np.testing.assert_allclose(  # columns lie otherwise in memory, which may round sums otherwise
        framed.decision_function(FRAME), plain.decision_function(X), rtol=1e-9, atol=1e-9
    )
    np.testing.assert_array_equal(framed.predict(FRAME), LABELS)
    with pytest.raises(ValueError, match="feature names"):
        framed.predict(FRAME[["b", "a", "c", "d"]])
    with sklearn.config_context(transform_output="pandas"):
        pipeline = make_pipeline(StandardScaler(), classifier()).fit(FRAME, LABELS)
        assert pipeline.score(FRAME, LABELS) == 1


@pytest.mark.parametrize("add_constant", [True, False])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_linear_coefficients_are_those_of_scikit_learns_classifiers(
    n_classes, add_constant
) -> None:
    keep = LABELS < n_classes
    ours = LinearLimitClassifier(add_constant=add_constant).fit(X[keep], LABELS[keep])
    theirs = LinearSVC(fit_intercept=add_constant, C=1e4, loss="hinge", max_iter=10**6)
    theirs.fit(X[keep], LABELS[keep])
    assert ours.coef_.shape == theirs.coef_.shape
    assert ours.intercept_.shape == np.shape(theirs.intercept_) or not add_constant
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-3)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-3)
    scores = X @ ours.coef_.T + ours.intercept_
    np.testing.assert_allclose(scores.squeeze(), ours.decision_function(X), rtol=1e-12, atol=1e-12)
    iterations = [limit.iterations for limit in ours.limits_]
    assert np.atleast_1d(ours.n_iter_).tolist() == iterations
    assert np.ndim(ours.n_iter_) == (n_classes > 2)


def trusted() -> list[str]:
    """The list in the documentation, as a reader would copy it."""
    page = (Path(__file__).parents[2] / "docs" / "parts.md").read_text(encoding="utf-8")
    (listed,) = re.findall(r"^trusted = (\[.*?^\])", page, flags=re.DOTALL | re.MULTILINE)
    names: list[str] = eval(listed)
    return names


@pytest.mark.parametrize("n_classes", [2, 3])
def test_skops_files_hold_estimators_and_only_what_the_documentation_trusts(n_classes) -> None:
    sio = pytest.importorskip("skops.io")
    keep = LABELS < n_classes
    met = set()
    for estimator in [*(c() for c in CLASSIFIERS), *map(clone, GATINGS.values())]:
        data = sio.dumps(estimator.fit(X[keep], LABELS[keep]))
        met |= set(sio.get_untrusted_types(data=data))
        again = sio.loads(data, trusted=trusted())
        if hasattr(estimator, "transform"):
            np.testing.assert_array_equal(again.transform(X[keep]), estimator.transform(X[keep]))
            continue
        np.testing.assert_array_equal(again.decision_function(X), estimator.decision_function(X))
        assert again.status_ == estimator.status_
        assert np.all(again.dual_gap_ <= 1e-8)
    assert met == set(trusted())
