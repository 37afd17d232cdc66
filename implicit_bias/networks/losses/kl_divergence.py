"""Kullback-Leibler divergences of soft labels from a network's: binary and categorical."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import log_softmax, logsigmoid

# Error of a sum of K probabilities in float32.
_ROUNDING = 1e-5


def binary_kl(scores: Tensor, labels: Tensor) -> Tensor:
    """Return KL(p, sigmoid(score)) of soft labels p, elementwise."""
    # With q = sigmoid(score) and d = q - p: near 0 its terms cancel to d^2 / (2 q (1 - q)), which
    # is left whole by log1p(-d / q) = log(p / q) and its like.
    d, q, rest, share = *_difference(scores, labels), 1 - labels
    near = d.abs() < 0.5 * torch.minimum(q, rest)
    below, above = (torch.where(near, ratio, 0.0) for ratio in (-d / q, d / rest))
    close = labels * torch.log1p(below) + share * torch.log1p(above)
    entropy = torch.xlogy(labels, labels) + torch.xlogy(share, share)
    far = entropy - labels * logsigmoid(scores) - share * logsigmoid(-scores)
    return torch.where(near, close, far).clamp(min=0.0)


def binary_kl_slope(scores: Tensor, labels: Tensor) -> Tensor:
    """Return the derivative of `binary_kl` in the score: sigmoid(score) - p."""
    return _difference(scores, labels)[0]


def _difference(scores: Tensor, labels: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    # q - p, q and 1 - q; the difference from those two that are small, which are exact.
    q, rest = torch.sigmoid(scores), torch.sigmoid(-scores)
    return torch.where(q < 0.5, q - labels, (1 - labels) - rest), q, rest


def categorical_kl(scores: Tensor, labels: Tensor) -> Tensor:
    """Return KL(p, softmax(scores)) (..., n) of soft labels p (..., n, K)."""
    # With r = (q - p) / p, p log(p / q) = p (r - log(1 + r)) - (q - p), and the q - p sum to 0:
    # terms that are never negative, and r^2 / 2 near 0 where p log(p / q) themselves cancel.
    logs = log_softmax(scores, dim=-1)
    d = logs.exp() - labels
    known = labels > 0
    p = torch.where(known, labels, 1.0)
    near = known & (d.abs() < 0.5 * p)
    ratio = torch.where(near, d / p, 0.0)
    close = p * (ratio - torch.log1p(ratio))
    far = torch.xlogy(labels, labels) - labels * logs + d
    terms = torch.where(near, close, torch.where(known, far, d))
    return terms.sum(-1).clamp(min=0.0)


def categorical_kl_slope(scores: Tensor, labels: Tensor) -> Tensor:
    """Return the derivative (..., n, K) of `categorical_kl` in the scores: softmax(scores) - p."""
    return torch.softmax(scores, dim=-1) - labels


def are_distributions(labels: Tensor) -> Tensor:
    """Return which rows of labels (n, K) are probability distributions, boolean (n,)."""
    within = ((labels >= 0) & (labels <= 1)).all(dim=-1)
    return within & ((labels.sum(dim=-1) - 1).abs() <= _ROUNDING)
