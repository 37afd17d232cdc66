"""Non-negative least squares of many gradients, by exchanging blocks of samples."""

import torch
from torch import Tensor

from ..._support.solve import SetSolution, exchange
from .bordered import BorderedFactor, conjugate_gradients
from .gram_products import GramProducts

# Residuals of a system, as shares of its right side, while samples are exchanged and in the end;
# and what must have been reached in the end, where rounding stops the iteration.
_ROUGH, _FINE, _ENOUGH = 1e-4, 1e-14, 1e-12
# Slopes as a share of <grad f, w> that are rounding.
_SLOPE_ROUNDING = 1e-9
# Exchanges that may fail to lower the number of wrong signs.
_PATIENCE = 5
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
    Systems are solved by conjugate gradients with products in float64 by the factors of the
    gradients, preconditioned by a float32 Cholesky factor, which serves as long as few samples come
    and go. Samples with the steepest slopes come in first.
    """
    scale = gram.diagonal().rsqrt()
    if not bool(torch.isfinite(scale).all()):
        return None
    active = torch.zeros_like(target, dtype=torch.bool)
    active[first] = True
    lam: Tensor | None = exchange(
        _Systems(gram, target, scale).solve, active,
        max_exchanges=max_exchanges, patience=_PATIENCE, growth=_GROWTH, rough=True,
    ).lam  # fmt: skip
    return lam


class _Systems:
    """Systems on sets of samples, each near to the last."""

    def __init__(self, gram: GramProducts, target: Tensor, scale: Tensor) -> None:
        self._gram, self._target, self._scale = gram, target, scale
        self._factor: BorderedFactor | None = None
        self._n_weights = sum(outer.shape[1] * inner.shape[1] for outer, inner in gram.layers)

    def solve(self, active: Tensor, start: Tensor, exact: bool) -> SetSolution | None:
        """Multipliers (n,) that solve K lam = b on the set, and their slopes (n,)."""
        index, accuracy = active.nonzero()[:, 0], _FINE if exact else _ROUGH
        if len(index) > self._n_weights:
            return None
        if self._factor is None or self._factor.change(index) > _BORDER:
            self._factor = None  # its memory is for the next one
            self._factor = BorderedFactor.of(self._gram, self._scale, index)
        if self._factor is None:
            return None
        inside, right = self._gram.take(index), self._target[index]
        near = start[index] if exact else None
        found = conjugate_gradients(
            inside.product, right, near, self._factor.solver(index), accuracy
        )
        lam = torch.zeros_like(start)
        lam[index] = found
        slope = self._gram.slopes(inside.combined(found)) - self._target
        if not float(slope[index].norm()) <= max(10 * accuracy, _ENOUGH) * float(right.norm()):
            return None
        allowed = max(accuracy, _SLOPE_ROUNDING) * self._target
        return SetSolution(lam, slope * self._scale, allowed * self._scale)
