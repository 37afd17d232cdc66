r"""Losses of scores and targets, and the logarithm of those that have one.

A loss of the margin :math:`m = y f(x)`, y in {-1, +1}, that falls exponentially underflows near the
end of training; trainers that go far along work with :math:`\log \frac1n \sum_n \ell(m_n)` instead.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from .attended import attended_loss, selected
from .kl_divergence import (
    are_distributions,
    binary_kl,
    binary_kl_slope,
    categorical_kl,
    categorical_kl_slope,
)
from .margins import are_classes, least_margins, loss_margins, margin_gradient

# log1p(e) = e (1 - e/2 + ...): with e = exp(-36) = 2.3e-16 the bracket is 1 in float64, and
# exp(-36) itself is a normal number in float32 as well as in float64.
_TAIL_START = 36.0


@dataclass(frozen=True)
class MarginLogarithm:
    r"""The logarithm of a loss of margins m, as elementwise functions.

    Attributes
    ----------
    value : callable
        :math:`\log \ell(m)`, finite wherever m is (differentiable by autograd).
    slope : callable
        :math:`\ell'(m) / \ell(m)`, the derivative of `value`.
    tail : float
        From this margin on `value` is -m and `slope` -1, to rounding.
    """

    value: Callable[[Tensor], Tensor]
    slope: Callable[[Tensor], Tensor]
    tail: float


@dataclass(frozen=True)
class Objective:
    """One loss, averaged over samples.

    Attributes
    ----------
    value, slope : callable
        The loss of scores and targets, and its derivative in the score, elementwise.
    targets : str
        Description of the targets that it takes, for messages.
    accepts : callable
        Returns which targets are such, elementwise, or one row at a time with classes.
    logarithm : MarginLogarithm or None
        None for a loss that is not one of margins.
    axes : tuple of int
        How many axes targets may have: 1 for (n,), 2 for (n, K) of K classes.
    of_tokens : bool
        Whether targets are scores of tokens, of which the network's own logits select some.
    """

    value: Callable[[Tensor, Tensor], Tensor]
    slope: Callable[[Tensor, Tensor], Tensor]
    targets: str
    accepts: Callable[[Tensor], Tensor]
    logarithm: MarginLogarithm | None = None
    axes: tuple[int, ...] = (1,)
    of_tokens: bool = False

    @property
    def in_logarithms(self) -> bool:
        """True if steps go along the gradient of a logarithm: of margins, or of tokens."""
        return self.logarithm is not None or self.of_tokens


def _margin_objective(
    value: Callable[[Tensor], Tensor],
    slope: Callable[[Tensor], Tensor],
    logarithm: MarginLogarithm,
) -> Objective:
    return Objective(
        value=lambda scores, y: value(loss_margins(scores, y)),
        slope=lambda scores, y: margin_gradient(slope(loss_margins(scores, y)), scores, y),
        targets="values in {-1, +1}: map two classes with 2 * (y == a) - 1, and give K classes as "
        "the rows np.eye(K)[labels]",
        accepts=_are_labels,
        logarithm=logarithm,
        axes=(1, 2),
    )


def _are_labels(y: Tensor) -> Tensor:
    """Return which labels are -1 or +1, and which rows (n, K) have a single one, at a class."""
    if not are_classes(y):
        return y.abs() == 1
    return ((y == 0) | (y == 1)).all(dim=-1) & (y.sum(dim=-1) == 1)


def _log_logistic(margins: Tensor) -> Tensor:
    # log log1p(e^-m) = -m + log(log1p(e^-m) / e^-m), and the second term is that of c = min(m, 36)
    # to full precision: log l(m) = log l(c) - (m - c).
    body = margins.clamp(max=_TAIL_START)
    return torch.log(-logsigmoid(body)) - (margins - body)


def _log_logistic_slope(margins: Tensor) -> Tensor:
    body = margins.clamp(max=_TAIL_START)
    return torch.sigmoid(-body) / logsigmoid(body)


def _attention_slope(logits: Tensor, scores: Tensor) -> Tensor:
    p = torch.softmax(logits, -1)
    f = (p * scores).sum(-1, keepdim=True)
    return -torch.exp(-f) * p * (scores - f)


OBJECTIVES: Mapping[str, Objective] = MappingProxyType(
    {
        "logistic": _margin_objective(
            lambda margins: -logsigmoid(margins),
            lambda margins: -torch.sigmoid(-margins),
            MarginLogarithm(_log_logistic, _log_logistic_slope, _TAIL_START),
        ),
        "exponential": _margin_objective(
            lambda margins: torch.exp(-margins),
            lambda margins: -torch.exp(-margins),
            MarginLogarithm(torch.neg, lambda margins: -torch.ones_like(margins), -math.inf),
        ),
        "squared": Objective(
            value=lambda scores, y: 0.5 * (scores - y).square(),
            slope=torch.sub,
            targets="finite values",
            accepts=torch.isfinite,
        ),
        "cross-entropy": Objective(
            value=binary_kl,
            slope=binary_kl_slope,
            targets="soft labels in [0, 1]: the chance of the class 1",
            accepts=lambda y: (y >= 0) & (y <= 1),
        ),
        # For networks that weigh hard labels beside soft ones at a temperature.
        "excess": Objective(
            value=torch.sub,
            slope=lambda scores, y: torch.ones_like(scores),
            targets="finite values: the least loss of every sample",
            accepts=torch.isfinite,
        ),
        "softmax": Objective(
            value=categorical_kl,
            slope=categorical_kl_slope,
            targets="soft labels (n, K) of K >= 2 classes, rows in [0, 1] with sum 1",
            accepts=are_distributions,
            axes=(2,),
        ),
        "attention": Objective(
            value=lambda logits, y: torch.exp(-(torch.softmax(logits, -1) * y).sum(-1)),
            slope=_attention_slope,
            targets="scores (n, T) of T >= 2 tokens, not all the same in a row",
            accepts=lambda y: torch.isfinite(y).all(-1) & (y.amax(-1) > y.amin(-1)),
            axes=(2,),
            of_tokens=True,
        ),
    }
)


def get_loss(kind: str) -> Objective:
    """Look a loss up in `OBJECTIVES`; raises ValueError for a name that is not there."""
    if kind not in OBJECTIVES:
        raise ValueError(f"`loss` must be one of {sorted(OBJECTIVES)}, got {kind!r}")
    return OBJECTIVES[kind]


def get_logarithm(kind: str) -> MarginLogarithm:
    """Look the logarithm of a loss of margins up.

    Raises
    ------
    ValueError
        If there is no such loss, or it is not one of margins.
    """
    logarithm = get_loss(kind).logarithm
    if logarithm is None:
        known = sorted(name for name, objective in OBJECTIVES.items() if objective.logarithm)
        raise ValueError(f"`loss` must be one of margins, {known}, got {kind!r}")
    return logarithm


def log_loss(scores: Tensor, targets: Tensor, kind: str) -> Tensor:
    """Return the logarithms (B,), in float64, of the mean losses of scores (B, n) or (B, n, K)."""
    if get_loss(kind).of_tokens:
        return attended_loss(scores, targets)[0]
    return log_mean_loss(loss_margins(scores, targets).double(), kind)


def pairs_of(scores: Tensor, targets: Tensor, kind: str) -> Tensor:
    """Return the targets that margins are of: of tokens, rows of those that the scores select."""
    return selected(scores) if get_loss(kind).of_tokens else targets


def mean_loss_gradient(scores: Tensor, targets: Tensor, kind: str) -> Tensor:
    """Return the gradient (..., n), or (..., n, K), of the mean loss in the scores."""
    n_samples = scores.shape[-2 if are_classes(targets) else -1]
    return get_loss(kind).slope(scores, targets) / n_samples


def log_mean_loss(margins: Tensor, kind: str = "logistic") -> Tensor:
    r"""Return :math:`\log \frac1n \sum_n \ell(m_n)`, finite for margins of any finite size.

    Parameters
    ----------
    margins : Tensor (..., n)
        Margins :math:`y_n f(x_n)`, or `loss_margins` of K classes, float32 or float64; the mean is
        over the last axis.
    kind : str
        A loss of margins in `OBJECTIVES`.

    Returns
    -------
    Tensor (...)
        Differentiable in `margins`.

    Raises
    ------
    ValueError
        If `kind` is no loss of margins or `margins` has no samples.

    Notes
    -----
    Its gradient in the margins is :math:`\frac{\ell'(m_n)}{\sum_k \ell(m_k)}`: far along, a softmax
    of the negative margins.
    """
    if margins.ndim == 0 or margins.shape[-1] == 0:
        raise ValueError(
            f"`margins` must have shape (..., n) with n >= 1, got {tuple(margins.shape)}: "
            "one margin y f(x) a sample"
        )
    log_values = get_logarithm(kind).value(margins)
    # Not torch.logsumexp: its gradient exp(log l_n - result) takes the rounding of the result, some
    # hundredths at 1e6 in float32, for a factor. Relative to the peak the weights sum to 1.
    peak = log_values.detach().amax(-1, keepdim=True)
    total = torch.exp(log_values - peak).sum(-1)
    return peak.squeeze(-1) + torch.log(total) - math.log(margins.shape[-1])


def log_mean_loss_gradient(scores: Tensor, targets: Tensor, kind: str) -> Tensor:
    r"""Return the gradient, like the scores (..., n) or (..., n, K), of `log_mean_loss` in them.

    Written as :math:`\nabla m_n \, \mathrm{softmax}(\log \ell)_n \, \ell'(m_n) / \ell(m_n)`, in
    which nothing under- or overflows. Of the loss "attention", that of `attended_loss`.
    """
    if get_loss(kind).of_tokens:
        return attended_loss(scores, targets)[1].to(scores)
    logarithm, margins = get_logarithm(kind), loss_margins(scores, targets)
    shares = torch.softmax(logarithm.value(margins), dim=-1)
    return margin_gradient(shares * logarithm.slope(margins), scores, targets)


class SmoothedLoss(NamedTuple):
    """Logarithms of the mean losses of B networks, and what their gradients are made of.

    Attributes
    ----------
    log_loss : (B,)
        `log_mean_loss`, in float64.
    score_gradient : (B, n) or (B, n, K)
        Its gradient in the scores, in their dtype.
    smallest_margin : (B,)
        In float64; of K classes the least relative one.
    """

    log_loss: Tensor
    score_gradient: Tensor
    smallest_margin: Tensor


def smoothed_loss(scores: Tensor, targets: Tensor, kind: str) -> SmoothedLoss:
    """Return `log_mean_loss` and its gradient for scores (B, n) or (B, n, K), in one pass.

    Where the smallest of all margins is in the loss's tail, which far along it is, that costs one
    exponential a sample. Only on the CPU, which is asked for nothing here.
    """
    if get_loss(kind).of_tokens:
        log_loss, gradient, smallest = attended_loss(scores, targets)
        return SmoothedLoss(log_loss, gradient.to(scores.dtype), smallest)
    logarithm, known, rows = get_logarithm(kind), scores.double(), targets.double()
    margins = loss_margins(known, rows)
    least = least_margins(known, rows) if are_classes(rows) else margins
    smallest = least.amin(-1)
    ask = margins.device.type == "cpu" and least is margins
    in_tail = ask and float(smallest.min()) >= logarithm.tail
    log_values = -margins if in_tail else logarithm.value(margins)
    peak = log_values.amax(-1)
    shares = torch.exp(log_values - peak[:, None])
    total = shares.sum(-1)
    log_loss = peak + torch.log(total / margins.shape[-1])
    slope = shares / -total[:, None]
    if not in_tail:
        slope = slope * -logarithm.slope(margins)
    gradient = margin_gradient(slope, known, rows)
    return SmoothedLoss(log_loss, gradient.to(scores.dtype), smallest)
