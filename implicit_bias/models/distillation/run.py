"""The run of linear students: closed form, bounds, gradient flow, and a network trained."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch

from ..._words import LossName
from ...data.arrays import Floats
from ...data.catalogue import load_class_data
from ...data.labelled import ClassDataset
from ...data.pairs import load_pair
from ...networks.deep_linear import DeepLinear
from ...networks.student import LinearStudent
from ...reports.finding import Finding, Side, Table
from ...reports.findings import TOGETHER, trained
from ...reports.report import Report
from ...reports.verdict import Evidence, decide
from ...reports.writers import write_path
from ...runs.fit import fit
from ...runs.gathering import gather
from ...runs.setup import Setup, torch_dtype, training_settings
from ...training.settings import TrainingSettings
from .closed_form import distillation_limit
from .comparison import DistillationComparison, compare_with_distillation
from .data import TransferTask, image_task, make_angle_task
from .diagnosis import assumptions, limit_finding, risk_finding
from .figure import plot_null_part, plot_span_error
from .limit import DistillationLimit
from .training import draw_start, stable_rates, student_weights

__all__ = ["run_distillation"]

# Sizes where none are given: of the thesis's setting in 1000 dimensions a tenth, and of the
# bundled digits less than half of their inputs.
ANGLES, INPUTS, HELD_OUT, IMAGES = 20, 100, 2000, {"digits": 30, "mnist": 100}
# Layers between are as wide as one likes: of a balanced start all have rank one.
WIDTH = 10
# Of student and limit together, on the first screen.
SCREEN = ("path_error", "zeta_cosine", "agreement")


@dataclass(frozen=True, eq=False, kw_only=True)
class DistillationSetup(Setup):
    """The setup of a run, its learning rates filled in, with its task, start and limit.

    Attributes
    ----------
    task : TransferTask
        Inputs, teacher and held-out inputs.
    start : (D,) or (K, D) array
        Initial end-to-end weights of the student.
    turned : bool
        True if the direction that was drawn is reversed.
    limit : DistillationLimit
        The limit from `start`.
    settings : TrainingSettings
        The settings of training, learning rates included.
    """

    task: TransferTask
    start: Floats
    turned: bool
    limit: DistillationLimit
    settings: TrainingSettings


def run_distillation(setup: Setup) -> Report:
    """Predict a linear student of a linear teacher, bound its risk, train it, compare.

    Raises
    ------
    ValueError, FileNotFoundError
        If an option is out of range, the data are not there or the student begins where its limit
        is not known, before any long work.
    """
    options, seeds = setup.options, setup.seeds
    task = _task(setup).tempered(options.temperature)
    start, turned = draw_start(
        task.X, task.teacher, options.init_scale, options.depth, seeds.weights
    )
    limit = distillation_limit(task.X, task.teacher, start, depth=options.depth, tol=options.tol)
    setup = _with_rates(setup, task, limit)
    loss: LossName = "softmax" if task.of_classes else "cross-entropy"
    whole = DistillationSetup(
        **setup.shared,
        task=task,
        start=start,
        turned=turned,
        limit=limit,
        settings=training_settings(setup.options, seeds, loss=loss),
    )
    heading = setup.heading(
        {
            "name": task.name,
            "description": task.description,
            "n_train": len(task.X),
            "n_val": len(task.X_val),
            "n_inputs": int(task.X.shape[1]),
            "sha256": task.digest(),
        },
        title=f"a student of {_described(whole)} beside its flow and its limit",
    )
    return gather(heading, _find(whole), setup.folder)


def _task(setup: Setup) -> TransferTask:
    """Return the transfer task of the user's data, or of the data that the options name."""
    options, seed = setup.options, setup.seeds.data
    if options.kappa is not None and options.data != "angles":
        raise ValueError(f"`--kappa` is of `--data angles`, got {options.data!r}: leave it out")
    if setup.user_data.dataset is not None:
        return image_task(setup.user_data.dataset)
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
    """Load images of all classes."""
    return load_class_data(
        options.data,
        data_dir=options.data_dir,
        n_train=n_train,
        n_val=options.n_val,
        random_state=seed,
    )


def _with_rates(setup: Setup, task: TransferTask, limit: DistillationLimit) -> Setup:
    """Fill in learning rates that are stable on these data, if none were chosen."""
    options = setup.options
    if options.learning_rate or not setup.trains:
        return setup
    size = float(np.linalg.norm(limit.zeta))
    rates = stable_rates(
        task.X, options.depth, size, len(options.steps), of_classes=task.of_classes
    )
    return replace(setup, options=replace(options, learning_rate=rates))


def _described(setup: DistillationSetup) -> str:
    depth = setup.options.depth
    if setup.task.of_classes:
        return f"one linear layer and {len(setup.task.teacher)} classes"
    return f"{depth} linear layer" + ("" if depth == 1 else "s")


def _find(setup: DistillationSetup) -> Iterator[Finding]:
    """Yield the findings of the run, each as soon as it is known."""
    task, options = setup.task, setup.options
    assumed = assumptions(task, options, setup.start, turned=setup.turned)
    yield limit_finding(setup.limit, task, assumed)
    if not task.of_classes:  # angles are of two classes
        setup.progress.stage("bounding the risk")
        yield risk_finding(setup.limit, task, options.kappa)
    if not setup.trains:
        return
    setup.progress.stage(f"training a student for {setup.settings.n_steps} steps")
    network = _student(setup)
    X, labels, settings = task.X, task.soft_labels, setup.settings
    trajectory = fit(setup, network, X, labels, settings=settings, observer=student_weights)
    path = {"path.safetensors": write_path(trajectory, settings)}
    yield trained(network, trajectory, path=path, margins=False)
    setup.progress.stage("integrating the flow, comparing")
    yield _comparison(
        setup, compare_with_distillation(setup.limit, setup.task, trajectory, setup.settings)
    )


def _student(setup: DistillationSetup) -> DeepLinear | LinearStudent:
    """Make the untrained student."""
    options = setup.options
    begins = torch.tensor(setup.start, dtype=torch_dtype(options.dtype))
    if setup.task.of_classes:
        return LinearStudent(begins, device=options.device)
    widths = (WIDTH,) * (options.depth - 1)
    return DeepLinear.from_zeta(begins, hidden_widths=widths, device=options.device)


def _comparison(setup: DistillationSetup, found: DistillationComparison) -> Finding:
    """Return the finding that compares the student with its flow and its limit."""
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
        verdicts=(decide(_evidence(setup.limit, found)),),
        sides=_sides(found),
    )


def _sides(found: DistillationComparison) -> tuple[Side, ...]:
    """Return limit, flow and student as columns of the first screen."""
    own = {name: value for name, value in found.cells().items() if name in SCREEN}
    states = {"limit": found.limit, "flow, same time": found.flow}
    return (
        *(
            Side(name, {"final_loss": one.loss, **one.cells()}, predicted=name == "limit")
            for name, one in states.items()
        ),
        Side("student", {"final_loss": found.network.loss, **found.network.cells(), **own}),
    )


def _evidence(limit: DistillationLimit, found: DistillationComparison) -> Evidence:
    """Return the evidence on a student beside its limit."""
    return Evidence(
        status=limit.status,
        near={"limit_error": found.network.error},
        beside={"agreement": found.agreement},
        reason=f"the flow is {found.flow.error:.2%} off at this time: give more `--steps`",
    )
