"""Classifiers beside a trained network: what is certified of each, and how it labels new data."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from .._support.doors import door, result
from .._support.kinds import any_number
from .._support.solve import Status, require_shape, to_numpy
from ..data.arrays import Floats
from ..limits.local.limit import LocalLimit
from ..quantities.measured import Measured, part, quantity, side_by_side
from ..quantities.table import TABLE
from .scalars import agreement, cosine, error_rate


class Classifier(Protocol):
    """A limit, a kernel machine or a local limit: a certified answer that predicts."""

    @property
    def status(self) -> Any:
        """The status of its certificate."""
        ...

    @property
    def predictor(self) -> Callable[..., Any]:
        """The function from inputs, and gates, to scores."""
        ...


@result()
class ClassifierComparison(Measured):
    """A certified classifier beside a trained network, on held-out data.

    What needs scores is NaN where the classifier has none, or the held-out data have no gates.

    Examples
    --------
    >>> machine = ib.solve_kernel_svm(np.eye(2), np.array([1.0, -1.0]))
    >>> scores, y = np.array([2.0, -1.0]), np.ones(2)
    >>> new = np.array([[1.0, 0.0], [0.5, 1.0]])
    >>> found = ib.measures.compare_classifier("SVM", machine, (new,), scores, y)
    >>> found.name, round(found.score_cosine, 6), found.agreement
    ('SVM', 1.0, 1.0)
    """

    name: str = part("Name of the classifier.", recorded=False)
    status: str = quantity()
    certificate: float = quantity()
    score_cosine: float = quantity()
    agreement: float = quantity()
    error: float = quantity()


@door()
def compare_classifier(
    name: str,
    classifier: Classifier,
    inputs: tuple[Any, ...] | None,
    trained: Floats | None,
    y: Floats,
) -> ClassifierComparison:
    """Compare a certified classifier with a trained network on held-out data.

    Parameters
    ----------
    name : str
    classifier : Limit, KernelLimit or LocalLimit
    inputs : tuple or None
        What `classifier.predictor` takes for the held-out data: inputs (m, D) and their gates, or
        a kernel (m, n). None where these are not known.
    trained : (m,) array or None
        Scores of the network on the held-out data.
    y : (m,) array
        Held-out labels in {-1, +1}.

    Returns
    -------
    ClassifierComparison
        NaN in what needs scores if there are none, or the classifier does not separate its own
        training data.

    Examples
    --------
    >>> machine = ib.solve_kernel_svm(np.eye(2), np.array([1.0, -1.0]))
    >>> new = np.array([[1.0, 0.0], [0.5, 1.0]])
    >>> scores, y = np.array([3.0, 1.0]), np.ones(2)
    >>> found = ib.measures.compare_classifier("SVM", machine, (new,), scores, y)
    >>> found.status, found.agreement, found.error
    ('SOLVED', 0.5, 0.5)
    """
    found = dict.fromkeys(("score_cosine", "agreement", "error"), math.nan)
    if inputs is not None and trained is not None and len(y) and _predicts(classifier):
        scores = to_numpy(classifier.predictor(*inputs))
        require_shape("trained", trained, scores.shape, "the network's scores on these inputs")
        require_shape("y", y, scores.shape, "one label a score")
        found = {
            "score_cosine": cosine(scores, trained),
            "agreement": agreement(scores, trained),
            "error": error_rate(y, scores),
        }
    return ClassifierComparison(
        name=name,
        status=classifier.status.name,
        certificate=_certified_number(classifier),
        **found,
    )


@door(error_network=any_number)
def classifier_rows(
    classifiers: Mapping[str, ClassifierComparison], error_network: float, *names: str
) -> list[tuple[str, ...]]:
    """Lines of a table with one column a classifier, and the error of the network last.

    Parameters
    ----------
    classifiers : mapping of str to ClassifierComparison
        At least one, all of one class.
    error_network : float
        Of the network beside them, on the same data.
    names : str
        Attributes, one a line; all that are shown if none is named.

    Returns
    -------
    list of tuple of str
        The label and one text a classifier of every line.

    Examples
    --------
    >>> machine = ib.solve_kernel_svm(np.eye(2), np.array([1.0, -1.0]))
    >>> scores, y = np.array([3.0, 1.0]), np.ones(2)
    >>> found = ib.measures.compare_classifier("SVM", machine, (np.eye(2),), scores, y)
    >>> ib.measures.classifier_rows({"SVM": found}, 0.0, "error")
    [('held-out error', '50.00%'), ('held-out error, network', '0.00%')]
    """
    error = TABLE["error_network"]
    return [
        *side_by_side(list(classifiers.values()), *names),
        (error.title, *[error.text(error_network)] * len(classifiers)),
    ]


def _predicts(classifier: Any) -> bool:
    """Tell if a classifier separates its training data, so that its scores mean something."""
    if isinstance(classifier, LocalLimit):
        return classifier.status is not Status.FAILED
    return bool(classifier.certificate.proves_separability())


def _certified_number(classifier: Any) -> float:
    return float(classifier.residual if isinstance(classifier, LocalLimit) else classifier.gap)
