"""Descent of log(loss) in steps as long as the loss allows."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from .batched import assign, dot, per_network
from .data import GatedData
from .network_stack import NetworkStack, Rate
from .stepper import log_loss, log_loss_gradient

__all__ = ["LineSearchDescent", "rounding_of"]

# Without momentum a step must bring this share of the decrease that its gradient promises, with
# it the loss must not rise; and the smoothed margin must not fall. Otherwise the rate is halved,
# momentum is dropped, and it starts over. The rate grows slowly after every step that went well
# at once.
ARMIJO = 0.5
SHORTEN = 0.5
LENGTHEN = 1.02
MAX_HALVINGS = 60


def rounding_of(log_losses: Tensor, weights: list[Tensor]) -> Tensor:
    """Return how well logarithms of losses (B,) are known in the arithmetic of the weights."""
    return 8 * torch.finfo(weights[0].dtype).eps * (1 + log_losses.abs())


class LineSearchDescent:
    r"""Steps along the gradient of log(loss) whose size adapts to what they bring.

    If log(loss) were linear, the first step would lower it by 1; that of a network of degree 2 or
    more, which may begin near the saddle at 0, is at most as long as the weights.

    A falling loss alone does not bound the steps of a homogeneous network that separates the
    data: longer weights of whatever direction lower it. Gradient flow also raises the smoothed
    margin :math:`-\log(\sum_n \ell_n) / \|w\|^L`, up to a share :math:`\sum_n \ell_n` for the
    logistic loss (Lyu and Li), so every step must do that too.
    """

    def __init__(self, stack: NetworkStack, kind: str, momentum: float) -> None:
        self._stack, self._kind, self._momentum = stack, kind, momentum
        self._degree: int | None = getattr(stack.networks[0], "degree", None)
        self._scores: Tensor | None = None  # at the weights, as the last step left them
        first = stack.weights[0]
        rate = torch.zeros(len(first), dtype=torch.float64, device=first.device)
        self.state = {"rate": rate}  # 0 until the first gradient is known
        for i, w in enumerate(stack.weights if momentum else []):
            self.state[f"velocity.{i}"] = torch.zeros_like(w)

    def step(self, batch: GatedData, rate: Rate) -> None:
        """Take one step of the longest size that is accepted; `rate` is not used."""
        state, weights = self.state, self._stack.weights
        before_loss, gradient = log_loss_gradient(self._stack, batch, self._kind, self._scores)
        squared = dot(gradient, gradient)
        norms = torch.sqrt(dot(weights, weights))
        state["rate"] = torch.where(
            state["rate"] == 0, self._first_rate(squared, norms), state["rate"]
        )
        direction = gradient
        if self._momentum:
            direction = [
                self._momentum * state[f"velocity.{i}"] + g for i, g in enumerate(gradient)
            ]
        before = [w.clone() for w in weights]
        at_once = torch.ones_like(before_loss, dtype=torch.bool)
        for _ in range(MAX_HALVINGS):
            size = state["rate"]
            moved = [w - v * per_network(size, v) for w, v in zip(before, direction, strict=True)]
            assign(weights, moved)
            self._scores = self._stack.scores(batch)
            after = log_loss(batch.y * self._scores.detach(), self._kind)
            promised = 0.0 if self._momentum else ARMIJO * size * squared
            # A comparison with NaN is false: steps out of the representable are too long as well.
            good = after <= before_loss - promised + rounding_of(before_loss, weights)
            good &= self._keeps_margin(before_loss, norms, after, len(batch.y))
            if bool(good.all()):
                break
            at_once &= good
            state["rate"] = torch.where(good, size, SHORTEN * size)
            direction = _where(good, direction, gradient)
        else:  # far too long: stay, and go on from the rate that this has led to
            assign(weights, _where(good, weights, before))
            self._scores = None
        state["rate"] = torch.where(at_once, LENGTHEN * state["rate"], state["rate"])
        for i, v in enumerate(direction if self._momentum else []):
            state[f"velocity.{i}"].copy_(v)

    def _first_rate(self, squared: Tensor, norms: Tensor) -> Tensor:
        """A decrease by 1, within the length of the weights; from the (B,) gradients' squares."""
        rate = 1 / squared.clamp(min=torch.finfo(torch.float64).tiny)
        if self._degree is None or self._degree < 2:
            return rate
        return torch.where(norms > 0, torch.minimum(rate, norms * torch.sqrt(rate)), rate)

    def _keeps_margin(
        self, before_loss: Tensor, norms: Tensor, after: Tensor, n_samples: int
    ) -> Tensor | bool:
        """True where the smoothed margin has not fallen, or the data were not separated before."""
        if self._degree is None:
            return True
        weights = self._stack.weights
        now = torch.sqrt(dot(weights, weights))
        size = math.log(n_samples)
        growth = (now / norms) ** self._degree
        least = growth * (-(before_loss + size) * (1 - torch.exp(before_loss + size)))
        enough = -(after + size) >= least - growth * rounding_of(before_loss, weights)
        return enough | (before_loss + size >= 0)


def _where(networks: Tensor, chosen: list[Tensor], others: list[Tensor]) -> list[Tensor]:
    """Weights (B, ...) of the first list in the networks marked (B,), of the second elsewhere."""
    pairs = zip(chosen, others, strict=True)
    return [torch.where(per_network(networks, a), a, b) for a, b in pairs]
