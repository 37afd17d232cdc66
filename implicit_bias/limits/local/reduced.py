"""The Hessian of the Lagrangian on the null space of the active gradients, as a dense matrix."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from scipy.linalg import eigh
from torch import Tensor

# Singular values of the active gradients below this share of the largest: dependent constraints.
_DEPENDENT = 1e-10
# Eigenvalues of the reduced Hessian, which has no unit and is 1 on weights that no score depends
# on, count as zero up to here. Rounding leaves 1e-15 to 1e-13 at a residual of 1e-14.
ZERO_MODE = 1e-7
# A solution longer than its right-hand side by this factor has met a mode that is nearly zero.
_AMPLIFIED = 1e4
# Eigenvalues asked for at first.
_LOWEST = 10


@dataclass(frozen=True, eq=False)
class ActiveGradients:
    """Rows A (a, P) of active constraints, ``A = U diag(s) V'`` without dependent parts.

    Attributes
    ----------
    U : (a, r)
    s : (r,)
    V : (P, r)
    """

    U: Tensor
    s: Tensor
    V: Tensor

    @classmethod
    def of(cls, rows: Tensor) -> ActiveGradients:
        """Factorise rows (a, P)."""
        U, s, Vt = torch.linalg.svd(rows, full_matrices=False)
        kept = s > _DEPENDENT * s[:1].clamp(min=torch.finfo(s.dtype).tiny)
        return cls(U[:, kept], s[kept], Vt[kept].T)

    @property
    def dependent(self) -> bool:
        """True where an active constraint follows from the others to first order."""
        return len(self.s) < len(self.U)

    def project(self, d: Tensor) -> Tensor:
        """Return the part of a direction (P,) that changes no active margin."""
        return d - self.V @ (self.V.T @ d)

    def restoring(self, change: Tensor) -> Tensor:
        """Return the shortest step (P,) that changes the active margins by `change` (a,)."""
        return self.V @ ((self.U.T @ change) / self.s)

    def multipliers(self, force: Tensor) -> Tensor:
        """Return the shortest lam (a,) with ``A' lam = force`` up to the null space."""
        return self.U @ ((self.V.T @ force) / self.s)


@dataclass(frozen=True, eq=False)
class ReducedHessian:
    r"""``Q H Q`` on the null space of the active gradients, Q its projection.

    Attributes
    ----------
    matrix : (P, P)
        ``Q H Q + s V V'``: beside the eigenvalues wanted it has s, above all of them, r times.
    n_weights, n_constraints : int
        P and r; the null space has dimension P - r.
    """

    matrix: Tensor
    n_weights: int
    n_constraints: int

    @classmethod
    def of(cls, hessian: Tensor, active: ActiveGradients) -> ReducedHessian:
        """Restrict a symmetric matrix (P, P) to directions that change no active margin."""
        V = active.V
        HV = hessian @ V
        inner = V.T @ HV
        # The largest row sum bounds every eigenvalue.
        above = 2 * float(hessian.abs().sum(1).max()) + 1
        inner.diagonal().add_(above)
        matrix = hessian - V @ HV.T - HV @ V.T + V @ inner @ V.T
        return cls((matrix + matrix.T) / 2, len(hessian), V.shape[1])

    @property
    def dimension(self) -> int:
        """Dimension P - r of the null space."""
        return self.n_weights - self.n_constraints

    def solve(self, right: Tensor) -> Tensor:
        """Return ``matrix^+ right`` (P,), without the modes of (nearly) zero eigenvalues."""
        solution, info = torch.linalg.solve_ex(self.matrix, right)
        if int(info) == 0 and float(solution.norm()) <= _AMPLIFIED * float(right.norm()):
            answer: Tensor = solution
            return answer
        values, vectors = torch.linalg.eigh(self.matrix)
        inverse = torch.where(values.abs() > ZERO_MODE, 1 / values, 0.0)
        inverted: Tensor = vectors @ (inverse * (vectors.T @ right))
        return inverted

    def lowest(self) -> tuple[Tensor, Tensor]:
        """Return the lowest eigenvalues (k,), all those up to zero, and eigenvectors (P, k)."""
        count = min(_LOWEST, self.dimension)
        while True:
            if count == 0:
                return self.matrix.new_zeros(0), self.matrix.new_zeros(self.n_weights, 0)
            found = eigh(self.matrix.numpy(), subset_by_index=(0, count - 1))
            values, vectors = (torch.from_numpy(array) for array in found)
            if count == self.dimension or float(values[-1]) > ZERO_MODE:
                return values, vectors
            count = min(4 * count, self.dimension)
