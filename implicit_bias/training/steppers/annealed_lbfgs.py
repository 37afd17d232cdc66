"""Quasi-Newton steps for the smoothed margin, at a temperature that falls as they converge."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ...networks.losses.margins import least_margins
from ...networks.losses.objectives import smoothed_loss
from ...networks.placed_data import GatedData
from ..network_stack import NetworkStack, Rate
from ..settings import TrainingSettings
from .batched import inner, lengths, numbers, per_network, to_numpy
from .cooling_schedule import CHECK_EVERY, CONVERGED, RESET_BELOW, Convergence, growth_factors
from .lbfgs import empty_lbfgs_memory, lbfgs_direction, reset_lbfgs, update_lbfgs
from .line_search import rounding_of
from .restarts import (
    MAX_RESTARTS,
    above_best,
    perturbed_best,
    record_best,
    reset_patience,
    restart_state,
    stalled,
)
from .smoothed_margin import Evaluation, SmoothedMargin

# A step must bring this share of the fall that the gradient promises (Armijo); one that does not
# is shortened to the minimum of the parabola through what is known, within these bounds (Nocedal
# and Wright, "Numerical optimization", section 3.5).
ARMIJO = 1e-4
SHORTEST, LONGEST = 0.1, 0.5
MAX_SHORTENINGS = 20
# Longest step, in lengths of the weights: the curvature that is known is that nearby.
MAX_STEP = 0.3

# Where a network has converged and does not separate the data it takes gradient steps with
# momentum, which grow by this factor: quasi-Newton steps go to saddles as to minima, and one start
# of five stayed there.
LENGTHEN = 1.05

TINY = float(np.finfo(float).tiny)

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Proposal:
    """A step (B, P), the slope (B,) of log(loss) along it, and which networks use momentum."""

    step: Tensor
    slope: Array
    momentum: Mask


class AnnealedLBFGS(SmoothedMargin):
    r"""Limited-memory BFGS on the smoothed margin, of the direction of the weights alone.

    Let u be a direction of the weights and :math:`m_n(u)` its margins at length 1. The smoothed
    margin at inverse temperature b, :math:`-\log(\mathrm{mean}_n\,\ell(b\,m_n(u))) / b`, is
    within log(n) / b of the smallest margin; it is log(1 / loss) of the network with weights
    :math:`\theta = b^{1/L} u`, L the degree, divided by b. A quasi-Newton step lowers log(loss) at
    this b as a function of the direction. What it promises, half of :math:`g^T H g`, is what
    log(loss) is still above its least value there, as far as the model H knows; divided by b it is
    an error of the margin, as log(n) / b is. So b grows once the first is small beside the second,
    and the weights are nearly stationary: by as much as the gradient's part along the sphere, 0 at
    a KKT point of the smoothed problem, is smaller than the radial one.

    Nothing is proved of this method. Limited-memory BFGS with a Wolfe line search converges
    linearly where the function is uniformly convex (Liu and Nocedal, theorem 7.1); log(loss) of a
    network of two layers is not convex, the search here is Armijo's alone, and the temperature
    changes meanwhile.

    Before the data are separated the sphere misleads. The gradient's radial part is
    :math:`L \sum_n q_n m_n`, q the weights of samples in the loss; where it is negative the
    smoothed margin rises if the function shrinks, and at constant length a network of two layers
    shrinks by growing one layer at the other's expense, until it rests at f = 0. So training begins
    at the inverse temperature at which the largest margin is 1 and descends there with u free in
    length, until every margin is positive. If it converges before, that is a saddle, or nothing
    separates the data: it goes on along the gradient with momentum. Where it stalls it restarts
    from a perturbed copy of the best point that it stalled at, at the scale of the start, three
    times at most (`training.restarts`); the network keeps the best weights until it has better
    ones. A network that never separates the data never moves to the sphere: its smallest margin
    says so.

    The weights that the networks get are :math:`\theta`. Of the weights at the start only the
    direction counts, and of the data not the scale. A rounding error may tip a comparison of the
    line search, and is then amplified, so runs that are equal on paper, such as those of a network
    trained alone and among others, part after some tens of steps, towards the same limit.

    References
    ----------
    D. Liu, J. Nocedal, "On the limited memory BFGS method for large scale optimization".
    """

    def __init__(self, stack: NetworkStack, settings: TrainingSettings, n_samples: int) -> None:
        super().__init__(stack, settings, n_samples)
        self._converged = CONVERGED * max(math.log(n_samples), 1.0)
        start = self._flat()
        norms = start.norm(dim=1, keepdim=True)
        # Numbers, one a network, are on the CPU wherever the weights are.
        zero = torch.zeros(len(start), dtype=torch.float64)
        self.state = {
            "inverse_temperature": zero,  # 0 until the first margins are known
            "separated": zero.bool(),
            "converged_level": torch.full_like(zero, max(math.log(n_samples), 1.0)),
            "point": start / torch.where(norms > 0, norms, 1.0),
            "log_loss": zero.clone(),  # at the point and temperature
            "gradient": torch.zeros_like(start),  # of log(loss) there, in the point
            "step_size": zero.clone(),  # of momentum steps, 0 until the first gradient is known
            "momentum_steps": zero.clone(),  # since momentum was dropped
            "last_step": torch.zeros_like(start),
            **restart_state(start),
            **empty_lbfgs_memory(start),
        }

    def step(self, batch: GatedData, rate: Rate) -> None:
        """Take one step, and lower the temperature where it has converged; `rate` is not used."""
        state = self.state
        if not self._get("inverse_temperature").all():
            self._initialise(batch)
        proposal = self._propose()
        now = self._line_search(batch, proposal)
        cooling = (int(state["n_pairs"]) + 1) % CHECK_EVERY == 0
        pulled = self._weight_gradient(now, now.loss.score_gradient, keep=cooling)
        gradient = self._point_gradient(now, pulled)
        moved = now.point - state["point"]
        update_lbfgs(state, moved, gradient - state["gradient"])
        state |= {"point": now.point, "last_step": moved, "gradient": gradient}
        self._set(log_loss=now.log_loss)
        self._adapt_step_sizes(proposal, now)
        separated = ~self._get("separated") & (now.smallest_margin > 0)
        if separated.any():
            now = self._move_to_sphere(now, separated)
        if cooling:
            self._cool(batch, now, -proposal.slope / 2)
        searching = ~self._get("separated")
        if searching.any():
            self._restart_stalled(batch, stalled(state, searching, self._converged))
            self._show_best(batch, searching & above_best(state))

    def _initialise(self, batch: GatedData) -> None:
        """Start at the temperature at which the largest margin is 1."""
        n_networks = len(self.state["point"])
        self._set(inverse_temperature=np.ones(n_networks))
        now = self._evaluate(batch, self.state["point"])
        largest = _largest_margin(now, batch)
        # Margins that all vanish say nothing of their scale, but their gradients do.
        gradient = self._weight_gradient(now, now.loss.score_gradient)
        (squared,) = numbers(inner(gradient, gradient))
        scale = np.where(largest > 0, largest, np.sqrt(squared))
        scale = np.where(scale > 0, scale, 1.0)
        separated = now.smallest_margin > 0
        self._set(inverse_temperature=1 / scale, separated=separated)
        now = self._evaluate(batch, self.state["point"])
        self._set(log_loss=now.log_loss)
        gradient = self._weight_gradient(now, now.loss.score_gradient)
        self.state["gradient"] = self._point_gradient(now, gradient)

    def _propose(self) -> Proposal:
        """The quasi-Newton step, or one with momentum where it would lead to a saddle."""
        state = self.state
        gradient = state["gradient"]
        step = lbfgs_direction(state, gradient)
        slope, length, norm = numbers(inner(gradient, step), lengths(step), lengths(state["point"]))
        saddle = ~self._get("separated") & (-slope / 2 <= self._converged)
        if saddle.any():
            step = torch.where(
                per_network(saddle, step), self._momentum_step(gradient, saddle), step
            )
            slope, length = numbers(inner(gradient, step), lengths(step))
        longest = np.where(norm > 0, MAX_STEP * norm, math.inf)
        if (length > longest).any():
            share = np.minimum(1.0, longest / np.maximum(length, TINY))
            step, slope = step * per_network(share, step), share * slope
        return Proposal(step, slope, saddle)

    def _momentum_step(self, gradient: Tensor, saddle: Mask) -> Tensor:
        """A gradient step with momentum, which is dropped where it leads uphill."""
        last, count = self.state["last_step"], self._get("momentum_steps")
        squared, along = numbers(inner(gradient, gradient), inner(last, gradient))
        first = np.divide(1.0, squared, out=np.ones_like(squared), where=squared > 0)
        # Only in networks at a saddle: others are to go on as they would by themselves.
        size = self._get("step_size")
        size = np.where(saddle & (size == 0), first, size)
        downhill = along <= 0
        self._set(step_size=size, momentum_steps=np.where(saddle, downhill * (count + 1), count))
        share = np.where(downhill, count / (count + 3), 0.0)
        return per_network(share, gradient) * last - per_network(size, gradient) * gradient

    def _line_search(self, batch: GatedData, proposal: Proposal) -> Evaluation:
        """Take as much of the step as lowers log(loss) by enough, or nothing of it."""
        start, step, slope = self.state["point"], proposal.step, proposal.slope
        before = self._get("log_loss")
        share = np.ones_like(slope)
        allowed = before + to_numpy(rounding_of(self.state["log_loss"], self._stack.weights))
        for _ in range(MAX_SHORTENINGS):
            now = self._evaluate(batch, start + per_network(share, step) * step)
            good = now.log_loss <= allowed + ARMIJO * share * slope
            if good.all():
                return replace(now, share=share)
            share = np.where(good, share, shortened(share, slope, now.log_loss - before))
        share = np.where(good, share, 0.0)
        now = self._evaluate(batch, start + per_network(share, step) * step)
        return replace(now, share=share)

    def _adapt_step_sizes(self, proposal: Proposal, now: Evaluation) -> None:
        """Let momentum steps grow that were taken whole; networks that stayed drop their pairs."""
        stayed = now.share == 0
        factor = np.where(now.share < 1, now.share, LENGTHEN)
        size = self._get("step_size") * np.where(proposal.momentum | stayed, factor, 1.0)
        self._set(step_size=size)
        reset_lbfgs(self.state, stayed)

    def _move_to_sphere(self, now: Evaluation, networks: Mask) -> Evaluation:
        """Let the direction alone count in networks that have just separated the data."""
        state = self.state
        norms = np.where(networks, now.length, 1.0)
        self._set(
            separated=self._get("separated") | networks,
            inverse_temperature=self._get("inverse_temperature") * norms**self._degree,
        )
        state["point"] = state["point"] / per_network(norms, state["point"])
        moved = replace(
            now, point=state["point"], length=now.length / norms, scale=now.scale * norms
        )
        # The gradient in a point of length 1 is so many times that in the free one.
        free = state["gradient"]
        state["gradient"] = self._tangent(free * per_network(norms, free), moved)
        reset_lbfgs(state, networks)
        return moved

    def _restart_stalled(self, batch: GatedData, networks: Mask) -> None:
        """Restart beside the best point, or go back to it where no restart is left."""
        worse = record_best(self.state, networks)
        restarted = networks & (self._get("n_restarts") < MAX_RESTARTS)
        returning = restarted | worse
        if not returning.any():
            return
        before = [w.clone() for w in self._stack.weights]
        now = self._evaluate(batch, perturbed_best(self.state, returning, restarted))
        largest = _largest_margin(now, batch)
        # At the largest margin of the start, 1.
        scale = np.where(restarted & (largest > 0), largest, 1.0) ** (-1 / self._degree)
        now = self._evaluate(batch, now.point * per_network(scale, now.point))
        self._continue_from(now, returning)
        self._assign_some(before, ~returning)

    def _continue_from(self, now: Evaluation, networks: Mask) -> None:
        """Move the networks marked (B,) to these points, without a memory of earlier steps."""
        state = self.state
        gradient = self._weight_gradient(now, now.loss.score_gradient)
        gradient = self._point_gradient(now, gradient)
        new = {"point": now.point, "gradient": gradient, "last_step": torch.zeros_like(gradient)}
        chosen = per_network(networks, gradient)
        state |= {name: torch.where(chosen, value, state[name]) for name, value in new.items()}
        self._set(
            log_loss=np.where(networks, now.log_loss, self._get("log_loss")),
            step_size=np.where(networks, 0.0, self._get("step_size")),
            momentum_steps=np.where(networks, 0.0, self._get("momentum_steps")),
        )
        reset_lbfgs(state, networks)
        reset_patience(state, networks)

    def _show_best(self, batch: GatedData, networks: Mask) -> None:
        """Give the networks marked (B,) the best weights that they have stalled at."""
        if not networks.any():
            return
        best = self.state["best"]
        scale = self._get("inverse_temperature") ** (1 / self._degree)
        self._assign_some(self._unflatten(best * per_network(scale, best)), networks)
        self._stack.scores(batch)  # the last that are asked for are those of the weights left

    def _cool(self, batch: GatedData, now: Evaluation, promised: Array) -> None:
        """Move the temperatures of networks on the sphere as their convergence allows."""
        gradient, level = self.state["gradient"], -self._get("log_loss")
        converged_level = self._get("converged_level")
        (tangent,) = numbers(lengths(gradient))
        progress = Convergence(
            level=level,
            converged_level=converged_level,
            # At weights of length 1, where the radial part is the degree times log(loss).
            radial=self._degree * level,
            tangent=tangent * now.length,
            separated=self._get("separated"),
            converged=promised <= self._converged,
        )
        factor, ready = growth_factors(progress, torch.finfo(gradient.dtype).eps)
        if (factor == 1).all():
            return
        scores = now.scores.detach() * per_network(factor, gradient)
        loss = smoothed_loss(scores, batch.y, self._kind)
        now = replace(now, scores=self._stack.rescored(now.scores, batch))
        pulled = self._weight_gradient(now, loss.score_gradient * per_network(factor, gradient))
        log_loss = to_numpy(loss.log_loss)
        self.state["gradient"] = self._point_gradient(now, pulled)
        self._set(
            log_loss=log_loss,
            inverse_temperature=self._get("inverse_temperature") * factor,
            converged_level=np.where(
                ready, np.maximum(converged_level, -log_loss), converged_level
            ),
        )
        reset_lbfgs(self.state, factor < RESET_BELOW)


def shortened(share: Array, slope: Array, rise: Array) -> Array:
    """Return shares (B,) of a step at the minima of parabolas, by slopes and what came of it."""
    with np.errstate(all="ignore"):
        fitted = -slope * share / (2 * (rise - slope * share))
    return np.asarray(share * np.nan_to_num(fitted, nan=SHORTEST).clip(SHORTEST, LONGEST))


def _largest_margin(at: Evaluation, batch: GatedData) -> Array:
    """Return the sizes (B,) of the largest margins, of whatever sign."""
    sizes = least_margins(at.scores.detach(), batch.y).abs().amax(dim=1)
    return to_numpy(sizes.double())
