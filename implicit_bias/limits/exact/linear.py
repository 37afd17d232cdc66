"""The hard-margin SVM: the limit of linear networks of every depth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Unpack, overload

import numpy as np

from ..._support.doors import door, parameters
from ..._support.kinds import anything
from ..._support.solve import (
    Array,
    ArrayLike,
    DenseArray,
    GatedDesign,
    MaxMarginProgram,
    Norm,
    NormName,
    Solution,
    Status,
    array_namespace,
    as_float64,
    require_columns,
    require_finite,
    require_inputs,
    require_sizes,
    to_numpy,
)
from ..._support.words import Inseparable
from ...data.arrays import SparseArray, SparseLike, as_csr
from ..formulation import Solving, real_data
from ..limit import Limit
from ..literal import constant, max_margin
from ..predictors import Predictor
from .normed import NormedFormulation
from .split import WAY_OUT, SplitLimit, solve_split

if TYPE_CHECKING:
    import cvxpy


class Ungated:
    """Gate columns without gates: one column of ones."""

    def check(self, gates: Array, X: Array) -> Array:
        """Return the column of ones itself, whatever the gates."""
        return array_namespace(X).ones_like(X[:, :1])

    def __call__(self, gates: Array) -> Array:
        """Return the column of ones (n, 1)."""
        return gates


class LinearPredictor(Predictor):
    """Scores ``<zeta, x>`` of inputs (n, D), which may be sparse.

    Parameters
    ----------
    zeta : (D,) float64 array
    """

    def __init__(self, zeta: DenseArray) -> None:
        super().__init__(zeta, Ungated())

    def __call__(self, X: Any, gates: Any = None) -> DenseArray:
        """Return the scores (n,), in float64, of `X` (n, D), an array or a sparse one.

        Raises
        ------
        TypeError, ValueError
            If `X` does not hold real, finite numbers, or has another width.
        """
        csr = as_csr("X", X)
        if csr is None:
            return super().__call__(X, gates)
        require_columns("X", csr, int(self.zeta.shape[-1]))
        require_finite("X", csr)
        scores: DenseArray = as_float64(csr @ to_numpy(self.zeta), like=self.zeta)
        return scores


class LinearLimit(Limit):
    """The hard-margin SVM solution; `zeta` is the end-to-end vector (D,), in one unit.

    Examples
    --------
    >>> X, y = np.array([[2.0, 0.0], [0.0, 1.0]]), np.array([1.0, -1.0])
    >>> limit = ib.solve_linear_svm(X, y)
    >>> limit.predictor.predict([[1.0, 0.0]]).tolist(), limit.support.tolist()
    ([1], [True, True])
    >>> [W.shape for W in limit.balanced_weights((3,))]
    [(3, 2), (1, 3)]
    """

    FORMULATION: ClassVar[str] = "limits.exact.linear:HardMarginSVM"
    ADVICE: ClassVar = {**Limit.ADVICE, Status.NOT_SEPARABLE: WAY_OUT.format("solve_linear_svm")}

    @property
    def predictor(self) -> Predictor:
        """The limit as a function of new inputs, at smallest margin 1."""
        return LinearPredictor(self.zeta)

    @door()
    def balanced_weights(self, hidden_widths: Sequence[int] = ()) -> tuple[DenseArray, ...]:
        """Matrices W_1, ..., W_L of the deep linear network of least norm with this product.

            W_l = s u_l u_{l-1}^T,  s = ||zeta||^(1/L),  u_0 = zeta / ||zeta||,  u_L = 1,

        so that `W_L ... W_1 = zeta^T` and `sum_l ||W_l||^2 = L ||zeta||^(2/L)`, L one more than
        the number of hidden layers. Hidden u_l weigh all units equally; any unit vector would do.

        Parameters
        ----------
        hidden_widths : sequence of int
            Widths of the hidden layers; `()` is the plain linear predictor.

        Raises
        ------
        ValueError
            If a width is not positive.
        """
        if any(width < 1 for width in hidden_widths):
            raise ValueError(f"`hidden_widths` must be at least 1, got {tuple(hidden_widths)}")
        widths = [int(self.zeta.shape[0]), *hidden_widths, 1]
        sizes = {f"hidden_widths[{i}]": width for i, width in enumerate(hidden_widths)}
        require_sizes("layers", {"zeta": widths[0], **sizes}, *pairwise(widths))
        xp = array_namespace(self.zeta)
        depth = 1 + len(hidden_widths)
        norm = xp.sqrt(xp.sum(self.zeta * self.zeta))
        size = norm ** (1 / depth)
        below = self.zeta / xp.where(norm > 0, norm, xp.ones_like(norm))
        layers = []
        for width in (*hidden_widths, 1):
            above = xp.full((width,), width**-0.5, dtype=below.dtype, device=below.device)
            layers.append(size * above[:, None] * below[None, :])
            below = above
        return tuple(layers)


@parameters(norm=anything)
@dataclass(frozen=True)
class HardMarginSVM(NormedFormulation[LinearLimit]):
    """The hard-margin SVM without intercept.

        minimise  ||b||_2   s.t.   y[n] <b, x[n]> >= 1

    There are no gates, and those given are not looked at.

    Parameters
    ----------
    norm : str or Norm
        Of b, as a matrix of one row; by default "l2": see `solve_linear_svm`.

    References
    ----------
    D. Soudry et al., "The implicit bias of gradient descent on separable data", theorem 3, with the
    norm in place of its square, for one layer; Z. Ji, M. Telgarsky, "Gradient descent aligns the
    layers of deep linear networks", for any depth.

    Examples
    --------
    >>> X, y = np.array([[2.0, 0.0], [0.0, 1.0]]), np.array([1.0, -1.0])
    >>> round(ib.limits.solve_limit(ib.programs.HardMarginSVM(), X, y).objective, 6)
    1.118034
    """

    name: ClassVar[str] = "hard-margin SVM"
    OWN: ClassVar[NormName] = "l2"

    norm: Norm | NormName = "l2"

    @door()
    def program(self, X: SparseArray, y: Array, gates: Array | None = None) -> MaxMarginProgram:
        """Build the program of one gate column of ones and one group, on dense or sparse inputs.

        Raises
        ------
        ValueError
            If shapes disagree, values are not finite, or labels are not -1 and +1.
        """
        return _program(X, y)

    @door()
    def limit(
        self, program: MaxMarginProgram, solution: Solution, gates: Array | None = None
    ) -> LinearLimit:
        """Read a solution as the end-to-end vector (D,)."""
        shape, norm = (int(program.design.X.shape[1]),), Norm.of(self.norm).name
        return LinearLimit.from_solution(program, solution, shape, norm=norm)

    def _literal(
        self, cp: ModuleType, program: MaxMarginProgram, gates: Array | None
    ) -> cvxpy.Problem:
        inputs = program.design.X
        X = constant(inputs.toarray() if hasattr(inputs, "toarray") else inputs, "X")
        b = cp.Variable(X.shape[1], name="b")
        norm: cvxpy.Expression = cp.norm(b, 2)
        stated: list[cvxpy.Constraint] = []
        if not self.is_own:
            norm, stated = self._stated([cp.reshape(b, (1, X.shape[1]), order="C")])
        return max_margin(norm, program.y, X @ b, stated)


@overload
def solve_linear_svm(
    X: SparseLike,
    y: ArrayLike,
    *,
    norm: Norm | NormName = "l2",
    inseparable: Literal["prove"] = "prove",
    **solving: Unpack[Solving],
) -> LinearLimit: ...
@overload
def solve_linear_svm(
    X: SparseLike,
    y: ArrayLike,
    *,
    norm: Norm | NormName = "l2",
    inseparable: Literal["split"],
    **solving: Unpack[Solving],
) -> SplitLimit: ...
@door(norm=anything)
def solve_linear_svm(
    X: SparseLike,
    y: ArrayLike,
    *,
    norm: Norm | NormName = "l2",
    inseparable: Inseparable = "prove",
    **solving: Unpack[Solving],
) -> LinearLimit | SplitLimit:
    """Solve the hard-margin SVM, the limit of linear networks of any depth.

    Gradient descent takes the end-to-end vector of a linear network in its direction; steepest
    descent in another norm takes the margin of a linear predictor to the optimum in that norm.

    Parameters
    ----------
    X : (n, D) real array
        NumPy array or torch tensor; a bias is a constant column. Or a sparse matrix of SciPy, of
        which no dense copy is made; `solver` must then be "interior-point".
    y : (n,) array
        Labels in {-1, +1}.
    norm : str or Norm
        "l2", gradient descent; "linf", sign descent, Signum, Adam without its constant; "l1",
        coordinate descent. Where it is not "l2", optima need not be unique: compare margins.
    inseparable : {"prove", "split"}
        Where nothing separates, the proof of that, or the limit that there is all the same: with E
        the samples that contradict each other and A the others, the direction of least norm that
        separates A and is 0 on E, and beside it the minimiser of the logistic loss of E. That
        gradient descent goes there is proved for "l2". Sparse inputs are then made dense.
    **solving
        `solver`, `tol`, `max_iterations`, `progress`, `threads`: see `Solving`.

    Returns
    -------
    LinearLimit
        With its certificate; call `.require()` to insist on `SOLVED`.
        `HardMarginSVM.literal` states the program in cvxpy.
    SplitLimit
        With `inseparable="split"`: direction, finite part, and the proof of the split.

    References
    ----------
    D. Soudry et al., "The implicit bias of gradient descent on separable data", 2018, theorem 3;
    Z. Ji, M. Telgarsky, "The implicit bias of gradient descent on nonseparable data", 2019,
    theorem 1.1 (the split).

    Examples
    --------
    >>> limit = ib.solve_linear_svm(np.array([[2.0, 0.0], [0.0, 1.0]]), np.array([1.0, -1.0]))
    >>> np.round(limit.zeta, 6).tolist()
    [0.5, -1.0]
    >>> X = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 2.0]])
    >>> limit = ib.solve_linear_svm(X, [1, 1, -1], inseparable="split")
    >>> limit.separable.tolist(), limit.zeta.round(6).tolist(), limit.finite.round(6).tolist()
    ([True, False, False], [1.0, 0.0], [0.0, -0.419618])
    """
    stated = HardMarginSVM(norm)
    program = _program(X, y)
    if inseparable == "prove":
        return stated.limit(program, stated._solve(program, **solving))
    matrix = stated._matrix_program(program)
    size = matrix.image.shape[1:]
    return solve_split(matrix, np.arange(matrix.image.n_rows), size, np.asarray, **solving)


def _program(X: SparseArray, y: Array) -> MaxMarginProgram:
    """Build the program of inputs and labels that have been through a door."""
    X, y = real_data(X, y, sparse=True)
    require_inputs(X)
    xp = array_namespace(y)
    Z = xp.ones((int(X.shape[0]), 1), dtype=xp.float64, device=y.device)
    group = xp.zeros((1,), dtype=xp.int64, device=y.device)
    return MaxMarginProgram(design=GatedDesign(X=X, Z=Z, group=group), y=y)
