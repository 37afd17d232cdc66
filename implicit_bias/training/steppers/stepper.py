"""Interface of the gradient methods, and the objective that most of them descend."""

from __future__ import annotations

from typing import Protocol

from torch import Tensor

from ...networks.losses.margins import loss_margins
from ...networks.losses.objectives import log_mean_loss, log_mean_loss_gradient
from ...networks.placed_data import GatedData
from ..network_stack import NetworkStack, Rate


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
        """Change the weights by one step; `rate` is a number, one a network (B,), or None.

        Where the weights are on another device it may go ahead on the assumption that the step is
        one of those that need not be changed, and not wait for the answer.
        """

    def settle(self) -> None:
        """Make sure that the weights are those of the steps taken, before anything reads them."""


def log_loss(scores: Tensor, targets: Tensor, kind: str) -> Tensor:
    """Return the logarithms (B,), in float64, of the mean losses of scores (B, n) or (B, n, K)."""
    return log_mean_loss(loss_margins(scores, targets).double(), kind)


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
