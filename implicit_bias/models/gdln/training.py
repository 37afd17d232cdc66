"""Weights and gates of averaged units over training, and full-batch descent in closed form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...training.settings import TrainingSettings
from .flow import GatedFlow

if TYPE_CHECKING:
    import torch

Floats = NDArray[np.float64]


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


def check_descent(settings: TrainingSettings) -> None:
    """Check that training is plain steps on the squared loss, as the closed forms assume.

    Raises
    ------
    ValueError
        If it is not.
    """
    found = (settings.trainer, settings.loss, settings.momentum)
    if found != ("constant", "squared", 0):
        raise ValueError(
            "gated flow is the limit of plain steps on the squared loss: it needs trainer "
            "'constant', loss 'squared' and momentum 0, got {!r}, {!r} and {}".format(*found)
        )


def descent_path(flow: GatedFlow, settings: TrainingSettings, step: ArrayLike) -> Floats:
    """Return the weights (T, K, D) after full-batch steps (T,) of a schedule, in closed form."""
    left = np.asarray(step, dtype=np.float64)
    path = np.empty((len(left), *flow.initial.shape))
    for count, rate in settings.phases:
        here = left >= 0
        path[here] = flow.descent(np.minimum(left[here], count), rate or 0.0)
        shrunk = (1 - (rate or 0.0) * flow.tau * flow.rates) ** count
        flow = replace(
            flow,
            initial=flow.descent(count, rate or 0.0),
            displacement=shrunk * flow.displacement,
        )
        left = left - count
    return path
