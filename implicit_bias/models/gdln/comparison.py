"""Trained units beside what gated OLS predicts for gates frozen at the start and at the end."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ...measures.formatting import aligned, number, share, spread
from ...training.loop import train
from ...training.settings import TrainingSettings
from ...training.trajectory import Trajectory
from ...training.weights import as_tensor
from .data import RingData
from .flow import GatedFlow, gated_flow
from .network import ReLUMean
from .training import DEFAULTS, WeightsObserver, check_descent, descent_path, flow_times

__all__ = [
    "GDLNComparison",
    "GDLNRun",
    "GatePrediction",
    "compare_with_gdln",
    "inverse_participation_ratio",
    "run_gdln",
]

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class GatePrediction:
    """The gated network's weights, had these gates held from the start.

    Attributes
    ----------
    gates : str
        "initial" or "final": whether frozen as the ReLU network has them before or after training.
    time : float
        Time of the gradient flow from the initial weights, steps times the learning rate; infinity
        for its limit.
    weights : (K, D) array
    cosines : (K,) array
        Between each trained unit and its prediction; NaN for a zero vector.
    relative_error : float
        `||w_trained - w|| / ||w_trained||` over all units.
    loss : float
        `1/2 <(y - f)^2>` of the gated network.
    localisation : (K,) array
        Inverse participation ratios.
    """

    gates: str
    time: float
    weights: Floats
    cosines: Floats
    relative_error: float
    loss: float
    localisation: Floats

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain Python values."""
        return {
            "gates": self.gates,
            "time": self.time,
            "weights": self.weights.tolist(),
            "cosines": self.cosines.tolist(),
            "relative_error": self.relative_error,
            "loss": self.loss,
            "localisation": self.localisation.tolist(),
        }


@dataclass(frozen=True, eq=False)
class GDLNComparison:
    """A trained ReLU network of averaged units beside gated linear predictions.

    Attributes
    ----------
    weights : (K, D) array
        Trained.
    loss : float
        Of the trained network.
    sign_flips : float
        Share of gates (sample, unit) that training changed.
    localisation_start, localisation : (K,) arrays
        Inverse participation ratios of the initial and the trained weights.
    predictions : tuple of GatePrediction
        Initial and final gates, each at the time that training took and at infinity.
    """

    weights: Floats
    loss: float
    sign_flips: float
    localisation_start: Floats
    localisation: Floats
    predictions: tuple[GatePrediction, ...]

    def prediction(self, gates: str, *, limit: bool = False) -> GatePrediction:
        """The prediction for "initial" or "final" gates, at the trained time or its limit.

        Raises
        ------
        ValueError
            If there is none.
        """
        for prediction in self.predictions:
            if prediction.gates == gates and math.isinf(prediction.time) == limit:
                return prediction
        raise ValueError(f"`gates` must be 'initial' or 'final', got {gates!r}")

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain Python values."""
        return {
            "weights": self.weights.tolist(),
            "loss": self.loss,
            "sign_flips": self.sign_flips,
            "localisation_start": self.localisation_start.tolist(),
            "localisation": self.localisation.tolist(),
            "predictions": [prediction.to_dict() for prediction in self.predictions],
        }

    def rows(self) -> list[tuple[str, str]]:
        """Label and value of every line of a printed table."""
        time = next(p.time for p in self.predictions if math.isfinite(p.time))
        rows = [
            ("time of training, steps x learning rate", number(time, "g")),
            ("loss of the ReLU network", number(self.loss, ".5f")),
            ("gates flipped by training", share(self.sign_flips)),
            ("localisation (1/D all inputs, 1 one input)", spread(self.localisation)),
            ("localisation at the start", spread(self.localisation_start)),
        ]
        for p in self.predictions:
            name = f"{p.gates} gates, " + ("limit" if math.isinf(p.time) else "same time")
            rows += [
                (f"{name}: cosine a unit (1)", spread(p.cosines)),
                (f"{name}: relative error (0)", number(p.relative_error, ".4f")),
                (f"{name}: loss", number(p.loss, ".5f")),
                (f"{name}: localisation", spread(p.localisation)),
            ]
        return rows

    def __str__(self) -> str:
        return aligned(self.rows())


@dataclass(frozen=True, eq=False)
class GDLNRun:
    """Both networks of an experiment, from the same initial weights.

    Attributes
    ----------
    relu : Trajectory
        ReLU units; their gates move. A `WeightsObserver` measured it.
    gdln : Trajectory or None
        Linear units behind the ReLU network's initial gates, measured alike; None if the other
        run was interrupted.
    time : (T,) array
        Times of the gradient flow at the checkpoints of both.
    descent_errors : (T,) array
        Distance of the latter from full-batch descent in closed form, relative, at each
        checkpoint: rounding alone, if the batches were full. Empty if it was not trained.
    comparison : GDLNComparison
        The ReLU network beside the predictions.
    """

    relu: Trajectory
    gdln: Trajectory | None
    time: Floats
    descent_errors: Floats
    comparison: GDLNComparison

    @property
    def finished(self) -> bool:
        """Whether both runs came to their end."""
        return self.gdln is not None and self.gdln.finished


def compare_with_gdln(
    X: Floats,
    y: Floats,
    trajectory: Trajectory,
    settings: TrainingSettings,
    *,
    rcond: float | None = None,
) -> GDLNComparison:
    """Compare a trained `ReLUMean` with gated networks whose gates never moved.

    Parameters
    ----------
    X, y : (n, D) and (n,) arrays
        The training data.
    trajectory : Trajectory
        Of the ReLU network on these data, with what a `WeightsObserver` measured.
    settings : TrainingSettings
        Those that it was trained with.
    rcond : float, optional
        As in `gated_flow`.

    Returns
    -------
    GDLNComparison
        Where the loss of the ReLU network is differentiable and stationary, so is that of the
        gated network with the final gates: the two differ by directions that no sample sees.
        A network that descent has brought to a kink, with samples on the boundary of a gate
        (`<w_k, x_n>` near 0), is stationary for neither side's gates and keeps a distance.
    """
    X, y = np.asarray(X, dtype=np.float64), np.asarray(y, dtype=np.float64)
    check_descent(settings)
    path = trajectory.observed["weights"]
    initial, trained = path[0], path[-1]
    trained_time = float(flow_times(settings, trajectory.step)[-1])
    predictions = []
    for name, w in (("initial", initial), ("final", trained)):
        flow = gated_flow(X, y, X @ w.T >= 0, initial, rcond=rcond)
        for t in (trained_time, math.inf):
            predictions.append(_prediction(name, t, flow, trained))
    return GDLNComparison(
        weights=trained,
        loss=float(trajectory.loss[-1]),
        sign_flips=float(trajectory.observed["sign_flips"][-1]),
        localisation_start=inverse_participation_ratio(initial),
        localisation=inverse_participation_ratio(trained),
        predictions=tuple(predictions),
    )


def run_gdln(
    data: RingData,
    network: ReLUMean,
    *,
    settings: TrainingSettings = DEFAULTS,
    progress: Callable[[str, int, int, float], None] | None = None,
    states: tuple[Path, Path] | None = None,
    resume: bool = False,
) -> GDLNRun:
    """Train averaged ReLU units and their gated linear twin, and predict both.

    Parameters
    ----------
    data : RingData
    network : ReLUMean
        Trained in place; its twin begins from the same weights.
    settings : TrainingSettings
        Plain steps on the squared loss.
    progress : callable, optional
        `progress(stage, step, n_steps, log_loss)`, with stage "relu" or "gdln".
    states : (path, path), optional
        Files in which the two runs, first that of `network`, keep what it takes to go on.
    resume : bool
        Go on from those files; a run whose file is not there begins.

    Raises
    ------
    ValueError
        If the initial weights vanish, or as `check_descent` and `train` do.
    """
    if not bool(network.w.any()):
        raise ValueError("the initial weights are all zero, which opens every gate")
    check_descent(settings)
    twin, start = network.frozen(), network.w.detach().double().cpu().numpy().copy()
    gates = network.open_gates(as_tensor(data.X).to(network.w)).cpu().numpy()
    files = states or (None, None)

    def go(stage: str, trained: torch.nn.Module, given: Any, state: Path | None) -> Trajectory:
        return train(
            trained, data.X, data.y, given, settings=settings, observer=WeightsObserver(data.X),
            callback=None if progress is None else partial(progress, stage), state=state,
            resume=resume and state is not None and state.exists(),
        )  # fmt: skip

    relu = go("relu", network, None, files[0])
    gdln = go("gdln", twin, gates, files[1]) if relu.finished else None
    errors = np.empty(0)
    if gdln is not None:
        descent = descent_path(gated_flow(data.X, data.y, gates, start), settings, gdln.step)
        errors = _path_errors(gdln.observed["weights"], descent)
    return GDLNRun(
        relu=relu,
        gdln=gdln,
        time=flow_times(settings, relu.step),
        descent_errors=errors,
        comparison=compare_with_gdln(data.X, data.y, relu, settings),
    )


def inverse_participation_ratio(weights: NDArray[np.float64]) -> Floats:
    """(...) localisation `sum_d w_d^4 / (sum_d w_d^2)^2` of weight vectors (..., D).

    1 for a single non-zero entry, 1/D for equal sizes, 3/(2 D) for a wave, 3/(D + 2) on average
    for Gaussian noise; NaN for a zero vector.
    """
    w = np.asarray(weights, dtype=np.float64)
    largest = np.abs(w).max(axis=-1, keepdims=True)
    # Relative to the largest entry, so that powers neither overflow nor vanish.
    squares = (w / np.where(largest > 0, largest, np.nan)) ** 2
    ratio: Floats = (squares**2).sum(axis=-1) / squares.sum(axis=-1) ** 2
    return ratio


def _prediction(gates: str, t: float, flow: GatedFlow, trained: Floats) -> GatePrediction:
    weights = np.asarray(flow(t))
    norms = _norm(weights, 1) * _norm(trained, 1)
    products = (weights * trained).sum(axis=1)
    return GatePrediction(
        gates=gates,
        time=t,
        weights=weights,
        cosines=products / np.where(norms > 0, norms, math.nan),
        relative_error=float(np.linalg.norm(trained - weights) / np.linalg.norm(trained)),
        loss=float(flow.loss(t)),
        localisation=inverse_participation_ratio(weights),
    )


def _path_errors(path: Floats, predicted: Floats) -> Floats:
    return _norm(path - predicted, (1, 2)) / _norm(predicted, (1, 2))


def _norm(array: Floats, axis: int | tuple[int, int]) -> Floats:
    norms: Floats = np.sqrt((array * array).sum(axis=axis))
    return norms
