"""Shares and effects of the tensors that vanish as weights grow, now and later."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import torch
from torch import Tensor

from .homogenised import Homogenised
from .regime import Rates, RegimeName
from .subject import Subject, Weights

# A power of two by which weights are scaled to read off the leading term of a coefficient, and the
# largest one of scores.
_POWER, _MOST = 40, 900


@dataclass(frozen=True)
class VanishingTensor:
    r"""A tensor that the homogenised network does not contain.

    At a limit direction with multipliers lam that sum to 1, normalised margin gamma and a tensor
    of order r it grows with the norm rho of all weights as

    .. math:: \frac{d \|\theta_i\|}{d\rho} = G \rho^{1-r}, \qquad
              G = \frac{1}{M \gamma} \Big\| \sum_n \lambda_n \partial_i m_n \Big\|

    Attributes
    ----------
    name : str
    order : int
        r: the degree of the scores in all other weights is M - r where they are linear in it.
    norm : float
    share : float
        The norm over that of all trained weights.
    effect : float
        Largest change of a margin without it, over the least margin. A norm of weights in which it
        is free, such as that of sign descent, leaves it any share; its effect vanishes.
    growth : float
        G, under gradient descent; NaN if neither multipliers nor earlier weights say.
    later_share, later_effect : float
        Predicted at ten times log(1/loss), under gradient descent and in the regime of the
        homogenised network alone; NaN if the prediction needs a growth that is not known.
    """

    name: str
    order: int
    norm: float
    share: float
    effect: float
    growth: float
    later_share: float
    later_effect: float


def vanishing_tensors(
    subject: Subject,
    rates: Rates,
    *,
    multipliers: Tensor | None = None,
    earlier: Weights | None = None,
) -> tuple[VanishingTensor, ...]:
    """Measure the tensors that vanish, and predict their shares at ten times log(1/loss).

    Parameters
    ----------
    subject : Subject
    rates : Rates
        Of the same subject.
    multipliers : (n,) or (n, K) tensor, optional
        Of the KKT conditions of the homogenised network, of any scale: of K classes those of the
        margins to each other class, and 0 at a sample's own.
    earlier : mapping of str to tensor, optional
        Weights of the same training at an earlier time, which say how the tensors grow.

    Returns
    -------
    tuple of VanishingTensor
        Of the lowest order first.

    Notes
    -----
    As log(1/loss) grows by ten, rho grows by 10^(1/M), and the norm of the tensor by G times the
    logarithm of that for r = 2; for r >= 3 it tends to a constant.
    """
    found = rates.homogenised
    at_top = rates.regime.name is RegimeName.TOP
    weights = subject.weights
    rho = _norm(weights)
    margins = subject.margins({})
    growths: Mapping[str, float] = MappingProxyType({})
    if at_top and multipliers is not None:
        growths = _growths(subject, found, multipliers)
    elif at_top and earlier is not None:
        growths = _measured_growths(weights, earlier, found)
    several = []
    for name, order in sorted(found.orders.items(), key=lambda item: item[1]):
        size = float(weights[name].norm())
        without = subject.margins({name: torch.zeros_like(weights[name])})
        effect = float((margins - without).abs().max() / margins.min().clamp(min=0))
        growth, factor = growths.get(name, math.nan), math.nan
        if at_top and found.degree is not None:
            known = 0.0 if order > 2 and math.isnan(growth) else growth
            later_rho = rho * 10 ** (1 / found.degree)
            factor = 1 + known * _clock(order, rho, later_rho) / size if size > 0 else math.nan
            shrinks = 10 ** (-1 / found.degree)
            later = (size / rho * shrinks * factor, effect * shrinks**order * factor)
        else:
            later = (math.nan, math.nan)
        several.append(VanishingTensor(name, order, size, size / rho, effect, growth, *later))
    return tuple(several)


def _growths(subject: Subject, found: Homogenised, multipliers: Tensor) -> dict[str, float]:
    """Return G of every vanishing tensor, from multipliers of the homogenised network."""
    assert found.subject is not None and found.degree is not None
    degree = found.degree
    kept = found.subject.weights
    rho, least = _norm(kept), float(found.subject.margins({}).min())
    lam = multipliers / multipliers.sum()
    targets = subject.data.y
    # The weighted sum of margins is one of scores.
    c = lam * targets if targets.ndim == 1 else lam.sum(1, keepdim=True) * targets - lam
    power = min(_POWER, _MOST // degree)
    far = {name: p * 2.0**power / rho for name, p in kept.items()}
    zero = {name: torch.zeros_like(subject.weights[name]) for name in found.orders}
    _, gradient = subject.gradient({**far, **zero}, c)
    gamma = least / rho**degree
    return {
        name: float(gradient[name].norm()) * 2.0 ** (-power * (degree - order)) / (degree * gamma)
        for name, order in found.orders.items()
    }


def _measured_growths(now: Weights, earlier: Weights, found: Homogenised) -> dict[str, float]:
    """Return G of every vanishing tensor, from its norm at two times."""
    before, after = _norm({name: earlier[name] for name in now}), _norm(now)
    if not after > before:
        return {}
    return {
        name: float(now[name].norm() - earlier[name].norm()) / _clock(order, before, after)
        for name, order in found.orders.items()
    }


def _clock(order: int, rho: float, later: float) -> float:
    """Return the integral of ``rho^(1 - order)``."""
    if order == 2:
        return math.log(later / rho)
    return (rho ** (2 - order) - later ** (2 - order)) / (order - 2)


def _norm(weights: Weights) -> float:
    return float(torch.stack([p.norm() for p in weights.values()]).norm())
