"""Splits of margins into those that can be positive together and those that must be zero."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..norms.norm import Norm
from ..numerics.summation import power_of_two
from ..programs.images import Floats, Rows
from ..programs.norm_program import NormProgram, certify_norm
from .backends.highs import Bounds, linear_program
from .refinement import cancel_blocks


@dataclass(frozen=True, eq=False)
class Split:
    """The split of margins `A(B)`, with its proof.

    Attributes
    ----------
    separable : (m,) boolean array
        Margins that some B makes positive while none is negative.
    B : array
        Such coefficients: margins of at least 1 there and of 0 elsewhere.
    multipliers : (m,) array
        Positive exactly at the others, whose rows cancel under them: whatever B makes none of them
        negative makes all of them zero.
    bound : float
        What is left of that sum, relative to its terms: proved if at most 2^-52, as
        `Certificate.separation_bound`. 0 where all margins are separable.
    equality_multipliers : (e,) array
        Those of equalities, of any sign, which count in that sum.
    """

    separable: NDArray[np.bool_]
    B: Floats
    multipliers: Floats
    bound: float
    equality_multipliers: Floats


def split_rows(rows: Rows, equalities: Rows | None = None) -> Split:
    """Find the margins that can be positive together, by two linear programs.

        maximise  sum_i s_i   s.t.   A(B) >= s,  0 <= s <= 1,  E(B) = 0

    has s_i of 0 or 1: a sum of solutions, long enough, has every margin that any has.

    Parameters
    ----------
    rows : Rows
        A.
    equalities : Rows, optional
        E, whose margins are 0.

    Returns
    -------
    Split

    References
    ----------
    Z. Ji, M. Telgarsky, "The implicit bias of gradient descent on nonseparable data", 2019,
    section 2, for the split.

    Examples
    --------
    The first coordinate separates its sample, the second has one on either side:

    >>> import numpy as np
    >>> from solvers import Rows, split_rows
    >>> found = split_rows(Rows(np.array([[1.0, 0.0], [0.0, 1.0], [0.0, -2.0]])))
    >>> found.separable.tolist(), found.bound
    ([True, False, False], 0.0)
    """
    unit = power_of_two(rows.largest())
    A = rows.flat / unit
    m, size = A.shape
    E = np.zeros((0, size)) if equalities is None else equalities.flat / unit
    cost, left = np.append(np.zeros(size), -np.ones(m)), np.hstack([-A, np.eye(m)])
    bounds: list[Bounds] = [*[(None, None)] * size, *[(0.0, 1.0)] * m]
    zero = np.hstack([E, np.zeros((len(E), m))])
    x = _solved(cost, left, zero, bounds)
    x = np.zeros(size + m) if x is None else x  # nothing is proved then
    separable = x[size:] > 0.5
    B, lam, nu = x[:size].reshape(rows.shape) / unit, np.zeros(m), np.zeros(len(E))
    if separable.all():
        return Split(separable, B, lam, 0.0, nu)
    # Those of equalities as differences, one of two being 0 at a vertex.
    stacked, n = np.concatenate([A[~separable], E, -E]), m - int(separable.sum())
    least: list[Bounds] = [(float(i < n), None) for i in range(len(stacked))]
    proof = _solved(np.ones(len(stacked)), None, stacked.T, least)
    if proof is None:
        return Split(separable, B, lam, 1.0, nu)
    used = proof > 0
    proof[used], bound = _cancelled(Rows(stacked[used]), proof[used])
    lam[~separable] = proof[:n]
    up, down = np.split(proof[n:], 2)
    return Split(separable, B, lam, bound if proof[:n].min() > 0 else 1.0, up - down)


def _solved(
    cost: Floats, left: Floats | None, equal: Floats, bounds: list[Bounds]
) -> Floats | None:
    """Return the solution, by the interior point where the simplex gives up; None without one."""
    for method in ("highs-ds", "highs-ipm"):
        found = linear_program(cost, left, equal=equal, bounds=bounds, method=method)
        if found.x is not None:
            return np.array(found.x)
    return None


def _cancelled(rows: Rows, lam: Floats) -> tuple[Floats, float]:
    """Return multipliers near these under which rows cancel to rounding, and what is left."""
    program = NormProgram(rows, Norm())
    bound = certify_norm(program, dual=lam).separation_bound
    if bound > 2.0**-52:
        lam = np.asarray(cancel_blocks(rows.standard(), lam))
        bound = certify_norm(program, dual=lam).separation_bound
    return lam, bound
