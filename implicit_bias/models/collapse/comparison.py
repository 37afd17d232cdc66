"""Trained features and classifiers beside their limit: collapse, angles, norms."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ..._support.solve import Status, to_numpy
from ...data.arrays import Floats
from ...measures.scalars import sample_margins, score_cosine
from ...networks.deep_linear import UnconstrainedFeatures
from ...quantities.measured import Measured, part, quantity
from .limit import CollapseLimit, cosines


class CollapseComparison(Measured):
    """Trained features and classifiers, compared with those of their limit.

    What is beside a limit is NaN where none is proved to be the best.
    """

    TITLE = "features and classifiers beside their limit"
    SCREEN = ("margin_ratio", "over_optimum", "zeta_cosine", "within_class", "feature_error",
              "classifier_error")  # fmt: skip

    margin_ratio: float = quantity()
    over_optimum: float = quantity()
    zeta_cosine: float = quantity()
    within_class: float = quantity()
    feature_error: float = quantity()
    classifier_error: float = quantity()
    feature_cosines: Floats = part("(K, K) cosines between class means of features.")
    classifier_cosines: Floats = part("(K, K) cosines between classifiers.")
    feature_norms: Floats = part("(K,) norms of class means of features.")
    classifier_norms: Floats = part("(K,) norms of classifiers.")

    def shown(self) -> tuple[str, ...]:
        """Return names of the attributes with a line in the table: those that are known."""
        return tuple(name for name in super().shown() if not math.isnan(getattr(self, name)))

    def screen(self) -> dict[str, Any]:
        """Return what the first screen shows: what is known."""
        return {name: one for name, one in super().screen().items() if not math.isnan(one)}


def is_named(limit: CollapseLimit) -> bool:
    """Return whether a limit is the best there is, rather than some stationary point."""
    return limit.status in (Status.SOLVED, Status.INACCURATE)


def measure_collapse(
    limit: CollapseLimit, labels: NDArray[np.int64], network: torch.nn.Module
) -> dict[str, Any]:
    """Measure all that a `CollapseComparison` has: an observer for `train`.

    Parameters
    ----------
    limit : CollapseLimit
    labels : (n,) ints
        Classes of the samples.
    network : UnconstrainedFeatures
    """
    assert isinstance(network, UnconstrainedFeatures)
    features, classifiers, zeta = (
        to_numpy(one.detach().double().cpu())
        for one in (network.features(), network.classifiers(), network.zeta())
    )
    Y, sizes = np.eye(len(zeta))[labels], limit.class_sizes
    means = Y.T @ features / sizes[:, None]
    between = float((sizes[:, None] * (means - means.mean(axis=0)) ** 2).sum())
    beside = _beside(limit, Y, zeta.T, float(network.unit_norms()[0].detach()))
    if is_named(limit):
        beside["zeta_cosine"] = score_cosine(_centred(zeta.T), _centred(limit.scores)[labels])
        beside["feature_error"] = _apart(means, limit.features)
        beside["classifier_error"] = _apart(classifiers, limit.classifiers)
    return dict.fromkeys(CollapseComparison.SCREEN, math.nan) | {
        **beside,
        "within_class": float(((features - means[labels]) ** 2).sum()) / max(between, 1e-300),
        "feature_cosines": cosines(means),
        "classifier_cosines": cosines(classifiers),
        "feature_norms": np.linalg.norm(means, axis=1),
        "classifier_norms": np.linalg.norm(classifiers, axis=1),
    }


def _beside(limit: CollapseLimit, Y: Floats, scores: Floats, cost: float) -> dict[str, float]:
    """Return how near what scores cost, of the shortest weights, is to the certified least."""
    least, decay = limit.dual_objective, limit.weight_decay
    if decay is not None:
        loss = np.logaddexp.reduce(scores, axis=1) - (Y * scores).sum(axis=1)
        return {"over_optimum": (float(loss.mean()) + decay * cost) / least - 1}
    margin = float(sample_margins(Y, scores).min())
    return {"margin_ratio": least * margin / cost} if margin > 0 and is_named(limit) else {}


def _apart(rows: Floats, others: Floats) -> float:
    """Return the distance of inner products at Frobenius norm 1: of no rotation and no scale."""
    grams = [one @ one.T for one in (rows, others)]
    own, other = (gram / max(float(np.linalg.norm(gram)), 1e-300) for gram in grams)
    return float(np.linalg.norm(own - other))


def _centred(scores: Floats) -> Floats:
    return np.asarray(scores - scores.mean(axis=1, keepdims=True))
