r"""The joint direction of a head on hard labels alone: the multi-class hard margin.

minimise ||W||_F   s.t.   <w_{y_n} - w_k, phi_n> >= 1    for every n and k != y_n
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..._extras import naming_extras
from ..._solve import GatedDesign, MaxMarginProgram, Settings, Solution, Status, solve
from ...data.arrays import Floats
from .limit import HeadCertificate, HeadLimit

if TYPE_CHECKING:
    import cvxpy

__all__ = ["direction_limit", "joint_program", "literal"]


def joint_program(features: Floats, classes: NDArray[np.int64], n_classes: int) -> MaxMarginProgram:
    """The program in standard form: a row a pair of sample and wrong class, one group.

    Parameters
    ----------
    features : (n, D) array
    classes : (n,) ints
    n_classes : int
        K: there are n (K - 1) rows, and one column a class.
    """
    n = len(classes)
    own, other = np.repeat(classes, n_classes), np.tile(np.arange(n_classes), n)
    pairs = np.eye(n_classes)[own] - np.eye(n_classes)[other]
    wrong = own != other
    rows = np.repeat(np.arange(n), n_classes)[wrong]
    design = GatedDesign(
        X=features[rows], Z=pairs[wrong], group=np.zeros(n_classes, dtype=np.int64)
    )
    return MaxMarginProgram(design=design, y=np.ones(int(wrong.sum())))


def direction_limit(
    features: Floats, classes: NDArray[np.int64], n_classes: int, tol: float
) -> HeadLimit | None:
    """The joint direction with its certificate; None where it is proved that none separates."""
    program = joint_program(features, classes, n_classes)
    solution = solve(program, settings=Settings(tol=tol))
    if solution.status is Status.NOT_SEPARABLE:
        return None
    gap = float(solution.certificate.gap)
    return HeadLimit(
        zeta=np.asarray(solution.primal),
        kind="direction",
        rank=int(np.linalg.matrix_rank(features)),
        excess=0.0,
        status=_status(solution),
        certificate=HeadCertificate(
            error=math.sqrt(gap * (2 + gap)), gradient=0.0, curvature=1.0, gap=gap
        ),
        tol=tol,
    )


def _status(solution: Solution) -> Status:
    separable = solution.status in (Status.SOLVED, Status.INACCURATE)
    return solution.status if separable else Status.NO_MINIMISER


@naming_extras()
def literal(features: Floats, classes: NDArray[np.int64], n_classes: int) -> cvxpy.Problem:
    """The program as written, for cvxpy; its one variable is W (K, D)."""
    import cvxpy as cp

    W = cp.Variable((n_classes, features.shape[1]), name="W")
    scores = features @ W.T
    margins = [
        scores[n, int(classes[n])] - scores[n, k] >= 1
        for n in range(len(classes))
        for k in range(n_classes)
        if k != classes[n]
    ]
    return cp.Problem(cp.Minimize(cp.norm(W, "fro")), margins)
