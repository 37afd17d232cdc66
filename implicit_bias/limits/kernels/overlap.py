"""Overlaps of active paths, the neural path kernel, and measures of a kernel's spectrum."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._support.doors import door
from ..._support.kinds import counts
from ..._support.solve import Array, require_sizes
from ...data.arrays import Floats
from .arrays import (
    GATES,
    OF_GATES,
    OF_SAMPLES,
    check_kernel,
    layers_of,
    others,
    row_blocks,
    targets,
)


@door(**OF_GATES)
def path_overlap(gates: Array, gates2: Array = None, *, widths: Sequence[int]) -> Floats:
    r"""Return the numbers of paths active on both of two samples, weighted by activity.

    .. math:: \lambda(s, s') = \sum_p A_p(s) A_p(s') = \prod_l \langle G_l(s), G_l(s') \rangle

    The sum over all paths through the hidden layers factorises, so that no path is listed.

    Parameters
    ----------
    gates : (n, sum of widths) array
        Any real numbers, layer after layer; 1 is open, 0 closed.
    gates2 : (m, sum of widths) array, optional
        Gates of other samples; by default the same.
    widths : sequence of int
        Units of the hidden layers.

    Returns
    -------
    (n, m) float64 array

    Raises
    ------
    TypeError, ValueError
        If gates are not real, not finite, or do not have these widths.

    References
    ----------
    C. Lakshminarayanan, A. V. Singh, "Neural path features and neural path kernel"; for 0/1 gates
    the overlap kernel of deep linearly gated networks.

    Examples
    --------
    >>> gates = np.array([[1, 0, 1, 1], [1, 1, 0, 1]])  # two layers of two units
    >>> ib.kernels.path_overlap(gates, widths=(2, 2)).tolist()
    [[2.0, 1.0], [1.0, 2.0]]
    """
    second = gates if gates2 is None else gates2
    blocks = row_blocks(len(gates), len(second))
    overlap = np.ones((len(gates), len(second)))
    for a, b in zip(layers_of(gates, widths), layers_of(second, widths), strict=True):
        for rows in blocks:
            overlap[rows] *= a[rows] @ b.T
    return overlap


@door(**OF_SAMPLES)
def neural_path_kernel(
    X: Array, gates: Array, X2: Array = None, gates2: Array = None, *, widths: Sequence[int]
) -> Floats:
    r"""Return the Gram matrix of the path features :math:`x_i A_p(x)`.

    .. math:: K = (X X'^T) \circ \lambda

    with :math:`\lambda` the `path_overlap` of the gates.

    Parameters
    ----------
    X : (n, D) array
    gates : (n, sum of widths) array
        Any real numbers, layer after layer.
    X2, gates2 : (m, D) and (m, sum of widths) arrays, optional
        Other samples, both or neither; by default the same.
    widths : sequence of int
        Units of the hidden layers.

    Returns
    -------
    (n, m) float64 array

    Raises
    ------
    TypeError, ValueError
        If an array is not real, finite and of these widths, inputs and gates have different
        numbers of rows, or one of `X2` and `gates2` is missing.

    Examples
    --------
    >>> X, gates = np.array([[2.0], [3.0]]), np.array([[1, 0], [1, 1]])
    >>> ib.kernels.neural_path_kernel(X, gates, widths=(2,)).tolist()
    [[4.0, 6.0], [6.0, 18.0]]
    """
    second, opened = others((X, gates), X2=X2, gates2=gates2)
    kernel = path_overlap(gates, gates2=opened, widths=widths)
    for rows in row_blocks(*kernel.shape):
        kernel[rows] *= X[rows] @ second.T
    return kernel


@door(gates=GATES, widths=counts())
def overlap_ratio(gates: Array, *, widths: Sequence[int]) -> float:
    r"""Return the largest share of a sample's open gates in a layer that another sample shares.

    .. math:: \eta = \max_{s \ne s', l}
              \langle G_l(s), G_l(s') \rangle / \langle G_l(s), G_l(s) \rangle

    For 0/1 gates :math:`\lambda(s, s') \le \eta^{L-1} \lambda(s, s)` with L - 1 hidden layers:
    depth separates samples. As printed in the source the maximum runs over s' = s too, which
    makes it 1. Layers that are closed on a sample count 0 for it; a single sample has the ratio 0.

    Parameters
    ----------
    gates : (n, sum of widths) array
        Any real numbers, layer after layer.
    widths : sequence of int
        Units of the hidden layers.

    Raises
    ------
    TypeError, ValueError
        If gates are not real, finite and of these widths, or there is no hidden layer.

    Examples
    --------
    >>> ib.kernels.overlap_ratio(np.array([[1, 1, 0], [0, 1, 1]]), widths=(3,))
    0.5
    """
    layers = layers_of(gates, widths)
    if not layers:
        raise ValueError("`widths` is empty: without a hidden layer no gates overlap")
    largest = 0.0
    for layer in layers:
        own = np.einsum("nw,nw->n", layer, layer)
        weights = np.divide(1.0, own, out=np.zeros_like(own), where=own > 0)
        for rows in row_blocks(len(layer), len(layer)):
            shares = weights[rows, None] * (layer[rows] @ layer.T)
            shares[np.arange(len(shares)), np.arange(rows.start, rows.stop)] = 0.0
            largest = max(largest, float(shares.max()))
    return largest


@door()
def spectrum_ideal(n: int, rate: float, depth: int) -> Floats:
    r"""Return the eigenvalues of the mean tangent kernel of equal inputs under random gates.

    For n samples x = 1 with gates open with probability `rate`, and weights of variance
    1 / (rate width), :math:`E K / d` has ones on the diagonal and :math:`\mu^{d-1}` off it for
    d = `depth` layers of weights: :math:`1 - \mu^{d-1}`, and once :math:`1 + (n-1) \mu^{d-1}`.
    A single network's kernel varies about this mean as `ntk_moments` says.

    Parameters
    ----------
    n : int
        Samples.
    rate : float
        Probability of an open gate, in [0, 1].
    depth : int
        Layers of weights, at least 1.

    Returns
    -------
    (n,) float64 array, ascending

    Raises
    ------
    ValueError
        If a number is out of range.

    Examples
    --------
    >>> ib.kernels.spectrum_ideal(3, 0.5, 2).tolist()
    [0.5, 0.5, 2.0]
    """
    if n < 1 or depth < 1 or not 0 <= rate <= 1:
        raise ValueError(
            f"`n` and `depth` must be at least 1 and `rate` in [0, 1], got {n}, {depth} and {rate}"
        )
    require_sizes("eigenvalues", {"n": n}, (2, n))
    shared = rate ** (depth - 1)
    return np.append(np.full(n - 1, 1 - shared), 1 + (n - 1) * shared)


@door()
def nu(K: Any, y: Any) -> float:
    r"""Return the misfit :math:`\nu = y^T (K / \operatorname{tr} K)^{-1} y` of kernel and targets.

    It falls as the kernel aligns with the targets, to :math:`\|y\|^2` at :math:`K \propto y y^T`.
    Infinite if the targets leave the range of the kernel by more than the square root of the
    resolution of float64.

    Parameters
    ----------
    K : (n, n) array
        Kernel, symmetric and positive semidefinite.
    y : (n,) array
        Real targets.

    Raises
    ------
    TypeError, ValueError
        If `K` is no kernel (n, n), is zero, or `y` is not (n,).

    Examples
    --------
    >>> ib.kernels.nu(np.diag([1.0, 3.0]), [1.0, 0.0]), ib.kernels.nu(np.eye(2), [1.0, 0.0])
    (4.0, 2.0)
    """
    kernel = check_kernel(K)
    wanted = targets("y", y, len(kernel))
    trace = float(np.trace(kernel))
    if trace == 0:
        raise ValueError("`K` is zero: no sample has an active path")
    values, vectors = np.linalg.eigh(kernel)
    parts = vectors.T @ wanted
    kept = values > len(kernel) * np.finfo(np.float64).eps * values[-1]
    outside = float(np.linalg.norm(parts[~kept]))
    if outside > np.sqrt(np.finfo(np.float64).eps) * float(np.linalg.norm(wanted)):
        return float("inf")
    return float(trace * np.sum(parts[kept] ** 2 / values[kept]))
