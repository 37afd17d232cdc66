"""Accelerated ascent of the smoothed margin on the sphere of weights, at falling temperature."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from .data import GatedData
from .descent import Rate, assign, dot, log_loss, log_loss_gradient
from .line_search import rounding_of
from .stacked import Runs, along

__all__ = ["Annealed"]

# The step size, in units of one over the temperature's inverse, grows by this factor a step and
# is shortened until the loss falls by half of what the gradient promises.
LENGTHEN = 1.005
SHORTEN = 0.6
ENOUGH = 0.5
SHORTENINGS = 60


class Annealed:
    r"""Nesterov's method for the smoothed margin of weights of unit length.

    Let u be weights of norm 1 and :math:`m_n(u)` their margins. The smoothed margin at inverse
    temperature b, :math:`-\log(\mathrm{mean}_n\,\ell(b\,m_n(u))) / b`, is within log(n) / b of
    the smallest margin; it is the network's log(1 / loss) at the scale
    :math:`\theta = b^{1/L} u`, L the degree, divided by b. Its curvature is about
    :math:`b\,M^2`, M the length of a margin's gradient, so that k accelerated steps of size
    :math:`h / b`, h about :math:`1 / M^2`, leave an error of the order :math:`b M^2 / k^2`. Both
    errors are equal, and their sum least, for :math:`b = k \sqrt{\log n} / M`
    (Nesterov, "Smooth minimization of non-smooth functions"): a step adds
    :math:`\sqrt{h \log n}` to b, with the h that a line search finds. Momentum is dropped when
    the step and the gradient at its start disagree (O'Donoghue and Candes).

    The weights that the networks get are :math:`\theta`: their loss falls to 0. Of the weights at
    the start only the direction counts, and of the data not the scale: inputs or initial weights
    times a factor give the same directions at every step. A rounding error may tip the line
    search the other way, so runs that are equal on paper part after some tens of steps, towards
    the same limit; powers of two leave the directions of a network of degree 1 as they are, to
    the bit.
    """

    def __init__(self, runs: Runs, kind: str, n_samples: int) -> None:
        self._runs, self._kind = runs, kind
        self._degree: int = runs.networks[0].degree  # type: ignore[assignment]
        self._slope = math.sqrt(max(math.log(n_samples), 1.0))
        n_runs = len(runs.weights[0])
        zero = torch.zeros(n_runs, dtype=torch.float64, device=runs.weights[0].device)
        self.state = {
            "inverse_temperature": zero,  # 0 until the first margins are known
            "size": zero.clone(),
            "momentum_steps": zero.clone(),
        }
        unit = _unit(runs.weights)
        for i, u in enumerate(unit):
            self.state[f"unit.{i}"], self.state[f"unit_before.{i}"] = u, u.clone()

    def step(self, batch: GatedData, rate: Rate) -> None:
        state, runs = self.state, self._runs
        unit, before = self._saved("unit"), self._saved("unit_before")
        k = state["momentum_steps"]
        share = k / (k + 3)
        ahead = _unit(
            [u + along(share.to(u), u) * (u - b) for u, b in zip(unit, before, strict=True)]
        )
        if bool((state["inverse_temperature"] == 0).any()):
            self._begin(batch, ahead)
        b = state["inverse_temperature"]
        there, gradient = self._at(batch, ahead, b)
        radial = dot(gradient, ahead)
        tangent = [g - along(radial.to(g), g) * u for g, u in zip(gradient, ahead, strict=True)]
        squared = dot(tangent, tangent)
        if bool((state["size"] == 0).any()):
            total = squared + radial**2
            first = torch.where(total > 0, b * b / total, 1.0)
            state["size"] = torch.where(state["size"] == 0, first, state["size"])
        for _ in range(SHORTENINGS):
            # log(loss) has gradients b times those of the smoothed margin: h / b becomes h / b^2.
            lengths = state["size"] / (b * b)
            new = _unit(
                [u - along(lengths.to(g), g) * g for u, g in zip(ahead, tangent, strict=True)]
            )
            assign(runs.weights, self._scaled(new, b))
            with torch.no_grad():
                after = log_loss(batch.y * runs.scores(batch), self._kind)
            good = after <= there - ENOUGH * lengths * squared + rounding_of(there, runs.weights)
            if bool(good.all()):
                break
            state["size"] = torch.where(good, state["size"], SHORTEN * state["size"])
        along_step = [n - u for n, u in zip(new, unit, strict=True)]
        agree = dot(along_step, tangent) <= 0
        state["momentum_steps"] = torch.where(agree, k + 1, 0.0)
        for i, (n, u) in enumerate(zip(new, unit, strict=True)):
            state[f"unit_before.{i}"].copy_(torch.where(along(agree, u), u, n))
            state[f"unit.{i}"].copy_(n)
        state["inverse_temperature"] = b + self._slope * torch.sqrt(state["size"])
        state["size"] = LENGTHEN * state["size"]

    def _begin(self, batch: GatedData, unit: list[Tensor]) -> None:
        """Start at the temperature at which the largest margin is 1."""
        assign(self._runs.weights, unit)
        scores = self._runs.scores(batch)
        largest = scores.detach().abs().amax(dim=1).double()
        # Margins that all vanish say nothing of their scale, but their gradients do.
        _, gradient = log_loss_gradient(self._runs, batch, self._kind, scores)
        scale = torch.where(largest > 0, largest, torch.sqrt(dot(gradient, gradient)))
        self.state["inverse_temperature"] = torch.where(scale > 0, 1 / scale, 1.0)

    def _at(self, batch: GatedData, unit: list[Tensor], b: Tensor) -> tuple[Tensor, list[Tensor]]:
        """log(loss) at scale b of `unit`, and its gradient in `unit`."""
        assign(self._runs.weights, self._scaled(unit, b))
        value, gradient = log_loss_gradient(self._runs, batch, self._kind)
        return value, self._scaled(gradient, b)

    def _scaled(self, tensors: list[Tensor], b: Tensor) -> list[Tensor]:
        factor = b ** (1 / self._degree)
        return [along(factor.to(t), t) * t for t in tensors]

    def _saved(self, name: str) -> list[Tensor]:
        return [self.state[f"{name}.{i}"] for i in range(len(self._runs.weights))]


def _unit(weights: list[Tensor]) -> list[Tensor]:
    """`weights` of every run divided by their norm."""
    norms = torch.sqrt(dot(weights, weights))
    norms = torch.where(norms > 0, norms, 1.0)
    return [w / along(norms.to(w), w) for w in weights]
