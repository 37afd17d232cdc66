"""Zero sets of a network's units in the plane: a piecewise linear surface and its graph."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..._support.doors import door, result
from .identifiable import affine_pieces
from .reading import as_weights
from .weights import Array, Indices, ReLUWeights

if TYPE_CHECKING:
    import torch

# Lengths, relative to that of the domain, and sines, which rounding leaves.
_NEAR = 1e-9


@result()
@dataclass(frozen=True, eq=False, repr=False)
class FoldSurface:
    """The canonical representation of a piecewise linear surface in the plane, and its graph.

    A piece of index 1 is a line across the domain, and one of index k a line across a cell that the
    pieces of lower index cut out. The dependency graph has an edge from a piece to each one of
    higher index that ends on it: that bends there.

    Attributes
    ----------
    segments : (m, 2, 2) array
        The ends of each piece.
    index : (m,) integer array
        k of each piece, from 1 on.
    layer, unit : (m,) integer arrays
        A unit in whose zero set the piece lies; layers from 1 on, units from 0.
    edges : (e, 2) integer array
        From a piece to another.

    Examples
    --------
    >>> weights = ib.equivalence.ReLUWeights.from_arrays([np.eye(2), [[1.0, 1.0]]])
    >>> square = [[-1, -1], [1, -1], [1, 1], [-1, 1]]
    >>> surface = ib.equivalence.fold_surface(weights, square)
    >>> surface.segments.shape, surface.path_lengths.tolist()
    ((2, 2, 2), [0, 0])
    """

    segments: Array
    index: Indices
    layer: Indices
    unit: Indices
    edges: Indices

    @property
    def order(self) -> int:
        """The largest index."""
        return int(self.index.max(initial=0))

    @property
    def path_lengths(self) -> Indices:
        """Numbers (m,) of edges of the longest directed path from each piece."""
        longest = np.zeros(len(self.index), dtype=np.int64)
        # Edges lead to higher indices.
        for piece in np.argsort(-self.index, kind="stable"):
            after = self.edges[self.edges[:, 0] == piece, 1]
            longest[piece] = 1 + longest[after].max() if len(after) else 0
        return longest

    def __repr__(self) -> str:
        return (
            f"FoldSurface({len(self.index)} pieces of order {self.order}, {len(self.edges)} "
            f"dependencies, paths of up to {int(self.path_lengths.max(initial=0))} edges)"
        )


class _Chord(NamedTuple):
    """A segment of the line ``normal . x + offset = 0``, and the unit whose zero set it is."""

    normal: Array
    offset: float
    ends: Array
    layer: int
    unit: int


@door()
def fold_surface(network: ReLUWeights | torch.nn.Module, domain: ArrayLike) -> FoldSurface:
    """Compute the union of all zero sets of hidden units in a convex polygon, in canonical form.

    That is the fold set of a general transparent network (lemma 2.1). Layers are assigned
    greedily, from the set alone: a piece has the least index that it can have.

    Parameters
    ----------
    network : ReLUWeights or Module
        Network of two inputs.
    domain : (v, 2) array
        Corners of the polygon, in order around it.

    Returns
    -------
    FoldSurface

    Raises
    ------
    TypeError, ValueError
        If it is no ReLU network of two inputs, or no convex polygon.

    References
    ----------
    M. Phuong, "Underspecification in Deep Learning", definitions A.1 to A.5 and corollary A.1.
    Edges are those of the main text, where the inner part of the lower piece counts: with its
    ends, as (A.62) has it, lemma 2.3 does not hold.

    Examples
    --------
    >>> weights = ib.equivalence.ReLUWeights.from_arrays([[[1.0, 0.0], [0.0, 1.0]], [[1.0, 1.0]]])
    >>> square = [[-1, -1], [1, -1], [1, 1], [-1, 1]]
    >>> surface = ib.equivalence.fold_surface(weights, square)
    >>> surface.order, len(surface.segments)
    (1, 2)
    """
    weights = as_weights(network)
    polygon = _polygon(domain)
    if weights.n_inputs != 2:
        raise ValueError(f"`network` must have two inputs, got {weights.n_inputs}")
    size = float(np.ptp(polygon, axis=0).max())
    return _canonical(list(_zero_sets(weights, polygon, size)), polygon, size)


def _polygon(domain: ArrayLike) -> Array:
    corners = np.asarray(domain, dtype=np.float64)
    fits = corners.ndim == 2 and corners.shape[1] == 2 and len(corners) >= 3
    if fits and np.isfinite(corners).all():
        sides = np.roll(corners, -1, axis=0) - corners
        turns = _cross(sides, np.roll(sides, -1, axis=0))
        if (turns > 0).all() or (turns < 0).all():
            return corners
    raise ValueError(
        f"`domain` must be the corners (v, 2) of a convex polygon, in order, got {corners.tolist()}"
    )


def _cross(u: Array, v: Array) -> Array:
    return np.asarray(u[..., 0] * v[..., 1] - u[..., 1] * v[..., 0])


def _zero_sets(weights: ReLUWeights, polygon: Array, size: float) -> Iterator[_Chord]:
    """Yield zero sets of units in the linear regions of the layers below them."""
    regions: list[tuple[Array, list[NDArray[np.bool_]]]] = [(polygon, [])]
    for layer, width in enumerate(weights.widths, start=1):
        finer = []
        for cell, below in regions:
            rows = affine_pieces(weights, below)[-1]
            parts = [cell]
            for unit in range(width):
                w, b = rows[unit, :2], float(rows[unit, 2])
                norm = float(np.linalg.norm(w))
                if norm == 0:
                    continue
                ends = _ends(cell, w / norm, b / norm, size)
                if ends is not None:
                    yield _Chord(w / norm, b / norm, ends, layer, unit)
                    parts = [p for q in parts for p in _split(q, w / norm, b / norm, size)]
            for part in parts:
                middle = part.mean(axis=0)
                finer.append((part, [*below, rows[:, :2] @ middle + rows[:, 2] >= 0]))
        regions = finer


def _ends(cell: Array, normal: Array, offset: float, size: float) -> Array | None:
    """Return the segment of a line within a convex cell; None without an interior crossing."""
    values = cell @ normal + offset
    if not (values.max() > _NEAR * size and values.min() < -_NEAR * size):
        return None
    after = np.roll(values, -1)
    crossed = (values > 0) != (after > 0)
    share = values[crossed] / (values[crossed] - after[crossed])
    ends = cell[crossed] + share[:, None] * (np.roll(cell, -1, axis=0) - cell)[crossed]
    return ends if np.linalg.norm(ends[1] - ends[0]) > _NEAR * size else None


def _split(cell: Array, normal: Array, offset: float, size: float) -> list[Array]:
    """Return the parts of a convex cell on both sides of a line, or the cell."""
    if _ends(cell, normal, offset, size) is None:
        return [cell]
    return [_clipped(cell, sign * normal, sign * offset) for sign in (1.0, -1.0)]


def _clipped(cell: Array, normal: Array, offset: float) -> Array:
    """Return the part of a convex cell where ``normal . x + offset >= 0``."""
    values = cell @ normal + offset
    kept = []
    for k, (corner, value) in enumerate(zip(cell, values, strict=True)):
        following, after = cell[(k + 1) % len(cell)], values[(k + 1) % len(cell)]
        if value >= 0:
            kept.append(corner)
        if (value > 0) != (after > 0) and value != after and value != 0 and after != 0:
            kept.append(corner + value / (value - after) * (following - corner))
    return np.array(kept)


@dataclass(frozen=True, eq=False)
class _Table:
    """All chords at once: normals (m, 2), offsets (m,), ends (m, 2, 2), and which share a line."""

    normals: Array
    offsets: Array
    ends: Array
    same: NDArray[np.bool_]

    @classmethod
    def of(cls, chords: list[_Chord], size: float) -> _Table:
        """Tell of every two chords whether they lie on one line."""
        normals = np.array([one.normal for one in chords]).reshape(-1, 2)
        offsets = np.array([one.offset for one in chords])
        ends = np.array([one.ends for one in chords]).reshape(-1, 2, 2)
        far = np.abs(_distances(ends, normals, offsets)).max(axis=2)
        parallel = np.abs(_cross(normals[:, None], normals[None, :])) <= _NEAR
        return cls(normals, offsets, ends, (far <= _NEAR * size) & parallel)

    def crossing(self, cell: Array, size: float) -> Indices:
        """Indices of the chords whose lines cross the interior of a convex cell."""
        values = self.normals @ cell.T + self.offsets[:, None]
        inside = (values.max(axis=1) > _NEAR * size) & (values.min(axis=1) < -_NEAR * size)
        return np.flatnonzero(inside)


def _distances(ends: Array, normals: Array, offsets: Array) -> Array:
    """Signed distances (a, b, 2) of the ends of segment b from line a."""
    signed: Array = np.einsum("bed,ad->abe", ends, normals) + offsets[:, None, None]
    return signed


def _canonical(chords: list[_Chord], polygon: Array, size: float) -> FoldSurface:
    """Find pieces by ascending index: lines across cells that lie entirely in the surface."""
    table = _Table.of(chords, size)
    cells, found, index = [polygon], list[_Chord](), 1
    indices: list[int] = []
    while True:
        new, finer = [], []
        for cell in cells:
            across = _across(chords, table, cell, size)
            parts = [cell]
            for one in across:
                parts = [p for q in parts for p in _split(q, one.normal, one.offset, size)]
            new += across
            finer += parts
        if not new:
            break
        found += new
        indices += [index] * len(new)
        cells, index = finer, index + 1
    pieces = _Table.of(found, size)
    ranks = np.array(indices, dtype=np.int64)
    return FoldSurface(
        segments=pieces.ends,
        index=ranks,
        layer=np.array([one.layer for one in found], dtype=np.int64),
        unit=np.array([one.unit for one in found], dtype=np.int64),
        edges=_edges(pieces, ranks, size),
    )


def _across(chords: list[_Chord], table: _Table, cell: Array, size: float) -> list[_Chord]:
    """Return the lines across a cell that chords cover from end to end, once each."""
    found: list[_Chord] = []
    known = np.zeros(len(chords), dtype=bool)
    for i in table.crossing(cell, size):
        chord, same = chords[i], table.same[i]
        if (same & known).any():
            continue
        ends = _ends(cell, chord.normal, chord.offset, size)
        if ends is None:
            continue
        on = [chords[j] for j in np.flatnonzero(same)]
        if _covered(ends, table.ends[same], size):
            middle = ends.mean(axis=0)
            at = min(on, key=lambda one: _off(middle, one.ends))
            found.append(_Chord(chord.normal, chord.offset, ends, at.layer, at.unit))
            known[i] = True
    return found


def _off(point: Array, ends: Array) -> float:
    """Return the signed distance of a point on a line from a segment of it; negative within."""
    along = ends[1] - ends[0]
    t = float((point - ends[0]) @ along / (along @ along))
    return max(-t, t - 1) * float(np.linalg.norm(along))


def _covered(ends: Array, parts: Array, size: float) -> bool:
    """Return whether segments (k, 2, 2) on the line of `ends` cover all between them."""
    along = (ends[1] - ends[0]) / np.linalg.norm(ends[1] - ends[0])
    spans = sorted(sorted(span) for span in ((parts - ends[0]) @ along).tolist())
    reached, length = 0.0, float(np.linalg.norm(ends[1] - ends[0]))
    for begin, end in spans:
        if begin > reached + _NEAR * size:
            break
        reached = max(reached, end)
    return reached >= length - _NEAR * size


def _edges(pieces: _Table, index: Indices, size: float) -> Indices:
    """Return pairs (a, b) where b, of higher index, ends in the interior of a."""
    ends = pieces.ends
    on = np.abs(_distances(ends, pieces.normals, pieces.offsets)) <= _NEAR * size
    on &= (index[:, None] < index[None, :])[:, :, None]
    a, b, end = np.nonzero(on)
    # Not at its ends: there both bend at a third piece.
    inside = [
        _off(point, piece) < -_NEAR * size
        for point, piece in zip(ends[b, end], ends[a], strict=True)
    ]
    pairs = np.column_stack([a, b])[np.array(inside, dtype=bool)]
    return np.unique(pairs, axis=0).astype(np.int64)
