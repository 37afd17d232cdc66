r"""Margins that losses of margins take: of two labels, and of K classes.

Of a label y in {-1, +1} the margin is :math:`y f(x)`. Of K scores f and a class y there are K - 1
relative margins :math:`f_y - f_k`, k != y, and a loss takes

.. math:: m = -\log \sum_{k \ne y} \exp(-(f_y - f_k))

for all of them: :math:`\log(1 + e^{-m})` is then the cross-entropy of softmax, :math:`e^{-m}` the
sum of the exponential losses of all pairs. m is below the least relative margin, by log(K - 1) at
most. For K = 2 it is the margin of the difference of both scores.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor


def are_classes(targets: Tensor) -> bool:
    """Return True for rows (n, K) of K classes, False for labels (n,)."""
    return targets.ndim == 2


def n_margins(targets: Tensor | NDArray[np.float64]) -> int:
    """Return how many margins the samples have: n, or n (K - 1) of K classes."""
    n_samples, *others = targets.shape
    return n_samples * (others[0] - 1) if others else n_samples


def loss_margins(scores: Tensor, targets: Tensor) -> Tensor:
    """Return the margins (..., n) that a loss takes, differentiable in the scores.

    Parameters
    ----------
    scores : (..., n), or (..., n, K) with classes
    targets : (n,) in {-1, +1}, or (n, K) with a one at every sample's class and else zeros
    """
    if not are_classes(targets):
        return targets * scores
    return -torch.logsumexp(_of_others(scores, targets), dim=-1)


def least_margins(scores: Tensor, targets: Tensor) -> Tensor:
    """Return the margins (..., n), of K classes the least relative one of every sample."""
    return -_of_others(scores, targets).amax(-1) if are_classes(targets) else targets * scores


def by_sample(multipliers: Tensor, targets: Tensor) -> Tensor:
    """Return multipliers of all margins like the targets: (n,), or (n, K) with 0 at their own."""
    if not are_classes(targets):
        return multipliers
    every = torch.zeros_like(targets)
    every[targets == 0] = multipliers
    return every


def margin_gradient(coefficients: Tensor, scores: Tensor, targets: Tensor) -> Tensor:
    """Return the gradient of ``sum_n coefficients_n m_n`` in the scores, m `loss_margins`.

    Parameters
    ----------
    coefficients : (..., n)
    scores, targets : tensors
        As in `loss_margins`.

    Returns
    -------
    (..., n) or (..., n, K) tensor
        Like the scores; rows of classes sum to 0.
    """
    if not are_classes(targets):
        return targets * coefficients
    shares = torch.softmax(_of_others(scores, targets), dim=-1)  # 0 at the sample's own class
    return coefficients[..., None] * (targets - shares)


def score_gradient(scores: Tensor, targets: Tensor, pairs: Tensor) -> Tensor:
    """Return coefficients (k, ...) of the scores whose sums are single margins.

    Parameters
    ----------
    scores : (n,) or (n, K)
    targets : (n,) or (n, K)
    pairs : (k,) integers
        Numbers of margins, below `n_margins`: of samples, or of samples and other classes.

    Returns
    -------
    (k, n) or (k, n, K) tensor
        Of zeros, but a one for the sample; of classes +1 and -1 for a relative margin.
    """
    chosen = scores.new_zeros(len(pairs), *scores.shape)
    each = torch.arange(len(pairs), device=pairs.device)
    if not are_classes(targets):
        chosen[each, pairs] = 1.0
        return chosen
    samples, others = (targets == 0).nonzero(as_tuple=True)
    chosen[each, samples[pairs]] = targets[samples[pairs]]
    chosen[each, samples[pairs], others[pairs]] = -1.0
    return chosen


def _of_others(scores: Tensor, targets: Tensor) -> Tensor:
    """Return ``f_k - f_y`` (..., n, K), and -inf at the sample's own class."""
    own = (scores * targets).sum(-1, keepdim=True)
    return (scores - own).masked_fill(targets > 0, -torch.inf)
