"""Gradient descent at given rates, and what every method has in common."""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor

from .data import GatedData
from .objectives import log_mean_loss, log_mean_loss_gradient, mean_loss_gradient
from .stacked import Rate, Runs

__all__ = ["Descent", "Rate", "Stepper", "assign", "dot", "log_loss", "log_loss_gradient"]


class Stepper(Protocol):
    """A gradient method in the course of training.

    Attributes
    ----------
    state : dict of tensors
        Everything besides the weights that the next step depends on; replacing its entries by
        saved ones, and the weights, resumes a run exactly.
    """

    state: dict[str, Tensor]

    def step(self, batch: GatedData, rate: Rate) -> None:
        """Change the weights by one step; `rate` is a number, one a run (B,), or None."""


def dot(a: list[Tensor], b: list[Tensor]) -> Tensor:
    """(B,) inner products, in float64, of two lists of tensors (B, ...)."""
    # Squares of what float32 holds may lie beyond it.
    parts = [(x.double() * y.double()).flatten(1).sum(1) for x, y in zip(a, b, strict=True)]
    return torch.stack(parts).sum(0)


def assign(targets: list[Tensor], sources: list[Tensor]) -> None:
    """Copy `sources` into `targets`, in place."""
    for target, source in zip(targets, sources, strict=True):
        target.copy_(source)


def log_loss(margins: Tensor, kind: str) -> Tensor:
    """(B,) logarithms, in float64, of the mean losses of margins (B, n)."""
    return log_mean_loss(margins.double(), kind)


def log_loss_gradient(
    runs: Runs, batch: GatedData, kind: str, scores: Tensor | None = None
) -> tuple[Tensor, list[Tensor]]:
    """`log_loss` at the weights of `runs`, and its gradient in them.

    `scores` are those at these weights, with their graph, if they are at hand.
    """
    if scores is None:
        scores = runs.scores(batch)
    known = scores.detach()
    coefficients = log_mean_loss_gradient(known, batch.y, kind)
    return log_loss(batch.y * known, kind), runs.pull(scores, coefficients)


class Descent:
    """Heavy-ball gradient descent on the mean loss or on its logarithm, at given rates."""

    def __init__(self, runs: Runs, kind: str, momentum: float, *, logarithmic: bool) -> None:
        self._runs, self._kind, self._momentum = runs, kind, momentum
        velocity = [torch.zeros_like(w) for w in runs.weights] if momentum else []
        self.state = {f"velocity.{i}": v for i, v in enumerate(velocity)}
        self._gradient = log_mean_loss_gradient if logarithmic else mean_loss_gradient

    def step(self, batch: GatedData, rate: Rate) -> None:
        scores = self._runs.scores(batch)
        coefficients = self._gradient(scores.detach(), batch.y, self._kind)
        directions = self._runs.pull(scores, coefficients)
        for i, (w, g) in enumerate(zip(self._runs.weights, directions, strict=True)):
            if self._momentum:
                g = self.state[f"velocity.{i}"].mul_(self._momentum).add_(g)
            if isinstance(rate, Tensor):
                w.sub_(g * rate.to(w).view(-1, *[1] * (w.ndim - 1)))
            else:
                w.sub_(g, alpha=rate)
