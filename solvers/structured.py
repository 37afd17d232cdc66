"""The solver `interior-point`: the game played on all samples or on a growing working set."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from .arrays import Array, array_namespace, to_numpy
from .certificate import Certificate, certify
from .group_kernels import group_kernels
from .interior_point import Game, play
from .programs import MaxMarginProgram
from .refinement import PrimalDual, balance_support, cancel_blocks
from .settings import Settings
from .solution import Solution, conclude, support_vectors

__all__ = ["solve_interior_point"]

# Measured on MNIST digits 0-4 against 5-9 with (H, C) = (100, 4): the first set, the gap to which
# early sets are solved, the margin above which a sample with no multiplier leaves the set, and
# the share of the set that the violators must fall below before it is solved to the tolerance.
FIRST_SET = 2000
LOOSE = 1e-2
FAR = 1.3
FEW = 0.02
# The working set never needed more than 8 rounds; it grows in all but the last few of them.
ROUNDS = 40


def solve_interior_point(program: MaxMarginProgram, settings: Settings) -> Solution:
    """Solve `program` by the dual interior point and certify the answer on every sample.

    Parameters
    ----------
    program : MaxMarginProgram
        On NumPy arrays or torch tensors, in float64; the answer is of the same kind.
    settings : Settings
        `max_iterations` bounds the iterations of each inner run (default 100).

    Returns
    -------
    Solution
        `SOLVED`, `NOT_SEPARABLE`, or what the certificate can prove where rounding decides.
    """
    start = time.perf_counter()
    if program.n_samples < settings.working_set_from:
        answer, certificate, iterations = _solve_all(program, settings)
    else:
        answer, certificate, iterations = _solve_on_working_set(program, settings)
    return conclude(
        program,
        answer.primal,
        answer.dual,
        tol=settings.tol,
        iterations=iterations,
        seconds=time.perf_counter() - start,
        solver="interior-point",
        known=certificate,
    )


def _solve_all(
    program: MaxMarginProgram, settings: Settings
) -> tuple[PrimalDual, Certificate, int]:
    """The game on every sample, refined on the features where its certificate falls short.

    Returns the points, their certificate on the features, and the iterations.
    """
    # The certificate on the features may lose a little of what Gram arithmetic promised.
    game = play(group_kernels(program), replace(settings, tol=0.5 * settings.tol))
    answer = PrimalDual(primal=_coefficients(program, game), dual=game.dual)
    certificate = certify(program, answer.primal, answer.dual)
    if not certificate.proves_optimality(settings.tol):
        answer = _refine(program, game, answer, certificate)
        certificate = certify(program, answer.primal, answer.dual)
    return answer, certificate, game.iterations


def _coefficients(program: MaxMarginProgram, game: Game) -> Array:
    """`V[g] = d[g] v_g(lam)`: the network that attains the game's lower bound."""
    return game.primal_d[program.design.group][:, None] * program.dual_blocks(game.primal_lam)


def _refine(
    program: MaxMarginProgram, game: Game, answer: PrimalDual, certificate: Certificate
) -> PrimalDual:
    """The better of `answer` and of what the features make of it, primal and dual apart."""
    if not certificate.proves_separability():
        cancelled = cancel_blocks(program, game.dual)
        if certify(program, dual=cancelled).proves_inseparability():
            return PrimalDual(primal=answer.primal, dual=cancelled)
    balanced = balance_support(
        program, game.primal_d, support_vectors(program, answer.primal, answer.dual)
    )
    if balanced is None:
        return answer
    refined = certify(program, balanced.primal, balanced.dual)
    primal = balanced.primal if refined.objective < certificate.objective else answer.primal
    dual = balanced.dual if refined.dual_objective > certificate.dual_objective else answer.dual
    return PrimalDual(primal=primal, dual=dual)


def _solve_on_working_set(
    program: MaxMarginProgram, settings: Settings
) -> tuple[PrimalDual, Certificate, int]:
    """Solve on a set of samples that takes in the violators until there are none.

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
        answer, _, used = _solve_all(part, replace(settings, tol=max(tol, settings.tol)))
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
