"""Unit balls of norms as cones of matrices, for an interior point in the coefficients.

A block C of coefficients has largest singular value at most t exactly if

    M = [[t I, C], [C', t I]]

is positive semidefinite. A largest block of norm one is this on the coefficients B themselves; a
sum of dual norms is its polar, which has the same on the dual point V and B as a part of the
multiplier. Rows, columns and entries are blocks of one row. The norm "muon" has a variable t a row
in the place of the first t, of sum 1: see `Tilted`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from scipy.linalg import lapack

from ..numerics.arrays import mirror_lower
from ..numerics.step_length import longest_step, symmetric
from ..programs.images import Floats
from .norm import Norm, blocks_of


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

    def add(self, per_block: Floats, matrix: Floats) -> None:
        """Add matrices (b, p q, p q) of blocks to a matrix (size, size)."""
        index = self.place.reshape(len(self.place), -1)
        if len(index) == 1 and np.array_equal(index[0], np.arange(self.size)):
            matrix += per_block[0]
        else:
            matrix[index[:, :, None], index[:, None, :]] += per_block

    def root(self, per_block: Floats) -> Floats:
        """Matrix J (size, size) whose J'J has these matrices (b, p q, p q) of blocks."""
        index = self.place.reshape(len(self.place), -1)
        sizes = np.sqrt(np.diagonal(per_block, axis1=1, axis2=2))
        even = per_block / sizes[:, :, None] / sizes[:, None, :]
        roots = np.swapaxes(np.linalg.cholesky(even), 1, 2) * sizes[:, None, :]
        J = np.zeros((self.size, self.size))
        J[index[:, :, None], index[:, None, :]] = roots
        return J


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
    t: Any  # an array in `Tilted`
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

    def moved(self, by: Self, primal: float, dual: float) -> Self:
        """Step of `primal` in C and t, and of `dual` in Z."""
        return replace(
            self, C=self.C + primal * by.C, t=self.t + primal * by.t, Z=self.Z + dual * by.Z
        )


@dataclass(frozen=True, eq=False)
class Tilted(Cone):
    """The matrix `[[diag t, C], [C', r I]]` of one block C, and its multiplier Z.

    A point has r = 1 and weights t of sum 1; a step has r = 0. At multipliers, the diagonal of the
    upper left of Z is constant.

    Attributes
    ----------
    C : (1, p, q) array
    t : (p,) array
    Z : (1, p + q, p + q) array
    r : float
    """

    r: float = 1.0

    @property
    def M(self) -> Floats:
        """Matrix (1, p + q, p + q)."""
        M, i = bordered(self.C, self.r), np.arange(len(self.t))
        M[:, i, i] = self.t
        return M

    def value(self) -> float:
        """Upper bound of the norm of C, by t."""
        rows = self.C[0] / np.sqrt(self.t)[:, None]
        return float(np.linalg.norm(rows, 2) * np.sqrt(self.t.sum()))

    def dual_value(self) -> float:
        """Upper bound of the dual norm of -2 Z_12: the largest Z_hh above, and the trace below."""
        diagonal, p = np.diagonal(self.Z[0]), len(self.t)
        return float(diagonal[:p].max() + diagonal[p:].sum())


@dataclass(frozen=True, eq=False)
class Line:
    """A cone's complementarity M Z = mu I, linearised at a point (HKM direction).

    Z + dZ = target - sym(P dM Z),    target = mu P - correction,    P = M^-1

    Attributes
    ----------
    cone : Cone or Tilted
    F, root : (b, p + q, p + q) arrays
        F M F' = I, and the inverse of F.
    """

    cone: Cone
    F: Floats
    root: Floats

    @cached_property
    def P(self) -> Floats:
        """Inverse of M."""
        return np.asarray(np.swapaxes(self.F, 1, 2) @ self.F)

    @cached_property
    def G(self) -> Floats:
        """Matrices with G Z G' = I."""
        return np.asarray(np.linalg.inv(np.linalg.cholesky(self.cone.Z)))

    def multiplier_step(self, dM: Floats, target: Floats) -> Floats:
        """Step dZ of the multiplier at a step dM."""
        return target - self.cone.Z - self._product(dM, self.cone.Z)

    def pushed(self, dC: Floats) -> Floats:
        """Upper right of P dM Z + Z dM P, dM of dC alone."""
        p = dC.shape[1]
        return 2 * self._product(bordered(dC, 0.0), self.cone.Z)[:, :p, p:]

    def correction(self, step: Cone) -> Floats:
        """Second-order term of Mehrotra's corrector at a predicted step."""
        return self._product(step.M, step.Z)

    def longest(self, step: Cone) -> tuple[float, float]:
        """Longest steps that leave M, and Z, positive semidefinite."""
        return longest_in_cone(self.F, step.M), longest_in_cone(self.G, step.Z)

    def centring(self, step: Cone, lengths: tuple[float, float], mu: float) -> Floats:
        """What to add to the target so that a step of `lengths` in M and Z ends closer to `mu`.

        It moves the eigenvalues of the product towards the bounds of `centred`.
        """
        F, root = self.F, self.root
        scaled = np.eye(F.shape[1]) + lengths[0] * (F @ step.M @ np.swapaxes(F, 1, 2))
        Z = np.swapaxes(root, 1, 2) @ (self.cone.Z + lengths[1] * step.Z) @ root
        w, Q = np.linalg.eigh(symmetric(scaled @ Z))
        Q = np.swapaxes(F, 1, 2) @ Q
        return np.asarray((Q * centred(w, mu)[:, None, :]) @ np.swapaxes(Q, 1, 2))

    def _product(self, dM: Floats, Z: Floats) -> Floats:
        return symmetric(self.P @ dM @ Z)


class TiltedLine(Line):
    """A tilted cone's complementarity."""

    @classmethod
    def at(cls, cone: Tilted) -> TiltedLine:
        """Linearise at a point: M is that of diag(t)^(-1/2) C at radius 1, scaled."""
        root = 1 / np.sqrt(cone.t)
        even = Linearised.at(Cone(cone.C * root[:, None], 1.0, cone.Z))
        scale = np.concatenate([root, np.ones(cone.C.shape[2])])
        return cls(cone, even.F * scale, even.root / scale[:, None])

    def operator(self) -> Floats:
        """Matrix (p q + p, p q + p) of `(dC, dt) -> ((P dM Z + Z dM P)_12, diag (P dM Z)_11)`."""
        _, p, q = self.cone.C.shape
        P, Z = self.P, self.cone.Z
        P11, P12, Z11, Z12 = P[0, :p, :p], P[0, :p, p:], Z[0, :p, :p], Z[0, :p, p:]
        whole = np.empty((p * q + p, p * q + p))
        whole[: p * q, : p * q] = _between(P, Z, p)[0]
        side = np.einsum("ik,il->ikl", P11, Z12) + np.einsum("il,ik->ikl", P12, Z11)
        whole[p * q :, : p * q] = side.reshape(p, p * q)
        whole[: p * q, p * q :] = whole[p * q :, : p * q].T
        whole[p * q :, p * q :] = P11 * Z11
        return whole


@dataclass(frozen=True, eq=False)
class Linearised(Line):
    """A cone's complementarity, with what its operator's inverse needs.

    Attributes
    ----------
    U, W : (b, p, p) and (b, q, q) arrays
        Singular vectors of C.
    """

    U: Floats
    W: Floats

    @classmethod
    def at(cls, cone: Cone) -> Linearised:
        """Linearise at a point: eigenvectors of M are pairs of singular vectors of C.

        Raises
        ------
        numpy.linalg.LinAlgError
            If rounding has left an M that is not positive definite.
        """
        p = cone.C.shape[1]
        U, s, W = np.linalg.svd(cone.C, full_matrices=True)
        W = np.swapaxes(W, 1, 2)
        basis, i = np.zeros_like(cone.Z), np.arange(s.shape[1])
        basis[:, :p, :p], basis[:, p:, p:] = U, W
        basis[:, :, i] *= math.sqrt(0.5)
        basis[:, :, p + i] *= math.sqrt(0.5)
        plus, minus = basis[:, :, i] + basis[:, :, p + i], basis[:, :, i] - basis[:, :, p + i]
        basis[:, :, i], basis[:, :, p + i] = plus, minus
        values = np.full(basis.shape[:2], cone.t)
        values[:, i], values[:, p + i] = cone.t + s, cone.t - s
        _require_positive(values)
        root = basis * np.sqrt(values)[:, None, :]
        return cls(cone, np.swapaxes(basis / np.sqrt(values)[:, None, :], 1, 2), root, U, W)

    def operator(self) -> Floats:
        """Matrices (b, p q, p q) of `dC -> (P dM Z + Z dM P)_12`, at fixed t."""
        return _between(self.P, self.cone.Z, self.cone.C.shape[1])

    def inverse(self) -> Floats:
        """Inverses of `operator`, made where the blocks of P are diagonal.

        Raises
        ------
        numpy.linalg.LinAlgError
            If rounding has left one that is not positive definite.
        """
        b, p, q = self.cone.C.shape
        basis = np.zeros_like(self.cone.Z)
        basis[:, :p, :p], basis[:, p:, p:] = self.U, self.W
        turned = self.F @ basis
        Z = symmetric(np.swapaxes(basis, 1, 2) @ self.cone.Z @ basis)
        whole = _inverse(_between(np.swapaxes(turned, 1, 2) @ turned, Z, p))
        # Back from the basis of singular vectors, an index at a time.
        U, W = self.U, self.W
        whole = U @ whole.reshape(b, p, -1)
        whole = W[:, None] @ whole.reshape(b, p, q, -1)
        whole = whole.reshape(b, -1, q) @ np.swapaxes(W, 1, 2)
        return np.asarray((U[:, None] @ whole.reshape(b, p * q, p, q)).reshape(b, p * q, p * q))

    def radial(self) -> tuple[Floats, float]:
        """Upper right of `P Z + Z P`, what dt adds to the operator, and the trace of P Z."""
        p = self.cone.C.shape[1]
        product = self.P @ self.cone.Z
        return (product + np.swapaxes(product, 1, 2))[:, :p, p:], float(
            np.trace(product, axis1=1, axis2=2).sum()
        )


@dataclass(frozen=True, eq=False)
class EntryLine:
    """What `Linearised` is, for blocks of one entry: all their matrices have the same eigenvectors.

    Attributes
    ----------
    M, Z : (b, 2) arrays
        Eigenvalues at (1, 1) and at (1, -1).
    """

    M: Floats
    Z: Floats

    @classmethod
    def at(cls, cone: Cone) -> EntryLine:
        """Linearise at a point.

        Raises
        ------
        numpy.linalg.LinAlgError
            If rounding has left one of its matrices that is not positive definite.
        """
        M, Z = _eigenvalues(cone.M), _eigenvalues(cone.Z)
        _require_positive(np.minimum(M, Z))
        return cls(M, Z)

    @property
    def P(self) -> Floats:
        """Inverses of M."""
        return _of_eigenvalues(1 / self.M)

    def multiplier_step(self, dM: Floats, target: Floats) -> Floats:
        """Step dZ of the multiplier at a step dM."""
        return target - _of_eigenvalues(self.Z + _eigenvalues(dM) * self.Z / self.M)

    def pushed(self, dC: Floats) -> Floats:
        """The operator at dC."""
        return self.operator() * dC

    def correction(self, step: Cone) -> Floats:
        """Second-order term of Mehrotra's corrector at a predicted step."""
        return _of_eigenvalues(_eigenvalues(step.M) * _eigenvalues(step.Z) / self.M)

    def longest(self, step: Cone) -> tuple[float, float]:
        """Longest steps that leave M, and Z, positive semidefinite."""
        of_M = longest_step(self.M.ravel(), _eigenvalues(step.M).ravel())
        return of_M, longest_step(self.Z.ravel(), _eigenvalues(step.Z).ravel())

    def centring(self, step: Cone, lengths: tuple[float, float], mu: float) -> Floats:
        """What to add to the target so that a step of `lengths` in M and Z ends closer to `mu`."""
        M = self.M + lengths[0] * _eigenvalues(step.M)
        Z = self.Z + lengths[1] * _eigenvalues(step.Z)
        return _of_eigenvalues(centred(M * Z, mu) / self.M)

    def operator(self) -> Floats:
        """Numbers (b, 1, 1) by which dC is multiplied, at fixed t."""
        return np.asarray((self.Z / self.M).sum(axis=1)[:, None, None])

    def inverse(self) -> Floats:
        """Inverses of `operator`."""
        return np.asarray(1 / self.operator())

    def radial(self) -> tuple[Floats, float]:
        """What dt adds to the operator, and the trace of P Z."""
        product = self.Z / self.M
        return (product[:, 0] - product[:, 1])[:, None, None], float(product.sum())


def linearised(cone: Cone) -> Linearised | EntryLine:
    """Linearise the complementarity of a cone at a point."""
    return EntryLine.at(cone) if cone.C.shape[1:] == (1, 1) else Linearised.at(cone)


def _require_positive(values: Floats) -> None:
    """Raise unless all values are positive."""
    if not np.all(values > 0):
        raise np.linalg.LinAlgError("an eigenvalue is not positive")


def _eigenvalues(matrices: Floats) -> Floats:
    """Eigenvalues (b, 2) of [[a, c], [c, a]]."""
    a, c = matrices[:, 0, 0], matrices[:, 0, 1]
    return np.stack([a + c, a - c], axis=1)


def _of_eigenvalues(values: Floats) -> Floats:
    """Matrices (b, 2, 2) of eigenvalues at (1, 1) and (1, -1)."""
    mean, half = (values[:, 0] + values[:, 1]) / 2, (values[:, 0] - values[:, 1]) / 2
    return np.stack([mean, half, half, mean], axis=1).reshape(-1, 2, 2)


# Products of s and lam, or of M and Z, are centred within these shares of their goal.
LEAST, MOST = 0.1, 3.0


def centred(products: Floats, mu: float) -> Floats:
    """By how much products are to move to be within bounds about `mu`; never far down."""
    moved = np.clip(products, LEAST * mu, MOST * mu) - products
    return np.asarray(np.maximum(moved, -MOST * mu))


def longest_in_cone(F: Floats, step: Floats) -> float:
    """Longest step that leaves matrices with F M F' = I positive semidefinite."""
    scaled = symmetric(F @ step @ np.swapaxes(F, 1, 2))
    least = float(np.linalg.eigvalsh(scaled).min())
    return math.inf if least >= 0 else -1 / least


def _between(P: Floats, Z: Floats, p: int) -> Floats:
    """Matrices (b, p q, p q) of `dC -> (P dM Z + Z dM P)_12`, dC in the upper right of dM."""
    P11, P12, P22 = P[:, :p, :p], P[:, :p, p:], P[:, p:, p:]
    Z11, Z12, Z22 = Z[:, :p, :p], Z[:, :p, p:], Z[:, p:, p:]
    b, _, q = P12.shape
    whole = np.empty((b, p, q, p, q))
    for i in range(p):
        for k in range(i + 1):
            block = P11[:, i, k, None, None] * Z22
            block += Z11[:, i, k, None, None] * P22
            block += Z12[:, k, :, None] * P12[:, i, None, :]
            block += P12[:, k, :, None] * Z12[:, i, None, :]
            whole[:, i, :, k] = block
            whole[:, k, :, i] = np.swapaxes(block, 1, 2)
    return whole.reshape(b, p * q, p * q)


def bordered(C: Floats, t: float) -> Floats:
    """Matrices [[t I, C], [C', t I]] (b, p + q, p + q)."""
    b, p, q = C.shape
    M = np.zeros((b, p + q, p + q))
    M[:, np.arange(p + q), np.arange(p + q)] = t
    M[:, :p, p:] = C
    M[:, p:, :p] = np.swapaxes(C, 1, 2)
    return M


def _inverse(matrices: Floats) -> Floats:
    """Inverses of symmetric positive definite matrices (b, n, n)."""
    diagonal = np.diagonal(matrices, axis1=1, axis2=2)
    if not np.all(diagonal > 0):
        raise np.linalg.LinAlgError("a diagonal entry is not positive")
    scale = 1 / np.sqrt(diagonal)
    matrices *= scale[:, :, None]
    matrices *= scale[:, None, :]
    if matrices.shape[1] < FEW:
        inverse = symmetric(np.asarray(np.linalg.inv(matrices), dtype=float))
    else:
        inverse = np.stack([_one_inverse(one) for one in matrices])
    inverse *= scale[:, :, None]
    inverse *= scale[:, None, :]
    return inverse


# Rows of matrices that are better inverted all at once.
FEW = 32


def _one_inverse(matrix: Floats) -> Floats:
    """Inverse of a symmetric matrix, by Cholesky unless rounding has left it indefinite."""
    factor, failed = lapack.dpotrf(matrix.T, lower=1)
    if failed == 0:
        return mirror_lower(lapack.dpotri(factor, lower=1, overwrite_c=1)[0])
    return symmetric(np.asarray(np.linalg.inv(matrix), dtype=float))
