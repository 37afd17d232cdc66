"""A network at an output scale, counted from its start."""

import copy

import torch
from numpy.typing import ArrayLike
from torch import Tensor

from .protocols import Gated

__all__ = ["ScaledNetwork"]


class ScaledNetwork(torch.nn.Module):
    r"""Scores :math:`h(x) = \alpha (f_w(x) - f_{w_0}(x))` of a network f that began at :math:`w_0`.

    Parameters
    ----------
    network : Module
        With gates that are given; a copy is trained, another one stays at the start.
    scale : float
        alpha, positive: the larger, the less weights have to move for a score.

    References
    ----------
    L. Chizat, E. Oyallon, F. Bach, "On lazy training in differentiable programming" (NeurIPS
    2019).
    """

    def __init__(self, network: torch.nn.Module, scale: float) -> None:
        super().__init__()
        self.network, self.scale = copy.deepcopy(network), float(scale)
        self.start = copy.deepcopy(network).requires_grad_(False)

    def prepare(self, gates: ArrayLike | Tensor) -> Tensor:
        """Gates as the network takes them."""
        assert isinstance(self.network, Gated)
        return self.network.prepare(gates)

    def forward(self, X: Tensor, gates: Tensor) -> Tensor:
        """Return the scores (n,)."""
        scores: Tensor = self.scale * (self.network(X, gates) - self.start(X, gates))
        return scores
