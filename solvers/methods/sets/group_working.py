"""Solver on a working set of groups, which takes in those that its own multipliers violate."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ...certificates.max_margin import certify
from ...numerics.arrays import Array, array_namespace, to_numpy
from ...programs.max_margin import MaxMarginProgram
from ..refinement import PrimalDual
from ..settings import Settings
from .working import Attempt

log = logging.getLogger(__name__)

# The first set, the most groups that a round adds, and the gaps to which the rounds are solved,
# measured on digits and Gaussian inputs behind 2,500 and 20,000 paths (n = 500): 6 and 7 rounds
# end at 616 and 665 groups.
FIRST = 200
MOST = 200
GAPS = (1e-1, 1e-2, 1e-4)
# Rounds are solved to the next gap once they add fewer groups than this share of the set.
FEW = 0.05
# A bound against rounds that rounding keeps alive: each but those that tighten the gap adds groups.
ROUNDS = 60


def solve_on_group_set(
    program: MaxMarginProgram,
    settings: Settings,
    solve_all: Callable[[MaxMarginProgram, Settings], Attempt],
) -> Attempt:
    """Solve on few groups, add those with the largest dual norms above 1 until there are none.

    `solve_all` solves the program of a set of groups.

    Coefficients of a part, padded with zeros, are coefficients of the whole program, so that the
    part's upper bound of the optimum holds for all groups. Its multipliers prove what the norms
    of all blocks say: a part that is not separable is a reason for more groups, and a proof only
    if the blocks of all of them cancel.
    """
    groups, iterations, round_gaps = _first(program), 0, list(GAPS)
    tol = round_gaps.pop(0)
    for _ in range(ROUNDS):
        part = program.of_groups(_index(program, groups))
        answer, _, used = solve_all(part, replace(settings, tol=max(tol, settings.tol)))
        iterations += used
        padded = _padded(program, answer, groups)
        certificate = certify(program, padded.primal, padded.dual)
        log.debug("%d of %d groups: gap %.2g", len(groups), program.n_groups, certificate.gap)
        if certificate.proves_optimality(settings.tol) or certificate.proves_inseparability():
            break
        norms = to_numpy(program.design.group_norms(program.dual_blocks(padded.dual)))
        # A part that is not separable needs many more: its set doubles.
        most = MOST if certificate.proves_separability() else len(groups)
        added = _violators(norms, groups, most)
        if len(added) <= FEW * len(groups):
            if len(added) == 0 and tol <= settings.tol:
                break
            tol = round_gaps.pop(0) if round_gaps else settings.tol
        groups = np.sort(np.concatenate([groups, added]))
    return padded, certificate, iterations


def _first(program: MaxMarginProgram) -> np.ndarray:
    """Groups with the largest blocks when all samples weigh the same."""
    equal = array_namespace(program.y).ones_like(program.y)
    norms = program.design.group_norms(program.dual_blocks(equal))
    return np.asarray(np.sort(np.argsort(-to_numpy(norms), kind="stable")[:FIRST]))


def _violators(norms: np.ndarray, groups: np.ndarray, most: int) -> np.ndarray:
    """Largest `most` groups outside whose norms exceed every one inside."""
    outside = norms.copy()
    outside[groups] = -np.inf
    worst = np.argsort(-outside, kind="stable")[:most]
    return np.asarray(worst[outside[worst] > norms[groups].max()])


def _padded(program: MaxMarginProgram, answer: PrimalDual, groups: np.ndarray) -> PrimalDual:
    """Extend the answer of a part by zeros to one of the whole program."""
    xp = array_namespace(program.y)
    primal = program.dual_blocks(xp.zeros_like(program.y))
    primal[program.design.columns_of(_index(program, groups))] = answer.primal
    return PrimalDual(primal=primal, dual=answer.dual)


def _index(program: MaxMarginProgram, groups: np.ndarray) -> Array:
    return array_namespace(program.y).asarray(groups, device=program.y.device)
