"""The solver `interior-point` on a set of samples that takes in those that it violates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from .arrays import array_namespace, to_numpy
from .certificate import Certificate, certify
from .programs import MaxMarginProgram
from .refinement import PrimalDual
from .settings import Settings

__all__ = ["Attempt", "solve_on_working_set"]

Attempt = tuple[PrimalDual, Certificate, int]
"""Points, their certificate and the iterations that they took."""

# The first set, and the share of support vectors in it from which the program counts as crowded:
# its answer needs so many samples that a small set gains nothing (measured: 10, 23 and 25 % on
# two digits against each other, half on five against five, 60 to 70 % behind random gates).
SCOUTS = 300
CROWDED = 0.4
# Of the largest multiplier: those of early answers that are smaller may still vanish.
SUPPORT = 1e-3
# A crowded program is solved on all samples below the first of these, and from a set of the
# second size on above it.
MANY = 3000
CROWD = 2000
# Measured on MNIST digits, linear and with (H, C) = (100, 4): the gap to which early sets are
# solved and its next ones, of which the large sets of a crowded program have but the tolerance;
# the margin above which a sample with no multiplier leaves the set; the share of the set that the
# violators must fall below before the gap tightens.
LOOSE, CROWDED_LOOSE = 3e-2, 1e-2
TIGHTER = 1e-2
FAR = 1.3
FEW = 0.02
# A bound against rounds that rounding keeps alive: sets of digits took 2 to 9 of them.
ROUNDS = 60


def solve_on_working_set(
    program: MaxMarginProgram,
    settings: Settings,
    solve_all: Callable[[MaxMarginProgram, Settings, np.ndarray | None], Attempt],
) -> Attempt:
    """Solve on a set of samples that takes in the violators until there are none.

    `solve_all` solves the program of a set; its third argument are the multipliers of the set
    before it, zero on samples that are new or no support vectors.

    Multipliers of a subset, padded with zeros, are multipliers of the whole program, so that the
    subset's lower bound of the optimum holds for all samples, and so does its proof that it is
    not separable; its coefficients are judged by their margins on all samples.
    """
    working, iterations = _WorkingSet(program.n_samples, settings.tol), 0
    known: np.ndarray | None = None
    for _ in range(ROUNDS):
        rows = working.rows
        start = None if known is None else known[rows]
        answer, _, used = solve_all(_part(program, rows), replace(settings, tol=working.tol), start)
        iterations += used
        padded = _padded(program, answer, rows)
        certificate = certify(program, padded.primal, padded.dual)
        if certificate.proves_optimality(settings.tol) or certificate.proves_inseparability():
            break
        dual = to_numpy(padded.dual)
        known = np.where(dual > SUPPORT * dual.max(), dual, 0.0)
        if not working.advance(to_numpy(program.margins(answer.primal)), dual):
            break
    return padded, certificate, iterations


class _WorkingSet:
    """The samples `rows` of the next round, in rising order, and its gap `tol`."""

    def __init__(self, n_samples: int, tol: float) -> None:
        # Any order of the samples would do; a fixed one makes the answer reproducible.
        self._order = np.random.default_rng(0).permutation(n_samples)
        self._left = np.zeros(n_samples, dtype=bool)
        self._scouting, self._crowded = n_samples > SCOUTS, False
        self._finest = tol
        self._begin(SCOUTS, LOOSE)

    def advance(self, margins: np.ndarray, dual: np.ndarray) -> bool:
        """Go on from an answer's margins and multipliers of all samples, both (n,), if it helps."""
        rows = self.rows
        supports = dual[rows] > SUPPORT * dual.max()
        smallest = margins[rows].min()
        scouting, self._scouting = self._scouting, False
        if scouting and supports.sum() > CROWDED * len(rows):
            self._crowded = True
            self._begin(len(margins) if len(margins) < MANY else CROWD, CROWDED_LOOSE)
        elif not smallest > 0:
            self._begin(2 * len(rows), self.tol)
            return len(self.rows) > len(rows)
        else:
            return self._exchange(margins / smallest, supports)
        return True

    def _begin(self, size: int, tol: float) -> None:
        self.rows = np.sort(self._order[:size])
        self.tol = self._finest if size >= len(self._order) else max(tol, self._finest)

    def _exchange(self, relative: np.ndarray, supports: np.ndarray) -> bool:
        """Take in the worst violators, at most as many as there are, and tighten once few come.

        Samples of large margin leave, and stay for good when they come back: a set that loses
        them twice could go round in circles.
        """
        rows = self.rows
        violators = np.flatnonzero(relative < 1)
        worst = violators[np.argsort(relative[violators])][: len(rows)]
        if len(worst) == 0 and self.tol <= self._finest:
            return False
        if len(worst) == 0 or (self._crowded and len(worst) <= FEW * len(rows)):
            self.tol = self._finest
        elif len(worst) <= FEW * len(rows):
            self.tol = max(TIGHTER * self.tol, self._finest)
        stays = (relative[rows] < FAR) | supports | self._left[rows]
        self._left[rows[~stays]] = True
        self.rows = np.sort(np.concatenate([rows[stays], worst]))
        return True


def _part(program: MaxMarginProgram, rows: np.ndarray) -> MaxMarginProgram:
    xp = array_namespace(program.y)
    return program.subset(xp.asarray(rows, device=program.y.device))


def _padded(program: MaxMarginProgram, answer: PrimalDual, rows: np.ndarray) -> PrimalDual:
    """The answer of a part as one of the whole program."""
    dual = np.zeros(program.n_samples)
    dual[rows] = to_numpy(answer.dual)
    xp = array_namespace(program.y)
    return PrimalDual(
        primal=answer.primal, dual=xp.asarray(dual, dtype=program.y.dtype, device=program.y.device)
    )
