"""Trained units beside what gated OLS predicts for gates frozen at the start and at the end."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..._pictures import draw
from ..._shown import Shown
from ...measures.formatting import aligned, number, share, spread
from ...training.settings import TrainingSettings
from ...training.trajectory import Trajectory
from .flow import GatedFlow, gated_flow
from .training import check_descent, flow_times

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "GDLNComparison",
    "GatePrediction",
    "compare_with_gdln",
    "inverse_participation_ratio",
    "path_errors",
]

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class GatePrediction(Shown):
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


@dataclass(frozen=True, eq=False, repr=False)
class GDLNComparison(Shown):
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

    def plot(self, ax: Axes | None = None, *, unit: int = 0) -> Axes:
        """Draw the weights of a unit beside their predictions; see `Limit.plot` for `ax`."""
        return draw("models.gdln.figure:plot_comparison", self, unit, ax=ax)

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

    def _shown_rows(self) -> list[tuple[str, str]]:
        return self.rows()

    def __str__(self) -> str:
        return aligned(self.rows())


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


def path_errors(path: Floats, predicted: Floats) -> Floats:
    """(T,) distances of weights (T, K, D) along a run from predicted ones, relative to those."""
    return _norm(path - predicted, (1, 2)) / _norm(predicted, (1, 2))


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


def _norm(array: Floats, axis: int | tuple[int, int]) -> Floats:
    norms: Floats = np.sqrt((array * array).sum(axis=axis))
    return norms
