"""Relative margins of K classes as the scores of a network, one a sample and other class."""

from __future__ import annotations

import torch
from torch import Tensor


class RelativeScores(torch.nn.Module):
    """The scores f_y - f_k of a network of K classes, of rows that name y and k.

    It shares the network's weights. What holds of a network with one score and labels 1, such as
    the KKT conditions of its margin problem, holds of the relative margins through it.

    Parameters
    ----------
    network : Module
        Takes gates, which may be None, and returns scores (n, K).
    shape : tuple of int
        Axes of a sample's gates as the network takes them; (0,) without gates.
    """

    def __init__(self, network: torch.nn.Module, shape: tuple[int, ...]) -> None:
        super().__init__()
        self.network, self._shape = network, shape
        self.degree = getattr(network, "degree", None)

    def forward(self, X: Tensor, gates: Tensor) -> Tensor:
        """Return the scores (m,) of inputs (m, ...) and gates of `pair_gates`."""
        pairs, given = gates[:, -2:].long(), gates[:, :-2].reshape(len(X), *self._shape)
        scores = self.network(X, given if given.numel() else None).gather(1, pairs)
        relative: Tensor = scores[:, 0] - scores[:, 1]
        return relative


def pair_gates(gates: Tensor | None, pairs: Tensor) -> tuple[Tensor, tuple[int, ...]]:
    """Return gates of rows with the classes y and k of each, and the axes of the gates alone.

    Parameters
    ----------
    gates : (m, ...) tensor or None
    pairs : (m, 2) integers
    """
    if gates is None:
        return pairs, (0,)
    rows = gates.reshape(len(gates), -1)
    return torch.cat([rows, pairs.to(gates)], dim=1), tuple(gates.shape[1:])
