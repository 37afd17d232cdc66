"""The joint direction of a head on hard labels alone: the multi-class hard margin."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..._doors import parameters
from ..._solve import GatedDesign, MaxMarginProgram, Settings, Solution, Status, solve
from ...data.arrays import Floats
from ...limits.literal import LiteralProgram, constant, cvxpy_module, labelled
from .limit import HeadCertificate, HeadLimit
from .losses import UNLABELLED, checked_features, checked_labels

if TYPE_CHECKING:
    import cvxpy

__all__ = ["JointMargin", "direction_limit"]


@parameters()
@dataclass(frozen=True)
class JointMargin(LiteralProgram):
    """The multi-class hard-margin program: scores of all classes at once, one norm.

        minimise  ||W||_F   s.t.   <w[y[n]] - w[k], phi[n]> >= 1   for every n and k != y[n]

    Parameters
    ----------
    n_classes : int, optional
        K; by default one more than the largest label.

    References
    ----------
    D. Soudry et al., "The implicit bias of gradient descent on separable data", the K-class SVM of
    its section on multi-class classification, with the norm in place of its square.
    """

    name: ClassVar[str] = "multi-class hard margin"

    n_classes: int | None = None

    def program(self, features: Any, labels: Any) -> MaxMarginProgram:
        """State the program: a row per pair of sample and wrong class, a column per class.

        Parameters
        ----------
        features : (n, D) real array
        labels : (n,) ints
            Classes from 0 to K - 1.

        Returns
        -------
        MaxMarginProgram
            With n (K - 1) rows, and all columns in one group.

        Raises
        ------
        TypeError, ValueError
            If shapes disagree, features are not finite, or labels are not whole numbers below K.
        """
        features, labels, n_classes = self._checked(features, labels)
        n = len(labels)
        own, other = np.repeat(labels, n_classes), np.tile(np.arange(n_classes), n)
        pairs = np.eye(n_classes)[own] - np.eye(n_classes)[other]
        wrong = own != other
        rows = np.repeat(np.arange(n), n_classes)[wrong]
        design = GatedDesign(
            X=features[rows], Z=pairs[wrong], group=np.zeros(n_classes, dtype=np.int64)
        )
        return MaxMarginProgram(design=design, y=np.ones(int(wrong.sum())))

    def literal(self, features: Any, labels: Any) -> cvxpy.Problem:
        """State the program; its variable is W (K, D), each constraint about one wrong class.

        Parameters
        ----------
        features : (n, D) real array
            Features of the samples.
        labels : (n,) ints
            Classes from 0 to K - 1.

        Returns
        -------
        cvxpy.Problem
            Not yet solved.

        Raises
        ------
        TypeError, ValueError
            If shapes disagree, features are not finite, or labels are not whole numbers below K.
        MissingExtra
            If cvxpy is not installed.

        Examples
        --------
        >>> problem = ib.programs.JointMargin().literal([[2.0, 0.0], [0.0, 2.0]], [0, 1])
        >>> round(float(problem.solve(solver="CLARABEL")), 6)
        0.5
        """
        cp = cvxpy_module()
        features, labels, n_classes = self._checked(features, labels)
        phi, e = constant(features, "phi"), constant(np.eye(n_classes)[labels], "e")
        W = cp.Variable((n_classes, features.shape[1]), name="W")
        own = cp.sum(cp.multiply(e, phi @ W.T), axis=1)  # <w[y[n]], phi[n]>
        wrong = {k: np.flatnonzero(labels != k) for k in range(n_classes)}
        margins = [
            labelled((own - phi @ W[k, :])[rows] >= 1, f"margins over class {k}")
            for k, rows in wrong.items()
            if len(rows) > 0
        ]
        return cp.Problem(cp.Minimize(cp.norm(W, "fro")), margins)

    def _checked(self, features: Any, labels: Any) -> tuple[Floats, NDArray[np.int64], int]:
        known = checked_labels(labels, n_classes=self.n_classes)
        if np.any(known == UNLABELLED):
            raise ValueError("`labels` must name a class for every sample: leave the others out")
        n_classes = int(known.max()) + 1 if self.n_classes is None else self.n_classes
        return checked_features("features", features, len(known)), known, n_classes


def direction_limit(
    features: Floats, classes: NDArray[np.int64], n_classes: int, tol: float
) -> HeadLimit | None:
    """Solve for the joint direction; None if it is proved that no weights separate the classes."""
    program = JointMargin(n_classes).program(features, classes)
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
