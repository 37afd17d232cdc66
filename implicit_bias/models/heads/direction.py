"""The joint direction of a head on hard labels alone: the multi-class hard margin."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ..._support.solve import Settings, Status, solve
from ...data.arrays import Floats
from ...limits.exact.joint_margin import JointMargin
from .limit import HeadCertificate, HeadLimit


def direction_limit(
    features: Floats, classes: NDArray[np.int64], n_classes: int, tol: float
) -> HeadLimit | None:
    """Solve for the joint direction; None if it is proved that no weights separate the classes."""
    program = JointMargin(n_classes).program(features, classes)
    solution = solve(program, settings=Settings(tol=tol))
    if solution.status is Status.NOT_SEPARABLE:
        return None
    gap = float(solution.certificate.gap)
    separable = solution.status in (Status.SOLVED, Status.INACCURATE)
    return HeadLimit(
        zeta=np.asarray(solution.primal),
        kind="direction",
        rank=int(np.linalg.matrix_rank(features)),
        excess=0.0,
        status=solution.status if separable else Status.NO_MINIMISER,
        certificate=HeadCertificate(
            error=math.sqrt(gap * (2 + gap)), gradient=0.0, curvature=1.0, gap=gap
        ),
        tol=tol,
    )
