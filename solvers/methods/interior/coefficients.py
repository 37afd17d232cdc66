"""Interior point in the coefficients: margin programs of the norms whose balls are matrix cones.

Played as a game, so that both sides have interior points whatever the data:

    gamma = max { min A(B) : N(B) <= 1, E(B) = 0 } = min { N*(A'lam + E'nu) : lam in the simplex }.

Unknowns are the coefficients, not the margins, of which there may be many more: the Newton matrix
is `A' diag(lam / s) A` plus the ball's own block.

References
----------
C. Helmberg, F. Rendl, R. Vanderbei, H. Wolkowicz, "An interior-point method for semidefinite
programming", 1996 (the direction).
"""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np
from scipy.linalg import block_diag, lapack, qr, solve_triangular

from ...certificates.max_margin import RESOLUTION
from ...norms.balls import (
    Blocks,
    Cone,
    EntryLine,
    Line,
    Linearised,
    Tilted,
    TiltedLine,
    bordered,
    centred,
    is_largest,
    linearised,
)
from ...numerics.arrays import cholesky_solve, symmetric_product
from ...numerics.central_path import Best, Lengths, Path, System, Watch, follow_path
from ...numerics.memory import require_memory
from ...numerics.step_length import longest_step, symmetric
from ...numerics.summation import TINY
from ...programs.coordinates import ClassCoordinates, coordinates_of
from ...programs.images import (
    Floats,
    Map,
    Products,
    RelativeMargins,
    Room,
    Rows,
    dense_rows,
    sum_zero_basis,
)
from ...programs.norm_program import DEPENDENT, NormPoint, NormProgram, best_point
from ..settings import Settings

log = logging.getLogger(__name__)

ITERATIONS = 100
# Behind gates, where no margins are multiplied out, their matrix is the better one up to so many a
# coefficient: of 500 digits behind 5 gates, 4,500 margins and 2,700 coefficients, it takes 22
# seconds to a gap of 3e-9, that of the coefficients 12 seconds to 2e-7.
MARGINS = 2
# Margins that are few however many coefficients there are.
FEW = 300
# Matrices of the coefficients, or of the margins, that are held at once.
MATRICES = 5
# With one, nuclear norms under equalities stop at a gap of 2e-8, with three below 1e-8.
REFINEMENTS = 3
# Corrections of coefficients in a box: with none, ten digits' joint program stops at 1e-6.
BOX_REFINEMENTS = 2
# Products of s and lam that are off by such a share of their mean need no correction.
SETTLED = 0.02
# Residuals, as shares of right-hand sides, that are none: at first, near the optimum, and between
# these as a share of the gap.
RESIDUALS = (1e-9, 1e-13)
RESIDUAL = 1e-6
# Ridges, in shares of the diagonal of a Newton matrix, tried in this order.
RIDGES = (0.0, 1e-15, 1e-14, 1e-13, 1e-12, 1e-11, 1e-10, 1e-9, 1e-8, 1e-7, 1e-6)
# Bounds come from norms, and not from the cone, once they are as close as this share.
NEAR = 1e-4
# What single precision may lose of Newton's matrix of margins, as a share of the least that is
# added to its diagonal: products of s and lam miss what they aim at by no more than that.
LOST = 1e-3
# Squared sums of inputs, beside the largest, below which these are uneven: products of margins
# know them to half of the digits.
UNEVEN = 1e-8
# Rows times squared columns of a root of Newton's matrix up to which it is factorised with care: an
# iteration takes .1 seconds then, and .6 at seven times as many.
CAREFUL = 2e8
# Stop once so many iterations have not narrowed the bounds by a tenth.
PATIENCE = 6
# From this gap on, margins are left out whose multipliers, over their slacks, are this share of
# what the largest has over the margin itself, if at most this share of them is left. By this share
# the radius then exceeds the norm of what the others weigh.
CLOSE = 0.1
DISTANT = 0.003
WORTHWHILE = 0.8
SPARE = 0.01


@dataclass(frozen=True, eq=False)
class _Point:
    """A point of the game: B and gamma, with slacks `s = A(B) - gamma`, against lam; or a step.

    `cone` holds B at radius 1 with its multiplier, or the dual point V at radius t with B as a part
    of the multiplier.
    """

    B: Floats
    gamma: float
    s: Floats
    lam: Floats
    cone: Cone

    def mu(self) -> float:
        return self.gap() / (len(self.s) + int(self.cone.Z.shape[0] * self.cone.Z.shape[1]))

    def gap(self) -> float:
        """Products of both sides, summed."""
        return float(self.s @ self.lam) + self.cone.complementarity()

    def residual(self) -> float:
        """Share of a right-hand side that a solution may leave, the less the nearer the optimum."""
        gap = self.gap() / (abs(self.gamma) or 1.0)
        return float(np.clip(RESIDUAL * gap, RESIDUALS[1], RESIDUALS[0]))


_Target = tuple[Floats, Floats]
"""Products of s and lam, and the right-hand side of the multiplier."""


class _Game(Path[_Point, _Point]):
    """A program on flat coefficients, with what the loop asks of it."""

    def __init__(self, program: NormProgram, by_coefficients: bool = False) -> None:
        self.by_coefficients = by_coefficients
        norm, equalities = program.norm, program.equalities
        self.program, self.norm = program, norm
        size = int(np.prod(program.image.shape))
        cost = (program.image.n_rows + size) * size**2
        careful = by_coefficients and equalities is None and not norm.is_factored
        self.careful = careful and cost <= CAREFUL
        self.coordinates = coordinates_of(program.image, norm, equalities, uneven=self.careful)
        image: Map = program.image
        if self.coordinates is not None:
            image = self.coordinates
            if equalities is not None:
                equalities = Rows(self.coordinates.lowered(equalities.matrix))
        self.image, self.equalities = image, equalities
        self.blocks = Blocks.of(norm, image.shape)
        self.largest = is_largest(norm)
        self._require_memory()
        self.room = Room()
        # Orthonormal rows of the span of E, and columns of its zeros, or no columns: all.
        self.E, self.Q = np.zeros((0, self.blocks.size)), np.eye(0)
        self.still = np.zeros(0, dtype=np.int64)
        if equalities is not None:
            _, s, W = np.linalg.svd(equalities.flat)
            rank = int(np.sum(s > DEPENDENT * s[0]))
            self.E, self.Q = W[:rank], W[rank:].T
        elif self.careful:
            self.Q, self.still = self._turned()

    def _turned(self) -> tuple[Floats, np.ndarray]:
        """Orthonormal columns of coefficients, and which of them no margin changes along.

        These are sums over classes. Beside what the margins weigh, the ball's part of them is lost
        where both stand in one number.
        """
        *units, K, q = (1, *self.image.shape)[-3:]
        own, H = self.program.image, int(np.prod(units))
        if not isinstance(own, RelativeMargins) or K < own.n_classes:
            return np.eye(self.blocks.size), np.zeros(0, dtype=np.int64)
        basis = np.column_stack([sum_zero_basis(K), np.full(K, K**-0.5)])
        index = np.arange(self.blocks.size).reshape(H, K, q)
        whole = np.kron(np.eye(H), np.kron(basis, np.eye(q)))
        return np.asarray(whole, dtype=float), index[:, -1].ravel()

    def _require_memory(self) -> None:
        size, m = self.blocks.size, self.image.n_rows
        b, p, q = self.blocks.place.shape
        held = size**2
        if self.equalities is None and self._by_margins(m):
            dense = self.products is None and not self.by_entries
            held = b * (p * q) ** 2 + m * size + m**2 if dense else m**2
        require_memory(
            MATRICES * held,
            f"the interior point's matrices of {size} coefficients and {m} margins",
            "give fewer inputs, gates or classes",
        )

    def _by_margins(self, n_rows: int) -> bool:
        if self.by_coefficients:
            return False
        gated = self.products is not None and len(self.blocks.place) > 1
        most = self.blocks.size * (MARGINS if gated else 1)
        if self.largest:
            return self.by_entries and n_rows <= self.blocks.size
        return n_rows <= max(most, FEW)

    def is_uneven(self) -> bool:
        """True if some inputs are so small beside others that products of margins lose them.

        Newton's matrix in the coefficients keeps them: there each has rows of its own size.
        """
        sizes = self.program.image.absolute().adjoint(np.ones(self.image.n_rows))
        return bool(sizes[sizes > 0].min(initial=math.inf) ** 2 < UNEVEN * sizes.max() ** 2)

    @property
    def in_margins(self) -> bool:
        """True if Newton's matrix is better one of margins: they are fewer, and the ball's
        operator, which near the optimum is too uneven to be inverted, need not be.
        """
        return self._by_margins(self.image.n_rows + len(self.E))

    @property
    def leaves_out(self) -> bool:
        """True where Newton's matrix is one of products of margins: fewer of them cost less."""
        return self.in_margins and self.by_entries

    @property
    def by_entries(self) -> bool:
        """True if blocks are entries, and margins products."""
        entries = self.norm.blocks == "entries" and self.equalities is None
        return entries and isinstance(self.image, Products)

    @cached_property
    def rows(self) -> Floats:
        """(m + e, size) margins multiplied out, and an orthonormal basis of the equalities."""
        if self.coordinates is not None:
            return np.concatenate([self.coordinates.dense(), self.E])
        return np.concatenate([dense_rows(self.program.image), self.E])

    @cached_property
    def seen(self) -> Floats:
        """(m, size) margins in the columns of Q."""
        found = self.rows @ self.Q
        found[:, self.still] = 0.0
        return np.asarray(found)

    @cached_property
    def products(self) -> ClassCoordinates | None:
        """The coordinates, where margins are products of classes and inputs in whole blocks."""
        own, plain = self.coordinates, self.equalities is None and self.norm.inside != "l2"
        return own if isinstance(own, ClassCoordinates) and plain else None

    def rows_of(self, B: Floats) -> Floats:
        """Margins (m + e,) of flat coefficients, and of the equalities' basis."""
        margins = self.scores(B)
        return np.concatenate([margins, self.E @ B]) if len(self.E) else margins

    def combined(self, multipliers: Floats) -> Floats:
        """Flat coefficients of multipliers (m + e,): the transpose of `rows_of`."""
        m = self.image.n_rows
        found = self.adjoint(multipliers[:m])
        return found + multipliers[m:] @ self.E if len(self.E) else found

    def lifted(self, B: Floats) -> Floats:
        """Coefficients in the shape of the program's image."""
        if self.coordinates is not None:
            return self.coordinates.lifted(B)
        return B.reshape(self.image.shape)

    def scores(self, B: Floats) -> Floats:
        return self.image.scores(B.reshape(self.image.shape))

    def adjoint(self, lam: Floats) -> Floats:
        return self.image.adjoint(lam).ravel()

    def system(self, point: _Point) -> _GameSystem:
        """Newton's system at a point, in the unknowns that suit the game."""
        if isinstance(point.cone, Tilted):
            return _TiltedSystem(self, point, point.cone)
        if self.largest and self.in_margins:
            return _BoxSystem(self, point, point.cone)
        kind = _MarginSystem if self.in_margins else _CoefficientSystem
        return kind(self, point, point.cone)

    def near(self, point: _Point, gap: float) -> np.ndarray | None:
        if gap >= CLOSE or not self.leaves_out:
            return None
        near = point.lam * abs(point.gamma) > DISTANT * point.lam.max() * point.s
        return np.flatnonzero(near) if np.mean(near) <= WORTHWHILE else None

    def part(self, rows: np.ndarray) -> _Game:
        return _Game(replace(self.program, image=self.program.image.taken(rows)))

    def restricted(self, point: _Point, rows: np.ndarray) -> _Point:
        found = replace(point, s=point.s[rows], lam=point.lam[rows])
        if self.largest:  # the next step finds the dual point anew
            return found
        C = self.blocks.stack(self.adjoint(found.lam))
        t = (1 + SPARE) * float(np.abs(C).max())
        return replace(found, cone=replace(point.cone, C=C, t=t))

    def with_all(self, best: Best[_Point], rows: np.ndarray) -> Best[_Point]:
        def whole(point: _Point) -> _Point:
            lam = np.zeros(self.image.n_rows)
            lam[rows] = point.lam
            return replace(point, s=self.scores(point.B) - point.gamma, lam=lam)

        found = self.bounds(whole(best.primal)).better(self.bounds(whole(best.dual)))
        return replace(found, iterations=best.iterations)

    def start(self) -> _Point:
        m = self.image.n_rows
        lam = np.full(m, 1 / m)
        V = self.adjoint(lam)
        stack = self.blocks.stack(V)
        b, p, q = stack.shape
        size = float(np.linalg.svd(stack, compute_uv=False).max()) or 1.0
        eye = np.broadcast_to(np.eye(p + q), (b, p + q, p + q))
        zero = np.zeros(self.blocks.size)
        if self.norm.is_factored:
            Z, i = bordered(-stack / 2, size / p**0.5), np.arange(p)
            Z[:, i, i] = size * p**0.5
            return _Point(
                zero, -size * m**0.5, np.full(m, size * m**0.5), lam,
                Tilted(np.zeros_like(stack), np.full(p, 1 / p), Z),
            )  # fmt: skip
        if self.largest:
            cone = Cone(np.zeros_like(stack), 1.0, bordered(-stack / 2, size))
            gamma = -size * m**0.5
        else:
            cone = Cone(stack, 2 * size, eye / self.blocks.order)
            gamma = -2 * size * m / self.blocks.order
        return _Point(zero, gamma, np.full(m, -gamma), lam, cone)

    def restored(self, point: _Point) -> _Point:
        """Point whose multipliers give the dual point of its cone again.

        Weights that spread leave of `A'lam` what they round of a step. Least squares of what is off
        in units of its own rounding, and of relative changes of multipliers.
        """
        V = self.blocks.flat(-2 * point.cone.corner() if self.largest else point.cone.C)
        off = np.delete((V - self.adjoint(point.lam)) @ self.Q, self.still)
        weighted = np.delete(self.seen, self.still, axis=1) * point.lam[:, None]
        units = RESOLUTION * np.abs(weighted).sum(axis=0) + TINY
        every = np.eye(len(units))
        Q, R, order = _qr(np.vstack([weighted / units, every]), mode="economic")
        change = Q[: len(weighted)] @ _solve(R, (off / units)[order], trans="T")
        # None leaves more than half of a multiplier.
        change *= min(1.0, 0.5 / (float(np.abs(change).max()) or 1.0))
        return replace(point, lam=point.lam * (1 + change))

    def equality_part(self, point: _Point) -> Floats:
        """Part (size,) in the span of E that brings `A'lam` next to the ball's own dual point."""
        V = point.cone.C if not self.largest else -2 * point.cone.corner()
        return (self.E @ (self.blocks.flat(V) - self.adjoint(point.lam))) @ self.E

    def bounds(self, point: _Point) -> Best[_Point]:
        """Bounds of gamma, and the point that gives them."""
        lower, upper = self._bounds(point)
        best = Best(lower, point, upper, point)
        if self.careful:
            point = self.restored(point)
            lower, upper = self._bounds(point)
            best = best.better(Best(lower, point, upper, point))
        return best

    def _bounds(self, point: _Point) -> tuple[float, float]:
        if isinstance(point.cone, Tilted):
            margin, norm = float((point.s + point.gamma).min()), point.cone.value()
            lower = margin / norm if norm > 0 else -math.inf
            return lower, point.cone.dual_value() / float(point.lam.sum())
        if not self.careful and point.gap() > NEAR * abs(point.gamma):
            # A radius bounds the norm of what is in the cone, the trace of Z that of what is in Z.
            in_cone, in_Z = point.cone.t, float(np.trace(point.cone.Z, axis1=1, axis2=2).sum())
            norm, dual = (in_cone, in_Z) if self.largest else (in_Z, in_cone)
            return float((point.s + point.gamma).min()) / norm, dual / float(point.lam.sum())
        B = point.B.reshape(self.image.shape)
        norm = self.norm.value(B)
        # What violates the equalities is charged by the certificate; here it is small.
        margins = self.scores(point.B) if self.careful else point.s + point.gamma
        lower = float(margins.min()) / norm if norm > 0 else -math.inf
        V = self.adjoint(point.lam) + self.equality_part(point)
        upper = self.norm.dual.value(V.reshape(self.image.shape)) / float(point.lam.sum())
        return lower, upper


def solve_coefficients(program: NormProgram, settings: Settings) -> NormPoint:
    """Solve a program by the interior point in its coefficients.

    Along some coefficients no margin changes, and leaving them out lengthens no norm: it works on
    the coordinates of the others, see `coordinates_of`.

    Parameters
    ----------
    program : NormProgram
        Of a norm that `balls.takes`.
    settings : Settings

    Returns
    -------
    NormPoint
        As far as the bounds could be narrowed.
    """
    game = _Game(program)
    best = _followed(game, settings)
    found = _point(game, best)
    # Bounds that cross are wrong.
    if abs(best.gap) <= settings.tol or not game.is_uneven():
        return found
    again = _Game(program, by_coefficients=True)
    if not (again.careful or game.in_margins):
        return found
    return best_point(program, [found, _point(again, _followed(again, settings))])


def _point(game: _Game, best: Best[_Point]) -> NormPoint:
    """Return the best points of a game as one of its program."""
    nu = None
    if game.equalities is not None:
        wanted = game.equality_part(best.dual)
        nu = np.asarray(np.linalg.lstsq(game.equalities.flat.T, wanted, rcond=DEPENDENT)[0], float)
    return NormPoint(game.lifted(best.primal.B), best.dual.lam, nu, best.iterations)


def _followed(game: _Game, settings: Settings) -> Best[_Point]:
    """Return the best points on the central path of a game."""
    # Charges take half of the tolerance.
    run = partial(
        Watch[_Point], enough=settings.tol / 2, patience=PATIENCE, progress=settings.progress
    )
    return follow_path(game, game.start(), run, limit=settings.max_iterations or ITERATIONS)


class _GameSystem(System[_Point, _Target, _Point]):
    """Newton's system at a point, whose right-hand sides are of s and lam and of the multiplier."""

    inner = 0.95
    correctors = 2
    line: Line | EntryLine

    def __init__(self, game: _Game, point: _Point) -> None:
        self.game, self.point = game, point

    def mu(self, step: _Point | None = None, lengths: Lengths = (0.0, 0.0)) -> float:
        return (self.point if step is None else self.moved(step, lengths)).mu()

    def predicting(self) -> _Target:
        return np.zeros_like(self.point.s), np.zeros_like(self.line.P)

    def correcting(self, affine: _Point, mu: float) -> _Target:
        return mu - affine.s * affine.lam, mu * self.line.P - self.line.correction(affine.cone)

    def centring(self, target: _Target, step: _Point, lengths: Lengths, mu: float) -> _Target:
        products = (self.point.s + lengths[0] * step.s) * (self.point.lam + lengths[1] * step.lam)
        of_cone = self.line.centring(step.cone, self._of_cone(lengths), mu)
        return target[0] + centred(products, mu), target[1] + of_cone

    def longest(self, step: _Point) -> Lengths:
        primal, dual = self._of_cone(self.line.longest(step.cone))
        primal = min(primal, longest_step(self.point.s, step.s))
        return primal, min(dual, longest_step(self.point.lam, step.lam))

    def moved(self, step: _Point, lengths: Lengths) -> _Point:
        point, (primal, dual) = self.point, lengths
        cone = point.cone.moved(step.cone, *self._of_cone(lengths))
        return _Point(
            B=point.B + primal * step.B,
            gamma=point.gamma + primal * step.gamma,
            s=point.s + primal * step.s,
            lam=point.lam + dual * step.lam,
            cone=cone,
        )

    def _of_cone(self, lengths: Lengths) -> Lengths:
        """Swap the sides of a game that holds the dual point in its cone."""
        return lengths if self.game.largest else lengths[::-1]


class _CoefficientSystem(_GameSystem):
    """Newton's system in the coefficients."""

    line: Linearised | EntryLine

    def __init__(self, game: _Game, point: _Point, cone: Cone) -> None:
        super().__init__(game, point)
        self.cone, self.line = cone, linearised(cone)
        blocks = game.blocks
        self.weights = point.lam / point.s
        borders = [self._reduced(game.adjoint(self.weights))]
        diagonal = [float(self.weights.sum())]
        own = self.line.operator() if game.largest else self.line.inverse()
        if not game.largest:
            self.inverse = own
            h, c = self.line.radial()
            self.h = h
            g = blocks.flat(self._inverted(h))
            borders.append(self._reduced(np.zeros_like(g), g))
            diagonal.append(c - float(np.sum(blocks.stack(g) * h)))
        self.F = np.column_stack(borders)
        self.G = self.F.copy()
        self.G[:, 0] *= -1
        self.newton = self._newton(own)
        self.KF = self.newton.solve(self.F)
        self.small = self.G.T @ self.KF
        self.small[np.arange(len(diagonal)), np.arange(len(diagonal))] += diagonal

    def _newton(self, own: Floats) -> _Factored | _Rooted:
        """Factorise Newton's matrix, `own` the ball's blocks of it."""
        game = self.game
        if game.careful:
            roots = np.sqrt(self.weights)[:, None] * game.seen, game.blocks.root(own) @ game.Q
            return _Rooted(np.vstack(roots))
        matrix = game.image.gram(self.weights, game.room)
        game.blocks.add(own, matrix)
        if len(game.Q):
            matrix = game.Q.T @ matrix @ game.Q
        return _Factored(matrix, game.room, self.point.residual())

    def _reduced(self, of_margins: Floats, *own: Floats) -> Floats:
        """Coordinates of a sum in the columns of Q; no margin changes along the still ones."""
        Q, still = self.game.Q, self.game.still
        values = sum(own, start=of_margins)
        if len(Q) == 0:
            return values
        found = Q.T @ values
        found[still] = Q[:, still].T @ sum(own, start=np.zeros_like(values))
        return np.asarray(found)

    def _inverted(self, stack: Floats) -> Floats:
        """Inverse of the ball's operator on blocks (b, p, q)."""
        flat = stack.reshape(len(stack), -1, 1)
        return np.asarray((self.inverse @ flat).reshape(stack.shape))

    def solve(self, target: _Target) -> _Point:
        """Step towards products of s and lam, and a multiplier."""
        wanted, of_cone = target
        game, point, blocks = self.game, self.point, self.game.blocks
        pull = wanted / point.s
        p = self.cone.C.shape[1]
        corner = of_cone[:, :p, p:]
        small = [1 - float(np.sum(pull))]
        if game.largest:
            own = [2 * blocks.flat(corner)]
        else:
            rest = -2 * corner - blocks.stack(point.B)  # dB at dV = 0
            pushed = self._inverted(rest)
            own = [-blocks.flat(self.cone.C), blocks.flat(pushed)]
            trace = float(np.einsum("bii->", of_cone))
            small.append(trace - 1 + float(np.sum(self.h * pushed)))
        first = self.newton.solve(self._reduced(game.adjoint(pull), *own))
        z = np.linalg.solve(self.small, np.array(small) - self.G.T @ first)
        dB = first + self.KF @ z
        dB = game.Q @ dB if len(game.Q) else dB
        dgamma = float(z[0])
        ds = game.scores(dB) - dgamma
        dlam = pull - point.lam - self.weights * ds
        if game.largest:
            dC, dt = blocks.stack(dB), 0.0
        else:
            dt = float(z[1])
            dC = self._inverted(blocks.stack(dB) - rest - dt * self.h)
        dZ = self.line.multiplier_step(bordered(dC, dt), of_cone)
        return _Point(dB, dgamma, ds, dlam, Cone(dC, dt, dZ))


class _MarginSystem(_GameSystem):
    """Newton's system of a sum of dual norms in the multipliers: `S = diag(s / lam) + A op A'`.

    op is the ball's operator on the dual point V = A'lam, whose image is B.
    """

    line: Linearised | EntryLine

    def __init__(self, game: _Game, point: _Point, cone: Cone) -> None:
        super().__init__(game, point)
        self.cone, self.line = cone, linearised(cone)
        self.m, n_equal = len(point.s), len(game.E)
        self.slopes = np.concatenate([point.s / point.lam, np.zeros(n_equal)])
        matrix = self._matrix()
        every = np.arange(len(matrix))
        matrix[every, every] += self.slopes
        self.newton = _Factored(matrix, game.room, point.residual())
        self.h, self.c = self.line.radial()
        every = np.concatenate([-np.ones(self.m), np.zeros(n_equal)])
        self.F = np.column_stack([every, game.rows_of(game.blocks.flat(self.h))])
        self.SF = self.newton.solve(self.F)
        self.small = self.F.T @ self.SF
        self.small[1, 1] -= self.c

    def _matrix(self) -> Floats:
        """Matrix `A op A'`, of equalities too."""
        game = self.game
        if isinstance(game.image, Products) and game.by_entries:
            return game.image.gram_of_rows(self.line.operator(), LOST * float(self.slopes.min()))
        if game.products is not None and isinstance(self.line, Line):
            return game.products.gram_of_margins(self.line.P, self.cone.Z)
        place = game.blocks.place
        rows = np.swapaxes(game.rows[:, place.reshape(len(place), -1)], 0, 1)  # (b, m, p q)
        pushed = np.swapaxes(rows @ self.line.operator(), 0, 1)
        flat = np.swapaxes(rows, 0, 1).reshape(len(pushed), -1)
        return symmetric(pushed.reshape(len(pushed), -1) @ flat.T)

    def solve(self, target: _Target) -> _Point:
        """Step towards products of s and lam, and a multiplier."""
        wanted, of_cone = target
        game, point, blocks = self.game, self.point, self.game.blocks
        p = self.cone.C.shape[1]
        rest = -2 * of_cone[:, :p, p:] - blocks.stack(point.B)  # dB at dV = 0
        right = -game.rows_of(blocks.flat(rest))
        right[: self.m] += wanted / point.lam - point.s
        right[self.m :] -= game.E @ point.B
        trace = float(np.einsum("bii->", of_cone))
        first = self.newton.solve(right)
        z = np.linalg.solve(self.small, self.F.T @ first - np.array([0.0, trace - 1]))
        # The operator would magnify the rounding of A'(lam + dlam) - C.
        found = first - self.SF @ z
        dlam, dC, dt = found[: self.m], blocks.stack(game.combined(found)), float(z[1])
        dB = blocks.flat(rest + self.line.pushed(dC) + dt * self.h)
        ds = game.scores(dB) - float(z[0])
        dZ = self.line.multiplier_step(bordered(dC, dt), of_cone)
        return _Point(dB, float(z[0]), ds, dlam, Cone(dC, dt, dZ))


class _BoxSystem(_GameSystem):
    """Newton's system of the largest entry in the multipliers: `S = diag(s / lam) + A op^-1 A'`.

    Near the optimum op^-1 of entries inside the box magnifies the rounding of `A'lam`, which is 0
    there. So B is found with the multipliers and corrected until the rows hold, not computed from
    the multipliers at the end.
    """

    line: EntryLine

    def __init__(self, game: _Game, point: _Point, cone: Cone) -> None:
        super().__init__(game, point)
        self.line = EntryLine.at(cone)
        self.inverse = self.line.inverse().ravel()
        self.slopes = point.s / point.lam
        assert isinstance(game.image, Products)
        matrix = game.image.gram_of_rows(self.inverse, LOST * float(self.slopes.min()))
        matrix[np.diag_indices(len(matrix))] += self.slopes
        # The optimal multipliers are next to its null space. As their sum is known, a multiple of
        # the matrix of ones may be added.
        self.added = float(np.median(np.diag(matrix)))
        matrix += self.added
        self.factor = _Factored(matrix, game.room, point.residual()).factor
        self.ones = cholesky_solve(self.factor, np.ones(len(matrix)))

    def solve(self, target: _Target) -> _Point:
        """Step towards products of s and lam, and a multiplier."""
        wanted, of_cone = target
        game, point = self.game, self.point
        corner = 2 * of_cone[:, 0, 1]
        dB, lam, dgamma = self.inverse * corner, np.zeros_like(point.lam), 0.0
        seen = game.scores(dB) if np.any(corner) else np.zeros_like(lam)
        settled = SETTLED * point.mu()
        for done in range(1 + BOX_REFINEMENTS):
            rest = wanted / point.lam - self.slopes * lam - seen + dgamma
            if done > 0 and float(np.abs(rest * point.lam).max()) <= settled:
                break
            missing = 1 - float(lam.sum())
            first = cholesky_solve(self.factor, rest + self.added * missing)
            by = (missing - float(first.sum())) / float(self.ones.sum())
            change = first + by * self.ones
            lam, dgamma = lam + change, dgamma + by
            dB = dB + self.inverse * game.adjoint(change)
            seen = game.scores(dB)
        dC = game.blocks.stack(dB)
        dZ = self.line.multiplier_step(bordered(dC, 0.0), of_cone)
        ds = seen - dgamma
        return _Point(dB, dgamma, ds, lam - point.lam, Cone(dC, 0.0, dZ))


class _TiltedSystem(_GameSystem):
    """Newton's system of the norm "muon": weights t are unknown too, and the trace theta of Z."""

    line: TiltedLine

    def __init__(self, game: _Game, point: _Point, cone: Tilted) -> None:
        super().__init__(game, point)
        self.line = TiltedLine.at(cone)
        self.weights, self.p = point.lam / point.s, len(cone.t)
        size, place = game.blocks.size, game.blocks.place.ravel()
        every = np.concatenate([place, size + np.arange(self.p)])
        matrix = np.empty((size + self.p, size + self.p))
        matrix[np.ix_(every, every)] = self.line.operator()
        matrix[:size, :size] += game.image.gram(self.weights, game.room)
        self.Q = None
        if len(game.Q):
            self.Q = block_diag(game.Q, np.eye(self.p))
            matrix = self.Q.T @ matrix @ self.Q
        self.newton = _Factored(matrix, game.room, point.residual())
        a = np.concatenate([game.adjoint(self.weights), np.zeros(self.p)])
        t = np.concatenate([np.zeros(size), np.ones(self.p)])
        self.F = self._reduced(np.column_stack([a, t]))
        self.G = self.F * [-1.0, 1.0]
        self.KF = self.newton.solve(self.F)
        self.small = self.G.T @ self.KF
        self.small[0, 0] += float(self.weights.sum())

    def _reduced(self, values: Floats) -> Floats:
        return values if self.Q is None else self.Q.T @ values

    def solve(self, target: _Target) -> _Point:
        """Step towards products of s and lam, and a multiplier."""
        wanted, of_cone = target
        game, point, p = self.game, self.point, self.p
        cone = self.line.cone
        pull = wanted / point.s
        right = game.adjoint(pull) + 2 * game.blocks.flat(of_cone[:, :p, p:])
        whole = np.concatenate([right, np.diagonal(of_cone[0])[:p]])
        first = self.newton.solve(self._reduced(whole))
        wanted = np.array([1 - float(np.sum(pull)), 1 - float(cone.t.sum())])
        z = np.linalg.solve(self.small, wanted - self.G.T @ first)
        found = first + self.KF @ z
        found = found if self.Q is None else self.Q @ found
        dB, dt, dgamma = found[: game.blocks.size], found[game.blocks.size :], float(z[0])
        ds = game.scores(dB) - dgamma
        dlam = pull - point.lam - self.weights * ds
        step = Tilted(game.blocks.stack(dB), dt, np.zeros_like(cone.Z), 0.0)
        dZ = self.line.multiplier_step(step.M, of_cone)
        return _Point(dB, dgamma, ds, dlam, replace(step, Z=dZ))


class _Factored:
    """Cholesky factor of a symmetric matrix, with the least ridge that it takes.

    Where optima are not unique the matrix is flat along them to rounding, and any step will do.

    Raises
    ------
    numpy.linalg.LinAlgError
        If no ridge helps.
    """

    def __init__(self, matrix: Floats, room: Room, residual: float) -> None:
        self.matrix, self.residual = matrix, residual
        self.diagonal = np.diag(matrix).copy()
        every = np.arange(len(matrix))
        for ridge in RIDGES:
            # In Fortran order the transpose is free.
            raised = room.array("factor", *matrix.shape).T
            raised[:] = matrix.T
            raised[every, every] += ridge * self.diagonal
            self.factor, failed = lapack.dpotrf(raised, lower=1, clean=0, overwrite_a=1)
            if failed == 0:
                return
            log.debug("ridge %.0e is too small", ridge)
        raise np.linalg.LinAlgError("the matrix is not positive definite")

    def solve(self, right: Floats) -> Floats:
        """Solve for a vector or the columns of a matrix, and refine while anything is left."""
        scale = 1 / np.sqrt(self.diagonal)
        scale = scale[:, None] if right.ndim == 2 else scale
        size = self.residual * np.linalg.norm(scale * right, axis=0)
        found = cholesky_solve(self.factor, right)
        for _ in range(REFINEMENTS):
            rest = right - symmetric_product(self.matrix.T, found)
            if np.all(np.linalg.norm(scale * rest, axis=0) <= size):
                break
            found = found + cholesky_solve(self.factor, rest)
        return np.asarray(found)


# Follow pivots. What is not finite goes on to where steps are found to lead nowhere.
_qr = partial(qr, pivoting=True, check_finite=False)
_solve = partial(solve_triangular, check_finite=False)


class _Rooted:
    """Factor of J'J by a QR of J, whose rows and columns may have any sizes.

    Rows in falling order of size, and pivoted columns, keep what is small in each.

    References
    ----------
    A. J. Cox, N. J. Higham, "Stability of Householder QR factorization for weighted least squares
    problems", 1998.
    """

    def __init__(self, J: Floats) -> None:
        self.scale = 1 / np.linalg.norm(J, axis=0)
        self.J = J * self.scale
        rows = np.argsort(-np.abs(self.J).max(axis=1), kind="stable")
        R, self.order = _qr(self.J[rows], mode="r")
        self.R = R[: J.shape[1]]

    def solve(self, right: Floats) -> Floats:
        """Solve for a vector or the columns of a matrix, refined."""
        scale = self.scale[:, None] if right.ndim == 2 else self.scale
        found, rest = np.zeros_like(right), scale * right
        for _ in range(1 + REFINEMENTS):
            step = _solve(self.R, rest[self.order], trans="T")
            found[self.order] += _solve(self.R, step)
            rest = scale * right - self.J.T @ (self.J @ found)
        return np.asarray(scale * found)
