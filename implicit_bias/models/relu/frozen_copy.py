"""The ReLU network that trains for a while, freezes its gates and goes on: beside its limit."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._support.solve import Status, to_numpy
from ...data.sample import Sample
from ...gates.changes import gate_changes
from ...limits.exact.frelu import FReLULimit, solve_frelu_svm
from ...measures.comparison import measure_network
from ...measures.equivalence.weights import ReLUWeights
from ...networks.gated.frelu import FReLU
from ...networks.relu import DeepReLU, ReLU
from ...quantities.assumptions import Assumption
from ...quantities.formatting import DASH, loss_in_words, number
from ...quantities.said import Side, Table, Writer
from ...quantities.table import TABLE, lines
from ...runs.reports.finding import Finding
from ...runs.reports.findings import usable
from ...runs.reports.saved.writers import write_frame, write_weights
from ...runs.reports.trained import divergence, shortfall, unseparated
from ...runs.reports.verdict import Evidence, decide
from ...runs.setup import SampleSetup
from ...training.settings import TrainingSettings
from .comparison import FrozenComparison, MachineComparison, compare_frozen
from .figure import copy_panel
from .freezing import PartlyTrained, train_then_freeze
from .model import COPY_LOSS, COPY_SEPARABLE
from .neurons_comparison import NeuronComparison, compare_with_limit

if TYPE_CHECKING:
    from ...limits.limit import Limit
    from .model import ReLUOptions

SAME = "same"
COPY = "copy that froze its gates"
# Where the two parts of an unfinished run are kept: before and after the freeze.
RUNS = ("frozen-run-before.safetensors", "frozen-run-after.safetensors")


def freezing_step(options: ReLUOptions, settings: TrainingSettings) -> int:
    """Return the step that the options name, or half of the steps.

    Raises
    ------
    ValueError
        If training ends before it.
    """
    if options.freeze_at is None:
        return settings.n_steps // 2
    if options.freeze_at > settings.n_steps:
        raise ValueError(
            f"`--freeze-at {options.freeze_at}` lies beyond the {settings.n_steps} steps of the "
            "schedule: freeze earlier, or give more `--steps`"
        )
    return options.freeze_at


def find_frozen(
    setup: SampleSetup, twin: ReLU, network: DeepReLU, *, freeze_at: int
) -> Iterator[Finding]:
    """Train a copy up to `freeze_at`, freeze its gates, go on, solve its limit, compare.

    Parameters
    ----------
    setup : Setup
    twin : ReLU
        As `network` began; trained in place up to the freeze.
    network : DeepReLU
        As it ended: some of its gates have changed after the freeze.
    freeze_at : int

    Yields
    ------
    Finding
        About one thing, known better each time; unfinished alone if the freeze was not reached.

    Raises
    ------
    FloatingPointError
        If training diverges.
    """
    parts, found = train_frozen(setup, twin, freeze_at)
    yield found
    if not parts.frozen:
        return
    options = setup.options
    setup.progress.stage(f"solving SVM-FReLU on the gates of step {freeze_at} ({options.solver})")
    # Limit and network get the same gates: those that the ReLU network had when it stopped.
    train, held_out = frozen_samples(setup, twin)
    X, y, gates = train.X, train.y, train.required_gates
    limit = solve_frelu_svm(X, y, gates, solver=options.solver, tol=options.tol)
    comparison = compare_frozen(limit, parts.network, train, held_out, freeze_at=freeze_at)
    changed, neurons = changed_later(setup, train, network), _neurons(parts, limit, train)
    record = {
        "freeze_at": freeze_at,
        "limit": limit.to_dict(),
        "network": asdict(measure_network(parts.network, train, held_out)) | frozen_record(parts),
        "comparison": comparison.to_dict(),
        "neurons": None if neurons is None else neurons.to_dict(),
        "gates_that_changed_later": changed,
    }
    rows = (
        *comparison.rows(),
        *([] if neurons is None else neurons.lines("own_gates", "neuron_distance")),
        *_training_rows(parts, changed),
    )
    title = f"a copy with the gates of step {freeze_at}, beside its limit"
    known = copy_finding(found, parts, limit, comparison.machine.name, freeze_at)
    yield known.but(
        record={"frozen": record},
        tables=(Table(title, ("", comparison.machine.name), rows),),
        panels=() if parts.after is None else (copy_panel(limit, parts.after),),
        assumptions=(*known.views.assumptions, _loss_vanishes(parts)),
        objects={**known.views.objects, "frozen_comparison": comparison, "frozen_neurons": neurons},
        row=_columns(comparison),
        verdicts=(decide(_evidence(parts, limit, comparison)),),
        sides=(_side(comparison.machine),),
    )


def _side(machine: MachineComparison) -> Side:
    """Return the limit beside the copy as a column of the first screen."""
    names = ("margin_ratio", "score_cosine", "agreement", "error")
    values = {"objective": machine.optimum, "gap": machine.certificate} | {
        name: getattr(machine, name) for name in names
    }
    return Side("frozen copy", values)


def _evidence(parts: PartlyTrained, limit: FReLULimit, comparison: FrozenComparison) -> Evidence:
    """Return the evidence on the copy, whose limit a theorem names."""
    machine, after = comparison.machine, parts.after
    lacking = "" if after is None else unseparated(after)
    if limit.status is Status.NOT_SEPARABLE:
        lacking = "proved: no network with these gates separates these samples"
    residual = TABLE["kkt_residual"].said(comparison.kkt_residual)
    known: dict[str, Any] = {} if after is None else {
        "smallest_margin": float(after.smallest_margin[-1]), "diverged": divergence(after),
    }  # fmt: skip
    return Evidence(
        status=limit.status,
        near={"margin_ratio": machine.margin_ratio},
        beside={"agreement": machine.agreement},
        reason=lacking or f"the weights are not stationary yet: {residual}",
        network=COPY,
        **known,
    )


def _columns(comparison: FrozenComparison) -> dict[str, Any]:
    machine = comparison.machine
    return {
        "freeze_at": comparison.freeze_at,
        "frozen_status": machine.status,
        "frozen_gap": machine.certificate,
        "frozen_margin_ratio": machine.margin_ratio,
        "frozen_agreement": machine.agreement,
        "frozen_kkt_residual": comparison.kkt_residual,
    }


def train_frozen(
    setup: SampleSetup, twin: DeepReLU, freeze_at: int
) -> tuple[PartlyTrained, Finding]:
    """Train a copy that freezes its gates on the way, with the settings of the run."""
    setup.progress.stage(f"training it again, with its gates frozen at step {freeze_at}")
    before, after = map(setup.folder.state, RUNS)
    parts = train_then_freeze(
        twin,
        setup.train.X,
        setup.train.y,
        freeze_at=freeze_at,
        settings=setup.settings,
        after=_after(setup, freeze_at),
        X_val=setup.held_out.X,
        callback=setup.progress.training(),
        states=None if before is None or after is None else (before, after),
        resume=setup.folder.resume,
    )
    found = Finding.said("frozen", record={"frozen": None}, finished=parts.finished)
    if parts.frozen:
        found = found.but(files=_files(parts), objects={"frozen": parts})
    return parts, found


def _after(setup: SampleSetup, freeze_at: int) -> TrainingSettings | None:
    """Return how the copy goes on once its gates are frozen; None as it began."""
    left, trainer = setup.settings.n_steps - freeze_at, setup.options.frozen_trainer
    if trainer == SAME or left == 0:
        return None
    return TrainingSettings(
        trainer=trainer,
        loss=setup.settings.loss,
        batch_size=0,
        schedule=((left, None),),
        n_checkpoints=setup.settings.n_checkpoints,
    )


def frozen_samples(setup: SampleSetup, twin: DeepReLU) -> tuple[Sample, Sample]:
    """Both parts of the data with the gates that the network had when it stopped."""
    train, held_out = (
        Sample(one.X, one.y, to_numpy(twin.gates(one.X)).astype(np.float64))
        for one in setup.samples
    )
    return train, held_out


def changed_later(setup: SampleSetup, train: Sample, network: DeepReLU) -> float:
    """Share of the gates of `train` that the other network has changed since the freeze."""
    return float(gate_changes(train.gates, network.gates(setup.train.X)).mean())


def copy_finding(
    found: Finding, parts: PartlyTrained, limit: Limit, program: str, freeze_at: int
) -> Finding:
    """Add the limit or bound of the copy, the answer of `program`, to a finding about it."""
    lacking = ""
    if parts.after is not None and usable(limit):
        lacking = shortfall(parts.after, "the copy with frozen gates")
    separable = limit.certificate.proves_separability() or None
    gates = f"the gates of step {freeze_at}"
    return found.but(
        files={**found.views.files, "frozen-limit.safetensors": limit.save},
        assumptions=(
            COPY_SEPARABLE.found(
                gates=gates, holds=False if limit.status is Status.NOT_SEPARABLE else separable
            ),
        ),
        statuses={f"{program} on {gates}": limit.status},
        certificates={"frozen gates": limit.to_dict()},
        objects={**found.views.objects, "frozen_limit": limit},
        shortfall=lacking,
    )


def _files(parts: PartlyTrained) -> dict[str, Writer]:
    """Writers of the copy, its gates and its trajectory."""
    files: dict[str, Writer] = {
        "frozen-network.safetensors": write_weights(parts.network),
        "frozen-gating.safetensors": parts.gating.save,
    }
    if parts.after is not None:
        files["frozen-trajectory.parquet"] = write_frame(parts.after)
    return files


def frozen_record(parts: PartlyTrained) -> dict[str, Any]:
    """Record of the training after the freeze."""
    return {
        "steps_since": 0 if parts.after is None else int(parts.after.step[-1]),
        "log_loss": _log_loss(parts),
        "finished": parts.finished,
    }


def _neurons(parts: PartlyTrained, limit: FReLULimit, train: Sample) -> NeuronComparison | None:
    """The copy's units beside those of its limit; None where that does not separate."""
    if not limit.certificate.proves_separability() or not isinstance(parts.network, FReLU):
        return None
    first, head = (to_numpy(part) for part in (parts.network.w1, parts.network.head()))
    slope = getattr(parts.gating, "slope", 0.0)
    trained = ReLUWeights.from_arrays([first, head[None]], slope=slope)
    return compare_with_limit(limit, trained, train.X, train.required_gates)


def _training_rows(parts: PartlyTrained, changed: float) -> tuple[tuple[str, ...], ...]:
    known = frozen_record(parts)
    log_loss = known["log_loss"]
    end = "" if known["finished"] else " (interrupted)"
    return (
        ("steps since the freeze", f"{known['steps_since']}{end}"),
        ("loss", DASH if math.isnan(log_loss) else loss_in_words(log_loss)),
        ("log(1/loss)", number(-log_loss)),
        *lines({"gates_that_changed_later": changed}, "gates_that_changed_later"),
    )


def _loss_vanishes(parts: PartlyTrained) -> Assumption:
    log_loss = _log_loss(parts)
    end = "" if math.isnan(log_loss) else f": log(1/loss) is {-log_loss:.3g} at the end"
    return COPY_LOSS.found(end=end)


def _log_loss(parts: PartlyTrained) -> float:
    """Logarithm of the last loss; NaN if there was no step after the freeze."""
    return math.nan if parts.after is None else float(parts.after.log_loss[-1])
