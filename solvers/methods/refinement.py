"""Refinement on the features of what Gram arithmetic cannot resolve.

A Gram matrix knows squared norms to 1e-16 of the data's scale, so that a game played on it
stops resolving gamma, relative to that scale, somewhere above 1e-8. The features know norms to
1e-16. Both refinements below use a Cholesky factor of a Gram matrix only to propose corrections
and measure every residual on the features.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..certificates.max_margin import blocks_cancel
from ..numerics.arrays import (
    Array,
    NotPositiveDefinite,
    array_namespace,
    cholesky_solve,
    float_of,
)
from ..numerics.summation import enclose_adjoint
from ..programs.max_margin import MaxMarginProgram
from ..programs.scaling import equilibrated
from .interior.group_kernels import group_kernels
from .interior.group_system import factorise

ROUNDS = 12
CORRECTIONS = 20
# The last corrections of multipliers sum their blocks as if in twice the precision: what plain
# sums leave is that of all terms together, which may be several times what a proof allows.
COMPENSATED = 2
VIOLATION = 1e-10
# Multipliers below a share of the largest one that are left out of a proof of inseparability.
NEGLIGIBLE = (1e-8, 1e-6, 1e-4, 1e-2)


@dataclass(frozen=True, eq=False)
class PrimalDual:
    """Coefficients (J, D) and multipliers (n,) of a program, at any scale."""

    primal: Array
    dual: Array


def cancel_blocks(program: MaxMarginProgram, lam: Array) -> Array:
    """Find multipliers near `lam` whose blocks `v_g` cancel to rounding, if there are such.

    Solves `min sum_n ((lam'[n] - lam[n]) / lam[n])^2` over the null space of `lam -> v(lam)`, in
    the variables `lam' = lam (1 - p)`, for `lam` without more and more of its small entries.

    Returns
    -------
    (n,) array, non-negative; `lam` itself where no correction proves inseparability.
    """
    xp = array_namespace(lam)
    scaled = equilibrated(program)
    weights = lam * scaled.samples
    for share in NEGLIGIBLE:
        rows = xp.nonzero(weights > share * xp.max(weights))[0]
        part = scaled.program.subset(rows)
        cancelled = _cancel(part, weights[rows])
        if blocks_cancel(part, cancelled):
            corrected = xp.zeros_like(lam)
            corrected[rows] = cancelled / scaled.samples[rows]
            return corrected
    return lam


def _cancel(program: MaxMarginProgram, lam: Array) -> Array:
    xp = array_namespace(lam)
    kernels = group_kernels(program)
    index = xp.arange(lam.shape[0], device=lam.device)
    matrix = kernels.weighted(xp.ones_like(kernels.weight[0, :])) * (lam[:, None] * lam[None, :])
    size = float_of(xp.max(matrix[index, index]))
    if size == 0:
        return lam
    # The ridge makes each pass shrink a component with eigenvalue s by ridge / (s + ridge).
    matrix[index, index] += 1e-13 * size
    try:
        factor = factorise(matrix, size)
    except NotPositiveDefinite:
        return lam
    remaining = xp.ones_like(lam)
    for k in range(CORRECTIONS):
        weights = lam * remaining
        if k < CORRECTIONS - COMPENSATED:
            blocks = program.dual_blocks(weights)
        else:
            blocks = enclose_adjoint(program.design, weights * program.y).value
        pull = lam * program.margins(blocks) / kernels.scale**2
        remaining = remaining - cholesky_solve(factor, pull)
    return lam * xp.clip(remaining, min=0.0)


def balance_support(program: MaxMarginProgram, d: Array, support: Array) -> PrimalDual | None:
    """Find coefficients with margin one on their support, by active sets from `support` on.

    For kernel weights d the optimum is `V[g] = d[g] v_g(mu)` with `mu >= 0` supported where the
    margin is one. The coefficients are carried along as such, not recomputed from `mu`: their
    margins are then known to rounding of V, not of the much larger terms that cancel in it.

    Parameters
    ----------
    program : MaxMarginProgram
    d : (G,) array
        Kernel weights, non-negative.
    support : (n,) boolean array
        Samples believed to have margin one; at least one.

    Returns
    -------
    PrimalDual or None
        None if a support's kernel could not be factorised.
    """
    xp = array_namespace(d)
    for _ in range(ROUNDS):
        rows = xp.nonzero(support)[0]
        if int(rows.shape[0]) == 0:
            return None
        try:
            V, mu = _equal_margins(program.subset(rows), d)
        except NotPositiveDefinite:
            return None
        dual = xp.zeros_like(program.y)
        dual[rows] = xp.clip(mu, min=0.0)
        violated = program.margins(V) < 1 - VIOLATION
        dropped = xp.zeros_like(support)
        dropped[rows] = mu < 0
        if not bool(xp.any(violated & ~support)) and not bool(xp.any(dropped)):
            break
        support = (support & ~dropped) | violated
    return PrimalDual(primal=V, dual=dual)


def _equal_margins(program: MaxMarginProgram, d: Array) -> tuple[Array, Array]:
    """Coefficients `V[g] = d[g] v_g(mu)` with all margins one, and mu (n,), by refinement."""
    xp = array_namespace(d)
    kernels = group_kernels(program)
    matrix = kernels.weighted(d)
    index = xp.arange(matrix.shape[0], device=matrix.device)
    factor = factorise(matrix, float_of(xp.max(matrix[index, index])))
    weights = d[program.design.group][:, None] / kernels.scale**2
    mu = xp.zeros_like(program.y)
    V = weights * program.dual_blocks(mu)
    for _ in range(CORRECTIONS):
        missing = 1 - program.margins(V)
        correction = cholesky_solve(factor, missing)
        mu = mu + correction
        V = V + weights * program.dual_blocks(correction)
    return V, mu
