"""Trained units compared with gated OLS for the gates before and after training."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..._support.pictures import draw
from ...quantities.formatting import spread
from ...quantities.measured import Measured, derived, part, quantity
from ...training.settings import TrainingSettings
from ...training.trajectory import Trajectory
from .flow import GatedFlow, gated_flow

if TYPE_CHECKING:
    import torch
    from matplotlib.axes import Axes

Floats = NDArray[np.float64]
GateTime = Literal["initial", "final"]


class WeightsObserver:
    """Observer for `train` of the weights of averaged units and of changes of their gates.

    It measures "weights" (K, D) and "sign_flips", the share of pairs (sample, unit) whose gate
    ``<w_k, x_n> >= 0`` differs from that of the first call; 0 for a `GDLN`.

    Parameters
    ----------
    X : (n, D)
        The samples on which gates are compared.
    """

    def __init__(self, X: ArrayLike) -> None:
        self._X = np.asarray(X, dtype=np.float64)
        self._first: NDArray[np.bool_] | None = None

    def __call__(self, network: torch.nn.Module) -> dict[str, Any]:
        """Measure "weights" and "sign_flips" of a `GDLN` or a `ReLUMean`."""
        from ...networks.relu_mean import GDLN, ReLUMean
        from ...networks.weights import as_tensor

        if not isinstance(network, GDLN | ReLUMean):
            raise TypeError(
                "`network` must have averaged units, a GDLN or a ReLUMean, got "
                f"{type(network).__name__}"
            )
        flips = 0.0
        if isinstance(network, ReLUMean):
            gates = network.open_gates(as_tensor(self._X).to(network.w)).cpu().numpy()
            self._first = gates if self._first is None else self._first
            flips = float((gates != self._first).mean())
        return {"weights": network.w.detach().double().cpu().numpy().copy(), "sign_flips": flips}

    def state_dict(self) -> dict[str, Any]:
        """Return the gates of the first call, for resumed training."""
        return {} if self._first is None else {"gates": self._first}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the gates of the first call from a `state_dict`."""
        self._first = np.asarray(state["gates"], dtype=bool) if "gates" in state else None


class GatePrediction(Measured):
    """Weights of a gated network whose gates are these from the first step on."""

    gates: str = part(
        '"initial" or "final": frozen as the ReLU network has them before or after training.'
    )
    time: float = part(
        "Time of the gradient flow from the initial weights, steps times the learning rate; "
        "infinity for its limit."
    )
    weights: Floats = part("(K, D) weights of the gated network.")
    cosines: Floats = quantity(
        "cosine a unit",
        spread,
        ideal=1.0,
        doc="(K,) cosines between each trained unit and its prediction; NaN for a zero vector.",
    )
    relative_error: float = quantity(
        "relative error", ".4f", ideal=0.0, doc="`||w_trained - w|| / ||w_trained||`, all units."
    )
    loss: float = quantity("loss", ".5f", doc="`1/2 <(y - f)^2>` of the gated network.")
    localisation: Floats = quantity(
        "localisation", spread, doc="(K,) inverse participation ratios."
    )

    def rows(self) -> list[tuple[str, ...]]:
        """Return label and text of every line of a table; labels name gates and time."""
        name = f"{self.gates} gates, " + ("limit" if math.isinf(self.time) else "same time")
        return [(f"{name}: {label}", text) for label, text in super().rows()]


class GDLNComparison(Measured):
    """A trained ReLU network of averaged units, compared with gated linear predictions."""

    SCREEN = ("limit_error", "final_loss", "gate_changes")
    TITLE = "ReLU network beside the prediction"
    HEADS = ("", "value; of units: mean (least to largest)")

    weights: Floats = part("(K, D) trained weights.")

    @derived("time of training, steps x learning rate", "g")
    def time(self) -> float:
        """Time that training took, steps times the learning rate."""
        return next(p.time for p in self.predictions if math.isfinite(p.time))

    loss: float = quantity("loss of the ReLU network", ".5f")
    sign_flips: float = quantity(column="gate_changes")
    localisation_start: Floats = quantity(
        "localisation at the start (1/D all inputs, 1 one input)",
        spread,
        doc="(K,) inverse participation ratios of the initial weights.",
    )
    localisation: Floats = quantity(
        "localisation after training",
        spread,
        doc="(K,) inverse participation ratios of the trained weights.",
    )
    predictions: tuple[GatePrediction, ...] = part(
        "Initial and final gates, each at the time that training took and at infinity."
    )

    @property
    def limit_error(self) -> float:
        """Relative distance from the limit at the initial gates."""
        return self.prediction("initial", limit=True).relative_error

    @property
    def final_loss(self) -> float:
        """Loss of the ReLU network, as the first screen names it."""
        return self.loss

    def prediction(self, gates: GateTime, *, limit: bool = False) -> GatePrediction:
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
        """Draw the weights of a unit and their predictions on `ax`, or on axes of a new figure."""
        return draw("models.gdln.figure:plot_unit", self, unit, ax=ax)

    def rows(self) -> list[tuple[str, ...]]:
        """Return label and text of every line of a table, predictions one after the other."""
        return [*super().rows(), *(line for one in self.predictions for line in one.rows())]


def compare_with_gdln(
    X: Floats,
    y: Floats,
    trajectory: Trajectory,
    settings: TrainingSettings,
    *,
    rcond: float | None = None,
    flow: GatedFlow | None = None,
) -> GDLNComparison:
    """Compare a trained `ReLUMean` with gated networks of its first and of its last gates.

    Parameters
    ----------
    X, y : (n, D) and (n,) arrays
        The training data.
    trajectory : Trajectory
        Training of the ReLU network on these data, observed by a `WeightsObserver`.
    settings : TrainingSettings
        The settings of that training.
    rcond : float, optional
        Eigenvalues of the second moments at or below this share of the largest count as zero.
    flow : GatedFlow, optional
        Of the first gates, from the first weights, where it is at hand.

    Returns
    -------
    GDLNComparison

    Raises
    ------
    ValueError
        If training was not plain steps on the squared loss.

    Notes
    -----
    Where the loss of the ReLU network is differentiable and stationary, so is that of the gated
    network with the final gates: the two differ by directions orthogonal to all samples. A network
    that descent has led to a kink, with samples on the boundary of a gate (`<w_k, x_n>` near 0),
    is stationary for the gates of neither side, and a distance remains.
    """
    X, y = np.asarray(X, dtype=np.float64), np.asarray(y, dtype=np.float64)
    found = (settings.trainer, settings.loss, settings.momentum)
    if found != ("constant", "squared", 0):
        raise ValueError(
            "gated flow is the limit of plain steps on the squared loss: it needs trainer "
            "'constant', loss 'squared' and momentum 0, got {!r}, {!r} and {}".format(*found)
        )
    path = trajectory.observed["weights"]
    initial, trained = path[0], path[-1]
    trained_time = float(settings.flow_times(trajectory.step)[-1])

    def moved(w: Floats) -> GatedFlow:
        """Return the flow behind the gates of some weights, from the first ones."""
        return gated_flow(X, y, X @ w.T >= 0, initial, rcond=rcond)

    flows = {"initial": flow or moved(initial), "final": moved(trained)}
    predictions = [
        _prediction(name, t, one, trained)
        for name, one in flows.items()
        for t in (trained_time, math.inf)
    ]
    return GDLNComparison(
        weights=trained,
        loss=float(trajectory.loss[-1]),
        sign_flips=float(trajectory.observed["sign_flips"][-1]),
        localisation_start=inverse_participation_ratio(initial),
        localisation=inverse_participation_ratio(trained),
        predictions=tuple(predictions),
    )


def descent_path(flow: GatedFlow, settings: TrainingSettings, step: ArrayLike) -> Floats:
    """Return the weights (T, K, D) after full-batch steps (T,) of a schedule, in closed form."""
    left = np.asarray(step, dtype=np.float64)
    path = np.empty((len(left), *flow.initial.shape))
    for count, given in settings.phases:
        here, rate = left >= 0, given or 0.0
        path[here] = flow.descent(np.minimum(left[here], count), rate)
        left_over = (1 - rate * flow.tau * flow.rates) ** count * flow.displacement
        flow = replace(flow, initial=flow.descent(count, rate), displacement=left_over)
        left = left - count
    return path


def path_errors(path: Floats, predicted: Floats) -> Floats:
    """Return relative distances (T,) of weights (T, K, D) along training from predicted ones."""
    return _norm(path - predicted, (1, 2)) / _norm(predicted, (1, 2))


def inverse_participation_ratio(weights: NDArray[np.float64]) -> Floats:
    """Return the localisation `sum_d w_d^4 / (sum_d w_d^2)^2` (...) of weights (..., D).

    It is 1 for a single non-zero entry, 1/D for equal sizes, 3/(2 D) for a wave, 3/(D + 2) on
    average for Gaussian noise; NaN for a zero vector.
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
