"""Solver `interior-point`: the game played on samples and groups, refined on the features."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ..certificates.max_margin import Certificate, certify, gap_between
from ..certificates.solution import Solution, conclude, support_vectors
from ..numerics.arrays import (
    Array,
    array_namespace,
    as_float64,
    is_sparse,
    is_torch_array,
    mirror_lower,
    to_numpy,
)
from ..numerics.central_path import Best
from ..numerics.memory import require_memory
from ..numerics.threads import few_threads
from ..programs.max_margin import MaxMarginProgram
from ..programs.scaling import equilibrated
from .backends.daqp import solve_few_dimensions
from .interior.game import play
from .interior.group_kernels import GroupKernels, group_kernels
from .interior.group_starts import Start
from .refinement import PrimalDual, balance_support, cancel_blocks
from .settings import Settings

if TYPE_CHECKING:
    from .sets.working import Attempt

# Square matrices that live at the same time: Gram matrix, Newton matrix, its factor.
MATRICES = 3
# Weights of groups are corrected so often at most, and as long as a round takes so much of the gap;
# on two groups of a best margin of 1e-6 every round halved it.
REWEIGHTINGS = 20
WORTHWHILE = 0.9


def solve_interior_point(
    program: MaxMarginProgram,
    settings: Settings,
    kernels: GroupKernels | None = None,
    guess: PrimalDual | None = None,
) -> Solution:
    """Solve `program` by the dual interior point and certify the answer on every sample.

    Parameters
    ----------
    program : MaxMarginProgram
        On NumPy arrays or torch tensors, in float64; the answer is of the same kind.
    settings : Settings
        `max_iterations` bounds the iterations of each inner run (default 100).
    kernels : GroupKernels, optional
        Those of `program`, if they are at hand; working sets make their own.
    guess : PrimalDual, optional
        Coefficients (J, D) and multipliers (n,) of a similar program: where a working set of
        samples begins, or the active set of a program of one group that is solved without one. The
        certificate does not depend on it.

    Returns
    -------
    Solution
        `SOLVED`, `NOT_SEPARABLE`, or what the certificate can prove where rounding decides.
    """
    start = time.perf_counter()
    with few_threads(settings.threads):
        if program.n_groups < settings.group_set_from:
            answer, certificate, iterations = _solve_groups(program, settings, kernels, guess)
        else:
            from .sets.group_working import solve_on_group_set

            answer, certificate, iterations = solve_on_group_set(program, settings, _solve_groups)
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


def _solve_groups(
    program: MaxMarginProgram,
    settings: Settings,
    kernels: GroupKernels | None = None,
    guess: PrimalDual | None = None,
) -> Attempt:
    """Solve with every group of `program`, on all samples or on a working set of them."""
    if is_sparse(program.design.X):
        from .sets.sparse_active import solve_sparse

        found = solve_sparse(program, settings)
    else:
        found = solve_few_dimensions(program, settings)
    if found is not None:
        return found
    if program.n_samples < settings.working_set_from:
        known = None if guess is None else to_numpy(guess.dual)
        return _solve_all(program, settings, None, known, kernels)
    from .sets.working import solve_on_working_set

    return solve_on_working_set(program, settings, _solve_all, guess)


def _solve_all(
    program: MaxMarginProgram,
    settings: Settings,
    start: Start | None = None,
    known: np.ndarray | None = None,
    kernels: GroupKernels | None = None,
) -> Attempt:
    """Play the game on every sample, refined on the features where its certificate falls short.

    A program of one group is left to its active set first, from `known` (n,), the multipliers of
    a part of it, if there are any. Large programs are first played with Newton matrices in single
    precision, which take half the time and memory; that counts only if its certificate, in double
    precision, reaches `tol`.
    """
    require_memory(
        MATRICES * program.n_samples**2,
        f"the kernels of {program.n_samples} samples at once",
        "lower `working_set_from`, or take fewer samples",
    )
    empty = program.design.sample_sizes == 0
    if bool(array_namespace(empty).any(empty)):
        return _proof(program, as_float64(empty, like=program.y))
    before = 0
    if program.n_groups == 1 and not is_torch_array(program.y):
        kernels = kernels or group_kernels(program)
        lam, before = _active_set(kernels, settings, known)
        if lam is not None:
            answer = PrimalDual(primal=program.dual_blocks(lam), dual=lam)
            certificate = certify(program, answer.primal, answer.dual)
            if certificate.proves_optimality(settings.tol):
                return answer, certificate, before
    # The certificate on the features may lose a little of what Gram arithmetic promised.
    inner = replace(settings, tol=0.5 * settings.tol)
    if kernels is None and _single_pays(program, settings):
        game = play(group_kernels(program, single=True), inner, start)
        answer, certificate = _certified(program, game)
        if certificate.proves_optimality(settings.tol):
            return answer, certificate, game.iterations
        before = game.iterations
    game = play(kernels or group_kernels(program), inner, start)
    game = replace(game, iterations=game.iterations + before)
    answer, certificate = _certified(program, game)
    if certificate.proves_optimality(settings.tol):
        return answer, certificate, game.iterations
    return _mend(program, settings, game, (answer, certificate))


def _single_pays(program: MaxMarginProgram, settings: Settings) -> bool:
    """True if single precision, in which products go through the features, is worth a try."""
    n_samples, n_inputs = program.design.X.shape
    many = bool(n_samples >= max(settings.single_from, n_inputs))
    return many and not is_torch_array(program.y) and not is_sparse(program.design.X)


def _certified(program: MaxMarginProgram, game: Best[Start]) -> tuple[PrimalDual, Certificate]:
    answer = PrimalDual(primal=_coefficients(program, game), dual=game.dual.lam)
    return answer, certify(program, answer.primal, answer.dual)


def _mend(
    program: MaxMarginProgram,
    settings: Settings,
    game: Best[Start],
    found: tuple[PrimalDual, Certificate],
) -> Attempt:
    """Refine on the features, and then at another scaling, a game that fell short."""
    answer = _refine(program, game, found, settings.tol)
    certificate = certify(program, answer.primal, answer.dual)
    if certificate.proves_separability() or certificate.proves_inseparability():
        return answer, certificate, game.iterations
    answer, more = _decide(program, replace(settings, tol=0.5 * settings.tol), answer)
    return answer, certify(program, answer.primal, answer.dual), game.iterations + more


def _active_set(
    kernels: GroupKernels, settings: Settings, known: np.ndarray | None
) -> tuple[np.ndarray | None, int]:
    """Multipliers of one group by their active set, or None, and its rounds."""
    from .sets.active import active_set_multipliers

    Q = mirror_lower(kernels.weighted(np.ones(1)))
    rank = int(kernels.signed.shape[1] * kernels.factor.shape[1])
    return active_set_multipliers(Q, settings, rank=rank, start=known)


def _proof(program: MaxMarginProgram, lam: Array) -> Attempt:
    """Multipliers of samples whose gated inputs are all zero: no coefficients reach them."""
    answer = PrimalDual(primal=0 * program.dual_blocks(lam), dual=lam)
    return answer, certify(program, answer.primal, answer.dual), 0


def _coefficients(program: MaxMarginProgram, game: Best[Start]) -> Array:
    """Coefficients `V[g] = d[g] v_g(lam)`, which attain the game's lower bound."""
    return game.primal.d[program.design.group][:, None] * program.dual_blocks(game.primal.lam)


def _refine(
    program: MaxMarginProgram, game: Best[Start], found: tuple[PrimalDual, Certificate], tol: float
) -> PrimalDual:
    """Refine `found` on the features and keep the better points, primal and dual apart.

    At the optimum the kernel weights are the groups' norms, which the features know to more digits
    than Gram arithmetic: those of one answer are the weights of the next one, as long as it gains.
    """
    answer, certificate = found
    if not certificate.proves_separability():
        cancelled = cancel_blocks(program, game.dual.lam)
        if certify(program, dual=cancelled).proves_inseparability():
            return PrimalDual(primal=answer.primal, dual=cancelled)
    support = support_vectors(program, answer.primal, answer.dual)
    d, upper, lower = game.primal.d, certificate.objective, certificate.dual_objective
    for _ in range(REWEIGHTINGS):
        before = gap_between(upper, lower)
        balanced = balance_support(program, d, support)
        if balanced is None:
            break
        refined = certify(program, balanced.primal, balanced.dual)
        if refined.objective < upper:
            answer, upper = replace(answer, primal=balanced.primal), refined.objective
        if refined.dual_objective > lower:
            answer, lower = replace(answer, dual=balanced.dual), refined.dual_objective
        gap = gap_between(upper, lower)
        if gap <= tol or not gap < WORTHWHILE * before:
            break
        d = program.design.group_norms(balanced.primal)
    return answer


def _decide(
    program: MaxMarginProgram, settings: Settings, answer: PrimalDual
) -> tuple[PrimalDual, int]:
    """Look for coefficients that separate or multipliers that cancel, at another scaling.

    The game on samples and inputs of size one asks for another optimum, but separability is the
    same, and Gram arithmetic resolves it where sizes of many decades hide it. Returns the better
    answer and the iterations.
    """
    scaled = equilibrated(program)
    game = play(group_kernels(scaled.program), settings)
    primal = _coefficients(scaled.program, game) / scaled.inputs
    if certify(program, primal).proves_separability():
        return PrimalDual(primal=primal, dual=answer.dual), game.iterations
    cancelled = cancel_blocks(program, game.dual.lam / scaled.samples)
    if certify(program, dual=cancelled).proves_inseparability():
        answer = PrimalDual(primal=answer.primal, dual=cancelled)
    return answer, game.iterations
