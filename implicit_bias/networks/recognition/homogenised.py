"""The homogenised network: what is left of scores as all weights grow together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
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
_SCALES, _NEAREST, _FARTHEST, _FEW = 400, 12, 28, 4
# Of the terms of the gap: rounding. Constants of a gap of lower degree are below 2 ** _CONSTANT.
_ROUNDING, _CONSTANT, _TRIES = 2.0**-40, 14, 3


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
    if degree is None or degree < 1 or scales_away(rates.null).max(initial=0.0) > 0.5:
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
        if shares[:, k].max() < 2.0 ** -(power // 2):
            seen = (shares[:, k] > 0) & (before[:, k] > 0)
            falls = np.log2(before[seen, k] / shares[seen, k]) / (power - power // 2)
            orders[name] = 1 + round(float(np.median(falls))) if seen.any() else degree
    return degree, orders


def _at_scale(subject: Subject, power: int) -> NDArray[np.float64]:
    shape = subject.scores({}).shape
    return np.array(
        [
            euler_terms(subject, random_weights(subject.weights, seed, power), normal(shape, seed))
            for seed in range(_DRAWS)
        ]
    )


def _gap_is_lower(subject: Subject, degree: int) -> bool:
    few = subject.few(_FEW)
    c = normal(few.scores({}).shape, 0)
    return all(
        any(_grows_less(few, degree, exponents, c, k + _SCALES * again) for again in range(_TRIES))
        for k, exponents in enumerate(_scales(len(few.weights)))
    )


def _scales(p: int) -> Iterator[NDArray[np.int64]]:
    """Yield exponents (p,) of R in {-1, 0, 1}: a few tensors that stay behind, then any."""
    rng = np.random.default_rng(0)
    count = 0
    for low in (0, -1):
        for k in range(p):
            for behind in (slice(k, k + 1), slice(0, k + 1)):
                exponents = np.ones(p, dtype=np.int64)
                exponents[behind] = low
                yield exponents
                count += 1
    for _ in range(max(_SCALES - count, _SCALES // 4) // 2):
        exponents = np.ones(p, dtype=np.int64)
        exponents[rng.choice(p, size=min(2, p), replace=False)] = rng.integers(-1, 1, min(2, p))
        yield exponents
        yield rng.integers(-1, 2, size=p)


def _grows_less(
    subject: Subject, degree: int, exponents: NDArray[np.int64], c: Tensor, seed: int
) -> bool:
    """Test whether the gap of Euler's identity grows by degree - 1 at most along these scales."""
    far = min(_FARTHEST, _EXPONENTS // degree)
    limit = (degree - 1) * max(0, int(exponents.max()))
    gap = _gap(subject, degree, exponents * far, c, seed)
    if not gap > 2.0 ** (far * limit + _CONSTANT):
        return True
    near = far * _NEAREST // _FARTHEST
    before = _gap(subject, degree, exponents * near, c, seed)
    return before > 0 and np.log2(gap / before) <= (limit + 0.5) * (far - near)


def _gap(subject: Subject, degree: int, powers: NDArray[np.int64], c: Tensor, seed: int) -> float:
    *terms, total = euler_terms(subject, random_weights(subject.weights, seed, powers), c)
    gap, size = abs(sum(terms) - degree * total), np.abs(terms).sum() + abs(degree * total)
    return float(gap) if gap > _ROUNDING * size else 0.0


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
