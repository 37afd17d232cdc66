"""The margin program of all classes at once, as its theory states it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..._support.doors import door, parameters
from ..._support.kinds import anything, count
from ..._support.solve import (
    MaxMarginProgram,
    Norm,
    NormName,
    NormProgram,
    RelativeMargins,
    norm_expression,
    require_finite,
    require_real,
    require_scale,
    require_sizes,
    to_numpy,
)
from ...data.arrays import Floats
from ..literal import LiteralProgram, constant, cvxpy_module, labelled
from ..predictors import checked_columns

if TYPE_CHECKING:
    import cvxpy


def class_labels(labels: Any, n_classes: int | None = None) -> NDArray[np.int64]:
    """Return classes (n,) as integers from 0 to K - 1.

    Raises
    ------
    TypeError, ValueError
        If they are not such numbers, or, without a number of classes, fewer than two.
    """
    require_real("labels", labels)
    classes = np.asarray(to_numpy(labels))
    if classes.ndim != 1 or len(classes) == 0:
        raise ValueError(f"`labels` must have shape (n,), got {classes.shape}")
    most = np.inf if n_classes is None else n_classes - 1
    if np.any(classes == -1):
        raise ValueError("`labels` must name a class for every sample: leave the others out")
    if not np.all((classes == np.floor(classes)) & (classes >= 0) & (classes <= most)):
        raise ValueError(f"`labels` must be whole numbers from 0 to {most:g}")
    if n_classes is None and len(np.unique(classes)) < 2:
        raise ValueError("`labels` must hold two classes at least, or give `n_classes`")
    return classes.astype(np.int64)


@parameters(norm=anything, n_contexts=count(1))
@dataclass(frozen=True)
class JointMargin(LiteralProgram):
    """The multi-class hard-margin program: scores of all classes at once, one norm.

        minimise  N(W)   s.t.   <w[y[n]] - w[k], phi[n]> >= 1   for every n and k != y[n]

    Behind gates, `phi[n]` are the inputs behind each open gate, and W has a (K, D) matrix a gate.
    With contexts they are the inputs in the place of each unit's context, and W has a (K, C D)
    matrix a unit.

    Parameters
    ----------
    n_classes : int, optional
        K; by default one more than the largest label.
    norm : str or Norm
        N, by default the l2 norm of all entries: see `Norm.of`.
    n_contexts : int, optional
        C, of gates that are contexts: integers (n, H) from 0 to C - 1.

    References
    ----------
    D. Soudry et al., "The implicit bias of gradient descent on separable data", the K-class SVM of
    its section on multi-class classification, with the norm in place of its square; C. Fan,
    M. Schmidt, C. Thrampoulidis, "Implicit bias of spectral descent and Muon on multiclass
    separable data", for other norms.
    """

    name: ClassVar[str] = "multi-class hard margin"

    n_classes: int | None = None
    norm: Norm | NormName = "l2"
    n_contexts: int | None = None

    def __post_init__(self) -> None:
        Norm.of(self.norm)

    @door(gates=anything)
    def margins(self, features: Any, labels: Any, gates: Any = None) -> NormProgram:
        """State the program as a map of the coefficients to relative margins, and a norm.

        Parameters
        ----------
        features : (n, D) real array
        labels : (n,) ints
            Classes from 0 to K - 1.
        gates : (n, H) array, optional

        Returns
        -------
        NormProgram
            Of coefficients (K, D), (H, K, D) behind gates, or (H, K, C D) of contexts, each row
            context by context; on NumPy arrays.

        Raises
        ------
        TypeError, ValueError
            If shapes disagree, values are not finite, labels are not whole numbers below K, or
            contexts not below C.
        """
        X, classes, Z, K = self._checked(features, labels, gates)
        image = RelativeMargins(X, classes, K, Z, self.n_contexts or 1)
        return NormProgram(image, Norm.of(self.norm))

    def program(self, features: Any, labels: Any) -> MaxMarginProgram:
        """State the l2 program: a row per pair of sample and wrong class, a column per class.

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
        return self.margins(features, labels).image.standard()

    @door(gates=anything)
    def literal(self, features: Any, labels: Any, gates: Any = None) -> cvxpy.Problem:
        """State the program; its variable is W (K, D), each constraint about one wrong class.

        Behind gates W is (H K, D), a block of K rows a gate, and (H K, C D) of contexts, column
        c D + d being input d in context c.

        Parameters
        ----------
        features : (n, D) real array
            Features of the samples.
        labels : (n,) ints
            Classes from 0 to K - 1.
        gates : (n, H) array, optional

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
        X, classes, Z, K = self._checked(features, labels, gates)
        phi, e = constant(X, "phi"), constant(np.eye(K)[classes], "e")
        C, D = self.n_contexts or 1, X.shape[1]
        n_gates = 1 if Z is None else Z.shape[1] // C
        W = cp.Variable((n_gates * K, C * D), name="W")
        blocks = [W] if n_gates == 1 else [W[h * K : (h + 1) * K, :] for h in range(n_gates)]
        if Z is None:
            scores = phi @ W.T
        else:
            g = constant(Z, "g")  # of contexts, column h C + c is 1 where unit h is in context c
            scores = sum(
                cp.multiply(g[:, [h * C + c]], phi @ blocks[h][:, c * D : (c + 1) * D].T)
                for h in range(n_gates)
                for c in range(C)
            )
        own = cp.sum(cp.multiply(e, scores), axis=1)  # the score of the own class
        wrong = {k: np.flatnonzero(classes != k) for k in range(K)}
        margins = [
            labelled((own - scores[:, k])[rows] >= 1, f"margins over class {k}")
            for k, rows in wrong.items()
            if len(rows) > 0
        ]
        norm = Norm.of(self.norm)
        if Z is None and norm.blocks == "units":
            blocks = [W[[k], :] for k in range(K)]
        objective, stated = norm_expression(norm, blocks)
        return cp.Problem(cp.Minimize(objective), margins + stated)

    def _checked(
        self, features: Any, labels: Any, gates: Any
    ) -> tuple[Floats, NDArray[np.int64], Floats | None, int]:
        """Inputs, classes, gates and K, on NumPy arrays."""
        classes = class_labels(labels, self.n_classes)
        X = class_matrix("features", features, len(classes), "D")
        require_scale("features", X)
        Z, K = self._columns(gates, X), self.n_classes or int(classes.max()) + 1
        name = "labels" if self.n_classes is None else "n_classes"
        require_sizes("scores and coefficients", {name: K}, (K, sum(X.shape)))
        return X, classes, Z, K

    def _columns(self, gates: Any, X: Floats) -> Floats | None:
        """Return gates (n, H), or one-hot contexts (n, H C)."""
        if self.n_contexts is None:
            return None if gates is None else class_matrix("gates", gates, len(X), "H")
        if gates is None:
            raise ValueError("`n_contexts` are those of `gates`, which are missing")
        return np.asarray(checked_columns("gates", gates, X, self.n_contexts)[0])


def class_matrix(name: str, value: Any, n_rows: int, columns: str) -> Floats:
    """Return inputs or gates with one row a label, on a NumPy array.

    Raises
    ------
    TypeError, ValueError
        If they are not finite real numbers in this shape.
    """
    require_real(name, value)
    matrix = np.asarray(to_numpy(value), dtype=np.float64)
    if matrix.ndim != 2 or matrix.shape[0] != n_rows or matrix.shape[1] == 0:
        raise ValueError(
            f"`{name}` must have shape ({n_rows}, {columns}), got {matrix.shape}: one row a label"
        )
    require_finite(name, matrix)
    return matrix
