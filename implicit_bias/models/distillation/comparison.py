"""A trained student compared with its gradient flow and with its limit."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...data.arrays import Floats
from ...quantities.measured import Measured, part, quantity, side_by_side
from ...training.settings import TrainingSettings
from ...training.trajectory import Trajectory
from .closed_form import sample_span
from .data import TransferTask
from .flow import distillation_flow
from .limit import DistillationLimit
from .losses import centred, mean_loss
from .risk import angle, transfer_risk


class StudentState(Measured, eq=True):
    """A student, compared with the teacher and the limit."""

    loss: float = quantity(
        "divergence from soft labels",
        ".3e",
        ideal=0.0,
        doc="Mean divergence from the soft labels; 0 at the limit.",
    )
    error: float = quantity(column="limit_error", doc="`||w - w(inf)|| / ||w(inf)||`.")
    null_norm: float = quantity(doc="Length of the part of w orthogonal to the samples.")
    angle: float = quantity(doc="Angle with the teacher, in radians; NaN for K classes.")
    risk: float = quantity(doc="Share of held-out inputs whose label differs from the teacher's.")

    def shown(self) -> tuple[str, ...]:
        """Return names of the attributes with a line in the table; the angle if known."""
        known = math.isfinite(self.angle)
        return tuple(name for name in super().shown() if known or name != "angle")


@dataclass(frozen=True, eq=False)
class StudentCurves:
    """Weights and distances over training, of the network and of the flow at the same times.

    Attributes
    ----------
    time : (T,) array
        Steps times learning rates.
    network, flow : (T, D) or (T, K, D) arrays
        End-to-end weights.
    span_error, null_norm : (2, T) arrays
        `||P (w - w(inf))||` and `||(I - P) w||` of the network, and of the flow.
    """

    time: Floats
    network: Floats
    flow: Floats
    span_error: Floats
    null_norm: Floats


class DistillationComparison(Measured):
    """A trained student, the flow at the time that training took, and the limit."""

    limit: StudentState = part("The limit.")
    flow: StudentState = part("The flow at the time that training took.")
    network: StudentState = part("The trained student.")
    time: float = quantity(
        "time, steps x learning rates", doc="Time that training took.", shown=False
    )
    path_error: float = quantity(
        doc="Largest distance of network and flow at a checkpoint, relative to the flow."
    )
    weight_cosine: float = quantity(
        "cosine of weights with the limit",
        ".6f",
        column="zeta_cosine",
        doc="Cosine between the weights of network and limit.",
    )
    score_cosine: float = quantity(format=".6f")
    agreement: float = quantity()
    curves: StudentCurves = part("Network and flow over training.", recorded=False)

    def states(self) -> list[tuple[str, ...]]:
        """Return the lines of a table: a label, and the values of limit, flow and network."""
        ((label, time),) = self.lines("time")
        three = (self.limit, self.flow, self.network)
        names = dict.fromkeys(name for state in three for name in state.shown())
        return [(label, "inf", time, time), *side_by_side(three, *names)]

    def cells(self) -> dict[str, Any]:
        """Return the values of the run's row, among them those of the network by itself."""
        return super().cells() | self.network.cells()


def compare_with_distillation(
    limit: DistillationLimit,
    task: TransferTask,
    trajectory: Trajectory,
    settings: TrainingSettings,
) -> DistillationComparison:
    """Compare a trained linear student with its flow and with its limit.

    Parameters
    ----------
    limit : DistillationLimit
        The limit from the weights that training began with.
    task : TransferTask
        The data of training, the teacher and held-out inputs.
    trajectory : Trajectory
        Training of the student, observed by `student_weights`.
    settings : TrainingSettings
        The settings of that training.

    Returns
    -------
    DistillationComparison
    """
    path, time = trajectory.observed["weights"], settings.flow_times(trajectory.step)
    flow = path[:1]
    if time[-1] > 0:
        flow = distillation_flow(task.X, task.teacher, path[0], time, depth=limit.depth)
    curves = _curves(limit, task, time, path, flow)
    three = (limit.zeta, flow[-1], path[-1])
    states = [_state(limit, task, w) for w in three]
    scores = [task.X_val @ w.T for w in (limit.zeta, path[-1])]
    sizes, distance = _lengths(flow), _lengths(path - flow)
    return DistillationComparison(
        time=float(time[-1]),
        limit=states[0],
        flow=states[1],
        network=states[2],
        path_error=float((distance / np.where(sizes > 0, sizes, 1.0)).max()),
        weight_cosine=_cosine(limit.zeta, path[-1]),
        score_cosine=_cosine(*scores),
        agreement=1 - transfer_risk(path[-1], limit.zeta, task.X_val),
        curves=curves,
    )


def _curves(
    limit: DistillationLimit, task: TransferTask, time: Floats, path: Floats, flow: Floats
) -> StudentCurves:
    span = sample_span(task.X)
    both = np.stack([path, flow])
    seen = span.project(_effective(both, task))
    return StudentCurves(
        time=time,
        network=path,
        flow=flow,
        span_error=np.stack([_lengths(one - limit.projection) for one in seen]),
        null_norm=np.stack([_lengths(one) for one in both - seen]),
    )


def _effective(w: Floats, task: TransferTask) -> Floats:
    """Return the part of weights (..., D) or (..., K, D) that changes soft labels."""
    return centred(w, "cross-entropy") if task.of_classes else w


def _lengths(path: Floats) -> Floats:
    """Return norms (T,) of weights (T, ...)."""
    return np.asarray(np.linalg.norm(path.reshape(len(path), -1), axis=1))


def _state(limit: DistillationLimit, task: TransferTask, w: Floats) -> StudentState:
    size = float(np.linalg.norm(limit.zeta))
    off = w - sample_span(task.X).project(_effective(w, task))
    return StudentState(
        loss=mean_loss(task.X, w, task.teacher, "cross-entropy"),
        error=float(np.linalg.norm(w - limit.zeta)) / size if size > 0 else float("nan"),
        null_norm=float(np.linalg.norm(off)),
        angle=float("nan") if task.of_classes else angle(w, task.teacher),
        risk=transfer_risk(w, task.teacher, task.X_val),
    )


def _cosine(u: Floats, v: Floats) -> float:
    sizes = float(np.linalg.norm(u) * np.linalg.norm(v))
    return float((u * v).sum()) / sizes if sizes > 0 else float("nan")
