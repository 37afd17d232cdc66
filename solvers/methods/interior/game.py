"""Primal-dual interior point for max-margin programs, in the dual.

The programs are solved as a game. With `lam` and `d` on simplices and the kernels K_g,

    gamma^2 = min_lam max_g lam^T K_g lam = max_d min_lam lam^T (sum_g d[g] K_g) lam,

gamma is the best margin per unit of norm, 1 / gamma the optimum of the program, and gamma = 0
exactly when the data are not separable, lam being the proof. Both sides of the game always have
interior points, so there is no phase for infeasible programs, and no scaling to choose.
"""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass, replace

from ...numerics.arrays import (
    Array,
    NotPositiveDefinite,
    SingularMatrix,
    array_namespace,
    float_of,
    matmul,
)
from ...numerics.threads import choose_threads
from ..settings import Settings
from .group_kernels import GroupKernels
from .newton import Iterate, NewtonSystem
from .predictor_corrector import Start, advance, starting_point, warm_point

__all__ = ["Game", "play"]

log = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class Game:
    """Best bounds of a run, with the points that give them, which need not be of one iterate.

    Attributes
    ----------
    lower : float
        Best lower bound of gamma, with the `primal_lam` (n,) and `primal_d` (G,) that give it:
        the network with blocks `d[g] v_g(lam)` has this margin per unit of norm.
    upper : float
        Best upper bound of gamma, with the `dual` (n,) that gives it.
    iterations : int
    """

    lower: float
    primal_lam: Array
    primal_d: Array
    upper: float
    dual: Array
    iterations: int

    @property
    def gap(self) -> float:
        """Relative gap `upper / lower - 1`, infinite as long as no margin is positive."""
        return self.upper / self.lower - 1 if self.lower > 0 else math.inf

    @property
    def width(self) -> float:
        """Length of the interval in which the bounds leave gamma, which is not negative."""
        return self.upper - max(self.lower, 0.0)


# Stop once this many iterations have not narrowed the bounds by a tenth.
PATIENCE = 15
# Gram matrices know squared norms to about 1e-16 of the samples' sizes, so that gamma below 1e-8
# of those that lam weighs is noise to them: there the run ends and the refinement on the features
# themselves begins.
RESOLUTION = 1e-8
ITERATIONS = 100
# From this gap on, samples with `z / lam` above so many times their kernel's diagonal are left
# out, if that leaves at most this share. On MNIST digits no support vector has been among them.
SETTLED = 2e-2
DISTANT = 1.0
WORTHWHILE = 0.8


def play(kernels: GroupKernels, settings: Settings, start: Start | None = None) -> Game:
    """Follow the central path of the game, from `start` on, until its bounds meet within `tol`.

    The bounds are those of Gram arithmetic; the caller certifies what it makes of them.
    """
    point = starting_point(kernels) if start is None else warm_point(kernels, start)
    return _follow(kernels, point, settings, 0)


def _follow(kernels: GroupKernels, point: Iterate, settings: Settings, done: int) -> Game:
    """Follow the path as `play` does, from `point`, which took `done` iterations.

    Samples that the path is leaving behind are left out as it nears its end. If the margins of
    all samples then refuse what was found without them, the run goes on with them.
    """
    game = _bounds(point, None, done)
    widths = [math.inf] * PATIENCE + [game.width]
    limit = settings.max_iterations or ITERATIONS
    may_leave_out = True
    while game.iterations < limit:
        if game.gap <= settings.tol or game.upper <= RESOLUTION * float_of(
            matmul(game.dual, kernels.sizes)
        ):
            break
        if not widths[-1] < 0.9 * widths[-1 - PATIENCE]:
            break
        if may_leave_out and game.gap < SETTLED:
            near = _near(kernels, point)
            if 0 < near.shape[0] <= WORTHWHILE * point.lam.shape[0]:
                log.debug("%d of %d samples are near", near.shape[0], point.lam.shape[0])
                part = kernels.subset(near)
                inner = _follow(part, _restricted(part, point, near), settings, game.iterations)
                game = _with_all_samples(kernels, game, inner, near)
                may_leave_out = False
                continue
        choose_threads(kernels.flops)
        try:
            # No name of its own: its matrices would still be there when the next ones are made.
            point = advance(kernels, point, NewtonSystem(point, kernels.weighted(point.d)))
        except (NotPositiveDefinite, SingularMatrix):
            break
        game = _bounds(point, game, game.iterations + 1)
        if settings.progress is not None:
            settings.progress(game.iterations, game.gap)
        widths.append(game.width)
    return game


def _near(kernels: GroupKernels, point: Iterate) -> Array:
    """Indices of the samples that may still turn out to be support vectors."""
    xp = array_namespace(point.lam)
    return xp.nonzero(point.z <= DISTANT * kernels.diagonal(point.d) * point.lam)[0]


def _restricted(part: GroupKernels, point: Iterate, rows: Array) -> Iterate:
    """Restrict `point` to the samples `rows`, whose kernels are `part`."""
    xp = array_namespace(point.lam)
    lam = point.lam[rows] / xp.sum(point.lam[rows])
    return replace(point, lam=lam, z=point.z[rows], products=part.products(lam))


def _with_all_samples(kernels: GroupKernels, game: Game, inner: Game, rows: Array) -> Game:
    """Best bounds of `game` and of `inner`, of the samples `rows`, as it stands for them all."""
    xp = array_namespace(game.dual)
    lam, dual = xp.zeros_like(game.dual), xp.zeros_like(game.dual)
    lam[rows], dual[rows] = inner.primal_lam, inner.dual
    lower = _lower_bound(lam, inner.primal_d, kernels.products(lam))
    game = replace(game, iterations=inner.iterations)
    if lower > game.lower:
        game = replace(game, lower=lower, primal_lam=lam, primal_d=inner.primal_d)
    if inner.upper < game.upper:
        game = replace(game, upper=inner.upper, dual=dual)
    return game


def _bounds(point: Iterate, best: Game | None, iteration: int) -> Game:
    """Best of the bounds at `point` and of those of `best`."""
    xp = array_namespace(point.lam)
    norms = xp.sqrt(xp.clip(matmul(point.lam, point.products), min=0.0))
    upper = float_of(xp.max(norms)) / float_of(xp.sum(point.lam))
    lower = _lower_bound(point.lam, point.d, point.products)
    if best is None:
        return Game(lower, point.lam, point.d, upper, point.lam, iteration)
    game = replace(best, iterations=iteration)
    if lower > game.lower:
        game = replace(game, lower=lower, primal_lam=point.lam, primal_d=point.d)
    if upper < game.upper:
        game = replace(game, upper=upper, dual=point.lam)
    return game


def _lower_bound(lam: Array, d: Array, products: Array) -> float:
    """Smallest margin per unit of norm of the blocks `d[g] v_g(lam)`."""
    xp = array_namespace(lam)
    norms = xp.sqrt(xp.clip(matmul(lam, products), min=0.0))
    total = float_of(d @ norms)
    return float_of(xp.min(matmul(products, d))) / total if total > 0 else -math.inf
