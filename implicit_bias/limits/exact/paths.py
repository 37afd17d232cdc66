"""Paths through layers of gates: their activities, and merging those equal on all samples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._support.doors import door
from ..._support.solve import (
    Array,
    array_namespace,
    as_float64,
    is_torch_array,
    require_memory,
    require_real,
    to_numpy,
)

Gates = Sequence[Array] | Array
"""Gates as users pass them: one array (n, H_l) a layer, or one array (n, sum of widths)."""

# Entries of the products that are compared at a time.
_ENTRIES = 2**26


@dataclass(frozen=True, eq=False)
class Layers:
    """Gates of the hidden layers, checked.

    Attributes
    ----------
    gates : tuple of (n, H_l) arrays
        float64 numbers, or int64 contexts in 0 .. C_l - 1.
    sizes : tuple of int, or None
        C_l of every layer if these are contexts, None if they are gates.
    """

    gates: tuple[NDArray[Any], ...]
    sizes: tuple[int, ...] | None

    @property
    def widths(self) -> tuple[int, ...]:
        """Units H_1, .., H_(L-1) of the hidden layers."""
        return tuple(int(layer.shape[1]) for layer in self.gates)

    @property
    def n_columns(self) -> int:
        """Gate columns a path: one, or one for every combination of contexts of its units."""
        return 1 if self.sizes is None else int(np.prod(self.sizes))

    def columns(self, layer: int) -> NDArray[np.float64]:
        """Return the gate columns (n, H_l, C_l) of one layer, C_l = 1 without contexts."""
        gates = self.gates[layer]
        return (
            gates[:, :, None].astype(float)
            if self.sizes is None
            else one_hot(gates, self.sizes[layer])
        )

    def above(self) -> Layers:
        """Return all layers but the first."""
        return Layers(self.gates[1:], None if self.sizes is None else self.sizes[1:])


def one_hot(contexts: NDArray[Any], n_contexts: int) -> NDArray[np.float64]:
    """Return contexts (...) as indicators (..., C) of each context."""
    return np.asarray(contexts[..., None] == np.arange(n_contexts), dtype=float)


@door()
def gate_layers(
    gates: Gates, n_samples: int, *, widths: Sequence[int] | None = None, contexts: bool = False
) -> Layers:
    """Check gates as users pass them and split them into layers.

    Parameters
    ----------
    gates : sequence of (n, H_l) arrays, or one array (n, sum widths)
        Any real numbers; integers from 0 if `contexts`.
    n_samples : int
    widths : sequence of int, optional
        How one array is divided; without them it is one layer.
    contexts : bool

    Raises
    ------
    TypeError
        If an array is not of numbers, or contexts are not integers.
    ValueError
        If shapes disagree, an entry is not finite, or a context is negative.

    Examples
    --------
    >>> ib.limits.gate_layers(np.ones((5, 7)), 5, widths=(4, 3)).widths
    (4, 3)
    """
    layers = _divided(gates, widths)
    checked = tuple(
        _checked(layer, number, n_samples, contexts) for number, layer in enumerate(layers, start=1)
    )
    found = tuple(layer.shape[1] for layer in checked)
    if widths is not None and found != tuple(int(width) for width in widths):
        raise ValueError(
            f"`widths` must be those of the gates, {found}, got {tuple(widths)}: one a hidden layer"
        )
    sizes = tuple(int(layer.max()) + 1 for layer in checked) if contexts else None
    return Layers(checked, sizes)


def _divided(gates: Gates, widths: Sequence[int] | None) -> list[Array]:
    if isinstance(gates, list | tuple):
        if not gates:
            raise ValueError("`gates` must hold an array (n, H) a hidden layer, got none")
        return list(gates)
    require_real("gates", gates)
    whole = to_numpy(gates)
    if whole.ndim != 2:
        raise ValueError(
            f"`gates` must be one array (n, sum widths) or a list of arrays (n, H), got an array "
            f"of shape {whole.shape}"
        )
    if widths is None:
        return [whole]
    if any(int(width) < 1 for width in widths) or sum(widths) != whole.shape[1]:
        raise ValueError(
            f"`widths` must be positive and sum up to the {whole.shape[1]} columns of `gates`, "
            f"got {tuple(widths)}"
        )
    return np.split(whole, np.cumsum(widths)[:-1], axis=1)


def _checked(layer: Array, number: int, n_samples: int, contexts: bool) -> NDArray[Any]:
    name = f"`gates` of layer {number}"
    require_real(f"gates[{number - 1}]", layer)
    values = to_numpy(layer)
    if values.ndim != 2 or values.shape[0] != n_samples or values.shape[1] == 0:
        raise ValueError(
            f"the {name} must have shape ({n_samples}, H) with H >= 1, got {values.shape}: one row "
            "a sample, one column a unit"
        )
    if contexts:
        if values.dtype.kind not in "iu":
            raise TypeError(f"the {name} are contexts, integers from 0, got dtype {values.dtype}")
        if int(values.min()) < 0:
            raise ValueError(f"the {name} are contexts, integers from 0, got {int(values.min())}")
        return values.astype(np.int64)
    values = values.astype(float)
    if not np.all(np.isfinite(values)):
        raise ValueError(f"the {name} have NaN or infinite entries: remove them first")
    return values


@dataclass(frozen=True, eq=False)
class Paths:
    """Paths with distinct activities, each representing all with equal activity on every sample.

    Attributes
    ----------
    units : (P, L-1) int64 array
        Units (i_1, .., i_(L-1)) of the first path of each kind.
    multiplicity : (P,) int64 array
        Paths of each kind; those that are closed for every sample are of none.
    activity : (P, n) array
        Products of gates, or the number of the combination of contexts in C order.
    """

    units: NDArray[np.int64]
    multiplicity: NDArray[np.int64]
    activity: NDArray[Any]


@door()
def distinct_paths(layers: Layers) -> Paths:
    """Return all distinct paths, merging equal ones layer by layer.

    Parameters
    ----------
    layers : Layers
        Checked gates, from `gate_layers`.

    Returns
    -------
    Paths
        Units (P, L - 1), multiplicity (P,) and activity (P, n) of each.

    Raises
    ------
    ValueError
        If memory cannot hold their activities.

    Examples
    --------
    Of the four paths through two layers of two units, gates that are all open leave one:

    >>> layers = ib.limits.gate_layers(np.ones((3, 4)), 3, widths=(2, 2))
    >>> ib.limits.distinct_paths(layers).multiplicity.tolist()
    [4]
    """
    merged = _merged(_one_layer(layers, 0), layers)
    for layer in range(1, len(layers.gates)):
        merged = _extended(merged, _merged(_one_layer(layers, layer), layers), layers, layer)
    return merged


def _one_layer(layers: Layers, layer: int) -> Paths:
    gates = np.ascontiguousarray(layers.gates[layer].T)
    if layers.sizes is None and np.all((gates == 0) | (gates == 1)):
        gates = gates.astype(np.uint8)  # of which products are products, in an eighth of the memory
    width = gates.shape[0]
    return Paths(np.arange(width)[:, None], np.ones(width, dtype=np.int64), gates)


def _extended(below: Paths, unit: Paths, layers: Layers, layer: int) -> Paths:
    """Return the distinct extensions of the paths `below` by every `unit` of a layer."""
    n_units, n_samples = unit.activity.shape
    step = max(1, _ENTRIES // max(1, n_units * n_samples))
    found: Paths | None = None
    for start in range(0, max(len(below.units), 1), step):
        rows = slice(start, start + step)
        more = _products(below, unit, rows, layers.sizes[layer] if layers.sizes else None)
        found = _merged(more if found is None else _joined(found, more), layers)
        require_memory(
            len(found.units) * n_samples * layers.n_columns,
            f"the gates of {len(found.units):,} distinct paths through the first {layer + 1} "
            f"layers, {n_samples} samples",
            "take fewer units or samples, or bound the optimum by `path_lower_bound`",
        )
    assert found is not None
    return found


def _products(below: Paths, unit: Paths, rows: slice, n_contexts: int | None) -> Paths:
    low, high = below.activity[rows, None, :], unit.activity[None, :, :]
    activity = low * high if n_contexts is None else low * n_contexts + high
    n_low, n_high = activity.shape[:2]
    units = np.hstack(
        [np.repeat(below.units[rows], n_high, axis=0), np.tile(unit.units, (n_low, 1))]
    )
    multiplicity = np.outer(below.multiplicity[rows], unit.multiplicity).ravel()
    return Paths(units, multiplicity, activity.reshape(n_low * n_high, activity.shape[2]))


def _joined(one: Paths, other: Paths) -> Paths:
    return Paths(
        np.concatenate([one.units, other.units]),
        np.concatenate([one.multiplicity, other.multiplicity]),
        np.concatenate([one.activity, other.activity]),
    )


def _merged(paths: Paths, layers: Layers) -> Paths:
    """Return one path of each activity, in order of appearance, without those always closed."""
    activity = paths.activity
    if layers.sizes is None:
        opened = np.any(activity != 0, axis=1)
        keys = activity[opened] + activity.dtype.type(0)  # of -0.0 and 0.0 the same
    else:
        opened = np.ones(len(activity), dtype=bool)
        keys = np.array([_by_first_use(row) for row in activity])
    kept = np.flatnonzero(opened)
    if len(kept) == 0:
        return Paths(paths.units[:0], paths.multiplicity[:0], activity[:0])
    whole = np.ascontiguousarray(keys).view(np.dtype((np.void, keys.strides[0]))).ravel()
    _, first, kind = np.unique(whole, return_index=True, return_inverse=True)
    counts = np.zeros(len(first), dtype=np.int64)
    np.add.at(counts, kind, paths.multiplicity[kept])
    order = np.argsort(first)
    rows = kept[first[order]]
    return Paths(paths.units[rows], counts[order], activity[rows])


def _by_first_use(codes: NDArray[Any]) -> NDArray[np.int64]:
    """Return codes renumbered by first use: equal for equal partitions of the samples."""
    _, first, kind = np.unique(codes, return_index=True, return_inverse=True)
    return np.asarray(np.argsort(np.argsort(first))[kind])


@dataclass(frozen=True, eq=False)
class PathColumns:
    """Gate columns of paths, from the gates of new samples; a `Columns`.

    Parameters
    ----------
    units : (P, L-1) integer array
    widths : tuple of int
    sizes : tuple of int, or None
        C_l if gates are contexts.
    """

    units: NDArray[np.int64]
    widths: tuple[int, ...]
    sizes: tuple[int, ...] | None

    def check(self, gates: Gates, X: Array) -> Array:
        """Return gates (n, sum of widths) of the rows of `X`, checked.

        Raises
        ------
        TypeError, ValueError
            If they are malformed, or a context is not one of the limit.
        """
        layers = gate_layers(
            gates, int(X.shape[0]), widths=self.widths, contexts=self.sizes is not None
        )
        for layer, size in enumerate(self.sizes or ()):
            if layers.gates[layer].shape[0] and int(layers.gates[layer].max()) >= size:
                raise ValueError(
                    f"contexts of layer {layer + 1} must lie in 0 .. {size - 1}, those of the "
                    f"limit, got {int(layers.gates[layer].max())}"
                )
        whole = np.hstack(layers.gates)
        return array_namespace(X).asarray(whole, device=X.device) if is_torch_array(X) else whole

    def __call__(self, gates: Array) -> Array:
        """Return products (n, P) of gates, or combinations (n, P C) of contexts."""
        ends = np.cumsum(self.widths) - np.array(self.widths)
        values = to_numpy(gates)
        chosen = [values[:, end + self.units[:, layer]] for layer, end in enumerate(ends)]
        if self.sizes is None:
            return as_float64(np.prod(chosen, axis=0), like=gates)
        code = chosen[0]
        for layer in range(1, len(chosen)):
            code = code * self.sizes[layer] + chosen[layer]
        columns = one_hot(code, int(np.prod(self.sizes)))
        return as_float64(columns.reshape(len(values), -1), like=gates)
