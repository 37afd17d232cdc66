"""Labels of several classes, one-vs-rest: those of the limits compared with the networks'."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._support.doors import door, result
from .._support.kinds import floats
from .._support.pictures import draw
from .._support.shown import ReadOnly
from ..quantities.measured import Measured, derived, part, quantity
from ..quantities.table import columns

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Float = NDArray[np.float64]

COLUMNS = ("", "limits", "networks as trained", "networks at smallest margin 1")
"""Heads of the table of a `MulticlassComparison`."""


@result()
class MulticlassComparison(ReadOnly, Measured):
    """Labels by the largest of K scores: of K limits, and of K networks, on held-out samples.

    Theory predicts the direction of every network and no scale, so networks are read twice: by
    their scores as trained, and with every network divided by its own smallest training margin,
    which is the scale that the limits have. NaN where some network does not separate.

    Examples
    --------
    >>> limits, networks = np.eye(2), np.array([[2.0, 0.0], [1.0, 0.0]])
    >>> found = ib.measures.compare_argmax([3, 7], [3, 7], limits, networks, [1.0, 1.0])
    >>> found.error_limit, found.error_network
    (0.0, 0.5)
    >>> found.confusion.tolist()
    [[1, 0], [1, 0]]
    """

    classes: tuple[int, ...] = part("Classes, ascending.")
    accuracy_limit: float = part("Share of held-out samples that the limits label right.")
    accuracy_network: float = part("The same of the networks as trained.")
    accuracy_scaled: float = part("The same of the networks at smallest margin 1.")
    agreement: float = quantity(
        doc="Share of held-out samples that limits and networks as trained give the same label."
    )
    agreement_scaled: float = part("The same of the networks at smallest margin 1.")
    confusion: NDArray[np.int64] = part(
        "(K, K) held-out samples by label of the limits (row) and of the networks as trained."
    )

    @derived(shown=False)
    def error_limit(self) -> float:
        """Share of held-out samples that the limits label wrong."""
        return 1 - self.accuracy_limit

    @derived(shown=False)
    def error_network(self) -> float:
        """Share of held-out samples that the networks as trained label wrong."""
        return 1 - self.accuracy_network

    @door()
    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw which labels stand for which; see `Limit.plot` for `ax`."""
        return draw("runs.drawing.classes:plot_label_confusion", self, ax=ax)

    def rows(self) -> list[tuple[str, ...]]:
        """Lines of a table under `COLUMNS`."""
        limits = {"val_accuracy": self.accuracy_limit}
        networks = {"val_accuracy": self.accuracy_network, "agreement": self.agreement}
        scaled = {"val_accuracy": self.accuracy_scaled, "agreement": self.agreement_scaled}
        return columns([limits, networks, scaled], "val_accuracy", "agreement")

    def _shown_rows(self) -> list[tuple[str, ...]]:
        return [COLUMNS, *self.rows()]


@door(
    classes="K",
    labels="m",
    limit_scores=floats("m K: one row a label and one column a class"),
    network_scores=floats("m K: one row a label and one column a class"),
    smallest_margins=floats("K: one a class"),
)
def compare_argmax(
    classes: ArrayLike,
    labels: ArrayLike,
    limit_scores: ArrayLike,
    network_scores: ArrayLike,
    smallest_margins: ArrayLike,
) -> MulticlassComparison:
    """Compare the labels that limits and networks give to held-out samples.

    Parameters
    ----------
    classes : (K,) integers
        Ascending; column k of the scores speaks for `classes[k]`.
    labels : (m,) integers
        True classes.
    limit_scores, network_scores : (m, K)
        Scores of the limits at smallest margin 1, and of the networks as trained.
    smallest_margins : (K,)
        Of the networks on their training data.

    Returns
    -------
    MulticlassComparison
        NaN in what needs networks at smallest margin 1 if a margin is not positive.

    Raises
    ------
    ValueError
        If shapes disagree or there is no sample.

    Examples
    --------
    The second network has four times the scale of its limit, and wins every sample by that:

    >>> limits = np.array([[2.0, 1.0], [1.0, 2.0]])
    >>> networks, margins = limits * [1.0, 4.0], [1.0, 4.0]
    >>> found = ib.measures.compare_argmax([3, 7], [3, 7], limits, networks, margins)
    >>> found.accuracy_network, found.accuracy_scaled
    (0.5, 1.0)
    """
    names, truth = np.asarray(classes), np.asarray(labels)
    limits, networks = np.asarray(limit_scores), np.asarray(network_scores)
    margins = np.asarray(smallest_margins)
    predicted, trained = np.argmax(limits, axis=1), np.argmax(networks, axis=1)
    separate = bool(np.all(margins > 0))
    scaled = np.argmax(networks / margins, axis=1) if separate else None
    confusion = np.zeros((len(names), len(names)), dtype=np.int64)
    np.add.at(confusion, (predicted, trained), 1)
    return MulticlassComparison(
        classes=tuple(int(name) for name in names),
        accuracy_limit=float(np.mean(names[predicted] == truth)),
        accuracy_network=float(np.mean(names[trained] == truth)),
        accuracy_scaled=math.nan if scaled is None else float(np.mean(names[scaled] == truth)),
        agreement=float(np.mean(predicted == trained)),
        agreement_scaled=math.nan if scaled is None else float(np.mean(predicted == scaled)),
        confusion=confusion,
    )
