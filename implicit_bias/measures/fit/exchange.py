"""Non-negative least squares of many gradients, by exchanging blocks of samples."""

import torch
from torch import Tensor

from .bordered import BorderedFactor, conjugate_gradients
from .gram_products import GramProducts

__all__ = ["exchange_fit"]

# Residuals of a system, as shares of its right side, while samples are exchanged and in the end;
# and what must have been reached in the end, where rounding stops the iteration.
_ROUGH, _FINE, _ENOUGH = 1e-4, 1e-14, 1e-12
# Slopes as a share of <grad f, w>, and multipliers as a share of the largest, that are rounding.
_SLOPE_ROUNDING, _ROUNDING = 1e-9, 1e-11
# Exchanges that may fail to lower the number of wrong signs.
_PATIENCE = 5
# Wrong signs, as a share of the set, from which on systems are solved exactly.
_NEAR = 0.02
# Samples that may enter in an exchange, as a share of those that are in: without a limit the
# exchanges cycle.
_GROWTH = 0.5
# Samples that come and go until there is a new factor, as a share of those in it.
_BORDER = 0.2


def exchange_fit(
    gram: GramProducts, target: Tensor, first: Tensor, *, max_exchanges: int = 60
) -> Tensor | None:
    r"""Return the lam >= 0 (n,) of least :math:`\tfrac12 \lambda^T K \lambda - b^T \lambda`.

    Parameters
    ----------
    gram : GramProducts
        K.
    target : (n,) float64 tensor
        b, positive: the scale of the slopes.
    first : (m,) int64 tensor
        The samples that are taken to have multipliers at first.
    max_exchanges : int
        Exchanges after which the fit is given up.

    Returns
    -------
    (n,) float64 tensor or None
        None where the exchanges do not converge, a sample has no gradient, a set has more samples
        than there are weights, or a system cannot be solved to 1e-12.

    Notes
    -----
    Each exchange solves for the multipliers of a set of samples, drops those that come out
    negative, and takes in samples whose slopes ask for a multiplier, the steepest first. That ends
    in the solution where it ends; it need not end. Systems are solved by conjugate gradients with
    products in float64 by the factors of the gradients, preconditioned by a float32 Cholesky
    factor, which serves as long as few samples come and go.

    References
    ----------
    J. Kim, H. Park, "Fast nonnegative matrix factorization: an active-set-like method and
    comparisons", SIAM Journal on Scientific Computing 33 (2011), section 4.
    """
    scale = gram.diagonal().rsqrt()
    if not bool(torch.isfinite(scale).all()):
        return None
    n_weights = sum(outer.shape[1] * inner.shape[1] for outer, inner in gram.layers)
    systems = _Systems(gram, target, scale)
    index, lam, accuracy = first.sort().values, torch.zeros_like(target), _ROUGH
    fewest, patience = 2 * len(target), _PATIENCE
    for _ in range(max_exchanges):
        if len(index) > n_weights:
            return None
        solved = systems.solve(index, lam, accuracy)
        if solved is None:
            return None
        lam, slope = solved
        negative, asking = _wrong(lam, slope, target, index, accuracy)
        wrong = len(negative) + len(asking)
        if wrong == 0 and accuracy == _FINE:
            return lam.clamp(min=0)
        fewest, patience = (wrong, _PATIENCE) if wrong < fewest else (fewest, patience - 1)
        if accuracy == _ROUGH and (wrong <= _NEAR * len(index) or patience < 0):
            accuracy, fewest, patience = _FINE, 2 * len(target), _PATIENCE
        if patience < 0:
            return None
        steepest = asking[torch.argsort((slope * scale)[asking])]
        kept = index[~torch.isin(index, negative)]
        index = torch.cat([kept, steepest[: max(int(_GROWTH * len(index)), 1)]]).sort().values
    return None


class _Systems:
    """Systems on sets of samples, each near to the last."""

    def __init__(self, gram: GramProducts, target: Tensor, scale: Tensor) -> None:
        self._gram, self._target, self._scale = gram, target, scale
        self._factor: BorderedFactor | None = None

    def solve(self, index: Tensor, start: Tensor, accuracy: float) -> tuple[Tensor, Tensor] | None:
        """Multipliers (n,) that solve K lam = b on the set, and their slopes (n,)."""
        if self._factor is None or self._factor.change(index) > _BORDER:
            self._factor = None  # its memory is for the next one
            self._factor = BorderedFactor.of(self._gram, self._scale, index)
        if self._factor is None:
            return None
        inside, right = self._gram.take(index), self._target[index]
        near = start[index] if accuracy == _FINE else None
        found = conjugate_gradients(
            inside.product, right, near, self._factor.solver(index), accuracy
        )
        lam = torch.zeros_like(start)
        lam[index] = found
        slope = self._gram.slopes(inside.combined(found)) - self._target
        if not float(slope[index].norm()) <= max(10 * accuracy, _ENOUGH) * float(right.norm()):
            return None
        return lam, slope


def _wrong(
    lam: Tensor, slope: Tensor, target: Tensor, index: Tensor, accuracy: float
) -> tuple[Tensor, Tensor]:
    """Samples of the set with negative multipliers, and those outside that ask for one."""
    outside = torch.ones_like(lam, dtype=torch.bool)
    outside[index] = False
    negative = lam < -_ROUNDING * lam.abs().max()
    asking = outside & (slope < -max(accuracy, _SLOPE_ROUNDING) * target)
    return negative.nonzero()[:, 0], asking.nonzero()[:, 0]
