"""Quasi-Newton steps for the smoothed margin, at a temperature that falls as they converge."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from .data import GatedData
from .descent import Rate, assign, log_loss
from .line_search import rounding_of
from .objectives import log_mean_loss_gradient
from .quasi_newton import direction, forget, inner, learn, no_pairs
from .stacked import Runs

__all__ = ["Annealed"]

# A step must bring this share of the fall that the gradient promises (Armijo); one that does not
# is shortened to the minimum of the parabola through what is known, within these bounds (Nocedal
# and Wright, "Numerical optimization", section 3.5).
ENOUGH = 1e-4
SHORTEST, LONGEST = 0.1, 0.5
SHORTENINGS = 20
# Longest step, in lengths of the weights: what is known of the curvature is known nearby.
REACH = 0.3

# Where a run has converged and does not separate the data, gradient steps with momentum that grow
# by this factor: quasi-Newton steps go to saddles as to minima, and one start of five stayed there.
LENGTHEN = 1.05

# The inverse temperature may grow every so many steps, at most by this share of itself, ...
COOL_EVERY, COOLING = 5, 0.3
# ... if the last step promised less than this part of log(n), what smoothing costs, ...
CONVERGED = 0.01
# ... and by no more than this times the radial over the tangential part of the gradient. Margin
# ratios after 3000 steps: eleven frozen ReLU units on 200 points of the plane that their random
# gates hardly separate (two draws), and ten GLN units on 60 digits after 1000: 0.9999, 1.0000,
# 0.9999; at three times this 1.0000, 0.9990, 0.9995, for units freeze before their directions are
# right.
STATIONARY = 0.01
# It falls no more where rounding would blur log(loss) by this, nor beyond this log(1 / loss), where
# smoothing costs log(n) millionths of the margin: what is left of the run polishes the direction.
BLUR = 1e-4
FARTHEST = 1e6


class Annealed:
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
    shrinks by growing one layer at the other's expense, until it rests at f = 0. So a run begins at
    the inverse temperature at which its largest margin is 1 and descends there with u free in
    length, until every margin is positive. If it converges before, that is a saddle, or nothing
    separates the data: it goes on along the gradient with momentum. A run that never separates the
    data never goes on to the sphere: its smallest margin says so.

    The weights that the networks get are :math:`\theta`. Of the weights at the start only the
    direction counts, and of the data not the scale. A rounding error may tip a comparison of the
    line search, and is then amplified, so runs that are equal on paper, such as one trained alone
    and among others, part after some tens of steps, towards the same limit.

    References
    ----------
    D. Liu, J. Nocedal, "On the limited memory BFGS method for large scale optimization".
    """

    def __init__(self, runs: Runs, kind: str, n_samples: int) -> None:
        self._runs, self._kind = runs, kind
        self._degree: int = runs.networks[0].degree  # type: ignore[assignment]
        self._converged = CONVERGED * max(math.log(n_samples), 1.0)
        start = torch.cat([w.flatten(1) for w in runs.weights], dim=1)
        norms = start.norm(dim=1, keepdim=True)
        zero = torch.zeros(len(start), dtype=torch.float64, device=start.device)
        self.state = {
            "inverse_temperature": zero,  # 0 until the first margins are known
            "separated": zero.bool(),
            "earned": torch.full_like(zero, max(math.log(n_samples), 1.0)),
            "point": start / torch.where(norms > 0, norms, 1.0),
            "log_loss": zero.clone(),  # at the point and temperature
            "gradient": torch.zeros_like(start),  # of log(loss) there, in the point
            "size": zero.clone(),  # of gradient steps, 0 until the first gradient is known
            "heavy_steps": zero.clone(),  # since momentum was dropped
            "last": torch.zeros_like(start),  # step
            **no_pairs(start),
        }

    def step(self, batch: GatedData, rate: Rate) -> None:
        state = self.state
        if bool((state["inverse_temperature"] == 0).any()):
            self._begin(batch)
        step, slope = self._ahead()
        new, scores = self._search(batch, step, slope)
        cooling = (int(state["n_pairs"]) + 1) % COOL_EVERY == 0
        value, pulled = self._pull(batch, scores, keep=cooling)
        gradient = self._in_the_point(new, pulled)
        moved = new - state["point"]
        learn(state, moved, gradient - state["gradient"])
        state |= {"point": new, "last": moved, "log_loss": value, "gradient": gradient}
        separates = (batch.y * scores.detach() > 0).all(dim=1)
        self._reach_the_sphere(~state["separated"] & separates, pulled)
        if cooling:
            self._cool(batch, scores, -slope / 2)

    def _begin(self, batch: GatedData) -> None:
        """Start at the temperature at which the largest margin is 1."""
        state = self.state
        state["inverse_temperature"] = torch.ones_like(state["inverse_temperature"])
        scores = self._scores(batch, state["point"])
        margins = batch.y * scores.detach()
        largest = margins.abs().amax(dim=1).double()
        # Margins that all vanish say nothing of their scale, but their gradients do.
        _, pulled = self._pull(batch, scores)
        scale = torch.where(largest > 0, largest, torch.sqrt(inner(pulled, pulled)))
        state["inverse_temperature"] = torch.where(scale > 0, 1 / scale, 1.0)
        state["separated"] = (margins > 0).all(dim=1)
        state["log_loss"], pulled = self._pull(batch, self._scores(batch, state["point"]))
        state["gradient"] = self._in_the_point(state["point"], pulled)

    def _ahead(self) -> tuple[Tensor, Tensor]:
        """The quasi-Newton step (B, P), and the change of log(loss) that the gradient promises."""
        state = self.state
        gradient = state["gradient"]
        step = direction(state, gradient)
        saddle = ~state["separated"] & (-inner(gradient, step) / 2 <= self._converged)
        step = torch.where(saddle[:, None], self._heavy(gradient), step)
        length = torch.sqrt(inner(step, step))
        norm = torch.sqrt(inner(state["point"], state["point"]))
        longest = torch.where(norm > 0, REACH * norm, math.inf)
        step = step * torch.where(length > longest, longest / length, 1.0)[:, None].to(step)
        return step, inner(gradient, step)

    def _heavy(self, gradient: Tensor) -> Tensor:
        """A gradient step with momentum, which is dropped where it leads uphill."""
        state = self.state
        squared = inner(gradient, gradient)
        first = torch.where(squared > 0, 1 / squared, 1.0)
        state["size"] = torch.where(state["size"] > 0, state["size"], first)
        plain = -state["size"][:, None].to(gradient) * gradient
        share = state["heavy_steps"] / (state["heavy_steps"] + 3)
        heavy = plain + share[:, None].to(gradient) * state["last"]
        downhill = inner(state["last"], gradient) <= 0
        state["heavy_steps"] = torch.where(downhill, state["heavy_steps"] + 1, 0.0)
        return torch.where(downhill[:, None], heavy, plain)

    def _search(self, batch: GatedData, step: Tensor, slope: Tensor) -> tuple[Tensor, Tensor]:
        """As much of the step as lowers log(loss) by enough; the point there and its scores."""
        state, there = self.state, self.state["log_loss"]
        share = torch.ones_like(slope)
        allowed = rounding_of(there, self._runs.weights)
        for _ in range(SHORTENINGS):
            new = state["point"] + share[:, None].to(step) * step
            scores = self._scores(batch, new)
            after = log_loss(batch.y * scores.detach(), self._kind)
            good = after <= there + ENOUGH * share * slope + allowed
            if bool(good.all()):
                state["size"] = state["size"] * torch.where(share < 1, share, LENGTHEN)
                return new, scores
            fitted = -slope * share / (2 * (after - there - slope * share))
            fitted = torch.nan_to_num(fitted, nan=SHORTEST).clamp(SHORTEST, LONGEST)
            share = torch.where(good, share, fitted * share)
        # Stay, and try the gradient itself.
        forget(state, ~good)
        state["size"] = torch.where(good, state["size"], 0.0)
        new = torch.where(good[:, None], new, state["point"])
        return new, self._scores(batch, new)

    def _reach_the_sphere(self, arrived: Tensor, pulled: Tensor) -> None:
        """Let the direction alone count in runs that have just separated the data."""
        if not bool(arrived.any()):
            return
        state = self.state
        norms = torch.where(arrived, torch.sqrt(inner(state["point"], state["point"])), 1.0)
        state["separated"] = state["separated"] | arrived
        state["inverse_temperature"] = state["inverse_temperature"] * norms**self._degree
        state["point"] = state["point"] / norms[:, None].to(state["point"])
        gradient = self._in_the_point(state["point"], pulled)
        state["gradient"] = torch.where(arrived[:, None], gradient, state["gradient"])
        forget(state, arrived)

    def _cool(self, batch: GatedData, scores: Tensor, promised: Tensor) -> None:
        """Lower the temperature of runs on the sphere that have converged at the present one."""
        state = self.state
        # At weights of length 1, where the radial part is the degree times log(loss).
        gradient, point = state["gradient"], state["point"]
        tangent = torch.sqrt(inner(gradient, gradient) * inner(point, point))
        radial = self._degree * -state["log_loss"]
        share = torch.where(tangent > 0, STATIONARY * radial / tangent, COOLING)
        most = min(FARTHEST, BLUR / torch.finfo(scores.dtype).eps)
        ready = state["separated"] & (promised <= self._converged) & (-state["log_loss"] < most)
        factor = torch.where(ready, 1 + share.clamp(0.0, COOLING), 1.0)
        outrun = state["separated"] & ~ready & (-state["log_loss"] > (1 + COOLING) * state["earned"])
        factor = torch.where(outrun, state["earned"] / -state["log_loss"], factor)
        state["log_loss"], pulled = self._pull(batch, scores, factor)
        state["earned"] = torch.where(ready, torch.maximum(state["earned"], -state["log_loss"]), state["earned"])
        forget(state, factor < 0.5)
        state["gradient"] = self._in_the_point(state["point"], pulled)
        state["inverse_temperature"] = state["inverse_temperature"] * factor

    def _scores(self, batch: GatedData, point: Tensor) -> Tensor:
        """Scores (B, n) of the networks at the temperature and this point, with their graph."""
        flat = point * self._scale(point)[:, None].to(point)
        weights = self._runs.weights
        parts = torch.split(flat, [w[0].numel() for w in weights], dim=1)
        assign(weights, [part.view_as(w) for w, part in zip(weights, parts, strict=True)])
        return self._runs.scores(batch)

    def _scale(self, point: Tensor) -> Tensor:
        """(B,) of what length the weights of the networks are beside the point."""
        state = self.state
        norms = torch.where(state["separated"], torch.sqrt(inner(point, point)), 1.0)
        return state["inverse_temperature"] ** (1 / self._degree) / norms

    def _pull(
        self, batch: GatedData, scores: Tensor, factor: Tensor | None = None, *, keep: bool = False
    ) -> tuple[Tensor, Tensor]:
        """log(loss) of the scores, times `factor` (B,), and its gradient in the weights (B, P)."""
        known = scores.detach()
        if factor is not None:
            known = known * factor[:, None].to(known)
        coefficients = log_mean_loss_gradient(known, batch.y, self._kind)
        if factor is not None:
            coefficients = coefficients * factor[:, None].to(known)
        parts = self._runs.pull(scores, coefficients, keep=keep)
        return log_loss(batch.y * known, self._kind), torch.cat([g.flatten(1) for g in parts], 1)

    def _in_the_point(self, point: Tensor, pulled: Tensor) -> Tensor:
        """The gradient in the point, from one in the weights; along the sphere if it is there."""
        gradient = pulled * self._scale(point)[:, None].to(point)
        along = inner(gradient, point) / inner(point, point)
        radial = torch.where(self.state["separated"], along, 0.0)
        return gradient - radial[:, None].to(point) * point
