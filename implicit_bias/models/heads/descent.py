"""Heads that descend from 0, by the one training loop, and stand beside their limits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from scipy.special import xlogy
from torch.nn.functional import one_hot

from ..._support.solve import worst_status
from ..._support.words import LossName
from ...data.arrays import Floats
from ...networks.exits import ExitNetwork, LabelledHead, SoftLabelHead
from ...runs.fit import fit
from ...runs.reports.finding import Finding
from ...runs.reports.saved.writers import write_arrays
from ...runs.reports.telling import Several
from ...runs.reports.trained import divergence
from ...runs.reports.verdict import Evidence
from ...runs.reports.views import Views
from ...runs.setup import Setup, schedule_of, torch_dtype, training_settings
from ...runs.stages import Found
from ...training.settings import TrainingSettings
from ...training.trajectory import Trajectory
from .comparison import HeadsComparison, compare_heads, head_angle
from .figure import plot_accuracy, plot_angles, plot_margins
from .frozen_trunk import Exits, HeadsSetup
from .limit import HeadLimit
from .losses import UNLABELLED
from .prediction import EXIT

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


def _make_head(features: Floats, setup: HeadsSetup) -> Head:
    """Make a head of zeros on features (n, D)."""
    options, exits = setup.options, setup.exits
    how: Any = {"dtype": torch_dtype(options.dtype), "device": options.device}
    sizes = exits.labels.n_classes, features.shape[1]
    if exits.is_hard:
        return LabelledHead(*sizes, **how)
    return SoftLabelHead(*sizes, temperature=exits.temperature, **how)


def _head_samples(features: Floats, exits: Exits) -> tuple[Floats, Floats, Floats]:
    """Return inputs, targets and gates from which the head of one exit learns.

    Of hard labels alone those are the samples with a label, margins of 1, and labels. Else all
    samples, the least loss of each, and labels, weighed for a mean over n: a label counts
    1 / n_labelled of the hard part, a soft one 1 / n of the other, (6.6).
    """
    labels, tau, a = exits.labels.train, exits.temperature, exits.share
    known = labels != UNLABELLED
    hard = one_hot(torch.tensor(np.where(known, labels, 0)), exits.labels.n_classes).double()
    if exits.is_hard:
        return features[known], np.ones(known.sum()), hard.numpy()[known]
    hard = hard * torch.tensor(a * known * len(known) / max(1, known.sum()))[:, None]
    soft = torch.softmax(torch.tensor(exits.teacher) / tau, dim=1)
    entropy = -xlogy(soft.numpy(), soft.numpy()).sum(axis=1)
    gates = torch.cat([hard, (1 - a) * soft], dim=1).numpy()
    return features, np.asarray((1 - a) * tau**2 * entropy), gates


def _head_weights(head: torch.nn.Module) -> dict[str, Floats]:
    """Observe the weights (K, D) of a head, as "weights"."""
    with torch.no_grad():
        (weight,) = head.parameters()
        return {"weights": weight.double().cpu().numpy().copy()}


def train(setup: HeadsSetup, found: Found) -> Iterator[Finding]:
    """Train the head of each exit, until one is interrupted; its weights are observed."""
    exits, steps = setup.exits, sum(setup.options.steps)
    heads: list[Head] = []
    paths: dict[int, Trajectory] = {}
    for layer, phi in zip(exits.layers, exits.features, strict=True):
        setup.progress.stage(f"training a head at exit {layer} for {steps} steps")
        heads.append(_make_head(phi, setup))
        paths[layer] = fit(
            setup,
            heads[-1],
            *_head_samples(phi, exits),
            settings=head_settings(setup, stable_rate(phi, exits)),
            observer=_head_weights,
            state=f"run-exit{layer}.safetensors",
            first=layer == exits.layers[0],
        )
        yield _trained(exits, heads, paths)
        if not paths[layer].finished:
            return


def _trained(exits: Exits, heads: Sequence[Head], paths: Mapping[int, Trajectory]) -> Finding:
    """Return the finding of the trained heads and their trajectories."""
    network = ExitNetwork(exits.trunk, heads, tuple(paths))
    arrays = {f"weights.{k}": path.observed["weights"] for k, path in paths.items()}
    arrays |= {f"step.{k}": path.step for k, path in paths.items()}
    return Finding(
        "network",
        {"network": network, "trajectory": Several(dict(paths), EXIT, _farthest)},
        further=Views(files={"path.safetensors": write_arrays(arrays)}),
    )


def _farthest(cells: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the row of all heads: that of the one with the farthest way to go, seconds of all."""
    return {
        "n_steps": min(one["n_steps"] for one in cells),
        "final_loss": max(one["final_loss"] for one in cells),
        "log_inverse_loss": min(one["log_inverse_loss"] for one in cells),
        "training_seconds": sum(one["training_seconds"] for one in cells),
    }


def compare(setup: HeadsSetup, found: Found) -> Iterator[Finding]:
    """Compare trained heads with their limits, by exit."""
    limits, paths = [*found["limit"].values()], [*found["trajectory"].values()]
    ways = [path.observed["weights"] for path in paths]
    compared = compare_heads(limits, [way[-1] for way in ways], setup.exits)
    angles = [
        np.array([head_angle(W, limit.zeta) for W in way])
        for way, limit in zip(ways, limits, strict=True)
    ]
    steps = [path.step for path in paths]
    yield Finding(
        "comparison",
        {"comparison": compared},
        evidence=(_evidence(compared, limits, paths),),
        panels=(
            partial(plot_accuracy, found=compared),
            partial(plot_margins, found=compared),
            partial(plot_angles, layers=setup.layers, steps=steps, angles=angles),
        ),
        further=Views(shortfall=_shortfall(compared, paths)),
    )


def _evidence(
    found: HeadsComparison, limits: Sequence[HeadLimit], paths: Sequence[Trajectory]
) -> Evidence:
    """Return the evidence on all heads: that on the one farthest from its limit."""
    points = [one for one in found.exits if one.kind != "direction"]
    directions = [one for one in found.exits if one.kind == "direction"]
    near, reason = {}, ""
    if directions:
        near["margin_ratio"] = min(one.margin_ratio for one in directions)
    if points:
        farthest = max(points, key=lambda one: one.error)
        near["limit_error"] = farthest.error
        path = paths[found.exits.index(farthest)]
        way = "more `--steps`"
        if path.log_loss[-1] > path.log_loss[0]:  # the steps lead away from the minimiser
            way = "a smaller `--learning-rate`"
        reason = (
            f"exit {farthest.exit} is the farthest: its loss is {farthest.excess:.1e} above the "
            f"least, {path.stopped or f'so give {way}'}"
        )
    apart = [path for path, one in zip(paths, found.exits, strict=True) if one.kind == "direction"]
    return Evidence(
        status=worst_status(one.status for one in limits),
        near=near,
        beside={"agreement": found.least("agreement")},
        smallest_margin=min((one.network.margin for one in directions), default=None),
        diverged=next(filter(None, map(divergence, apart)), ""),
        reason=reason
        or next((path.stopped for path in apart if path.stopped), "")
        or "the loss has further to fall: give more `--steps`",
    )


def _shortfall(found: HeadsComparison, paths: Sequence[Trajectory]) -> str:
    """Return a sentence where a head is on no way to its direction yet; empty otherwise."""
    for one, path in zip(found.exits, paths, strict=True):
        if one.kind == "direction" and not one.network.margin > 0:
            return (
                f"the head of exit {one.exit} does not separate its labelled samples after "
                f"{int(path.step[-1])} steps, so it is on no way to a direction yet: give more "
                "`--steps`"
            )
    return ""
