"""Stationary points of unconstrained features: KKT points in the weights, from codes at random."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from ..._support.solve import Status
from ...data.arrays import Floats


def stationary_codes(
    sizes: NDArray[np.int64],
    dimension: int,
    depth: int,
    n_starts: int,
    rng: np.random.Generator,
) -> Iterator[tuple[Floats, Floats, Status]]:
    """Yield scores, multipliers and status of the KKT points next to points on spheres.

    Unit vectors that differ separate their classes: ``<v_k, v_k> > <v_j, v_k>``. The spheres have
    all dimensions from 2 on, then again; with two layers, where a dimension that is not used stays
    so, the largest alone.
    """
    from ...limits.local.search import local_limit
    from ...networks.deep_linear import DeepLinear

    K, root = len(sizes), np.sqrt(sizes)
    most = min(dimension, K - 1)
    ranks = range(2, most + 1) if depth > 2 else (most,)
    for start in range(n_starts):
        points = rng.normal(size=(K, ranks[start % len(ranks)]))
        points /= np.linalg.norm(points, axis=1, keepdims=True)
        widths = (dimension,) * (depth - 1)
        network = DeepLinear.from_zeta(points @ points.T * root, hidden_widths=widths)
        found = local_limit(network, np.diag(1 / root), np.eye(K))
        yield np.array(found.scores), np.array(found.multipliers), found.status
