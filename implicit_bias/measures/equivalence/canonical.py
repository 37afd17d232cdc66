"""Canonical representatives of networks modulo permutations and positive scales of units."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from ..._support.doors import door, result
from .reading import as_weights
from .reduction import ordered, reduce_network, transformed
from .weights import Array, Indices, ReLUWeights

if TYPE_CHECKING:
    import torch

# Sweeps stop where no factor differs from 1 by more: a few roundings of a square root of sums.
_CONVERGED = 1e-14
# Measured: 1 for two layers, 23 for three, 47 for four. Each sweep lowers the norm.
_SWEEPS = 10_000


@result()
@dataclass(frozen=True, eq=False)
class CanonicalForm:
    """The representative of a network modulo permutations and positive scales of its units.

    Attributes
    ----------
    weights : ReLUWeights
        The same function, its units in canonical scale and order.
    units : tuple of (width_l,) integer arrays
        The original unit that each hidden unit is, layer by layer; of merged ones the first.
    scales : tuple of (width_l,) arrays
        The factor of each one's incoming weights and bias.
    n_dead, n_constant, n_merged : int
        Units left out: see `Reduction`.
    imbalance : float
        Largest ``|in - out| / max(in, out)`` of a unit's incoming and outgoing norms: rounding for
        "balanced".
    sweeps : int
        Sweeps over all layers until no factor changed.

    Examples
    --------
    >>> weights = ib.equivalence.ReLUWeights.from_arrays([np.eye(2), [[1.0, 1.0]]])
    >>> form = ib.equivalence.canonical_form(weights)
    >>> form.weights.widths, form.n_dead, form.n_merged
    ((2,), 0, 0)
    """

    weights: ReLUWeights
    units: tuple[Indices, ...]
    scales: tuple[Array, ...]
    n_dead: int
    n_constant: int
    n_merged: int
    imbalance: float
    sweeps: int


@door()
def canonical_form(
    network: ReLUWeights | torch.nn.Module,
    *,
    scaling: Literal["balanced", "unit"] = "balanced",
    tol: float = 1e-9,
) -> CanonicalForm:
    """Compute a ReLU network's representative modulo permutations and scales of its units.

    Needless units are left out first (`reduce_network`). Networks that permutations and scales make
    equal have equal forms, up to rounding. The converse of it is theorem 2.1, for some networks
    only: equal functions need not have equal forms.

    Parameters
    ----------
    network : ReLUWeights or Module
        A fully connected ReLU network of any depth, with biases or without.
    scaling : {"balanced", "unit"}
        "balanced": each unit's incoming norm, its bias counted, equals its outgoing one, which is
        the unique scaling of least norm of all weights. "unit": incoming norms are 1.
    tol : float
        Distance of unit rows that are merged.

    Returns
    -------
    CanonicalForm

    Raises
    ------
    TypeError, ValueError
        If it is no such network, or a constant one; or `scaling` is another word.

    References
    ----------
    M. Phuong, "Underspecification in Deep Learning", section 2.2 and theorem 2.1.

    Examples
    --------
    >>> weights = ib.equivalence.ReLUWeights.from_arrays([[[4.0, 0.0]], [[1.0]]])
    >>> form = ib.equivalence.canonical_form(weights)
    >>> [W.tolist() for W in form.weights.matrices]
    [[[2.0, 0.0]], [[2.0]]]
    """
    reduced = reduce_network(as_weights(network), tol=tol)
    find = balancing_scales if scaling == "balanced" else unit_scales
    scales, sweeps = find(reduced.weights)
    everyone = tuple(np.arange(width) for width in reduced.weights.widths)
    scaled = transformed(reduced.weights, everyone, scales)
    order = ordered(scaled, _general_order)
    weights = transformed(scaled, order)
    return CanonicalForm(
        weights=weights,
        units=tuple(u[o] for u, o in zip(reduced.units, order, strict=True)),
        scales=tuple(s[o] for s, o in zip(scales, order, strict=True)),
        n_dead=reduced.n_dead,
        n_constant=reduced.n_constant,
        n_merged=reduced.n_merged,
        imbalance=_imbalance(weights),
        sweeps=sweeps,
    )


def balancing_scales(weights: ReLUWeights) -> tuple[tuple[Array, ...], int]:
    r"""Find factors that make incoming and outgoing norms equal, and count the sweeps.

    The squared norm is a sum of exponentials of the logarithms of the factors, strictly convex
    if no unit's incoming or outgoing weights are all zero; a sweep minimises it unit by unit,
    ``s = sqrt(out / in)``. The minimum is where both norms are equal.
    """
    squares = [weights.rows(layer) ** 2 for layer in range(len(weights.matrices))]
    scales = [np.ones(width) for width in weights.widths]
    sweep, furthest = 0, np.inf
    while furthest > _CONVERGED and sweep < (_SWEEPS if len(scales) > 1 else 1):
        sweep, furthest = sweep + 1, 0.0
        for layer, scale in enumerate(scales):
            below = squares[layer].sum(axis=1)
            above = squares[layer + 1][:, :-1].sum(axis=0)
            factor = (above / below) ** 0.5
            squares[layer] *= factor[:, None]
            squares[layer + 1][:, :-1] /= factor
            scale *= factor**0.5
            furthest = max(furthest, float(np.abs(factor - 1).max()))
    return tuple(scales), sweep


def unit_scales(weights: ReLUWeights) -> tuple[tuple[Array, ...], int]:
    """Find factors that make incoming norms, with biases, 1; one sweep from the first layer."""
    scales: list[Array] = []
    for layer in range(len(weights.widths)):
        rows = weights.rows(layer)
        if scales:
            rows[:, :-1] /= scales[-1]
        scales.append(1.0 / np.linalg.norm(rows, axis=1))
    return tuple(scales), 1


def _general_order(layer: int, rows: Array) -> Indices:
    """Order the units of a layer by their projection on a fixed general direction.

    Unlike the order by the first entry, it has no ties where entries are zero or equal.
    """
    general = np.random.default_rng(layer).normal(size=rows.shape[1])
    return np.argsort(rows @ general, kind="stable")


def _imbalance(weights: ReLUWeights) -> float:
    furthest = 0.0
    for layer in range(len(weights.widths)):
        below = np.linalg.norm(weights.rows(layer), axis=1)
        above = np.linalg.norm(weights.matrices[layer + 1], axis=0)
        furthest = max(furthest, float((np.abs(below - above) / np.maximum(below, above)).max()))
    return furthest
