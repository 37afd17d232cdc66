"""Certificates of fits, recomputed from coefficients and multipliers."""

from __future__ import annotations

from dataclasses import dataclass

from ..._support.doors import result


@result()
@dataclass(frozen=True)
class FitLimitCertificate:
    """Bounds of the optimum, recomputed from coefficients and multipliers in plain arithmetic.

    Attributes
    ----------
    objective : float
        Mean loss and regulariser of the coefficients; their norm, for interpolation.
    dual_objective : float
        Lower bound of what any coefficients have.
    gap : float
        ``(objective - dual_objective) / objective``; for the squared loss in a ball, where the
        optimum may be 0, over half the mean square of the targets. 0 for 0 / 0; infinite for the
        other losses in a ball where they are below 1e-290, as numbers have few digits there.
    misfit : float
        ``||scores - y|| / ||y||`` of interpolation; 0 for the others.
    """

    objective: float
    dual_objective: float
    gap: float
    misfit: float
