r"""Exponential-like losses of margins, and their logarithm beyond the reach of the loss itself.

A loss :math:`\ell(m)` of the margin :math:`m = y f(x)` is averaged over samples. Near the end of
training it underflows, so the normalised trainer works with :math:`\log \frac1n \sum_n \ell(m_n)`.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

# log1p(e) = e (1 - e/2 + ...): with e = exp(-36) = 2.3e-16 the bracket is 1 in float64, and
# exp(-36) itself is a normal number in float32 as well as in float64.
_TAIL_START = 36.0


@dataclass(frozen=True)
class Loss:
    r"""One loss of a margin m: four elementwise functions of a tensor of margins.

    Attributes
    ----------
    value : callable
        :math:`\ell(m)`.
    slope : callable
        :math:`\ell'(m)`.
    log_value : callable
        :math:`\log \ell(m)`, finite wherever m is (differentiable by autograd).
    log_slope : callable
        :math:`\ell'(m) / \ell(m)`, the derivative of `log_value`.
    """

    value: Callable[[Tensor], Tensor]
    slope: Callable[[Tensor], Tensor]
    log_value: Callable[[Tensor], Tensor]
    log_slope: Callable[[Tensor], Tensor]


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


OBJECTIVES: Mapping[str, Loss] = MappingProxyType(
    {
        "logistic": Loss(
            _logistic_value, _logistic_slope, _logistic_log_value, _logistic_log_slope
        ),
        "exponential": Loss(
            _exponential_value, _exponential_slope, torch.neg, _exponential_log_slope
        ),
    }
)


def get_loss(kind: str) -> Loss:
    """Look a loss up in `OBJECTIVES`.

    Raises
    ------
    ValueError
        If `kind` is not a name in `OBJECTIVES`.
    """
    if kind not in OBJECTIVES:
        raise ValueError(f"`kind` of loss must be one of {sorted(OBJECTIVES)}, got {kind!r}")
    return OBJECTIVES[kind]


def mean_loss(margins: Tensor, kind: str = "logistic") -> Tensor:
    r"""Return the mean loss :math:`\frac1n \sum_n \ell(m_n)`.

    Parameters
    ----------
    margins : Tensor (..., n)
        Margins :math:`y_n f(x_n)`, float32 or float64; the mean is over the last axis.
    kind : {"logistic", "exponential"}
        :math:`\ell(m) = \log(1 + e^{-m})` or :math:`e^{-m}`.

    Returns
    -------
    Tensor (...)
        Differentiable in `margins`.

    Raises
    ------
    ValueError
        If `kind` is unknown or `margins` has no samples.
    """
    _require_samples(margins)
    return get_loss(kind).value(margins).mean(-1)


def log_mean_loss(margins: Tensor, kind: str = "logistic") -> Tensor:
    r"""Return :math:`\log \frac1n \sum_n \ell(m_n)`, finite for margins of any finite size.

    Parameters and errors are those of `mean_loss`.

    Notes
    -----
    Its gradient in the margins is :math:`\frac{\ell'(m_n)}{\sum_k \ell(m_k)}`: far along, a softmax
    of the negative margins.
    """
    _require_samples(margins)
    log_values = get_loss(kind).log_value(margins)
    # Not torch.logsumexp: its gradient exp(log l_n - result) takes the rounding of the result, some
    # hundredths at 1e6 in float32, for a factor. Relative to the peak the weights sum to 1.
    peak = log_values.detach().amax(-1, keepdim=True)
    total = torch.exp(log_values - peak).sum(-1)
    return peak.squeeze(-1) + torch.log(total) - math.log(margins.shape[-1])


def mean_loss_gradient(margins: Tensor, kind: str = "logistic") -> Tensor:
    r"""Return the gradient (..., n) of `mean_loss` in the margins, :math:`\ell'(m_n) / n`."""
    return get_loss(kind).slope(margins) / margins.shape[-1]


def log_mean_loss_gradient(margins: Tensor, kind: str = "logistic") -> Tensor:
    r"""Return the gradient (..., n) of `log_mean_loss` in the margins.

    Written as :math:`\mathrm{softmax}(\log \ell)_n \, \ell'(m_n) / \ell(m_n)`, in which nothing
    under- or overflows.
    """
    loss = get_loss(kind)
    return torch.softmax(loss.log_value(margins), dim=-1) * loss.log_slope(margins)


def _require_samples(margins: Tensor) -> None:
    if margins.ndim == 0 or margins.shape[-1] == 0:
        raise ValueError(
            f"`margins` must have shape (..., n) with n >= 1, got {tuple(margins.shape)}: "
            "one margin y f(x) a sample"
        )
