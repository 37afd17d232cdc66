"""The run of heads on a frozen trunk: limits of every exit, heads that descend, both compared."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from ..._support.solve import worst_status
from ...data.arrays import Floats
from ...limits.exact.joint_margin import JointMargin
from ...networks.exits import ExitNetwork
from ...runs.fit import fit
from ...runs.programs import StatedProgram, stated
from ...runs.reports.finding import Finding
from ...runs.reports.saved.writers import write_arrays
from ...runs.reports.telling import Several
from ...runs.reports.trained import divergence
from ...runs.reports.verdict import Evidence
from ...runs.reports.views import Views
from ...runs.setup import Setup, data_record
from ...runs.stages import Found, Run, Stage
from ...runs.user_data import load_chosen
from ...training.trajectory import Trajectory
from .comparison import HeadsComparison, compare_heads, head_angle
from .descent_run import (
    Head,
    head_samples,
    head_settings,
    head_weights,
    make_head,
    stable_rate,
)
from .diagnosis import EXIT, assumptions, limits_finding, teacher_finding
from .exits import solve_exit_heads
from .exits_run import Exits, Labels, check_exits, make_exits, read_labels
from .figure import plot_accuracy, plot_angles, plot_margins
from .limit import HeadLimit
from .losses import UNLABELLED, HeadLoss


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

    @cached_property
    def exits(self) -> Exits:
        """The trunk with its teacher, trained and frozen when they are first asked for."""
        return make_exits(self.labels, self.options, self.layers, self.seeds.weights)


def run_heads(setup: Setup) -> Run[HeadsSetup]:
    """Freeze a trunk, predict the head of every exit, train the heads, compare.

    Raises
    ------
    ValueError, FileNotFoundError
        If an option is out of range, choices do not go together, or the data are not there, before
        any long work.
    """
    options = setup.options
    layers = check_exits(options)
    head_settings(setup)  # which refuses choices that do not go together
    dataset = setup.user_data.dataset or load_chosen(options)
    heading = setup.heading(
        data_record(dataset),
        title="heads at the exits of a frozen trunk beside their limits",
        choices=f"a {options.trunk} trunk of {options.depth} layers",
    )
    labels = read_labels(dataset, options.n_labelled)
    whole = HeadsSetup(**setup.shared, labels=labels, layers=layers)
    return Run(setup=whole, heading=heading, stages=STAGES)


def _state(setup: HeadsSetup) -> Iterator[StatedProgram]:
    """State the program of every exit, on the trunk and its teacher as they begin."""
    exits = replace(setup, options=replace(setup.options, trunk_steps=0)).exits
    for layer, phi in zip(exits.layers, exits.features, strict=True):
        setup.progress.stage(f"stating the head of exit {layer}")
        name, problem = _stated(phi, exits)
        yield stated(f"{name}, exit {layer}", problem, _untrained(setup, exits))


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


def _teach(setup: HeadsSetup, found: Found) -> Iterator[Finding]:
    yield teacher_finding(setup.exits)


def _predict(setup: HeadsSetup, found: Found) -> Iterator[Finding]:
    """Solve the head of each exit."""
    exits, options, began = setup.exits, setup.options, time.perf_counter()
    limits: list[HeadLimit] = []
    for layer, phi in zip(exits.layers, exits.features, strict=True):
        setup.progress.stage(f"solving the head of exit {layer}")
        limits.append(_solve(phi, exits, options.tol))
        seconds = time.perf_counter() - began
        yield limits_finding(limits, exits, assumptions(exits, limits, options), seconds)


def _train(setup: HeadsSetup, found: Found) -> Iterator[Finding]:
    """Train the head of each exit, until one is interrupted."""
    exits, options = setup.exits, setup.options
    heads: list[Head] = []
    paths: dict[int, Trajectory] = {}
    for layer, phi in zip(exits.layers, exits.features, strict=True):
        setup.progress.stage(f"training a head at exit {layer} for {sum(options.steps)} steps")
        heads.append(make_head(phi, exits, options))
        paths[layer] = _descend(setup, exits, heads[-1], layer, phi)
        yield _trained(exits, heads, paths)
        if not paths[layer].finished:
            return


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


def _compare(setup: HeadsSetup, found: Found) -> Iterator[Finding]:
    """Compare trained heads with their limits, by exit."""
    limits = list(found["limit"].values())
    paths = list(found["trajectory"].values())
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


STAGES: tuple[Stage[HeadsSetup], ...] = (
    Stage(finds=_teach, says="making the {setup.options.trunk} trunk and its teacher"),
    Stage(finds=_predict, states=_state),
    Stage(finds=_train, trains=True),
    Stage(finds=_compare, says="comparing", trains=True),
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
