"""Hyperplanes along the coordinates, and cutoffs through the median of data."""

from __future__ import annotations

import numpy as np

from ..data.arrays import Floats


def count_hyperplanes(n_contexts: int) -> int:
    """Return the number of hyperplanes a unit, log2 of its contexts.

    Raises
    ------
    ValueError
        If they are no power of two.
    """
    exponent = int(n_contexts).bit_length() - 1
    if n_contexts != 2**exponent:
        raise ValueError(
            f"`n_contexts` must be a power of two, one factor a hyperplane, got {n_contexts}: "
            f"take {2**exponent} or {2 ** (exponent + 1)}"
        )
    return exponent


def coordinate_planes(shape: tuple[int, int, int]) -> tuple[Floats, Floats]:
    """Return the first H k unit vectors as normals (H, k, D), and cutoffs (H, k) of 0.

    Raises
    ------
    ValueError
        If there are fewer inputs than hyperplanes.
    """
    n_units, n_hyperplanes, n_inputs = shape
    wanted = n_units * n_hyperplanes
    if wanted > n_inputs:
        raise ValueError(
            f'`cutoffs="axes"` needs one input for each of {wanted} hyperplanes, got {n_inputs} '
            "inputs: take fewer units, fewer contexts, or other cutoffs"
        )
    return np.eye(wanted, n_inputs).reshape(shape, order="C"), np.zeros(shape[:2])


def projections(X: Floats, normals: Floats) -> Floats:
    """Return the inner products (n, H, k) of inputs (n, D) with normals (H, k, D)."""
    return np.tensordot(X, normals, axes=(1, 2))


def median_cutoffs(X: Floats, normals: Floats, weights: Floats) -> Floats:
    """Return the cutoffs (H, k) of hyperplanes that split the weight (n,) of X's rows in half.

    An inner product of D terms is computed to within D u ||w|| ||x||, u half the machine
    epsilon, and its rounding may differ between batches. A cutoff in the middle of a gap keeps
    every row on its side in each of them if half the gap exceeds twice that bound.
    """
    lengths = np.linalg.norm(normals, axis=2)
    epsilon = np.finfo(np.float64).eps
    smallest_gap = 2 * X.shape[1] * epsilon * lengths * np.linalg.norm(X, axis=1).max()
    along = projections(X, normals)
    cutoffs = np.empty(normals.shape[:2])
    for unit, plane in np.ndindex(*cutoffs.shape):
        cutoffs[unit, plane] = _median_cutoff(
            along[:, unit, plane], weights, smallest_gap=smallest_gap[unit, plane]
        )
    return cutoffs


def _median_cutoff(projections: Floats, weights: Floats, *, smallest_gap: float) -> float:
    """The middle of the gap whose split comes nearest to half and half of the weight.

    Without ties that is the gap at the median. If all the projections (n,) agree, the cutoff
    lies below them.
    """
    order = np.argsort(projections, kind="stable")
    ordered, below = projections[order], np.cumsum(weights[order])
    gaps = np.diff(ordered)
    n_below = np.flatnonzero(gaps > smallest_gap) + 1
    if not n_below.size:
        return float(ordered[0] - smallest_gap)
    split = n_below[np.argmin(np.abs(2 * below[n_below - 1] - below[-1]))]
    return float(ordered[split - 1] + gaps[split - 1] / 2)
