"""The hard-margin classifier of a kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..._support.doors import door
from ..._support.solve import (
    Array,
    KernelProgram,
    Progress,
    Settings,
    require_columns,
    require_finite,
    solve_kernel,
)
from ...data.arrays import Floats, SparseArray, as_csr
from ..literal import LiteralProgram, constant, cvxpy_module, max_margin
from ..predictors import DecisionFunction
from ..result import MaxMarginResult
from .arrays import check_kernel, cross_matrix, targets

if TYPE_CHECKING:
    import cvxpy


@dataclass(frozen=True, eq=False)
class KernelPredictor(DecisionFunction):
    """Scores of new samples by their kernel with the training samples."""

    zeta: Floats

    def __call__(self, X: Any, gates: Any = None) -> Floats:
        """Return the scores (m,) of `X`, kernels (m, n) of m new with the n training samples.

        Raises
        ------
        TypeError, ValueError
            If `X` is no finite real matrix with a column for every training sample.
        """
        cross = as_csr("k_cross", X)
        if cross is None:
            return np.asarray(cross_matrix(X, len(self.zeta)) @ self.zeta)
        require_columns("k_cross", cross, len(self.zeta))
        require_finite("k_cross", cross)
        return np.asarray(cross @ self.zeta)


class KernelLimit(MaxMarginResult):
    """The hard-margin SVM of a kernel, with the bounds that prove it.

    Attributes
    ----------
    dual : (n,) array
        Multipliers, whose sum is the optimum; with sum 1 where they prove inseparability.
    zeta : (n,) array
        Coefficients of the function `sum_n zeta[n] k(., x[n])`, at smallest margin 1.
    margins : (n,) array
        `y[n] f(x[n])` of it.
    status : Status
    certificate : Certificate
        Bounds of the least norm at margin 1: `sqrt(lam' Y K Y lam)` over the smallest margin from
        above, the sum of the multipliers over it from below. They hold for the kernel's entries
        as they are.
    tol, solver, iterations, seconds
        The gap asked for and how the solve went.

    Examples
    --------
    >>> limit = ib.solve_kernel_svm(np.eye(2), [1.0, -1.0])
    >>> limit.zeta.round(6).tolist(), limit.predictor([[3.0, 1.0]]).round(6).tolist()
    ([1.0, -1.0], [2.0])
    """

    BRIEF = (
        "{status.name}, {n_samples} samples\n"
        "  optimum in [{dual_objective:.10g}, {objective:.10g}], gap {gap:.2g} (tol {tol:.2g})\n"
        "  {solver}, {iterations} iterations, {seconds:.3g} s"
    )

    zeta: Floats
    dual: Floats
    margins: Floats

    @property
    def predictor(self) -> KernelPredictor:
        """The limit as a function of kernels (m, n) of new samples with the training samples."""
        return KernelPredictor(self.zeta)


@dataclass(frozen=True)
class KernelSVM(LiteralProgram):
    """The hard-margin SVM of a kernel, without intercept, in its coefficients.

        minimise  1/2 a' K a   s.t.   y[n] (K a)[n] >= 1

    It is half the least squared norm of a function `f = sum_n a[n] k(., x[n])` in the kernel's
    space, so that its optimum is half the square of `KernelLimit.objective`.

    References
    ----------
    D. Soudry et al., "The implicit bias of gradient descent on separable data", theorem 3, on the
    features of a kernel.
    """

    name: ClassVar[str] = "hard-margin SVM of a kernel"

    def program(self, K: Any, y: Any) -> KernelProgram:
        """Build the program of a kernel (n, n) and labels (n,) in {-1, +1}.

        Raises
        ------
        TypeError, ValueError
            If `K` is no kernel, a label is neither -1 nor +1, or memory cannot hold it.
        """
        kernel = check_kernel(K, sparse=True)
        return KernelProgram(kernel, targets("y", y, kernel.shape[0]))

    def literal(self, K: Any, y: Any) -> cvxpy.Problem:
        """State the program; its one variable is a (n,).

        Parameters
        ----------
        K : (n, n) array
        y : (n,) array
            Labels in {-1, +1}.

        Raises
        ------
        MissingExtra
            Without cvxpy.

        Examples
        --------
        >>> problem = ib.programs.KernelSVM().literal(np.diag([4.0, 1.0]), [1.0, -1.0])
        >>> round(float(problem.solve(solver="CLARABEL")), 6)
        0.625
        """
        cp = cvxpy_module()
        program = self.program(K, y)
        matrix = program.kernel.toarray() if hasattr(program.kernel, "toarray") else program.kernel
        a, kernel = cp.Variable(len(program.y), name="a"), constant(matrix, "K")
        # Wrapped: a kernel is positive semidefinite up to rounding, which `program` has seen.
        norm = cp.quad_form(a, cp.psd_wrap(kernel)) / 2
        return max_margin(norm, program.y, kernel @ a)


@door()
def solve_kernel_svm(
    K: SparseArray,
    y: Array,
    *,
    tol: float = 1e-8,
    max_iterations: int | None = None,
    progress: Progress | None = None,
) -> KernelLimit:
    r"""Solve for the function of least norm in a kernel's space with margins of at least 1.

    .. math:: \min_f \|f\|_K \quad\text{s.t.}\quad y_n f(x_n) \ge 1

    With the tangent kernel of a model that is linear in its weights, it is the directional limit of
    gradient descent on exponential losses. Under such a loss a network's weights diverge and its
    tangent kernel changes, so that this is the limit of the network *linearised* at its initial
    weights, not of the network.

    Parameters
    ----------
    K : (n, n) array
        Kernel of the training samples, symmetric and positive semidefinite; or a sparse matrix of
        SciPy, such as ``X @ X.T`` of sparse inputs.
    y : (n,) array
        Labels in {-1, +1}.
    tol : float
        Relative duality gap to reach, in (0, 1).
    max_iterations : int, optional
        Limit on the solver's iterations; by default its own.
    progress : callable, optional
        `progress(iteration, gap)`, called once an iteration.

    Returns
    -------
    KernelLimit
        Call `.require()` to insist on `SOLVED`. A sample whose features are zero, K[n, n] = 0,
        makes it `NOT_SEPARABLE`, with the multipliers on that sample.
        `KernelSVM.literal` states the program in cvxpy.

    Raises
    ------
    TypeError, ValueError
        If `K` is no kernel, a label is neither -1 nor +1, or memory cannot hold it.

    Examples
    --------
    >>> K = np.array([[4.0, 0.0], [0.0, 1.0]])
    >>> limit = ib.solve_kernel_svm(K, [1.0, -1.0]).require()
    >>> limit.zeta.round(8).tolist(), round(limit.objective**2, 8)
    ([0.25, -1.0], 1.25)
    >>> limit.predictor.predict([[1.0, 2.0]]).tolist()
    [-1]
    """
    settings = Settings(tol=tol, max_iterations=max_iterations, progress=progress)
    solution = solve_kernel(KernelSVM().program(K, y), settings)
    return KernelLimit.read(solution, zeta=solution.coefficients)
