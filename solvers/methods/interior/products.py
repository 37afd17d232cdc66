"""Interior point in matrices of classes or units: norms of singular values of products.

Margins are `<u_i x_i', B>`, so that with V = A'lam all that the singular values of B (k, q) ask for
is k x k, and Newton's matrix is one of margins, made of products of the u and the Gram matrix of
the x. Both games have a matrix T of the left side that scales one point to the other:

    spectral:  B = V / T,  B B' + W = I       min { tr(V' T^-1 V) / 2 + tr T / 2 : lam in simplex }
    nuclear:   B = T V,    V V' + W = t I     min { t / 2 : V V' <= t I, lam in simplex }, tr T = 1

with W T = mu I. At the optimum the margins of B are at least gamma, and gamma on the support.

References
----------
F. R. Bach, "Consistency of trace norm minimization", 2008 (the least over T of quadratic forms).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

import numpy as np
from scipy.linalg import cho_factor, cho_solve, lu_factor, lu_solve

from ...norms.balls import longest_in_cone
from ...norms.norm import Norm
from ...numerics.central_path import Best, Lengths, System, Watch, follow
from ...numerics.step_length import longest_step, symmetric
from ...programs.images import Floats, Products, sum_zero_basis
from ...programs.norm_program import NormPoint, NormProgram
from ..settings import Settings

ITERATIONS = 100
# Stop once so many iterations have not narrowed the bounds by a tenth.
PATIENCE = 6
# Corrections of B in the spectral game: where T vanishes it is a quotient of roundings.
REFINEMENTS = 2
# Newton steps of the nuclear game on the face of its optimum, from this gap on: T and V, each known
# to 1e-8 alone, agree to rounding after two. Systems of more unknowns, which are solved by singular
# values, would cost more than all iterations. Singular values below this share are none.
FACE_STEPS = 2
NEAR = 1e-6
FACE = 1000
RESOLUTION = 1e-13


@dataclass(frozen=True, eq=False)
class _Point:
    """Multipliers against slacks of margins, T against W; or a step of them."""

    lam: Floats
    s: Floats
    gamma: float
    T: Floats
    W: Floats
    B: Floats
    t: float = 1.0


_Target = tuple[Floats, Floats]
"""Products of s and lam, and what the inverse of the factor of W T is to be multiplied to."""


class _Game:
    """Margins as products of left vectors (m, b, k), of blocks, and inputs (n, q)."""

    def __init__(self, image: Products, norm: Norm, n_classes: int | None) -> None:
        shape = image.shape if len(image.shape) == 3 else (1, *image.shape)
        self.image, self.shape = image, shape
        self.nuclear = norm.inside == "nuclear"
        self.basis = np.eye(shape[1]) if n_classes is None else sum_zero_basis(n_classes)
        self.U = image.gates.reshape(image.n_rows, *shape[:2]) @ self.basis
        self.gram = (image.X @ image.X.T)[image.sample[:, None], image.sample]
        self.eye = np.eye(self.basis.shape[1])

    def forms(self, B: Floats) -> Floats:
        """Scores (m, b, k) of coefficients (b, k, q)."""
        found = self.image.X @ B.reshape(-1, B.shape[2]).T
        return np.asarray(found[self.image.sample].reshape(self.U.shape))

    def scores(self, B: Floats) -> Floats:
        """Margins (m,)."""
        return np.asarray(np.sum(self.U * self.forms(B), axis=(1, 2)))

    def adjoint(self, lam: Floats) -> Floats:
        """Dual point (b, k, q) of multipliers (m,)."""
        m, b, k = self.U.shape
        C = self.image.by_sample @ (lam[:, None] * self.U.reshape(m, -1))
        return np.asarray((C.T @ self.image.X).reshape(b, k, -1))

    def between(self, T: Floats) -> Floats:
        """Matrix (m, m) of `A(T A'lam)`."""
        left = np.swapaxes(self.U, 0, 1)
        turned = np.swapaxes(left @ T, 0, 1).reshape(len(self.U), -1)
        matrix = turned @ self.U.reshape(len(self.U), -1).T
        matrix *= self.gram
        return np.asarray(matrix)

    def start(self) -> _Point:
        m, b, k = self.U.shape
        lam = np.full(m, 1 / m)
        V = self.adjoint(lam)
        size = float(np.linalg.svd(V, compute_uv=False).max()) or 1.0
        if self.nuclear:
            t = 2 * size**2
            T = np.broadcast_to(self.eye / (b * k), (b, k, k)).copy()
            B, W = T @ V, t * self.eye - V @ np.swapaxes(V, 1, 2)
            room = t
        else:
            t, T = 1.0, np.broadcast_to(2 * size * self.eye, (b, k, k)).copy()
            B = V / (2 * size)
            W, room = self.eye - B @ np.swapaxes(B, 1, 2), 2 * size * k * b
        margins = self.scores(B)
        gamma = float(margins.min()) - room
        return _Point(lam, margins - gamma, gamma, T, W, B, t)

    def bounds(self, point: _Point) -> Best[_Point]:
        """Bounds of gamma."""
        own = np.linalg.svd(point.B, compute_uv=False)
        dual = np.linalg.svd(self.adjoint(point.lam), compute_uv=False)
        if self.nuclear:
            norm, above = float(own.sum()), float(dual.max())
        else:
            norm, above = float(own.max()), float(dual.sum())
        lower = float(self.scores(point.B).min()) / norm if norm > 0 else -np.inf
        return Best(lower, point, above / float(point.lam.sum()), point)


def solve_products(
    program: NormProgram, settings: Settings, n_classes: int | None = None
) -> NormPoint:
    """Solve a program of a spectral or nuclear norm, summed or compared over blocks.

    Parameters
    ----------
    program : NormProgram
        On an image of `Products`, whose columns of gates are the rows of one matrix or of several.
    settings : Settings
    n_classes : int, optional
        Number of rows of each matrix where an optimum may be taken whose rows sum to zero.

    Returns
    -------
    NormPoint
        As far as the bounds could be narrowed.
    """
    image = program.image
    assert isinstance(image, Products)
    # No norm of singular values changes as inputs are turned: those of few samples have few axes.
    axes, turned = np.linalg.qr(image.X.T)
    seen = replace(image, X=np.ascontiguousarray(turned.T), shape=(*image.shape[:-1], len(turned)))
    game = _Game(seen, program.norm, n_classes)
    watch = Watch(game.bounds, settings.tol / 2, PATIENCE, settings.progress)
    kind = _Nuclear if game.nuclear else _Spectral
    limit = settings.max_iterations or ITERATIONS
    follow(game.start(), partial(kind, game), watch, limit=limit)
    best = watch.best
    point = best.dual
    small = len(point.lam) + point.T.size <= FACE
    for _ in range(FACE_STEPS if game.nuclear and small and best.gap < NEAR else 0):
        point = _on_face(game, point)
        best = best.better(game.bounds(point))
    B = (game.basis @ best.primal.B @ axes.T).reshape(image.shape)
    return NormPoint(B, best.dual.lam, iterations=watch.best.iterations)


def _on_face(game: _Game, point: _Point) -> _Point:
    """Point of the nuclear game after a Newton step on the face of the optimum.

    With the margins of the support equal to gamma = t, V V' = t I and multipliers of sum 1, which
    hold at the optimum where T has full rank, no products of sides that vanish are left in the
    system: it is solved to rounding, by least squares where multipliers are not unique.
    """
    lam, T, V = point.lam, point.T, game.adjoint(point.lam)
    support = np.flatnonzero(lam * abs(point.gamma) > point.s * lam.max())
    m, eye = len(support), np.broadcast_to(game.eye, T.shape)
    own = symmetric(game.U[support, ..., :, None] * game.forms(V)[support, ..., None, :])
    own = own.reshape(m, -1)
    among = game.between(T)[np.ix_(support, support)]
    sums = np.concatenate([-np.ones(m), -eye.ravel() / 2])[:, None]
    matrix = np.block([[among, own], [own.T, np.zeros((T.size, T.size))]])
    matrix = np.block([[matrix, sums], [sums.T, np.zeros((1, 1))]])
    matrix[-1, m:] = 0.0
    off = (point.t * eye - V @ np.swapaxes(V, 1, 2)) / 2
    uneven = point.t - game.scores(T @ V)[support]
    right = np.concatenate([uneven, off.ravel(), np.array([lam.sum() - 1])])
    step = np.linalg.lstsq(matrix, right, rcond=RESOLUTION)[0]
    lam = lam.copy()
    lam[support] = np.clip(lam[support] + step[:m], 0.0, None)
    T = T + symmetric(step[m:-1].reshape(T.shape))
    return replace(point, lam=lam, T=T, B=T @ game.adjoint(lam), t=point.t + float(step[-1]))


class _System(System[_Point, _Target, _Point]):
    """What both games share: one length, for T and V make B together."""

    inner: ClassVar[float] = 0.95
    P: Floats  # inverse of the factor of W T that is linearised by

    def __init__(self, game: _Game, point: _Point) -> None:
        self.game, self.point = game, point
        self.slopes = point.s / point.lam
        self.factors = [np.linalg.inv(np.linalg.cholesky(part)) for part in (point.T, point.W)]

    def _factorise(self, matrix: Floats, borders: Floats) -> None:
        every = np.arange(len(matrix))
        matrix[every, every] += self.slopes
        scale = np.trace(matrix) / len(matrix) * 1e-15
        matrix[every, every] += scale
        self.factor = cho_factor(matrix, lower=True, overwrite_a=True, check_finite=False)
        self.borders = borders
        self.solved = cho_solve(self.factor, borders)

    def _of_pair(self, values: Floats, other: Floats) -> Floats:
        """`sym(P values other)` for stacks (..., b, k, k)."""
        return symmetric(self.P @ values @ other)

    def mu(self, step: _Point | None = None, lengths: Lengths = (0.0, 0.0)) -> float:
        at, a = self.point, min(lengths)
        lam, s, T, W = at.lam, at.s, at.T, at.W
        if step is not None:
            lam, s = lam + a * step.lam, s + a * step.s
            T, W = T + a * step.T, W + a * step.W
        return float(lam @ s + np.sum(T * W)) / int(len(lam) + T.shape[0] * T.shape[1])

    def predicting(self) -> _Target:
        return np.zeros_like(self.point.s), np.zeros_like(self.point.T)

    def correcting(self, affine: _Point, mu: float) -> _Target:
        of_pair = mu * self.P - self._of_pair(*self._ordered(affine))
        return mu - affine.s * affine.lam, of_pair

    def _ordered(self, step: _Point) -> tuple[Floats, Floats]:
        raise NotImplementedError

    def longest(self, step: _Point) -> Lengths:
        at = self.point
        length = min(longest_step(at.s, step.s), longest_step(at.lam, step.lam))
        for factor, by in zip(self.factors, (step.T, step.W), strict=True):
            length = min(length, longest_in_cone(factor, by))
        return length, length

    def moved(self, step: _Point, lengths: Lengths) -> _Point:
        at, a = self.point, min(lengths)
        T, lam = symmetric(at.T + a * step.T), at.lam + a * step.lam
        B = at.B + a * step.B
        if self.game.nuclear:
            B = T @ self.game.adjoint(lam)
        return _Point(
            lam, at.s + a * step.s, at.gamma + a * step.gamma, T,
            symmetric(at.W + a * step.W), B, at.t + a * step.t,
        )  # fmt: skip


class _Nuclear(_System):
    """Newton's system of the nuclear norm: `W = t I - V V'`, T its multiplier."""

    def __init__(self, game: _Game, point: _Point) -> None:
        super().__init__(game, point)
        self.P = np.swapaxes(self.factors[1], 1, 2) @ self.factors[1]
        self.V = game.adjoint(point.lam)
        self.Q = symmetric(game.U[..., :, None] * game.forms(self.V)[..., None, :])
        self.flat = self.Q.reshape(len(self.Q), -1)
        pushed = self._of_pair(self.Q, point.T).reshape(len(self.Q), -1)
        self.radial = self._of_pair(np.broadcast_to(game.eye, point.T.shape), point.T)
        self.c = self.flat @ self.radial.ravel()
        matrix = game.between(point.T) + 2 * (self.flat @ pushed.T)
        self._factorise(symmetric(matrix), np.column_stack([np.ones(len(matrix)), self.c]))

    def _ordered(self, step: _Point) -> tuple[Floats, Floats]:
        return step.W, step.T

    def solve(self, target: _Target) -> _Point:
        """Step towards products of s and lam, and of the pair."""
        wanted, of_pair = target
        game, at = self.game, self.point
        off = at.t * game.eye - self.V @ np.swapaxes(self.V, 1, 2) - at.W
        first_T = of_pair - at.T - self._of_pair(off, at.T)
        right = wanted / at.lam - game.scores(at.B) + at.gamma - self.flat @ first_T.ravel()
        first = cho_solve(self.factor, right)
        rows = np.column_stack([np.ones(len(first)), 2 * self.c]).T
        small = rows @ self.solved
        small[1, 1] -= _trace(self.radial)
        missing = np.array([1 - at.lam.sum(), 1 - _trace(at.T) - _trace(first_T)]) - rows @ first
        dgamma, dt = np.linalg.solve(small, missing)
        dlam = first + self.solved @ np.array([dgamma, dt])
        turned = np.tensordot(dlam, self.Q, 1)
        dW = dt * game.eye - 2 * turned + off
        dT = of_pair - at.T - self._of_pair(dW, at.T)
        ds = wanted / at.lam - at.s - self.slopes * dlam
        return _Point(dlam, ds, float(dgamma), dT, dW, np.zeros_like(at.B), float(dt))


class _Spectral(_System):
    """Newton's system of the spectral norm: `W = I - B B'`, T its multiplier, T B = V."""

    def __init__(self, game: _Game, point: _Point) -> None:
        super().__init__(game, point)
        self.P = P = np.swapaxes(self.factors[0], 1, 2) @ self.factors[0]
        B = point.B
        self.square = B @ np.swapaxes(B, 1, 2)
        left = np.swapaxes(np.swapaxes(game.U, 0, 1) @ P, 0, 1)
        self.Q = symmetric(left[..., :, None] * game.forms(B)[..., None, :])
        m, b, k = game.U.shape
        self.flat = self.Q.reshape(m, b, k * k)
        own = 2 * self.square + point.W
        self.operators = [
            lu_factor((np.kron(o, p) + np.kron(p, o)) / 2) for o, p in zip(own, P, strict=True)
        ]
        matrix = game.between(P)
        for h, operator in enumerate(self.operators):
            matrix -= 2 * (self.flat[:, h] @ lu_solve(operator, self.flat[:, h].T))
        self._factorise(symmetric(matrix), np.ones((m, 1)))

    def _ordered(self, step: _Point) -> tuple[Floats, Floats]:
        return step.T, step.W

    def _inverted(self, values: Floats) -> Floats:
        solved = [
            lu_solve(operator, one.ravel())
            for operator, one in zip(self.operators, values, strict=True)
        ]
        return symmetric(np.reshape(solved, values.shape))

    def solve(self, target: _Target) -> _Point:
        """Step towards products of s and lam, and of the pair."""
        wanted, of_pair = target
        game, at = self.game, self.point
        off = self.P @ (game.adjoint(at.lam) - at.T @ at.B)
        crossed = 2 * symmetric(at.B @ np.swapaxes(off, 1, 2))
        dT = self._inverted(of_pair - game.eye + self.square + crossed)
        dB = off - self.P @ dT @ at.B
        dlam, dgamma = np.zeros_like(at.lam), 0.0
        margins = game.scores(at.B)
        for _ in range(1 + REFINEMENTS):
            rest = wanted / at.lam - self.slopes * dlam
            rest = rest - margins - game.scores(dB) + at.gamma + dgamma
            first = cho_solve(self.factor, rest)
            missing = 1 - float(at.lam.sum() + dlam.sum() + first.sum())
            by = missing / float(self.solved.sum())
            change = first + by * self.solved[:, 0]
            more = self._inverted(2 * np.tensordot(change, self.Q, 1))
            dlam, dgamma, dT = dlam + change, dgamma + by, dT + more
            dB = dB + self.P @ (game.adjoint(change) - more @ at.B)
        dW = of_pair - at.W - self._of_pair(dT, at.W)
        ds = wanted / at.lam - at.s - self.slopes * dlam
        return _Point(dlam, ds, dgamma, dT, dW, dB, 0.0)


def _trace(matrices: Floats) -> float:
    """Sum of the traces of matrices (b, k, k)."""
    return float(np.trace(matrices, axis1=1, axis2=2).sum())
