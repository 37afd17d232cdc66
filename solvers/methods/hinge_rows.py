"""Programs of margins that are linear less hinges, by group lassos of as many rows as they need."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..certificates.answer import Answer
from ..certificates.status import Status
from ..numerics.checks import require_positive, require_shape, require_tolerance
from ..programs.design import GatedDesign
from ..programs.hinge_program import (
    Floats,
    HingeCertificate,
    HingeProgram,
    certify_hinge,
    margins_of,
)
from ..programs.max_margin import MaxMarginProgram
from .dispatch import solve
from .hinge_newton import HingePoint, polished
from .settings import Settings

Flags = NDArray[np.bool_]

# Asked of each group lasso: the bounds of the program are as near to each other as those of the
# last one.
_TIGHT = 1e-10
# Gap of a lasso beside that of the program before it, and the largest.
_LOOSE, _FIRST = 1e-2, 1e-3
# Rows are left out of margins so far above 1, as a share of the gap too, and of multipliers so
# small beside the largest; or of multipliers, beside the others, below what their margin has
# above 1, of which one vanishes at the solution. Near it, each is left out once.
_ABOVE, _OF_GAP, _SMALL, _IDLE, _ONCE = 1e-2, 0.2, 1e-3, 3.0, 1e-2
# Margins at the best point, and at a start, whose rows there are taken in; points between that and
# the last one.
_CLOSE, _NEARLY, _BETWEEN = 1.005, 1.1, np.linspace(0.05, 1.0, 20)
# Group lassos; 4 to 30 were needed.
_MAX_ROUNDS = 200
# Gaps at which Newton's method is tried, and how much smaller than at the last trial.
_NEAR, _NEARER = 1e-2, 0.3


@dataclass(frozen=True, eq=False)
class HingeSolution(Answer):
    """A solved `HingeProgram`.

    Attributes
    ----------
    u : (H, D) array
        At smallest margin 1 if there is a solution.
    multipliers : (n,) array
        lam >= 0, adding up to the optimum.
    shares : (n, H) array
        Slopes in [0, 1] that stand for the hinges: 0 or 1 off the kinks, dual variables on them.
    certificate : HingeCertificate
    status : Status
        SOLVED, INACCURATE where the gap is above `tol`, NOT_SEPARABLE where it is proved that no
        margins are positive, FAILED where nothing was found.
    solves : int
        Group lassos; 0 where Newton's method led from the start to the solution.
    rows : int
        Of the last one.
    steps : int
        Newton steps to the point from a group lasso, or from the start; 0 where they gave nothing.
    seconds : float
    """

    u: Floats
    multipliers: Floats
    shares: Floats
    certificate: HingeCertificate
    status: Status
    solves: int
    rows: int
    steps: int
    seconds: float


class _Rows:
    """Linear margins, each that of a sample on one pattern of open hinges."""

    def __init__(self, program: HingeProgram) -> None:
        self._program = program
        self._present: dict[tuple[int, bytes], Flags] = {}
        self._left: set[tuple[int, bytes]] = set()

    def __len__(self) -> int:
        return len(self._present)

    def add(self, products: Floats, samples: NDArray[np.int64]) -> int:
        """Add the patterns of some samples at products (n, H); return how many are new."""
        opened = (products > 0) & (self._program.hinges > 0)
        before = len(self)
        for sample in samples:
            self._present.setdefault((int(sample), opened[sample].tobytes()), opened[sample])
        return len(self) - before

    def add_mixtures(self, lam: Floats, shares: Floats) -> None:
        """Add patterns whose mixtures have these shares (n, H), of samples with a multiplier.

        Those of hinges whose shares are above each of a sample's own, which are nested.
        """
        hinged = self._program.hinges > 0
        for sample in np.flatnonzero(lam > 0):
            own = np.where(hinged[sample], shares[sample], 0.0)
            levels = np.unique(np.clip(own, 0.0, 1.0))
            for pattern in (own > level for level in levels[levels < 1]):
                self._present.setdefault((int(sample), pattern.tobytes()), pattern)

    def leave_out(self, margins: Floats, lam: Floats, gap: float) -> None:
        """Leave out rows that are not active, where the bounds are apart by this gap."""
        above = margins / np.min(margins) - 1
        idle = (above > min(_ABOVE, _OF_GAP * gap)) & (lam <= _SMALL * np.max(lam))
        idle |= _IDLE * lam < above * np.mean(lam)
        for key, is_idle in zip(list(self._present), idle, strict=True):
            if is_idle and (gap > _ONCE or key not in self._left):
                self._left.add(key)
                del self._present[key]

    @property
    def _samples(self) -> NDArray[np.int64]:
        return np.array([sample for sample, _ in self._present])

    @property
    def _patterns(self) -> Flags:
        return np.array(list(self._present.values()))

    def lasso(self) -> MaxMarginProgram:
        """State the program of these rows."""
        program, rows = self._program, self._samples
        Z = program.linear[rows] - self._patterns * program.hinges[rows]
        group = np.arange(program.n_groups)
        return MaxMarginProgram(GatedDesign(program.X[rows], Z, group), np.ones(len(rows)))

    def gathered(self, lam: Floats, products: Floats) -> tuple[Floats, Floats]:
        """Return multipliers (n,) and shares (n, H) of multipliers of the rows."""
        rows, patterns = self._samples, self._patterns
        totals, shares = np.zeros(len(products)), np.zeros(products.shape)
        np.add.at(totals, rows, lam)
        np.add.at(shares, rows, lam[:, None] * patterns)
        held = totals > 0
        shares[held] /= totals[held, None]
        shares[~held] = products[~held] > 0
        return totals, shares


class _Centre(NamedTuple):
    """Groups (H, D) at smallest margin 1, their products (n, H) and the sum of their norms."""

    u: Floats
    products: Floats
    value: float

    def towards(self, program: HingeProgram, u: Floats, products: Floats) -> _Centre:
        """Return the best point on the way to other groups, at smallest margin 1."""
        best = self
        for share in _BETWEEN:
            between = (1 - share) * self.products + share * products
            smallest = float(np.min(margins_of(program, between)))
            if smallest > 0:
                groups = ((1 - share) * self.u + share * u) / smallest
                value = float(np.linalg.norm(groups, axis=1).sum())
                if value < best.value:
                    best = _Centre(groups, between / smallest, value)
        return best


def solve_hinge(
    program: HingeProgram,
    start: Floats | None = None,
    *,
    guess: tuple[Floats, Floats] | None = None,
    tol: float = 1e-8,
    ends_at: float | None = None,
    max_seconds: float = math.inf,
) -> HingeSolution:
    """Solve a program of margins that are linear less hinges.

    Such a margin is the smallest of linear ones, a row for each pattern of open hinges. The group
    lasso of the rows that count at the start is solved, then those that its solution violates are
    added, and those that count at the best point between all solutions so far, until none is: the
    answer is exact. As the lower bound rises, rows that are not active are left out. Multipliers of
    a sample's rows add up to its own, and weigh its patterns. Once the bounds are near, or from a
    `guess` at once, Newton's method on the active set ends it, to rounding where the solution is
    unique.

    Parameters
    ----------
    program : HingeProgram
    start : (H, D) array, optional
        Groups near the solution.
    guess : ((n,) array, (n, H) array), optional
        Multipliers and shares near it, such as those of a program of few other coefficients.
    tol : float
        Relative duality gap that counts as solved, in (0, 1).
    ends_at : float, optional
        Gap at which it ends, by default 1e-10 or `tol`, whichever is smaller.
    max_seconds : float
        Seconds after which no further group lasso is begun.

    Returns
    -------
    HingeSolution

    Raises
    ------
    ValueError
        If `start` or `guess` has another shape, or is not finite, a number is out of range, or
        memory cannot hold the program.

    Examples
    --------
    Two units, of which the second must not open on the first sample:

    >>> import numpy as np
    >>> from solvers import HingeProgram, solve_hinge
    >>> X = np.array([[1.0, 0.0], [1.0, 1.0]])
    >>> program = HingeProgram(X, np.eye(2), 1 - np.eye(2))
    >>> solution = solve_hinge(program)
    >>> solution.status.name, round(solution.certificate.objective, 6)
    ('SOLVED', 2.414214)
    """
    require_tolerance(tol)
    if max_seconds != math.inf:
        require_positive("max_seconds", max_seconds)
    began = time.perf_counter()
    shape = (program.n_groups, program.X.shape[1])
    u = np.zeros(shape) if start is None else start
    require_shape("start", u, shape, "one row a group")
    tight = min(_TIGHT, tol) if ends_at is None else ends_at
    rows, found, solves, status = _Rows(program), None, 0, Status.FAILED
    asked, tried, steps = _FIRST, _NEAR, 0
    products, samples = program.X @ u.T, np.arange(len(program.X))
    # Infinite as long as no point of positive margins is known.
    best = _Centre(np.zeros(shape), np.zeros(products.shape), math.inf)
    lower, best = 0.0, best.towards(program, u, products)
    if guess is not None:
        require_shape("guess[0]", guess[0], program.linear.shape[:1], "one a sample")
        require_shape("guess[1]", guess[1], program.linear.shape, "one share a hinge")
        if not all(np.all(np.isfinite(array)) for array in (u, *guess)):
            raise ValueError("`start` and `guess` must be finite")
        near = polished(program, HingePoint(u, *guess))
        if near is not None and near.certificate.gap <= tight:
            return _concluded(program, near.point, Status.SOLVED, tol, (0, 0, near.steps), began)
        rows.add_mixtures(*guess)
        # Others come as they are violated.
        margins = program.margins(u)
        samples = np.flatnonzero(margins <= _NEARLY * max(float(np.min(margins)), 0.0))
    while solves < _MAX_ROUNDS and time.perf_counter() - began <= max_seconds:
        added = rows.add(products, samples)
        if solves and best.value < math.inf:
            close = margins_of(program, best.products) <= _CLOSE
            added += rows.add(best.products, np.flatnonzero(close))
        if not added and solves:
            if asked <= tight:
                break
            asked = max(_LOOSE * asked, tight)
        lasso = rows.lasso()
        # A set of samples that matter is kept here.
        solution = solve(lasso, settings=Settings(tol=asked, working_set_from=len(rows) + 1))
        solves += 1
        if solution.status not in (Status.SOLVED, Status.INACCURATE):
            # Fewer rows ask for less: what these prove inseparable is.
            separable = solution.status is not Status.NOT_SEPARABLE
            found, status = None, Status.FAILED if separable else Status.NOT_SEPARABLE
            break
        u = np.asarray(solution.primal)
        products = program.X @ u.T
        best = best.towards(program, u, products)
        now = rows.gathered(np.asarray(solution.dual), products)
        bound = certify_hinge(program, u, *now).dual_objective
        rose = bound > lower
        if rose or found is None:
            lower, dual = bound, now
        found = HingePoint(best.u if best.value < math.inf else u, *dual)
        gap = certify_hinge(program, *found).gap
        if gap <= tried:
            tried = _NEARER * gap
            near = polished(program, found)
            if near is not None and near.certificate.gap <= min(gap, tight):
                found, steps = near.point, near.steps
                break
        if gap <= tight:
            break
        # Rows that are missing cost more than what is left to gain on those that are there.
        asked = max(min(_LOOSE * gap, asked), tight)
        held = lasso.margins(u)
        samples = np.flatnonzero(program.margins(u) < np.min(held))
        if rose:
            rows.leave_out(np.asarray(held), np.asarray(solution.dual), gap)
    return _concluded(program, found, status, tol, (solves, len(rows), steps), began)


def _concluded(
    program: HingeProgram,
    found: HingePoint | None,
    status: Status,
    tol: float,
    counts: tuple[int, int, int],
    began: float,
) -> HingeSolution:
    """Judge the last points, at smallest margin 1 and multipliers that add up to the optimum."""
    u, lam, shares = found or _nothing(program)
    certificate = certify_hinge(program, u, lam, shares)
    if certificate.smallest_margin > 0:
        peak = float(np.max(np.linalg.norm(program.blocks(lam, shares), axis=1)))
        u, lam = u / certificate.smallest_margin, lam / peak if peak > 0 else lam
        certificate = certify_hinge(program, u, lam, shares)
        status = Status.SOLVED if certificate.gap <= tol else Status.INACCURATE
    else:
        u, lam, shares = _nothing(program)
    seconds = time.perf_counter() - began
    return HingeSolution(u, lam, shares, certificate, status, *counts, seconds)


def _nothing(program: HingeProgram) -> HingePoint:
    (n_samples, n_inputs), n_groups = program.X.shape, program.n_groups
    return HingePoint(
        np.full((n_groups, n_inputs), math.nan),
        np.full(n_samples, math.nan),
        np.full((n_samples, n_groups), math.nan),
    )
