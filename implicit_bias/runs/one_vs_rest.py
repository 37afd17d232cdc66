"""The run of several classes: every class against the rest, on one Gram matrix."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from .._solve import GatedDesign, Settings, iterate_one_vs_rest, one_vs_rest_programs, to_numpy
from ..data.labelled import ClassDataset
from ..data.sample import Sample
from ..limits.limit import Limit
from ..measures.comparison import compare, measure_network
from ..measures.distances import Distances
from ..measures.kkt import kkt_distance
from ..measures.labels import MulticlassComparison, compare_argmax
from ..measures.scalars import scores
from ..reports.class_findings import Progressed, Trained, tell
from ..reports.finding import Finding
from ..reports.findings import gating_file, usable
from ..reports.report import Report, gather
from ..training.loop import train
from ..training.trainers import check_trainer
from .folder import Keeping
from .parts import Parts
from .progress import Progress
from .setup import Setup, prepare

if TYPE_CHECKING:
    import torch

    from .model import Model

__all__ = ["run_one_vs_rest"]


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
    setup = prepare(model, options, progress, keeping, gating=parts.gating)
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
    found = (
        tell(_data(setup).classes, done)
        for done in _progress(setup, parts, design, samples, networks)
    )
    return gather(setup.heading(title=title), _with_gating(setup, found), keeping)


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
    if not (setup.trains and all(map(usable, done.limits.values()))):
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
