"""Solver on a working set of samples, which takes in those that its own answers violate."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ...certificates.max_margin import Certificate, certify
from ...numerics.arrays import array_namespace, float_of, to_numpy
from ...programs.max_margin import MaxMarginProgram
from ..interior.group_starts import Start
from ..refinement import PrimalDual
from ..settings import Settings

log = logging.getLogger(__name__)

Attempt = tuple[PrimalDual, Certificate, int]
"""Points, their certificate and the iterations that were spent on them."""

# The first set, and the share of support vectors in it from which the program counts as crowded:
# its answer needs so many samples that a small set gains nothing (measured: 10, 23 and 25 % on
# two digits against each other, half on five against five, 60 to 70 % behind random gates).
FIRST = 300
CROWDED = 0.4
# Multipliers of early answers that are a smaller share of the largest one may still vanish.
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
# The share of newcomers up to which the last answer is where the next set of a crowded program
# begins (a quarter of the iterations saved at 4,000 samples), and that of others, which lose by it.
NEW, FEW_NEW = 0.25, 0.0
# For a first set by a guess: the margin up to which samples are in it, relative to the one that its
# multipliers hold (with 1.1 a round less than with 1, on digits), and the number of these from
# which on the program counts as crowded, since a guess tells nothing of a set that is random.
CLOSE_BY = 1.1
MANY_SUPPORTS = 2 * FIRST
# A bound against rounds that rounding keeps alive: sets of digits took 2 to 9 of them.
ROUNDS = 60


def solve_on_working_set(
    program: MaxMarginProgram,
    settings: Settings,
    solve_all: Callable[[MaxMarginProgram, Settings, Start | None, np.ndarray | None], Attempt],
    guess: PrimalDual | None = None,
) -> Attempt:
    """Solve on a set of samples that takes in the violators until there are none.

    `solve_all` solves the program of a set, from where the last set's answer leads it; its last
    argument are the multipliers known so far, zero on samples that are new or no support vectors.
    With a `guess` of coefficients and multipliers, the first set is what these hold or bring near.

    Multipliers of a subset, padded with zeros, are multipliers of the whole program, so that the
    subset's lower bound of the optimum holds for all samples, and so does its proof that it is
    not separable; its coefficients are judged by their margins on all samples.
    """
    working, iterations, start = _WorkingSet(program.n_samples, settings.tol), 0, None
    known: np.ndarray | None = None
    if guess is not None:
        known = _supported(to_numpy(guess.dual))
        working.resume(to_numpy(program.margins(guess.primal)), known)
    for _ in range(ROUNDS):
        rows = working.rows
        part, inner = _part(program, rows), replace(settings, tol=working.tol)
        answer, _, used = solve_all(part, inner, start, None if known is None else known[rows])
        iterations += used
        padded = _padded(program, answer, rows)
        certificate = certify(program, padded.primal, padded.dual)
        log.debug("%d of %d samples: gap %.2g", len(rows), program.n_samples, certificate.gap)
        if certificate.proves_optimality(settings.tol) or certificate.proves_inseparability():
            break
        margins, dual = to_numpy(program.margins(answer.primal)), to_numpy(padded.dual)
        known = _supported(dual)
        if not working.advance(margins, dual):
            break
        newcomers = len(np.setdiff1d(working.rows, rows, assume_unique=True))
        share = NEW if working.crowded else FEW_NEW
        near = newcomers <= share * len(working.rows) and margins[rows].min() > 0
        start = _start(program, padded, working.rows) if near else None
    return padded, certificate, iterations


class _WorkingSet:
    """Samples `rows` of the next round, in rising order, and its gap `tol`."""

    def __init__(self, n_samples: int, tol: float) -> None:
        # Any order of the samples would do; a fixed one makes the answer reproducible.
        self._order = np.random.default_rng(0).permutation(n_samples)
        self._left = np.zeros(n_samples, dtype=bool)
        self._is_first, self.crowded = n_samples > FIRST, False
        self._finest = tol
        self._begin(FIRST, LOOSE)

    def resume(self, margins: np.ndarray, dual: np.ndarray) -> None:
        """Begin with the samples that a guess says matter, given its margins and multipliers."""
        supports = dual > SUPPORT * dual.max()
        level = float(dual @ margins)
        if not (level > 0 and supports.any()):
            return
        self.rows = np.flatnonzero(supports | (margins < CLOSE_BY * level / dual.sum()))
        self._is_first, self.crowded = False, bool(supports.sum() > MANY_SUPPORTS)
        self.tol = max(CROWDED_LOOSE if self.crowded else LOOSE, self._finest)

    def advance(self, margins: np.ndarray, dual: np.ndarray) -> bool:
        """Go on from an answer's margins and multipliers of all samples, both (n,), if it helps."""
        rows = self.rows
        supports = dual[rows] > SUPPORT * dual.max()
        smallest = margins[rows].min()
        is_first, self._is_first = self._is_first, False
        if is_first and supports.sum() > CROWDED * len(rows):
            self.crowded = True
            self._begin(len(margins) if len(margins) < MANY else CROWD, CROWDED_LOOSE)
        elif not smallest > 0:
            self._begin(2 * len(rows), self.tol)
            return len(self.rows) > len(rows)
        else:
            return self._exchange(margins / self._level(margins, dual, smallest), supports)
        return True

    def _level(self, margins: np.ndarray, dual: np.ndarray, smallest: float) -> float:
        """Margin below which samples violate: that of the multipliers, or, later, the smallest."""
        loose = self.crowded and self.tol > self._finest
        return max(smallest, float(dual @ margins / dual.sum())) if loose else smallest

    def _begin(self, size: int, tol: float) -> None:
        self.rows = np.sort(self._order[:size])
        self.tol = self._finest if size >= len(self._order) else max(tol, self._finest)

    def _exchange(self, relative: np.ndarray, supports: np.ndarray) -> bool:
        """Take in the worst violators, at most as many as there are, and tighten once few come.

        Samples of large margin leave, and stay for good when they come back: a set that loses
        them twice could go round in circles.
        """
        rows = self.rows
        outside = np.ones(len(relative), dtype=bool)
        outside[rows] = False
        violators = np.flatnonzero((relative < 1) & outside)
        worst = violators[np.argsort(relative[violators])][: len(rows)]
        if len(worst) == 0 and self.tol <= self._finest:
            return False
        if len(worst) == 0 or (self.crowded and len(worst) <= FEW * len(rows)):
            self.tol = self._finest
        elif len(worst) <= FEW * len(rows):
            self.tol = max(TIGHTER * self.tol, self._finest)
        stays = (relative[rows] < FAR) | supports | self._left[rows]
        self._left[rows[~stays]] = True
        self.rows = np.sort(np.concatenate([rows[stays], worst]))
        return True


def _supported(dual: np.ndarray) -> np.ndarray:
    """Multipliers (n,) of the support vectors alone."""
    return np.where(dual > SUPPORT * dual.max(), dual, 0.0)


def _part(program: MaxMarginProgram, rows: np.ndarray) -> MaxMarginProgram:
    xp = array_namespace(program.y)
    return program.subset(xp.asarray(rows, device=program.y.device))


def _start(program: MaxMarginProgram, answer: PrimalDual, rows: np.ndarray) -> Start | None:
    """Start for the set `rows`: at the optimum groups' norms are the kernel weights."""
    xp = array_namespace(program.y)
    lam = answer.dual[xp.asarray(rows, device=program.y.device)]
    d = program.design.group_norms(answer.primal)
    return Start(lam=lam, d=d) if float_of(xp.sum(lam)) > 0 and float_of(xp.sum(d)) > 0 else None


def _padded(program: MaxMarginProgram, answer: PrimalDual, rows: np.ndarray) -> PrimalDual:
    """Extend the answer of a part by zeros to one of the whole program."""
    dual = np.zeros(program.n_samples)
    dual[rows] = to_numpy(answer.dual)
    xp = array_namespace(program.y)
    return PrimalDual(
        primal=answer.primal, dual=xp.asarray(dual, dtype=program.y.dtype, device=program.y.device)
    )
