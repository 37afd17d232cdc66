"""Quasi-Newton steps for the smoothed margin, at a temperature that falls as they converge."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .cooling import CONVERGED, COOL_EVERY, FORGETFUL, Convergence, factors
from .data import GatedData
from .descent import Rate
from .kicks import KICKS, astray, column, keep_best, kicked, no_kicks, resting, start_watch
from .line_search import rounding_of
from .objectives import smoothed
from .points import Points, Reached, lengths
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

TINY = float(np.finfo(float).tiny)

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Ahead:
    """A step (B, P), the change of log(loss) that the gradient promises, and who has momentum."""

    step: Tensor
    slope: Array
    heavy: NDArray[np.bool_]


class Annealed(Points):
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
    separates the data: it goes on along the gradient with momentum. Where it rests for long it
    begins again, from beside the best point that it rested at and at the scale of the start, three
    times at most (`training.kicks`); the networks keep the best weights until it has better ones.
    A run that never separates the data never goes on to the sphere: its smallest margin says so.

    The weights that the networks get are :math:`\theta`. Of the weights at the start only the
    direction counts, and of the data not the scale. A rounding error may tip a comparison of the
    line search, and is then amplified, so runs that are equal on paper, such as one trained alone
    and among others, part after some tens of steps, towards the same limit.

    References
    ----------
    D. Liu, J. Nocedal, "On the limited memory BFGS method for large scale optimization".
    """

    def __init__(self, runs: Runs, kind: str, n_samples: int) -> None:
        super().__init__(runs, kind)
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
            **no_kicks(start),
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
        free = ~self._number("separated")
        if free.any():
            self._leave_rests(batch, resting(state, free, self._converged))
            self._show_best(batch, free & astray(state))

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
            step = torch.where(column(saddle, step), self._heavy(gradient, saddle), step)
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

    def _leave_rests(self, batch: GatedData, rested: NDArray[np.bool_]) -> None:
        """Begin again beside the best point that a run rested at, or go back to it at last."""
        worse = keep_best(self.state, rested)
        off = rested & (self._number("kicks") < KICKS)
        leaving = off | worse
        if not leaving.any():
            return
        before = [w.clone() for w in self._runs.weights]
        there = self._at(batch, kicked(self.state, leaving, off))
        largest = numbers(there.scores.detach().abs().amax(dim=1).double())
        # At the largest margin of the start, 1.
        scale = np.where(off & (largest > 0), largest, 1.0) ** (-1 / self._degree)
        there = self._at(batch, there.point * rows(scale, there.point))
        self._move(there, leaving)
        self._give(before, ~leaving)

    def _move(self, there: Reached, runs: NDArray[np.bool_]) -> None:
        """Put the runs marked at these points, with nothing known of the way there."""
        state = self.state
        gradient = self._gradient(there, self._pulled(there, there.loss.pull))
        moved = {"point": there.point, "gradient": gradient, "last": torch.zeros_like(gradient)}
        chosen = column(runs, gradient)
        state |= {name: torch.where(chosen, new, state[name]) for name, new in moved.items()}
        self._note(
            log_loss=np.where(runs, there.log_loss, self._number("log_loss")),
            size=np.where(runs, 0.0, self._number("size")),
            heavy_steps=np.where(runs, 0.0, self._number("heavy_steps")),
        )
        forget(state, runs)
        start_watch(state, runs)

    def _show_best(self, batch: GatedData, runs: NDArray[np.bool_]) -> None:
        """Give networks whose runs are astray the best weights that they have rested at."""
        if not runs.any():
            return
        best = self.state["best"]
        scale = self._number("inverse_temperature") ** (1 / self._degree)
        self._give(self._shaped(best * rows(scale, best)), runs)
        self._runs.scores(batch)  # the last that are asked for are those of the weights left

    def _cool(self, batch: GatedData, there: Reached, promised: Array) -> None:
        """Move the temperatures of runs on the sphere to what their convergence has earned."""
        gradient, reached = self.state["gradient"], -self._number("log_loss")
        earned = self._number("earned")
        now = Convergence(
            reached=reached,
            earned=earned,
            # At weights of length 1, where the radial part is the degree times log(loss).
            radial=self._degree * reached,
            tangent=lengths(gradient) * there.length,
            on_sphere=self._number("separated"),
            converged=promised <= self._converged,
        )
        factor, ready = factors(now, torch.finfo(gradient.dtype).eps)
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
