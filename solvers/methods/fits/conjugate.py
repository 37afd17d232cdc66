"""Group penalties of many samples: Newton's method whose steps are conjugate gradients."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import scipy.linalg as sl
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from ...numerics.arrays import as_float32
from ...numerics.central_path import Patience
from ...programs.fits import FitProgram
from ...programs.images import Floats
from ..damped_newton import ARMIJO, HALVINGS

# Samples that the preconditioner sees, and how much likelier than the median one is at most.
_SEEN, _LIKELIER = 2000, 100.0
# What conjugate gradients leave of a residual before and after the gap is small, and their steps.
_ROUGH, _FINE, _NEAR, _MOST = 0.1, 0.01, 0.1, 200
# Steps from which a preconditioner of weights that have changed so, as logarithms, is made anew.
_SLOW, _CHANGED = 12, 0.5
# Newton's steps within which the gap is to shrink by a tenth.
_PATIENCE = 12
# Width of the first norms, of the longest; share of it that a whole step leaves; slack of dual
# norms from which groups are tried without.
_WIDTH, _STAGE, _CLEAR = 0.3, 0.1, 1e-3


@dataclass(frozen=True, eq=False)
class Point:
    """Blocks (J, D), their scores (n,), the smoothed norm of each group (H,), and the value."""

    blocks: Floats
    scores: Floats
    sizes: Floats
    value: float


@dataclass(frozen=True, eq=False)
class ManySamples:
    """``F(zeta) + lam sum_h sqrt(||zeta_h||^2 + width^2)`` with one score a sample.

    Attributes
    ----------
    problem : FitProgram
    group : (J,) array
        Group of every column of the problem.
    lam : float
    width : float
    """

    problem: FitProgram
    group: NDArray[np.int64]
    lam: float
    width: float = 0.0

    def at(self, blocks: Floats, scores: Floats | None = None) -> Point:
        """Return a point; its scores are computed if they are not given."""
        f = self.problem.scores(blocks) if scores is None else scores
        sizes = np.hypot(self.norms(blocks), self.width)
        value = self.problem.loss.value(f, self.problem.y) + self.lam * float(sizes.sum())
        return Point(blocks, f, sizes, value)

    def norms(self, blocks: Floats) -> Floats:
        """Return the l2 norm of every group, (H,)."""
        return np.sqrt(self.along(blocks, blocks))

    def along(self, one: Floats, other: Floats) -> Floats:
        """Return the inner product of blocks in every group, (H,)."""
        each = np.einsum("ij,ij->i", one, other)
        return np.asarray(np.bincount(self.group, each), dtype=np.float64)

    def pull(self, point: Point) -> Floats:
        """Return minus the loss's gradient, as blocks."""
        r = self.problem.loss.multipliers(point.scores, self.problem.y)
        return self.problem.adjoint(r).reshape(point.blocks.shape)

    def dead(self, pull: Floats) -> NDArray[np.bool_]:
        """Return which blocks are of a group whose dual norm is clear of lam, (J,)."""
        return (self.norms(pull) < (1 - _CLEAR) * self.lam)[self.group]

    def longest(self, point: Point, blocks: Floats) -> Point:
        """Return the point of the least value that adds a share of blocks where there are none."""
        f, size = self.problem.scores(blocks), self.lam * float(self.norms(blocks).sum())
        loss, y = self.problem.loss, self.problem.y
        typical = math.log(np.linalg.norm(y) / (np.linalg.norm(f) or 1.0))
        found = minimize_scalar(
            lambda log: loss.value(point.scores + math.exp(log) * f, y) + math.exp(log) * size,
            bounds=(typical - 20, typical + 20),
            method="bounded",
        )
        share = math.exp(found.x)
        return self.at(point.blocks + share * blocks, point.scores + share * f)

    def moved(self, point: Point, step: Floats, slope: float) -> tuple[Point, float] | None:
        """Return a point along a step that is lower, and the share of the step; else None."""
        f, share = self.problem.scores(step), 1.0
        for _ in range(HALVINGS):
            found = self.at(point.blocks + share * step, point.scores + share * f)
            rounding = 4 * np.finfo(np.float64).eps * point.value
            if found.value <= point.value + ARMIJO * share * slope + rounding:
                return found, share
            share /= 2
        return None


def solve_many(
    program: ManySamples,
    start: Floats,
    gap: Callable[[Floats], float],
    *,
    tol: float,
    max_iterations: int,
) -> tuple[Floats, int]:
    """Minimise a group penalty as its width falls; return the blocks (J, D) and Newton's steps.

    No system of all samples or all coefficients is formed, and no product of all pairs of samples.
    Far from the optimum the penalty is majorised by ``lam (||zeta_h||^2 / s_h + s_h) / 2`` at the
    present norms s; near it its own curvature counts. Groups whose dual norm is clear of lam are
    left out, and come back along the gradient.

    Parameters
    ----------
    program : ManySamples
    start : (n,) array
        Multipliers; the search starts at what the adjoint makes of them, at its best size.
    gap : callable
        The certified relative gap of blocks.
    tol : float
        The gap at which to end.
    max_iterations : int

    References
    ----------
    J. Nocedal, S. J. Wright, "Numerical Optimization", algorithm 7.1 (line search Newton-CG).
    """
    problem, group, lam = program.problem, program.group, program.lam
    single = replace(problem, X=as_float32(problem.X), columns=as_float32(problem.columns))
    blocks = problem.adjoint(start).reshape(len(group), -1)
    point = program.longest(program.at(np.zeros_like(blocks)), blocks)
    program = replace(program, width=_WIDTH * float(program.norms(point.blocks).max()))
    point = program.at(point.blocks, point.scores)
    patience, steps, done = Patience(_PATIENCE), 0, 0
    best, preconditioner = (math.inf, point.blocks), None
    while True:
        V = program.pull(point)
        dead, gone = program.dead(V), ~np.any(point.blocks, axis=1)
        if np.any(dead & ~gone):
            bare = program.at(np.where(dead[:, None], 0.0, point.blocks))
            if bare.value < point.value:
                point, V, gone = bare, program.pull(bare), gone | dead
        back = gone & (program.norms(V) > lam)[group]
        if back.any():
            point = program.longest(point, np.where(back[:, None], V, 0.0))
            V, gone = program.pull(point), gone & ~back
        best = min(best, (gap(point.blocks), point.blocks), key=lambda one: one[0])
        if best[0] <= tol or patience.ends(best[0]) or steps == max_iterations:
            return best[1], steps
        near, live = best[0] < _NEAR, ~gone[:, None]
        t, H = (point.sizes / lam)[group], problem.loss.curvature(point.scores, problem.y)
        unit = point.blocks / point.sizes[group, None]
        if preconditioner is None or (done > _SLOW and preconditioner.apart(t, H) > _CHANGED):
            try:
                preconditioner = _Preconditioner(single, t, H)
            except np.linalg.LinAlgError:  # inputs too unequal for single precision
                return best[1], steps
        hessian = _Hessian(program, single, H, t[:, None], unit * near, live)
        gradient = np.where(live, lam * unit - V, 0.0)
        step, done = _conjugate_gradients(
            hessian, partial(preconditioner, live), -gradient, _FINE if near else _ROUGH
        )
        slope = float(np.sum(gradient * step))
        moved = program.moved(point, step, slope)
        if moved is None:
            return best[1], steps
        (point, share), steps = moved, steps + 1
        if share == 1.0 and -slope <= lam * program.width:
            program = replace(program, width=_STAGE * program.width)
            point = program.at(point.blocks, point.scores)


@dataclass(frozen=True, eq=False)
class _Hessian:
    """The curvature of the loss and of the penalty; without units, of the penalty's majorant."""

    program: ManySamples
    single: FitProgram
    H: Floats
    t: Floats
    unit: Floats
    live: NDArray[np.bool_]

    def __call__(self, Z: Floats) -> Floats:
        """Return the Hessian times blocks, the loss's part in single precision."""
        scores = as_float32(self.H) * self.single.scores(as_float32(Z))
        along = self.program.along(self.unit, Z)[self.program.group, None]
        curved = self.single.adjoint(scores).reshape(Z.shape) * self.live
        return np.asarray(curved + (Z - along * self.unit) / self.t)


class _Preconditioner:
    """The inverse of ``1 / t + A' H A`` where A, the map to scores, is seen by a sample of rows.

    In coefficients times ``t^-1/2`` and a basis of the rows that are seen, with all samples'
    curvatures H there; the identity across. In single precision.

    References
    ----------
    A. Rudi, L. Carratino, L. Rosasco, "FALKON: An Optimal Large Scale Kernel Method" (2017).
    """

    def __init__(self, single: FitProgram, t: Floats, H: Floats) -> None:
        self._t, self._H, X, Z = t, H, single.X, single.columns
        share = (Z**2 @ t) * np.einsum("ij,ij->i", X, X) * H
        share = np.minimum(share, _LIKELIER * np.median(share)) + 1e-3 * share.mean()
        n_seen = min(_SEEN, len(H) // 2)
        seen = np.random.default_rng(0).choice(len(H), n_seen, replace=False, p=share / share.sum())
        root, weights = as_float32(np.sqrt(H)), as_float32(t)
        products = X @ X[seen].T
        products *= (Z * weights) @ Z[seen].T
        products *= root[:, None]
        products *= root[seen]
        among = products[seen]
        # Of the trace, what rounding leaves of positive definiteness.
        among.flat[:: n_seen + 1] += np.float32(0.005 + 4e-7 * among.trace())
        self._basis = sl.cholesky(among, lower=True, check_finite=False)
        all_rows = sl.solve_triangular(self._basis, products.T, lower=True, check_finite=False)
        inside = all_rows @ all_rows.T
        inside.flat[:: n_seen + 1] += 1
        self._inside = sl.cholesky(inside, lower=True, check_finite=False)
        self._seen = replace(single, X=X[seen], columns=Z[seen] * root[seen, None])
        self._root = np.sqrt(t)[:, None]

    def apart(self, t: Floats, H: Floats) -> float:
        """Return how far other weights are, as the mean of logarithms; a common factor is none."""
        with np.errstate(divide="ignore", invalid="ignore"):
            changes = [np.log(t / self._t), np.log(H / self._H)]
        kept = [change[np.isfinite(change)] for change in changes]
        return max(float(np.abs(one - np.median(one)).mean()) for one in kept if len(one))

    def __call__(self, live: NDArray[np.bool_], gradient: Floats) -> Floats:
        """Return the inverse times blocks, on the `live` (J, 1) of them."""
        white, root = self._root * gradient, as_float32(self._root)
        v = self._seen.scores(root * as_float32(white))
        v = sl.solve_triangular(self._basis, v, lower=True, check_finite=False)
        v = v - sl.cho_solve((self._inside, True), v, check_finite=False)
        v = sl.solve_triangular(self._basis, v, lower=True, trans=1, check_finite=False)
        across = root * self._seen.adjoint(v).reshape(white.shape)
        return np.asarray(live * self._root * (white - across))


def _conjugate_gradients(
    matrix: Callable[[Floats], Floats],
    preconditioner: Callable[[Floats], Floats],
    right: Floats,
    tol: float,
) -> tuple[Floats, int]:
    """Solve a positive definite system up to a share of the residual; return x and the steps."""
    x, left = np.zeros_like(right), right
    z = preconditioner(left)
    direction, size = z, float(np.vdot(left, z))
    enough = tol**2 * size
    for steps in range(1, _MOST + 1):
        image = matrix(direction)
        curvature = float(np.vdot(direction, image))
        if not curvature > 0:  # rounding leaves nothing more
            return (x if steps > 1 else z), steps
        x = x + size / curvature * direction
        left = left - size / curvature * image
        z = preconditioner(left)
        size, before = float(np.vdot(left, z)), size
        if size <= enough:
            return x, steps
        direction = z + size / before * direction
    return x, _MOST
