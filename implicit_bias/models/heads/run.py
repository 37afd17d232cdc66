"""The run of heads on a frozen trunk: limits of every exit, heads that descend, both compared."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from ...data.arrays import Floats
from ...limits.exact.joint_margin import JointMargin
from ...runs.programs import StatedProgram, stated
from ...runs.setup import Setup, data_record
from ...runs.stages import Run, Stage
from ...runs.user_data import load_chosen
from .descent import compare, head_settings, train
from .frozen_trunk import Exits, HeadsSetup, check_exits, read_labels
from .losses import UNLABELLED, HeadLoss
from .prediction import predict, teach


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
    return loss.name, loss.literal(features, labels if exits.share > 0 else None, exits.teacher)


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


STAGES: tuple[Stage[HeadsSetup], ...] = (
    Stage(finds=teach, says="making the {setup.options.trunk} trunk and its teacher"),
    Stage(finds=predict, states=_state),
    Stage(finds=train, trains=True),
    Stage(finds=compare, says="comparing", trains=True),
)
