"""Folds of ReLU networks: exact crossings of units' zero sets with lines in a plane."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..._support.doors import door, result
from ..._support.solve import require_inputs, require_sizes
from .reading import as_weights
from .weights import Array, Indices, ReLUWeights

if TYPE_CHECKING:
    import torch

# A change of slope relative to the largest slope on the line: far above the rounding of a product
# of matrices, far below what weights in general position make.
_BENDS = 1e-9
# Nodes of a line, as shares of it, that are one: zero sets of parallel units lie on each other up
# to rounding, and pieces between them have no resolvable slope.
_SAME = 1e-12
# Second singular value of samples on a line, relative to the first: rounding.
_FLAT = 1e-12


@result()
@dataclass(frozen=True, eq=False, repr=False)
class FoldSet:
    """Crossings of lines with the zero sets of hidden units, and whether the network bends there.

    Attributes
    ----------
    coordinates : (m, 2) array
        Coordinates of each crossing in the plane.
    points : (m, D) array
        The same as inputs of the network.
    layer, unit : (m,) integer arrays
        Unit whose zero set is crossed, both counted from 0.
    bends : (m,) boolean array
        True where the network's slope along the line changes: the kink test.
    transparent : float
        Share of the lines' length on which every hidden layer has a unit that is not closed.
        1 if the network is transparent on the lines.
    widths : tuple of int

    Examples
    --------
    >>> weights = ib.equivalence.ReLUWeights.from_arrays([np.eye(2), [[1.0, 1.0]]])
    >>> ib.equivalence.fold_set(weights, n_lines=4).counts()
    [(0, 0, 2, 2), (0, 1, 2, 2)]
    """

    coordinates: Array
    points: Array
    layer: Indices
    unit: Indices
    bends: NDArray[np.bool_]
    transparent: float
    widths: tuple[int, ...]

    def counts(self) -> list[tuple[int, int, int, int]]:
        """Return (layer, unit, crossings with a bend, all crossings) of every unit."""
        found = []
        for layer, width in enumerate(self.widths):
            for unit in range(width):
                here = (self.layer == layer) & (self.unit == unit)
                found.append((layer, unit, int(self.bends[here].sum()), int(here.sum())))
        return found

    def __repr__(self) -> str:
        return (
            f"FoldSet(bends at {int(self.bends.sum())} of {len(self.bends)} crossings, "
            f"transparent on {self.transparent:.1%} of the lines)"
        )


class Plane(NamedTuple):
    """A plane of inputs.

    Attributes
    ----------
    origin : (D,) array
    basis : (2, D) array
        Orthonormal rows.
    axes : tuple of str
        Names of its two coordinates.
    """

    origin: Array
    basis: Array
    axes: tuple[str, str]

    def coordinates(self, X: ArrayLike) -> Array:
        """Return coordinates (n, 2) of inputs (n, D), projected on the plane."""
        found: Array = (np.asarray(X, dtype=np.float64) - self.origin) @ self.basis.T
        return found


@door()
def plane_of(X: ArrayLike) -> Plane | None:
    """Return the plane of samples (n, D), or that of their first two principal components.

    For two inputs, also with a constant third one, it is their own plane; otherwise it goes through
    the mean, and samples are projected on it. None if they span no plane.

    Parameters
    ----------
    X : (n, D) array

    Returns
    -------
    Plane or None
        Origin, orthonormal directions and names of the coordinates.

    Examples
    --------
    >>> plane = ib.equivalence.plane_of([[0.0, 0.0, 1.0], [2.0, 0.0, 1.0], [0.0, 3.0, 1.0]])
    >>> plane.origin.tolist(), plane.coordinates([[2.0, 3.0, 1.0]]).tolist()
    ([0.0, 0.0, 1.0], [[2.0, 3.0]])
    """
    inputs = np.asarray(X, dtype=np.float64)
    require_inputs(inputs)
    mean = inputs.mean(axis=0)
    n_inputs = inputs.shape[1]
    if n_inputs == 2 or (n_inputs == 3 and bool((inputs[:, 2] == inputs[0, 2]).all())):
        origin = np.zeros(n_inputs)
        origin[2:] = inputs[0, 2:]
        plane = Plane(origin, np.eye(n_inputs)[:2], ("$x_1$", "$x_2$"))
    else:
        right = np.linalg.svd(inputs - mean, full_matrices=False)[2][:2]
        names = ("first principal component", "second, samples projected")
        plane = Plane(mean, right, names)
    spread = np.linalg.svd(plane.coordinates(inputs - mean + plane.origin), compute_uv=False)
    flat = len(plane.basis) < 2 or len(spread) < 2 or spread[1] <= _FLAT * spread[0]
    return None if flat else plane


class _Line(NamedTuple):
    """Crossings along a line: place in [0, 1], layer, unit, bend; and its transparent share."""

    t: Array
    layer: Indices
    unit: Indices
    bends: NDArray[np.bool_]
    transparent: float


@door()
def fold_set(
    network: ReLUWeights | torch.nn.Module,
    *,
    extent: float = 1.0,
    plane: tuple[ArrayLike, ArrayLike] | None = None,
    n_lines: int = 100,
) -> FoldSet:
    r"""Find where a network bends in a square of a plane, along lines in two directions.

    For a general transparent network every zero set of a hidden unit bends it:
    :math:`F(h) = \bigcup_{l,i} \{h_i^{1:l} = 0\}`. Without transparency a crossing may leave no
    trace, since a closed layer above hides it. Crossings are computed exactly, up to rounding: a
    network is piecewise linear along a line. Zero sets between the lines are not seen.

    Parameters
    ----------
    network : ReLUWeights or Module
    extent : float
        Half the side of the square, in the plane's own coordinates.
    plane : pair of (D,) and (2, D) arrays
        Origin and the two directions of a plane; by default that of the inputs, if there are two.
    n_lines : int
        Lines, at least 2; half in each direction.

    Returns
    -------
    FoldSet

    Raises
    ------
    TypeError, ValueError
        If it is no ReLU network, or an argument is out of range.

    References
    ----------
    M. Phuong, "Underspecification in Deep Learning", lemma 2.1 and section 2.3.

    Examples
    --------
    >>> weights = ib.equivalence.ReLUWeights.from_arrays([[[1.0, 0.0]], [[1.0]]])
    >>> folds = ib.equivalence.fold_set(weights, n_lines=4)
    >>> folds.coordinates.tolist(), folds.bends.tolist()
    ([[0.0, -0.5], [0.0, 0.5]], [True, True])
    """
    weights = as_weights(network)
    origin, basis = _plane(plane, weights.n_inputs)
    if not (np.isfinite(extent) and extent > 0 and n_lines >= 2):
        raise ValueError(
            "`extent` must be positive and finite and `n_lines` at least 2, got "
            f"{extent} and {n_lines}"
        )
    require_sizes("lines", {"n_lines": n_lines}, (n_lines, 4))
    starts, ends = _ends(extent, n_lines)
    lines = [
        _cross(weights, origin + start @ basis, origin + end @ basis)
        for start, end in zip(starts, ends, strict=True)
    ]
    coordinates = np.concatenate(
        [s + line.t[:, None] * (e - s) for s, e, line in zip(starts, ends, lines, strict=True)]
    )
    return FoldSet(
        coordinates=coordinates,
        points=origin + coordinates @ basis,
        layer=np.concatenate([line.layer for line in lines]),
        unit=np.concatenate([line.unit for line in lines]),
        bends=np.concatenate([line.bends for line in lines]),
        transparent=float(np.mean([line.transparent for line in lines])),
        widths=weights.widths,
    )


@door()
def transparent_at(network: ReLUWeights | torch.nn.Module, X: ArrayLike) -> NDArray[np.bool_]:
    """Return where every hidden layer has a pre-activation of at least 0, at X (n, D): (n,).

    A network is transparent on a set if it is so at all of its points; samples can only refute it.

    Parameters
    ----------
    network : ReLUWeights or Module
    X : (n, D) array

    Raises
    ------
    TypeError, ValueError
        If it is no ReLU network, or `X` has another width.

    References
    ----------
    M. Phuong, "Underspecification in Deep Learning", section 2.2.

    Examples
    --------
    >>> weights = ib.equivalence.ReLUWeights.from_arrays([[[1.0, 0.0]], [[1.0]]])
    >>> ib.equivalence.transparent_at(weights, [[1.0, 0.0], [-1.0, 0.0]]).tolist()
    [True, False]
    """
    return _transparent(as_weights(network).pre_activations(X)[:-1])


def _transparent(hidden: list[Array]) -> NDArray[np.bool_]:
    found: NDArray[np.bool_] = np.all([(z >= 0).any(axis=1) for z in hidden], axis=0)
    return found


def _plane(plane: tuple[ArrayLike, ArrayLike] | None, n_inputs: int) -> tuple[Array, Array]:
    if plane is None and n_inputs != 2:
        raise ValueError(
            f"the network has {n_inputs} inputs: give `plane`, an origin ({n_inputs},) and two "
            f"directions (2, {n_inputs})"
        )
    given = (np.zeros(2), np.eye(2)) if plane is None else plane
    origin, basis = (np.asarray(array, dtype=np.float64) for array in given)
    if origin.shape != (n_inputs,) or basis.shape != (2, n_inputs):
        raise ValueError(
            f"`plane` must be an origin ({n_inputs},) and directions (2, {n_inputs}), got shapes "
            f"{origin.shape} and {basis.shape}"
        )
    return origin, basis


def _ends(extent: float, n_lines: int) -> tuple[Array, Array]:
    """Return starts and ends (n_lines, 2) of lines across the square, without its edges."""
    across = (n_lines // 2, n_lines - n_lines // 2)
    offsets = [extent * (2 * (np.arange(n) + 0.5) / n - 1) for n in across]
    edges = [np.full(n, extent) for n in across]
    starts = [np.column_stack([-edges[0], offsets[0]]), np.column_stack([offsets[1], -edges[1]])]
    ends = [np.column_stack([edges[0], offsets[0]]), np.column_stack([offsets[1], edges[1]])]
    return np.concatenate(starts), np.concatenate(ends)


def _cross(weights: ReLUWeights, start: Array, end: Array) -> _Line:
    t, found = _crossings(weights, start, end)
    middle = (t[1:] + t[:-1]) / 2
    z = weights.pre_activations(start + middle[:, None] * (end - start))
    slopes = _slopes(weights, z, end - start)
    jump = np.abs(np.diff(slopes, axis=0)).max(axis=1) > _BENDS * np.abs(slopes).max()
    # Ends of the line are no crossings: piece i lies between nodes i and i + 1. A node stands for
    # the crossings that rounding has put behind it.
    node = np.searchsorted(t, found[:, 0], side="right") - 1
    bends = jump[node - 1] if len(found) else np.zeros(0, dtype=bool)
    return _Line(
        t=found[:, 0],
        layer=found[:, 1].astype(np.int64),
        unit=found[:, 2].astype(np.int64),
        bends=bends,
        transparent=float(np.diff(t) @ _transparent(z[:-1])),
    )


def _crossings(weights: ReLUWeights, start: Array, end: Array) -> tuple[Array, Array]:
    """Return nodes in [0, 1] between which a network is linear, and crossings (t, layer, unit).

    Layer by layer: pre-activations are linear between the nodes of the layers below, so that
    their changes of sign are found by interpolation, and are the next nodes.
    """
    t = np.array([0.0, 1.0])
    found = [np.zeros((0, 3))]
    for layer in range(len(weights.widths)):
        z = weights.pre_activations(start + t[:, None] * (end - start))[layer]
        piece, unit = np.nonzero(z[1:] * z[:-1] < 0)
        share = z[piece, unit] / (z[piece, unit] - z[piece + 1, unit])
        new = t[piece] + share * (t[piece + 1] - t[piece])
        # Rounding can put a crossing on an end.
        inside = (new > _SAME) & (new < 1 - _SAME)
        new, unit = new[inside], unit[inside]
        found.append(np.column_stack([new, np.full(len(new), layer), unit]))
        t = np.unique(np.concatenate([t, new]))
        t = t[np.diff(t, prepend=-1.0) > _SAME]
    return t, np.concatenate(found)


def _slopes(weights: ReLUWeights, z: list[Array], along: Array) -> Array:
    """Return derivatives (pieces, K) of the outputs along the line, piece by piece."""
    slope = np.broadcast_to(weights.matrices[0] @ along, z[0].shape)
    for W, before in zip(weights.matrices[1:], z, strict=False):
        slope = (slope * np.where(before > 0, 1.0, weights.slope)) @ W.T
    return slope
