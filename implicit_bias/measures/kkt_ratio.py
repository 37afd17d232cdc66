r"""The ratio of the linearised margin problem to the weights' norm: 1 exactly at KKT points.

At weights w of smallest margin 1 of a network of degree L, in any norm N,

.. math:: P(w) = \min N(u) \quad\text{s.t.}\quad
          \langle \nabla m_n(w), u \rangle \ge 1 + (L - 1) m_n(w).

u = w is feasible, so :math:`\rho = P(w) / N(w) \le 1`; stationarity and complementarity of
:math:`\min N(w)` at margin 1 are those of this convex program at u = w, so it is 1 at KKT points
and nowhere else. Every lam >= 0 bounds P from below by
:math:`\sum \lambda_n (1 + (L - 1) m_n) / N^*(\sum \lambda_n \nabla m_n)`, every feasible u from
above: both are plain arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

from .._support.solve import Norm
from ..networks.placed_data import GatedData
from ..training.steppers.steepest_steps import (
    dual_norms,
    has_metric,
    norm_of_weights,
    norms_of,
    over_metric,
    steepest,
)
from .fit.gradients import combined_gradient, slopes

# Loss weights exp(-b m) of these b are tried first, then steps on the linearised problem improve
# on the best of them: more of them bring the bounds nearer.
SHARPEST, TEMPERATURES, STEPS = 12, 25, 400
# Momentum of these steps and by how much one may change a margin, as of training.
MOMENTUM, CHANGE = 0.9, 0.3


class LayerNorms:
    """The maximum over layers of the norm of each.

    Parameters
    ----------
    shapes : sequence of tuple of int
        Of the layers' weights, in the order in which they lie in a vector.
    norms : sequence of Norm
        One a layer.
    """

    def __init__(self, shapes: Sequence[tuple[int, ...]], norms: Sequence[Norm]) -> None:
        self._shapes, self._norms = shapes, norms

    @classmethod
    def named(cls, weights: Mapping[str, Tensor], norm: Mapping[str, Any]) -> LayerNorms:
        """Return the norms of named weights.

        Raises
        ------
        TypeError
            If it is no mapping, or holds something else than norms.
        ValueError
            If there are not norms of these layers and no others.
        """
        if not isinstance(norm, Mapping):
            raise TypeError(f"`norm` must map the names of weights to norms, got {norm!r}")
        shapes = [tuple(w.shape) for w in weights.values()]
        if set(norm) != set(weights):
            raise ValueError(
                f"`norm` must have a norm for each of the trained weights {', '.join(weights)}, "
                f"got {', '.join(map(str, norm)) or 'none'}"
            )
        return cls(shapes, [norm_of_weights(norm[name]) for name in weights])

    def value(self, u: Tensor) -> float:
        """Return the norm of a vector of all weights (P,)."""
        return max(float(norms_of(k, part)) for k, part in self._parts(u))

    def dual(self, v: Tensor) -> float:
        """Return the dual norm: the sum of the layers' dual norms."""
        return sum(float(dual_norms(k, part)) for k, part in self._parts(v))

    def steepest(self, v: Tensor) -> Tensor:
        """Return the steepest step of norm 1 along v (P,)."""
        return torch.cat([steepest(k, part).flatten() for k, part in self._parts(v)])

    @property
    def has_metric(self) -> bool:
        """Whether `over_metric` takes all of the norms."""
        return all(map(has_metric, self._norms))

    def over_metric(self, v: Tensor, floor: float, gradients: Tensor) -> Tensor:
        """Return gradients (k, P) over the metric in which the dual norm is Euclidean at v (P,)."""
        sizes = [torch.Size(shape).numel() for shape in self._shapes]
        parts = zip(self._parts(v), torch.split(gradients, sizes, dim=1), strict=True)
        made = [
            over_metric(norm, at[0], floor, some.reshape(len(some), *at.shape[1:])).flatten(1)
            for (norm, at), some in parts
        ]
        return torch.cat(made, dim=1)

    def _parts(self, u: Tensor) -> list[tuple[Norm, Tensor]]:
        sizes = [torch.Size(shape).numel() for shape in self._shapes]
        parts = torch.split(u, sizes)
        return [
            (norm, part.view(1, *shape))
            for norm, part, shape in zip(self._norms, parts, self._shapes, strict=True)
        ]


@dataclass
class Ratio:
    """Bounds of rho, the ratio of the linearised problem to the norm of the weights."""

    above: float = 1.0
    below: float = 0.0


def ratio_of_fit(w: Tensor, fit: Tensor, slope: Tensor, lam: Tensor, wanted: Tensor) -> Ratio:
    """Bracket the ratio in the l2 norm by one fit ``sum_n lam_n grad m_n`` of the weights (P,).

    Parameters
    ----------
    w, fit : (P,) tensors
    slope : (n,) tensor
        ``<grad m_n, fit>``.
    lam : (n,) tensor
    wanted : (n,) tensor
        1 + (L - 1) m_n.
    """
    size, length, least = float(w.norm()), float(fit.norm()), float((slope / wanted).min())
    if not length > 0:
        return Ratio()
    above = length / least / size if least > 0 else 1.0
    return Ratio(min(above, 1.0), float(lam @ wanted) / length / size)


def kkt_ratio(
    w: Tensor,
    excess: Tensor,
    degree: int,
    network: torch.nn.Module,
    data: GatedData,
    norm: LayerNorms,
) -> Ratio:
    """Bracket the ratio from multipliers and from points of the linearised problem.

    Parameters
    ----------
    w : (P,) tensor
        Weights of smallest margin 1.
    excess : (n,) tensor
        By how much margins exceed 1.
    degree : int
    network : Module
        With these weights.
    data : GatedData
    norm : LayerNorms
    """
    wanted = 1 + (degree - 1) * (1 + excess)
    combine = partial(combined_gradient, network, data)
    return steepest_bracket(w, excess, wanted, combine, partial(slopes, network, data), norm).ratio


@dataclass
class Bracket:
    """Bounds of rho, with the multipliers (n,) and the weights (P,) that prove them."""

    ratio: Ratio
    lam: Tensor
    v: Tensor


def steepest_bracket(
    w: Tensor,
    excess: Tensor,
    wanted: Tensor,
    combine: Callable[[Tensor], Tensor],
    slopes: Callable[[Tensor], Tensor],
    norm: LayerNorms,
) -> Bracket:
    """Bracket the ratio by steepest steps on the linearised problem.

    They begin at the weights, at some sharpness of the multipliers.

    Parameters
    ----------
    w : (P,) tensor
        Weights; feasible.
    excess : (n,) tensor
        By how much margins exceed the smallest, as a share of it.
    wanted : (n,) tensor
        Least slopes, all positive.
    combine : callable
        Takes multipliers (n,) to ``sum_n lam_n grad m_n`` (P,).
    slopes : callable
        Takes a direction (P,) to ``<grad m_n, direction>`` (n,).
    norm : LayerNorms
    """
    size = norm.value(w)
    found = Bracket(Ratio(), torch.zeros_like(wanted), w)

    def improve(lam: Tensor) -> Tensor:
        """Try multipliers, and return what they combine to."""
        v = combine(lam)
        dual = norm.dual(v)
        if dual > 0 and float(lam @ wanted) / dual / size > found.ratio.below:
            found.ratio.below, found.lam = float(lam @ wanted) / dual / size, lam
        return v

    spread = float(excess.max()) or 1.0
    sharpness = torch.logspace(-2, SHARPEST, TEMPERATURES, base=2.0, dtype=torch.float64)
    best, start = 0.0, 1.0 / spread
    for b in sharpness.tolist():
        improve(torch.exp(-b * excess / min(spread, 1.0)))
        if found.ratio.below > best:
            best, start = found.ratio.below, b / min(spread, 1.0)
    u = start * w
    # Scores of u over what is wanted; those of w itself are at least 1.
    scores = start * slopes(w) / wanted
    velocity, averaged = torch.zeros_like(w), torch.zeros_like(wanted)
    for t in range(STEPS):
        p = torch.softmax(-scores, dim=0) / wanted
        averaged = averaged + p
        velocity = MOMENTUM * velocity + improve(p)
        if t % 20 == 19:
            improve(averaged)
        direction = norm.steepest(velocity)
        slope = slopes(direction) / wanted
        step = CHANGE / max(float(slope.abs().max()), 1e-300) / (1 + t / (STEPS / 4)) ** 0.5
        u, scores = u + step * direction, scores + step * slope
        least = float(scores.min())
        if least > 0 and norm.value(u) / least / size < found.ratio.above:
            found.ratio.above, found.v = norm.value(u) / least / size, u / least
    improve(averaged)
    return found
