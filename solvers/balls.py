"""Unit balls of norms as cones of matrices, for an interior point in the coefficients.

A block C of coefficients has largest singular value at most t exactly if

    M = [[t I, C], [C', t I]]

is positive semidefinite. A largest block of norm one is this on the coefficients B themselves; a
sum of dual norms is its polar, which has the same on the dual point V and B as a part of the
multiplier. Rows, columns and entries are blocks of one row.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from .images import Floats
from .norms import Norm, blocks_of

__all__ = ["Blocks", "Cone", "Linearised", "bordered", "is_largest", "takes"]


def takes(norm: Norm) -> bool:
    """True for norms whose balls are such cones: all but sums of spectral norms and their duals."""
    return (norm.inside, norm.over) not in (("spectral", "sum"), ("nuclear", "max")) or (
        norm.blocks == "whole"
    )


def is_largest(norm: Norm) -> bool:
    """True if the norm is the largest of its blocks, False if it is a sum of dual ones."""
    return norm.over == "max" or norm.inside == "spectral"


@dataclass(frozen=True, eq=False)
class Blocks:
    """Places of the blocks of a norm among coefficients in C order.

    Attributes
    ----------
    place : (b, p, q) integer array
        Index of each entry of each block.
    """

    place: np.ndarray

    @classmethod
    def of(cls, norm: Norm, shape: tuple[int, ...]) -> Blocks:
        """Find the blocks of coefficients of this shape."""
        index = np.arange(int(np.prod(shape))).reshape(shape)
        stack = np.asarray(blocks_of(norm, index))
        return cls(stack.reshape(len(stack), 1, -1) if norm.inside == "l2" else stack)

    @property
    def size(self) -> int:
        """Number of coefficients."""
        return int(self.place.size)

    @property
    def order(self) -> int:
        """Sum of the orders p + q of all matrices."""
        b, p, q = self.place.shape
        return int(b * (p + q))

    def stack(self, flat: Floats) -> Floats:
        """Blocks (b, p, q) of coefficients (size,)."""
        return np.asarray(flat[self.place])

    def flat(self, stack: Floats) -> Floats:
        """Coefficients (size,) of blocks."""
        values = np.empty(self.size)
        values[self.place] = stack
        return values

    def matrix(self, per_block: Floats) -> Floats:
        """Matrix (size, size) of matrices (b, p q, p q) of blocks."""
        index = self.place.reshape(len(self.place), -1)
        values = np.zeros((self.size, self.size))
        values[index[:, :, None], index[:, None, :]] = per_block
        return values


@dataclass(frozen=True, eq=False)
class Cone:
    """Matrices M of blocks C at radius t, and their multipliers Z: both positive definite.

    Attributes
    ----------
    C : (b, p, q) array
    t : float
    Z : (b, p + q, p + q) array
    """

    C: Floats
    t: float
    Z: Floats

    @property
    def M(self) -> Floats:
        """Matrices (b, p + q, p + q)."""
        return bordered(self.C, self.t)

    def complementarity(self) -> float:
        """Inner product of M and Z."""
        return float(np.sum(self.M * self.Z))

    def corner(self) -> Floats:
        """Upper right blocks (b, p, q) of Z."""
        return self.Z[:, : self.C.shape[1], self.C.shape[1] :]

    def moved(self, by: Cone, primal: float, dual: float) -> Cone:
        """Step of `primal` in C and t, and of `dual` in Z."""
        return replace(
            self, C=self.C + primal * by.C, t=self.t + primal * by.t, Z=self.Z + dual * by.Z
        )

    def longest(self, by: Cone) -> tuple[float, float]:
        """Longest steps that leave M, and Z, positive semidefinite."""
        return _longest(self.M, bordered(by.C, by.t)), _longest(self.Z, by.Z)


@dataclass(frozen=True, eq=False)
class Linearised:
    """The cone's complementarity M Z = mu I, linearised at a point (HKM direction).

    Z + dZ = mu P - sym(P dM Z) - correction,    P = M^-1
    """

    cone: Cone
    P: Floats
    # Singular vectors of C, and P and Z in their basis: there the blocks of P are diagonal.
    U: Floats
    W: Floats
    turned: tuple[Floats, Floats]

    @classmethod
    def at(cls, cone: Cone) -> Linearised:
        """Linearise at a point."""
        p = cone.C.shape[1]
        U, s, W = np.linalg.svd(cone.C, full_matrices=True)
        W = np.swapaxes(W, 1, 2)
        basis = np.zeros_like(cone.Z)
        basis[:, :p, :p], basis[:, p:, p:] = U, W
        turn = np.swapaxes(basis, 1, 2)
        inverse, i = np.zeros_like(cone.Z), np.arange(s.shape[1])
        diagonal = np.arange(cone.Z.shape[1])
        inverse[:, diagonal, diagonal] = 1 / cone.t
        share = 1 / ((cone.t - s) * (cone.t + s))
        inverse[:, i, i] = inverse[:, p + i, p + i] = cone.t * share
        inverse[:, i, p + i] = inverse[:, p + i, i] = -s * share
        Z = turn @ cone.Z @ basis
        return cls(cone, basis @ inverse @ turn, U, W, (inverse, (Z + np.swapaxes(Z, 1, 2)) / 2))

    def operator(self, invert: bool = False) -> Floats:
        """Matrices (b, p q, p q) of `dC -> (P dM Z + Z dM P)_12`, at fixed t, or their inverses.

        Raises
        ------
        numpy.linalg.LinAlgError
            If rounding has left one that is not positive definite.
        """
        b, p, q = self.cone.C.shape
        P, Z = self.turned
        P11, P12, P22 = P[:, :p, :p], P[:, :p, p:], P[:, p:, p:]
        Z11, Z12, Z22 = Z[:, :p, :p], Z[:, :p, p:], Z[:, p:, p:]
        whole = np.einsum("bik,bjl->bijkl", P11, Z22) + np.einsum("bik,bjl->bijkl", Z11, P22)
        whole += np.einsum("bil,bkj->bijkl", P12, Z12) + np.einsum("bil,bkj->bijkl", Z12, P12)
        if invert:
            whole = _inverse(whole.reshape(b, p * q, p * q)).reshape(whole.shape)
        # Back from the basis of singular vectors, an index at a time.
        for vectors in (self.U, self.W, self.U, self.W):
            count = vectors.shape[1]
            flat = whole.reshape(b, count, -1)
            whole = np.swapaxes(vectors @ flat, 1, 2)  # the index goes to the end
        return np.asarray(whole.reshape(b, p * q, p * q))

    def radial(self) -> tuple[Floats, float]:
        """Upper right of `P Z + Z P`, what dt adds to the operator, and the trace of P Z."""
        p = self.cone.C.shape[1]
        product = self.P @ self.cone.Z
        return (product + np.swapaxes(product, 1, 2))[:, :p, p:], float(
            np.trace(product, axis1=1, axis2=2).sum()
        )

    def target(self, mu: float, correction: Floats | None) -> Floats:
        """Matrices `mu P - correction`."""
        return mu * self.P if correction is None else mu * self.P - correction

    def multiplier_step(self, dC: Floats, dt: float, target: Floats) -> Floats:
        """Step dZ of the multiplier."""
        return target - self.cone.Z - self._product(bordered(dC, dt), self.cone.Z)

    def correction(self, step: Cone) -> Floats:
        """Second-order term of Mehrotra's corrector at a predicted step."""
        return self._product(bordered(step.C, step.t), step.Z)

    def _product(self, dM: Floats, Z: Floats) -> Floats:
        product = self.P @ dM @ Z
        return (product + np.swapaxes(product, 1, 2)) / 2


def bordered(C: Floats, t: float) -> Floats:
    """Matrices [[t I, C], [C', t I]] (b, p + q, p + q)."""
    b, p, q = C.shape
    M = np.zeros((b, p + q, p + q))
    M[:, np.arange(p + q), np.arange(p + q)] = t
    M[:, :p, p:] = C
    M[:, p:, :p] = np.swapaxes(C, 1, 2)
    return M


def _longest(matrix: Floats, step: Floats) -> float:
    """Longest step in [0, inf) that leaves positive definite matrices positive semidefinite."""
    L = np.linalg.cholesky(matrix)
    half = np.linalg.solve(L, step)
    scaled = np.linalg.solve(L, np.swapaxes(half, 1, 2))
    least = float(np.linalg.eigvalsh((scaled + np.swapaxes(scaled, 1, 2)) / 2).min())
    return np.inf if least >= 0 else -1 / least


def _inverse(matrices: Floats) -> Floats:
    """Inverses of symmetric positive definite matrices, scaled to a diagonal of ones."""
    diagonal = np.diagonal(matrices, axis1=1, axis2=2)
    if not np.all(diagonal > 0):
        raise np.linalg.LinAlgError("a diagonal entry is not positive")
    scale = 1 / np.sqrt(diagonal)
    scaled = matrices * scale[:, :, None] * scale[:, None, :]
    inverse = np.linalg.inv((scaled + np.swapaxes(scaled, 1, 2)) / 2)
    return (inverse + np.swapaxes(inverse, 1, 2)) / 2 * scale[:, :, None] * scale[:, None, :]
