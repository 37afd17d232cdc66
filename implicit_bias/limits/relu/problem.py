"""The margin problem of two-layer ReLU networks, and its convex programs on fixed gates."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..._support.solve import HingeProgram
from ...data.arrays import Floats, checked_data

Flags = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Units:
    """Units of a two-layer ReLU network, in the coordinates of the span of the inputs.

    Attributes
    ----------
    u : (H, r) array
        ``|a_h| w_h``.
    signs : (H,) array
        ``sign(a_h)``, -1 or +1.
    gates : (n, H) boolean array
        Those of the program; only helping pairs are read.
    """

    u: Floats
    signs: Floats
    gates: Flags

    @property
    def norms(self) -> Floats:
        """Norms (H,)."""
        return np.asarray(np.linalg.norm(self.u, axis=1))

    def take(self, chosen: NDArray[np.int64] | Flags) -> Units:
        """Return some of the units."""
        return Units(self.u[chosen], self.signs[chosen], self.gates[:, chosen])

    def joined(self, other: Units) -> Units:
        """Return these units and others behind them."""
        return Units(
            np.concatenate([self.u, other.u]),
            np.concatenate([self.signs, other.signs]),
            np.concatenate([self.gates, other.gates], axis=1),
        )


@dataclass(frozen=True, eq=False)
class ReLUProblem:
    r"""Minimise a sum of norms under the margins of a two-layer ReLU network.

    .. math:: \min_{u, s} \sum_h \|u_h\| \quad\text{s.t.}\quad
              y_n \sum_h s_h \, \rho(\langle u_h, x_n \rangle) \ge 1

    The activation is :math:`\rho(z) = \alpha z + (1 - \alpha) \max(z, 0)`. A pair (n, h) *helps*
    if y_n s_h = +1: its term of the margin is convex in u_h, and lies above its line of either
    slope. It *opposes* otherwise: its term is concave.

    Parameters
    ----------
    inputs : (n, D) array
    y : (n,) array
        Labels -1 and +1.
    slope : float
        alpha, in [0, 1); 0 is the ReLU.
    """

    inputs: Floats
    y: Floats
    slope: float = 0.0

    @classmethod
    def checked(cls, X: object, y: object, slope: float = 0.0) -> ReLUProblem:
        """Build the problem of data as users give them; raises TypeError or ValueError."""
        inputs, labels = checked_data(X, y)
        if not np.any(inputs):
            raise ValueError("`X` holds zeros only, on which every score is 0")
        return cls(inputs, labels, slope)

    @cached_property
    def basis(self) -> Floats:
        """Orthonormal rows (r, D) that span the inputs; the identity where these have full rank."""
        n_inputs = self.inputs.shape[1]
        if np.linalg.matrix_rank(self.inputs) == n_inputs:
            return np.eye(n_inputs)
        _, sizes, rows = np.linalg.svd(self.inputs, full_matrices=False)
        tol = sizes[0] * max(self.inputs.shape) * np.finfo(float).eps
        return np.asarray(rows[sizes > tol])

    @cached_property
    def X(self) -> Floats:
        """Inputs (n, r) in the coordinates of `basis`."""
        return np.asarray(self.inputs @ self.basis.T)

    @cached_property
    def sizes(self) -> Floats:
        """Norms (n,) of the inputs."""
        return np.asarray(np.linalg.norm(self.X, axis=1))

    def helping(self, signs: Floats) -> Flags:
        """Return which pairs (n, H) help."""
        return np.asarray(self.y[:, None] * signs > 0)

    def activation(self, z: Floats) -> Floats:
        """Return ``rho(z)``."""
        return np.asarray(self.slope * z + (1 - self.slope) * np.maximum(z, 0.0))

    def margins(self, u: Floats, signs: Floats) -> Floats:
        """Return the margins (n,) of units (H, r)."""
        return np.asarray(self.y * (self.activation(self.X @ u.T) @ signs))

    def value(self, u: Floats, signs: Floats) -> float:
        """Return the sum of the norms over the smallest margin; infinite if that is not > 0."""
        return _value(u, float(np.min(self.margins(u, signs))))

    def value_of_network(self, weights: Floats, signs: Floats) -> float:
        """Return the value of units (H, D), whose weights off the span of the inputs count too."""
        smallest = float(np.min(self.margins(weights @ self.basis.T, signs)))
        return _value(weights, smallest)

    def cosines(self, u: Floats) -> Floats:
        """Return the cosines (n, H) between inputs and units; 0 where either vanishes."""
        sizes = self.sizes[:, None] * np.linalg.norm(u, axis=1)
        products = self.X @ u.T
        return np.asarray(np.divide(products, sizes, out=np.zeros_like(products), where=sizes > 0))

    def program(self, units: Units) -> HingeProgram:
        """State the convex program on the units' gates.

        Helping terms are replaced by the line of their gate, which lies below; opposing ones stay.
        Every point that it allows is a network of at least its margins, and where the gates are
        those of the units the margins agree.
        """
        helping, alpha = self.helping(units.signs), self.slope
        linear = np.where(helping, alpha + (1 - alpha) * units.gates, -alpha)
        return HingeProgram(self.X, linear, np.where(helping, 0.0, 1 - alpha))


def _value(u: Floats, smallest: float) -> float:
    return float(np.linalg.norm(u, axis=1).sum()) / smallest if smallest > 0 else math.inf


def merged(problem: ReLUProblem, units: Units) -> tuple[Units, NDArray[np.int64]]:
    """Return the units with those of one sign and the same helping gates as one, their sum.

    Beside them the numbers of the units that stand for their groups.

    The program loses nothing by it: helping terms are linear, hinges of a sum are at most the sum
    of the hinges, and so are norms.
    """
    keys = np.vstack([units.signs > 0, units.gates & problem.helping(units.signs)])
    _, first, index = np.unique(keys, axis=1, return_index=True, return_inverse=True)
    order = np.argsort(np.argsort(first))  # groups in the order of their first units
    u = np.zeros((len(first), units.u.shape[1]))
    np.add.at(u, order[np.reshape(index, -1)], units.u)
    kept = np.sort(first)
    return Units(u, units.signs[kept], units.gates[:, kept]), kept
