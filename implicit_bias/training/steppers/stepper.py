"""Interface of the gradient methods, and the objective that most of them descend."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ...networks.losses.objectives import log_loss, log_mean_loss_gradient
from ...networks.placed_data import GatedData
from ..network_stack import NetworkStack, Rate
from ..settings import TrainingSettings
from .batched import assign, per_network, to_numpy


class Stepper:
    """A gradient method in the course of training.

    Parameters
    ----------
    stack : NetworkStack
    settings : TrainingSettings
    n_samples : int
        Margins of a step over all samples.

    Attributes
    ----------
    state : dict of tensors
        Everything besides the weights that the next step depends on; replacing its entries by
        saved ones, and the weights, resumes a run exactly.
    stopped : str
        What it has warned of: why its steps have come to nothing; empty while they go on.
    """

    state: dict[str, Tensor]
    stopped = ""

    def __init__(self, stack: NetworkStack, settings: TrainingSettings, n_samples: int) -> None:
        self._stack, self._kind = stack, settings.loss
        self.state = {}

    def step(self, batch: GatedData, rate: Rate) -> None:
        """Change the weights by one step; `rate` is a number, one a network (B,), or None.

        Where the weights are on another device it may go ahead on the assumption that the step is
        one of those that need not be changed, and not wait for the answer.
        """
        raise NotImplementedError

    def settle(self) -> None:
        """Make sure that the weights are those of the steps taken, before anything reads them."""


class FlatStepper(Stepper):
    """A gradient method whose state has numbers (B,) on the CPU, and weights as rows (B, P)."""

    def _get(self, name: str) -> NDArray[Any]:
        """Numbers (B,) of the state."""
        return to_numpy(self.state[name])

    def _set(self, **values: NDArray[Any]) -> None:
        """Replace numbers (B,) of the state."""
        self.state |= {name: torch.from_numpy(value) for name, value in values.items()}

    def _flat(self) -> Tensor:
        """The weights as rows (B, P)."""
        return torch.cat([w.flatten(1) for w in self._stack.weights], dim=1)

    def _unflatten(self, flat: Tensor) -> list[Tensor]:
        """Rows (B, P) in the shapes of the weights."""
        weights = self._stack.weights
        parts = torch.split(flat, [w[0].numel() for w in weights], dim=1)
        return [part.view_as(w) for w, part in zip(weights, parts, strict=True)]

    def _assign_some(self, values: list[Tensor], networks: NDArray[np.bool_]) -> None:
        """Give the networks marked (B,) these weights."""
        weights = self._stack.weights
        pairs = zip(weights, values, strict=True)
        chosen = [torch.where(per_network(networks, w), v.to(w.dtype), w) for w, v in pairs]
        assign(weights, chosen)


def log_loss_gradient(
    stack: NetworkStack, batch: GatedData, kind: str, scores: Tensor | None = None
) -> tuple[Tensor, list[Tensor]]:
    """Return `log_loss` (B,) at the weights of `stack`, and its gradient in them.

    Parameters
    ----------
    stack : NetworkStack
    batch : GatedData
    kind : str
        A loss of margins.
    scores : (B, n) or (B, n, K) tensor, optional
        The scores at these weights with their graph, where they are known already.
    """
    if scores is None:
        scores = stack.scores(batch)
    known = scores.detach()
    coefficients = log_mean_loss_gradient(known, batch.y, kind)
    return log_loss(known, batch.y, kind), stack.vjp(scores, coefficients)
