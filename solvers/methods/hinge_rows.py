"""Programs of margins that are linear less hinges, by group lassos of as many rows as they need."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..certificates.status import Status
from ..programs.design import GatedDesign
from ..programs.hinge_program import Floats, HingeProgram, margins_of
from ..programs.max_margin import MaxMarginProgram
from .dispatch import solve
from .hinge_newton import HingePoint, HingeRun
from .settings import Settings

Flags = NDArray[np.bool_]

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


def solve_lassos(
    run: HingeRun, u: Floats, guess: tuple[Floats, Floats] | None = None
) -> Status | None:
    """Solve a program by group lassos of some linear margins.

    A margin is the smallest of linear ones, a row for each pattern of open hinges. The group lasso
    of the rows that count at the start is solved, then those that its solution violates are
    added, and those that count at the best point between all solutions so far, until none is: the
    answer is exact. As the lower bound rises, rows that are not active are left out. Multipliers of
    a sample's rows add up to its own, and weigh its patterns.

    Parameters
    ----------
    run : HingeRun
    u : (H, D) array
        Groups near the solution.
    guess : ((n,) array, (n, H) array), optional
        Multipliers and shares near it.

    Returns
    -------
    Status or None
        NOT_SEPARABLE or FAILED if there are no points.
    """
    program, rows, asked = run.program, _Rows(run.program), _FIRST
    products, samples = program.X @ u.T, np.arange(len(program.X))
    # Infinite as long as no point of positive margins is known.
    best = _Centre(np.zeros(u.shape), np.zeros(products.shape), math.inf)
    best = best.towards(program, u, products)
    if guess is not None:
        rows.add_mixtures(*guess)
        # Others come as they are violated.
        margins = program.margins(u)
        samples = np.flatnonzero(margins <= _NEARLY * max(float(np.min(margins)), 0.0))
    while run.solves < _MAX_ROUNDS and not run.spent:
        added = rows.add(products, samples)
        if run.solves and best.value < math.inf:
            close = margins_of(program, best.products) <= _CLOSE
            added += rows.add(best.products, np.flatnonzero(close))
        if not added and run.solves:
            if asked <= run.tight:
                break
            asked = max(_LOOSE * asked, run.tight)
        lasso = rows.lasso()
        # A set of samples that matter is kept here.
        solution = solve(lasso, settings=Settings(tol=asked, working_set_from=len(rows) + 1))
        run.solves, run.rows = run.solves + 1, len(rows)
        if solution.status not in (Status.SOLVED, Status.INACCURATE):
            # Fewer rows ask for less: what these prove inseparable is.
            separable = solution.status is not Status.NOT_SEPARABLE
            return Status.FAILED if separable else Status.NOT_SEPARABLE
        u = np.asarray(solution.primal)
        products = program.X @ u.T
        best = best.towards(program, u, products)
        now = rows.gathered(np.asarray(solution.dual), products)
        rose = run.take(HingePoint(best.u if best.value < math.inf else u, *now))
        if run.ended():
            break
        # Rows that are missing cost more than what is left to gain on those that are there.
        asked = max(min(_LOOSE * run.gap, asked), run.tight)
        held = lasso.margins(u)
        samples = np.flatnonzero(program.margins(u) < np.min(held))
        if rose:
            rows.leave_out(np.asarray(held), np.asarray(solution.dual), run.gap)
    return None
