"""Descent of log(loss) in steps as long as the loss allows."""

from __future__ import annotations

import torch
from torch import Tensor

from .data import GatedData
from .descent import Rate, assign, dot, log_loss, log_loss_gradient
from .runs import Runs, along

__all__ = ["SafeDescent", "rounding_of"]

# Without momentum a step must bring this share of the decrease that its gradient promises, with
# it the loss must not rise; otherwise the rate is halved, momentum is dropped, and it starts over.
# The rate grows slowly after every step that went well at once.
ENOUGH = 0.5
SHORTEN = 0.5
LENGTHEN = 1.02
HALVINGS = 60


def rounding_of(log_losses: Tensor, weights: list[Tensor]) -> Tensor:
    """(B,) how well logarithms of losses are known in the arithmetic of the weights."""
    return 8 * torch.finfo(weights[0].dtype).eps * (1 + log_losses.abs())


class SafeDescent:
    """Steps along the gradient of log(loss) whose size adapts to the loss alone.

    If log(loss) were linear, the first step would lower it by 1.
    """

    def __init__(self, runs: Runs, kind: str, momentum: float) -> None:
        self._runs, self._kind, self._momentum = runs, kind, momentum
        self._scores: Tensor | None = None  # at the weights, as the last step left them
        rate = torch.zeros(len(runs.weights[0]), dtype=torch.float64, device=runs.weights[0].device)
        self.state = {"rate": rate}  # 0 until the first gradient is known
        for i, w in enumerate(runs.weights if momentum else []):
            self.state[f"velocity.{i}"] = torch.zeros_like(w)

    def step(self, batch: GatedData, rate: Rate) -> None:
        state, weights = self.state, self._runs.weights
        reached, gradient = log_loss_gradient(self._runs, batch, self._kind, self._scores)
        squared = dot(gradient, gradient)
        state["rate"] = torch.where(
            state["rate"] == 0, 1 / squared.clamp(min=torch.finfo(torch.float64).tiny),
            state["rate"],
        )  # fmt: skip
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
            if bool(good.all()):
                break
            at_once &= good
            state["rate"] = torch.where(good, lengths, SHORTEN * lengths)
            direction = [
                torch.where(along(good, v), v, g) for v, g in zip(direction, gradient, strict=True)
            ]
        state["rate"] = torch.where(at_once, LENGTHEN * state["rate"], state["rate"])
        for i, v in enumerate(direction if self._momentum else []):
            state[f"velocity.{i}"].copy_(v)
