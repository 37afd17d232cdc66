"""The limit of gated deep linear networks under squared loss, with its certificate."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from ..._saved import Kind, filled, read_saved, write_saved
from ..._shown import Shown, record_rows
from ..._solve import (
    Array,
    FitCertificate,
    FitNotCertified,
    FitStatus,
    LeastSquaresSolution,
    array_namespace,
    to_numpy,
)
from ...limits.certified import array_place, placed
from ...limits.predictors import GateColumns, Predictor

__all__ = ["GatedOLS"]

_SCALARS = ("loss", "rank", "rcond", "condition", "tol", "seconds")


@dataclass(frozen=True, eq=False, repr=False)
class GatedOLS(Shown):
    """The minimum-norm OLS solution on gated inputs, with its certificate.

    Attributes
    ----------
    zeta : (K, D) array
        Effective predictors `A^+ b`: `f(x) = sum_k g_k(x) <zeta[k], x>`.
    loss : float
        `1/2 <(y - f)^2>`; NaN from moments without `<y^2>`.
    rank : int
        Rank of A, with eigenvalues at or below `rcond` times the largest taken for zero.
    rcond : float
    condition : float
        Largest over smallest eigenvalue that counts.
    status : FitStatus
    certificate : FitCertificate
        Stationarity and distance from minimum norm, recomputed from the arrays.
    tol, seconds : float
        To what the status was judged; wall-clock time of the solve.
    """

    zeta: Array
    loss: float
    rank: int
    rcond: float
    condition: float
    status: FitStatus
    certificate: FitCertificate
    tol: float
    seconds: float

    @classmethod
    def from_solution(cls, solution: LeastSquaresSolution) -> Self:
        """Read a least-squares solution as a limit."""
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
    def weights(self) -> Array:
        """(K, D) weights `w = K A^+ b` of the network `f = 1/K sum_k g_k <w_k, x>`.

        Gradient flow from w(0) ends there plus the part of w(0) in the null space of A:
        `gated_flow` has that.
        """
        return int(self.zeta.shape[0]) * self.zeta

    @property
    def unit_norms(self) -> Array:
        """(K,) norms `||zeta[k]||`."""
        xp = array_namespace(self.zeta)
        return xp.sqrt(xp.sum(self.zeta * self.zeta, axis=1))

    @property
    def predictor(self) -> Predictor:
        """The limit as a function of new inputs and gates (n, K), any real numbers."""
        return Predictor(self.zeta, GateColumns(int(self.zeta.shape[0]), binary=False))

    def require(self) -> Self:
        """This limit if it is `SOLVED`; raises `FitNotCertified` with the advice otherwise."""
        if self.status is not FitStatus.SOLVED:
            raise FitNotCertified(self.status, self.certificate, self.tol)
        return self

    def to_dict(self) -> dict[str, Any]:
        """Everything but the coefficients, ready for JSON (NaN stays a float)."""
        return {
            "status": self.status.name,
            "advice": self.status.advice,
            **self.certificate.to_dict(),
            "loss": self.loss,
            "rank": self.rank,
            "rcond": self.rcond,
            "condition": self.condition,
            "tol": self.tol,
            "seconds": self.seconds,
            "n_units": int(self.zeta.shape[0]),
            "unit_norms": to_numpy(self.unit_norms).tolist(),
        }

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write coefficients and results to one safetensors file; `load` reads it back.

        Raises
        ------
        OSError
            If the file cannot be written.
        """
        record = {
            "status": self.status.name,
            "certificate": self.certificate.to_dict(),
            "place": array_place(self.zeta),
            **{name: getattr(self, name) for name in _SCALARS},
        }
        write_saved(path, Kind.of(type(self)), {"zeta": to_numpy(self.zeta)}, record)

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, device: str | None = None) -> Self:
        """Read what `save` wrote; `device` as in `Limit.load`.

        Raises
        ------
        FileNotFoundError
            If there is no such file.
        ValueError
            If the file is not a saved limit of this class, whole and unchanged, or there is no
            such device.
        """
        kind = Kind.of(cls)
        arrays, record = read_saved(path, kind)
        with kind.complete(path):
            made = {
                "status": FitStatus[record["status"]],
                "certificate": FitCertificate(**filled(FitCertificate, record["certificate"])),
            }
            limit = cls(**filled(cls, arrays | record | made))
            place = record["place"] if device == "saved" else device
        if limit.zeta.ndim != 2 or not np.all(np.isfinite(limit.zeta)):
            raise kind.refused(path, "`zeta` is no finite matrix")
        return replace(limit, zeta=placed(limit.zeta, place))

    def _shown_rows(self) -> list[tuple[str, str]]:
        return record_rows(self.to_dict())

    def __repr__(self) -> str:
        n_units, n_inputs = (int(size) for size in self.zeta.shape)
        return (
            f"GatedOLS({self.status.name}, coefficients {n_units} x {n_inputs}, loss "
            f"{self.loss:.6g}\n  rank {self.rank} of {n_units * n_inputs} (rcond {self.rcond:.2g})"
            f", stationarity {self.certificate.stationarity:.2g}, share in the null space "
            f"{self.certificate.null_share:.2g} (tol {self.tol:.2g}), {self.seconds:.3g} s)"
        )
