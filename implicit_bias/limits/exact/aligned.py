"""Networks with given path coefficients: layers of rank one, each aligned with the next."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...data.arrays import Floats


def aligned_weights(
    zeta: Floats, paths: NDArray[np.int64], widths: Sequence[int]
) -> tuple[Floats, ...]:
    """Return weights W_1 (H_1, D), .., W_L (1, H_(L-1)) with path coefficients `zeta`, if any have.

    With S the sum of the path norms and q_l(i) the share of those through unit i of layer l,

        W_1[i] = c a_1(i) u_i,   W_l = c s_l a_l a_(l-1)^T,   W_L = c a_(L-1),   a_l = sqrt(q_l),

    c = S^(1/L), unit vectors u_i and signs s_l(j, i) of edges. Then `||w||^2 = L c^2` and the path
    norms are `S prod_l q_l(i_l)`: those of `zeta` exactly if they form a tensor of rank one, which
    is when Cauchy-Schwarz is an equality in every layer.

    Parameters
    ----------
    zeta : (P, D) array
        Not all zero; paths that are not listed have none.
    paths : (P, L-1) integer array
    widths : sequence of int
    """
    norms = np.linalg.norm(zeta, axis=1)
    total, depth = float(norms.sum()), len(widths) + 1
    size = total ** (1 / depth)
    roots = [
        np.sqrt(np.bincount(paths[:, layer], weights=norms, minlength=width) / total)
        for layer, width in enumerate(widths)
    ]
    directions, signs = _directions(zeta, norms, paths[:, 0], widths[0])
    weights = [size * roots[0][:, None] * directions]
    for layer in range(1, len(widths)):
        below, above = paths[:, layer - 1], paths[:, layer]
        votes = np.zeros((widths[layer], widths[layer - 1]))
        np.add.at(votes, (above, below), signs * norms)
        edges = np.where(votes < 0, -1.0, 1.0)
        weights.append(size * edges * np.outer(roots[layer], roots[layer - 1]))
        signs = signs * edges[above, below]
    return (*weights, size * roots[-1][None, :])


def _directions(
    zeta: Floats, norms: Floats, first: NDArray[np.int64], width: int
) -> tuple[Floats, Floats]:
    """Return unit vectors (H_1, D) of the blocks of each first unit, and the sign (P,) of each."""
    strongest = np.full(width, -1)
    order = np.argsort(norms, kind="stable")
    strongest[first[order]] = order  # the last assignment, of the largest norm, stays
    signs = np.where(np.sum(zeta * zeta[strongest[first]], axis=1) < 0, -1.0, 1.0)
    sums = np.zeros((width, zeta.shape[1]))
    np.add.at(sums, first, signs[:, None] * zeta)
    sizes = np.linalg.norm(sums, axis=1, keepdims=True)
    return sums / np.where(sizes > 0, sizes, 1.0), signs


def forward(weights: Sequence[Floats], X: Floats, gates: Sequence[NDArray[Any]]) -> Floats:
    """Return the scores (n,) `W_L G_(L-1) .. G_1 W_1 x` of the rows of `X` under gates (n, H_l)."""
    signal = X
    for layer, opened in zip(weights, gates, strict=False):
        signal = opened * (signal @ layer.T)
    return np.asarray(signal @ weights[-1].T)[:, 0]


def network_value(squares: float, margins: Floats, depth: int) -> float:
    """Return `(||w||^2 / L)^(L/2) / min margin`, independent of scale; infinite without a margin.

    Parameters
    ----------
    squares : float
        `||w||^2`.
    margins : (n,) array
    depth : int
        L, the degree of homogeneity.
    """
    smallest = float(np.min(margins))
    return float((squares / depth) ** (depth / 2) / smallest) if smallest > 0 else math.inf
