"""The path-lasso lower bound from given multipliers, without solving or listing paths."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..._support.doors import door
from ..._support.kinds import floats
from ..._support.solve import Array, require_shape
from ...data.arrays import Floats, checked_data
from .paths import Gates, Layers, PathColumns, distinct_paths, gate_layers

# Entries of one matrix product: 256 MiB of float64.
_ENTRIES = 2**25
_UNIT = 2.0**-53


@door(lam=floats())
def path_lower_bound(
    lam: Array,
    X: Array,
    y: Array,
    gates: Gates,
    *,
    widths: Sequence[int] | None = None,
    contexts: bool = False,
) -> float:
    """Return a certified lower bound of the value of every network with these gates.

        sum_n lam[n] / max_p ||sum_n lam[n] y[n] A_p(n) x[n]||  <=  P*  <=  value(w),

    rounding errors at their worst. Any multipliers give a bound, those of a trained network's KKT
    conditions often a good one, and those of `solve_path_lasso` P* itself. It is not the limit of
    training; see `PathLasso`.

    Parameters
    ----------
    lam : (n,) array
        Non-negative, not all zero, at any scale.
    X : (n, D) array
        Inputs.
    y : (n,) array
        Labels in {-1, +1}.
    gates : sequence of (n, H_l) arrays, or one array (n, sum of widths)
        Gates of the hidden layers, real numbers; integers from 0 if `contexts`.
    widths : sequence of int, optional
        Units of the hidden layers, if `gates` is one array; without them it is one layer.
    contexts : bool
        Whether `gates` holds contexts.

    Returns
    -------
    float
        Infinite if all paths' blocks vanish exactly: then no weights separate the data.

    Raises
    ------
    TypeError
        If an array is not of numbers.
    ValueError
        If shapes disagree, an entry is not finite, labels are not -1 and +1, a multiplier is
        negative or all are zero.

    Examples
    --------
    >>> X, y, gates = np.array([[1.0], [-1.0]]), np.array([1.0, -1.0]), np.ones((2, 1))
    >>> bound = ib.limits.path_lower_bound(np.ones(2), X, y, [gates, gates])
    >>> round(bound, 12), round(ib.solve_path_lasso(X, y, [gates, gates]).objective, 6)
    (1.0, 1.0)
    """
    X, y = checked_data(X, y)
    if not (np.all(lam >= 0) and np.any(lam > 0)):
        raise ValueError(
            "`lam` must be finite, non-negative and not all zero: clip multipliers at zero"
        )
    require_shape("lam", lam, (len(X),), "one multiplier a sample")
    lam = lam / lam.max()
    layers = gate_layers(gates, len(X), widths=widths, contexts=contexts)
    largest = largest_path_norm(lam * y, X, layers)
    total = float(lam.sum()) * (1 - (len(lam) + 2) * _UNIT)
    return total / largest * (1 - 4 * _UNIT) if largest > 0 else math.inf


def largest_path_norm(weights: Floats, X: Floats, layers: Layers) -> float:
    """Return `max_p ||sum_n weights[n] A_p(n) x[n]||` over all paths, rounded up.

    Products of the gates of all layers but the first are merged where they are equal and listed;
    those with the first layer's units are not: for s samples with a weight and r = min(s, D), all
    are matrix products of `2 r s` operations a path.

    Parameters
    ----------
    weights : (n,) array
        Of either sign.
    X : (n, D) array
    layers : Layers

    Raises
    ------
    ValueError
        If memory cannot hold the products of the upper layers.
    """
    rows = np.flatnonzero(weights)
    signed = X[rows] * weights[rows, None]
    lower, upper = layers.columns(0)[rows], _upper_columns(layers)[rows]
    sizes = np.linalg.norm(signed, axis=1) * _peaks(lower) * _peaks(upper)
    # Roundings of a product of gates, of an inner product, of a norm; of an orthogonal reduction.
    n_roundings = len(layers.gates) + len(rows) + X.shape[1] * layers.n_columns + 8
    if len(rows) < X.shape[1]:
        n_roundings += 10 * X.size
        signed = np.linalg.qr(signed.T).R.T  # inner products with samples, which norms keep
    largest = math.sqrt(_largest_square(lower, upper, signed))
    lost = n_roundings * _UNIT
    return float((largest + lost * np.sum(sizes)) * (1 + lost))


def _upper_columns(layers: Layers) -> Floats:
    """Return columns (n, P, C) of the distinct products of all layers but the first."""
    above = layers.above()
    if not above.gates:
        return np.ones((len(layers.gates[0]), 1, 1))
    paths = distinct_paths(above)
    columns = PathColumns(paths.units, above.widths, above.sizes)(np.hstack(above.gates))
    return np.asarray(columns).reshape(len(columns), len(paths.units), above.n_columns)


def _peaks(columns: Floats) -> Floats:
    """Return the largest factors (n,) of a sample's norm by a unit's columns (n, H, C)."""
    if columns.shape[1] == 0:
        return np.zeros(len(columns))
    return np.asarray(np.sqrt(np.max(np.sum(columns**2, axis=2), axis=1)))


def _largest_square(lower: Floats, upper: Floats, signed: Floats) -> float:
    """Largest `sum_(c, c', k) (sum_n lower[n, i, c] upper[n, j, c'] signed[n, k])^2` of (i, j)."""
    n_samples, n_lower, width = lower.shape
    n_upper, n_inputs = upper.shape[1], signed.shape[1]
    right = upper.reshape(n_samples, -1)
    step = max(1, _ENTRIES // (width * n_inputs * max(n_samples, right.shape[1])))
    largest = 0.0
    for start in range(0, n_lower if n_upper else 0, step):
        left = lower[:, start : start + step, :, None] * signed[:, None, None, :]
        blocks = left.reshape(n_samples, left.shape[1] * width * n_inputs).T @ right
        squares = blocks.reshape(left.shape[1], width * n_inputs, n_upper, -1) ** 2
        largest = max(largest, float(squares.sum(axis=(1, 3)).max()))
    return largest
