"""The run of heads on a frozen trunk: limits of every exit, heads that descend, both compared."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ...data.arrays import Floats
from ...data.dataset import Dataset
from ...data.labelled import ClassDataset
from ...networks.exits import ExitNetwork
from ...networks.protocols import check_device
from ...reports.finding import Finding, Table
from ...reports.findings import TOGETHER, network_record
from ...reports.report import Report, gather
from ...reports.writers import write_arrays, write_frame, write_weights
from ...runs.folder import Keeping
from ...runs.model import Model
from ...runs.progress import Progress
from ...runs.seeds import Seeds
from ...runs.setup import Heading, data_record, provenance, trains
from ...runs.user_data import Given, load_chosen
from ...training.trajectory import Trajectory
from .comparison import HeadsComparison, compare_heads, head_angle
from .descent_run import Head, descend, make_head, settings_of
from .diagnosis import assumptions, limits_alone, teacher_found
from .exits import solve_exit_heads
from .exits_run import Exits, Labels, check_exits, make_exits, read_labels
from .figure import plot_accuracy, plot_angles, plot_margins
from .limit import HeadLimit

__all__ = ["run_heads"]


@dataclass(frozen=True, eq=False)
class Setup:
    """What a run is given.

    Attributes
    ----------
    options : HeadsOptions
    progress, keeping : Progress, Keeping
    dataset : Dataset or ClassDataset
    labels : Labels
    layers : tuple of int
        Those with an exit.
    """

    options: Any
    progress: Progress
    keeping: Keeping
    dataset: Dataset | ClassDataset
    labels: Labels
    layers: tuple[int, ...]


def run_heads(model: Model, options: Any, progress: Progress, keeping: Keeping) -> Report:
    """Freeze a trunk, predict the head of every exit, train the heads, compare.

    Raises
    ------
    ValueError, FileNotFoundError
        If an option is out of range, choices do not go together, or the data are not there, before
        any long work.
    """
    layers = check_exits(options)
    settings_of(options)  # which refuses what does not go together
    check_device(options.device)
    dataset = (model.given or Given()).dataset or load_chosen(options)
    labels = read_labels(dataset, options.n_labelled)
    setup = Setup(options, progress, keeping, dataset, labels, layers)
    return gather(_heading(model, setup), _find(setup), keeping)


def _heading(model: Model, setup: Setup) -> Heading:
    options = setup.options
    return Heading(
        model=model.name,
        theorem=model.theorem,
        program=model.program,
        setup=f"{setup.dataset.description}; a {options.trunk} trunk of {options.depth} layers; "
        f"seed {options.seed}",
        title="heads at the exits of a frozen trunk beside their limits",
        record={"model": model.name, "theorem": model.theorem}
        | provenance(options)
        | data_record(setup.dataset),
    )


def _find(setup: Setup) -> Iterator[Finding]:
    """What there is to find, each as soon as it is known."""
    options = setup.options
    setup.progress.stage(f"making the {options.trunk} trunk and its teacher")
    exits = make_exits(setup.labels, options, setup.layers, Seeds.from_seed(options.seed).weights)
    yield teacher_found(exits)
    limits: list[HeadLimit] = []
    began = time.perf_counter()
    for layer, phi in zip(exits.layers, exits.features, strict=True):
        setup.progress.stage(f"solving the head of exit {layer}")
        limits.append(_solve(phi, exits, options.tol))
        seconds = time.perf_counter() - began
        yield limits_alone(limits, exits, assumptions(exits, limits, options), seconds)
    if not trains(options):
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


def _descend(setup: Setup, exits: Exits, head: Head, layer: int, features: Floats) -> Trajectory:
    """Train the head of one exit; of a run that was kept the first had begun, others left files."""
    state = setup.keeping.state(f"run-exit{layer}.safetensors")
    begun = layer == exits.layers[0] or (state is not None and state.exists())
    return descend(
        head,
        features,
        exits,
        setup.options,
        callback=setup.progress.training(),
        state=state,
        resume=setup.keeping.resume and begun,
    )


def _trained(exits: Exits, heads: Sequence[Head], paths: Sequence[Trajectory]) -> Finding:
    """The heads as training has left them, and their ways there."""
    layers = exits.layers[: len(heads)]
    ways = dict(zip(layers, paths, strict=True))
    network = ExitNetwork(exits.trunk, heads, layers)
    arrays = {f"weights.{k}": path.observed["weights"] for k, path in ways.items()}
    arrays |= {f"step.{k}": path.step for k, path in ways.items()}
    files = {f"trajectory-exit{k}.parquet": write_frame(path) for k, path in ways.items()}
    return Finding(
        "network",
        record={"network": {f"exit {k}": network_record(path) for k, path in ways.items()}},
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
    """Trained heads beside their limits, by exit."""
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
    )


def _shortfall(found: HeadsComparison, paths: Sequence[Trajectory]) -> str:
    """A sentence where a head is on no way to its direction yet; empty otherwise."""
    for one, path in zip(found.exits, paths, strict=True):
        if one.kind == "direction" and not one.network.margin > 0:
            return (
                f"the head of exit {one.exit} does not separate its labelled samples after "
                f"{int(path.step[-1])} steps, so it is on no way to a direction yet: give more "
                "`--steps`"
            )
    return ""
