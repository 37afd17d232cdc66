"""The solver `interior-point` on a set of samples that takes in those that it violates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from .arrays import Array, array_namespace, to_numpy
from .certificate import Certificate, certify
from .programs import MaxMarginProgram
from .refinement import PrimalDual
from .settings import Settings

__all__ = ["Attempt", "solve_on_working_set"]

Attempt = tuple[PrimalDual, Certificate, int]
"""Points, their certificate and the iterations that they took."""

# Measured on MNIST digits 0-4 against 5-9 with (H, C) = (100, 4): the first set, the gap to which
# early sets are solved, the margin above which a sample with no multiplier leaves the set, and
# the share of the set that the violators must fall below before it is solved to the tolerance.
FIRST_SET = 2000
LOOSE = 1e-2
FAR = 1.3
FEW = 0.02
# The working set never needed more than 8 rounds; it grows in all but the last few of them.
ROUNDS = 40


def solve_on_working_set(
    program: MaxMarginProgram,
    settings: Settings,
    solve_all: Callable[[MaxMarginProgram, Settings], Attempt],
) -> Attempt:
    """Solve on a set of samples that takes in the violators until there are none.

    `solve_all` solves the program of a set.

    Multipliers of a subset, padded with zeros, are multipliers of the whole program, so that the
    subset's lower bound of the optimum holds for all samples, and so does its proof that it is
    not separable; its coefficients are judged by their margins on all samples.
    """
    n_samples = program.n_samples
    # Any order of the samples would do; a fixed one makes the answer reproducible.
    order = np.random.default_rng(0).permutation(n_samples)
    rows = np.sort(order[: min(FIRST_SET, n_samples)])
    tol, iterations = LOOSE, 0
    for _ in range(ROUNDS):
        part = program.subset(_index(program, rows))
        answer, _, used = solve_all(part, replace(settings, tol=max(tol, settings.tol)))
        iterations += used
        dual = np.zeros(n_samples)
        dual[rows] = to_numpy(answer.dual)
        padded = PrimalDual(primal=answer.primal, dual=_like(program, dual))
        certificate = certify(program, padded.primal, padded.dual)
        if certificate.proves_optimality(settings.tol) or certificate.proves_inseparability():
            break
        margins = to_numpy(program.margins(answer.primal))
        smallest = margins[rows].min()
        if not smallest > 0:
            if len(rows) == n_samples:
                break
            rows = np.sort(order[: min(2 * len(rows), n_samples)])
            continue
        relative = margins / smallest
        outside = np.ones(n_samples, dtype=bool)
        outside[rows] = False
        violators = np.flatnonzero(outside & (relative < 1))
        if len(violators) <= FEW * len(rows):
            if tol <= settings.tol and len(violators) == 0:
                break
            tol = settings.tol
        worst = violators[np.argsort(relative[violators])][: len(rows)]
        stays = (relative[rows] < FAR) | (dual[rows] > 1e-3 * dual.max())
        rows = np.sort(np.concatenate([rows[stays], worst]))
    return padded, certificate, iterations


def _index(program: MaxMarginProgram, rows: np.ndarray) -> Array:
    xp = array_namespace(program.y)
    return xp.asarray(rows, device=program.y.device)


def _like(program: MaxMarginProgram, values: np.ndarray) -> Array:
    xp = array_namespace(program.y)
    return xp.asarray(values, dtype=program.y.dtype, device=program.y.device)
