"""The limit of gated deep linear networks under squared loss, with its certificate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from ..._doors import door, result
from ..._solve import (
    DenseArray,
    FitCertificate,
    LeastSquaresSolution,
    Status,
    array_namespace,
    to_numpy,
)
from ...limits.predictors import GateColumns, Predictor
from ...limits.result import Result

__all__ = ["GatedOLS"]


@result()
@dataclass(frozen=True, eq=False, repr=False)
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

    ADVICE: ClassVar = LeastSquaresSolution.ADVICE

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
        return cls(
            zeta=solution.coefficients,
            loss=solution.loss,
            rank=solution.spectrum.rank,
            rcond=solution.spectrum.rcond,
            condition=solution.spectrum.condition,
            status=solution.status,
            certificate=solution.certificate,
            tol=solution.tol,
            seconds=solution.seconds,
        )

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

    def _summary(self) -> dict[str, Any]:
        norms = to_numpy(self.unit_norms).tolist()
        return {"n_units": int(self.zeta.shape[0]), "unit_norms": norms}

    def _fault(self) -> str:
        finite = self.zeta.ndim == 2 and np.all(np.isfinite(self.zeta))
        return "" if finite else "`zeta` is no finite matrix"

    def __repr__(self) -> str:
        n_units, n_inputs = (int(size) for size in self.zeta.shape)
        return (
            f"GatedOLS({self.status.name}, coefficients {n_units} x {n_inputs}, loss "
            f"{self.loss:.6g}\n  rank {self.rank} of {n_units * n_inputs} (rcond {self.rcond:.2g})"
            f", stationarity {self.certificate.stationarity:.2g}, share in the null space "
            f"{self.certificate.null_share:.2g} (tol {self.tol:.2g}), {self.seconds:.3g} s)"
        )
