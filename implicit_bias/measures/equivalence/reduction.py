"""Removal of needless units of a ReLU network: dead, constant and parallel ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.spatial.distance import cdist

from .weights import Array, Indices, ReLUWeights, leaky


@dataclass(frozen=True, eq=False)
class Reduction:
    """A network without needless units, of the same function.

    Attributes
    ----------
    weights : ReLUWeights
    units : tuple of (width_l,) integer arrays
        The original unit that each hidden unit is, layer by layer; of merged ones the first.
    n_dead, n_constant, n_merged : int
        Units dropped since they add nothing, moved into biases, and merged with a parallel one.
    """

    weights: ReLUWeights
    units: tuple[Indices, ...]
    n_dead: int = 0
    n_constant: int = 0
    n_merged: int = 0


def transformed(
    weights: ReLUWeights, units: Sequence[Indices], scales: Sequence[Array] | None = None
) -> ReLUWeights:
    r"""Choose hidden units in an order and scale each by a positive factor, keeping the function.

    .. math:: W_l \leftarrow M_l P_l W_l P_{l-1}^{-1} M_{l-1}^{-1}, \qquad
              b_l \leftarrow M_l P_l b_l .

    It is the same function if `units` are permutations, or leave out units without effect.

    References
    ----------
    M. Phuong, "Underspecification in Deep Learning", equations (2.1) to (2.4).
    """
    Ws, bs = [np.array(W) for W in weights.matrices], [np.array(b) for b in weights.biases]
    factors = [np.ones(len(chosen)) for chosen in units] if scales is None else scales
    for layer, (chosen, scale) in enumerate(zip(units, factors, strict=True)):
        Ws[layer], bs[layer] = scale[:, None] * Ws[layer][chosen], scale * bs[layer][chosen]
        Ws[layer + 1] = Ws[layer + 1][:, chosen] / scale
    return ReLUWeights(tuple(Ws), tuple(bs), weights.slope)


def ordered(weights: ReLUWeights, order: Callable[[int, Array], Indices]) -> tuple[Indices, ...]:
    """Order units layer after layer: by a layer's rows, whose columns are in the order below."""
    found: list[Indices] = []
    for layer in range(len(weights.widths)):
        rows = weights.rows(layer)
        found.append(order(layer, rows[:, [*found[-1], -1]] if found else rows))
    return tuple(found)


def unit_rows(rows: Array) -> Array:
    """Return rows divided by their norms; zero rows stay zero."""
    sizes = np.linalg.norm(rows, axis=1, keepdims=True)
    result: Array = rows / np.where(sizes > 0, sizes, 1.0)
    return result


def reduce_network(weights: ReLUWeights, *, tol: float = 1e-9) -> Reduction:
    """Drop dead units, move constant ones into biases, and merge parallel ones of a layer.

    Parallel units compute multiples of each other, whatever the layers below are; opposite ones
    stay, although ``relu(z) - relu(-z) = z`` lets them trade a linear map with others.

    Parameters
    ----------
    weights : ReLUWeights
    tol : float
        Largest distance of unit rows [w, b] that are merged, or joined by a chain of such; above 0
        the function changes by as much.

    Raises
    ------
    ValueError
        If no unit of a layer is left: the network is constant.
    """
    kept = Reduction(weights, tuple(np.arange(width) for width in weights.widths))
    for layer in range(len(weights.widths)):
        kept = _merge_parallel(_move_constants(kept, layer), layer, tol)
    before = -1
    while before != kept.n_dead:  # a unit without effect may have been all that one below fed
        before = kept.n_dead
        for layer in range(len(weights.widths)):
            kept = _drop_dead(kept, layer)
    return kept


def _move_constants(of: Reduction, layer: int) -> Reduction:
    Ws, bs = of.weights.matrices, list(of.weights.biases)
    values = leaky(bs[layer], of.weights.slope)
    constant = ~Ws[layer].any(axis=1) & (values != 0)
    if not constant.any():
        return of
    bs[layer + 1] = bs[layer + 1] + Ws[layer + 1][:, constant] @ values[constant]
    moved = replace(of, weights=replace(of.weights, biases=tuple(bs)))
    return _keep(moved, layer, ~constant, n_constant=of.n_constant + int(constant.sum()))


def _merge_parallel(of: Reduction, layer: int, tol: float) -> Reduction:
    rows = of.weights.rows(layer)
    sizes = np.linalg.norm(rows, axis=1)
    near = cdist(unit_rows(rows), unit_rows(rows)) <= tol
    first = near.argmax(axis=1)  # the first unit near each one: itself where none is before it
    first = np.where(sizes > 0, first, np.arange(len(first)))
    while (first[first] != first).any():  # chains: each ends at a unit that is its own first
        first = first[first]
    if (alone := first == np.arange(len(first))).all():
        return of
    Ws = list(of.weights.matrices)
    upper = np.zeros_like(Ws[layer + 1])
    ratio = sizes / np.where(sizes[first] > 0, sizes[first], 1.0)
    np.add.at(upper.T, first, (Ws[layer + 1] * ratio).T)
    Ws[layer + 1] = upper
    merged = replace(of, weights=replace(of.weights, matrices=tuple(Ws)))
    return _keep(merged, layer, alone, n_merged=of.n_merged + int((~alone).sum()))


def _drop_dead(of: Reduction, layer: int) -> Reduction:
    W, b = of.weights.matrices[layer], of.weights.biases[layer]
    # Inputs have any sign, activations are never negative, unless units are leaky.
    signed = layer == 0 or of.weights.slope > 0
    never = ~W.any(axis=1) if signed else (W <= 0).all(axis=1)
    dead = (never & (b <= 0)) | ~of.weights.matrices[layer + 1].any(axis=0)
    if not dead.any():
        return of
    return _keep(of, layer, ~dead, n_dead=of.n_dead + int(dead.sum()))


def _keep(of: Reduction, layer: int, kept: np.ndarray, **counts: int) -> Reduction:
    if not kept.any():
        raise ValueError(
            f"no unit of hidden layer {layer + 1} has an effect: the network is constant, and "
            "has no canonical form and no alignment"
        )
    Ws, bs, units = list(of.weights.matrices), list(of.weights.biases), list(of.units)
    Ws[layer], bs[layer] = Ws[layer][kept], bs[layer][kept]
    Ws[layer + 1] = Ws[layer + 1][:, kept]
    units[layer] = units[layer][kept]
    weights = replace(of.weights, matrices=tuple(Ws), biases=tuple(bs))
    return replace(of, weights=weights, units=tuple(units), **counts)
