"""Cholesky factors that rounding does not stop."""

from __future__ import annotations

from .arrays import (
    Array,
    NotPositiveDefinite,
    array_namespace,
    cholesky_lower,
    cholesky_solve,
)

# Added to a diagonal of one: at first where a matrix is not positive definite, and at most.
LEAST, MOST = 1e-15, 1.0


class Factor:
    """Cholesky factor of a symmetric positive definite matrix, brought to a diagonal of one.

    Where rounding has left the matrix indefinite, as little as it takes is added to that diagonal;
    one refinement takes it out again wherever the matrix determines the solution.

    Parameters
    ----------
    matrix : (n, n) array
        A diagonal entry of 0 belongs to a row of zeros.
    ridge : float
        Added to the diagonal of one in any case: 0, or what keeps singular matrices in place.

    Raises
    ------
    NotPositiveDefinite
        If the matrix is far from positive definite.
    """

    def __init__(self, matrix: Array, ridge: float = 0.0) -> None:
        xp = array_namespace(matrix)
        every = xp.arange(matrix.shape[0], device=matrix.device)
        diagonal = matrix[every, every]
        self._scale = 1 / xp.sqrt(xp.where(diagonal > 0, diagonal, xp.ones_like(diagonal)))
        self._matrix = matrix * self._scale[:, None]
        self._matrix *= self._scale
        while True:
            raised = xp.asarray(self._matrix, copy=True)
            raised[every, every] += ridge
            try:
                self._factor = cholesky_lower(raised)
                return
            except NotPositiveDefinite:
                ridge = max(10 * ridge, LEAST)
                if not ridge <= MOST:
                    raise

    def solve(self, right: Array) -> Array:
        """Solve for a vector (n,), or for the columns of a matrix (n, k)."""
        scale = self._scale if right.ndim == 1 else self._scale[:, None]
        right = right * scale
        found = cholesky_solve(self._factor, right)
        return (found + cholesky_solve(self._factor, right - self._matrix @ found)) * scale
