"""What a primal and a dual point prove, recomputed in exact rational arithmetic.

Shares no line with `solvers.certificates.max_margin`: every margin and every block is a plain
double sum of `fractions.Fraction`, and only norms, which are roots, are rounded (once).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest
import torch

from solvers import MaxMarginProgram, Solution, Status

# Blocks cancel if they are this small relative to the terms that each entry is summed from.
CANCELLED = Fraction(1, 2**52)
# By how much bounds may be weaker than their points allow, and by how much, a rounded root, they
# may seem stronger.
WEAKER = 2e-10
ROOT = 1e-15


@dataclass(frozen=True)
class Recomputed:
    """All in exact arithmetic, then rounded once.

    `margins` (n,), `group_norms` (G,) of the primal; `block_norms` (G,) of `v_g(lam)`;
    `cancellation` is the largest entry of `v(lam)` relative to `sum_n lam_n |Z_nj x_nd|`.
    """

    margins: list[Fraction]
    group_norms: list[float]
    multipliers: list[Fraction]
    block_norms: list[float]
    cancellation: Fraction

    @property
    def objective(self) -> float:
        smallest = min(self.margins)
        return sum(self.group_norms) / float(smallest) if smallest > 0 else math.inf

    @property
    def dual_objective(self) -> float:
        if min(self.multipliers) < 0 or max(self.multipliers) == 0:
            return 0.0
        largest = max(self.block_norms)
        return float(sum(self.multipliers)) / largest if largest > 0 else math.inf

    @property
    def gap(self) -> float:
        if not (math.isfinite(self.objective) and 0 < self.dual_objective < math.inf):
            return math.inf
        return self.objective / self.dual_objective - 1


def rows_of(array: np.ndarray | torch.Tensor) -> list[list[Fraction]]:
    values = array.tolist()
    return [[Fraction(entry) for entry in row] for row in values]


def root_sum(squares: list[Fraction]) -> float:
    """Root of an exact sum, scaled so that neither underflow nor overflow spoils it."""
    total = sum(squares, Fraction(0))
    if total == 0:
        return 0.0
    shift = (total.numerator.bit_length() - total.denominator.bit_length()) // 2
    return math.ldexp(math.sqrt(float(total / Fraction(4) ** shift)), shift)


def recompute(program: MaxMarginProgram, primal: object, dual: object) -> Recomputed:
    """Everything from the arrays handed over; entries must be finite."""
    X, Z, V = rows_of(program.design.X), rows_of(program.design.Z), rows_of(primal)
    y = [Fraction(label) for label in program.y.tolist()]
    lam = [Fraction(weight) for weight in dual.tolist()]
    group = [int(g) for g in program.design.group.tolist()]
    columns, inputs, groups = range(len(group)), range(len(X[0])), range(max(group) + 1)
    margins = []
    blocks = [[Fraction(0) for _ in inputs] for _ in columns]
    terms = [[Fraction(0) for _ in inputs] for _ in columns]
    for x, z, label, weight in zip(X, Z, y, lam, strict=True):
        open_columns = [j for j in columns if z[j] != 0]
        score = sum((z[j] * x[k] * V[j][k] for j in open_columns for k in inputs), Fraction(0))
        margins.append(label * score)
        if weight != 0:
            for j in open_columns:
                for k in inputs:
                    blocks[j][k] += weight * label * z[j] * x[k]
                    terms[j][k] += abs(weight * z[j] * x[k])
    norms = [root_sum([e**2 for j in columns if group[j] == g for e in V[j]]) for g in groups]
    block_norms = [
        root_sum([e**2 for j in columns if group[j] == g for e in blocks[j]]) for g in groups
    ]
    return Recomputed(
        margins=margins,
        group_norms=norms,
        multipliers=lam,
        block_norms=block_norms,
        cancellation=max(abs(blocks[j][k]) / (terms[j][k] or 1) for j in columns for k in inputs),
    )


def assert_honest(program: MaxMarginProgram, solution: Solution) -> Recomputed:
    """Whatever the status claims is true, and the certificate holds the recomputed numbers."""
    exact = recompute(program, solution.primal, solution.dual)
    certificate, status = solution.certificate, solution.status
    assert min(exact.multipliers) >= 0
    if math.isfinite(certificate.objective):
        assert exact.objective * (1 - ROOT) <= certificate.objective
        assert certificate.objective <= exact.objective * (1 + WEAKER)
        assert float(min(exact.margins)) == pytest.approx(1, rel=WEAKER)
    if max(exact.multipliers) > 0:
        assert certificate.dual_objective <= exact.dual_objective * (1 + ROOT)
        assert certificate.separation_bound >= exact.cancellation
    if status is Status.SOLVED:
        assert min(exact.margins) > 0
        assert -ROOT <= exact.gap <= certificate.gap + ROOT and certificate.gap <= solution.tol
        assert certificate.dual_objective >= exact.dual_objective * (1 - WEAKER)
        assert max(exact.block_norms) == pytest.approx(1, rel=1e-6)
    elif status is Status.INACCURATE:
        assert min(exact.margins) > 0
        assert not certificate.gap <= solution.tol
    elif status is Status.NOT_SEPARABLE:
        assert certificate.objective == math.inf
        assert float(sum(exact.multipliers)) == pytest.approx(1)
        assert exact.cancellation <= certificate.separation_bound <= CANCELLED
    else:
        assert certificate.gap == math.inf
    return exact
