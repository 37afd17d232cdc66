"""A trained student beside the flow that it descends along, and beside its limit."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ...data.arrays import Floats
from ...quantities.formatting import aligned, number, share
from ...training.settings import TrainingSettings
from ...training.trajectory import Trajectory
from .closed_form import sample_span
from .data import TransferTask
from .flow import distillation_flow
from .limit import DistillationLimit
from .losses import centred, mean_loss
from .risk import angle, transfer_risk
from .training import flow_times

__all__ = ["DistillationComparison", "StudentCurves", "StudentState", "compare_with_distillation"]


@dataclass(frozen=True)
class StudentState:
    """One student beside the teacher and the limit.

    Attributes
    ----------
    loss : float
        Mean divergence from the soft labels; 0 at the limit.
    error : float
        `||w - w(inf)|| / ||w(inf)||`.
    null_norm : float
        Length of what the samples do not see of w.
    angle : float
        With the teacher, in radians; NaN of K classes.
    risk : float
        Share of held-out inputs that it labels unlike the teacher.
    """

    loss: float
    error: float
    null_norm: float
    angle: float
    risk: float


@dataclass(frozen=True, eq=False)
class StudentCurves:
    """Over training, of the network and of the flow at the same times.

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


@dataclass(frozen=True, eq=False)
class DistillationComparison:
    """A trained student, the flow at the time that training took, and the limit.

    Attributes
    ----------
    time : float
    limit, flow, network : StudentState
    path_error : float
        The largest distance of network and flow at a checkpoint, relative to the flow.
    weight_cosine, score_cosine : float
        Between network and limit, of weights and of held-out scores.
    agreement : float
        Share of held-out labels that network and limit share.
    curves : StudentCurves
    """

    time: float
    limit: StudentState
    flow: StudentState
    network: StudentState
    path_error: float
    weight_cosine: float
    score_cosine: float
    agreement: float
    curves: StudentCurves

    def to_dict(self) -> dict[str, Any]:
        """Everything but the curves, as plain Python values."""
        states = {name: asdict(getattr(self, name)) for name in ("limit", "flow", "network")}
        names = ("time", "path_error", "weight_cosine", "score_cosine", "agreement")
        return states | {name: getattr(self, name) for name in names}

    def states(self) -> list[tuple[str, ...]]:
        """Label and value of limit, flow and network, of every line of a printed table."""
        three = (self.limit, self.flow, self.network)
        angles = [state.angle for state in three]
        known = bool(np.isfinite(angles).any())
        return [
            ("time, steps x learning rates", "inf", *(2 * [number(self.time, ".4g")])),
            ("loss", "0", *(number(state.loss, ".3e") for state in three[1:])),
            ("off the limit, relative", "0", *(number(s.error, ".4f") for s in three[1:])),
            ("off the projection", *(number(state.null_norm, ".6f") for state in three)),
            *([("angle with the teacher, degrees", *map(_degrees, angles))] if known else []),
            ("transfer risk, held out", *(share(state.risk) for state in three)),
        ]

    def rows(self) -> list[tuple[str, str]]:
        """Label and value of what sets network and prediction apart."""
        return [
            ("network off the flow, relative, at most (0)", number(self.path_error, ".2e")),
            ("cosine of weights with the limit (1)", number(self.weight_cosine, ".6f")),
            ("cosine of held-out scores with the limit (1)", number(self.score_cosine, ".6f")),
            ("held-out labels shared with the limit (100 %)", share(self.agreement)),
        ]

    def __str__(self) -> str:
        return aligned(self.rows())


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
        From the weights that training began with.
    task : TransferTask
    trajectory : Trajectory
        With what `student_weights` observed.
    settings : TrainingSettings
        Those that it was trained with.
    """
    path, time = trajectory.observed["weights"], flow_times(settings, trajectory.step)
    flow = path[:1]
    if time[-1] > 0:
        flow = distillation_flow(task.X, task.teacher, path[0], time, depth=limit.depth)
    curves = _curves(limit, task, time, path, flow)
    three = (limit.weights, flow[-1], path[-1])
    states = [_state(limit, task, w) for w in three]
    scores = [task.X_val @ w.T for w in (limit.weights, path[-1])]
    sizes, distance = _lengths(flow), _lengths(path - flow)
    return DistillationComparison(
        time=float(time[-1]),
        limit=states[0],
        flow=states[1],
        network=states[2],
        path_error=float((distance / np.where(sizes > 0, sizes, 1.0)).max()),
        weight_cosine=_cosine(limit.weights, path[-1]),
        score_cosine=_cosine(*scores),
        agreement=1 - transfer_risk(path[-1], limit.weights, task.X_val),
        curves=curves,
    )


def _curves(
    limit: DistillationLimit, task: TransferTask, time: Floats, path: Floats, flow: Floats
) -> StudentCurves:
    span = sample_span(task.X)
    both = np.stack([path, flow])
    seen = span.project(_seen(both, task))
    return StudentCurves(
        time=time,
        network=path,
        flow=flow,
        span_error=np.stack([_lengths(one - limit.projection) for one in seen]),
        null_norm=np.stack([_lengths(one) for one in both - seen]),
    )


def _seen(w: Floats, task: TransferTask) -> Floats:
    """What soft labels see of weights (..., D), or (..., K, D) of K classes."""
    return centred(w, "cross-entropy") if task.of_classes else w


def _lengths(path: Floats) -> Floats:
    """(T,) of weights (T, ...)."""
    return np.asarray(np.linalg.norm(path.reshape(len(path), -1), axis=1))


def _state(limit: DistillationLimit, task: TransferTask, w: Floats) -> StudentState:
    size = float(np.linalg.norm(limit.weights))
    off = w - sample_span(task.X).project(_seen(w, task))
    return StudentState(
        loss=mean_loss(task.X, w, task.teacher, "cross-entropy"),
        error=float(np.linalg.norm(w - limit.weights)) / size if size > 0 else float("nan"),
        null_norm=float(np.linalg.norm(off)),
        angle=float("nan") if task.of_classes else angle(w, task.teacher),
        risk=transfer_risk(w, task.teacher, task.X_val),
    )


def _cosine(u: Floats, v: Floats) -> float:
    sizes = float(np.linalg.norm(u) * np.linalg.norm(v))
    return float((u * v).sum()) / sizes if sizes > 0 else float("nan")


def _degrees(radians: float) -> str:
    return number(float(np.degrees(radians)), ".3f")
