"""Where neurons turn early in training from near zero: extremal directions and their sectors."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...data.arrays import Floats, checked_data
from ...data.orthants import inner_products

__all__ = ["ExtremalDirections", "ExtremalSectors", "early_objective", "extremal_directions",
           "extremal_sectors"]  # fmt: skip


class ExtremalDirections(NamedTuple):
    """Unit vectors (D,) that positive and negative neurons turn to; zeros without the class."""

    positive: Floats
    negative: Floats


class ExtremalSectors(NamedTuple):
    """Signs (n,) in {-1, 0, 1} of `<w, x_i>` on the samples, in the two extremal sectors."""

    positive: NDArray[np.int8]
    negative: NDArray[np.int8]


def early_objective(W: Floats, X: Floats, y: Floats) -> Floats:
    """`G(w) = 1/2 sum_i y_i relu(<w, x_i>)` for every row of `W` (k, D): (k,) values.

    Near zero weights a neuron's direction ascends G if its output weight is positive and
    descends it if that is negative. The factor is that of the logistic loss, `-l'(0) = 1/2`.

    References
    ----------
    M. Phuong, "Underspecification in Deep Learning", equation (3.12).
    """
    X, y = checked_data(X, y)
    values: Floats = np.maximum(np.atleast_2d(W) @ X.T, 0.0) @ y / 2
    return values


def extremal_directions(X: Floats, y: Floats) -> ExtremalDirections:
    """The maximiser and the minimiser of `early_objective` on the unit sphere.

    On orthogonally separable data each is unique and is the sum of its class, normalised: there
    `relu(<w, x_i>)` opens on one class, where G is linear with that gradient.

    Raises
    ------
    ValueError
        If shapes disagree, values are not finite or labels are not -1 and +1.

    References
    ----------
    M. Phuong, "Underspecification in Deep Learning", lemma 3.2.
    """
    X, y = checked_data(X, y)
    sums = [X[y == label].sum(axis=0) for label in (1.0, -1.0)]
    return ExtremalDirections(*(s / (np.linalg.norm(s) or 1.0) for s in sums))


def extremal_sectors(X: Floats, y: Floats) -> ExtremalSectors:
    """Sign patterns that neurons reach early, and keep, on orthogonally separable data.

    The positive one is +1 on positive samples; on a negative sample j it is -1 if
    `<x_j, x_i> < 0` for some positive i, and 0 if `<x_j, x_i> = 0` for all of them. The negative
    one is its mirror image. (The zeros cannot occur where the support examples of each class span
    the input space, as the theorem assumes.)

    Raises
    ------
    ValueError
        If shapes disagree, values are not finite or labels are not -1 and +1.

    References
    ----------
    M. Phuong, "Underspecification in Deep Learning", equations (3.13) and (3.14).
    """
    X, y = checked_data(X, y)
    sectors = []
    for label in (1.0, -1.0):
        own = y == label
        sector = own.astype(np.int8)
        sector[~own] = -np.any(inner_products(X[~own], X[own]) < 0, axis=1).astype(np.int8)
        sectors.append(sector)
    return ExtremalSectors(*sectors)
