"""Training of unconstrained features beside their limit, and of classes of one size."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray

from ...data.sample import Sample
from ...measures.bounded_value import measure_bounded_value
from ...networks.deep_linear import DeepLinear, UnconstrainedFeatures
from ...quantities.said import Table
from ...runs.drawing.figures import Row
from ...runs.fit import STATE, fit
from ...runs.reports.bounds import least_evidence, local_evidence
from ...runs.reports.finding import Finding
from ...runs.reports.findings import loss_vanishes
from ...runs.reports.saved.writers import write_weights
from ...runs.reports.trained import Trained, divergence, held_back
from ...runs.reports.verdict import Evidence
from ...runs.setup import start
from ...runs.stages import Found
from ...training.trajectory import Trajectory
from .comparison import CollapseComparison, is_named, measure_collapse
from .figure import plot_geometry
from .limit import CollapseLimit
from .run import ALIKE, CollapseSetup


def train(setup: CollapseSetup, found: Found) -> Iterator[Finding]:
    """Train features of the run's classes beside their limit."""
    limit, which = found["limit"], "" if setup.alike is None else "imbalanced"
    network, trajectory, compared = _trained(setup, limit)
    panels, evidence = _said(setup, limit, compared, trajectory, which)
    yield Finding("network", {"network": Trained(network, trajectory)}, panels=panels)
    to_0 = () if setup.decay else (loss_vanishes(trajectory),)
    yield Finding("comparison", {"comparison": compared}, assumptions=to_0, evidence=evidence)
    if not is_named(limit) and trajectory.smallest_margin[-1] > 0:
        yield _local(limit, network, trajectory)


def train_alike(setup: CollapseSetup, found: Found) -> Iterator[Finding]:
    """Train features of as many classes of one size beside theirs."""
    limit = found[f"{ALIKE}_limit"]
    network, trajectory, compared = _trained(setup, limit, f"{ALIKE}-run.safetensors")
    panels, evidence = _said(setup, limit, compared, trajectory, ALIKE)
    heads, lines = ("", "value"), tuple(compared.rows())
    yield Finding(ALIKE, panels=panels, evidence=evidence).also(
        tables=(Table(f"{ALIKE} classes beside their limit", heads, lines),),
        files={f"{ALIKE}-network.safetensors": write_weights(network)},
        objects={
            f"{ALIKE}_network": network,
            f"{ALIKE}_trajectory": trajectory,
            f"{ALIKE}_comparison": compared,
        },
        finished=trajectory.finished,
    )


def _sample(limit: CollapseLimit) -> tuple[NDArray[np.int64], Sample]:
    labels = np.repeat(np.arange(limit.n_classes), limit.class_sizes)
    return labels, Sample(np.eye(len(labels)), np.eye(limit.n_classes)[labels])


def _trained(
    setup: CollapseSetup, limit: CollapseLimit, state: str = STATE
) -> tuple[UnconstrainedFeatures, Trajectory, CollapseComparison]:
    labels, sample = _sample(limit)
    network = UnconstrainedFeatures(
        len(labels),
        hidden_widths=(limit.dimension,) * (limit.depth - 1),
        n_outputs=limit.n_classes,
        **start(setup.options, setup.seeds.weights),
    )
    observer = partial(measure_collapse, limit, labels)
    trajectory = fit(
        setup, network, sample.X, sample.y, settings=setup.settings, observer=observer,
        state=state, first=state == STATE,
    )  # fmt: skip
    return network, trajectory, CollapseComparison(**observer(network))


def _said(
    setup: CollapseSetup,
    limit: CollapseLimit,
    found: CollapseComparison,
    trajectory: Trajectory,
    which: str,
) -> tuple[tuple[Row, ...], tuple[Evidence, ...]]:
    """Return the picture of a network, and the evidence on it where its limit is named."""
    panels = (Row(3, partial(plot_geometry, trajectory=trajectory, limit=limit, which=which)),)
    if not is_named(limit):
        return panels, ()
    decides = "over_optimum" if setup.decay else "margin_ratio"
    otherwise = "it comes nearer as log(1/loss) grows: give more `--steps`"
    if setup.decay:
        otherwise = "steps have not converged: give more `--steps`, or another `--learning-rate`"
    evidence = Evidence(
        status=limit.status,
        near={n: getattr(found, n) for n in (decides, "feature_error", "classifier_error")},
        beside={"within_class": found.within_class},
        smallest_margin=None if setup.decay else float(trajectory.smallest_margin[-1]),
        diverged=divergence(trajectory),
        reason=trajectory.stopped or otherwise if setup.decay else held_back(trajectory, otherwise),
        remark="" if trajectory.finished else "interrupted",
        network=which,
    )
    return panels, (evidence,)


def _local(limit: CollapseLimit, network: UnconstrainedFeatures, trajectory: Trajectory) -> Finding:
    """Find the KKT point next to a network: there is one column a class at each of them."""
    sample, root = _sample(limit)[1], np.sqrt(limit.class_sizes)
    first, *above = (layer.detach().double().cpu() for layer in network.layers)
    posed = DeepLinear.from_weights(first @ torch.from_numpy(sample.y / root), *above)
    each = Sample(np.diag(1 / root), np.eye(len(root)))
    value = measure_bounded_value(network, sample, limit.dual_objective, search=(posed, each))
    remark = "" if trajectory.finished else "interrupted"
    who = "network of this depth and dimension"
    return Finding(
        "local limit",
        {"bounded_value": value, "local_limit": value.local},
        evidence=(
            local_evidence(value, remark=remark),
            least_evidence(who, limit.dual_objective, limit.objective),
        ),
    )
