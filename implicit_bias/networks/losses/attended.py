r"""The loss of attention with a fixed value head, in logarithms.

Of logits a and token scores :math:`\gamma` a sequence has
:math:`f = \sum_t p_t \gamma_t`, p the softmax of a, and the loss :math:`e^{-f}`. It does not go to
0, but to that of the tokens s that are attended to, and softmax is 1.0000 in floats long before
the direction has settled. With :math:`g_t = \gamma_s - \gamma_t` the slope in another logit is

.. math:: e^{-f} p_t \Big(g_t - \sum_u p_u g_u\Big), \qquad
          f = \gamma_s - \sum_u p_u g_u,

and that in the own logit minus their sum: no difference of numbers that are nearly equal, and a
common scale that is kept as a logarithm.
"""

from __future__ import annotations

import torch
from torch import Tensor


def selected(logits: Tensor) -> Tensor:
    """Return rows like logits (..., T), 1 at the largest one, the first of several, else 0."""
    return torch.nn.functional.one_hot(logits.argmax(-1), logits.shape[-1]).to(logits)


def attended_loss(logits: Tensor, scores: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    r"""Return what is left of the loss above that of the selected tokens, in logarithms.

    Parameters
    ----------
    logits : (..., n, T) tensor
    scores : (n, T) tensor
        Of which some in a sequence differ.

    Returns
    -------
    log_loss : (...) tensor
        :math:`\log \frac1n \sum_n e^{-f_n} \sum_t p_{nt} |g_{nt}|`, to first order the logarithm of
        the loss above that of the selected tokens where these are the best, in float64.
    gradient : (..., n, T) tensor
        Of the mean of :math:`e^{-f_n}`, divided by exp of `log_loss`: in float64.
    smallest_margin : (...) tensor
        Least difference of the selected token's logit and that of one with a lower score.
    """
    a, gamma = logits.double(), scores.double()
    own = selected(a)
    gap = (own * gamma).sum(-1, keepdim=True) - gamma
    log_p = torch.log_softmax(a, -1)
    lacking = (log_p.exp() * gap).sum(-1, keepdim=True)
    log_weight = (log_p + lacking - (own * gamma).sum(-1, keepdim=True)).masked_fill(
        own > 0, -torch.inf
    )
    peak = log_weight.masked_fill(gap == 0, -torch.inf).amax((-2, -1), keepdim=True)
    weight = torch.exp((log_weight - peak).clamp(max=700.0))
    total = (weight * gap.abs()).sum((-2, -1), keepdim=True)
    others = weight * (gap - lacking) / total
    gradient = others - own * others.sum(-1, keepdim=True)
    ahead = (own * a).sum(-1, keepdim=True) - a
    smallest = torch.where(gap > 0, ahead, torch.inf).amin((-2, -1))
    log_loss = (peak + torch.log(total / a.shape[-2]))[..., 0, 0]
    return log_loss, gradient, smallest
