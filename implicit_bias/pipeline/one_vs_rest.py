"""The run of several classes: every class against the rest, on one Gram matrix."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from .._solve import (
    GatedDesign,
    Settings,
    Status,
    iterate_one_vs_rest,
    one_vs_rest_programs,
    to_numpy,
)
from ..data.catalogue import load_class_data
from ..data.labelled import ClassDataset
from ..data.sample import Sample
from ..drawing.classes import class_row
from ..limits.limit import Limit
from ..measures.comparison import Comparison, NetworkState, compare, measure_network
from ..measures.distances import Distances
from ..measures.kkt import kkt_distance
from ..measures.labels import MulticlassComparison, compare_argmax
from ..measures.scalars import scores
from ..training.loop import train
from ..training.trainers import check_trainer
from ..training.trajectory import Trajectory
from .finding import Assumption, Finding, Table
from .findings import gating_file, network_record, shortfall, usable, write_frame, write_weights
from .keeping import Keeping
from .model import Model
from .parts import Parts
from .progress import Progress
from .report import Report, gather
from .setup import Setup, prepare

if TYPE_CHECKING:
    import torch

__all__ = ["run_one_vs_rest"]


@dataclass(frozen=True, eq=False)
class Trained:
    """The network of one class, beside its limit."""

    network: torch.nn.Module
    trajectory: Trajectory
    state: NetworkState
    comparison: Comparison


@dataclass(frozen=True, eq=False)
class Progressed:
    """What is done, class by class.

    Attributes
    ----------
    limits, trained : mapping of class to Limit and to Trained
        Those that are done, ascending.
    labels : MulticlassComparison or None
        Labels by the largest score; None while a class has no network.
    finished : bool
        False if the training of a class was interrupted.
    """

    limits: Mapping[int, Limit] = field(default_factory=dict)
    trained: Mapping[int, Trained] = field(default_factory=dict)
    labels: MulticlassComparison | None = None
    finished: bool = True


def run_one_vs_rest(
    model: Model, options: Any, parts: Parts, progress: Progress, keeping: Keeping
) -> Report:
    """Predict the limits of one network a class, train these, and compare class by class.

    All networks and limits of a run share inputs and gates. Networks are trained if every limit
    separates its training data; a run that is interrupted keeps the classes that are done.

    Raises
    ------
    ValueError, FileNotFoundError
        If an option is out of range or the data are not there, before any long work.
    """
    setup = prepare(model, options, progress, keeping, gating=parts.gating, load=load_class_data)
    samples = {label: _against_rest(setup, label) for label in _data(setup).classes}
    # First: it knows what memory the problem takes.
    design = parts.formulation.program(*next(iter(samples.values()))[0]).design
    # Networks start from weights of their own, as the limits know nothing of each other.
    children = np.random.SeedSequence(setup.seeds.weights).spawn(len(samples))
    networks = {
        label: parts.network(sample, int(child.generate_state(1)[0]))
        for (label, (sample, _)), child in zip(samples.items(), children, strict=True)
    }
    check_trainer(options.trainer, next(iter(networks.values())))
    title = f"one against the rest: {parts.network_name} beside {parts.formulation.name}"
    found = (_tell(setup, done) for done in _progress(setup, parts, design, samples, networks))
    return gather(setup.heading(title=title), _with_gating(setup, found))


def _with_gating(setup: Setup, found: Iterator[Finding]) -> Iterator[Finding]:
    yield next(found)
    yield gating_file(setup.gating)
    yield from found


def _progress(
    setup: Setup,
    parts: Parts,
    design: GatedDesign,
    samples: Mapping[int, tuple[Sample, Sample]],
    networks: Mapping[int, torch.nn.Module],
) -> Iterator[Progressed]:
    """What is done after each limit and each network, and at the end the labels."""
    done = Progressed()
    for limits in _limits(setup, parts, design, samples):
        done = replace(done, limits=limits)
        yield done
    if not all(map(usable, done.limits.values())):
        return
    for number, label in enumerate(samples, start=1):
        setup.progress.stage(
            f"training a {parts.network_name} for class {label} against the rest, {number} of "
            f"{len(samples)}"
        )
        try:
            one = _train(setup, label, networks[label], done.limits[label], samples[label])
        except FloatingPointError as error:
            raise FloatingPointError(f"class {label}: {error}") from error
        if one is None:
            yield replace(done, finished=False)
            return
        done = replace(done, trained={**done.trained, label: one})
        yield done
    yield replace(done, labels=_labels(setup, samples, done))


def _limits(
    setup: Setup,
    parts: Parts,
    design: GatedDesign,
    samples: Mapping[int, tuple[Sample, Sample]],
) -> Iterator[dict[int, Limit]]:
    """The limits that are solved, one more each time."""
    options, data = setup.options, _data(setup)
    first = next(iter(samples.values()))[0]
    programs = one_vs_rest_programs(design, np.searchsorted(data.classes, data.labels_train))
    setup.progress.stage(
        f"solving {parts.formulation.name} for each of {len(samples)} classes on "
        f"{len(first.y)} samples ({options.solver})"
    )
    solutions = iterate_one_vs_rest(
        programs, solver=options.solver, settings=Settings(tol=options.tol)
    )
    limits: dict[int, Limit] = {}
    for label, program, solution in zip(samples, programs, solutions, strict=True):
        limits = {**limits, label: parts.formulation.limit(program, solution, first.gates)}
        yield limits  # before the callback, in which an interrupt may come
        setup.progress.advance(len(limits), len(samples))


def _train(
    setup: Setup,
    label: int,
    network: torch.nn.Module,
    limit: Limit,
    samples: tuple[Sample, Sample],
) -> Trained | None:
    """The trained network of one class; None if that was interrupted."""
    # Of a run that is resumed, classes without a file had not been begun; the first had.
    kept = setup.keeping.state(f"run-{label}.safetensors")
    begun = label == _data(setup).classes[0] or (kept is not None and kept.exists())
    trajectory = train(
        network,
        *samples[0],
        settings=setup.settings,
        callback=setup.progress.training(),
        # The KKT fit, the one thing here that costs more than a forward pass, at the end alone.
        observer=Distances(limit, *samples, loss=setup.settings.loss, kkt=False),
        state=kept,
        resume=setup.keeping.resume and begun,
    )
    if not trajectory.finished:
        return None
    kkt = kkt_distance(network, *samples[0]) if trajectory.smallest_margin[-1] > 0 else None
    return Trained(
        network,
        trajectory,
        measure_network(network, *samples, kkt),
        compare(limit, network, *samples, kkt=kkt),
    )


def _labels(
    setup: Setup, samples: Mapping[int, tuple[Sample, Sample]], done: Progressed
) -> MulticlassComparison:
    """Labels by the largest score of the limits and of the networks."""
    data = _data(setup)
    predicted = [
        to_numpy(limit.predictor(data.X_val, setup.gates[1])) for limit in done.limits.values()
    ]
    networks = [scores(one.network, samples[label][1]) for label, one in done.trained.items()]
    return compare_argmax(
        data.classes,
        data.labels_val,
        np.stack(predicted, axis=1),
        np.stack(networks, axis=1),
        [one.state.smallest_margin for one in done.trained.values()],
    )


def _tell(setup: Setup, done: Progressed) -> Finding:
    """All that is done, as one finding."""
    worst_gap = max(limit.gap for limit in done.limits.values())
    tables = [Table("every class against the rest", COLUMNS, _rows(_data(setup), done))]
    if done.labels is not None:
        columns = ("", "limits", "networks as trained", "networks at smallest margin 1")
        tables.append(Table("label by the largest score", columns, tuple(done.labels.rows())))
    comparisons = {label: one.comparison for label, one in done.trained.items()}
    files: dict[str, Any] = {f"limit-{k}.safetensors": one.save for k, one in done.limits.items()}
    for label, one in done.trained.items():
        files[f"network-{label}.safetensors"] = write_weights(one.network)
        files[f"trajectory-{label}.parquet"] = write_frame(one.trajectory)
    return Finding(
        "classes",
        record={
            "one_vs_rest": [
                {"class": label, "limit": limit.to_dict()} | _record(done.trained.get(label))
                for label, limit in done.limits.items()
            ],
            "worst_gap": worst_gap,
            "multiclass": None if done.labels is None else done.labels.to_dict(),
        },
        tables=tuple(tables),
        files=files,
        panels=(class_row(comparisons, done.labels),) if done.trained else (),
        assumptions=_assumptions(done),
        statuses={f"class {label}": limit.status for label, limit in done.limits.items()},
        certificates={f"class {label}": limit.to_dict() for label, limit in done.limits.items()},
        objects={"limits": done.limits, "trained": done.trained, "labels": done.labels},
        finished=done.finished,
        shortfall=_shortfall(done),
    )


COLUMNS = (
    "class", "status", "optimum", "gap", "support vectors", "margin ratio", "zeta cosine",
    "agreement", "error, limit", "error, network", "log(1/loss)",
)  # fmt: skip


def _rows(data: ClassDataset, done: Progressed) -> tuple[tuple[str, ...], ...]:
    rows = []
    for label in data.classes:
        cells = ["-"] * (len(COLUMNS) - 1)
        if label in done.limits:
            limit = done.limits[label]
            cells[:2] = limit.status.name, f"{limit.objective:.6g}"
            cells[2:4] = f"{limit.gap:.1e}", f"{int(limit.support.sum())} of {len(limit.dual)}"
        if label in done.trained:
            one = done.trained[label]
            comparison = one.comparison
            cells[4:] = (
                f"{comparison.margin_ratio:.4f}",
                f"{comparison.zeta_cosine:.4f}",
                f"{comparison.agreement:.2%}",
                f"{comparison.error_limit:.2%}",
                f"{comparison.error_network:.2%}",
                f"{-one.trajectory.log_loss[-1]:.4g}",
            )
        rows.append((str(label), *cells))
    return tuple(rows)


def _record(one: Trained | None) -> dict[str, Any]:
    if one is None:
        return {}
    return {
        "network": asdict(one.state) | network_record(one.trajectory),
        "comparison": one.comparison.to_dict(),
    }


def _shortfall(done: Progressed) -> str:
    found = (
        shortfall(one.trajectory, f"the network of class {label}")
        for label, one in done.trained.items()
    )
    return next(filter(None, found), "")


def _assumptions(done: Progressed) -> tuple[Assumption, ...]:
    inseparable = [
        str(label) for label, limit in done.limits.items() if limit.status is Status.NOT_SEPARABLE
    ]
    separable = all(limit.certificate.proves_separability() for limit in done.limits.values())
    found = Assumption(
        f"class {', '.join(inseparable)} can be separated from the rest in these gates"
        if inseparable
        else "every class can be separated from the rest in these gates (certified)",
        False if inseparable else separable or None,
    )
    if not done.trained:
        return (found,)
    least = min(-float(one.trajectory.log_loss[-1]) for one in done.trained.values())
    holds = {one.comparison.dual_condition for one in done.trained.values()}
    return (
        found,
        Assumption(
            "the networks are homogeneous, their loss exponential-like (by construction)", True
        ),
        Assumption(f"the losses tend to 0: log(1/loss) is at least {least:.3g} at the end", None),
        Assumption(
            "every unit of a network has a dual norm of at most 1, to a hundredth",
            False if False in holds else None if None in holds else True,
        ),
    )


def _data(setup: Setup) -> ClassDataset:
    assert isinstance(setup.dataset, ClassDataset)
    return setup.dataset


def _against_rest(setup: Setup, label: int) -> tuple[Sample, Sample]:
    """One class against the rest, on training and on held-out data."""
    data = _data(setup)
    train, held_out = (
        Sample(X, np.where(labels == label, 1.0, -1.0), gates)
        for X, labels, gates in (
            (data.X_train, data.labels_train, setup.gates[0]),
            (data.X_val, data.labels_val, setup.gates[1]),
        )
    )
    return train, held_out
