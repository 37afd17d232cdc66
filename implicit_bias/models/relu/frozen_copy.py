"""The ReLU network that trains for a while, freezes its gates and goes on: what it ends beside.

Of one hidden layer that is its limit. Of several no theorem names one: a certified bound of every
network with its gates stands beside it, and the KKT point next to its own weights.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._support.solve import Status, to_numpy
from ...data.sample import Sample
from ...gates.changes import gate_changes
from ...limits.exact.frelu import FReLULimit, solve_frelu_svm
from ...limits.exact.path_lasso import solve_path_lasso
from ...limits.exact.path_limit import PathLimit
from ...measures.bounded_value import BoundedComparison, measure_bounded_value, value_of
from ...measures.classifiers import compare_classifier
from ...measures.comparison import measure_network
from ...measures.equivalence.weights import ReLUWeights
from ...measures.scalars import error_rate, scores
from ...networks.gated.frelu import FReLU
from ...networks.relu import DeepReLU, ReLU
from ...quantities.formatting import DASH, loss_in_words, number
from ...quantities.said import Side, Table, Writer
from ...quantities.table import TABLE, lines
from ...runs.reports.bounds import (
    LASSO,
    LOCAL,
    bound_evidence,
    bound_table,
    bounded_sides,
    comparison_finding,
    local_columns,
    local_evidence,
)
from ...runs.reports.finding import Finding
from ...runs.reports.findings import usable
from ...runs.reports.saved.writers import write_frame, write_weights
from ...runs.reports.trained import divergence, held_back, shortfall
from ...runs.reports.verdict import Evidence
from ...runs.reports.views import Views
from ...runs.setup import SampleSetup
from ...runs.stages import Found
from ...training.settings import TrainingSettings
from .comparison import FrozenComparison, compare_frozen
from .figure import plot_frozen_copy
from .freezing import PartlyTrained, freeze_then_train, split_settings
from .learning import ReLUSetup
from .model import COPY_LOSS, COPY_SEPARABLE
from .neurons_comparison import NeuronComparison, compare_with_limit

if TYPE_CHECKING:
    from ...limits.limit import Limit

SAME = "same"
COPY = "copy that froze its gates"
# The file of its unfinished run.
RUN = "frozen-run.safetensors"


@dataclass(frozen=True, eq=False)
class _Copy:
    """A copy that froze its gates, with the data in these gates.

    Attributes
    ----------
    parts : PartlyTrained
    freeze_at : int
        The step at which it did.
    train, held_out : Sample
    changed : float
        Share of the gates of `train` that the run's own network has changed since.
    """

    parts: PartlyTrained
    freeze_at: int
    train: Sample
    held_out: Sample
    changed: float

    @property
    def log_loss(self) -> float:
        """Logarithm of the last loss; NaN if there was no step after the freeze."""
        after = self.parts.after
        return math.nan if after is None else float(after.log_loss[-1])

    def record(self) -> dict[str, Any]:
        """Return the record of the training after the freeze."""
        after = self.parts.after
        return {
            "steps_since": 0 if after is None else int(after.step[-1]),
            "log_loss": self.log_loss,
            "finished": self.parts.finished,
        }

    def views(self, limit: Limit, program: str) -> Views:
        """Return what is said of its limit or bound, the answer of `program`."""
        lacking, gates = "", f"the gates of step {self.freeze_at}"
        if self.parts.after is not None and usable(limit):
            lacking = shortfall(self.parts.after, "the copy with frozen gates")
        separable: bool | None = limit.certificate.proves_separability() or None
        if limit.status is Status.NOT_SEPARABLE:
            separable = False
        return Views(
            files={"frozen-limit.safetensors": limit.save},
            assumptions=(COPY_SEPARABLE.found(gates=gates, holds=separable),),
            statuses={f"{program} on {gates}": limit.status},
            certificates={"frozen gates": limit.to_dict()},
            objects={"frozen_limit": limit},
            shortfall=lacking,
        )


def find_frozen(setup: ReLUSetup, found: Found) -> Iterator[Finding]:
    """Freeze the gates that the network had on the way, train a copy on, find what it ends at."""
    at = setup.freeze_at
    then = setup.network_at(at)
    assert at is not None and then is not None
    parts = _train(setup, then, at)
    yield (ended := Finding.said(
        "frozen", record={"frozen": None}, finished=parts.finished,
        files=_files(parts), objects={"frozen": parts},
    ))  # fmt: skip
    # Limit and network get the same gates: those that the ReLU network had at that step.
    train, held_out = frozen_samples(setup, then)
    changed = float(gate_changes(train.gates, setup.network.gates(setup.train.X)).mean())
    copy = _Copy(parts, at, train, held_out, changed)
    if isinstance(then, ReLU):
        yield _beside_limit(setup, copy, ended)
    else:
        yield from _beside_bound(setup, copy, ended)


def _train(setup: ReLUSetup, then: DeepReLU, freeze_at: int) -> PartlyTrained:
    """Train a copy on from a step, its gates frozen, for as many steps as the run has left."""
    setup.progress.stage(f"training a copy of it with the gates of step {freeze_at}")
    left, trainer = setup.settings.n_steps - freeze_at, setup.options.frozen_trainer
    goes_on = None  # as it began
    if trainer != SAME and left > 0:
        goes_on = TrainingSettings(
            trainer=trainer,
            loss=setup.settings.loss,
            batch_size=0,
            schedule=((left, None),),
            n_checkpoints=setup.settings.n_checkpoints,
        )
    return freeze_then_train(
        then,
        setup.train.X,
        setup.train.y,
        settings=split_settings(setup.settings, freeze_at, goes_on)[1],
        X_val=setup.held_out.X,
        callback=setup.progress.training(),
        state=setup.folder.state(RUN),
        resume=setup.folder.resumes(RUN),
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


def frozen_samples(setup: SampleSetup, network: DeepReLU) -> tuple[Sample, Sample]:
    """Both parts of the data with the gates of a network."""
    train, held_out = (
        Sample(one.X, one.y, to_numpy(network.gates(one.X)).astype(np.float64))
        for one in setup.samples
    )
    return train, held_out


def _beside_limit(setup: ReLUSetup, copy: _Copy, ended: Finding) -> Finding:
    """Solve the limit of a copy of one hidden layer, and compare."""
    parts, at, train, options = copy.parts, copy.freeze_at, copy.train, setup.options
    setup.progress.stage(f"solving SVM-FReLU on the gates of step {at} ({options.solver})")
    X, y, gates = train.X, train.y, train.required_gates
    limit = solve_frelu_svm(X, y, gates, solver=options.solver, tol=options.tol)
    comparison = compare_frozen(limit, parts.network, train, copy.held_out, freeze_at=at)
    machine, neurons, own = comparison.machine, _neurons(parts, limit, train), copy.record()
    record = {
        "freeze_at": at,
        "limit": limit.to_dict(),
        "network": asdict(measure_network(parts.network, train, copy.held_out)) | own,
        "comparison": comparison.to_dict(),
        "neurons": None if neurons is None else neurons.to_dict(),
        "gates_that_changed_later": copy.changed,
    }
    log_loss, unknown = copy.log_loss, math.isnan(copy.log_loss)
    end = "" if parts.finished else " (interrupted)"
    rows = (
        *comparison.rows(),
        *([] if neurons is None else neurons.lines("own_gates", "neuron_distance")),
        ("steps since the freeze", f"{own['steps_since']}{end}"),
        ("loss", DASH if unknown else loss_in_words(log_loss)),
        ("log(1/loss)", number(-log_loss)),
        *lines({"gates_that_changed_later": copy.changed}, "gates_that_changed_later"),
    )
    reached = "" if unknown else f": log(1/loss) is {-log_loss:.3g} at the end"
    title = f"a copy with the gates of step {at}, beside its limit"
    names = ("margin_ratio", "score_cosine", "agreement", "error")
    side = {"objective": machine.optimum, "gap": machine.certificate}
    side |= {name: getattr(machine, name) for name in names}
    beside = Views(
        record={"frozen": record},
        tables=(Table(title, ("", machine.name), rows),),
        panels=() if parts.after is None else (partial(plot_frozen_copy, limit, parts.after),),
        assumptions=(COPY_LOSS.found(end=reached),),
        objects={"frozen_comparison": comparison, "frozen_neurons": neurons},
        row={
            "freeze_at": at,
            "frozen_status": machine.status,
            "frozen_gap": machine.certificate,
            "frozen_margin_ratio": machine.margin_ratio,
            "frozen_agreement": machine.agreement,
            "frozen_kkt_residual": comparison.kkt_residual,
        },
        sides=(Side("frozen copy", side),),
    )
    evidence = _evidence(parts, limit, comparison)
    known = ended.views + copy.views(limit, machine.name) + beside
    return Finding("frozen", evidence=(evidence,), further=known)


def _evidence(parts: PartlyTrained, limit: FReLULimit, comparison: FrozenComparison) -> Evidence:
    """Return the evidence on the copy, whose limit a theorem names."""
    machine, after = comparison.machine, parts.after
    lacking = "" if after is None else held_back(after)
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


def _neurons(parts: PartlyTrained, limit: FReLULimit, train: Sample) -> NeuronComparison | None:
    """The copy's units beside those of its limit; None where that does not separate."""
    if not limit.certificate.proves_separability() or not isinstance(parts.network, FReLU):
        return None
    first, head = (to_numpy(part) for part in (parts.network.w1, parts.network.head()))
    slope = getattr(parts.gating, "slope", 0.0)
    trained = ReLUWeights.from_arrays([first, head[None]], slope=slope)
    return compare_with_limit(limit, trained, train.X, train.required_gates)


def _beside_bound(setup: ReLUSetup, copy: _Copy, ended: Finding) -> Iterator[Finding]:
    """Bound every network with the gates of a deep copy, and find its local limit."""
    parts, at = copy.parts, copy.freeze_at
    setup.progress.stage(f"solving the path lasso on the gates of step {at}")
    bound = solve_path_lasso(
        *copy.train,
        widths=[len(layer) for layer in list(setup.network.layers)[:-1]],
        solver=setup.options.solver,
        tol=setup.options.tol,
    )
    record = {
        "freeze_at": at,
        "limit": bound.to_dict(),
        "network": copy.record(),
        "local_limit": None,
        "comparison": None,
    }
    known = ended.views + copy.views(bound, LASSO)
    known += Views(
        record={"frozen": record},
        tables=(bound_table(bound, f"networks with the gates of step {at}: a bound"),),
        row={"freeze_at": at, "frozen_status": bound.status.name, "frozen_gap": bound.gap},
    )
    yield Finding("frozen", further=known)
    if not usable(bound) or math.isnan(value_of(parts.network, copy.train)):
        return
    setup.progress.stage("finding the local limit of the copy")
    comparison = _compared(copy, bound)
    changed = {"gates_that_changed_later": copy.changed}
    ((label, text),) = lines(changed, *changed)
    title = f"the copy that froze them at step {at}, beside its local limit and the bound"
    further = (label, text, "measured")
    said = comparison_finding(Finding("frozen"), comparison, LASSO, further, title=title).views
    beside = Views(
        record={"frozen": {**said.record, **changed}},
        tables=said.tables,
        objects={"local_limit": comparison.local, "frozen_comparison": comparison},
        row={
            "frozen_margin_ratio": comparison.bound_ratio,
            "frozen_agreement": comparison.classifiers[LASSO].agreement,
            **local_columns(comparison),
        },
        sides=bounded_sides(bound, comparison),
    )
    evidence = (local_evidence(comparison, network=COPY), bound_evidence(bound, comparison))
    yield Finding("frozen", evidence=evidence, further=known + beside)


def _compared(copy: _Copy, bound: PathLimit) -> BoundedComparison:
    """Compare a deep copy with its local limit and its bound."""
    network, held_out = copy.parts.network, copy.held_out
    value = measure_bounded_value(network, copy.train, float(bound.dual_objective))
    assert value.local is not None
    trained, inputs = scores(network, held_out), (held_out.X, held_out.gates)
    compare = partial(compare_classifier, inputs=inputs, trained=trained, y=held_out.y)
    classifiers = compare(LOCAL, value.local), compare(LASSO, bound)
    return BoundedComparison(
        **vars(value),
        error_network=error_rate(held_out.y, trained),
        classifiers={one.name: one for one in classifiers},
    )
