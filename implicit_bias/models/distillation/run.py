"""The run of linear students: closed form, bounds, gradient flow, and a network trained."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch

from ...data.arrays import Floats
from ...data.pairs import load_pair
from ...measures.formatting import number, share
from ...pipeline.columns import training_columns
from ...pipeline.finding import Assumption, Finding, Table
from ...pipeline.findings import network_record
from ...pipeline.keeping import Keeping
from ...pipeline.model import Model
from ...pipeline.progress import Progress
from ...pipeline.report import Report, gather
from ...pipeline.seeds import Seeds
from ...pipeline.setup import Heading, provenance, torch_dtype, trains
from ...pipeline.writers import write_arrays, write_weights
from ...training.loop import train
from ...training.network import check_device
from ...training.settings import TrainingSettings
from ...training.trajectory import Trajectory
from ..linear.network import DeepLinear
from .comparison import DistillationComparison, compare_with_distillation
from .data import TransferTask, image_task, make_angle_task
from .figure import plot_bound, plot_learning, plot_null_part, plot_span_error, plot_tail
from .formulation import distillation_limit
from .limit import DistillationLimit
from .losses import mean_loss
from .risk import (
    angle_tail,
    error_angle,
    learning_curve,
    polynomial_tail,
    risk_bound,
    transfer_risk,
)
from .training import draw_start, flow_times, phases, stable_rates, student_weights

__all__ = ["run_distillation"]

NAME = "distillation limit"
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
    start : (D,) array
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
    task = _task(model, options, seeds.data)
    start, turned = draw_start(
        task.X, task.teacher, options.init_scale, options.depth, seeds.weights
    )
    limit = distillation_limit(task.X, task.teacher, start, depth=options.depth, tol=options.tol)
    options = _with_rates(options, task, limit)
    settings = TrainingSettings(
        loss="cross-entropy",
        batch_size=options.batch_size,
        schedule=phases(options.steps, options.learning_rate) if trains(options) else None,
        random_state=seeds.batches,
    )
    setup = Setup(options, progress, keeping, task, start, turned, limit, settings)
    return gather(_heading(model, setup), _find(setup), keeping)


def _task(model: Model, options: Any, seed: int) -> TransferTask:
    """The user's own data, or those that the options name."""
    if options.kappa is not None and options.data != "angles":
        raise ValueError(f"`--kappa` is of `--data angles`, got {options.data!r}: leave it out")
    if model.given is not None and model.given.dataset is not None:
        return image_task(model.given.dataset)  # type: ignore[arg-type]
    if options.data_dir is not None and options.data != "mnist":
        raise ValueError("`--data-dir` is for `--data mnist`, the files of a folder: give both")
    if options.data == "angles":
        return make_angle_task(
            options.n_train or ANGLES, INPUTS, 1.0 if options.kappa is None else options.kappa,
            n_val=options.n_val or HELD_OUT, random_state=seed,
        )  # fmt: skip
    if options.data == "mnist" and options.data_dir is None:
        raise ValueError("`--data mnist` needs `--data-dir DIR`, the folder of its IDX files")
    return image_task(
        load_pair(
            options.data_dir, n_train=options.n_train or IMAGES[options.data], n_val=options.n_val,
            random_state=seed,
        )  # fmt: skip
    )


def _with_rates(options: Any, task: TransferTask, limit: DistillationLimit) -> Any:
    """With learning rates that are stable on these data, if none were chosen."""
    if options.learning_rate or not trains(options):
        return options
    size = float(np.linalg.norm(limit.weights))
    rates = stable_rates(task.X, options.depth, size, len(options.steps))
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
        title=f"a student of {setup.options.depth} linear layers beside its flow and its limit",
        record={"model": model.name, "theorem": model.theorem}
        | provenance(setup.options)
        | {"data": about},
    )


def _find(setup: Setup) -> Iterator[Finding]:
    """What there is to find, each as soon as it is known."""
    yield _limit(setup)
    setup.progress.stage("bounding the risk")
    yield _risk(setup)
    if not trains(setup.options):
        return
    setup.progress.stage(f"training a student for {setup.settings.n_steps} steps")
    network = DeepLinear.from_zeta(
        torch.tensor(setup.start, dtype=torch_dtype(setup.options.dtype)),
        hidden_widths=(WIDTH,) * (setup.options.depth - 1),
        device=setup.options.device,
    )
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


def _limit(setup: Setup) -> Finding:
    """The closed form, its certificate, and what it assumes."""
    limit, task = setup.limit, setup.task
    certificate, n = limit.certificate, len(task.X)
    risk = transfer_risk(limit.weights, task.teacher, task.X_val)
    rows = (
        ("status", limit.status.name),
        ("  teacher's scores missed, relative", f"{certificate.interpolation:.2e}"),
        ("  share outside samples and start", f"{certificate.span_share:.2e}"),
        ("  equation of the part unseen", f"{certificate.root_residual:.2e}"),
        ("rank of the samples", f"{limit.rank} of {task.X.shape[1]} inputs"),
        ("length of the start", number(limit.start_norm, ".4g")),
        ("length of the projection", number(float(np.linalg.norm(limit.projection)), ".6g")),
        ("limit off the projection", number(limit.null_norm, ".6g")),
        ("  published bound (D.40)", number(limit.null_bound, ".6g")),
        ("angle with the teacher, degrees", number(float(np.degrees(limit.angle)), ".4g")),
        ("transfer risk, held out", share(risk)),
        ("samples", str(n)),
    )
    record = limit.to_dict() | {"angle": limit.angle, "transfer_risk": risk}
    return Finding(
        "limit",
        record={"limit": record},
        tables=(Table("prediction", ("", NAME), rows),),
        files={"limit.safetensors": limit.save},
        assumptions=_assumptions(setup),
        statuses={NAME: limit.status},
        certificates={NAME: record},
        objects={"limit": limit, "task": task},
        row={
            "limit": NAME,
            "stationarity": certificate.residual,
            "limit_seconds": limit.seconds,
            "null_norm_limit": limit.null_norm,
            "angle_limit": limit.angle,
            "risk_limit": risk,
        },
    )


def _assumptions(setup: Setup) -> tuple[Assumption, ...]:
    task, depth = setup.task, setup.options.depth
    largest = float(np.abs(task.logits).max())
    precision = {"float32": 16, "float64": 36}[setup.options.dtype]
    found = [
        Assumption(
            f"soft labels tell the teacher's scores apart: |score| is at most {largest:.3g}, and "
            f"they round to 0 and 1 from {precision} on",
            largest < precision,
        ),
        Assumption("full batches, as gradient flow has", setup.options.batch_size == 0),
    ]
    if depth > 1:
        begins, at_zero = (
            mean_loss(task.X, w, task.teacher, "cross-entropy")
            for w in (setup.start, 0 * setup.start)
        )
        way = ", the direction drawn turned around for it" if setup.turned else ""
        found += [
            Assumption("the start is balanced (by construction)", True),
            Assumption(
                f"the start has a smaller loss than weights of 0: {begins:.6g} below {at_zero:.6g}"
                f"{way}",
                begins < at_zero,
            ),
        ]
    return tuple(found)


def _risk(setup: Setup) -> Finding:
    """What the angles of the inputs say of the risk before anything is trained."""
    task, options, n = setup.task, setup.options, len(setup.task.X)
    tail = angle_tail(task.X_val, task.teacher)
    bound = risk_bound(tail, n)
    curve = learning_curve(task.X, task.teacher, task.X_val)
    rises, deep = curve.rises, _bound_off_projection(setup, tail)
    known = None
    if task.name == "angles":
        theta = np.linspace(0, np.pi / 2, 200)
        kappa = 1.0 if options.kappa is None else options.kappa
        known = np.stack([theta, polynomial_tail(kappa)(theta)])
    rows = (
        ("bound of the expected risk, as printed", number(bound.value)),
        ("  as its proof gives it", number(bound.sharper)),
        ("  of students as far off the projection as this one", number(deep)),
        ("at beta, degrees", number(float(np.degrees(bound.beta)))),
        ("further samples by which the angle rose (0)", f"{rises[0]} of {n - 1}"),
        ("further samples by which the risk rose", f"{rises[1]} of {n - 1}"),
    )
    spanned = setup.limit.rank == task.X.shape[1]
    title = "expected risk of students on so many samples, by the held-out angles (theorem 5.3)"
    return Finding(
        "risk",
        record={
            "risk": asdict(bound)
            | {"off_projection": deep, "angle_rises": rises[0], "risk_rises": rises[1]}
            | {"exact": 0.0 if spanned else None}
        },
        tables=(Table(title, ("", "value"), rows),),
        panels=(
            partial(plot_tail, tail=tail, known=known),
            partial(plot_bound, tail=tail, n=n, bound=bound, risk=float(curve.risks[-1])),
            partial(plot_learning, curve=curve),
        ),
        objects={"risk_bound": bound, "learning_curve": curve},
        row={"risk_bound": bound.sharper},
    )


def _bound_off_projection(setup: Setup, tail: Any) -> float:
    """Theorem D.4 put right, for students whose relative error is that of this limit."""
    size = float(np.linalg.norm(setup.limit.projection))
    if not setup.limit.null_norm < size:
        return float("nan")
    delta = error_angle(setup.limit.null_norm / size)
    return risk_bound(tail, len(setup.task.X), delta=delta).sharper


def _trained(setup: Setup, network: DeepLinear, trajectory: Trajectory) -> Finding:
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
        files={"network.safetensors": write_weights(network), "path.safetensors": write_arrays(path)},
        objects={"network": network, "trajectory": trajectory},
        row=training_columns(trajectory),
        finished=trajectory.finished,
    )


def _comparison(setup: Setup, found: DistillationComparison) -> Finding:
    """The student beside its flow and its limit."""
    return Finding(
        "comparison",
        record={"comparison": found.to_dict()},
        tables=(
            Table(
                "prediction and training",
                ("", "limit", "flow at this time", "trained student"),
                tuple(found.states()),
            ),
            Table("comparison", ("", "value"), tuple(found.rows())),
        ),
        panels=(
            partial(plot_span_error, curves=found.curves),
            partial(plot_null_part, curves=found.curves, limit=setup.limit),
        ),
        objects={"comparison": found},
        row={
            "path_error": found.path_error,
            "zeta_cosine": found.weight_cosine,
            "score_cosine": found.score_cosine,
            "agreement": found.agreement,
            "limit_error": found.network.error,
            "null_norm": found.network.null_norm,
            "angle": found.network.angle,
            "risk": found.network.risk,
        },
    )
