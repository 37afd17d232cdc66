"""The limit of a linear head on frozen features, with its certificate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..._support.solve import Status
from ...data.arrays import Floats
from ...limits.predictors import LinearPredictor
from ...limits.result import Result


@dataclass(frozen=True)
class HeadCertificate:
    r"""Certificate of a head's limit, recomputed from its coefficients.

    Attributes
    ----------
    error : float
        A proved bound of the Frobenius distance of `zeta` from the limit, relative to their
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


class HeadLimit(Result):
    """The limit of gradient descent from zero on a linear head over frozen features.

    Attributes
    ----------
    zeta : (K, D) array
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
    status : Status
    certificate : HeadCertificate
    tol : float
        To which points are judged by `error`, and directions by `gap`.

    Examples
    --------
    >>> (head,) = ib.heads.solve_exit_heads([np.eye(2)], [0, 1], share=1)
    >>> head.kind, head.zeta.round(6).tolist()
    ('direction', [[0.5, -0.5], [-0.5, 0.5]])
    """

    ADVICE: ClassVar = {
        Status.SOLVED: "solved: no weights in the span are farther from the limit than the error "
        "bound",
        Status.INACCURATE: "inaccurate: the bound of the error, or the gap of the margin program, "
        "is above the tolerance. Raise `tol`, or scale the features",
    }
    BRIEF = (
        "{status.name}, {kind}, weights {zeta.shape[0]} x {zeta.shape[1]}, rank {rank}, error at "
        "most {certificate.error:.2g} (tol {tol:.2g})"
    )

    zeta: Floats
    kind: str
    rank: int
    excess: float
    status: Status
    certificate: HeadCertificate
    tol: float

    @property
    def predictor(self) -> LinearPredictor:
        """Logits (m, K) of features (m, D) of this exit; at margin 1 for a direction."""
        return LinearPredictor(self.zeta)

    def _fault(self) -> str:
        if self.zeta.ndim == 2 and np.isfinite(self.zeta).all():
            return ""
        return f"its `zeta` is no finite (K, D) array: shape {self.zeta.shape}"
