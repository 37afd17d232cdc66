"""The limit of gated deep linear networks under squared loss, with its certificate."""

from __future__ import annotations

from typing import Self

import numpy as np

from ..._support.doors import door
from ..._support.solve import (
    DenseArray,
    FitCertificate,
    LeastSquaresSolution,
    Status,
    array_namespace,
)
from ...limits.predictors import GateColumns, Predictor
from ...limits.result import Result, size_of


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
