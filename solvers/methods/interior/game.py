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
from dataclasses import replace
from functools import partial

from ...numerics.arrays import Array, array_namespace, float_of, matmul
from ...numerics.central_path import Best, Watch, follow
from ..settings import Settings
from .group_kernels import GroupKernels
from .group_starts import Start, starting_point, warm_point
from .group_system import GroupSystem, Iterate

log = logging.getLogger(__name__)


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


def play(kernels: GroupKernels, settings: Settings, start: Start | None = None) -> Best[Start]:
    """Follow the central path of the game, from `start` on, until its bounds meet within `tol`.

    Returns
    -------
    Best
        Bounds of gamma, those of Gram arithmetic: the caller certifies what it makes of them. The
        network with blocks `d[g] v_g(lam)` of its `primal` has the lower one as its margin per
        unit of norm, the multipliers of its `dual` give the upper one.
    """
    point = starting_point(kernels) if start is None else warm_point(kernels, start)
    return _followed(kernels, point, settings)


def _followed(
    kernels: GroupKernels, point: Iterate, settings: Settings, before: int = 0
) -> Best[Start]:
    """Follow the path as `play` does, from `point`, which took `before` iterations.

    Samples that the path is leaving behind are left out as it nears its end. If the margins of
    all samples then refuse what was found without them, the run goes on with them.
    """
    limit = settings.max_iterations or ITERATIONS
    system = partial(GroupSystem, kernels)
    run = _Run(kernels, settings, before)
    point = follow(point, system, run, limit=limit - before)
    if run.near is None:
        return run.best
    log.debug("%d of %d samples are near", run.near.shape[0], point.lam.shape[0])
    part = kernels.subset(run.near)
    restricted = _restricted(part, point, run.near)
    inner = _followed(part, restricted, settings, run.best.iterations)
    run = _Run(
        kernels, settings, inner.iterations, _with_all_samples(kernels, run.best, inner, run.near)
    )
    follow(point, system, run, limit=limit - inner.iterations)
    return run.best


class _Run(Watch[Start]):
    """Bounds on the way, which ends too where Gram arithmetic does, or once few samples are near.

    Attributes
    ----------
    near : (m,) integer array or None
        The samples with which the run is to go on.
    """

    def __init__(
        self,
        kernels: GroupKernels,
        settings: Settings,
        before: int,
        best: Best[Start] | None = None,
    ) -> None:
        super().__init__(_bounds, settings.tol, PATIENCE, settings.progress, best, before)
        self.kernels, self.near = kernels, None
        self._may_leave_out = best is None

    def __call__(self, point: Iterate, done: int) -> bool:
        goes_on = super().__call__(point, done)
        sizes = float_of(matmul(self.best.dual.lam, self.kernels.sizes))
        if not goes_on or self.best.upper <= RESOLUTION * sizes:
            return False
        if self._may_leave_out and self.best.gap < SETTLED:
            near = _near(self.kernels, point)
            if 0 < near.shape[0] <= WORTHWHILE * point.lam.shape[0]:
                self.near = near
        return self.near is None


def _near(kernels: GroupKernels, point: Iterate) -> Array:
    """Indices of the samples that may still turn out to be support vectors."""
    xp = array_namespace(point.lam)
    return xp.nonzero(point.z <= DISTANT * kernels.diagonal(point.d) * point.lam)[0]


def _restricted(part: GroupKernels, point: Iterate, rows: Array) -> Iterate:
    """Restrict `point` to the samples `rows`, whose kernels are `part`."""
    xp = array_namespace(point.lam)
    lam = point.lam[rows] / xp.sum(point.lam[rows])
    return replace(point, lam=lam, z=point.z[rows], products=part.products(lam))


def _with_all_samples(
    kernels: GroupKernels, best: Best[Start], inner: Best[Start], rows: Array
) -> Best[Start]:
    """Best bounds of `best` and of `inner`, of the samples `rows`, as it stands for them all."""
    primal, dual = (_padded(start, rows, best.dual.lam) for start in (inner.primal, inner.dual))
    lower = _lower_bound(primal.lam, primal.d, kernels.products(primal.lam))
    return best.better(Best(lower, primal, inner.upper, dual, inner.iterations))


def _padded(start: Start, rows: Array, like: Array) -> Start:
    """Multipliers of the samples `rows` as those of all."""
    lam = array_namespace(like).zeros_like(like)
    lam[rows] = start.lam
    return replace(start, lam=lam)


def _bounds(point: Iterate) -> Best[Start]:
    """Bounds of gamma at a point."""
    xp = array_namespace(point.lam)
    norms = xp.sqrt(xp.clip(matmul(point.lam, point.products), min=0.0))
    upper = float_of(xp.max(norms)) / float_of(xp.sum(point.lam))
    start = Start(lam=point.lam, d=point.d)
    return Best(_lower_bound(point.lam, point.d, point.products), start, upper, start)


def _lower_bound(lam: Array, d: Array, products: Array) -> float:
    """Smallest margin per unit of norm of the blocks `d[g] v_g(lam)`."""
    xp = array_namespace(lam)
    norms = xp.sqrt(xp.clip(matmul(lam, products), min=0.0))
    total = float_of(d @ norms)
    return float_of(xp.min(matmul(products, d))) / total if total > 0 else -math.inf
