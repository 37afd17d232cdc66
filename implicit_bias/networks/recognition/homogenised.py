"""The homogenised network: what is left of scores as all weights grow together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.func import functional_call

from ..adapted import GateFree, plain
from .rates import ExactRates, euler_terms, exact_rates, random_weights, scales_away, with_zeros
from .subject import SAME, Subject, misfit, normal

# Powers of two by which random weights are scaled: with a small eps of a norm nothing is left of it
# at the first, and half of it shows the order of what vanishes; a smaller one for deep networks,
# whose scores overflow.
_FAR = (20, 10)
_DRAWS, _INTEGER = 16, 1e-3
# f_H is read off at weights times so high a power of two, if scores are numbers there.
_LARGEST, _EXPONENTS = 60, 900
# Draws of scales of the tensors, the powers of two of R, and samples for the growth of the gap.
_SCALES, _NEAREST, _FARTHEST, _FEW = 400, 16, 28, 4
# Scales that are tried at once; networks of more weights are tried along half as many.
_AT_ONCE, _SMALL = 50, 10_000
# Of the terms of the gap: rounding. Most constants of a gap of lower degree are below
# 2 ** _CONSTANT; one that cancels by chance at the nearer R seems to grow fast.
_ROUNDING, _CONSTANT = 2.0**-40, 4
# Scales whose growth is looked at again, at so many weights, of which a share must show it.
_SUSPECTS, _TRIES, _CONFIRMED = 4, 10, 0.4


@dataclass(frozen=True, eq=False)
class Homogenised:
    r"""The homogenised network of a module F and how near F is to it.

    .. math:: F_H(\theta) = \lim_{r \to \infty} F(r \theta) / r^M

    Attributes
    ----------
    degree : int or None
        M; None if it is no whole number, or nothing grows.
    orders : mapping of str to int
        Tensors that F_H does not contain: with r the order, the scores have degree M - r in all
        other weights where they are linear in such a tensor. r is l of a bias of layer l.
    near : bool
        Whether the gap ``<theta, grad F> - M F`` of Euler's identity has degree M - 1 at most over
        all weights, also where some tensors are small: measured, not proved.
    subject : Subject or None
        F_H on the same samples, a function of the other tensors; None where F is not near.
    """

    degree: int | None
    orders: Mapping[str, int]
    near: bool
    subject: Subject | None

    @property
    def vanishing(self) -> tuple[str, ...]:
        """Trained tensors that F_H does not contain."""
        return tuple(self.orders)


class LeadingTerm(GateFree):
    """A module's scores at its trained weights times 2^k, over 2^(k M).

    Exact but for terms of lower degree, which are at most about 2^-k of it.
    """

    called: torch.nn.Module

    def __init__(self, network: torch.nn.Module, degree: int) -> None:
        super().__init__(plain(network))
        # The adapter itself, unseen: its parameters are those of `module`.
        object.__setattr__(self, "called", network)
        self.degree, self.power = degree, min(_LARGEST, _EXPONENTS // degree)
        self.trained = [name for name, p in self.module.named_parameters() if p.requires_grad]

    def forward(self, X: Tensor, gates: Tensor | None = None) -> Tensor:
        """Return the scores (n,), or (n, K)."""
        prefix = "module." if isinstance(self.called, GateFree) else ""
        own = dict(self.module.named_parameters())
        grown = {prefix + name: own[name] * 2.0**self.power for name in self.trained}
        scores: Tensor = functional_call(self.called, grown, (X, gates))
        return scores * 2.0 ** (-self.power * self.degree)


def homogenise(subject: Subject, rates: ExactRates | None = None) -> Homogenised:
    """Measure the degree of a module at large weights, what vanishes there, and what is left.

    Parameters
    ----------
    subject : Subject
        All trained tensors have gradients.
    rates : ExactRates, optional
        Of the same subject, if they are known.

    Returns
    -------
    Homogenised
        From random weights: measured, not proved.

    References
    ----------
    Y. Cai, K. Zhou, J. Wu, S. Mei, M. Lindsey, P. L. Bartlett, "Implicit bias of gradient descent
    for non-homogeneous deep networks", arXiv 2502.16075, for the notion.
    """
    rates = exact_rates(subject) if rates is None else rates
    degree, orders = _far_out(subject)
    if degree is None or degree < 1 or scales_away(rates.null).any():
        return Homogenised(degree, MappingProxyType({}), False, None)
    if not _gap_is_lower(subject, degree):
        return Homogenised(degree, MappingProxyType({}), False, None)
    return Homogenised(degree, MappingProxyType(orders), True, _leading(subject, degree, orders))


def _far_out(subject: Subject) -> tuple[int | None, dict[str, int]]:
    """Return the degree at random weights of a large scale, and the order of what vanishes."""
    few = subject.few(_FEW)
    for power in _FAR:
        far, half = (_at_scale(few, one) for one in (power, power // 2))
        with np.errstate(divide="ignore", invalid="ignore"):
            degrees = far[:, :-1].sum(axis=1) / far[:, -1]
        found = np.isfinite(degrees)
        if found.any():
            break
    else:
        return None, {}
    # Weights at which a layer is closed show less than the whole degree.
    degree = round(float(degrees[found].max()))
    whole = found & (np.abs(degrees - degree) <= _INTEGER)
    if not whole.any():
        return None, {}
    shares, before = (np.abs(one[whole, :-1] / one[whole, -1:]) for one in (far, half))
    orders = {}
    for k, name in enumerate(few.weights):
        seen = (shares[:, k] > 0) & (before[:, k] > 0)
        falls = np.log2(before[seen, k] / shares[seen, k]) / (power - power // 2)
        fall = round(float(np.median(falls))) if seen.any() else degree - 1
        if fall > 0 or not seen.any():
            orders[name] = 1 + fall
    return degree, orders


def _at_scale(subject: Subject, power: int) -> NDArray[np.float64]:
    powers = np.full((_DRAWS, len(subject.weights)), power)
    c = normal(subject.scores({}).shape, 0)
    return euler_terms(subject, range(_DRAWS), powers, c)


def _gap_is_lower(subject: Subject, degree: int) -> bool:
    """Test whether the gap of Euler's identity grows by degree - 1 at most along all scales."""
    few = subject.few(_FEW)
    c = normal(few.scores({}).shape, 0)
    scales = _scales(few)
    for first in range(0, len(scales), _AT_ONCE):
        tried = scales[first : first + _AT_ONCE]
        suspect = tried[_grows(few, degree, tried, c, first)][:_SUSPECTS]
        if not len(suspect):
            continue
        # Of weights at which layers are closed nothing shows; a gap that cancels is rare.
        again = np.repeat(suspect, _TRIES, axis=0)
        seen = _grows(few, degree, again, c, _SCALES + first).reshape(-1, _TRIES)
        if bool((seen.mean(axis=1) >= _CONFIRMED).any()):
            return False
    return True


def _scales(subject: Subject) -> NDArray[np.int64]:
    """Return exponents (k, p) of R in {-1, 0, 1}: a few tensors that stay behind, then any."""
    p = len(subject.weights)
    rng = np.random.default_rng(0)
    behind = np.concatenate([np.tri(p, dtype=np.int64), np.eye(p, dtype=np.int64)])
    count = max(_SCALES if subject.n_weights <= _SMALL else _SCALES // 2, 8 * p) - 4 * p
    pairs = np.ones((count // 2, p), dtype=np.int64)
    for row in pairs:
        chosen = rng.choice(p, size=min(2, p), replace=False)
        row[chosen] = rng.integers(-1, 1, len(chosen))
    any_ = rng.integers(-1, 2, (count // 2, p))
    return np.concatenate([1 - behind, 1 - 2 * behind, pairs, any_])


def _grows(
    subject: Subject, degree: int, scales: NDArray[np.int64], c: Tensor, seed: int
) -> NDArray[np.bool_]:
    """Return along which scales (k, p) the gap grows by more than degree - 1."""
    far = min(_FARTHEST, _EXPONENTS // degree)
    near = far * _NEAREST // _FARTHEST
    limit = (degree - 1) * np.maximum(0, scales.max(axis=1))
    seeds = range(seed, seed + len(scales))
    gap = _gap(subject, degree, seeds, scales * far, c)
    # What overflows grows.
    found = ~(gap <= 2.0 ** (far * limit + _CONSTANT))
    seen = np.flatnonzero(found)
    if len(seen):
        before = _gap(subject, degree, [seeds[k] for k in seen], scales[seen] * near, c)
        with np.errstate(divide="ignore", invalid="ignore"):
            growth = np.log2(gap[seen] / before)
        found[seen] = ~(growth <= (limit[seen] + 0.5) * (far - near))
    return np.asarray(found)


def _gap(
    subject: Subject, degree: int, seeds: Sequence[int], powers: NDArray[np.int64], c: Tensor
) -> NDArray[np.float64]:
    """Return the gap of Euler's identity (k,); 0 where it is rounding."""
    terms = euler_terms(subject, seeds, powers, c)
    parts, total = terms[:, :-1], degree * terms[:, -1]
    gap = np.abs(parts.sum(axis=1) - total)
    return np.where(gap > _ROUNDING * (np.abs(parts).sum(axis=1) + np.abs(total)), gap, 0.0)


def _leading(subject: Subject, degree: int, orders: Mapping[str, int]) -> Subject:
    """Return F_H: the module without what vanishes if that is all, else its leading term."""
    rest = with_zeros(subject, tuple(orders)) if orders else subject
    leading = replace(rest, network=LeadingTerm(rest.network, degree))
    draws = [random_weights(rest.weights, seed) for seed in range(_DRAWS)]
    same = all(
        misfit(leading.scores(w).flatten(), rest.scores(w).flatten()) <= SAME
        for w in [*draws, rest.weights]
    )
    return rest if same else leading
