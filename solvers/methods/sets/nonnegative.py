"""Non-negative least squares from a Gram matrix."""

from __future__ import annotations

import numpy as np
from scipy.optimize import nnls

from ...numerics.arrays import (
    Array,
    NotPositiveDefinite,
    array_namespace,
    as_float64,
    float_of,
    to_numpy,
)
from ...numerics.factor import Factor
from .exchange import SetSolution, exchange

# Of a unit diagonal: what makes a singular block factorise. One refinement takes it out again
# wherever the block determines the solution.
RIDGE = 1e-13
# Slopes below this share of the largest target are rounding.
ROUNDING = 1e-11
# Exchanges that may fail to lower the number of wrong signs before the active-set method takes
# over: on 500 samples none of 98 fits that exchanges could finish stalled for so long, and all of
# 57 did that they could not.
STALLED = 10
# Slopes and gradients, as a share of the largest target, by which the active-set method may be off:
# where columns depend on each other SciPy's can end far from the solution.
ACCEPTED = 1e-6


def nonnegative_fit(
    gram: Array, target: Array, guess: Array | None = None, *, max_exchanges: int = 100
) -> Array:
    r"""Return the lam >= 0 (n,) of least :math:`\tfrac12 \|A \lambda - b\|^2`.

    Parameters
    ----------
    gram : (n, n) float64 array
        :math:`A^T A`; may be singular. A column of zeros gets the multiplier 0.
    target : (n,) float64 array
        :math:`A^T b`.
    guess : (n,) array, optional
        Positive where the answer is expected to be, for instance those of a neighbouring problem: a
        good guess saves most rounds, a bad one costs a few. All of them without it.
    max_exchanges : int
        Rounds after which an active-set method takes over, as it does after ten that leave no
        fewer wrong signs: degenerate systems can cycle. If that ends far from the solution, the
        rounds go on.

    Returns
    -------
    (n,) array

    Notes
    -----
    A round costs one Cholesky factorisation, and a handful of rounds is usual, however many
    variables are positive.
    """
    xp = array_namespace(gram)
    every = xp.arange(gram.shape[0], device=gram.device)
    sizes = xp.sqrt(xp.clip(gram[every, every], min=0.0))
    usable = sizes > 0
    scale = xp.where(usable, 1 / xp.where(usable, sizes, 1.0), 0.0)
    # Unit columns: samples may differ in size by orders of magnitude.
    scaled, wanted = gram * scale[:, None] * scale, target * scale
    positive = usable if guess is None else usable & (guess > 0)
    allowed = xp.where(usable, ROUNDING * xp.max(xp.abs(wanted)), np.inf)

    def solve(active: Array, lam: Array, exact: bool) -> SetSolution | None:
        index, lam = xp.nonzero(active)[0], xp.zeros_like(wanted)
        if len(index):
            try:
                block = Factor(scaled[index[:, None], index], RIDGE * len(index))
            except NotPositiveDefinite:
                return None
            lam[index] = block.solve(wanted[index])
        return SetSolution(lam, scaled @ lam - wanted, allowed)

    lam, _ = exchange(solve, positive, max_exchanges=max_exchanges, patience=STALLED)
    if lam is None:
        lam = as_float64(_active_set(to_numpy(scaled), to_numpy(wanted)), like=gram)
        slope, most = scaled @ lam - wanted, ACCEPTED * float_of(xp.max(xp.abs(wanted)))
        # No slope asks for a multiplier, and multipliers are where slopes are zero.
        if not (bool(xp.all(slope >= -most)) and bool(xp.all(xp.abs(slope)[lam > 0] <= most))):
            patient, _ = exchange(
                solve, positive, max_exchanges=max_exchanges, patience=max_exchanges
            )
            lam = lam if patient is None else patient
    return lam * scale


def _active_set(gram: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Minimise ``||R lam - R^-T target||``, by eigenvectors: a singular matrix has no R."""
    values, vectors = np.linalg.eigh(gram)
    used = values > RIDGE * len(target) * max(float(values[-1]), 1.0)
    roots = np.sqrt(values[used])
    right = (vectors[:, used].T @ target) / roots
    return np.asarray(nnls(roots[:, None] * vectors[:, used].T, right, maxiter=30 * len(target))[0])
