"""Quasi-Newton steps for the smoothed margin, at a temperature that falls as they converge."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .data import GatedData
from .descent import Rate, assign
from .line_search import rounding_of
from .objectives import Smoothed, smoothed
from .quasi_newton import direction, forget, inner, learn, no_pairs, numbers, rows
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
# A run that separates the data by next to nothing, at a saddle, does so at a temperature far too
# low for what follows: log(1 / loss) runs ahead of what the direction is worth, and steps creep
# along the samples of the smallest margins. Where it is above what was reached by converging, at
# first log(n), by the share that one cooling allows, the temperature rises again. Three balanced
# deep linear networks on 42 samples were at 0.971, 0.975 and 0.986 of the margin after 2000 steps,
# and with this at 0.9999 after 400. Pairs of temperatures more different than this are forgotten.
FORGETFUL = 0.5
TINY = float(np.finfo(float).tiny)

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Ahead:
    """A step (B, P), the change of log(loss) that the gradient promises, and who has momentum."""

    step: Tensor
    slope: Array
    heavy: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Reached:
    """Points (B, P) of these lengths, the networks there, `scale` times as long, and their losses.

    `share` is what was taken of the step that leads there, (B,).
    """

    point: Tensor
    length: Array
    scale: Array
    scores: Tensor
    loss: Smoothed
    log_loss: Array
    share: Array = field(default_factory=lambda: np.empty(0))


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
        # Numbers, one a run, are on the CPU wherever the weights are.
        zero = torch.zeros(len(start), dtype=torch.float64)
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
        if not self._number("inverse_temperature").all():
            self._begin(batch)
        ahead = self._ahead()
        there = self._search(batch, ahead)
        cooling = (int(state["n_pairs"]) + 1) % COOL_EVERY == 0
        gradient = self._gradient(there, self._pulled(there, there.loss.pull, keep=cooling))
        moved = there.point - state["point"]
        learn(state, moved, gradient - state["gradient"])
        state |= {"point": there.point, "last": moved, "gradient": gradient}
        self._note(log_loss=there.log_loss)
        self._adapt(ahead, there)
        arrived = ~self._number("separated") & (numbers(there.loss.smallest) > 0)
        if arrived.any():
            there = self._reach_the_sphere(there, arrived)
        if cooling:
            self._cool(batch, there, -ahead.slope / 2)

    def _number(self, name: str) -> NDArray[Any]:
        """(B,) what the state holds under this name."""
        return numbers(self.state[name])

    def _note(self, **values: NDArray[Any]) -> None:
        """Put numbers (B,) into the state."""
        self.state |= {name: torch.from_numpy(value) for name, value in values.items()}

    def _begin(self, batch: GatedData) -> None:
        """Start at the temperature at which the largest margin is 1."""
        n_runs = len(self.state["point"])
        self._note(inverse_temperature=np.ones(n_runs))
        there = self._at(batch, self.state["point"])
        largest = numbers(there.scores.detach().abs().amax(dim=1).double())
        # Margins that all vanish say nothing of their scale, but their gradients do.
        pulled = self._pulled(there, there.loss.pull)
        scale = np.where(largest > 0, largest, np.sqrt(inner(pulled, pulled)))
        scale = np.where(scale > 0, scale, 1.0)
        self._note(inverse_temperature=1 / scale, separated=numbers(there.loss.smallest) > 0)
        there = self._at(batch, self.state["point"])
        self._note(log_loss=there.log_loss)
        self.state["gradient"] = self._gradient(there, self._pulled(there, there.loss.pull))

    def _ahead(self) -> Ahead:
        """The quasi-Newton step, or one with momentum where it would lead to a saddle."""
        state = self.state
        gradient = state["gradient"]
        step = direction(state, gradient)
        slope = inner(gradient, step)
        saddle = ~self._number("separated") & (-slope / 2 <= self._converged)
        if saddle.any():
            chosen = torch.from_numpy(saddle).to(step.device)[:, None]
            step = torch.where(chosen, self._heavy(gradient, saddle), step)
            slope = inner(gradient, step)
        length, norm = lengths(step), lengths(state["point"])
        longest = np.where(norm > 0, REACH * norm, math.inf)
        if (length > longest).any():
            share = np.minimum(1.0, longest / np.maximum(length, TINY))
            step, slope = step * rows(share, step), share * slope
        return Ahead(step, slope, saddle)

    def _heavy(self, gradient: Tensor, saddle: NDArray[np.bool_]) -> Tensor:
        """A gradient step with momentum, which is dropped where it leads uphill."""
        last, size, count = self.state["last"], self._number("size"), self._number("heavy_steps")
        squared = inner(gradient, gradient)
        first = np.divide(1.0, squared, out=np.ones_like(squared), where=squared > 0)
        # Of these runs alone: others are to go on as they would by themselves.
        size = np.where(saddle & (size == 0), first, size)
        downhill = inner(last, gradient) <= 0
        self._note(size=size, heavy_steps=np.where(saddle, downhill * (count + 1), count))
        share = np.where(downhill, count / (count + 3), 0.0)
        return rows(share, gradient) * last - rows(size, gradient) * gradient

    def _search(self, batch: GatedData, ahead: Ahead) -> Reached:
        """As much of the step as lowers log(loss) by enough, or nothing of it."""
        before, slope = self._number("log_loss"), ahead.slope
        share = np.ones_like(slope)
        allowed = before + numbers(rounding_of(self.state["log_loss"], self._runs.weights))
        for _ in range(SHORTENINGS):
            there = self._at(batch, self.state["point"] + rows(share, ahead.step) * ahead.step)
            good = there.log_loss <= allowed + ENOUGH * share * slope
            if good.all():
                return replace(there, share=share)
            with np.errstate(all="ignore"):
                fitted = -slope * share / (2 * (there.log_loss - before - slope * share))
            fitted = np.nan_to_num(fitted, nan=SHORTEST).clip(SHORTEST, LONGEST)
            share = np.where(good, share, fitted * share)
        share = np.where(good, share, 0.0)
        there = self._at(batch, self.state["point"] + rows(share, ahead.step) * ahead.step)
        return replace(there, share=share)

    def _adapt(self, ahead: Ahead, there: Reached) -> None:
        """Let gradient steps grow that were taken whole; runs that stayed try the gradient."""
        stayed = there.share == 0
        factor = np.where(there.share < 1, there.share, LENGTHEN)
        self._note(size=self._number("size") * np.where(ahead.heavy | stayed, factor, 1.0))
        forget(self.state, stayed)

    def _reach_the_sphere(self, there: Reached, arrived: NDArray[np.bool_]) -> Reached:
        """Let the direction alone count in runs that have just separated the data."""
        state = self.state
        norms = np.where(arrived, there.length, 1.0)
        self._note(
            separated=self._number("separated") | arrived,
            inverse_temperature=self._number("inverse_temperature") * norms**self._degree,
        )
        state["point"] = state["point"] / rows(norms, state["point"])
        moved = replace(
            there, point=state["point"], length=there.length / norms, scale=there.scale * norms
        )
        # The gradient in a point of length 1 is so many times that in the free one.
        state["gradient"] = self._tangent(state["gradient"] * rows(norms, state["gradient"]), moved)
        forget(state, arrived)
        return moved

    def _cool(self, batch: GatedData, there: Reached, promised: Array) -> None:
        """Move the temperatures of runs on the sphere to what their convergence has earned."""
        gradient, reached = self.state["gradient"], -self._number("log_loss")
        # At weights of length 1, where the radial part is the degree times log(loss).
        tangent = lengths(gradient) * there.length
        share = np.divide(
            STATIONARY * self._degree * reached,
            tangent,
            out=np.full_like(tangent, COOLING),
            where=tangent > 0,
        )
        on_sphere, earned = self._number("separated"), self._number("earned")
        most = min(FARTHEST, BLUR / torch.finfo(gradient.dtype).eps)
        ready = on_sphere & (promised <= self._converged) & (reached < most)
        factor = np.where(ready, 1 + share.clip(0.0, COOLING), 1.0)
        outrun = on_sphere & ~ready & (reached > (1 + COOLING) * earned)
        factor = np.where(outrun, earned / np.where(outrun, reached, 1.0), factor)
        if (factor == 1).all():
            return
        scores = there.scores.detach() * rows(factor, gradient)
        loss = smoothed(scores, batch.y, self._kind)
        pulled = self._pulled(there, loss.pull * rows(factor, gradient))
        log_loss = numbers(loss.log_loss)
        self.state["gradient"] = self._gradient(there, pulled)
        self._note(
            log_loss=log_loss,
            inverse_temperature=self._number("inverse_temperature") * factor,
            earned=np.where(ready, np.maximum(earned, -log_loss), earned),
        )
        forget(self.state, factor < FORGETFUL)

    def _at(self, batch: GatedData, point: Tensor) -> Reached:
        """The networks at the temperature and this point (B, P), and their losses."""
        length, weights = lengths(point), self._runs.weights
        norms = np.where(self._number("separated"), length, 1.0)
        scale = self._number("inverse_temperature") ** (1 / self._degree) / norms
        parts = torch.split(point * rows(scale, point), [w[0].numel() for w in weights], dim=1)
        assign(weights, [part.view_as(w) for w, part in zip(weights, parts, strict=True)])
        scores = self._runs.scores(batch)
        loss = smoothed(scores.detach(), batch.y, self._kind)
        return Reached(point, length, scale, scores, loss, numbers(loss.log_loss))

    def _pulled(self, there: Reached, coefficients: Tensor, *, keep: bool = False) -> Tensor:
        """(B, P) gradients in the weights."""
        parts = self._runs.pull(there.scores, coefficients, keep=keep)
        return torch.cat([g.flatten(1) for g in parts], dim=1)

    def _gradient(self, there: Reached, pulled: Tensor) -> Tensor:
        """The gradient in the point, from one in the weights; along the sphere if it is there."""
        return self._tangent(pulled * rows(there.scale, pulled), there)

    def _tangent(self, gradient: Tensor, there: Reached) -> Tensor:
        separated = self._number("separated")
        if not separated.any():
            return gradient
        along = inner(gradient, there.point) / np.where(separated, there.length, 1.0) ** 2
        return gradient - rows(np.where(separated, along, 0.0), gradient) * there.point


def lengths(vectors: Tensor) -> Array:
    """(B,) Euclidean lengths of rows (B, P), summed in float64."""
    return numbers(torch.linalg.vector_norm(vectors, dim=1, dtype=torch.float64))
