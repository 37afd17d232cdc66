"""Gradient descent with heavy-ball momentum at given learning rates."""

from __future__ import annotations

import torch

from ...networks.losses.objectives import log_mean_loss_gradient, mean_loss_gradient
from ...networks.placed_data import GatedData
from ..network_stack import NetworkStack, Rate
from ..settings import TrainingSettings
from .decay import go_against, shrink
from .stepper import Stepper


class GradientDescent(Stepper):
    """Heavy-ball gradient descent on the mean loss or on its logarithm, at given rates."""

    def __init__(self, stack: NetworkStack, settings: TrainingSettings, n_samples: int) -> None:
        super().__init__(stack, settings, n_samples)
        self._momentum = settings.momentum
        self._decay, self._decoupled = settings.weight_decay, settings.decay == "decoupled"
        velocity = [torch.zeros_like(w) for w in stack.weights] if settings.momentum else []
        self.state = {f"velocity.{i}": v for i, v in enumerate(velocity)}
        self._gradient = (
            mean_loss_gradient if settings.trainer == "constant" else log_mean_loss_gradient
        )

    def step(self, batch: GatedData, rate: Rate) -> None:
        """Take one step along the gradient of the loss over `batch`; see `Stepper`."""
        scores = self._stack.scores(batch)
        coefficients = self._gradient(scores.detach(), batch.y, self._kind)
        directions = self._stack.vjp(scores, coefficients)
        for i, (w, g) in enumerate(zip(self._stack.weights, directions, strict=True)):
            if self._decay and not self._decoupled:
                g = g + self._decay * w
            if self._decay and self._decoupled:
                shrink(w, self._decay, rate)
            if self._momentum:
                g = self.state[f"velocity.{i}"].mul_(self._momentum).add_(g)
            go_against(w, g, rate)
