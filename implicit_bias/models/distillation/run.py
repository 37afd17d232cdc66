"""The run of linear students: closed form and bounds, before anything is trained."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..._support.words import LossName
from ...data.catalogue import load_class_data
from ...data.made.pairs import load_pair
from ...runs.setup import Setup, training_settings
from ...runs.stages import Run, Stage, later
from .closed_form import distillation_limit
from .data import TransferTask, image_task, make_angle_task
from .limit import DistillationLimit
from .prediction import bound_risk, predict
from .start import DistillationSetup, draw_start, stable_rates

# Sizes where none are given: of the thesis's setting in 1000 dimensions a tenth, and of the
# bundled digits less than half of their inputs.
ANGLES, INPUTS, HELD_OUT, IMAGES = 20, 100, 2000, {"digits": 30, "mnist": 100}


def run_distillation(setup: Setup) -> Run[DistillationSetup]:
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
    return Run(setup=whole, heading=heading, stages=STAGES)


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
    sizes = {"n_train": n_train, "n_val": options.n_val, "random_state": seed}
    if options.classes == "all":
        return image_task(load_class_data(options.data, data_dir=options.data_dir, **sizes))
    return image_task(load_pair(options.data_dir, **sizes))


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


STAGES: tuple[Stage[DistillationSetup], ...] = (
    Stage(finds=predict),
    Stage(
        finds=bound_risk,
        says="bounding the risk",
        when=lambda setup, found: not setup.task.of_classes,  # angles are of two classes
    ),
    Stage(
        finds=later(f"{__package__}.descent:train_and_compare"),
        says="training a student for {setup.settings.n_steps} steps",
        trains=True,
    ),
)
