"""The run of linear students: closed form, bounds, gradient flow, and a network trained."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch

from ...data.arrays import Floats
from ...data.catalogue import load_class_data
from ...data.labelled import ClassDataset
from ...data.pairs import load_pair
from ...networks.deep_linear import DeepLinear
from ...networks.protocols import check_device
from ...networks.student import LinearStudent
from ...reports.columns import training_columns
from ...reports.finding import Finding, Table
from ...reports.findings import TOGETHER, network_record
from ...reports.report import Report, gather
from ...reports.writers import write_arrays, write_weights
from ...runs.folder import Keeping
from ...runs.model import Model
from ...runs.progress import Progress
from ...runs.seeds import Seeds
from ...runs.setup import Heading, provenance, schedule_of, torch_dtype, trains
from ...training.loop import train
from ...training.settings import TrainingSettings
from ...training.trajectory import Trajectory
from .closed_form import distillation_limit
from .comparison import DistillationComparison, compare_with_distillation
from .data import TransferTask, image_task, make_angle_task
from .diagnosis import assumptions, limit_alone, risk_ahead
from .figure import plot_null_part, plot_span_error
from .limit import DistillationLimit
from .training import draw_start, flow_times, stable_rates, student_weights

__all__ = ["run_distillation"]

RUN = "run.safetensors"
# Sizes where none are given: of the thesis's setting in 1000 dimensions a tenth, and of the
# bundled digits less than half of their inputs.
ANGLES, INPUTS, HELD_OUT, IMAGES = 20, 100, 2000, {"digits": 30, "mnist": 100}
# Layers between are as wide as one likes: of a balanced start all have rank one.
WIDTH = 10


@dataclass(frozen=True, eq=False)
class Setup:
    """What a run is given.

    Attributes
    ----------
    options : DistillationOptions
        Their learning rates filled in.
    progress, keeping : Progress, Keeping
    task : TransferTask
    start : (D,) or (K, D) array
        End-to-end weights that the student begins with.
    turned : bool
        Whether the direction that was drawn is turned around.
    limit : DistillationLimit
    settings : TrainingSettings
    """

    options: Any
    progress: Progress
    keeping: Keeping
    task: TransferTask
    start: Floats
    turned: bool
    limit: DistillationLimit
    settings: TrainingSettings


def run_distillation(model: Model, options: Any, progress: Progress, keeping: Keeping) -> Report:
    """Predict a linear student of a linear teacher, bound its risk, train it, compare.

    Raises
    ------
    ValueError, FileNotFoundError
        If an option is out of range, the data are not there or the student begins where its limit
        is not known, before any long work.
    """
    seeds = Seeds.from_seed(options.seed)
    check_device(options.device)
    task = _task(model, options, seeds.data).tempered(options.temperature)
    start, turned = draw_start(
        task.X, task.teacher, options.init_scale, options.depth, seeds.weights
    )
    limit = distillation_limit(task.X, task.teacher, start, depth=options.depth, tol=options.tol)
    options = _with_rates(options, task, limit)
    settings = TrainingSettings(
        loss="softmax" if task.of_classes else "cross-entropy",
        batch_size=options.batch_size,
        schedule=schedule_of(options),
        random_state=seeds.batches,
    )
    setup = Setup(options, progress, keeping, task, start, turned, limit, settings)
    return gather(_heading(model, setup), _find(setup), keeping)


def _task(model: Model, options: Any, seed: int) -> TransferTask:
    """The user's own data, or those that the options name."""
    if options.kappa is not None and options.data != "angles":
        raise ValueError(f"`--kappa` is of `--data angles`, got {options.data!r}: leave it out")
    if model.given is not None and model.given.dataset is not None:
        return image_task(model.given.dataset)
    if options.classes == "all" and options.data == "angles":
        raise ValueError("`--classes all` needs images: `--data digits` or `--data mnist`")
    if options.data_dir is not None and options.data != "mnist":
        raise ValueError("`--data-dir` is for `--data mnist`, the files of a folder: give both")
    if options.data == "angles":
        kappa = 1.0 if options.kappa is None else options.kappa
        n_train, n_val = options.n_train or ANGLES, options.n_val or HELD_OUT
        return make_angle_task(n_train, INPUTS, kappa, n_val=n_val, random_state=seed)
    if options.data == "mnist" and options.data_dir is None:
        raise ValueError("`--data mnist` needs `--data-dir DIR`, the folder of its IDX files")
    n_train = options.n_train or IMAGES[options.data]
    if options.classes == "all":
        return image_task(_classes(options, n_train, seed))
    return image_task(
        load_pair(options.data_dir, n_train=n_train, n_val=options.n_val, random_state=seed)
    )


def _classes(options: Any, n_train: int, seed: int) -> ClassDataset:
    """Images of all classes."""
    return load_class_data(
        options.data,
        data_dir=options.data_dir,
        n_train=n_train,
        n_val=options.n_val,
        random_state=seed,
    )


def _with_rates(options: Any, task: TransferTask, limit: DistillationLimit) -> Any:
    """With learning rates that are stable on these data, if none were chosen."""
    if options.learning_rate or not trains(options):
        return options
    size = float(np.linalg.norm(limit.zeta))
    rates = stable_rates(
        task.X, options.depth, size, len(options.steps), of_classes=task.of_classes
    )
    return replace(options, learning_rate=rates)


def _heading(model: Model, setup: Setup) -> Heading:
    task = setup.task
    about = {
        "name": task.name,
        "description": task.description,
        "n_train": len(task.X),
        "n_val": len(task.X_val),
        "n_inputs": int(task.X.shape[1]),
        "sha256": task.digest(),
    }
    return Heading(
        model=model.name,
        theorem=model.theorem,
        program=model.program,
        setup=f"{task.description}; seed {setup.options.seed}",
        title=f"a student of {_described(setup)} beside its flow and its limit",
        record={"model": model.name, "theorem": model.theorem}
        | provenance(setup.options)
        | {"data": about},
    )


def _described(setup: Setup) -> str:
    depth = setup.options.depth
    if setup.task.of_classes:
        return f"one linear layer and {len(setup.task.teacher)} classes"
    return f"{depth} linear layer" + ("" if depth == 1 else "s")


def _find(setup: Setup) -> Iterator[Finding]:
    """What there is to find, each as soon as it is known."""
    task, options = setup.task, setup.options
    assumed = assumptions(task, options, setup.start, turned=setup.turned)
    yield limit_alone(setup.limit, task, assumed)
    if not task.of_classes:  # angles are of two classes
        setup.progress.stage("bounding the risk")
        yield risk_ahead(setup.limit, task, options.kappa)
    if not trains(setup.options):
        return
    setup.progress.stage(f"training a student for {setup.settings.n_steps} steps")
    network = _student(setup)
    trajectory = train(
        network,
        setup.task.X,
        setup.task.soft_labels,
        None,
        settings=setup.settings,
        callback=setup.progress.training(),
        observer=student_weights,
        state=setup.keeping.state(RUN),
        resume=setup.keeping.resume,
    )
    yield _trained(setup, network, trajectory)
    setup.progress.stage("integrating the flow, comparing")
    yield _comparison(
        setup, compare_with_distillation(setup.limit, setup.task, trajectory, setup.settings)
    )


def _student(setup: Setup) -> DeepLinear | LinearStudent:
    """The untrained student."""
    options = setup.options
    begins = torch.tensor(setup.start, dtype=torch_dtype(options.dtype))
    if setup.task.of_classes:
        return LinearStudent(begins, device=options.device)
    widths = (WIDTH,) * (options.depth - 1)
    return DeepLinear.from_zeta(begins, hidden_widths=widths, device=options.device)


def _trained(setup: Setup, network: DeepLinear | LinearStudent, trajectory: Trajectory) -> Finding:
    """The student as training has left it."""
    path = {
        "weights": trajectory.observed["weights"],
        "step": trajectory.step,
        "time": flow_times(setup.settings, trajectory.step),
        "loss": trajectory.loss,
    }
    return Finding(
        "network",
        record={"network": network_record(trajectory)},
        files={
            "network.safetensors": write_weights(network),
            "path.safetensors": write_arrays(path),
        },
        objects={"network": network, "trajectory": trajectory},
        row=training_columns(trajectory),
        finished=trajectory.finished,
    )


def _comparison(setup: Setup, found: DistillationComparison) -> Finding:
    """The student beside its flow and its limit."""
    return Finding.measured(
        "comparison",
        found,
        tables=(
            Table(
                TOGETHER,
                ("", "limit", "flow at this time", "trained student"),
                tuple(found.states()),
            ),
            Table("comparison", ("", "value"), tuple(found.rows())),
        ),
        panels=(
            partial(plot_span_error, curves=found.curves),
            partial(plot_null_part, curves=found.curves, limit=setup.limit),
        ),
    )
