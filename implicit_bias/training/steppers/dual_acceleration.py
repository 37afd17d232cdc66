"""Margin maximisation by Nesterov's method on the dual."""

from __future__ import annotations

import torch
from torch import Tensor

from ...networks.losses.margins import n_margins, score_gradient
from ...networks.placed_data import GatedData
from ..network_stack import NetworkStack, Rate
from ..settings import TrainingSettings
from .batched import dot, per_network
from .stepper import Stepper, log_loss_gradient


class DualAcceleration(Stepper):
    r"""Momentum on gradients of log(loss) that is Nesterov's method on the dual.

    .. math::
        g_t = \frac{t}{t + 1} (g_{t-1} + \nabla_t), \qquad
        w_{t+1} = w_t - \frac{1}{R^2} (g_t + \nabla_t), \qquad R = \max_n \|x_n\|,

    with the gradient of log(loss) for :math:`\nabla_t`, a mixture of the samples; of
    K classes one of the relative margins, whose gradients stand for the x_n. For the exponential
    loss the weights of that mixture are the iterates of an accelerated method for the dual
    problem, and margins per unit of norm err by O(log n / t^2) up to a factor log t.
    That is proved for a start at 0. Weights above the length 1 / R are shortened to it first, for
    margins of at most 1; otherwise it would take until w outgrows them.

    Parameters
    ----------
    stack, settings, n_samples
        As of `Stepper`.
    max_entries : int
        Entries of gradients of single samples that are held at once.

    References
    ----------
    Z. Ji, N. Srebro, M. Telgarsky, "Fast margin maximization via dual acceleration" (2021).
    """

    def __init__(
        self,
        stack: NetworkStack,
        settings: TrainingSettings,
        n_samples: int,
        *,
        max_entries: int = 2**24,
    ) -> None:
        super().__init__(stack, settings, n_samples)
        self._max_entries = max_entries
        zero = torch.zeros((), dtype=torch.float64)
        # Numbers are on the CPU wherever the weights are, so that no step has to wait for them;
        # the size is 0 until the samples are known.
        self.state = {"step": zero, "size": zero.clone()}
        for i, w in enumerate(stack.weights):
            self.state[f"momentum.{i}"] = torch.zeros_like(w)

    def step(self, batch: GatedData, rate: Rate) -> None:
        """Take one step of the recursion, of size 1 / R^2; `rate` is not used."""
        state, weights = self.state, self._stack.weights
        if float(state["size"]) == 0:
            largest = _largest_gradient(self._stack, batch, self._max_entries)
            state["size"] = torch.where(largest > 0, 1 / largest, 1.0).cpu()
            self._shorten()
        t, size = float(state["step"]), float(state["size"])
        _, gradient = log_loss_gradient(self._stack, batch, self._kind)
        for i, (w, g) in enumerate(zip(weights, gradient, strict=True)):
            momentum = state[f"momentum.{i}"].add_(g).mul_(t / (t + 1))
            w.sub_(momentum + g, alpha=size)
        state["step"] = state["step"] + 1

    def _shorten(self) -> None:
        weights = self._stack.weights
        excess = torch.sqrt(dot(weights, weights) / self.state["size"]).clamp(min=1)
        for w in weights:
            w.div_(per_network(excess, w))


def _largest_gradient(stack: NetworkStack, batch: GatedData, max_entries: int) -> Tensor:
    """Largest squared length of a margin's gradient: the same for all networks, at any weights."""
    scores = stack.uncompiled_scores(batch)
    n_weights = sum(w.numel() for w in stack.weights)  # differentiated together
    margins = torch.arange(n_margins(batch.y), device=batch.y.device)
    largest = torch.zeros((), dtype=torch.float64, device=batch.y.device)
    for some in torch.split(margins, max(max_entries // n_weights, 1)):
        chosen = score_gradient(scores.detach()[0], batch.y, some)
        squares = [
            g.flatten(1).double().square().sum(1) for g in stack.sample_gradients(scores, chosen)
        ]
        largest = torch.maximum(largest, torch.stack(squares).sum(0).max())
    return largest
