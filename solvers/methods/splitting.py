"""Splits of margins into those that can be positive together and those that must be zero."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..norms.norm import Norm
from ..numerics.summation import power_of_two
from ..programs.images import Floats, Rows
from ..programs.norm_program import NormProgram, certify_norm
from .backends.highs import linear_program
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
    """

    separable: NDArray[np.bool_]
    B: Floats
    multipliers: Floats
    bound: float


def split_rows(rows: Rows) -> Split:
    """Find the margins that can be positive together, by two linear programs.

        maximise  sum_i s_i   s.t.   A(B) >= s,  0 <= s <= 1

    has s_i of 0 or 1: a sum of solutions, long enough, has every margin that any has.

    Parameters
    ----------
    rows : Rows

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
    A = rows.flat / power_of_two(rows.largest())
    m, size = A.shape
    cost, left = np.append(np.zeros(size), -np.ones(m)), np.hstack([-A, np.eye(m)])
    bounds = [*[(None, None)] * size, *[(0.0, 1.0)] * m]
    found = linear_program(cost, left, bounds=bounds, method="highs")
    separable = found.x[size:] > 0.5
    B = found.x[:size].reshape(rows.shape) / power_of_two(rows.largest())
    multipliers = np.zeros(m)
    if separable.all():
        return Split(separable, B, multipliers, 0.0)
    others = Rows(A[~separable])
    equal = others.flat.T
    proof = linear_program(np.ones(others.n_rows), equal=equal, bounds=(1.0, None), method="highs")
    if proof.x is None:
        return Split(separable, B, multipliers, 1.0)
    program = NormProgram(others, Norm())
    lam = np.asarray(proof.x, dtype=np.float64)
    bound = certify_norm(program, dual=lam).separation_bound
    if bound > 2.0**-52:
        lam = np.asarray(cancel_blocks(others.standard(), lam))
        bound = certify_norm(program, dual=lam).separation_bound
    multipliers[~separable] = lam
    return Split(separable, B, multipliers, bound if lam.min() > 0 else 1.0)
