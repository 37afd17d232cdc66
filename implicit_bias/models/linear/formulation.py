"""The hard-margin SVM: the limit of linear networks of every depth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..._solve import (
    Array,
    GatedDesign,
    MaxMarginProgram,
    Progress,
    Settings,
    Solution,
    array_namespace,
    as_float64,
    solve,
)
from ...limits.limit import Limit

__all__ = [
    "LinearLimit",
    "LinearPredictor",
    "linear_limit",
    "linear_program",
    "solve_linear_svm",
]


@dataclass(frozen=True, eq=False)
class LinearPredictor:
    """Scores `f(x) = <zeta, x>`.

    Parameters
    ----------
    zeta : (D,) float64 array
        NumPy array or torch tensor; inputs must be of the same kind.
    """

    zeta: Array

    def __call__(self, X: Array, gates: Array | None = None) -> Array:
        """(n,) float64 scores of `X` (n, D); `gates` are not looked at.

        Raises
        ------
        ValueError
            If `X` has the wrong shape.
        """
        X = as_float64(X, like=self.zeta)
        n_inputs = int(self.zeta.shape[0])
        if X.ndim != 2 or X.shape[1] != n_inputs:
            raise ValueError(
                f"`X` must have shape (n, {n_inputs}), got {tuple(X.shape)}: the predictor was "
                f"made from {n_inputs} inputs, the constant column included"
            )
        return X @ self.zeta


@dataclass(frozen=True, eq=False, repr=False)
class LinearLimit(Limit):
    """The hard-margin SVM solution; `zeta` is the end-to-end vector (D,), in one unit."""

    @property
    def predictor(self) -> LinearPredictor:
        """The limit as a function of new inputs, at smallest margin 1."""
        return LinearPredictor(self.zeta)

    def balanced_weights(self, hidden_widths: Sequence[int] = ()) -> tuple[Array, ...]:
        """Matrices W_1, ..., W_L of the deep linear network of least norm with this product.

            W_l = s u_l u_{l-1}^T,  s = ||zeta||^(1/L),  u_0 = zeta / ||zeta||,  u_L = 1,

        so that `W_L ... W_1 = zeta^T` and `sum_l ||W_l||^2 = L ||zeta||^(2/L)`, L one more than
        the number of hidden layers. Hidden u_l weigh all units alike; any unit vector would do.

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


def linear_program(X: Array, y: Array) -> MaxMarginProgram:
    """The hard-margin SVM without intercept.

        minimise  ||b||_2   s.t.   y[n] <b, x[n]> >= 1

    Parameters
    ----------
    X : (n, D) real array
        Inputs; a bias is a constant column. NumPy array or torch tensor.
    y : (n,) real or integer array
        Labels in {-1, +1}.

    Returns
    -------
    MaxMarginProgram
        One gate column of ones, one group.

    Raises
    ------
    ValueError
        If shapes disagree, values are not finite, or labels are not -1 and +1.

    References
    ----------
    D. Soudry et al., "The implicit bias of gradient descent on separable data", theorem 3, for
    one layer; Z. Ji, M. Telgarsky, "Gradient descent aligns the layers of deep linear networks",
    for any depth.
    """
    X = as_float64(X)
    y = as_float64(y, like=X)
    if X.ndim != 2 or X.shape[0] == 0:
        raise ValueError(f"`X` must have shape (n, D) with n, D >= 1, got {tuple(X.shape)}")
    xp = array_namespace(X)
    Z = xp.ones((int(X.shape[0]), 1), dtype=X.dtype, device=X.device)
    group = xp.zeros((1,), dtype=xp.int64, device=X.device)
    return MaxMarginProgram(design=GatedDesign(X=X, Z=Z, group=group), y=y)


def solve_linear_svm(
    X: Array,
    y: Array,
    *,
    solver: str = "interior-point",
    tol: float = 1e-8,
    max_iterations: int | None = None,
    progress: Progress | None = None,
) -> LinearLimit:
    """Where gradient descent takes a linear network of any depth, in direction, end to end.

    Parameters
    ----------
    X, y
        As in `linear_program`, which says what they raise.
    solver : str
        "interior-point", or "cvxpy:CLARABEL", "cvxpy:ECOS", "cvxpy:SCS", "cvxpy:OSQP".
    tol : float
        Relative duality gap to reach, in (0, 1).
    max_iterations : int, optional
        Iterations of each run of the solver; by default as many as it thinks right.
    progress : callable, optional
        `progress(iteration, gap)`, called once an iteration by the interior point.

    Returns
    -------
    LinearLimit
        With its certificate; call `.require()` to insist on `SOLVED`.

    Examples
    --------
    >>> import numpy as np
    >>> limit = solve_linear_svm(np.array([[2.0, 0.0], [0.0, 1.0]]), np.array([1.0, -1.0]))
    >>> np.round(limit.zeta, 6).tolist()
    [0.5, -1.0]
    """
    program = linear_program(X, y)
    settings = Settings(tol=tol, max_iterations=max_iterations, progress=progress)
    return linear_limit(program, solve(program, solver=solver, settings=settings))


def linear_limit(program: MaxMarginProgram, solution: Solution) -> LinearLimit:
    """Read a solution of a `linear_program` as a limit."""
    return LinearLimit.from_solution(program, solution, (int(program.design.X.shape[1]),))
