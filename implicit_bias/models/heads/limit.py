"""Where a head on frozen features ends, with what is proved of it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from enum import Enum
from typing import Any, Self

import numpy as np

from ..._saved import Kind, filled, read_saved, write_saved
from ..._shown import Shown, record_rows
from ...data.arrays import Floats

__all__ = ["HeadCertificate", "HeadLimit", "HeadNotCertified", "HeadStatus"]


class HeadStatus(Enum):
    """What a head's certificate proves; each member carries its advice."""

    SOLVED = "solved: no weights in the span are farther from the limit than the error bound"
    INACCURATE = (
        "inaccurate: the bound of the error, or the gap of the margin program, is above the "
        "tolerance. Raise `tol`, or scale the features"
    )
    NO_MINIMISER = (
        "no minimiser was found: on hard labels alone weights may grow without end along a "
        "direction that leaves some samples undecided. Give soft labels some weight (share < 1)"
    )

    @property
    def advice(self) -> str:
        """The sentence that explains the status and the way out."""
        return self.value


@dataclass(frozen=True)
class HeadCertificate:
    r"""What is proved, recomputed from the weights.

    Attributes
    ----------
    error : float
        A proved bound of the Frobenius distance of `weights` from the limit, relative to their
        norm where that is above 1. For a direction by the gap: sqrt(gap (2 + gap)).
    gradient : float
        Norm of the loss's gradient; 0 for a direction, which has none.
    curvature : float
        Lowest eigenvalue of the Hessian on centred weights in the span of the features: above 0
        the minimiser is unique. For a direction 1, the modulus of its program.
    gap : float
        Duality gap: of the loss, in nats, for points; relative, of the margin program, for a
        direction.
    """

    error: float
    gradient: float
    curvature: float
    gap: float


class HeadNotCertified(RuntimeError):
    """Raised by `require()`; holds the limit as `limit`."""

    def __init__(self, limit: HeadLimit) -> None:
        super().__init__(
            f"{limit.status.name}: {limit.status.advice}. [error {limit.certificate.error:.3g} for "
            f"tol {limit.tol:.3g}]"
        )
        self.limit = limit


@dataclass(frozen=True, eq=False, repr=False)
class HeadLimit(Shown):
    """The limit of gradient descent from zero on a linear head over frozen features.

    Attributes
    ----------
    weights : (K, D) array
        Columns have mean zero over classes, rows lie in the span of the features. A direction
        has smallest relative margin 1.
    kind : str
        "interpolant" (soft labels matched with the least norm), "minimiser" (unique), or
        "direction" (hard labels alone, separable: the norm grows without end).
    rank : int
        Of the features.
    excess : float
        Loss above the entropy of soft labels: 0 for an interpolant. For a direction 0, the
        infimum.
    status : HeadStatus
    certificate : HeadCertificate
    tol : float
        To which points are judged by `error`, and directions by `gap`.
    """

    weights: Floats
    kind: str
    rank: int
    excess: float
    status: HeadStatus
    certificate: HeadCertificate
    tol: float

    def __post_init__(self) -> None:
        self.weights.flags.writeable = False

    def logits(self, features: Any) -> Floats:
        """(m, K) logits of features (m, D) of this exit; at margin 1 for a direction."""
        phi = np.asarray(features, dtype=np.float64)
        if phi.ndim != 2 or phi.shape[1] != self.weights.shape[1]:
            raise ValueError(
                f"`features` must have shape (m, {self.weights.shape[1]}), got {phi.shape}"
            )
        return np.asarray(phi @ self.weights.T)

    def require(self) -> Self:
        """This limit if it is `SOLVED`; raises `HeadNotCertified` otherwise."""
        if self.status is not HeadStatus.SOLVED:
            raise HeadNotCertified(self)
        return self

    def to_dict(self) -> dict[str, Any]:
        """Everything but the weights, ready for JSON."""
        return {
            "kind": self.kind,
            "rank": self.rank,
            "excess": self.excess,
            "status": self.status.name,
            "advice": self.status.advice,
            "tol": self.tol,
            **vars(self.certificate),
        }

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write weights and certificate to one safetensors file; `load` reads it back.

        Raises
        ------
        OSError
            If the file cannot be written.
        """
        record = {
            "kind": self.kind,
            "rank": self.rank,
            "excess": self.excess,
            "status": self.status.name,
            "certificate": vars(self.certificate),
            "tol": self.tol,
        }
        write_saved(path, Kind.of(type(self)), {"weights": self.weights}, record)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read what `save` wrote.

        Raises
        ------
        FileNotFoundError
            If there is no such file.
        ValueError
            If the file is not a saved limit of this class, whole and unchanged.
        """
        kind = Kind.of(cls)
        arrays, record = read_saved(path, kind)
        with kind.complete(path):
            made = {
                "status": HeadStatus[record["status"]],
                "certificate": HeadCertificate(**filled(HeadCertificate, record["certificate"])),
            }
            limit = cls(**filled(cls, arrays | record | made))
        if limit.weights.ndim != 2 or not np.isfinite(limit.weights).all():
            shape = limit.weights.shape
            raise kind.refused(path, f"its weights are not finite (K, D), but {shape}")
        return limit

    def _shown_rows(self) -> list[tuple[str, str]]:
        return record_rows(self.to_dict())

    def __repr__(self) -> str:
        return (
            f"HeadLimit({self.status.name}, {self.kind}, weights {self.weights.shape[0]} x "
            f"{self.weights.shape[1]}, rank {self.rank}, error at most "
            f"{self.certificate.error:.2g} (tol {self.tol:.2g}))"
        )
