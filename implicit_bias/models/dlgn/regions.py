"""Open paths and activation patterns of gated networks, counted without a list of them."""

from __future__ import annotations

from collections.abc import Sequence
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._support.doors import door
from ..._support.solve import Array, require_real, to_numpy
from ...data.arrays import Floats


@door()
def active_paths(gates: Array, *, widths: Sequence[int]) -> Floats:
    r"""Return the logarithm of the number of paths that are open on each sample.

    .. math:: \log \sum_p A_p(x) = \sum_l \log \sum_i G_l(x)_i

    For 0/1 gates it is the diagonal of `path_overlap` in logarithms: the number itself overflows at
    some hundred layers.

    Parameters
    ----------
    gates : (n, sum of widths) array
        Gate values, not negative, layer after layer.
    widths : sequence of int
        Units of each hidden layer.

    Returns
    -------
    (n,) float64 array
        Minus infinity where every path is closed.

    Raises
    ------
    TypeError, ValueError
        If gates are not real, negative, not finite, or do not have these widths.

    Examples
    --------
    >>> gates = np.array([[1, 0, 1, 1], [0, 1, 1, 0]])
    >>> np.exp(ib.gates.active_paths(gates, widths=(2, 2))).round(6).tolist()
    [2.0, 1.0]
    """
    values = _matrix(gates)
    if values.shape[1] != sum(widths) or len(widths) == 0 or min(widths) < 1:
        raise ValueError(
            f"`gates` must have {sum(widths)} columns, as `widths` {tuple(widths)} say, got "
            f"{values.shape[1]}: one a unit, layer after layer"
        )
    if values.min(initial=0.0) < 0:
        raise ValueError("`gates` must not be negative, from 0 (closed) to 1 (open)")
    layers = np.split(values, np.cumsum(widths)[:-1], axis=1)
    with np.errstate(divide="ignore"):
        logs = [np.log(layer.sum(axis=1)) for layer in layers]
    return np.asarray(np.sum(logs, axis=0))


@door()
def count_patterns(gates: Any) -> int:
    """Count the activation patterns that the samples realise: distinct rows of the gates.

    Parameters
    ----------
    gates : (n, H) array
        Gate values of the samples.

    Returns
    -------
    int

    Raises
    ------
    TypeError, ValueError
        If gates are not real, not finite, or no matrix.

    Examples
    --------
    >>> ib.gates.count_patterns(np.array([[1, 0], [0, 1], [1, 0]]))
    2
    """
    return len(np.unique(_matrix(gates), axis=0))


def most_patterns(n_gates: int, n_inputs: int) -> int:
    r"""Most patterns that half-spaces through the origin of R^D can have off their hyperplanes.

    .. math:: 2 \sum_{k < D} \binom{N - 1}{k}

    for N of them, of whatever layers; in the plane 2 N. Normals in general position attain it
    (T. M. Cover, "Geometrical and statistical properties of systems of linear inequalities",
    theorem 1). Samples on hyperplanes, x = 0 on all of them, can add to it.

    Raises
    ------
    ValueError
        If a number is not positive.
    """
    if n_gates < 1 or n_inputs < 1:
        raise ValueError(
            f"`n_gates` and `n_inputs` must be at least 1, got {n_gates} and {n_inputs}"
        )
    return 2 * sum(comb(n_gates - 1, k) for k in range(n_inputs))


def closed_samples(inputs: Any, gates: Any, *, widths: Sequence[int]) -> NDArray[np.int64]:
    """Row numbers of the samples whose score is 0 whatever the weights are.

    Those that no path reaches, and those with inputs of zero: either makes data inseparable.

    Parameters
    ----------
    inputs : (n, D)
        What the value network sees: ones behind constant experts.
    gates : (n, sum of widths)
    widths : sequence of int

    Raises
    ------
    TypeError, ValueError
        If gates are not real, negative, not finite, or do not have these widths.
    """
    X = _matrix(inputs)
    dead = ~np.any(X != 0, axis=1) | np.isneginf(active_paths(gates, widths=widths))
    return np.flatnonzero(dead).astype(np.int64)


def _matrix(values: Any) -> Floats:
    require_real("gates", values)
    found = np.asarray(to_numpy(values), dtype=np.float64)
    if found.ndim != 2 or len(found) == 0 or not np.all(np.isfinite(found)):
        raise ValueError(
            f"`gates` must be finite numbers (n, H) with n >= 1, got shape {found.shape}: look "
            "for NaN and infinite entries"
        )
    return found
