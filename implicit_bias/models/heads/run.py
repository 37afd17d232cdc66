"""The run of heads on a frozen trunk: limits of every exit, heads that descend, both compared."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from ..._solve import worst_status
from ...data.arrays import Floats
from ...data.dataset import Dataset
from ...data.labelled import ClassDataset
from ...limits.joint_margin import JointMargin
from ...networks.exits import ExitNetwork
from ...quantities.said import Side, Table
from ...reports.finding import Finding
from ...reports.findings import TOGETHER
from ...reports.report import Report
from ...reports.trained import divergence
from ...reports.verdict import Evidence, decide
from ...reports.writers import write_arrays, write_frame, write_weights
from ...runs.fit import fit
from ...runs.gathering import gather
from ...runs.programs import RunPrograms, stated
from ...runs.setup import Setup, data_record
from ...runs.user_data import load_chosen
from ...training.trajectory import Trajectory
from .comparison import ExitComparison, HeadsComparison, compare_heads, head_angle
from .descent_run import (
    Head,
    head_samples,
    head_settings,
    head_weights,
    make_head,
    stable_rate,
)
from .diagnosis import assumptions, limits_finding, teacher_finding
from .exits import solve_exit_heads
from .exits_run import Exits, Labels, check_exits, make_exits, read_labels
from .figure import plot_accuracy, plot_angles, plot_margins
from .limit import HeadLimit
from .losses import UNLABELLED, HeadLoss

__all__ = ["heads_programs", "run_heads"]


@dataclass(frozen=True, eq=False, kw_only=True)
class HeadsSetup(Setup):
    """The setup of a run, with its labels and exits.

    Attributes
    ----------
    labels : Labels
    layers : tuple of int
        Those with an exit.
    """

    labels: Labels
    layers: tuple[int, ...]


def run_heads(setup: Setup) -> Report:
    """Freeze a trunk, predict the head of every exit, train the heads, compare.

    Raises
    ------
    ValueError, FileNotFoundError
        If an option is out of range, choices do not go together, or the data are not there, before
        any long work.
    """
    options = setup.options
    whole, dataset = _prepare(setup)
    heading = setup.heading(
        data_record(dataset),
        title="heads at the exits of a frozen trunk beside their limits",
        choices=f"a {options.trunk} trunk of {options.depth} layers",
    )
    return gather(heading, _find(whole), setup.folder)


def heads_programs(setup: Setup) -> RunPrograms:
    """State the program of every exit, on the trunk and its teacher as they begin.

    Raises
    ------
    ValueError, FileNotFoundError
        If an option is out of range, choices do not go together, or the data are not there.
    """
    whole, dataset = _prepare(setup)
    untrained = replace(setup.options, trunk_steps=0)
    exits = make_exits(whole.labels, untrained, whole.layers, setup.seeds.weights)
    programs = []
    for layer, phi in zip(exits.layers, exits.features, strict=True):
        setup.progress.stage(f"stating the head of exit {layer}")
        name, problem = _stated(phi, exits)
        programs.append(stated(f"{name}, exit {layer}", problem, _untrained(setup, exits)))
    return RunPrograms(setup.model, dataset.description, tuple(programs))


def _stated(features: Floats, exits: Exits) -> tuple[str, Any]:
    """Return the name of a head's program, and the program in cvxpy."""
    labels = exits.labels.train
    if exits.is_hard:
        known = labels != UNLABELLED
        return JointMargin.name, JointMargin().literal(features[known], labels[known])
    loss = HeadLoss(temperature=exits.temperature, share=exits.share)
    hard = labels if exits.share > 0 else None
    return loss.name, loss.literal(features, hard, exits.teacher)


def _untrained(setup: Setup, exits: Exits) -> str:
    """Return what a run learns before it has the data of its programs."""
    end = "of several minimisers the limit is that of least norm"
    notes = [] if exits.is_hard else ["the teacher's logits are 0, as it begins"]
    if exits.is_hard:
        end = "where it is infeasible, the limit minimises the cross-entropy"
    if setup.options.trunk == "trained":
        steps = setup.options.trunk_steps
        notes.append(f"the trunk is as it was drawn, and a run trains it for {steps} steps first")
    return "; ".join([*notes, end])


def _prepare(setup: Setup) -> tuple[HeadsSetup, Dataset | ClassDataset]:
    """Load the data and see that all choices go together."""
    layers = check_exits(setup.options)
    head_settings(setup)  # which refuses choices that do not go together
    dataset = setup.user_data.dataset or load_chosen(setup.options)
    labels = read_labels(dataset, setup.options.n_labelled)
    return HeadsSetup(**setup.shared, labels=labels, layers=layers), dataset


def _find(setup: HeadsSetup) -> Iterator[Finding]:
    """Yield the findings of the run, each as soon as it is known."""
    options = setup.options
    setup.progress.stage(f"making the {options.trunk} trunk and its teacher")
    exits = make_exits(setup.labels, options, setup.layers, setup.seeds.weights)
    yield teacher_finding(exits)
    limits: list[HeadLimit] = []
    began = time.perf_counter()
    for layer, phi in zip(exits.layers, exits.features, strict=True):
        setup.progress.stage(f"solving the head of exit {layer}")
        limits.append(_solve(phi, exits, options.tol))
        seconds = time.perf_counter() - began
        yield limits_finding(limits, exits, assumptions(exits, limits, options), seconds)
    if not setup.trains:
        return
    heads: list[Head] = []
    paths: list[Trajectory] = []
    for layer, phi in zip(exits.layers, exits.features, strict=True):
        setup.progress.stage(f"training a head at exit {layer} for {sum(options.steps)} steps")
        heads.append(make_head(phi, exits, options))
        paths.append(_descend(setup, exits, heads[-1], layer, phi))
        yield _trained(exits, heads, paths)
        if not paths[-1].finished:
            return
    setup.progress.stage("comparing")
    yield _comparison(limits, exits, paths)


def _solve(features: Floats, exits: Exits, tol: float) -> HeadLimit:
    (limit,) = solve_exit_heads(
        [features],
        exits.labels.train if exits.share > 0 else None,
        teacher=None if exits.is_hard else exits.teacher,
        temperature=exits.temperature,
        share=exits.share,
        tol=tol,
    )
    return limit


def _descend(
    setup: HeadsSetup, exits: Exits, head: Head, layer: int, features: Floats
) -> Trajectory:
    """Train the head of one exit; its weights at every checkpoint are observed as "weights"."""
    return fit(
        setup,
        head,
        *head_samples(features, exits),
        settings=head_settings(setup, stable_rate(features, exits)),
        observer=head_weights,
        state=f"run-exit{layer}.safetensors",
        first=layer == exits.layers[0],
    )


def _trained(exits: Exits, heads: Sequence[Head], paths: Sequence[Trajectory]) -> Finding:
    """Return the finding of the trained heads and their trajectories."""
    layers = exits.layers[: len(heads)]
    ways = dict(zip(layers, paths, strict=True))
    network = ExitNetwork(exits.trunk, heads, layers)
    arrays = {f"weights.{k}": path.observed["weights"] for k, path in ways.items()}
    arrays |= {f"step.{k}": path.step for k, path in ways.items()}
    files = {f"trajectory-exit{k}.parquet": write_frame(path) for k, path in ways.items()}
    return Finding.said(
        "network",
        record={"network": {f"exit {k}": path.record() for k, path in ways.items()}},
        files={
            "network.safetensors": write_weights(network),
            "path.safetensors": write_arrays(arrays),
            **files,
        },
        objects={"network": network, "trajectory": ways},
        row={
            "n_steps": int(min(path.step[-1] for path in paths)),
            "final_loss": float(max(path.loss[-1] for path in paths)),
            "log_inverse_loss": -float(max(path.log_loss[-1] for path in paths)),
            "training_seconds": float(sum(path.seconds[-1] for path in paths)),
        },
        finished=all(path.finished for path in paths),
    )


def _comparison(limits: Sequence[HeadLimit], exits: Exits, paths: Sequence[Trajectory]) -> Finding:
    """Return the finding that compares trained heads with their limits, by exit."""
    ways = [path.observed["weights"] for path in paths]
    found = compare_heads(limits, [way[-1] for way in ways], exits)
    angles = [
        np.array([head_angle(W, limit.zeta) for W in way])
        for way, limit in zip(ways, limits, strict=True)
    ]
    (heads, states), (titles, rows) = found.states(), found.table()
    return Finding.measured(
        "comparison",
        found,
        tables=(
            Table(TOGETHER, heads, tuple(states)),
            Table("trained heads beside their limits", titles, tuple(rows)),
        ),
        panels=(
            partial(plot_accuracy, found=found),
            partial(plot_margins, found=found),
            partial(plot_angles, layers=exits.layers, steps=[p.step for p in paths], angles=angles),
        ),
        shortfall=_shortfall(found, paths),
        verdicts=(decide(_evidence(found, limits, paths)),),
        sides=tuple(map(_side, found.exits)),
    )


def _side(one: ExitComparison) -> Side:
    """Return an exit as a column of the first screen."""
    return Side(
        f"exit {one.exit}",
        {
            "limit": one.kind,
            "limit_error": one.error,
            "margin_ratio": one.margin_ratio,
            "zeta_cosine": math.cos(one.angle),
            "agreement": one.agreement,
            "score_cosine": one.score_cosine,
            "error_limit": 1 - one.limit.accuracy,
            "error_network": 1 - one.network.accuracy,
        },
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
            f"least, so give {way}"
        )
    apart = [path for path, one in zip(paths, found.exits, strict=True) if one.kind == "direction"]
    return Evidence(
        status=worst_status(one.status for one in limits),
        near=near,
        beside={"agreement": found.least("agreement")},
        smallest_margin=min((one.network.margin for one in directions), default=None),
        diverged=next(filter(None, map(divergence, apart)), ""),
        reason=reason or "the loss has further to fall: give more `--steps`",
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
