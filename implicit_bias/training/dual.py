"""Margin maximisation by Nesterov's method on the dual."""

from __future__ import annotations

import torch
from torch import Tensor

from .data import GatedData
from .descent import Rate, dot, log_loss_gradient
from .stacked import Runs, along

__all__ = ["DualAcceleration"]

# Entries of per-sample gradients held at once.
_MAX_ENTRIES = 2**24


class DualAcceleration:
    r"""Momentum on gradients of log(loss) that is Nesterov's method on the dual.

    .. math::
        g_t = \frac{t}{t + 1} (g_{t-1} + \nabla_t), \qquad
        w_{t+1} = w_t - \frac{1}{R^2} (g_t + \nabla_t), \qquad R = \max_n \|x_n\|,

    with the gradient of log(loss) for :math:`\nabla_t`, a mixture of the samples. For the
    exponential loss the weights of that mixture are the iterates of an accelerated method for
    the dual problem, and margins per unit of norm err by O(log n / t^2) up to a factor log t.
    That is proved for a start at 0. Weights above the length 1 / R are shortened to it first, for
    margins of at most 1; otherwise it would take until w outgrows them.

    References
    ----------
    Z. Ji, N. Srebro, M. Telgarsky, "Fast margin maximization via dual acceleration" (2021).
    """

    def __init__(self, runs: Runs, kind: str) -> None:
        self._runs, self._kind = runs, kind
        device = runs.weights[0].device
        self.state = {
            "step": torch.zeros((), dtype=torch.float64, device=device),
            # 0 until the samples are known
            "size": torch.zeros((), dtype=torch.float64, device=device),
        }
        for i, w in enumerate(runs.weights):
            self.state[f"momentum.{i}"] = torch.zeros_like(w)

    def step(self, batch: GatedData, rate: Rate) -> None:
        state, weights = self.state, self._runs.weights
        if float(state["size"]) == 0:
            largest = _largest_gradient(self._runs, batch)
            state["size"] = torch.where(largest > 0, 1 / largest, 1.0)
            self._shorten()
        t, size = float(state["step"]), float(state["size"])
        _, gradient = log_loss_gradient(self._runs, batch, self._kind)
        for i, (w, g) in enumerate(zip(weights, gradient, strict=True)):
            momentum = state[f"momentum.{i}"].add_(g).mul_(t / (t + 1))
            w.sub_(momentum + g, alpha=size)
        state["step"] = state["step"] + 1

    def _shorten(self) -> None:
        weights = self._runs.weights
        excess = torch.sqrt(dot(weights, weights) / self.state["size"]).clamp(min=1)
        for w in weights:
            w.div_(along(excess.to(w), w))


def _largest_gradient(runs: Runs, batch: GatedData) -> Tensor:
    """Largest squared length of a sample's gradient: the same for every run, at any weights."""
    scores = runs.scores(batch)
    n_weights = sum(w.numel() for w in runs.weights)  # of all runs, which are pulled together
    samples = torch.arange(len(batch.y), device=batch.y.device)
    largest = torch.zeros((), dtype=torch.float64, device=batch.y.device)
    for some in torch.split(samples, max(_MAX_ENTRIES // n_weights, 1)):
        squares = [g.flatten(1).double().square().sum(1) for g in runs.pull_each(scores, some)]
        largest = torch.maximum(largest, torch.stack(squares).sum(0).max())
    return largest
