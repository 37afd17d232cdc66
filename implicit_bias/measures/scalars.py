"""Each quantity that sets a network beside a limit, defined once.

Used by `compare` at the end of training and by `Distances` along it.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .._support.doors import door
from .._support.kinds import between
from .._support.solve import to_numpy
from ..data.sample import Sample
from ..limits.limit import HasNorm
from ..networks.adapted import with_gates
from ..networks.placed_data import GatedData, place_data
from ..networks.protocols import HasUnitNorms, HasZeta, Homogeneous
from .kkt import KKTDistance, kkt_distance

if TYPE_CHECKING:
    import torch

    from ..limits.exact.multiclass import MarginLimit, MulticlassLimit
    from ..limits.limit import Limit

Array = NDArray[np.float64]

# A unit counts as dead in a network at finite time when its norm is at most this share of the
# largest: units that die do so like a power of the loss, never quite.
DEAD = 1e-3
# Dual norms come from a least-squares fit; one above 1 by less than this may be its rounding.
DUAL_ROUNDING = 1e-6
# Multipliers over the largest dual norm bound the optimum from below: a unit that exceeds 1 by less
# than this share could raise the margin by no more. On the way to the limit dual norms of live
# units come within 0.004 of 1 where the margin ratio is above 0.99, and units that are stuck at a
# twentieth of their share have 1.05 to 1.3.
DUAL_SLACK = 1e-2
# A unit with less than this part of its share in the limit still has to double.
SMALL = 0.5


@door()
def scores(network: torch.nn.Module, sample: Sample[Any]) -> Array:
    """Return the scores of a network on a sample, computed in its own dtype and on its own device.

    Parameters
    ----------
    network : Module
        Scores `network(X, gates)`, or `network(X)` for one without gates.
    sample : Sample
        Inputs (n, D), labels and the gates behind which the network is.

    Returns
    -------
    (n,) array, (n, K) of a network of K outputs
        In float64.

    Raises
    ------
    FloatingPointError
        If a score is NaN, which is on no side.

    Examples
    --------
    >>> network = ib.FReLU.from_zeta(np.array([[0.0, 4.0]]))
    >>> sample = ib.Sample(np.array([[3.0, 1.0], [5.0, -2.0]]), [1, -1], np.ones((2, 1)))
    >>> ib.measures.scores(network, sample).tolist()
    [4.0, -8.0]
    """
    return placed_scores(with_gates(network), place_data(network, *sample))


def placed_scores(network: torch.nn.Module, data: GatedData) -> Array:
    """`scores` of what `place_data` has checked already: checking costs as much as scoring."""
    import torch

    with torch.no_grad():
        scores = to_numpy(network(data.X, data.gates).double())
    if np.isnan(scores).any():
        raise FloatingPointError(
            f"the network gives no number to {int(np.isnan(scores).sum())} of {len(scores)} "
            "samples (NaN): its training has diverged, or its weights overflow in their dtype"
        )
    return scores


def unit_norms(network: torch.nn.Module) -> Array:
    """(H,) norms `||zeta[h]||`; (0,) for a network that has no units."""
    if not isinstance(network, HasUnitNorms):
        return np.empty(0)
    return to_numpy(network.unit_norms().double())


def network_zeta(network: torch.nn.Module) -> Array | None:
    """The network's coefficients in float64; None for one that has none."""
    return to_numpy(network.zeta().double()) if isinstance(network, HasZeta) else None


@door()
def network_norm(limit: Limit | MulticlassLimit, network: torch.nn.Module) -> float:
    """Return the norm of a network's coefficients in the norm of a limit.

    Parameters
    ----------
    limit : Limit or MulticlassLimit
    network : Module

    Returns
    -------
    float
        The sum of unit norms where the limit has no norm of its own or the network no
        coefficients, then NaN for a network without units.

    Examples
    --------
    >>> sample = ib.Sample(np.array([[3.0, 4.0]]), np.ones(1), np.ones((1, 1)))
    >>> network = ib.FReLU.from_zeta(np.array([[6.0, 8.0]]))
    >>> round(ib.measures.network_norm(ib.solve_frelu_svm(*sample), network), 6)
    10.0
    """
    zeta = network_zeta(network)
    if isinstance(limit, HasNorm) and zeta is not None:
        return float(limit.norm_of(zeta))
    norms = unit_norms(network)
    return float(norms.sum()) if len(norms) else math.nan


def margin_ratio(margin: float, norm: float, limit: MarginLimit) -> float:
    """Margin per unit of norm times the certified lower bound of the optimum.

    At most 1 for every network that is a point of the limit's program, and 1 exactly at the
    limit; NaN where the norm is 0 or not defined.
    """
    return margin / norm * float(limit.dual_objective) if norm > 0 else math.nan


def zeta_cosine(limit: MarginLimit, network: torch.nn.Module) -> float:
    """Cosine between both sets of coefficients; NaN for a network that has none.

    Of several outputs what all of them share counts for nothing, as no label depends on it. NaN
    too beside a limit that says that its program may have other solutions.

    Raises
    ------
    ValueError
        If their shapes differ.
    """
    trained, predicted = network_zeta(network), to_numpy(limit.zeta)
    if trained is None:
        return math.nan
    if trained.shape != predicted.shape:
        raise ValueError(
            f"the network's zeta has shape {trained.shape}, the limit's {predicted.shape}: "
            "both must be made for the same units and contexts"
        )
    if not getattr(limit, "is_unique", True):
        return math.nan
    if _of_outputs(limit):
        axis = trained.ndim - 2
        trained, predicted = (a - a.mean(axis, keepdims=True) for a in (trained, predicted))
    return cosine(trained.ravel(), predicted.ravel())


def _of_outputs(limit: MarginLimit) -> bool:
    """Return whether a limit has coefficients (..., K, D) of K classes."""
    return limit.dual.ndim == 2


def sample_margins(y: Array, scores: Array) -> Array:
    """Margins (n,) of labels (n,), or of rows (n, K) the least relative one of each sample."""
    if y.ndim == 1:
        return y * scores
    own = (y * scores).sum(axis=1)
    least: Array = own - np.where(y > 0, -np.inf, scores).max(axis=1)
    return least


def every_margin(y: Array, scores: Array) -> Array:
    """Margins (n,) of labels (n,), or of rows (n, K) those (n (K - 1),) over every other class."""
    if y.ndim == 1:
        return y * scores
    own = (y * scores).sum(axis=1, keepdims=True)
    return np.asarray((own - scores)[y == 0])


def score_cosine(a: Array, b: Array) -> float:
    """Cosine between two sets of scores, of K classes without what a sample's share."""
    if a.ndim == 2:
        a, b = ((f - f.mean(axis=1, keepdims=True)).ravel() for f in (a, b))
    return cosine(a, b)


def cosine(a: Array, b: Array) -> float:
    """Cosine between two vectors; NaN if one of them is 0."""
    # Networks that were trained far have entries whose squares overflow.
    a, b = (v / (np.abs(v).max(initial=0.0) or 1.0) for v in (a, b))
    norms = float(np.linalg.norm(a) * np.linalg.norm(b))
    return float(a @ b) / norms if norms > 0 else math.nan


@door(a="n>=1 | n>=1 K>=1", b="=a: one score for each of `a`")
def agreement(a: Array, b: Array) -> float:
    """Return the share of samples that two sets of scores put on the same side.

    Parameters
    ----------
    a, b : (n,) arrays
        Scores; 0 is a side of its own. Of K classes (n, K): the label is that of the largest.

    Returns
    -------
    float

    Examples
    --------
    >>> ib.measures.agreement(np.array([2.0, -1.0, 0.0, 3.0]), np.array([5.0, 1.0, 0.0, 0.0]))
    0.5
    """
    if a.ndim == 2:
        return float(np.mean(np.argmax(a, axis=1) == np.argmax(b, axis=1)))
    return float(np.mean(np.sign(a) == np.sign(b)))


def known_share(name: str, value: float) -> None:
    """Refuse a share outside [0, 1]; NaN, where it is not known, passes."""
    if value != value and isinstance(value, float):
        return
    between(0, 1)(name, value)


@door(p=known_share, q=known_share)
def agreement_independent(p: float, q: float) -> float:
    """Return the agreement of two classifiers whose errors are independent.

    Parameters
    ----------
    p, q : float
        Their error rates, in [0, 1].

    Returns
    -------
    float
        The chance that both err or neither does; NaN where one of them is not known.

    Examples
    --------
    >>> ib.measures.agreement_independent(0.25, 0.25)
    0.625
    """
    return p * q + (1 - p) * (1 - q)


def accuracy(y: Array, scores: Array) -> float:
    """Share of samples on the right side; a score of exactly 0 is on neither, as a tie is."""
    return float(np.mean(sample_margins(y, scores) > 0))


@door(y="n>=1 | n>=1 K>=1", scores="=y: one score a label of `y`")
def error_rate(y: Array, scores: Array) -> float:
    """Return the share of samples that are not on the right side: what `accuracy` leaves.

    Parameters
    ----------
    y : (n,) array
        Labels in {-1, +1}; of K classes rows (n, K) with a one at each sample's own.
    scores : (n,) or (n, K) array
        A score of exactly 0 is on neither side, and wrong; of classes a tie of the largest.

    Returns
    -------
    float

    Examples
    --------
    >>> ib.measures.error_rate(np.array([1, -1, 1, 1]), np.array([2.0, -1.0, -3.0, 0.0]))
    0.5
    """
    return float(np.mean(~(sample_margins(y, scores) > 0)))


def dead_units(norms: Array) -> NDArray[np.intp]:
    """Indices of the units whose norm is at most a thousandth of the largest."""
    return np.flatnonzero(norms <= DEAD * norms.max(initial=0.0))


def above_one(dual_norms: Array) -> NDArray[np.bool_]:
    """Mask of the dual norms above 1: a dead unit with such a one would be alive at the optimum."""
    return dual_norms > 1 + DUAL_ROUNDING


def wrongly_small(norms: Array, dual_norms: Array, limit: MarginLimit | None) -> NDArray[np.intp]:
    """Indices of units that would have to be larger at the optimum.

    A unit with a dual norm above 1 grows beside the others like a power of log(1/loss), the excess
    over 1 as exponent: however slowly it does, it does not stay. These are the dead units whose
    dual norm is above 1, and those with one above 1.01 that hold less than half of the share of
    the norm that the limit gives them. The latter are not known without a limit, nor beside one
    whose norm is not the sum of this network's unit norms.
    """
    small = np.zeros(len(norms), dtype=bool)
    small[dead_units(norms)] = True
    small &= above_one(dual_norms)
    predicted = None if limit is None or isinstance(limit, HasNorm) else to_numpy(limit.unit_norms)
    if predicted is not None and len(predicted) == len(norms) and 0 < norms.sum() < np.inf:
        behind = norms / norms.sum() < SMALL * predicted / predicted.sum()
        small |= behind & (dual_norms > 1 + DUAL_SLACK)
    return np.flatnonzero(small)


def kkt_where_separated(
    network: torch.nn.Module, sample: Sample[Any] | GatedData, margins: Array
) -> KKTDistance | None:
    """KKT distance of a homogeneous network that separates the sample; None for any other.

    With the gradients that differentiation returns: along training there is no time for more.
    """
    if not isinstance(network, Homogeneous) or not margins.min() > 0:
        return None
    return kkt_distance(network, *sample, kinks=False)
