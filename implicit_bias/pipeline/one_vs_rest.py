"""The pipeline of several classes: every class against the rest, on one Gram matrix."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .._solve import Settings, iterate_one_vs_rest, one_vs_rest_programs, to_numpy
from ..data.images import load_digit_classes, load_idx_classes
from ..data.labelled import ClassDataset
from ..data.sample import Sample
from ..limits.limit import Limit
from ..measures.comparison import compare, measure_network
from ..measures.distances import Distances
from ..measures.kkt import kkt_distance
from ..measures.labels import MulticlassComparison, compare_argmax
from ..measures.scalars import scores
from ..training.loop import train
from ..training.settings import TrainingSettings
from ..training.trainers import check_trainer
from .classification import DIGITS_TRAINING, USABLE, require_device, trace, training_settings
from .one_vs_rest_report import MulticlassRun, TrainedClass, report_multiclass
from .options import Options, Reporter, Seeds
from .report import Report
from .separable import Family

if TYPE_CHECKING:
    import torch

__all__ = ["load_class_data", "run_multiclass"]


@dataclass(frozen=True, eq=False)
class _Problem:
    """One class against the rest, on training and held-out data."""

    label: int
    samples: tuple[Sample, Sample]


def run_multiclass(model: str, family: Family, options: Options, reporter: Reporter) -> Report:
    """Predict the limits of one network a class, train these, and compare class by class.

    All networks and limits of a run share inputs and gates. Networks are trained if every limit
    separates its training data; a run that is interrupted keeps the classes that are done.

    Raises
    ------
    ValueError, FileNotFoundError
        If an option is out of range or the data are not there, before any long work.
    """
    reporter.check_resumable()
    seeds = Seeds.from_seed(options.seed)
    settings = training_settings(options, seeds)
    require_device(options.device)
    dataset = load_class_data(options, seeds)
    gating = family.gating(options, seeds.gating)
    if gating is not None:
        gating.fit(dataset.X_train)
    problems = _problems(dataset, gating)
    # Networks start from weights of their own, as the limits know nothing of each other.
    children = np.random.SeedSequence(seeds.weights).spawn(len(problems))
    networks = [
        family.network(problem.samples[0], options, int(child.generate_state(1)[0]))
        for problem, child in zip(problems, children, strict=True)
    ]
    check_trainer(options.trainer, networks[0])
    limits, finished = _solve_all(family, problems, dataset, options, reporter)
    trained: dict[int, TrainedClass] = {}
    failure = None
    if finished and all(limit.status in USABLE for limit in limits.values()):
        trained, finished, failure = _train_all(
            family, problems, networks, limits, settings, reporter
        )
    labels = _labels(problems, dataset, limits, trained)
    run = MulticlassRun(limits, trained, labels, finished, failure)
    return report_multiclass(model, family, options, dataset, gating, run)


def load_class_data(options: Options, seeds: Seeds) -> ClassDataset:
    """The data set that the options name, with its classes.

    Raises
    ------
    ValueError, FileNotFoundError
        If there are no such data, they have two labels only, or a class or part is missing.
    """
    sizes: dict[str, Any] = {
        "n_train": options.n_train or DIGITS_TRAINING,
        "n_val": options.n_val,
        "random_state": seeds.data,
    }
    if options.data == "digits":
        dataset = load_digit_classes(**sizes)
    elif options.data != "mnist":
        raise ValueError(
            f"`--classes all` needs data of several classes, `--data digits` or `--data mnist`, "
            f"got {options.data!r}"
        )
    elif options.data_dir is None:
        raise ValueError("`--data mnist` needs `--data-dir DIR`, the folder of its IDX files")
    else:
        dataset = load_idx_classes(options.data_dir, **sizes)
    if len(dataset.labels_val) == 0:
        raise ValueError(
            f"`--n-train {len(dataset.labels_train)}` leaves no held-out samples to compare on: "
            "train on fewer"
        )
    missing = sorted(set(dataset.classes) - set(dataset.labels_train.tolist()))
    if missing:
        raise ValueError(
            f"the training part has no sample of class {', '.join(map(str, missing))}: "
            "give a larger `--n-train` or another `--seed`"
        )
    return dataset


def _problems(dataset: ClassDataset, gating: Any) -> list[_Problem]:
    parts = ((dataset.X_train, dataset.labels_train), (dataset.X_val, dataset.labels_val))
    gates = [None if gating is None else gating.transform(X) for X, _ in parts]
    problems = []
    for label in dataset.classes:
        train_part, held_out = (
            Sample(X, np.where(labels == label, 1.0, -1.0), gate)
            for (X, labels), gate in zip(parts, gates, strict=True)
        )
        problems.append(_Problem(label, (train_part, held_out)))
    return problems


def _solve_all(
    family: Family,
    problems: list[_Problem],
    dataset: ClassDataset,
    options: Options,
    reporter: Reporter,
) -> tuple[dict[int, Limit], bool]:
    """The limits by class, and whether none is missing."""
    first = problems[0].samples[0]
    numbers = np.searchsorted(dataset.classes, dataset.labels_train)
    programs = one_vs_rest_programs(family.program(first, options).design, numbers)
    solutions = iterate_one_vs_rest(
        programs, solver=options.solver, settings=Settings(tol=options.tol)
    )
    limits: dict[int, Limit] = {}
    reporter.stage(
        f"solving {family.limit_name} for each of {len(problems)} classes on {len(numbers)} "
        f"samples ({options.solver})"
    )
    try:
        for problem, program, solution in zip(problems, programs, solutions, strict=True):
            limits[problem.label] = family.read(program, solution, first.gates)
            reporter.advance(len(limits), len(problems))
    except KeyboardInterrupt:
        if not limits:
            raise
    return limits, len(limits) == len(problems)


def _train_all(
    family: Family,
    problems: list[_Problem],
    networks: list[torch.nn.Module],
    limits: dict[int, Limit],
    settings: TrainingSettings,
    reporter: Reporter,
) -> tuple[dict[int, TrainedClass], bool, str | None]:
    """The networks by class, whether none is missing, and why the last one failed if it did."""
    trained: dict[int, TrainedClass] = {}
    try:
        for number, (problem, network) in enumerate(zip(problems, networks, strict=True), start=1):
            reporter.stage(
                f"training a {family.network_name} for class {problem.label} against the rest, "
                f"{number} of {len(problems)}"
            )
            # Of a run that is resumed, classes without a file had not been begun; the first had.
            kept = reporter.state(f"run-{problem.label}.safetensors")
            begun = number == 1 or (kept is not None and kept.exists())
            own = replace(reporter, resume=reporter.resume and begun)
            one = _train_one(problem, network, limits[problem.label], settings, own)
            if one is None:
                return trained, False, None
            trained[problem.label] = one
    except KeyboardInterrupt:
        return trained, False, None
    except FloatingPointError as error:  # diverged: what is done stands, so report it
        return trained, True, f"class {problem.label}: {error}"
    return trained, True, None


def _train_one(
    problem: _Problem,
    network: torch.nn.Module,
    limit: Limit,
    settings: TrainingSettings,
    reporter: Reporter,
) -> TrainedClass | None:
    """The trained network of one class; None if that was interrupted."""
    sample, held_out = problem.samples
    trajectory = train(
        network,
        *sample,
        settings=settings,
        callback=trace(reporter),
        # The KKT fit, the one thing here that costs more than a forward pass, at the end alone.
        observer=Distances(limit, *problem.samples, loss=settings.loss, kkt=False),
        state=reporter.state(f"run-{problem.label}.safetensors"),
        resume=reporter.resume,
    )
    if not trajectory.finished:
        return None
    kkt = kkt_distance(network, *sample) if trajectory.smallest_margin[-1] > 0 else None
    return TrainedClass(
        network,
        trajectory,
        measure_network(network, sample, held_out, kkt),
        compare(limit, network, sample, held_out, kkt=kkt),
    )


def _labels(
    problems: list[_Problem],
    dataset: ClassDataset,
    limits: dict[int, Limit],
    trained: dict[int, TrainedClass],
) -> MulticlassComparison | None:
    """Labels by the largest score; None while a class has no network."""
    if len(trained) < len(problems):
        return None
    X, _, gates = problems[0].samples[1]
    predicted = [to_numpy(limit.predictor(X, gates)) for limit in limits.values()]
    networks: list[NDArray[np.float64]] = [
        scores(trained[problem.label].network, problem.samples[1]) for problem in problems
    ]
    return compare_argmax(
        dataset.classes,
        dataset.labels_val,
        np.stack(predicted, axis=1),
        np.stack(networks, axis=1),
        [one.state.smallest_margin for one in trained.values()],
    )
