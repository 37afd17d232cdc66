"""A network whose scores are scaled, and measured from those at its initial weights."""

import copy

import torch
from numpy.typing import ArrayLike
from torch import Tensor

from .._support.doors import door
from .protocols import Gated


class ScaledNetwork(torch.nn.Module):
    r"""Scores :math:`h(x) = \alpha (f_w(x) - f_{w_0}(x))` of a network f that began at :math:`w_0`.

    Parameters
    ----------
    network : Module
        A network whose gates are given with the data; a copy is trained, another one stays as it
        is.
    scale : float
        alpha, positive: the larger, the less the weights have to move for a score.

    References
    ----------
    L. Chizat, E. Oyallon, F. Bach, "On lazy training in differentiable programming" (NeurIPS
    2019).

    Examples
    --------
    >>> import torch
    >>> network = ib.networks.ScaledNetwork(ib.DGN(3, widths=(2,)), scale=10.0)
    >>> network(torch.ones(1, 3).double(), torch.ones(1, 2).double()).tolist()
    [0.0]
    """

    @door()
    def __init__(self, network: torch.nn.Module, scale: float) -> None:
        super().__init__()
        self.network, self.scale = copy.deepcopy(network), float(scale)
        self.start = copy.deepcopy(network).requires_grad_(False)

    @door()
    def prepare(self, gates: ArrayLike | Tensor) -> Tensor:
        """Check gates (n, ...) and return them as the network takes them."""
        assert isinstance(self.network, Gated)
        return self.network.prepare(gates)

    def forward(self, X: Tensor, gates: Tensor) -> Tensor:
        """Return the scores (n,) of X (n, D) under gates (n, ...)."""
        scores: Tensor = self.scale * (self.network(X, gates) - self.start(X, gates))
        return scores
