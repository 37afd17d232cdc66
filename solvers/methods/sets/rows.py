"""Solver of norm programs on a working set of margins, which takes in those that it violates."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ...programs.images import Floats
from ...programs.norm_program import NormPoint, NormProgram, certify_norm
from ..settings import Settings

log = logging.getLogger(__name__)

# Margins of the first set, the share of a set that newcomers are at most, and the one that they
# fall below before it tightens. Where sets might double, norms of ten digits took up to twice as
# long.
FIRST = 500
MOST = 0.4
FEW = 0.02
# Gaps to which sets are solved: at first, and the share of the last one that the next is. Of ten
# digits' 4,500 margins, 300 to 800 are in the last sets of the norms.
LOOSE = 0.06
TIGHTER = 1e-4
# Multipliers that are a smaller share of the largest, on margins so many times the least, leave,
# but no more often than this, and only while sets are solved loosely: optima that are not unique
# leave other margins violated each time. 500 images' spectral norm took 206 steps so, and takes 60.
SUPPORT = 1e-3
FAR = 1.2
LEAVES = 3
# A bound against rounds that rounding keeps alive: sets took 6 to 12 of them.
ROUNDS = 60


def solve_on_rows(
    program: NormProgram,
    settings: Settings,
    solve_part: Callable[[NormProgram, Settings, Floats], NormPoint],
    start: Floats | None = None,
) -> NormPoint:
    """Solve on a set of margins that takes in the violators until there are none.

    Multipliers of a part, padded with zeros, are multipliers of the whole program: a lower bound of
    its optimum and a proof that nothing separates hold for all margins. Coefficients are judged by
    all margins.

    Parameters
    ----------
    program : NormProgram
        Without equalities.
    settings : Settings
    solve_part : callable
        Solver of the program of a set, whose image is of `Products`; its last argument are the
        multipliers that the last answer has for these margins, zero on those that are new or matter
        little.
    start : (m,) array, optional
        Multipliers near the optimum: the first set are the margins that have some.

    Returns
    -------
    NormPoint
        Of the last set: the first that nothing separates, or that no margin violates.
    """
    image = program.image
    m = image.n_rows
    if m < 2 * FIRST:
        every = replace(program, image=image.taken(np.arange(m)))
        return solve_part(every, settings, np.zeros(m))
    if start is None or not np.any(start > 0):
        lam, tol = np.zeros(m), max(LOOSE, settings.tol)
        even = image.adjoint(np.full(m, 1 / m))
        rows = _least(image.scores(program.norm.steepest(even)), np.zeros(m, dtype=bool), FIRST)
    else:
        lam, tol = start, settings.tol
        rows = np.flatnonzero(lam > SUPPORT * lam.max())
    iterations, left = 0, np.zeros(m, dtype=np.int64)
    for _ in range(ROUNDS):
        part = replace(program, image=image.taken(rows))
        known = np.where(lam > SUPPORT * lam.max(), lam, 0.0)[rows]
        found = solve_part(part, replace(settings, tol=tol), known)
        iterations += found.iterations
        lam, B = np.zeros(m), found.B
        if B is None or found.lam is None:
            return NormPoint(None, None, iterations=iterations)
        lam[rows] = np.clip(found.lam, 0.0, None)
        certificate = certify_norm(program, B, lam)
        log.debug("%d of %d margins: gap %.2g to %.0g", len(rows), m, certificate.gap, tol)
        if certificate.proves_optimality(settings.tol) or certificate.proves_inseparability():
            break
        margins, held = image.scores(B), np.zeros(m, dtype=bool)
        held[rows] = True
        least = float(margins[rows].min())
        if not least > 0:
            break
        new = _least(margins, held, math.ceil(MOST * len(rows)), below=least)
        loose = tol >= LOOSE
        if len(new) <= FEW * len(rows):
            if len(new) == 0 and tol <= settings.tol:
                break
            tol = max(TIGHTER * tol, settings.tol)
        if loose:
            far = held & (margins > FAR * least) & (lam < SUPPORT * lam.max()) & (left < LEAVES)
            left += far
            held &= ~far
        held[new] = True
        rows = np.flatnonzero(held)
    return NormPoint(B, lam, iterations=iterations)


def _least(margins: Floats, held: np.ndarray, most: int, below: float = np.inf) -> np.ndarray:
    """Indices of the least margins outside the set, `most` at most, in rising order."""
    outside = np.flatnonzero(~held & (margins < below))
    return np.sort(outside[np.argsort(margins[outside], kind="stable")[:most]])
