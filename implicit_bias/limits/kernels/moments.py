r"""Exact mean and variance of every entry of the tangent kernel at random weights.

An entry of K is a sum over pairs of paths that share one weight, which is left out of both; its
square is a sum over four paths 1, 2, 3, 4, of which 1 and 3 belong to sample s, 2 and 4 to s'.
Weights are independent and symmetric, so a product of them has a mean other than zero only where
equal ones meet, and then it depends on which paths coincide: in a layer they pass through
nodes that all agree (state A), or agree as 12|34 (B), 13|24 (C) or 14|23 (D). The layers are a
Markov chain of these states, whose weights are the numbers of nodes that do so.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..._support.doors import door, result
from ..._support.kinds import floats
from ..._support.shown import ReadOnly, Shown
from ..._support.solve import Array, require_memory
from ...data.arrays import Floats
from .arrays import OF_GATES, OF_SAMPLES, layers_of, others, row_blocks


@result()
@dataclass(frozen=True, eq=False, repr=False)
class NTKMoments(ReadOnly, Shown):
    """Moments of the tangent kernel over random weights.

    Attributes
    ----------
    mean, variance : (n, m) arrays, read-only
        Moments of each entry. The variance is a difference of second moments: it is known to about
        1e-15 of ``variance + mean ** 2``.

    Examples
    --------
    >>> moments = ib.kernels.ntk_moments(
    ...     [[1.0]], np.ones((1, 4)), widths=(4,), variance=0.25, kurtosis=1.0
    ... )
    >>> moments.mean.tolist(), moments.variance.tolist()
    ([[2.0]], [[0.0]])
    """

    mean: Floats
    variance: Floats


def _counts(a: Floats, b: Floats) -> Floats:
    """Return weighted numbers (4, n, m) of a layer's nodes in which four paths agree as states say.

    For all pairs of rows of `a` (n, width) and `b` (m, width): in state A the sum of ``g^2 g'^2``;
    in B and D, pairs of different nodes, ``(sum of g g')^2`` less that, in C ``(sum of g^2)(sum of
    g'^2)`` less that.
    """
    squares, squares2 = a * a, b * b
    together = squares @ squares2.T
    same = (a @ b.T) ** 2 - together
    crossed = squares.sum(axis=1)[:, None] * squares2.sum(axis=1) - together
    return np.stack([together, same, crossed, same])


def _plain(states: Floats, counts: Floats, variance: float, kurtosis: float) -> Floats:
    """Return the sums (4, n, m) of four paths by their state behind a layer of weights.

    All weights occur, each twice or four times.
    """
    meeting = states[0] + states
    meeting[0] = kurtosis * states[0] + states[1:].sum(axis=0)
    return np.asarray(counts * variance**2 * meeting)


def _reduced(states: Floats, counts: Floats, factor: float) -> Floats:
    """Return the sums behind a layer where paths 1 and 2, or 3 and 4, or both, lose a weight.

    `factor` is the mean product of the remaining weights: the variance, or 1.
    """
    found = np.zeros_like(states)
    found[:2] = counts[:2] * (factor * (states[0] + states[1]))
    return found


@door(**OF_SAMPLES)
def ntk_moments(
    X: Array,
    gates: Array,
    X2: Array = None,
    gates2: Array = None,
    *,
    widths: Sequence[int],
    variance: float | Sequence[float],
    kurtosis: float,
) -> NTKMoments:
    r"""Compute the moments of a deep gated network's tangent kernel at random initial weights.

    Weights are independent of each other and of the gates, and symmetric about zero. With one
    variance :math:`\sigma^2` for all d layers the mean is

    .. math:: E K = d \sigma^{2(d-1)} (X X'^T) \circ \lambda .

    Parameters
    ----------
    X : (n, D) array
    gates : (n, sum of widths) array
        Any real numbers, layer after layer.
    X2, gates2 : (m, D) and (m, sum of widths) arrays, optional
        Other samples, both or neither.
    widths : sequence of int
        Units of the d - 1 hidden layers.
    variance : float or sequence of d floats
        Variance of the weights, of all layers or of each; `initial_variance` of a `DGN`.
    kurtosis : float
        Fourth moment over the squared variance: 1 for signs, 3 for Gaussian weights.

    Returns
    -------
    NTKMoments
        Mean and variance, (n, m) each.

    Raises
    ------
    TypeError, ValueError
        If an array is malformed, the variance is not positive or not one a layer, or the kurtosis
        is below 1, which no weights have.

    Notes
    -----
    A published bound of the variance, of the order max(d^2 / w, d^3 / w^2) at widths w with
    variance 1 / w, is wrong: for a deep linear network of one input it is
    (2/3)(d-1)(d-2)(2d-3) / w + 2 (kurtosis - 1)(d-1)^2 / w in leading order, of the order d^3 / w.
    Four paths meet at nodes, not at weights alone.

    Examples
    --------
    >>> moments = ib.kernels.ntk_moments(
    ...     [[1.0]], np.ones((1, 8)), widths=(4, 4), variance=0.25, kurtosis=1.0
    ... )
    >>> moments.mean.tolist(), moments.variance.round(12).tolist()
    ([[3.0]], [[0.75]])
    """
    samples2, opened = others((X, gates), X2=X2, gates2=gates2)
    layers, layers2 = layers_of(gates, widths), layers_of(opened, widths)
    variances = _variances(variance, len(layers) + 1)
    if not 1 <= kurtosis < math.inf:
        raise ValueError(f"`kurtosis` must be at least 1 and finite, got {kurtosis}")
    # Twelve states and their successors live at once: smaller blocks than those of one kernel.
    blocks = row_blocks(len(X), len(samples2), copies=32)
    mean, spread = (np.empty((len(X), len(samples2))) for _ in range(2))
    for rows in blocks:
        part = [layer[rows] for layer in layers]
        mean[rows] = _mean(X[rows], samples2, part, layers2, variances)
        second = _second(X[rows], samples2, part, layers2, variances, kurtosis)
        spread[rows] = np.maximum(second - mean[rows] ** 2, 0.0)
    return NTKMoments(mean, spread)


_SLOPES = "+widths P>=0: the derivatives of the same gates"


@door(jacobian=floats(f"n {_SLOPES}"), jacobian2=floats(f"m {_SLOPES}"), **OF_GATES)
def delta(
    gates: Array,
    jacobian: Array,
    gates2: Array = None,
    jacobian2: Array = None,
    *,
    widths: Sequence[int],
) -> Floats:
    r"""Return the overlap of path activities' derivatives in the weights of soft gates.

    .. math:: \delta(s, s') = \sum_p \Big\langle \frac{\partial A_p(s)}{\partial \theta},
              \frac{\partial A_p(s')}{\partial \theta} \Big\rangle

    summed over paths of hidden units. At random symmetric weights of variance :math:`\sigma^2`,
    :math:`E K^a = \sigma^{2d} (X X'^T) \circ \delta` for the kernel of `activation_kernel`.

    Parameters
    ----------
    gates : (n, sum of widths) array
        Soft gates.
    jacobian : (n, sum of widths, weights) array
        Their derivatives, from `SoftGates.jacobian`.
    gates2, jacobian2 : (m, sum of widths) and (m, sum of widths, weights) arrays, optional
        Those of other samples, both or neither; by default the same.
    widths : sequence of int
        Units of the hidden layers.

    Returns
    -------
    (n, m) float64 array

    Raises
    ------
    TypeError, ValueError
        If shapes disagree, or memory cannot hold the derivatives of one sample's overlaps.

    Examples
    --------
    >>> gates, slopes = np.array([[0.5, 1.0]]), np.ones((1, 2, 1))  # two units, one weight
    >>> ib.kernels.delta(gates, slopes, widths=(2,)).tolist()
    [[2.0]]
    """
    if not len(widths):
        raise ValueError("`widths` is empty: without a hidden layer there are no gates")
    other, slopes = others((gates, jacobian), gates2=gates2, jacobian2=jacobian2)
    first = _with_slopes(gates, jacobian, widths)
    second = _with_slopes(other, slopes, widths)
    found = np.empty((len(gates), len(other)))
    for s in range(len(gates)):
        one = [(layer[s], slope[s]) for layer, slope in first]
        found[s] = _delta_of_one(one, second)
    return found


def _delta_of_one(one: list[tuple[Floats, Floats]], others: list[tuple[Floats, Floats]]) -> Floats:
    """Return `delta` (m,) of one sample with others, by the product rule over layers."""
    overlaps = np.stack([b @ a for (a, _), (b, _) in zip(one, others, strict=True)])
    traces, moved, moved_other = [], [], []
    for (a, slope), (b, slope2) in zip(one, others, strict=True):
        traces.append(np.einsum("wk,nwk->n", slope, slope2))
        moved.append(b @ slope)
        moved_other.append(np.einsum("w,nwk->nk", a, slope2))
    total = np.zeros(overlaps.shape[1])
    for layer in range(len(one)):
        total += np.prod(np.delete(overlaps, layer, axis=0), axis=0) * traces[layer]
        for below in range(len(one)):
            if below != layer:
                rest = np.prod(np.delete(overlaps, [layer, below], axis=0), axis=0)
                total += rest * np.einsum("nk,nk->n", moved[layer], moved_other[below])
    return total


def _with_slopes(
    gates: Floats, jacobian: Floats, widths: Sequence[int]
) -> list[tuple[Floats, Floats]]:
    size = 2 * len(widths) * len(gates) * jacobian.shape[2]
    require_memory(size, "derivatives of overlaps", "take fewer samples")
    return list(zip(layers_of(gates, widths), layers_of(jacobian, widths), strict=True))


def _variances(variance: float | Sequence[float], n_layers: int) -> list[float]:
    values = [float(v) for v in np.atleast_1d(np.asarray(variance, dtype=np.float64))]
    values = values * n_layers if np.ndim(variance) == 0 else values
    if len(values) != n_layers or not all(0 < value < math.inf for value in values):
        raise ValueError(
            f"`variance` must be a positive number or {n_layers} of them, one a layer of weights, "
            f"got {variance}"
        )
    return values


def _mean(
    X: Floats, X2: Floats, layers: list[Floats], layers2: list[Floats], variances: list[float]
) -> Floats:
    # Only equal paths have a mean; each leaves out the weight of one layer.
    left = sum(math.prod(variances[:k] + variances[k + 1 :]) for k in range(len(variances)))
    overlap = X @ X2.T
    for a, b in zip(layers, layers2, strict=True):
        overlap *= a @ b.T
    return left * overlap


def _second(
    X: Floats,
    X2: Floats,
    layers: list[Floats],
    layers2: list[Floats],
    variances: list[float],
    kurtosis: float,
) -> Floats:
    """Return the means of the squared entries."""
    # The inputs are a layer of gates, before which nothing has been lost.
    none = _counts(X, X2)
    one, both = np.zeros_like(none), np.zeros_like(none)
    last = np.ones((len(X), 1)), np.ones((len(X2), 1))  # the score: one unit, always open
    for (a, b), v in zip([*zip(layers, layers2, strict=True), last], variances, strict=True):
        counts = _counts(a, b)
        # Either pair may lose its weight first, hence 2; then the other one is left.
        both = _plain(both, counts, v, kurtosis)
        both += _reduced(one, counts, v) + _reduced(none, counts, 1.0)
        one = _plain(one, counts, v, kurtosis) + 2.0 * _reduced(none, counts, v)
        none = _plain(none, counts, v, kurtosis)
    return np.asarray(both[0])
