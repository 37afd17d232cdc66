"""Heads that descend from 0: their samples and settings for the one training loop."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from scipy.special import xlogy
from torch.nn.functional import one_hot

from ..._support.words import LossName
from ...data.arrays import Floats
from ...networks.exits import LabelledHead, SoftLabelHead
from ...runs.setup import Setup, schedule_of, torch_dtype, training_settings
from ...training.settings import TrainingSettings
from .exits_run import Exits
from .losses import UNLABELLED

Head = LabelledHead | SoftLabelHead


def head_settings(setup: Setup, rate: float = 1.0) -> TrainingSettings:
    """Return how a head is trained; `rate` for constant steps where none was chosen.

    Raises
    ------
    ValueError
        If choices do not go together.
    """
    options = setup.options
    phases = schedule_of(options)
    if phases and options.trainer == "constant":
        phases = tuple((count, rate if own is None else own) for count, own in phases)
    loss: LossName = "logistic" if options.share == 1 else "excess"
    return training_settings(options, setup.seeds, loss=loss, schedule=phases)


def stable_rate(features: Floats, exits: Exits) -> float:
    """Return 1 over a bound of the curvature of a head's loss.

    Softmax has a curvature of at most 1/2, and the temperature cancels. Labelled samples have the
    weights `share / n_labelled`, all of them `(1 - share) / n`.
    """
    known, a = exits.labels.train != UNLABELLED, exits.share
    weight = a * known / known.sum() + (1 - a) / len(known)
    return float(2 / np.linalg.norm(np.sqrt(weight)[:, None] * features, 2) ** 2)


def make_head(features: Floats, exits: Exits, options: Any) -> Head:
    """Make a head of zeros on features (n, D)."""
    how: Any = {"dtype": torch_dtype(options.dtype), "device": options.device}
    sizes = exits.labels.n_classes, features.shape[1]
    if exits.is_hard:
        return LabelledHead(*sizes, **how)
    return SoftLabelHead(*sizes, temperature=exits.temperature, **how)


def head_samples(features: Floats, exits: Exits) -> tuple[Floats, Floats, Floats]:
    """Return inputs, targets and gates from which the head of one exit learns."""
    used, targets, gates = _hard_samples(exits) if exits.is_hard else _soft_samples(exits)
    return features[used], targets, gates


def _hard_samples(exits: Exits) -> tuple[Any, Floats, Floats]:
    """Return which samples have a label, their target margins, and one-hot labels as gates."""
    known = exits.labels.train != UNLABELLED
    labels = torch.tensor(exits.labels.train[known])
    return known, np.ones(len(labels)), one_hot(labels, exits.labels.n_classes).double().numpy()


def _soft_samples(exits: Exits) -> tuple[Any, Floats, Floats]:
    """Return all samples, the least loss of each, and labels as gates, weighed for a mean over n.

    A label counts 1 / n_labelled of the hard part, a soft one 1 / n of the other, (6.6).
    """
    labels, tau, a = exits.labels.train, exits.temperature, exits.share
    known = labels != UNLABELLED
    hard = one_hot(torch.tensor(np.where(known, labels, 0)), exits.labels.n_classes).double()
    hard = hard * torch.tensor(a * known * len(known) / max(1, known.sum()))[:, None]
    soft = torch.softmax(torch.tensor(exits.teacher) / tau, dim=1)
    entropy = -xlogy(soft.numpy(), soft.numpy()).sum(axis=1)
    gates = torch.cat([hard, (1 - a) * soft], dim=1).numpy()
    return slice(None), np.asarray((1 - a) * tau**2 * entropy), gates


def head_weights(head: torch.nn.Module) -> dict[str, Floats]:
    """Observe the weights (K, D) of a head, as "weights"."""
    with torch.no_grad():
        (weight,) = head.parameters()
        return {"weights": weight.double().cpu().numpy().copy()}
