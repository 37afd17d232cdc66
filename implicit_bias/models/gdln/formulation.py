"""Gated OLS: the limit of gated deep linear networks of one hidden layer under squared loss."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np

from ..._support.doors import door
from ..._support.kinds import any_number
from ..._support.solve import (
    Array,
    ArrayLike,
    DenseArray,
    FitCertificate,
    GatedDesign,
    LeastSquaresProgram,
    LeastSquaresSolution,
    MomentLeastSquares,
    SampledLeastSquares,
    Status,
    array_namespace,
    as_float64,
    require_real,
    solve_least_squares,
)
from ...limits.formulation import real_data
from ...limits.literal import LiteralProgram, constant, cvxpy_module
from ...limits.predictors import GateColumns, Predictor
from ...limits.result import Result, size_of

if TYPE_CHECKING:
    import cvxpy


class GatedOLS(Result):
    """The minimum-norm ordinary least-squares solution on gated inputs, with its certificate.

    Attributes
    ----------
    zeta : (K, D) array
        Coefficients `A^+ b`: `f(x) = sum_k g_k(x) <zeta[k], x>`.
    loss : float
        `1/2 <(y - f)^2>`; NaN from moments without `<y^2>`.
    rank : int
        Rank of A.
    rcond : float
        Eigenvalues of A at or below this share of the largest were taken for zero.
    condition : float
        Largest over smallest eigenvalue that counts.
    status : Status
        Whether the certificate holds to `tol`, with advice where it does not.
    certificate : FitCertificate
        Stationarity and distance from minimum norm, recomputed from the arrays.
    tol, seconds : float
        Tolerance of the status; wall-clock time of the solve.

    Examples
    --------
    >>> X, y = np.array([[1.0], [2.0], [-1.0]]), np.array([1.0, 2.0, 3.0])
    >>> limit = ib.solve_gated_ols(X, y, np.array([[1, 0], [1, 0], [0, 1]]))
    >>> limit.status.name, limit.rank, limit.predictor([[2.0]], [[1, 0]]).round(9).tolist()
    ('SOLVED', 2, [2.0])
    """

    ADVICE = LeastSquaresSolution.ADVICE
    RECORD = ("n_units", "unit_norms")
    BRIEF = (
        "{status.name}, coefficients {zeta.shape[0]} x {zeta.shape[1]}, loss {loss:.6g}\n"
        "  rank {rank} of {n_weights} (rcond {rcond:.2g}), stationarity "
        "{certificate.stationarity:.2g}, share in the null space {certificate.null_share:.2g} "
        "(tol {tol:.2g}), {seconds:.3g} s"
    )

    zeta: DenseArray
    loss: float
    rank: int
    rcond: float
    condition: float
    status: Status
    certificate: FitCertificate
    tol: float
    seconds: float

    @classmethod
    @door()
    def from_solution(cls, solution: LeastSquaresSolution) -> Self:
        """Return the limit that a solution of the least-squares program states."""
        return cls.read(solution, solution.spectrum, zeta=solution.coefficients)

    n_units = size_of("zeta", "Number of units.")

    @property
    def n_weights(self) -> int:
        """Number of coefficients."""
        return int(np.prod(self.zeta.shape))

    @property
    def weights(self) -> DenseArray:
        """(K, D) weights `w = K A^+ b` of the network `f = 1/K sum_k g_k <w_k, x>`.

        Gradient flow from w(0) converges to these plus the part of w(0) in the null space of A;
        `gated_flow` returns the sum.
        """
        return int(self.zeta.shape[0]) * self.zeta

    @property
    def unit_norms(self) -> DenseArray:
        """(K,) norms `||zeta[k]||`."""
        xp = array_namespace(self.zeta)
        found: DenseArray = xp.sqrt(xp.sum(self.zeta * self.zeta, axis=1))
        return found

    @property
    def predictor(self) -> Predictor:
        """The limit as a function of new inputs and gates (n, K), any real numbers."""
        return Predictor(self.zeta, GateColumns(int(self.zeta.shape[0]), binary=False))

    def _fault(self) -> str:
        finite = self.zeta.ndim == 2 and np.all(np.isfinite(self.zeta))
        return "" if finite else "`zeta` is no finite matrix"


@dataclass(frozen=True)
class GatedLeastSquares(LiteralProgram):
    """Gated least squares: the mean squared error of a gated linear network, minimised in zeta.

        minimise  1/2 <(y - sum_k g_k(x) <zeta[k], x>)^2>

    If there are several minimisers, `solve_gated_ols` returns the one of least norm, which is the
    limit of gradient descent from zero; a solver of cvxpy may return any.

    References
    ----------
    Notes on gated deep linear networks, section 3.3, whose weights lack the factor K of
    `w = K zeta`.
    """

    name: ClassVar[str] = "gated least squares"

    @door()
    def program(self, X: Array, y: Array, gates: Array) -> SampledLeastSquares:
        """State the program in the form that the least-squares solver takes.

        Parameters
        ----------
        X : (n, D) real array
            Inputs; NumPy array or torch tensor.
        y : (n,) real array
            Targets. There is no bias: {0, 1} and {-1, 1} give different predictors.
        gates : (n, K) array
            Gate of every sample in every unit: booleans, 0 and 1, or any real numbers.

        Returns
        -------
        SampledLeastSquares
            Its coefficients are zeta (K, D).

        Raises
        ------
        TypeError, ValueError
            If shapes disagree, or values are not real and finite.
        """
        X, y = real_data(X, y)
        require_real("gates", gates)
        xp, Z = array_namespace(X), as_float64(gates, like=X)
        columns = xp.arange(int(Z.shape[1]) if Z.ndim == 2 else 0, device=X.device)
        return SampledLeastSquares(design=GatedDesign(X=X, Z=Z, group=columns), y=y)

    @door(second_moment=any_number)
    def program_of_moments(
        self, A: Array, b: Array, n_units: int, *, second_moment: float = math.nan
    ) -> MomentLeastSquares:
        """State the same program for a population, from moments of `(g_1(x) x, ..., g_K(x) x)`.

        Parameters
        ----------
        A : (K D, K D) array
            `<xt xt^T>` for `xt = (g_1(x) x, ..., g_K(x) x)`, positive semidefinite; row k D + d is
            input d of unit k.
        b : (K D,) array
            `<xt y>`.
        n_units : int
            Number of units K.
        second_moment : float, optional
            `<y^2>`; without it the loss is NaN.

        Returns
        -------
        MomentLeastSquares
            Its coefficients are zeta (K, D).

        Raises
        ------
        ValueError
            If shapes disagree, values are not finite, or A is not symmetric.
        """
        A = as_float64(A)
        return MomentLeastSquares(
            A=A, b=as_float64(b, like=A), n_columns=n_units, second_moment=float(second_moment)
        )

    @door()
    def literal(self, X: Array, y: Array, gates: Array) -> cvxpy.Problem:
        """State the program; its one variable is zeta (K, D), its optimum the least loss.

        Parameters
        ----------
        X, y, gates : (n, D), (n,) and (n, K) real arrays
            Inputs, targets and gates.

        Returns
        -------
        cvxpy.Problem
            Not yet solved.

        Raises
        ------
        TypeError, ValueError
            If shapes disagree, or values are not real and finite.
        MissingExtra
            If cvxpy is not installed.

        Examples
        --------
        >>> program = ib.programs.GatedLeastSquares()
        >>> X, y, gates = np.array([[1.0], [1.0]]), np.array([1.0, 3.0]), np.ones((2, 1))
        >>> round(float(program.literal(X, y, gates).solve(solver="CLARABEL")), 6)
        0.5
        """
        cp = cvxpy_module()
        program = self.program(X, y, gates)
        inputs, g = constant(program.design.X, "X"), constant(program.design.Z, "g")
        zeta = cp.Variable(program.shape, name="zeta")
        scores = cp.sum(cp.multiply(g, inputs @ zeta.T), axis=1)  # sum_k g_k(x) <zeta[k], x>
        loss = cp.sum_squares(constant(program.y, "y") - scores) / (2 * program.n_samples)
        return cp.Problem(cp.Minimize(loss))


@door()
def solve_gated_ols(
    X: ArrayLike, y: ArrayLike, gates: ArrayLike, *, rcond: float | None = None, tol: float = 1e-8
) -> GatedOLS:
    """Solve for the limit of gradient descent from zero on a gated deep linear network.

    The loss is the mean squared error, the network `f = 1/K sum_k g_k(x) <w_k, x>`:

        zeta = A^+ b,   w = K zeta,    A = <xt xt^T>,  b = <xt y>,  xt = (g_1(x) x, ...)

    Parameters
    ----------
    X : (n, D) real array
        Inputs; NumPy array or torch tensor.
    y : (n,) real array
        Targets. There is no bias: {0, 1} and {-1, 1} give different predictors.
    gates : (n, K) array
        Gate of every sample in every unit: booleans, 0 and 1, or any real numbers.
    rcond : float, optional
        Eigenvalues of A at or below this share of the largest count as zero, in [0, 1); by
        default `(max(n, K D) 2^-52)^2`, which is `numpy.linalg.lstsq`'s cut-off of singular
        values.
    tol : float
        Tolerance of the certificate: relative residual of the normal equations, and share of the
        coefficients in the null space of A; in (0, 1).

    Returns
    -------
    GatedOLS
        Coefficients `zeta` (K, D) and weights `weights` (K, D) with their certificate; call
        `.require()` to raise unless the status is `SOLVED`.
        `GatedLeastSquares.literal` states the program in cvxpy.

    Raises
    ------
    TypeError, ValueError
        If an argument is out of range, shapes disagree, or values are not real and finite.

    References
    ----------
    Notes on gated deep linear networks, section 3.3, whose equations (8) to (11) lack
    the factor K of w and the singular case.

    Examples
    --------
    >>> X, y = np.array([[1.0], [2.0], [-1.0]]), np.array([1.0, 2.0, 3.0])
    >>> gates = np.array([[1, 0], [1, 0], [0, 1]])
    >>> ib.solve_gated_ols(X, y, gates).weights.round(12).ravel().tolist()
    [2.0, -6.0]
    """
    return _solve(GatedLeastSquares().program(X, y, gates), rcond, tol)


@door(second_moment=any_number)
def solve_gated_ols_from_moments(
    A: ArrayLike,
    b: ArrayLike,
    n_units: int,
    *,
    second_moment: float = math.nan,
    rcond: float | None = None,
    tol: float = 1e-8,
) -> GatedOLS:
    """Solve gated least squares for a population, given by its moments.

    Parameters
    ----------
    A : (K D, K D) array
        `<xt xt^T>` for `xt = (g_1(x) x, ..., g_K(x) x)`; row k D + d is input d of unit k.
    b : (K D,) array
        `<xt y>`.
    n_units : int
        Number of units K.
    second_moment : float, optional
        `<y^2>`; without it the loss is NaN.
    rcond : float, optional
        Eigenvalues of A at or below this share of the largest count as zero; by default
        `K D 2^-52`, the rounding of the eigenvalues.
    tol : float
        Tolerance of the certificate, in (0, 1).

    Returns
    -------
    GatedOLS
        Its status is INCONSISTENT if b lies outside the range of A: no distribution has such
        moments.

    Raises
    ------
    ValueError
        If shapes disagree, values are not finite, or A is not symmetric positive semidefinite.
    """
    program = GatedLeastSquares().program_of_moments(A, b, n_units, second_moment=second_moment)
    return _solve(program, rcond, tol)


def _solve(program: LeastSquaresProgram, rcond: float | None, tol: float) -> GatedOLS:
    return GatedOLS.from_solution(solve_least_squares(program, rcond=rcond, tol=tol))
