"""Accelerated ascent of the smoothed margin, at falling temperature once the data are separated."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from .data import GatedData
from .descent import Rate, assign, dot, log_loss, log_loss_gradient
from .line_search import rounding_of
from .stacked import Runs, along

__all__ = ["Annealed"]

# The step size, in units of one over the temperature's inverse, grows by this factor a step (the
# first before, the second after the data are separated) and is shortened until the loss falls by
# half of what the gradient promises.
LENGTHEN_FREE = 1.02
LENGTHEN = 1.005
SHORTEN = 0.6
ENOUGH = 0.5
SHORTENINGS = 60

# The balance of errors leaves a factor of order 1 open, the distance to go on the sphere. Margin
# ratios after 3000 steps at 1, 1.5 and 2: ten GLN units on digits 0.9964, 0.9976 (1.5 the most
# tried); two units in quadrants, frozen ReLU 0.9923, 0.9948, 0.9961; eleven units there whose
# random gates hardly separate the points, the worst of three starts, 0.978, 0.978, 0.973.
COOLING = 1.5


class Annealed:
    r"""Nesterov's steps for the smoothed margin, of weights of unit length once they separate.

    Let u be weights of norm 1 and :math:`m_n(u)` their margins. The smoothed margin at inverse
    temperature b, :math:`-\log(\mathrm{mean}_n\,\ell(b\,m_n(u))) / b`, is within log(n) / b of
    the smallest margin; it is the network's log(1 / loss) at the scale
    :math:`\theta = b^{1/L} u`, L the degree, divided by b. Its curvature is about
    :math:`b\,M^2`, M the length of a margin's gradient. Were it concave, k accelerated steps of
    size :math:`h / b`, h about :math:`1 / M^2`, would leave an error of the order
    :math:`b M^2 / k^2`. Both errors are equal for :math:`b = k \sqrt{\log n} / M`
    (Nesterov, "Smooth minimization of non-smooth functions"): a step adds
    :math:`1.5 \sqrt{h \log n}` to b, with the h that a line search finds. Momentum is dropped
    when the step and the gradient at its start disagree (O'Donoghue and Candes). Nesterov's proof
    is for linear predictors, a temperature chosen beforehand and steps that do not grow; nothing is
    proved of this method, on the sphere or off it.

    Before the data are separated the sphere misleads. The gradient's radial part is
    :math:`L \sum_n q_n m_n`, q the weights of samples in the loss; where it is negative the
    smoothed margin rises if the function shrinks, and at constant length a network of two layers
    shrinks by growing one layer at the other's expense, until it rests at f = 0. So a run begins at
    the inverse temperature at which its largest margin is 1 and descends there with u free in
    length, until every margin is positive; then u is scaled to norm 1, b so that the network stays
    as it is, and the temperature falls. A run that never separates the data never goes on to that:
    its smallest margin says so.

    The weights that the networks get are :math:`\theta`. Of the weights at the start only the
    direction counts, and of the data not the scale: inputs or initial weights times a factor give
    the same directions at every step. A rounding error may tip a comparison of the line search or
    of momentum the other way, so runs that are equal on paper, such as one trained alone and among
    others, part after some tens of steps, towards the same limit. Powers of two leave the
    directions of a network of degree 1 as they are, to the bit.
    """

    def __init__(self, runs: Runs, kind: str, n_samples: int) -> None:
        self._runs, self._kind = runs, kind
        self._degree: int = runs.networks[0].degree  # type: ignore[assignment]
        self._slope = COOLING * math.sqrt(max(math.log(n_samples), 1.0))
        n_runs = len(runs.weights[0])
        zero = torch.zeros(n_runs, dtype=torch.float64, device=runs.weights[0].device)
        self.state = {
            "inverse_temperature": zero,  # 0 until the first margins are known
            "separated": zero.bool(),
            "size": zero.clone(),
            "momentum_steps": zero.clone(),
        }
        norms = _norms(runs.weights)
        for i, w in enumerate(runs.weights):
            u = w / along(torch.where(norms > 0, norms, 1.0).to(w), w)
            self.state[f"unit.{i}"], self.state[f"unit_before.{i}"] = u, u.clone()

    def step(self, batch: GatedData, rate: Rate) -> None:
        if bool((self.state["inverse_temperature"] == 0).any()):
            self._begin(batch)
        ahead = self._ahead()
        there, gradient = self._at(batch, ahead)
        tangent = self._tangent(ahead, gradient)
        new, margins = self._search(batch, ahead, there, tangent)
        self._move(new, tangent)
        self._cool(dot(tangent, tangent) > 0)
        self._reach_the_sphere(~self.state["separated"] & (margins > 0).all(dim=1))

    def _begin(self, batch: GatedData) -> None:
        """Start at the temperature at which the largest margin is 1."""
        state = self.state
        assign(self._runs.weights, self._saved("unit"))
        scores = self._runs.scores(batch)
        margins = batch.y * scores.detach()
        largest = margins.abs().amax(dim=1).double()
        # Margins that all vanish say nothing of their scale, but their gradients do.
        _, gradient = log_loss_gradient(self._runs, batch, self._kind, scores)
        scale = torch.where(largest > 0, largest, _norms(gradient))
        state["inverse_temperature"] = torch.where(scale > 0, 1 / scale, 1.0)
        state["separated"] = (margins > 0).all(dim=1)

    def _ahead(self) -> list[Tensor]:
        """Where momentum leads."""
        share = self.state["momentum_steps"] / (self.state["momentum_steps"] + 3)
        pairs = zip(self._saved("unit"), self._saved("unit_before"), strict=True)
        return self._placed([u + along(share.to(u), u) * (u - b) for u, b in pairs])

    def _tangent(self, ahead: list[Tensor], gradient: list[Tensor]) -> list[Tensor]:
        """`gradient` without its radial part, in runs on the sphere; and a size to begin with."""
        state = self.state
        radial = torch.where(state["separated"], dot(gradient, ahead), 0.0)
        tangent = [g - along(radial.to(g), g) * u for g, u in zip(gradient, ahead, strict=True)]
        total = dot(tangent, tangent) + radial**2
        first = torch.where(total > 0, state["inverse_temperature"] ** 2 / total, 1.0)
        state["size"] = torch.where(state["size"] == 0, first, state["size"])
        return tangent

    def _search(
        self, batch: GatedData, ahead: list[Tensor], there: Tensor, tangent: list[Tensor]
    ) -> tuple[list[Tensor], Tensor]:
        """Step as far as log(loss) falls by enough; the point and its margins (B, n)."""
        state, runs = self.state, self._runs
        squared = dot(tangent, tangent)
        for _ in range(SHORTENINGS):
            # log(loss) has gradients b times those of the smoothed margin: h / b becomes h / b^2.
            lengths = state["size"] / state["inverse_temperature"] ** 2
            new = self._placed(
                [u - along(lengths.to(g), g) * g for u, g in zip(ahead, tangent, strict=True)]
            )
            assign(runs.weights, self._scaled(new))
            with torch.no_grad():
                margins = batch.y * runs.scores(batch)
            after = log_loss(margins, self._kind)
            good = after <= there - ENOUGH * lengths * squared + rounding_of(there, runs.weights)
            if bool(good.all()):
                break
            state["size"] = torch.where(good, state["size"], SHORTEN * state["size"])
        return new, margins

    def _move(self, new: list[Tensor], tangent: list[Tensor]) -> None:
        """Take the step, and momentum with it if it goes downhill."""
        state, unit = self.state, self._saved("unit")
        agree = dot([n - u for n, u in zip(new, unit, strict=True)], tangent) <= 0
        state["momentum_steps"] = torch.where(agree, state["momentum_steps"] + 1, 0.0)
        for i, (n, u) in enumerate(zip(new, unit, strict=True)):
            state[f"unit_before.{i}"].copy_(torch.where(along(agree, u), u, n))
            state[f"unit.{i}"].copy_(n)

    def _cool(self, moved: Tensor) -> None:
        """Lower the temperature of runs on the sphere, lengthen the steps of those that `moved`."""
        state, separated = self.state, self.state["separated"]
        cooling = torch.where(separated, self._slope * torch.sqrt(state["size"]), 0.0)
        state["inverse_temperature"] = state["inverse_temperature"] + cooling
        size = state["size"]
        longer = torch.where(separated, LENGTHEN * size, LENGTHEN_FREE * size)
        state["size"] = torch.where(moved, longer, size)

    def _reach_the_sphere(self, arrived: Tensor) -> None:
        """Write the weights of runs that have just separated the data as b^(1/L) u, u of norm 1."""
        if not bool(arrived.any()):
            return
        state, unit = self.state, self._saved("unit")
        norms = torch.where(arrived, _norms(unit), 1.0)
        state["separated"] = state["separated"] | arrived
        state["inverse_temperature"] = state["inverse_temperature"] * norms**self._degree
        # The step h / b^2 of u by a gradient: the one is divided by the norm, the other times it.
        state["size"] = state["size"] * norms ** (2 * self._degree - 2)
        state["momentum_steps"] = torch.where(arrived, 0.0, state["momentum_steps"])
        for u, before in zip(unit, self._saved("unit_before"), strict=True):
            u.copy_(u / along(norms.to(u), u))
            before.copy_(torch.where(along(arrived, u), u, before))

    def _placed(self, weights: list[Tensor]) -> list[Tensor]:
        """`weights`, on the sphere in runs that separate the data."""
        norms = _norms(weights)
        norms = torch.where(self.state["separated"] & (norms > 0), norms, 1.0)
        return [w / along(norms.to(w), w) for w in weights]

    def _at(self, batch: GatedData, unit: list[Tensor]) -> tuple[Tensor, list[Tensor]]:
        """log(loss) at scale b of `unit`, and its gradient in `unit`."""
        assign(self._runs.weights, self._scaled(unit))
        value, gradient = log_loss_gradient(self._runs, batch, self._kind)
        return value, self._scaled(gradient)

    def _scaled(self, tensors: list[Tensor]) -> list[Tensor]:
        factor = self.state["inverse_temperature"] ** (1 / self._degree)
        return [along(factor.to(t), t) * t for t in tensors]

    def _saved(self, name: str) -> list[Tensor]:
        return [self.state[f"{name}.{i}"] for i in range(len(self._runs.weights))]


def _norms(tensors: list[Tensor]) -> Tensor:
    """(B,) lengths of all tensors of a run together."""
    return torch.sqrt(dot(tensors, tensors))
