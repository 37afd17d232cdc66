"""Trained units beside what gated OLS predicts for gates frozen at the start and at the end."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .data import RingData
from .flow import GatedFlow, gated_flow
from .network import ReLUMean
from .training import RegressionSettings, RegressionTrajectory, train_regression

__all__ = [
    "GDLNComparison",
    "GDLNRun",
    "GatePrediction",
    "compare_with_gdln",
    "flow_errors",
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
        Time of the gradient flow from the initial weights; infinity for its limit.
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
        rows = [
            ("loss of the ReLU network", f"{self.loss:.5f}"),
            ("gates flipped by training", f"{self.sign_flips:.2%}"),
            ("localisation at the start", _spread(self.localisation_start)),
            ("localisation after training", _spread(self.localisation)),
        ]
        for p in self.predictions:
            name = f"{p.gates} gates, " + ("t = inf" if math.isinf(p.time) else f"t = {p.time:g}")
            rows += [
                (f"{name}: cosine a unit", _spread(p.cosines)),
                (f"{name}: relative error", f"{p.relative_error:.4f}"),
                (f"{name}: loss", f"{p.loss:.5f}"),
                (f"{name}: localisation", _spread(p.localisation)),
            ]
        return rows

    def __str__(self) -> str:
        rows = self.rows()
        width = max(len(label) for label, _ in rows)
        return "\n".join(f"{label:<{width}}  {value}" for label, value in rows)


@dataclass(frozen=True, eq=False)
class GDLNRun:
    """Both networks of an experiment, from the same initial weights.

    Attributes
    ----------
    relu : RegressionTrajectory
        ReLU units; their gates move.
    gdln : RegressionTrajectory
        Linear units behind the ReLU network's initial gates.
    descent_errors : (T,) array
        Distance of the latter from full-batch descent in closed form, relative, at each
        checkpoint: rounding alone, if the batches were full.
    comparison : GDLNComparison
        The ReLU network beside the predictions.
    """

    relu: RegressionTrajectory
    gdln: RegressionTrajectory
    descent_errors: Floats
    comparison: GDLNComparison


def compare_with_gdln(
    X: Floats, y: Floats, trajectory: RegressionTrajectory, *, rcond: float | None = None
) -> GDLNComparison:
    """Compare a trained `ReLUMean` with gated networks whose gates never moved.

    Parameters
    ----------
    X, y : (n, D) and (n,) arrays
        The training data.
    trajectory : RegressionTrajectory
        Of the ReLU network on these data.
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
    initial, trained = trajectory.weights[0], trajectory.weights[-1]
    predictions = []
    for name, w in (("initial", initial), ("final", trained)):
        flow = gated_flow(X, y, X @ w.T >= 0, initial, rcond=rcond)
        for t in (float(trajectory.time[-1]), math.inf):
            predictions.append(_prediction(name, t, flow, trained))
    return GDLNComparison(
        weights=trained,
        loss=float(trajectory.loss[-1]),
        sign_flips=float(trajectory.sign_flips[-1]),
        localisation_start=inverse_participation_ratio(initial),
        localisation=inverse_participation_ratio(trained),
        predictions=tuple(predictions),
    )


def flow_errors(trajectory: RegressionTrajectory, flow: GatedFlow) -> Floats:
    """(T,) distances `||w - flow(t)|| / ||flow(t)||` of a trained network from its flow."""
    return _path_errors(trajectory, flow(trajectory.time))


def run_gdln(
    data: RingData,
    *,
    n_units: int = 8,
    init_scale: float = 0.01,
    settings: RegressionSettings | None = None,
    random_state: int | np.random.Generator = 0,
    progress: Callable[[str, int, int, float], None] | None = None,
) -> GDLNRun:
    """Train averaged ReLU units and their gated linear twin, and predict both.

    Parameters
    ----------
    data : RingData
    n_units : int
        K.
    init_scale : float
        Of the initial weights, positive; gates do not depend on it.
    settings : RegressionSettings, optional
    random_state : int or numpy Generator
        Of the initial weights.
    progress : callable, optional
        `progress(stage, step, n_steps, loss)`, with stage "relu" or "gdln".
    """
    if not init_scale > 0:
        raise ValueError(f"`init_scale` must be positive, got {init_scale}: zero opens every gate")
    settings = RegressionSettings() if settings is None else settings
    relu = ReLUMean(data.X.shape[1], n_units, init_scale=init_scale, random_state=random_state)
    gdln, start = relu.frozen(), relu.w.detach().numpy().copy()
    gates = data.X @ start.T >= 0

    def stage(name: str) -> Callable[[int, int, float], None] | None:
        return None if progress is None else partial(progress, name)

    relu_path = train_regression(relu, data.X, data.y, settings=settings, callback=stage("relu"))
    gdln_path = train_regression(
        gdln, data.X, data.y, gates, settings=settings, callback=stage("gdln")
    )
    flow = gated_flow(data.X, data.y, gates, start)
    descent = flow.descent(gdln_path.step, settings.learning_rate)
    return GDLNRun(
        relu=relu_path,
        gdln=gdln_path,
        descent_errors=_path_errors(gdln_path, descent),
        comparison=compare_with_gdln(data.X, data.y, relu_path),
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


def _path_errors(trajectory: RegressionTrajectory, predicted: Floats) -> Floats:
    return _norm(trajectory.weights - predicted, (1, 2)) / _norm(predicted, (1, 2))


def _norm(array: Floats, axis: int | tuple[int, int]) -> Floats:
    norms: Floats = np.sqrt((array * array).sum(axis=axis))
    return norms


def _spread(values: Floats) -> str:
    return f"{values.mean():.4f} ({values.min():.4f} to {values.max():.4f})"
