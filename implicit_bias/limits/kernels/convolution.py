"""Circular convolutions, gates and global average pooling: the kernel of bundles of paths."""

from __future__ import annotations

import numpy as np

from ..._support.doors import door
from ..._support.kinds import floats
from ..._support.solve import Array, require_memory
from ...data.arrays import Floats
from .arrays import others, row_blocks


@door(
    X=floats("n D"),
    gates=floats("n G: with a row a sample"),
    X2=floats("m D"),
    gates2=floats("m G: with a row a sample"),
)
def bundle_kernel(
    X: Array, gates: Array, X2: Array = None, gates2: Array = None, *, kernel_size: int
) -> Floats:
    r"""Return the kernel of gated circular convolutions with global average pooling.

    It follows from inputs and gates alone.

    One channel of D positions, L convolutions of `kernel_size` weights, each followed by a gate a
    position, and the mean over positions:

    .. math:: z_l[j] = G_l[j] \sum_{k} \theta_l[k]\, z_{l-1}[(j + k) \bmod D], \qquad
              f = \tfrac1D \sum_j z_L[j]

    Weights are shared, so that D paths have equal strengths :math:`\theta_1[k_1] \cdots
    \theta_L[k_L]`: a bundle b, with :math:`B_b(s) = \sum_{p \in b} x_{p(0)} A_p(s)`. Then

    .. math:: f(s) = \tfrac1D \sum_b \theta_b B_b(s), \qquad
              K(s, s') = \tfrac{1}{D^2} \sum_b B_b(s) B_b(s') .

    For independent weights of mean 0 and variance :math:`\sigma^2`, and gates that do not depend on
    them, :math:`E f(s) f(s') = \sigma^{2L} K(s, s')`, and the tangent kernel has the mean
    :math:`L \sigma^{2(L-1)} K(s, s')`. Rotating the inputs of one sample alone leaves K as it is
    exactly if its gates rotate with them; under gates that stay it does not.

    No bundle is listed: summed over pairs of positions, layer by layer, the cost is
    ``n m D^2 L kernel_size`` where there are ``kernel_size ** L`` bundles.

    Parameters
    ----------
    X : (n, D) array
    gates : (n, L D) array
        Any real numbers, layer after layer.
    X2, gates2 : (m, D) and (m, L D) arrays, optional
        Other samples, both or neither.
    kernel_size : int
        Weights of each convolution, 1 to D.

    Returns
    -------
    (n, m) float64 array

    Raises
    ------
    TypeError, ValueError
        If an array is malformed, gates are not L times as wide as inputs for some L >= 1, the
        kernel size is out of range, or memory cannot hold the pairs of positions of one row.

    References
    ----------
    C. Lakshminarayanan, A. V. Singh, on deep gated networks: the lemma on circular convolutions
    with global average pooling.

    Examples
    --------
    >>> ib.kernels.bundle_kernel([[1.0, 2.0, 3.0]], np.ones((1, 3)), kernel_size=2).tolist()
    [[8.0]]
    """
    width = X.shape[1]
    if not 1 <= kernel_size <= width:
        raise ValueError(f"`kernel_size` must lie in 1 .. {width}, got {kernel_size}")
    if gates.shape[1] % width:
        raise ValueError(
            f"`gates` must have a multiple of {width} columns, one gate a position behind each "
            f"convolution, got {gates.shape[1]}"
        )
    samples2, gates2 = others((X, gates), X2=X2, gates2=gates2)
    layers, layers2 = (
        np.split(opened, gates.shape[1] // width, axis=1) for opened in (gates, gates2)
    )
    require_memory(
        3 * len(samples2) * width**2,
        "all pairs of positions of one sample with the others",
        "take fewer other samples at a time, or fewer positions",
    )
    kernel = np.empty((len(X), len(samples2)))
    for rows in row_blocks(*kernel.shape, copies=3 * width**2):
        pairs = X[rows, None, :, None] * samples2[None, :, None, :]
        for a, b in zip(layers, layers2, strict=True):
            gathered = sum(np.roll(pairs, (-k, -k), axis=(2, 3)) for k in range(kernel_size))
            pairs = gathered * (a[rows, None, :, None] * b[None, :, None, :])
        kernel[rows] = pairs.mean(axis=(2, 3))
    return kernel
