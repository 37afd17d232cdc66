"""Alignment of two networks by permutations and scales of units."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import linear_sum_assignment

from ..._support.doors import door
from ..._support.solve import Status
from ...limits.result import Result, proved
from .canonical import CanonicalForm, canonical_form
from .reading import as_weights, check_slopes
from .reduction import ordered, transformed, unit_rows
from .weights import Array, Indices, ReLUWeights

if TYPE_CHECKING:
    import torch

# Rounds of weight matching: each raises the sum of products of matched weights, and it converges
# within a handful.
_ROUNDS = 100


@dataclass(frozen=True)
class AlignmentCertificate:
    """Distance of the matched networks.

    Attributes
    ----------
    distance : float
        ``||a - b|| / ||a||`` of all weights, both at balanced scales, b permuted.
    """

    distance: float


class Alignment(Result):
    """Network b aligned with network a, both without dead, constant and parallel units.

    Attributes
    ----------
    status : Status
        EQUIVALENT or HEURISTIC.
    certificate : AlignmentCertificate
    tol : float
        Distance up to which networks count as equivalent.
    cosine_per_layer : tuple of float
        Cosine of [W_l, b_l] of both, at these scales.
    permutations : tuple of (width_l,) integer arrays
        Unit of b, in its own numbering, that stands for each unit of `units`, layer by layer.
    scales : tuple of (width_l,) arrays
        Positive factors of these units of b that bring it to the scales of a.
    units : tuple of (width_l,) integer arrays
        The units of a, in its own numbering and order, that were matched.
    factor : float
        Every layer of b was multiplied by it; 1 unless `direction` was asked for.
    aligned : ReLUWeights
        b in the order and scales of a: the same function as b, times ``factor^L``.

    Examples
    --------
    >>> weights = ib.equivalence.ReLUWeights.from_arrays([np.eye(2), [[1.0, 1.0]]])
    >>> alignment = ib.equivalence.align(weights, weights)
    >>> alignment.status.name, alignment.distance
    ('EQUIVALENT', 0.0)
    """

    RECORD = ("cosine_per_layer", "widths")
    BRIEF = "{status.name}: distance {distance:.3g}, cosines by layer {_cosines}, widths {widths}"

    status: Status
    certificate: AlignmentCertificate
    tol: float
    cosine_per_layer: tuple[float, ...]
    permutations: tuple[Indices, ...]
    scales: tuple[Array, ...]
    units: tuple[Indices, ...]
    factor: float
    aligned: ReLUWeights

    distance = proved("distance", "Distance of all weights, of the certificate.")

    @property
    def widths(self) -> tuple[int, ...]:
        """Number of units matched, layer by layer."""
        return tuple(len(units) for units in self.units)

    @property
    def is_equivalent(self) -> bool:
        """True where the match proves, up to rounding, that both are one function."""
        return self.status is Status.EQUIVALENT

    @property
    def _cosines(self) -> str:
        return ", ".join(f"{cosine:.6f}" for cosine in self.cosine_per_layer)


@door()
def align(
    a: ReLUWeights | torch.nn.Module,
    b: ReLUWeights | torch.nn.Module,
    *,
    direction: bool = False,
    tol: float = 1e-9,
) -> Alignment:
    """Permute and scale the units of network b so that it is as near to network a as possible.

    Units are matched layer after layer by their incoming weights, which recovers permutations and
    scales of equivalent networks. Where that does not make them equal, sums of products of incoming
    and outgoing weights are maximised layer by layer in turn: weight matching, a heuristic.

    Parameters
    ----------
    a, b : ReLUWeights or Module
        Fully connected ReLU networks of any depth.
    direction : bool
        Compare directions of all weights: networks whose functions differ by a positive factor
        count as equivalent. For networks without biases.
    tol : float
        `distance` up to which they count as equivalent; also that of rows that are merged.

    Returns
    -------
    Alignment
        EQUIVALENT or HEURISTIC, with permutations, scales and the aligned network.

    Raises
    ------
    TypeError, ValueError
        If one is no such network or constant, if sizes differ once needless units are gone, or
        if `direction` meets biases.

    References
    ----------
    M. Phuong, "Underspecification in Deep Learning", theorem 2.1; weight matching: S. Ainsworth,
    J. Hayase and S. Srinivasa, "Git Re-Basin", algorithm 1.

    Examples
    --------
    >>> a = ib.equivalence.ReLUWeights.from_arrays([[[1.0, 0.0], [0.0, 1.0]], [[1.0, -1.0]]])
    >>> b = ib.equivalence.ReLUWeights.from_arrays([[[0.0, 2.0], [1.0, 0.0]], [[-0.5, 1.0]]])
    >>> alignment = ib.equivalence.align(a, b)
    >>> alignment.is_equivalent, alignment.permutations[0].tolist()
    (True, [1, 0])
    """
    one, other = as_weights(a), as_weights(b)
    check_slopes(one, other)
    if direction and (one.has_biases or other.has_biases):
        raise ValueError(
            "`direction` is for networks without biases, whose functions a common factor of all "
            "weights multiplies: align them as they are, or give biases as a constant input"
        )
    form_a, form_b = canonical_form(one, tol=tol), canonical_form(other, tol=tol)
    _check_sizes(form_a.weights, form_b.weights)
    factor = form_a.weights.norm / form_b.weights.norm if direction else 1.0
    there = _multiplied(form_b.weights, factor)
    order = _match_layers(form_a.weights, there)
    if _distance(form_a.weights, transformed(there, order)) > tol:
        order = _match_weights(form_a.weights, there, order)
    return _alignment(form_a, form_b, there, order, factor, tol)


def _check_sizes(a: ReLUWeights, b: ReLUWeights) -> None:
    sizes = [(w.n_inputs, *w.widths, len(w.matrices[-1])) for w in (a, b)]
    if sizes[0] != sizes[1]:
        raise ValueError(
            "networks must have the same sizes once dead, constant and parallel units are gone, "
            f"got {sizes[0]} and {sizes[1]}: `measure_distance` compares two-layer networks of "
            "different widths"
        )


def _multiplied(weights: ReLUWeights, factor: float) -> ReLUWeights:
    if factor == 1.0:
        return weights
    return replace(weights, matrices=tuple(factor * W for W in weights.matrices))


def _distance(a: ReLUWeights, b: ReLUWeights) -> float:
    squares = [
        ((x - y) ** 2).sum()
        for x, y in zip((*a.matrices, *a.biases), (*b.matrices, *b.biases), strict=True)
    ]
    return float(np.sqrt(sum(squares))) / a.norm


def _match_layers(a: ReLUWeights, b: ReLUWeights) -> tuple[Indices, ...]:
    """Match units of b to those of a by cosines of incoming rows, from the first layer on."""
    return ordered(b, lambda layer, rows: _assign(unit_rows(a.rows(layer)) @ unit_rows(rows).T))


def _match_weights(
    a: ReLUWeights, b: ReLUWeights, order: tuple[Indices, ...]
) -> tuple[Indices, ...]:
    """Improve `order` by coordinate ascent on the sum of products of matched weights."""
    current = list(order)
    for _ in range(_ROUNDS):
        before = [chosen.copy() for chosen in current]
        for layer in range(len(current)):
            current[layer] = _assign(_products(a, b, current, layer))
        if all(np.array_equal(x, y) for x, y in zip(before, current, strict=True)):
            break
    return tuple(current)


def _products(a: ReLUWeights, b: ReLUWeights, order: list[Indices], layer: int) -> Array:
    """Return products (width, width) of incoming and outgoing weights, other layers matched."""
    rows, columns = b.rows(layer), b.matrices[layer + 1]
    if layer > 0:
        rows = rows[:, [*order[layer - 1], -1]]
    if layer + 1 < len(order):
        columns = columns[order[layer + 1]]
    products: Array = a.rows(layer) @ rows.T + a.matrices[layer + 1].T @ columns
    return products


def _assign(scores: Array) -> Indices:
    _, columns = linear_sum_assignment(scores, maximize=True)
    return np.asarray(columns, dtype=np.int64)


def _alignment(
    form_a: CanonicalForm,
    form_b: CanonicalForm,
    there: ReLUWeights,
    order: tuple[Indices, ...],
    factor: float,
    tol: float,
) -> Alignment:
    matched = transformed(there, order)
    distance = _distance(form_a.weights, matched)
    # Balanced scales of b over those of a, and units of a back in their own order.
    sort = tuple(np.argsort(u, kind="stable") for u in form_a.units)
    pairs = list(zip(form_a.scales, form_b.scales, order, sort, strict=True))
    back = tuple(1 / form_a.scales[layer][s] for layer, s in enumerate(sort))
    return Alignment(
        status=Status.EQUIVALENT if distance <= tol else Status.HEURISTIC,
        certificate=AlignmentCertificate(distance),
        tol=tol,
        cosine_per_layer=tuple(
            _cosine(form_a.weights.rows(layer), matched.rows(layer))
            for layer in range(len(matched.matrices))
        ),
        permutations=tuple(u[o][s] for u, o, s in zip(form_b.units, order, sort, strict=True)),
        scales=tuple((of_b[o] / of_a)[s] for of_a, of_b, o, s in pairs),
        units=tuple(u[s] for u, s in zip(form_a.units, sort, strict=True)),
        factor=factor,
        aligned=transformed(matched, sort, back),
    )


def _cosine(a: Array, b: Array) -> float:
    size = float(np.linalg.norm(a) * np.linalg.norm(b))
    return float((a * b).sum() / size) if size > 0 else 1.0
