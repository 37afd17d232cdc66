"""The largest value of the dual function at rank 3 or less, through the arrangement of kinks."""

from __future__ import annotations

import numpy as np

from ...data.arrays import Floats
from .problem import ReLUProblem

# Of a sine: samples on a great circle, and circles that are one.
_ON = 1e-12


def arrangement_directions(problem: ReLUProblem, lam: Floats) -> Floats:
    """Return directions (k, r) among which are all local maxima of the dual function's size.

    The kinks of the samples with a multiplier cut the sphere by great circles. On each face, arc
    and vertex the function is linear, so a maximum on the sphere is the normalised slope of a
    face, that of an arc projected on its plane, or a vertex: O(p^2) candidates.

    Parameters
    ----------
    problem : ReLUProblem
        Of rank at most 3.
    lam : (n,) array
        Multipliers.

    Raises
    ------
    ValueError
        If the rank is above 3.
    """
    rank = problem.X.shape[1]
    if rank > 3:
        raise ValueError(f"the arrangement takes inputs of rank 3 at most, got {rank}")
    support = (lam > 0) & (problem.sizes > 0)
    X = np.pad(problem.X[support], ((0, 0), (0, 3 - rank)))
    weights = (lam * problem.y)[support]
    normals = X / np.linalg.norm(X, axis=1, keepdims=True)
    found = [_on_circle(normals, X, weights, problem.slope, i) for i in range(len(X))]
    # Axes beside them: where weights cancel there is no other direction, and no slope is too short.
    v = np.concatenate([np.eye(3), *found])[:, :rank]
    norms = np.linalg.norm(v, axis=1)
    v = v[norms > 0] / norms[norms > 0, None]
    return np.concatenate([v, -v])


def _on_circle(normals: Floats, X: Floats, weights: Floats, slope: float, index: int) -> Floats:
    """Candidates (k, 3) on a great circle and on the faces beside it."""
    normal = normals[index]
    basis = np.linalg.svd(normal[None])[2][1:]
    flat = normals @ basis.T  # (p, 2)
    crossing = np.linalg.norm(flat, axis=1) > _ON
    turned = np.arctan2(flat[crossing, 0], -flat[crossing, 1])  # directions of the vertices
    angles = np.unique(np.mod(np.concatenate([turned, turned + np.pi]), 2 * np.pi))
    if not len(angles):
        angles = np.zeros(1)
    middles = (angles + np.append(angles[1:], angles[0] + 2 * np.pi)) / 2
    vertices, points = _points(angles, basis), _points(middles, basis)
    products = points @ normals.T
    on = ~crossing
    sides = np.sign(normals @ normal)
    candidates = [vertices]
    for side in (1.0, -1.0):
        opened = np.where(on, side * sides > 0, products > 0)
        slopes = ((slope + (1 - slope) * opened) * weights) @ X  # of the faces
        candidates += [slopes, slopes - (slopes @ normal)[:, None] * normal]
    return np.concatenate(candidates)


def _points(angles: Floats, basis: Floats) -> Floats:
    return np.asarray(np.cos(angles)[:, None] * basis[0] + np.sin(angles)[:, None] * basis[1])
