"""The smoothed margin of several networks, and its gradient, at points of their weight spaces."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ...networks.losses.objectives import SmoothedLoss, smoothed_loss
from ...networks.placed_data import GatedData
from ..network_stack import NetworkStack
from ..settings import TrainingSettings
from .batched import assign, inner, lengths, numbers, on_device, per_network
from .stepper import FlatStepper

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Networks and their losses at points of weight space.

    Attributes
    ----------
    point : (B, P) tensor
    length : (B,) array
        Its Euclidean length.
    scale : (B,) array
        The weights of the networks are the point times this.
    scores : (B, n) tensor
        With their graph.
    loss : SmoothedLoss
    log_loss, smallest_margin : (B,) arrays
    share : (B,) array
        Share that was taken of the step that leads there.
    """

    point: Tensor
    length: Array
    scale: Array
    scores: Tensor
    loss: SmoothedLoss
    log_loss: Array
    smallest_margin: Array
    share: Array = field(default_factory=lambda: np.empty(0))


class SmoothedMargin(FlatStepper):
    r"""The loss of B homogeneous networks as a function of points (B, P), one a network.

    The weights of network b are :math:`\theta = \beta_b^{1/L} u`, :math:`\beta_b` its inverse
    temperature and L the degree: u is the point itself before the network has separated the data,
    and its direction afterwards.

    Attributes
    ----------
    state : dict of tensors
        Numbers (B,) on the CPU and rows (B, P), among them "inverse_temperature" and "separated".
    """

    def __init__(self, stack: NetworkStack, settings: TrainingSettings, n_samples: int) -> None:
        super().__init__(stack, settings, n_samples)
        self._degree: int = stack.networks[0].degree  # type: ignore[assignment]

    def _evaluate(self, batch: GatedData, point: Tensor) -> Evaluation:
        """Put the networks at points (B, P), at their temperatures, and compute their losses."""
        root, separated = self._get("inverse_temperature") ** (1 / self._degree), self._separated
        size = lengths(point)
        norms = torch.where(on_device(separated, point), size, 1.0)
        placed = point * per_network(on_device(root, point) / norms, point)
        assign(self._stack.weights, self._unflatten(placed))
        scores = self._stack.scores(batch)
        loss = smoothed_loss(scores.detach(), batch.y, self._kind)
        # All that the host has to know of a point, in one question to the device.
        length, log_loss, smallest = numbers(size, loss.log_loss, loss.smallest_margin)
        scale = root / np.where(separated, length, 1.0)
        return Evaluation(point, length, scale, scores, loss, log_loss, smallest)

    @property
    def _separated(self) -> NDArray[np.bool_]:
        """Return which networks (B,) have separated the data."""
        return self._get("separated")

    def _weight_gradient(
        self, at: Evaluation, coefficients: Tensor, *, keep: bool = False
    ) -> Tensor:
        """Gradients (B, P) in the weights, from those (B, n) in the scores."""
        parts = self._stack.vjp(at.scores, coefficients, keep=keep)
        return torch.cat([g.flatten(1) for g in parts], dim=1)

    def _point_gradient(self, at: Evaluation, gradient: Tensor) -> Tensor:
        """Gradients (B, P) in the points, from those in the weights."""
        return self._tangent(gradient * per_network(at.scale, gradient), at)

    def _tangent(self, gradient: Tensor, at: Evaluation) -> Tensor:
        """Gradients without their radial part, where only the direction of the point counts."""
        separated = self._separated
        if not separated.any():
            return gradient
        squared = on_device(np.where(separated, at.length, 1.0) ** 2, gradient)
        share = torch.where(
            on_device(separated, gradient), inner(gradient, at.point) / squared, 0.0
        )
        return gradient - per_network(share, gradient) * at.point
