"""Unit balls of norms as cones of matrices, for an interior point in the coefficients.

A block C of coefficients has largest singular value at most t exactly if

    M = [[t I, C], [C', t I]]

is positive semidefinite. A largest block of norm one is this on the coefficients B themselves; a
sum of dual norms is its polar, which has the same on the dual point V and B as a part of the
multiplier. Rows, columns and entries are blocks of one row. The norm "muon" has a variable t a row
in the place of the first t, of sum 1: see `Tilted`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from .images import Floats
from .norms import Norm, blocks_of
from .step_length import longest_in_cone, symmetric

__all__ = [
    "Blocks",
    "Cone",
    "Linearised",
    "Tilted",
    "TiltedLine",
    "bordered",
    "is_largest",
    "takes",
]


def takes(norm: Norm) -> bool:
    """True for norms whose balls are such cones: all but sums of spectral norms and their duals."""
    if norm.is_factored:
        return norm.over == "factored"
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
        return longest_in_cone(self.M, bordered(by.C, by.t)), longest_in_cone(self.Z, by.Z)


@dataclass(frozen=True, eq=False)
class Tilted:
    """The matrix `[[diag t, C], [C', r I]]` of one block C, and its multiplier Z.

    A point has r = 1 and weights t of sum 1; a step has r = 0. At multipliers, the diagonal of the
    upper left of Z is constant.

    Attributes
    ----------
    C : (1, p, q) array
    t : (p,) array
    r : float
    Z : (1, p + q, p + q) array
    """

    C: Floats
    t: Floats
    r: float
    Z: Floats

    @property
    def M(self) -> Floats:
        """Matrix (1, p + q, p + q)."""
        M, i = bordered(self.C, self.r), np.arange(len(self.t))
        M[:, i, i] = self.t
        return M

    def complementarity(self) -> float:
        """Inner product of M and Z."""
        return float(np.sum(self.M * self.Z))

    def corner(self) -> Floats:
        """Upper right block (1, p, q) of Z."""
        return self.Z[:, : len(self.t), len(self.t) :]

    def moved(self, by: Tilted, primal: float, dual: float) -> Tilted:
        """Step of `primal` in C and t, and of `dual` in Z."""
        return replace(
            self, C=self.C + primal * by.C, t=self.t + primal * by.t, Z=self.Z + dual * by.Z
        )

    def longest(self, by: Tilted) -> tuple[float, float]:
        """Longest steps that leave M, and Z, positive semidefinite."""
        return longest_in_cone(self.M, by.M), longest_in_cone(self.Z, by.Z)

    def value(self) -> float:
        """Upper bound of the norm of C, by t."""
        rows = self.C[0] / np.sqrt(self.t)[:, None]
        return float(np.linalg.norm(rows, 2) * np.sqrt(self.t.sum()))

    def dual_value(self) -> float:
        """Upper bound of the dual norm of -2 Z_12: the largest Z_hh above, and the trace below."""
        diagonal, p = np.diagonal(self.Z[0]), len(self.t)
        return float(diagonal[:p].max() + diagonal[p:].sum())


@dataclass(frozen=True, eq=False)
class TiltedLine:
    """A tilted cone's complementarity M Z = mu I, linearised at a point as `Linearised` is."""

    cone: Tilted
    P: Floats

    @classmethod
    def at(cls, cone: Tilted) -> TiltedLine:
        """Linearise at a point: M is that of diag(t)^(-1/2) C at radius 1, scaled."""
        root = 1 / np.sqrt(cone.t)
        even = Cone(cone.C * root[:, None], 1.0, cone.Z)
        scale = np.concatenate([root, np.ones(cone.C.shape[2])])
        return cls(cone, Linearised.at(even).P * scale[:, None] * scale)

    def operator(self) -> Floats:
        """Matrix (p q + p, p q + p) of `(dC, dt) -> ((P dM Z + Z dM P)_12, diag (P dM Z)_11)`."""
        _, p, q = self.cone.C.shape
        P, Z = self.P[0], self.cone.Z[0]
        P11, P12, P22 = P[:p, :p], P[:p, p:], P[p:, p:]
        Z11, Z12, Z22 = Z[:p, :p], Z[:p, p:], Z[p:, p:]
        whole = np.empty((p * q + p, p * q + p))
        blocks = np.einsum("ik,jl->ijkl", P11, Z22) + np.einsum("ik,jl->ijkl", Z11, P22)
        blocks += np.einsum("il,kj->ijkl", P12, Z12) + np.einsum("il,kj->ijkl", Z12, P12)
        whole[: p * q, : p * q] = blocks.reshape(p * q, p * q)
        side = np.einsum("ik,il->ikl", P11, Z12) + np.einsum("il,ik->ikl", P12, Z11)
        whole[p * q :, : p * q] = side.reshape(p, p * q)
        whole[: p * q, p * q :] = whole[p * q :, : p * q].T
        whole[p * q :, p * q :] = P11 * Z11
        return whole

    def target(self, mu: float, correction: Floats | None) -> Floats:
        """Matrix `mu P - correction`."""
        return mu * self.P if correction is None else mu * self.P - correction

    def multiplier_step(self, step: Floats, target: Floats) -> Floats:
        """Step dZ of the multiplier at a step dM."""
        return target - self.cone.Z - symmetric(self.P @ step @ self.cone.Z)

    def correction(self, step: Tilted) -> Floats:
        """Second-order term of Mehrotra's corrector at a predicted step."""
        return symmetric(self.P @ step.M @ step.Z)


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
        return symmetric(self.P @ dM @ Z)


def bordered(C: Floats, t: float) -> Floats:
    """Matrices [[t I, C], [C', t I]] (b, p + q, p + q)."""
    b, p, q = C.shape
    M = np.zeros((b, p + q, p + q))
    M[:, np.arange(p + q), np.arange(p + q)] = t
    M[:, :p, p:] = C
    M[:, p:, :p] = np.swapaxes(C, 1, 2)
    return M


def _inverse(matrices: Floats) -> Floats:
    """Inverses of symmetric positive definite matrices, scaled to a diagonal of ones."""
    diagonal = np.diagonal(matrices, axis1=1, axis2=2)
    if not np.all(diagonal > 0):
        raise np.linalg.LinAlgError("a diagonal entry is not positive")
    scale = 1 / np.sqrt(diagonal)
    scaled = matrices * scale[:, :, None] * scale[:, None, :]
    inverse = np.linalg.inv(symmetric(scaled))
    return symmetric(np.asarray(inverse, dtype=float)) * scale[:, :, None] * scale[:, None, :]
