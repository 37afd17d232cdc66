r"""Losses of scores and targets, and the logarithm of those that have one.

A loss of the margin :math:`m = y f(x)`, y in {-1, +1}, that falls exponentially underflows near the
end of training; trainers that go far along work with :math:`\log \frac1n \sum_n \ell(m_n)` instead.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from .divergences import are_shares, of_many, of_many_slope, of_two, of_two_slope

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
        Of scores and targets: the loss, and its derivative in the score, elementwise.
    targets : str
        Which targets it takes.
    takes : callable
        Whether it takes them, elementwise.
    logarithm : MarginLogarithm or None
        None for a loss that is not one of margins.
    of_classes : bool
        Whether scores and targets have a last axis of K classes, over which the loss is a sum.
    """

    value: Callable[[Tensor, Tensor], Tensor]
    slope: Callable[[Tensor, Tensor], Tensor]
    targets: str
    takes: Callable[[Tensor], Tensor]
    logarithm: MarginLogarithm | None = None
    of_classes: bool = False


def _of_margins(
    value: Callable[[Tensor], Tensor],
    slope: Callable[[Tensor], Tensor],
    log_value: Callable[[Tensor], Tensor],
    log_slope: Callable[[Tensor], Tensor],
    tail: float,
) -> Objective:
    return Objective(
        value=lambda scores, y: value(y * scores),
        slope=lambda scores, y: y * slope(y * scores),
        targets="values in {-1, +1}: map two classes with 2 * (y == a) - 1",
        takes=lambda y: y.abs() == 1,
        logarithm=MarginLogarithm(log_value, log_slope, tail),
    )


def _logistic_value(margins: Tensor) -> Tensor:
    return -logsigmoid(margins)


def _logistic_slope(margins: Tensor) -> Tensor:
    return -torch.sigmoid(-margins)


def _logistic_log_value(margins: Tensor) -> Tensor:
    # log log1p(e^-m) = -m + log(log1p(e^-m) / e^-m), and the second term is that of c = min(m, 36)
    # to full precision: log l(m) = log l(c) - (m - c).
    body = margins.clamp(max=_TAIL_START)
    return torch.log(-logsigmoid(body)) - (margins - body)


def _logistic_log_slope(margins: Tensor) -> Tensor:
    body = margins.clamp(max=_TAIL_START)
    return torch.sigmoid(-body) / logsigmoid(body)


def _exponential_value(margins: Tensor) -> Tensor:
    return torch.exp(-margins)


def _exponential_slope(margins: Tensor) -> Tensor:
    return -torch.exp(-margins)


def _exponential_log_slope(margins: Tensor) -> Tensor:
    return -torch.ones_like(margins)


def _half_square(scores: Tensor, targets: Tensor) -> Tensor:
    return 0.5 * (scores - targets).square()


OBJECTIVES: Mapping[str, Objective] = MappingProxyType(
    {
        "logistic": _of_margins(
            _logistic_value, _logistic_slope, _logistic_log_value, _logistic_log_slope, _TAIL_START
        ),
        "exponential": _of_margins(
            _exponential_value, _exponential_slope, torch.neg, _exponential_log_slope, -math.inf
        ),
        "squared": Objective(
            value=_half_square,
            slope=torch.sub,
            targets="finite values",
            takes=torch.isfinite,
        ),
        "cross-entropy": Objective(
            value=of_two,
            slope=of_two_slope,
            targets="soft labels in [0, 1]: the chance of the class 1",
            takes=lambda y: (y >= 0) & (y <= 1),
        ),
        # Of networks that weigh hard labels beside soft ones at a temperature.
        "excess": Objective(
            value=torch.sub,
            slope=lambda scores, y: torch.ones_like(scores),
            targets="finite values: the least loss of every sample",
            takes=torch.isfinite,
        ),
        "softmax": Objective(
            value=of_many,
            slope=of_many_slope,
            targets="soft labels (n, K) of K >= 2 classes, rows in [0, 1] with sum 1",
            takes=are_shares,
            of_classes=True,
        ),
    }
)


def get_loss(kind: str) -> Objective:
    """Look a loss up in `OBJECTIVES`; raises ValueError for a name that is not there."""
    if kind not in OBJECTIVES:
        raise ValueError(f"`loss` must be one of {sorted(OBJECTIVES)}, got {kind!r}")
    return OBJECTIVES[kind]


def get_logarithm(kind: str) -> MarginLogarithm:
    """The logarithm of a loss of margins.

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


def mean_loss_gradient(scores: Tensor, targets: Tensor, kind: str) -> Tensor:
    """Return the gradient (..., n), or (..., n, K), of the mean loss in the scores."""
    objective = get_loss(kind)
    return objective.slope(scores, targets) / scores.shape[-2 if objective.of_classes else -1]


def log_mean_loss(margins: Tensor, kind: str = "logistic") -> Tensor:
    r"""Return :math:`\log \frac1n \sum_n \ell(m_n)`, finite for margins of any finite size.

    Parameters
    ----------
    margins : Tensor (..., n)
        Margins :math:`y_n f(x_n)`, float32 or float64; the mean is over the last axis.
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
    _require_samples(margins)
    log_values = get_logarithm(kind).value(margins)
    # Not torch.logsumexp: its gradient exp(log l_n - result) takes the rounding of the result, some
    # hundredths at 1e6 in float32, for a factor. Relative to the peak the weights sum to 1.
    peak = log_values.detach().amax(-1, keepdim=True)
    total = torch.exp(log_values - peak).sum(-1)
    return peak.squeeze(-1) + torch.log(total) - math.log(margins.shape[-1])


def log_mean_loss_gradient(scores: Tensor, targets: Tensor, kind: str) -> Tensor:
    r"""Return the gradient (..., n) of `log_mean_loss` in the scores.

    Written as :math:`y_n \, \mathrm{softmax}(\log \ell)_n \, \ell'(m_n) / \ell(m_n)`, in which
    nothing under- or overflows.
    """
    logarithm, margins = get_logarithm(kind), targets * scores
    shares = torch.softmax(logarithm.value(margins), dim=-1)
    return targets * (shares * logarithm.slope(margins))


class Smoothed(NamedTuple):
    """The smoothed margins of runs side by side, and what their gradients are made of.

    Attributes
    ----------
    log_loss : (B,)
        `log_mean_loss`, in float64.
    pull : (B, n)
        Its gradient in the scores, in their dtype.
    smallest : (B,)
        Margin, in float64.
    """

    log_loss: Tensor
    pull: Tensor
    smallest: Tensor


def smoothed(scores: Tensor, targets: Tensor, kind: str) -> Smoothed:
    """`log_mean_loss` and `log_mean_loss_gradient` of scores (B, n), in one pass over them.

    Where the smallest of all margins is in the loss's tail, which far along it is, that costs one
    exponential a sample.
    """
    logarithm, margins = get_logarithm(kind), (targets * scores).double()
    smallest = margins.amin(-1)
    if float(smallest.min()) >= logarithm.tail:
        peak, shares = -smallest, torch.exp(smallest[:, None] - margins)
    else:
        log_values = logarithm.value(margins)
        peak = log_values.amax(-1)
        shares = torch.exp(log_values - peak[:, None])
        targets = -targets * logarithm.slope(margins)
    total = shares.sum(-1)
    log_loss = peak + torch.log(total / margins.shape[-1])
    pull = targets * (shares / -total[:, None])
    return Smoothed(log_loss, pull.to(scores.dtype), smallest)


def _require_samples(margins: Tensor) -> None:
    if margins.ndim == 0 or margins.shape[-1] == 0:
        raise ValueError(
            f"`margins` must have shape (..., n) with n >= 1, got {tuple(margins.shape)}: "
            "one margin y f(x) a sample"
        )
