"""Trained heads compared with their limits at every exit, and averages of the first exits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np

from ...data.arrays import Floats
from ...measures.scalars import sample_margins
from ...quantities.formatting import degrees
from ...quantities.measured import Measured, part, quantity, stacked
from ...quantities.said import Side, Table
from .exits import averages
from .frozen_trunk import Exits
from .limit import HeadLimit
from .losses import UNLABELLED, exit_loss


class HeadState(Measured, eq=True):
    """Margin and accuracies of one head."""

    margin: float = quantity(
        "least margin over norm",
        head="margin",
        doc="Least `u_y - max_{k != y} u_k` of the labelled training samples over the weights' "
        "norm: positive if it classifies all of them right.",
    )
    accuracy: float = quantity(
        column="val_accuracy", head="held out", doc="Share of held-out samples labelled right."
    )
    anytime_accuracy: float = quantity(
        column="val_accuracy",
        head="averaged",
        doc="The same by the mean of the softmaxes of this exit and those before it.",
    )


class ExitComparison(Measured, eq=True):
    """A trained head, compared with its limit."""

    exit: int = part("The layer, from 1.")
    kind: str = part("Kind of the limit.")
    limit: HeadState = part("The limit.")
    network: HeadState = part("The trained head.")
    angle: float = quantity(
        "angle with the limit, degrees",
        degrees,
        ideal=0.0,
        head="angle, degrees",
        doc="Angle between their weights, in radians.",
    )
    error: float = quantity(
        column="limit_error",
        head="off the limit",
        doc="`||W - W(inf)|| / ||W(inf)||`; NaN where the limit is a direction.",
    )
    excess: float = quantity(
        "loss above the least",
        ".2e",
        ideal=0.0,
        head="loss above least",
        doc="Loss of the trained head above the least; NaN where the limit is a direction.",
    )
    margin_ratio: float = quantity(
        doc="Margin of the trained head over the limit's; NaN where the limit is a point."
    )
    score_cosine: float = quantity(
        format=".5f",
        head="cosine of scores",
        doc="Cosine between held-out logits, less their mean over classes.",
    )
    agreement: float = quantity(head="same label")
    anytime_agreement: float = quantity(
        column="agreement",
        head="same, averaged",
        doc="Share of held-out samples that their averages give the same label.",
    )

    def screen(self) -> dict[str, Any]:
        """Return the first screen's column of the exit."""
        return {
            "limit": self.kind,
            "limit_error": self.error,
            "margin_ratio": self.margin_ratio,
            "zeta_cosine": math.cos(self.angle),
            "agreement": self.agreement,
            "score_cosine": self.score_cosine,
            "error_limit": 1 - self.limit.accuracy,
            "error_network": 1 - self.network.accuracy,
        }


class HeadsComparison(Measured, eq=True):
    """Trained heads and their limits, one entry an exit."""

    exits: tuple[ExitComparison, ...] = part("One an exit.")

    def to_dict(self) -> dict[str, Any]:
        """Return plain Python values, by the name of the exit."""
        return {name: one.to_dict() for name, one in self._by_name().items()}

    def tables(self, name: str = "") -> tuple[Table, ...]:
        """Return both tables, of margins and accuracies and of distances, one line per exit."""
        titles, limits = stacked({name: one.limit for name, one in self._by_name().items()})
        _, networks = stacked({name: one.network for name, one in self._by_name().items()})
        heads = ("", *chain(*((f"{title}: limit", "trained") for title in titles[1:])))
        states = tuple(
            (a[0], *chain(*zip(a[1:], b[1:], strict=True)))
            for a, b in zip(limits, networks, strict=True)
        )
        columns, *rows = self.rows()
        return (
            Table("prediction and training", heads, states),
            Table("trained heads beside their limits", columns, tuple(rows)),
        )

    def sides(self, name: str) -> tuple[Side, ...]:
        """Return a column of the first screen for each exit."""
        return tuple(Side(exit, one.screen()) for exit, one in self._by_name().items())

    def rows(self) -> list[tuple[str, ...]]:
        """Return the lines of a table of distances, column heads first."""
        heads, lines = stacked(self._by_name())
        return [heads, *lines]

    def cells(self) -> dict[str, Any]:
        """Return the values of the run's row: the worst over exits."""
        return {
            "zeta_cosine": float(np.cos(self.largest("angle"))),
            "score_cosine": self.least("score_cosine"),
            "agreement": self.least("agreement"),
            "margin_ratio": self.least("margin_ratio"),
            "limit_error": self.largest("error"),
            "error_network": 1 - self.exits[-1].network.anytime_accuracy,
        }

    def _by_name(self) -> dict[str, ExitComparison]:
        return {f"exit {one.exit}": one for one in self.exits}

    def least(self, name: str) -> float:
        """Return the smallest value over exits of an attribute."""
        return float(min(getattr(one, name) for one in self.exits))

    def largest(self, name: str) -> float:
        """Return the largest value over exits of an attribute."""
        return float(max(getattr(one, name) for one in self.exits))


def compare_heads(
    limits: Sequence[HeadLimit], weights: Sequence[Floats], exits: Exits
) -> HeadsComparison:
    """Compare trained heads with their limits.

    Parameters
    ----------
    limits : sequence of HeadLimit
        One per exit.
    weights : sequence of (K, D_m) arrays
        Weights after training. If the limit is a direction they are averaged at relative margin
        1, like the limit, once their margin is positive.
    exits : Exits
        Features and labels of all exits.

    Returns
    -------
    HeadsComparison
    """
    predicted = [limit.zeta for limit in limits]
    scaled = []
    for limit, W, phi in zip(limits, weights, exits.features, strict=True):
        margin = _margin(phi, W, exits) if limit.kind == "direction" else 0.0
        scaled.append(W / margin if margin > 0 else W)
    average = [
        averages([phi @ W.T for phi, W in zip(exits.features_val, heads, strict=True)])
        for heads in (predicted, scaled)
    ]
    found = []
    for m, layer in enumerate(exits.layers):
        states = [
            _state(heads[m], exits, m, own[m])
            for heads, own in zip((predicted, weights), average, strict=True)
        ]
        logits = [exits.features_val[m] @ heads[m].T for heads in (predicted, weights)]
        found.append(
            ExitComparison(
                exit=layer,
                kind=limits[m].kind,
                limit=states[0],
                network=states[1],
                angle=head_angle(weights[m], predicted[m]),
                **_distances(limits[m], weights[m], exits, m, states),
                score_cosine=_cosine(*(u - u.mean(axis=1, keepdims=True) for u in logits)),
                agreement=_agreement(*logits),
                anytime_agreement=_agreement(*(own[m] for own in average)),
            )
        )
    return HeadsComparison(tuple(found))


def head_angle(u: Floats, v: Floats) -> float:
    """Return the angle between weights (K, D) in radians; NaN if one of them is 0."""
    return float(np.arccos(np.clip(_cosine(u, v), -1.0, 1.0)))


def _distances(
    limit: HeadLimit, weights: Floats, exits: Exits, m: int, states: Sequence[HeadState]
) -> dict[str, float]:
    if limit.kind == "direction":
        ratio = states[1].margin / states[0].margin
        return {"error": np.nan, "excess": np.nan, "margin_ratio": ratio}
    loss, phi = exit_loss(**exits.taught), exits.features[m]
    return {
        "error": float(np.linalg.norm(weights - limit.zeta) / np.linalg.norm(limit.zeta)),
        "excess": loss.value(phi @ weights.T) - loss.value(phi @ limit.zeta.T),
        "margin_ratio": np.nan,
    }


def _state(weights: Floats, exits: Exits, m: int, average: Floats) -> HeadState:
    labels, size = exits.labels, float(np.linalg.norm(weights))
    u = exits.features_val[m] @ weights.T
    return HeadState(
        margin=_margin(exits.features[m], weights, exits) / size if size > 0 else np.nan,
        accuracy=float(np.mean(u.argmax(axis=1) == labels.val)),
        anytime_accuracy=float(np.mean(average.argmax(axis=1) == labels.val)),
    )


def _margin(features: Floats, weights: Floats, exits: Exits) -> float:
    """Return the least relative margin of the labelled training samples."""
    labels = exits.labels.train
    known = labels != UNLABELLED
    rows = np.eye(exits.labels.n_classes)[labels[known]]
    return float(sample_margins(rows, features[known] @ weights.T).min())


def _agreement(u: Floats, v: Floats) -> float:
    return float(np.mean(u.argmax(axis=1) == v.argmax(axis=1)))


def _cosine(u: Floats, v: Floats) -> float:
    sizes = float(np.linalg.norm(u) * np.linalg.norm(v))
    return float(np.sum(u * v)) / sizes if sizes > 0 else float("nan")
