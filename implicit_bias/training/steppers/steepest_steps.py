"""Steps of steepest descent in a norm, for the weights of several networks side by side."""

from __future__ import annotations

import torch
from torch import Tensor

from ..._support.solve import Norm, NormName

# Singular values below this share of the largest count as 0: a gradient of relative margins has
# columns of sum 0, and so a singular value that is rounding.
RANGE = 1e-12
# Of Muon as it is shipped: coefficients of the odd polynomial, and how often it is applied (K.
# Jordan et al., "Muon: an optimizer for hidden layers in neural networks").
NEWTON_SCHULZ = ((3.4445, -4.7750, 2.0315), 5)


def norm_of_weights(norm: Norm | NormName) -> Norm:
    """Return the norm of one layer's weights.

    Raises
    ------
    TypeError, ValueError
        If there is no such norm, or it is one of the coefficients that two layers make.
    """
    found = Norm.of(norm)
    if found.is_factored:
        raise ValueError(
            f"`norm` {found.name!r} is one of coefficients: give each layer its own, as 'spectral'"
        )
    return found


def as_matrices(weights: Tensor) -> Tensor:
    """Return weights (B, ...) as matrices (B, K, Q): a vector is a row, further axes follow K."""
    if weights.ndim < 3:
        return weights.reshape(len(weights), 1, -1)
    return weights.flatten(2)


def steepest(norm: Norm, gradients: Tensor) -> Tensor:
    """Return the steps U of largest <G, U> among those of norm at most 1, one a network.

    Parameters
    ----------
    norm : Norm
        Of one network's weights, as the matrix that `as_matrices` makes of them; each weight of
        `units` with further axes is a matrix of its own.
    gradients : (B, ...) tensor

    Returns
    -------
    (B, ...) tensor
        Where several are as steep, the one that is 0 wherever it may be; 0 for a gradient of 0.
    """
    blocks = _blocks(norm, gradients)
    steps = _within(norm, blocks)
    if norm.over == "sum" and norm.blocks != "whole":
        sizes = _sizes(norm.dual, blocks)
        largest = torch.nn.functional.one_hot(sizes.argmax(dim=1), sizes.shape[1])
        steps = steps * largest[:, :, None, None]
    return _unblocked(norm, steps, gradients)


def norms_of(norm: Norm, weights: Tensor) -> Tensor:
    """Return the norms (B,), in float64, of weights (B, ...)."""
    sizes = _sizes(norm, _blocks(norm, weights).double())
    return sizes.amax(dim=1) if norm.over == "max" else sizes.sum(dim=1)


def dual_norms(norm: Norm, gradients: Tensor) -> Tensor:
    """Return the dual norms (B,), in float64, of gradients (B, ...)."""
    return norms_of(norm.dual, gradients)


def has_metric(norm: Norm) -> bool:
    """Return whether the dual norm is a sum of Euclidean or nuclear norms, so that it has metrics.

    A norm that is the largest of l2 or spectral norms of blocks has such a dual.
    """
    return (norm.over == "max" or norm.blocks == "whole") and norm.inside in ("l2", "spectral")


def over_metric(norm: Norm, at: Tensor, floor: float, gradients: Tensor) -> Tensor:
    r"""Return gradients (B, ...) over the metric M in which a dual norm N* is Euclidean at `at`.

    .. math:: N^*(V)^2 = \min_{\mathrm{tr} M = 1} \langle V, M^{-1} V \rangle

    with M = |V| over its trace: block norms, and roots of V V' of matrices. M is left at its trace.

    Parameters
    ----------
    norm : Norm
        One that `has_metric`.
    at : (...) tensor
        V.
    floor : float
        What sizes of blocks and singular values of V are raised to, by the root of squares.
    gradients : (B, ...) tensor
    """
    blocks, made = _blocks(norm, at[None])[0], _blocks(norm, gradients)
    if norm.inside == "l2" or 1 in blocks.shape[1:]:
        sizes = blocks.square().sum(dim=(1, 2), keepdim=True).add(floor**2).sqrt()
        return _unblocked(norm, made / sizes, gradients)
    wide = blocks.shape[1] <= blocks.shape[2]
    values, U = torch.linalg.eigh(blocks @ blocks.mT if wide else blocks.mT @ blocks)
    inverse = (U * (values.clamp(min=0) + floor**2).rsqrt()[:, None, :]) @ U.mT
    return _unblocked(norm, inverse @ made if wide else made @ inverse, gradients)


def newton_schulz(gradients: Tensor) -> Tensor:
    """Return what Muon as it is shipped takes for polar factors of matrices (B, K, Q).

    Five steps of an odd polynomial leave singular values between 0.7 and 1.2, whatever they were,
    as far as they were no less than some thousandths of the Frobenius norm.
    """
    (a, b, c), rounds = NEWTON_SCHULZ
    wide = gradients.shape[1] <= gradients.shape[2]
    X = gradients if wide else gradients.mT
    sizes = torch.linalg.matrix_norm(X, keepdim=True)
    X = X / torch.where(sizes > 0, sizes, 1.0)
    for _ in range(rounds):
        A = X @ X.mT
        X = a * X + (b * A + c * A @ A) @ X
    return X if wide else X.mT


def _blocks(norm: Norm, weights: Tensor) -> Tensor:
    """Return the blocks (B, b, p, q) of weights (B, ...)."""
    n = len(weights)
    if norm.blocks == "entries":
        return weights.reshape(n, -1, 1, 1)
    if norm.blocks == "units" and weights.ndim == 4:
        return weights
    matrices = as_matrices(weights)
    if norm.blocks == "whole":
        return matrices[:, None]
    if norm.blocks == "columns":
        return matrices.mT[:, :, None, :]
    return matrices[:, :, None, :]


def _unblocked(norm: Norm, blocks: Tensor, like: Tensor) -> Tensor:
    if norm.blocks == "columns":
        return blocks[:, :, 0, :].mT.reshape(like.shape)
    return blocks.reshape(like.shape)


def _sizes(norm: Norm, blocks: Tensor) -> Tensor:
    """Return the norms (B, b) inside blocks (B, b, p, q)."""
    if norm.blocks == "entries":
        return blocks[:, :, 0, 0].abs()
    if norm.inside == "l2" or 1 in blocks.shape[2:]:
        found: Tensor = torch.linalg.matrix_norm(blocks)
        return found
    values: Tensor = torch.linalg.svdvals(blocks)
    return values[..., 0] if norm.inside == "spectral" else values.sum(dim=-1)


def _within(norm: Norm, blocks: Tensor) -> Tensor:
    """Return the steepest steps inside blocks (B, b, p, q), each of norm 1 or 0."""
    if norm.blocks == "entries":
        return blocks.sign()
    if norm.inside == "l2" or 1 in blocks.shape[2:]:
        sizes: Tensor = torch.linalg.matrix_norm(blocks, keepdim=True)
        return blocks / torch.where(sizes > 0, sizes, 1.0)
    U: Tensor
    U, values, W = torch.linalg.svd(blocks, full_matrices=False)
    if norm.inside == "spectral":
        kept = (values > RANGE * values[..., :1]).to(blocks)
    else:
        kept = torch.zeros_like(values)
        kept[..., 0] = (values[..., 0] > 0).to(blocks)
    steps: Tensor = (U * kept[..., None, :]) @ W
    return steps
