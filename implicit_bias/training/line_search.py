"""Descent of log(loss) in steps as long as the loss allows."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from .data import GatedData
from .descent import Rate, assign, dot, log_loss, log_loss_gradient
from .stacked import Runs, along

__all__ = ["SafeDescent", "rounding_of"]

# Without momentum a step must bring this share of the decrease that its gradient promises, with
# it the loss must not rise; and the smoothed margin must not fall. Otherwise the rate is halved,
# momentum is dropped, and it starts over. The rate grows slowly after every step that went well
# at once.
ENOUGH = 0.5
SHORTEN = 0.5
LENGTHEN = 1.02
HALVINGS = 60


def rounding_of(log_losses: Tensor, weights: list[Tensor]) -> Tensor:
    """(B,) how well logarithms of losses are known in the arithmetic of the weights."""
    return 8 * torch.finfo(weights[0].dtype).eps * (1 + log_losses.abs())


class SafeDescent:
    r"""Steps along the gradient of log(loss) whose size adapts to what they bring.

    If log(loss) were linear, the first step would lower it by 1; that of a network of degree 2 or
    more, which may begin near the saddle at 0, is at most as long as the weights.

    A falling loss alone does not bound the steps of a homogeneous network that separates the
    data: longer weights of whatever direction lower it. Gradient flow also raises the smoothed
    margin :math:`-\log(\sum_n \ell_n) / \|w\|^L`, up to a share :math:`\sum_n \ell_n` for the
    logistic loss (Lyu and Li), so every step must do that too.
    """

    def __init__(self, runs: Runs, kind: str, momentum: float) -> None:
        self._runs, self._kind, self._momentum = runs, kind, momentum
        self._degree: int | None = getattr(runs.networks[0], "degree", None)
        self._scores: Tensor | None = None  # at the weights, as the last step left them
        rate = torch.zeros(len(runs.weights[0]), dtype=torch.float64, device=runs.weights[0].device)
        self.state = {"rate": rate}  # 0 until the first gradient is known
        for i, w in enumerate(runs.weights if momentum else []):
            self.state[f"velocity.{i}"] = torch.zeros_like(w)

    def step(self, batch: GatedData, rate: Rate) -> None:
        state, weights = self.state, self._runs.weights
        reached, gradient = log_loss_gradient(self._runs, batch, self._kind, self._scores)
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
        at_once = torch.ones_like(reached, dtype=torch.bool)
        for _ in range(HALVINGS):
            lengths = state["rate"]
            assign(
                weights,
                [w - v * along(lengths.to(v), v) for w, v in zip(before, direction, strict=True)],
            )
            self._scores = self._runs.scores(batch)
            after = log_loss(batch.y * self._scores.detach(), self._kind)
            promised = 0.0 if self._momentum else ENOUGH * lengths * squared
            # A comparison with NaN is false: steps out of the representable are too long as well.
            good = after <= reached - promised + rounding_of(reached, weights)
            good &= self._keeps_margin(reached, norms, after, len(batch.y))
            if bool(good.all()):
                break
            at_once &= good
            state["rate"] = torch.where(good, lengths, SHORTEN * lengths)
            direction = [
                torch.where(along(good, v), v, g) for v, g in zip(direction, gradient, strict=True)
            ]
        else:  # far too long: stay, and go on from the rate that this has led to
            assign(
                weights,
                [torch.where(along(good, w), w, b) for w, b in zip(weights, before, strict=True)],
            )
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
        self, reached: Tensor, norms: Tensor, after: Tensor, n_samples: int
    ) -> Tensor | bool:
        """Whether the smoothed margin has not fallen, in runs that separated the data before."""
        if self._degree is None:
            return True
        weights = self._runs.weights
        now = torch.sqrt(dot(weights, weights))
        size = math.log(n_samples)
        growth = (now / norms) ** self._degree
        least = growth * (-(reached + size) * (1 - torch.exp(reached + size)))
        enough = -(after + size) >= least - growth * rounding_of(reached, weights)
        return enough | (reached + size >= 0)
