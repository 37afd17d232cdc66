"""Non-negative least squares from a Gram matrix, by exchanging whole blocks of variables."""

import numpy as np
import torch
from scipy.optimize import nnls
from torch import Tensor

__all__ = ["nonnegative_fit"]

# Of a unit diagonal: what makes a singular block factorise. One refinement takes it out again
# wherever the block determines the solution.
RIDGE = 1e-13
# Signs of multipliers and slopes below this share of the largest are rounding.
ROUNDING = 1e-11
# Block exchanges that may fail to lower the number of wrong signs before single ones take over, and
# exchanges of either kind before the active-set method does: on 500 samples none of 98 fits that
# exchanges could finish stalled for so long, and all of 57 did that they could not.
PATIENCE, STALLED = 3, 10
# Slopes and gradients, as a share of the largest target, by which the active-set method may be off:
# where columns depend on each other SciPy's can end far from the solution.
ACCEPTED = 1e-6


def nonnegative_fit(
    gram: Tensor, target: Tensor, guess: Tensor | None = None, *, max_exchanges: int = 100
) -> Tensor:
    r"""Return the lam >= 0 (n,) of least :math:`\tfrac12 \|A \lambda - b\|^2`.

    Parameters
    ----------
    gram : (n, n) float64 tensor
        :math:`A^T A`; may be singular. A column of zeros gets the multiplier 0.
    target : (n,) float64 tensor
        :math:`A^T b`.
    guess : (n,) tensor, optional
        Positive where the answer is expected to be, for instance those of a neighbouring problem: a
        good guess saves most rounds, a bad one costs a few. All of them without it.
    max_exchanges : int
        Rounds after which an active-set method takes over, as it does after ten that leave no
        fewer wrong signs: degenerate systems can cycle. If that ends far from the solution, the
        rounds go on.

    Notes
    -----
    Each round solves for the variables that are taken to be positive, then exchanges every
    variable whose sign (of itself, or of its slope if it is 0) is wrong. A round costs one
    Cholesky factorisation, and a handful of rounds is usual, however many variables are positive.

    References
    ----------
    J. Kim, H. Park, "Fast nonnegative matrix factorization: an active-set-like method and
    comparisons", SIAM Journal on Scientific Computing 33 (2011), section 4: block pivoting with
    a finite backup rule.
    """
    sizes = gram.diagonal().clamp(min=0).sqrt()
    usable = sizes > 0
    scale = torch.where(usable, 1 / torch.where(usable, sizes, 1.0), 0.0)
    # Unit columns: samples may differ in size by orders of magnitude.
    scaled, wanted = gram * scale[:, None] * scale, target * scale
    positive = usable if guess is None else usable & (guess > 0)
    lam = _pivot(scaled, wanted, usable, positive, max_exchanges, STALLED)
    if lam is None:
        lam = _active_set(scaled, wanted)
        if not _solves(scaled, wanted, lam):
            patient = _pivot(scaled, wanted, usable, positive, max_exchanges, max_exchanges)
            lam = lam if patient is None else patient
    return lam * scale


def _solves(gram: Tensor, target: Tensor, lam: Tensor) -> bool:
    """Tell whether no slope asks for a multiplier, and multipliers are where slopes are zero."""
    slope, most = gram @ lam - target, ACCEPTED * float(target.abs().max())
    return bool((slope >= -most).all()) and bool((slope.abs()[lam > 0] <= most).all())


def _pivot(
    gram: Tensor,
    target: Tensor,
    usable: Tensor,
    positive: Tensor,
    max_exchanges: int,
    stalled: int,
) -> Tensor | None:
    fewest, since = len(target) + 1, 0
    for _ in range(max_exchanges):
        lam = _solve(gram, target, positive)
        if lam is None:
            return None
        slope = gram @ lam - target
        tolerance = ROUNDING * float(lam.abs().max()), ROUNDING * float(target.abs().max())
        wrong = torch.where(positive, lam < -tolerance[0], usable & (slope < -tolerance[1]))
        count = int(wrong.sum())
        if count == 0:
            return lam.clamp(min=0)
        since = 0 if count < fewest else since + 1
        fewest = min(fewest, count)
        if since > stalled:
            return None
        if since > PATIENCE:
            last = int(wrong.nonzero().max())
            wrong = torch.zeros_like(wrong)
            wrong[last] = True
        positive = positive ^ wrong
    return None


def _solve(gram: Tensor, target: Tensor, positive: Tensor) -> Tensor | None:
    index = positive.nonzero()[:, 0]
    lam = torch.zeros_like(target)
    if len(index) == 0:
        return lam
    block, right = gram[index[:, None], index], target[index, None]
    ridged = block.clone()
    ridged.diagonal().add_(RIDGE * len(index))
    factor, info = torch.linalg.cholesky_ex(ridged)
    if int(info) != 0:
        return None
    solution = torch.cholesky_solve(right, factor)
    solution += torch.cholesky_solve(right - block @ solution, factor)
    lam[index] = solution[:, 0]
    return lam


def _active_set(gram: Tensor, target: Tensor) -> Tensor:
    # ||R lam - R^-T target|| for gram = R^T R, from eigenvectors: a singular matrix has no R.
    values, vectors = torch.linalg.eigh(gram)
    used = values > RIDGE * len(target) * values[-1].clamp(min=1.0)
    roots = values[used].sqrt()
    columns = roots[:, None] * vectors[:, used].T
    right = (vectors[:, used].T @ target) / roots
    lam, _ = nnls(columns.cpu().numpy(), right.cpu().numpy(), maxiter=30 * len(target))
    return torch.as_tensor(np.asarray(lam)).to(gram)
