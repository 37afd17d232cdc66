"""Least-squares programs, from samples or from moments, and the spectrum that solves them."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ..numerics.arrays import Array, array_namespace, float_of
from ..numerics.checks import require_finite, require_gated_inputs, require_scale, require_shape
from .design import GatedDesign

EPS = 2.0**-52


@dataclass(frozen=True, eq=False)
class Spectrum:
    """Spectrum of the matrix A of a quadratic on its numerical range, with its minimiser.

        A = basis diag(eigenvalues) basis^T,      A^+ b = basis @ minimiser

    Attributes
    ----------
    eigenvalues : (r,) array
        Positive.
    basis : (P, r) array
        Orthonormal columns.
    minimiser : (r,) array
        Minimiser of least norm in this basis, `basis^T A^+ b`.
    dual : array
        Dual vector that the program's `image` maps to `A^+ b`.
    rcond : float
        Share of the largest eigenvalue at or below which eigenvalues were taken for zero.
    """

    eigenvalues: Array
    basis: Array
    minimiser: Array
    dual: Array
    rcond: float

    @property
    def rank(self) -> int:
        """Number of eigenvalues that count as positive."""
        return int(self.eigenvalues.shape[0])

    @property
    def condition(self) -> float:
        """Condition number on the range, largest over smallest eigenvalue; 1 of an empty range."""
        if self.rank == 0:
            return 1.0
        xp = array_namespace(self.eigenvalues)
        return float_of(xp.max(self.eigenvalues)) / float_of(xp.min(self.eigenvalues))


@dataclass(frozen=True, eq=False)
class SampledLeastSquares:
    """Mean squared error of a gated design over samples.

        minimise  1/2 mean_n (y[n] - sum_j Z[n, j] <X[n], V[j]>)^2

    so that `A = mean xt xt^T`, `b = mean xt y` with the stacked inputs
    `xt[n] = (Z[n, 0] X[n], ..., Z[n, J-1] X[n])`. A is never formed: its eigenvalues are the
    squared singular values of the stacked design, which keeps twice the digits.

    Parameters
    ----------
    design : GatedDesign
        Inputs (n, D) and gate columns (n, J); its groups play no part.
    y : (n,) float64 array
        Targets.

    Raises
    ------
    ValueError
        If shapes disagree or an entry is not finite.
    """

    design: GatedDesign
    y: Array

    def __post_init__(self) -> None:
        X, Z, y = self.design.X, self.design.Z, self.y
        require_gated_inputs(X, Z, "gates", "K")
        require_shape("y", y, (self.n_samples,), "one target per row of X")
        for name, array in (("X", X), ("gates", Z), ("y", y)):
            require_finite(name, array)
            require_scale(name, array)

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers (J, D) of gate columns and inputs."""
        return int(self.design.Z.shape[1]), int(self.design.X.shape[1])

    @property
    def n_samples(self) -> int:
        """Number n of samples."""
        return self.design.n_samples

    def stacked(self) -> Array:
        """Stack the gated inputs to (n, J D); column j D + d is input d behind gate j."""
        X, Z = self.design.X, self.design.Z
        xp = array_namespace(X)
        return xp.reshape(Z[:, :, None] * X[:, None, :], (self.n_samples, math.prod(self.shape)))

    def product(self, V: Array) -> Array:
        """Product `A c` (J, D)."""
        return self.image(self.design.scores(V))

    def residual(self, V: Array) -> Array:
        """Residual `b - A c` (J, D), minus the gradient."""
        return self.image(self.y - self.design.scores(V))

    def loss(self, V: Array) -> float:
        """Objective at V."""
        xp = array_namespace(self.y)
        error = self.y - self.design.scores(V)
        return 0.5 * float_of(xp.mean(error * error))

    def image(self, dual: Array) -> Array:
        """Coefficients (J, D) `mean_n dual[n] xt[n]`, for a dual (n,)."""
        return self.design.adjoint(dual) / self.n_samples

    def trace(self) -> float:
        """Trace of A, an upper bound of its norm."""
        xp = array_namespace(self.y)
        X, Z = self.design.X, self.design.Z
        return float_of(xp.mean(xp.sum(X * X, axis=1) * xp.sum(Z * Z, axis=1)))

    def rhs_bound(self) -> float:
        """Upper bound `sqrt(trace(A) <y^2>)` of `||b||`."""
        xp = array_namespace(self.y)
        return math.sqrt(self.trace() * float_of(xp.mean(self.y * self.y)))

    def spectrum(self, rcond: float | None = None) -> Spectrum:
        """Spectrum of A from the singular values of the stacked design over sqrt(n).

        The default cut-off is `(max(n, J D) 2^-52)^2` on the eigenvalues: on the singular values
        that is what rounding leaves of a zero.
        """
        xp = array_namespace(self.y)
        rows = self.stacked()
        rcond = (max(rows.shape) * EPS) ** 2 if rcond is None else rcond
        n = self.n_samples
        U, s, Vt = xp.linalg.svd(rows, full_matrices=False)
        keep = s > math.sqrt(rcond) * s[0]
        U, s, Vt = U[:, keep], s[keep], Vt[keep, :]
        projected = U.T @ self.y
        return Spectrum(
            eigenvalues=s * s / n,
            basis=Vt.T,
            minimiser=projected / s,
            dual=n * (U @ (projected / (s * s))),
            rcond=rcond,
        )


@dataclass(frozen=True, eq=False)
class MomentLeastSquares:
    """Mean squared error of a gated design, given by population moments.

        minimise  1/2 <y^2> - b^T c + 1/2 c^T A c

    Parameters
    ----------
    A : (J D, J D) float64 array
        Second moments `<xt xt^T>` of the stacked inputs; row j D + d is input d behind gate j.
    b : (J D,) float64 array
        `<xt y>`.
    n_columns : int
        J.
    second_moment : float
        `<y^2>`; NaN if unknown, and then so is the loss.

    Raises
    ------
    ValueError
        If shapes disagree, an entry is not finite or A is not symmetric.
    """

    A: Array
    b: Array
    n_columns: int
    second_moment: float = math.nan

    def __post_init__(self) -> None:
        A, b = self.A, self.b
        xp = array_namespace(A)
        size = int(b.shape[0]) if b.ndim == 1 else 0
        if size == 0 or tuple(A.shape) != (size, size):
            raise ValueError(
                "`A` must have shape (K D, K D) and `b` shape (K D,), "
                f"got {tuple(A.shape)} and {tuple(b.shape)}"
            )
        if self.n_columns < 1 or size % self.n_columns:
            raise ValueError(f"`b` has {size} entries: not a multiple of {self.n_columns} units")
        require_finite("A", A)
        require_scale("A", A, power=2)
        require_finite("b", b)
        if self.second_moment < 0 or math.isinf(self.second_moment):
            raise ValueError(
                f"`second_moment` must be <y^2> >= 0, or NaN if unknown, got {self.second_moment}"
            )
        # Averages in float32 that were symmetric before rounding stay within this.
        if float_of(xp.max(xp.abs(A - A.T))) > 1e-6 * float_of(xp.max(xp.abs(A))):
            raise ValueError("`A` must be symmetric, as second moments are: pass (A + A.T) / 2")

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers (J, D) of gate columns and inputs."""
        return self.n_columns, int(self.b.shape[0]) // self.n_columns

    def product(self, V: Array) -> Array:
        """Product `A c` (J, D)."""
        return self._shaped(self.A @ array_namespace(V).reshape(V, (-1,)))

    def residual(self, V: Array) -> Array:
        """Residual `b - A c` (J, D), minus the gradient."""
        return self._shaped(self.b) - self.product(V)

    def loss(self, V: Array) -> float:
        """Objective at V; NaN where the second moment is unknown."""
        xp = array_namespace(self.b)
        return 0.5 * (
            self.second_moment - float_of(xp.sum(V * (self._shaped(self.b) + self.residual(V))))
        )

    def image(self, dual: Array) -> Array:
        """Coefficients `A dual` (J, D), for a dual (J, D)."""
        return self.product(dual)

    def trace(self) -> float:
        """Trace of A, an upper bound of its norm."""
        xp = array_namespace(self.b)
        return float_of(xp.sum(xp.linalg.diagonal(self.A)))

    def rhs_bound(self) -> float:
        """Upper bound `sqrt(trace(A) <y^2>)` of `||b||`; `||b||` itself if `<y^2>` is unknown."""
        if math.isfinite(self.second_moment):
            return math.sqrt(max(self.trace() * self.second_moment, 0.0))
        return float_of(array_namespace(self.b).linalg.vector_norm(self.b))

    def spectrum(self, rcond: float | None = None) -> Spectrum:
        """Spectrum of A by its eigenvalues; the default cut-off is `J D 2^-52`, their rounding.

        Raises
        ------
        ValueError
            If an eigenvalue is negative beyond the cut-off.
        """
        xp = array_namespace(self.b)
        rcond = math.prod(self.shape) * EPS if rcond is None else rcond
        eigenvalues, Q = xp.linalg.eigh((self.A + self.A.T) / 2)
        largest = float_of(xp.max(xp.abs(eigenvalues)))
        if float_of(xp.min(eigenvalues)) < -max(rcond, math.prod(self.shape) * EPS) * largest:
            raise ValueError(
                f"`A` must be positive semidefinite, its smallest eigenvalue is "
                f"{float_of(xp.min(eigenvalues)):.3g}: these are the moments of no inputs; raise "
                "`rcond` if the moments are only that accurate"
            )
        keep = eigenvalues > rcond * largest
        eigenvalues, Q = eigenvalues[keep], Q[:, keep]
        projected = Q.T @ self.b
        return Spectrum(
            eigenvalues=eigenvalues,
            basis=Q,
            minimiser=projected / eigenvalues,
            dual=self._shaped(Q @ (projected / (eigenvalues * eigenvalues))),
            rcond=rcond,
        )

    def _shaped(self, flat: Array) -> Array:
        # C order: entry j D + d of the flat vector is coefficient d of column j.
        return array_namespace(flat).reshape(flat, self.shape)


LeastSquaresProgram = SampledLeastSquares | MomentLeastSquares
"""Quadratic `1/2 c^T A c - b^T c + 1/2 <y^2>`, to be minimised over coefficients c (J, D)."""
