"""The one-vs-rest run of several classes, on one Gram matrix."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from ..._support.solve import (
    GatedDesign,
    MaxMarginProgram,
    Settings,
    iterate_one_vs_rest,
    one_vs_rest_programs,
    to_numpy,
)
from ...data.labelled import ClassDataset
from ...data.sample import Sample
from ...limits.limit import Limit
from ...measures.comparison import compare, measure_network
from ...measures.distances import Distances
from ...measures.kkt import kkt_distance
from ...measures.labels import MulticlassComparison, compare_argmax
from ...measures.scalars import scores
from ...training.trainers import check_trainer
from ..fit import fit
from ..parts import Parts
from ..programs import StatedProgram, stated
from ..reports.class_findings import OfClass, Progressed, class_finding
from ..reports.finding import Finding
from ..reports.findings import gating_file, usable
from ..setup import SampleSetup, data_record
from ..stages import Found, Run, Stage

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, eq=False, kw_only=True)
class ClassesSetup(SampleSetup):
    """The setup of a run of several classes.

    Attributes
    ----------
    parts : Parts
    """

    parts: Parts

    @property
    def data(self) -> ClassDataset:
        """The data, with their classes."""
        assert isinstance(self.dataset, ClassDataset)
        return self.dataset

    @cached_property
    def of_classes(self) -> dict[int, tuple[Sample, Sample]]:
        """Training and held-out data of each class against the rest."""
        return {label: against_rest(self, label) for label in self.data.classes}

    @cached_property
    def design(self) -> GatedDesign:
        """The design that the programs of all classes share."""
        program: MaxMarginProgram = self.parts.formulation.program(*self.first)
        return program.design

    @cached_property
    def networks(self) -> dict[int, torch.nn.Module]:
        """The untrained network of each class.

        They start from weights of their own, as the limits know nothing of each other.
        """
        children = np.random.SeedSequence(self.seeds.weights).spawn(len(self.of_classes))
        return {
            label: self.parts.network(sample, int(child.generate_state(1)[0]))
            for (label, (sample, _)), child in zip(self.of_classes.items(), children, strict=True)
        }

    @property
    def first(self) -> Sample:
        """The training data of the first class."""
        return next(iter(self.of_classes.values()))[0]

    def finding(self, done: Progressed) -> Finding:
        """Return all that is done, with what this theorem assumes."""
        found = class_finding(self.data.classes, done)
        return found.but(assumptions=self.declared(found.views.assumptions))


def one_vs_rest_run(samples: SampleSetup, parts: Parts) -> Run[ClassesSetup]:
    """Predict the limit of one network a class, train these networks, and compare class by class.

    All networks and limits of a run share inputs and gates. Networks are trained if every limit
    separates its training data; a run that is interrupted keeps the classes that are done.
    """
    setup = ClassesSetup(**samples.shared, parts=parts)
    heading = setup.heading(data_record(setup.dataset), title=f"one-vs-rest: {parts.title}")
    return Run(setup=setup, heading=heading, stages=STAGES, checks=lambda: _check(setup))


def _check(setup: ClassesSetup) -> None:
    """See that memory holds the program, and that the trainer takes the networks."""
    _ = setup.design
    check_trainer(setup.options.trainer, next(iter(setup.networks.values())))


def _state(setup: ClassesSetup) -> Iterator[StatedProgram]:
    """State the program of the first class."""
    parts, train = setup.parts, setup.first
    first, *others = setup.data.classes
    setup.progress.stage(f"stating {parts.name} on {len(train.y)} samples")
    note = (
        f"this is class {first} against the rest; {len(others)} more programs differ from it "
        "in y alone"
    )
    yield stated(parts.name, parts.literal(train), note)


def _predict(setup: ClassesSetup, found: Found) -> Iterator[Finding]:
    """Solve the program of each class."""
    limits = _limits(setup)
    yield setup.finding(Progressed(next(limits)))
    yield gating_file(setup.gating)
    for solved in limits:
        yield setup.finding(Progressed(solved))


def _train(setup: ClassesSetup, found: Found) -> Iterator[Finding]:
    """Train the network of each class, and compare labels by the largest score."""
    done = Progressed(found["limit"])
    for number, label in enumerate(setup.of_classes, start=1):
        setup.progress.stage(
            f"training a {setup.parts.network_name} for class {label} against the rest, {number} "
            f"of {len(setup.of_classes)}"
        )
        try:
            one = _train_one(setup, label, done.limits[label])
        except FloatingPointError as error:
            raise FloatingPointError(f"class {label}: {error}") from error
        if one is None:
            yield setup.finding(replace(done, finished=False))
            return
        done = replace(done, trained={**done.trained, label: one})
        yield setup.finding(done)
    yield setup.finding(replace(done, labels=_labels(setup, done)))


STAGES: tuple[Stage[ClassesSetup], ...] = (
    Stage(finds=_predict, states=_state),
    Stage(
        finds=_train,
        trains=True,
        when=lambda setup, found: all(map(usable, found["limit"].values())),
    ),
)


def _limits(setup: ClassesSetup) -> Iterator[dict[int, Limit]]:
    """Yield the limits that are solved, one more each time."""
    options, data, formulation = setup.options, setup.data, setup.parts.formulation
    labels = np.searchsorted(data.classes, data.labels_train)
    programs = one_vs_rest_programs(setup.design, labels)
    setup.progress.stage(
        f"solving {formulation.name} for each of {len(programs)} classes on "
        f"{len(labels)} samples ({options.solver})"
    )
    solutions = iterate_one_vs_rest(
        programs, solver=options.solver, settings=Settings(tol=options.tol)
    )
    limits: dict[int, Limit] = {}
    for label, program, solution in zip(data.classes, programs, solutions, strict=True):
        limits = {**limits, label: formulation.limit(program, solution, setup.gates[0])}
        yield limits  # before the callback, in which an interrupt may come
        setup.progress.advance(len(limits), len(programs))


def _train_one(setup: ClassesSetup, label: int, limit: Limit) -> OfClass | None:
    """Train the network of one class; None if that was interrupted."""
    network, samples = setup.networks[label], setup.of_classes[label]
    trajectory = fit(
        setup,
        network,
        *samples[0],
        settings=setup.settings,
        # The KKT fit, the one thing here that costs more than a forward pass, at the end alone.
        observer=Distances(limit, *samples, loss=setup.options.loss, kkt=False),
        state=f"run-{label}.safetensors",
        first=label == setup.data.classes[0],
    )
    if not trajectory.finished:
        return None
    separates = trajectory.smallest_margin[-1] > 0
    kkt = kkt_distance(network, *samples[0], kinks=False) if separates else None
    return OfClass(
        network,
        trajectory,
        state=measure_network(network, *samples, kkt),
        comparison=compare(limit, network, *samples, kkt=kkt),
    )


def _labels(setup: ClassesSetup, done: Progressed) -> MulticlassComparison:
    """Compare labels by the largest score of the limits and of the networks."""
    data = setup.data
    predicted = [
        to_numpy(limit.predictor(data.X_val, setup.gates[1])) for limit in done.limits.values()
    ]
    networks = [
        scores(one.network, setup.of_classes[label][1]) for label, one in done.trained.items()
    ]
    return compare_argmax(
        data.classes,
        data.labels_val,
        np.stack(predicted, axis=1),
        np.stack(networks, axis=1),
        [one.state.smallest_margin for one in done.trained.values()],
    )


def against_rest(setup: SampleSetup, label: int) -> tuple[Sample, Sample]:
    """Return training and held-out data with one class against the rest."""
    data = setup.dataset
    assert isinstance(data, ClassDataset)
    train, held_out = (
        Sample(X, np.where(labels == label, 1.0, -1.0), gates)
        for X, labels, gates in (
            (data.X_train, data.labels_train, setup.gates[0]),
            (data.X_val, data.labels_val, setup.gates[1]),
        )
    )
    return train, held_out
