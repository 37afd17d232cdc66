"""Networks whose function determines their weights, and the conditions of a general network."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np
from numpy.typing import NDArray

from ..._support.doors import door
from ..._support.solve import require_positive
from .weights import Array, ReLUWeights

Pattern = Sequence[NDArray[np.bool_]]

# Share of the distance to the boundary of the region in which all units are open.
_PART = 0.4
# Patterns of open units that `check_general` goes through, and pairs of units with them.
_MOST = 3000
# Sets of closed units, for the faces of its regions.
_MOST_SETS = 200_000
# Of singular values and of sines, relative to the largest.
_ROUNDING = 1e-12


@door()
def affine_pieces(weights: ReLUWeights, opened: Pattern) -> list[Array]:
    r"""Return rows [w, b] (width_l, D + 1) of every layer where the units `opened` are open.

    .. math:: h_i^{1:l}(x) = w_i^l \cdot x + b_i^l, \qquad
              w_i^l = e_i' W_l I_{l-1} \cdots I_1 W_1, \qquad
              b_i^l = e_i' \sum_k W_l I_{l-1} \cdots W_{k+1} I_k b_k .

    Parameters
    ----------
    weights : ReLUWeights
    opened : sequence of (width_l,) boolean arrays
        One a hidden layer; with fewer, fewer layers are returned, one more than there are.

    References
    ----------
    M. Phuong, "Underspecification in Deep Learning", (A.14), (A.15) with the first factor
    corrected, and lemma A.7.

    Examples
    --------
    >>> weights = ib.equivalence.ReLUWeights.from_arrays([np.eye(2), [[1.0, 1.0]]])
    >>> ib.equivalence.affine_pieces(weights, [[True, False]])[-1].tolist()
    [[1.0, 0.0, 0.0]]
    """
    for layer, pattern in enumerate(opened):
        width = weights.matrices[layer].shape[0] if layer < len(weights.matrices) - 1 else None
        if np.shape(pattern) != (width,):
            raise ValueError(
                f"`opened[{layer}]` must say of every hidden unit of its layer whether it is open, "
                f"got shape {np.shape(pattern)} for widths {weights.widths}"
            )
    below = np.column_stack([np.eye(weights.n_inputs), np.zeros(weights.n_inputs)])
    found = []
    for layer, (W, b) in enumerate(zip(weights.matrices, weights.biases, strict=True)):
        piece = W @ below
        piece[:, -1] += b
        found.append(piece)
        if layer == len(opened):
            break
        below = piece * np.where(opened[layer], 1.0, weights.slope)[:, None]
    return found


@dataclass(frozen=True)
class Generality:
    """The three conditions of a general network, over all patterns of open units.

    Attributes
    ----------
    smallest_offset : float
        Smallest sine of the angle between an affine piece [w, b] and the span of pieces of units
        below it that are closed, at most D of them. Above 0 no pre-activation is 0 on a face where
        it could have a local optimum. At 0 it may have one: that is not decided.
    full_rank : bool
        Every product of weights between open units has the rank that their numbers allow.
    smallest_angle : float
        Smallest angle between two affine pieces [w, b] of units, in radians, as lines through 0:
        above 0 no two zero sets of pieces are the same.
    n_pieces : int
        Number of units with their patterns.
    """

    full_rank: bool
    smallest_angle: float
    smallest_offset: float
    n_pieces: int

    @property
    def holds(self) -> bool:
        """True where all conditions hold, beyond rounding."""
        return self.full_rank and min(self.smallest_angle, self.smallest_offset) > _ROUNDING


@door()
def check_general(weights: ReLUWeights) -> Generality:
    """Check lemmas A.10 to A.12 by going through all patterns of open units.

    A local optimum of a pre-activation is attained on a whole face of the regions of linearity,
    where some units below are 0 and all others keep their side. Its value is 0 only if its affine
    piece is a combination of theirs there: if for no pattern it is, no optimum has value 0. The
    converse is not true, so that a network where it is may be general all the same. Almost every
    network satisfies all conditions.

    Raises
    ------
    ValueError
        If there are more than 3000 pieces, or more than 200,000 sets of closed units, or units are
        leaky, which the lemmas do not cover.

    References
    ----------
    M. Phuong, "Underspecification in Deep Learning", definition A.11, whose lemma A.11
    excepts a unit on one pattern from the third condition; the main text shortens it.

    Examples
    --------
    >>> network = ib.equivalence.identifiable_network((3, 2))
    >>> ib.equivalence.check_general(network).holds
    True
    """
    if weights.slope:
        raise ValueError(
            f"`weights` have leaky units, of slope {weights.slope:g}: the lemmas are about ReLUs"
        )
    counts = [1, *(2**width - 1 for width in weights.widths)]
    widths = [*weights.widths, len(weights.matrices[-1])]
    n_pieces = sum(math.prod(counts[: k + 1]) * width for k, width in enumerate(widths))
    if n_pieces > _MOST:
        raise ValueError(
            f"`weights` have {n_pieces} affine pieces, more than the {_MOST} that can be gone "
            f"through: take narrower layers than {weights.widths}, or fewer"
        )
    rows = np.concatenate([
        affine_pieces(weights, pattern)[-1]
        for n_layers in range(len(widths))
        for pattern in _patterns(weights.widths[:n_layers])
    ])  # fmt: skip
    lines = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    sines = [_smallest_sine(line, lines[k + 1 :]) for k, line in enumerate(lines[:-1])]
    ranks = all(_has_full_rank(weights, pattern) for pattern in _patterns(weights.widths))
    angle = float(np.arcsin(min(sines)))
    return Generality(ranks, angle, _smallest_offset(weights), n_pieces)


def _patterns(widths: Sequence[int]) -> Iterator[Pattern]:
    each = [
        [np.array(bits, dtype=bool) for bits in product((0, 1), repeat=width) if any(bits)]
        for width in widths
    ]
    yield from product(*each)


def _smallest_offset(weights: ReLUWeights) -> float:
    """Return the least sine between pieces and spans of closed units below them."""
    n_inputs, least, n_sets = weights.n_inputs, 1.0, 0
    for n_layers in range(1, len(weights.matrices)):
        for bits in product((False, True), repeat=sum(weights.widths[:n_layers])):
            opened = np.split(np.array(bits), np.cumsum(weights.widths[: n_layers - 1]))
            *below, pieces = affine_pieces(weights, opened)
            closed = np.concatenate(below)[~np.array(bits)]
            # Behind a closed layer a unit is constant: its zero set is no face.
            closed = closed[np.linalg.norm(closed[:, :-1], axis=1) > _ROUNDING]
            # Every independent set is part of one of as many as the rank says.
            size = _rank(closed[:, :-1])
            n_sets += math.comb(len(closed), size)
            if n_sets > _MOST_SETS:
                raise ValueError(
                    f"`weights` have more than {_MOST_SETS} sets of closed units, for "
                    f"{n_inputs} inputs and widths {weights.widths}: take narrower layers"
                )
            lengths = np.linalg.norm(pieces, axis=1, keepdims=True)
            if not lengths.all():
                return 0.0
            unit = pieces / lengths
            for chosen in combinations(range(len(closed)), size):
                least = min(least, _sine_to_span(unit, closed[list(chosen)]))
    return least


def _rank(normals: Array) -> int:
    """Return the rank of rows, none of them 0, beyond rounding and whatever their lengths."""
    unit = normals / np.linalg.norm(normals, axis=1, keepdims=True)
    return int(np.linalg.matrix_rank(unit, tol=_ROUNDING))


def _sine_to_span(lines: Array, span: Array) -> float:
    """Return the least sine of unit vectors (m, d) to the span of rows; 1 for parallel rows."""
    if not len(span):
        return 1.0
    # Rows whose normals depend on each other have no common zero, or one of fewer of them.
    if _rank(span[:, :-1]) < len(span):
        return 1.0
    basis = np.linalg.qr(span.T)[0]
    return float(np.linalg.norm(lines - lines @ basis @ basis.T, axis=1).min())


def _smallest_sine(line: Array, others: Array) -> float:
    along = others @ line
    return float(np.linalg.norm(others - along[:, None] * line, axis=1).min())


def _has_full_rank(weights: ReLUWeights, pattern: Pattern) -> bool:
    """Check (A.17): every product from a layer to one above has the largest possible rank."""
    for first in range(len(pattern)):
        least = weights.matrices[first].shape[1]
        below = np.eye(least)
        for W, opened in zip(weights.matrices[first:-1], pattern[first:], strict=True):
            below = (W @ below) * opened[:, None]
            least = min(least, int(opened.sum()))
            values = np.linalg.svd(below, compute_uv=False)
            if values[least - 1] <= _ROUNDING * values[0]:
                return False
    return True


class _Region:
    """Inputs of a ball at which all units so far are open, and their affine map to these units.

    Attributes
    ----------
    A, c : (d, D) and (d,) arrays
        Inputs of the next layer are `A x + c` there.
    reach : float
        Upper bound of the image norm of inputs of the ball.
    """

    def __init__(self, n_inputs: int, radius: float) -> None:
        self.A, self.c = np.eye(n_inputs), np.zeros(n_inputs)
        self.radius = self.reach = radius
        self._rows = np.zeros((0, n_inputs + 1))

    def close(self, w: Array, b: float) -> None:
        """Restrict the region to nonnegative `w z + b`, z the inputs of the next layer."""
        self._rows = np.vstack([self._rows, [*(w @ self.A), w @ self.c + b]])

    def distance(self, x: Array, along: Array) -> float:
        """Return the largest t for which `x + t along` stays inside."""
        rates = self._rows[:, :-1] @ along
        values = self._rows[:, :-1] @ x + self._rows[:, -1]
        ends = -values[rates < 0] / rates[rates < 0]
        a, b, c = along @ along, x @ along, x @ x - self.radius**2
        return float(min([*ends, (-b + math.sqrt(b * b - a * c)) / a]))

    def lift(self, z: Array) -> Array:
        """Return the shortest change of the input that changes the next layer's inputs by z."""
        return np.asarray(np.linalg.pinv(self.A) @ z)

    def through(self, W: Array, b: Array) -> None:
        """Advance to the inputs of the layer above these weights."""
        self.A, self.c = W @ self.A, W @ self.c + b
        self.reach = float(np.linalg.norm(W, 2) * self.reach + np.linalg.norm(b))


@door()
def identifiable_network(
    sizes: Sequence[int],
    *,
    radius: float = 1.0,
    random_state: int | np.random.Generator = 0,
) -> ReLUWeights:
    """Construct a network that its function on a ball determines among general ones of its sizes.

    Theorem 2.1: every general network with these sizes and the same function on the ball is this
    one up to permutations and positive scales. Of each layer the first two units cover the inputs,
    so that one of them is open everywhere, further ones cut corners off where all are open, and the
    zero set of the first meets those of all units below.

    Parameters
    ----------
    sizes : sequence of int
        (d_0, ..., d_{L-1}), inputs and hidden widths, not increasing, the least at least 2. The
        output is one score.
    radius : float
        Radius of the ball around 0.
    random_state : int or numpy.random.Generator
        Seed or generator of the random weights.

    Returns
    -------
    ReLUWeights

    Raises
    ------
    ValueError
        If sizes increase or are too small, there is no hidden layer, or `radius` is not positive.

    References
    ----------
    M. Phuong, "Underspecification in Deep Learning", theorem 2.1, lemma 2.4 (A.17).

    Examples
    --------
    >>> ib.equivalence.identifiable_network((3, 3, 2))
    ReLUWeights(3-3-2-1, with biases)
    """
    shape = tuple(int(size) for size in sizes)
    if len(shape) < 2 or min(shape) < 2 or list(shape) != sorted(shape, reverse=True):
        raise ValueError(
            "`sizes` must be those of the inputs and of one hidden layer or more, not increasing "
            f"and at least 2, got {shape}: the theorem covers no other sizes"
        )
    require_positive("radius", radius)
    rng = np.random.default_rng(random_state)
    region = _Region(shape[0], radius)
    corners: list[Array] = []
    matrices, biases = [], []
    for width in shape[1:]:
        W, b, corners = _layer(region, corners, width, rng)
        region.through(W, b)
        matrices.append(W)
        biases.append(b)
    last = rng.choice([-1.0, 1.0], shape[-1]) * rng.uniform(0.5, 1.5, shape[-1])
    return ReLUWeights.from_arrays([*matrices, last[None]], [*biases, rng.normal(size=1)])


def _layer(
    region: _Region, corners: list[Array], width: int, rng: np.random.Generator
) -> tuple[Array, Array, list[Array]]:
    """Return a layer's weights, and inputs x_i with unit i at 0 and all other units open."""
    centre = np.mean(corners, axis=0) if corners else 0.1 * region.radius * _unit(region, rng)
    z = region.A @ centre + region.c
    # The first zero set: through the corners of the layer below, one on each of its zero sets.
    images = np.array([region.A @ x + region.c - z for x in corners]).reshape(-1, len(z))
    w = _orthogonal(images, rng)
    forth = region.lift(w)
    step = _PART * region.distance(centre, forth)
    # The second: where the first is closed it is above height - tilt |z' - z| > 0 on all the ball.
    steep = rng.uniform(0.6, 1.6)
    height = steep * step
    tilt = 0.5 * height / (region.reach + float(np.linalg.norm(z)))
    other = -steep * w + tilt * _orthogonal(w[None], rng)
    rows, biases = [w, other], [-float(w @ z), height - float(other @ z)]
    # In general position: no two layers meet at the same shares of their distances.
    aside = region.lift(_orthogonal(w[None], rng))
    moved = centre + rng.uniform(0.2, 0.6) * region.distance(centre, aside) * aside
    found = [moved, centre + step * forth]
    for row, bias in zip(rows, biases, strict=True):
        region.close(row, bias)
    for _ in range(2, width):
        middle = np.mean(found, axis=0)
        z = region.A @ middle + region.c
        images = np.array([region.A @ x + region.c - z for x in found])
        q = _orthogonal(images, rng)
        step = _PART * region.distance(middle, region.lift(q))
        rows.append(-q)
        biases.append(step + float(q @ z))
        found.append(middle + step * region.lift(q))
        region.close(rows[-1], biases[-1])
    return np.array(rows), np.array(biases), found


def _unit(region: _Region, rng: np.random.Generator) -> Array:
    v: Array = rng.normal(size=region.A.shape[:1])
    return np.asarray(v / np.linalg.norm(v))


def _orthogonal(vectors: Array, rng: np.random.Generator) -> Array:
    """Return a random unit vector orthogonal to the rows (k, d) of `vectors`, of rank below d."""
    v: Array = rng.normal(size=vectors.shape[1:])
    if len(vectors):
        _, values, right = np.linalg.svd(vectors)
        rank = int((values > 1e-10 * values.max(initial=0.0)).sum())
        v = right[rank:].T @ rng.normal(size=len(right) - rank)
    return np.asarray(v / np.linalg.norm(v))
