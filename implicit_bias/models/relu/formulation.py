"""The group lasso over units: the limit of two-layer ReLU networks with frozen gates."""

from __future__ import annotations

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
    "FReLULimit",
    "GatePredictor",
    "frelu_kernels",
    "frelu_limit",
    "frelu_program",
    "solve_frelu_svm",
]


@dataclass(frozen=True, eq=False)
class GatePredictor:
    """Scores of the frozen-gate ReLU network with the coefficients `zeta`.

        f(x) = sum_h g_h(x) <zeta[h], x>

    Parameters
    ----------
    zeta : (H, D) float64 array
        NumPy array or torch tensor; inputs must be of the same kind.
    """

    zeta: Array

    def __call__(self, X: Array, gates: Array) -> Array:
        """(n,) float64 scores of `X` (n, D) under `gates` (n, H) in {0, 1}.

        Raises
        ------
        ValueError
            If shapes disagree or a gate is neither 0 nor 1.
        """
        n_units, n_inputs = (int(size) for size in self.zeta.shape)
        X = as_float64(X, like=self.zeta)
        if X.ndim != 2 or X.shape[1] != n_inputs:
            raise ValueError(
                f"`X` must have shape (n, {n_inputs}), got {tuple(X.shape)}: the predictor was "
                f"made from {n_inputs} inputs, the constant column included"
            )
        gates = _binary(gates, X)
        if gates.shape[1] != n_units:
            raise ValueError(
                f"`gates` must have shape ({X.shape[0]}, {n_units}), got {tuple(gates.shape)}: "
                "the gating must be the one that the limit was solved for"
            )
        return array_namespace(X).sum((X @ self.zeta.T) * gates, axis=1)


@dataclass(frozen=True, eq=False, repr=False)
class FReLULimit(Limit):
    """The group-lasso solution; `zeta` has shape (H, D)."""

    @property
    def predictor(self) -> GatePredictor:
        """The limit as a function of new inputs and gates, at smallest margin 1."""
        return GatePredictor(self.zeta)

    def balanced_weights(self) -> tuple[Array, Array]:
        """Weights w1 (H, D), w2 (H,) of the network of least norm with these coefficients.

            w1[h] = zeta[h] / sqrt(||zeta[h]||),  w2[h] = sqrt(||zeta[h]||),

        so that ||w1||^2 + ||w2||^2 = 2 sum_h ||zeta[h]||. Units with zeta[h] = 0 get zeros.
        """
        xp = array_namespace(self.zeta)
        roots = xp.sqrt(self.unit_norms)
        safe = xp.where(roots > 0, roots, xp.ones_like(roots))
        return self.zeta / safe[:, None], roots


def frelu_program(X: Array, y: Array, gates: Array) -> MaxMarginProgram:
    """The group lasso of data under frozen gates.

        minimise  sum_h ||zeta[h]||   s.t.   y[n] sum_h g[n, h] <zeta[h], x[n]> >= 1

    Parameters
    ----------
    X : (n, D) real array
        Inputs; a bias is a constant column. NumPy array or torch tensor.
    y : (n,) real or integer array
        Labels in {-1, +1}.
    gates : (n, H) boolean, integer or real array
        Gate of every unit on every sample: exactly 0 (closed) or 1 (open).

    Returns
    -------
    MaxMarginProgram
        Column h of its design, and group h, is unit h. A sample on which every gate is closed
        makes the program infeasible, which is for the solver to prove; it is not an error here.

    Raises
    ------
    ValueError
        If shapes disagree, values are not finite, labels are not -1 and +1, or a gate is neither
        0 nor 1.

    References
    ----------
    S. Lippl, L. F. Abbott, S. Chung, "The implicit bias of gradient descent on generalized gated
    linear networks", equation (22).
    """
    X = as_float64(X)
    if X.ndim != 2:
        raise ValueError(f"`X` must have shape (n, D), got {tuple(X.shape)}")
    Z = _binary(gates, X)
    group = array_namespace(X).arange(int(Z.shape[1]), device=X.device)
    return MaxMarginProgram(design=GatedDesign(X=X, Z=Z, group=group), y=as_float64(y, like=X))


def frelu_kernels(X: Array, gates: Array) -> Array:
    """(H, n, n) kernels of the units: `K_h(n, m) = g_h(n) g_h(m) <x_n, x_m>`.

    In their terms the dual program is

        maximise  sum_n lam[n]   s.t.  lam >= 0,  (y lam)^T K_h (y lam) <= 1  for every h.

    They take H n^2 numbers, which the solvers here never form: for looking at and for other
    solvers of multiple-kernel machines.

    Raises
    ------
    ValueError
        If shapes disagree or a gate is neither 0 nor 1.
    """
    X = as_float64(X)
    opened = _binary(gates, X).T
    return opened[:, :, None] * opened[:, None, :] * (X @ X.T)[None, :, :]


def solve_frelu_svm(
    X: Array,
    y: Array,
    gates: Array,
    *,
    solver: str = "interior-point",
    tol: float = 1e-8,
    max_iterations: int | None = None,
    progress: Progress | None = None,
) -> FReLULimit:
    """Where gradient descent takes a two-layer ReLU network with frozen gates, in direction.

    See `frelu_program` for the program, its arguments and what they raise.

    Parameters
    ----------
    X, y, gates
        As in `frelu_program`.
    solver : str
        "interior-point", or "cvxpy:CLARABEL", "cvxpy:ECOS", "cvxpy:SCS" for the literal program.
    tol : float
        Relative duality gap to reach, in (0, 1).
    max_iterations : int, optional
        Iterations of each run of the solver; by default as many as it thinks right.
    progress : callable, optional
        `progress(iteration, gap)`, called once an iteration by the interior point.

    Returns
    -------
    FReLULimit
        With its certificate. Where no coefficients separate the data under these gates (a sample
        on which every gate is closed, too few units) its status is `NOT_SEPARABLE` and `dual`
        holds the multipliers that prove it; call `.require()` to insist on `SOLVED`.

    Examples
    --------
    >>> import numpy as np
    >>> X, y = np.array([[3.0, 4.0], [0.0, -2.0]]), np.array([1.0, -1.0])
    >>> limit = solve_frelu_svm(X, y, np.eye(2))
    >>> limit.status.name, round(limit.objective, 7)
    ('SOLVED', 0.7)
    >>> solve_frelu_svm(X, y, np.array([[1], [0]])).status.name
    'NOT_SEPARABLE'
    """
    program = frelu_program(X, y, gates)
    settings = Settings(tol=tol, max_iterations=max_iterations, progress=progress)
    return frelu_limit(program, solve(program, solver=solver, settings=settings))


def frelu_limit(program: MaxMarginProgram, solution: Solution) -> FReLULimit:
    """Read a solution of a `frelu_program` as a limit."""
    shape = (program.n_groups, int(program.design.X.shape[1]))
    return FReLULimit.from_solution(program, solution, shape)


def _binary(gates: Array, X: Array) -> Array:
    xp = array_namespace(X)
    gates = as_float64(gates, like=X)
    if gates.ndim != 2 or gates.shape[0] != X.shape[0] or gates.shape[1] == 0:
        raise ValueError(
            f"`gates` must have shape ({X.shape[0]}, H) with H >= 1, got {tuple(gates.shape)}: "
            "one row per row of X, one column per unit"
        )
    if not bool(xp.all((gates == 0) | (gates == 1))):
        raise ValueError(
            "`gates` must be exactly 0 (closed) or 1 (open), booleans included: a soft gate has "
            "no place in this program; compare it with a threshold first"
        )
    return gates
