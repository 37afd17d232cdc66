"""The pipeline of ReLU networks: one trained network beside four max-margin machines."""

from __future__ import annotations

import copy
import math
from dataclasses import asdict
from typing import Any

import numpy as np

from ..._solve import Status
from ...data.sample import Sample
from ...drawing.decision_maps import plane_snapshots
from ...gates.changes import GateChanges, gate_changes
from ...gates.hyperplanes import HyperplaneGates
from ...limits.limit import Limit
from ...measures.comparison import measure_network
from ...measures.distances import Distances
from ...measures.kkt import kkt_distance
from ...pipeline.classification import (
    RUN,
    load_data,
    network_results,
    provenance,
    require_device,
    setup_line,
    torch_dtype,
    trace,
    training_settings,
    worst_status,
    write_frame,
    write_weights,
)
from ...pipeline.options import Options, Reporter, Seeds
from ...pipeline.report import Assumption, Report, Table
from ...training.loop import train
from ...training.trainers import check_trainer
from ...training.trajectory import Trajectory
from .comparison import compare_relu, view_relu
from .figure import relu_figure, relu_map_row
from .frozen_run import FrozenRun, forget_frozen, freezing_step, run_frozen
from .machines import RELU_SVMS, solve_relu_svms
from .network import DeepReLU, ReLU

__all__ = ["run_relu"]

DEEP = (
    "no theorem names the limit of a ReLU network on general data. With several hidden layers one "
    "machine is the limit of something: SVM-HL, of the network that goes on training its last "
    "layer alone. The others are controls (Lippl, Abbott and Chung, The implicit bias of gradient "
    "descent on generalized gated linear networks, section 5.2, has one hidden layer)"
)


def run_relu(options: Options, reporter: Reporter) -> Report:
    """Train a ReLU network, freeze what it learned in four ways, and compare all of them.

    Beside them stands a network that froze its gates on the way and went on without changing
    them: the only one here whose limit a theorem names. With several hidden layers there is no
    such theorem and no such network.

    Raises
    ------
    ValueError, FileNotFoundError
        If an option is out of range or the data are not there, before any long work; or if
        training diverges.
    """
    from .. import MODELS

    reporter.check_resumable()
    seeds = Seeds.from_seed(options.seed)
    settings = training_settings(options, seeds)
    n_hidden = _hidden_layers(options)
    freeze_at = freezing_step(options, settings)
    require_device(options.device)
    dataset = load_data(options, seeds)
    # As many random gates as there are learned ones.
    gating = HyperplaneGates(
        n_hidden * options.hidden_units, cutoffs=options.cutoffs, random_state=seeds.gating
    ).fit(dataset.X_train)
    samples = (
        Sample(dataset.X_train, dataset.y_train, None),
        Sample(dataset.X_val, dataset.y_val, None),
    )
    network = _network(options, seeds, dataset.X_train.shape[1])
    # Twins: one stays a ReLU network, one freezes its gates.
    twin = copy.deepcopy(network) if isinstance(network, ReLU) else None
    check_trainer(options.trainer, network)
    theorem = MODELS["relu"].theorem if n_hidden == 1 else DEEP
    setup = setup_line(options, dataset)
    if not reporter.resume:
        forget_frozen(reporter)
    reporter.stage(f"training a ReLU network for {settings.n_steps} steps")
    snapshots = plane_snapshots(network, dataset.X_train, settings.n_steps)
    try:
        trajectory = train(
            network,
            *samples[0],
            settings=settings,
            monitor=(samples[1].X, None),
            callback=trace(reporter, snapshots),
            observer=Distances(None, *samples, loss=options.loss),
            state=reporter.state(RUN),
            resume=reporter.resume,
        )
    except FloatingPointError as error:  # there is no prediction without learned gates
        raise ValueError(str(error)) from error
    reporter.stage(f"solving four SVMs ({options.solver})")
    views = [view_relu(network, sample.X, sample.y, gating) for sample in samples]
    limits = solve_relu_svms(views[0], solver=options.solver, tol=options.tol)
    frozen: FrozenRun | None = None
    failure = None
    if trajectory.finished and twin is not None:
        try:
            frozen = run_frozen(twin, samples, settings, options, reporter, freeze_at=freeze_at)
        except KeyboardInterrupt:
            pass  # what is finished is reported
        except FloatingPointError as error:  # diverged after the freeze: the rest stands
            failure = str(error)
    reporter.stage("comparing")
    maps = []
    if snapshots is not None and limits.lc.certificate.proves_separability():
        snapshots.take(int(trajectory.step[-1]))
        maps.append(relu_map_row(limits.lc, network, snapshots, samples[0]))
    comparison = compare_relu(limits, network, *views)
    separates = trajectory.smallest_margin[-1] > 0
    kkt = kkt_distance(network, *samples[0]) if separates else None
    state = measure_network(network, *samples, kkt)
    changes = _changes(trajectory)
    flips = float(changes.since_start[-1])
    assumptions: tuple[Assumption, ...] = (
        Assumption(f"the gates no longer change: {flips:.1%} of them changed since the start, and "
                   "nothing says that the rest will stay", None),
        Assumption("the network separates the training data", bool(separates)),
    )  # fmt: skip
    if n_hidden > 1:
        assumptions += (
            Assumption(f"the network has one hidden layer: it has {n_hidden}, and SVM-LC and "
                       "gates-only see the gates of all of them. No convex program predicts a "
                       "deeper network with frozen gates, so no copy freezes them here", False),
        )  # fmt: skip
    results_frozen: dict[str, Any] | None = None
    later: list[tuple[str, str]] = []
    certified: dict[str, Limit] = {"SVM-LC": limits.lc}
    if frozen is not None:
        certified[frozen.name] = frozen.limit
        assumptions += frozen.assumptions()
        changed = float(gate_changes(frozen.gates, network.gates(dataset.X_train)).mean())
        results_frozen = frozen.to_dict() | {"gates_that_changed_later": changed}
        later.append((f"  since step {freeze_at}", f"{changed:.2%}"))
    status, concerns = worst_status(certified)
    names, *rows = comparison.rows(None if frozen is None else frozen.comparison)
    network_rows = (
        ("smallest margin", f"{state.smallest_margin:.6g}"),
        *(
            []
            if math.isnan(state.group_norm)
            else [("sum of unit norms", f"{state.group_norm:.6g}")]
        ),
        ("training accuracy", f"{state.train_accuracy:.2%}"),
        ("validation accuracy", f"{state.val_accuracy:.2%}"),
        ("steps", str(int(trajectory.step[-1]))),
        ("log(1/loss)", f"{-trajectory.log_loss[-1]:.4g}"),
        ("gates changed since the start", f"{flips:.2%}"),
        *later,
        ("KKT cosine", "-" if kkt is None else f"{kkt.cosine:.4f}"),
        ("KKT relative residual", "-" if kkt is None else f"{kkt.residual:.4g}"),
        ("seconds", f"{trajectory.seconds[-1]:.2f}"),
    )
    results = {
        "model": "relu",
        "theorem": theorem,
        **provenance(options, dataset),
        "limits": {key: getattr(limits, key).to_dict() for key in RELU_SVMS},
        **network_results(state, trajectory),
        "gate_changes": changes.to_dict(),
        "comparison": comparison.to_dict(),
        "frozen": results_frozen,
        "failure": failure,
        "assumptions": [asdict(assumption) for assumption in assumptions],
    }
    return Report(
        model="relu",
        theorem=theorem,
        setup=setup,
        assumptions=assumptions,
        tables=(
            Table("trained network", ("", "value"), network_rows),
            Table("machines beside the networks", names, tuple(rows)),
        ),
        results=results,
        status=status,
        finished=_finished(trajectory, frozen, failure, n_hidden),
        failure=failure,
        artefacts={
            "limit.safetensors": limits.lc.save,
            "network.safetensors": write_weights(network),
            "gating.npz": gating.save,
            "trajectory.parquet": write_frame(trajectory),
        }
        | ({} if frozen is None else frozen.artefacts()),
        figure=lambda: relu_figure(trajectory, changes, frozen, below=maps),
        concerns="" if status is Status.SOLVED else ", ".join(concerns),
    )


def _hidden_layers(options: Options) -> int:
    """How many hidden layers the options name.

    Raises
    ------
    ValueError
        If there is none, or gates are to be frozen where that has no predicted limit.
    """
    depth = options.depth
    assert depth is not None  # the model's defaults name one
    if depth < 2:
        raise ValueError(
            f"`--depth {depth}` leaves a ReLU network without a hidden layer: take 2 or more, or "
            "the model linear"
        )
    if depth > 2 and options.freeze_at is not None:
        raise ValueError(
            f"`--freeze-at {options.freeze_at}` is for `--depth 2`, one hidden layer: no convex "
            f"program predicts {depth} layers with frozen gates. Leave one of them out"
        )
    return depth - 1


def _network(options: Options, seeds: Seeds, n_inputs: int) -> DeepReLU:
    start: dict[str, Any] = {
        "init": options.init,
        "init_scale": options.init_scale,
        "random_state": seeds.weights,
        "dtype": torch_dtype(options.dtype),
        "device": options.device,
    }
    n_hidden = _hidden_layers(options)
    if n_hidden == 1:
        return ReLU(n_inputs, options.hidden_units, **start)
    return DeepReLU(n_inputs, (options.hidden_units,) * n_hidden, **start)


def _changes(trajectory: Trajectory) -> GateChanges:
    """How the gates changed from checkpoint to checkpoint."""
    return GateChanges(
        step=trajectory.step.astype(np.int64),
        since_start=trajectory.observed["gate_changes"],
        since_last=trajectory.observed["gate_flips"],
    )


def _finished(
    trajectory: Trajectory, frozen: FrozenRun | None, failure: str | None, n_hidden: int
) -> bool:
    if n_hidden > 1:
        return trajectory.finished
    # Without a failure, a frozen part that is not there was interrupted.
    return failure is not None or (frozen is not None and frozen.finished)
