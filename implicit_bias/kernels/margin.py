"""The hard-margin classifier of a kernel."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from .._solve import (
    Certificate,
    KernelProgram,
    Progress,
    Settings,
    Status,
    solve_kernel,
)
from ..data.arrays import Floats
from ..limits.literal import LiteralProgram, constant, cvxpy_module, max_margin
from ..limits.result import MaxMarginResult
from .arrays import check_kernel, cross_matrix, targets

if TYPE_CHECKING:
    import cvxpy

__all__ = ["KernelLimit", "KernelSVM", "solve_kernel_svm"]


@dataclass(frozen=True, eq=False, repr=False)
class KernelLimit(MaxMarginResult):
    """The hard-margin SVM of a kernel, with the bounds that prove it.

    Attributes
    ----------
    dual : (n,) array
        Multipliers, whose sum is the optimum; with sum 1 where they prove inseparability.
    coefficients : (n,) array
        Of the function `sum_n coefficients[n] k(., x[n])`, at smallest margin 1.
    margins : (n,) array
        `y[n] f(x[n])` of it.
    status : Status
    certificate : Certificate
        Bounds of the least norm at margin 1: `sqrt(lam' Y K Y lam)` over the smallest margin from
        above, the sum of the multipliers over it from below. They hold for the kernel's entries
        as they are.
    tol, solver, iterations, seconds
        The gap asked for and how the solve went.
    """

    dual: Floats
    coefficients: Floats
    margins: Floats
    status: Status
    certificate: Certificate
    tol: float
    solver: str
    iterations: int
    seconds: float

    def __post_init__(self) -> None:
        for array in (self.dual, self.coefficients, self.margins):
            array.flags.writeable = False

    @property
    def predictor(self) -> Callable[[Any], Floats]:
        """From kernels (m, n) of new samples with the training samples to scores (m,)."""

        def scores(k_cross: Any) -> Floats:
            cross = cross_matrix(k_cross, len(self.coefficients))
            return np.asarray(cross @ self.coefficients)

        return scores

    def __repr__(self) -> str:
        return (
            f"KernelLimit({self.status.name}, {len(self.dual)} samples\n"
            f"  optimum in [{self.dual_objective:.10g}, {self.objective:.10g}], "
            f"gap {self.gap:.2g} (tol {self.tol:.2g})\n"
            f"  {self.solver}, {self.iterations} iterations, {self.seconds:.3g} s)"
        )


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
        """The program of a kernel (n, n) and labels (n,) in {-1, +1}.

        Raises
        ------
        TypeError, ValueError
            If `K` is no kernel, a label is neither -1 nor +1, or memory cannot hold it.
        """
        kernel = check_kernel(K)
        return KernelProgram(kernel, targets("y", y, len(kernel)))

    def literal(self, K: Any, y: Any) -> cvxpy.Problem:
        """State the program; its one variable is a (n,).

        Parameters
        ----------
        K, y
            As `program` takes them, and raises of them.

        Raises
        ------
        MissingExtra
            Without cvxpy.

        Examples
        --------
        >>> problem = KernelSVM().literal(np.diag([4.0, 1.0]), [1.0, -1.0])
        >>> round(float(problem.solve(solver="CLARABEL")), 6)
        0.625
        """
        cp = cvxpy_module()
        program = self.program(K, y)
        a, kernel = cp.Variable(len(program.y), name="a"), constant(program.kernel, "K")
        # Wrapped: a kernel is positive semidefinite up to rounding, which `program` has seen.
        norm = cp.quad_form(a, cp.psd_wrap(kernel)) / 2
        return max_margin(norm, program.y, kernel @ a)


def solve_kernel_svm(
    K: Any,
    y: Any,
    *,
    tol: float = 1e-8,
    max_iterations: int | None = None,
    progress: Progress | None = None,
) -> KernelLimit:
    r"""The function of least norm in a kernel's space with margins of at least one.

    .. math:: \min_f \|f\|_K \quad\text{s.t.}\quad y_n f(x_n) \ge 1

    It is where gradient descent on exponential losses takes a model that is linear in its weights,
    with the tangent kernel of the model. For a network that kernel is the one it has at its start
    only while it stays near: with such a loss it leaves, so that this is the limit of the network
    *linearised* at its start and not of the network.

    Parameters
    ----------
    K : (n, n)
        Kernel of the training samples, symmetric and positive semidefinite.
    y : (n,)
        Labels in {-1, +1}.
    tol, max_iterations, progress
        See `Settings`.

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
    >>> limit = solve_kernel_svm(K, [1.0, -1.0]).require()
    >>> limit.coefficients.round(8).tolist(), round(limit.objective**2, 8)
    ([0.25, -1.0], 1.25)
    """
    settings = Settings(tol=tol, max_iterations=max_iterations, progress=progress)
    solution = solve_kernel(KernelSVM().program(K, y), settings)
    return KernelLimit(
        dual=solution.dual,
        coefficients=solution.coefficients,
        margins=solution.margins,
        status=solution.status,
        certificate=solution.certificate,
        tol=solution.tol,
        solver=solution.solver,
        iterations=solution.iterations,
        seconds=solution.seconds,
    )
