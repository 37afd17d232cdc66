"""The one-vs-rest run of several classes, on one Gram matrix."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

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
from ..reports.class_findings import Progressed, Trained, class_finding
from ..reports.finding import Finding
from ..reports.findings import gating_file, usable
from ..reports.report import Report
from ..training.trainers import check_trainer
from .fit import fit
from .gathering import gather
from .parts import Parts
from .setup import SampleSetup, data_record

if TYPE_CHECKING:
    import torch

__all__ = ["against_rest", "run_one_vs_rest"]


def run_one_vs_rest(setup: SampleSetup, parts: Parts) -> Report:
    """Predict the limit of one network a class, train these networks, and compare class by class.

    All networks and limits of a run share inputs and gates. Networks are trained if every limit
    separates its training data; a run that is interrupted keeps the classes that are done.

    Raises
    ------
    ValueError
        If the trainer does not take the network, before any long work.
    """
    samples = {label: against_rest(setup, label) for label in _data(setup).classes}
    # First: it knows what memory the problem takes.
    design = parts.formulation.program(*next(iter(samples.values()))[0]).design
    # Networks start from weights of their own, as the limits know nothing of each other.
    children = np.random.SeedSequence(setup.seeds.weights).spawn(len(samples))
    networks = {
        label: parts.network(sample, int(child.generate_state(1)[0]))
        for (label, (sample, _)), child in zip(samples.items(), children, strict=True)
    }
    check_trainer(setup.options.trainer, next(iter(networks.values())))
    title = f"one-vs-rest: {parts.title}"
    found = (
        setup.declared(class_finding(_data(setup).classes, done))
        for done in _progress(setup, parts, design, samples, networks)
    )
    heading = setup.heading(data_record(setup.dataset), title=title)
    return gather(heading, _with_gating(setup, found), setup.folder)


def _with_gating(setup: SampleSetup, found: Iterator[Finding]) -> Iterator[Finding]:
    yield next(found)
    yield gating_file(setup.gating)
    yield from found


def _progress(
    setup: SampleSetup,
    parts: Parts,
    design: GatedDesign,
    samples: Mapping[int, tuple[Sample, Sample]],
    networks: Mapping[int, torch.nn.Module],
) -> Iterator[Progressed]:
    """Yield all that is done after each limit and each network, and at the end the labels."""
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
    setup: SampleSetup,
    parts: Parts,
    design: GatedDesign,
    samples: Mapping[int, tuple[Sample, Sample]],
) -> Iterator[dict[int, Limit]]:
    """Yield the limits that are solved, one more each time."""
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
    setup: SampleSetup,
    label: int,
    network: torch.nn.Module,
    limit: Limit,
    samples: tuple[Sample, Sample],
) -> Trained | None:
    """Train the network of one class; None if that was interrupted."""
    trajectory = fit(
        setup,
        network,
        *samples[0],
        settings=setup.settings,
        # The KKT fit, the one thing here that costs more than a forward pass, at the end alone.
        observer=Distances(limit, *samples, loss=setup.options.loss, kkt=False),
        state=f"run-{label}.safetensors",
        first=label == _data(setup).classes[0],
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
    setup: SampleSetup, samples: Mapping[int, tuple[Sample, Sample]], done: Progressed
) -> MulticlassComparison:
    """Compare labels by the largest score of the limits and of the networks."""
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


def _data(setup: SampleSetup) -> ClassDataset:
    assert isinstance(setup.dataset, ClassDataset)
    return setup.dataset


def against_rest(setup: SampleSetup, label: int) -> tuple[Sample, Sample]:
    """Return training and held-out data with one class against the rest."""
    data = _data(setup)
    train, held_out = (
        Sample(X, np.where(labels == label, 1.0, -1.0), gates)
        for X, labels, gates in (
            (data.X_train, data.labels_train, setup.gates[0]),
            (data.X_val, data.labels_val, setup.gates[1]),
        )
    )
    return train, held_out
