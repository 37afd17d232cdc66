"""The limit of shallow gated linear networks: a hard-margin SVM for every global context."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._solve import (
    Array,
    GatedDesign,
    MaxMarginProgram,
    Progress,
    Settings,
    Solution,
    array_namespace,
    as_float64,
    certify,
    solve,
    to_numpy,
)
from ...limits.limit import Limit
from .formulation import gln_program

__all__ = [
    "ShallowGLNLimit",
    "ShallowGLNPredictor",
    "shallow_gln_limit",
    "shallow_gln_program",
    "solve_shallow_gln_svm",
]

_CONTEXT_ARRAYS = ("global_contexts", "context_objectives", "context_dual_objectives")


@dataclass(frozen=True, eq=False)
class ShallowGLNPredictor:
    """Scores `f(x) = <zeta[g(x)], x>`, g(x) the global context of x: the contexts of all units.

    A global context that is not in the table has no predictor. Its inputs get the score 0, which
    is on neither side: nothing in the training data says anything about them, and the network's
    weights for them stay where they were drawn.

    Parameters
    ----------
    zeta : (G, D) float64 array
        NumPy array or torch tensor; inputs must be of the same kind.
    global_contexts : (G, H) integer array
        Distinct rows; row g belongs to zeta[g].
    """

    zeta: Array
    global_contexts: Array

    def __call__(self, X: Array, contexts: Array) -> Array:
        """(n,) float64 scores of `X` (n, D) in `contexts` (n, H) integers.

        Raises
        ------
        ValueError
            If shapes disagree.
        """
        xp = array_namespace(self.zeta)
        X = as_float64(X, like=self.zeta)
        n_known, n_inputs = (int(size) for size in self.zeta.shape)
        if X.ndim != 2 or X.shape[1] != n_inputs:
            raise ValueError(
                f"`X` must have shape (n, {n_inputs}), got {tuple(X.shape)}: the predictor was "
                f"made from {n_inputs} inputs, the constant column included"
            )
        rows = self._rows(contexts)
        if rows.shape[0] != X.shape[0]:
            raise ValueError(
                f"`contexts` must have {X.shape[0]} rows, got {tuple(contexts.shape)}: one row "
                "per row of X"
            )
        rows = xp.asarray(rows, device=X.device)
        scores = xp.sum(X * self.zeta[xp.clip(rows, max=n_known - 1)], axis=1)
        return xp.where(rows < n_known, scores, xp.zeros_like(scores))

    def covers(self, contexts: Array) -> NDArray[np.bool_]:
        """(n,) booleans: which rows of `contexts` (n, H) are global contexts with a predictor."""
        return self._rows(contexts) < int(self.global_contexts.shape[0])

    def _rows(self, contexts: Array) -> NDArray[np.int64]:
        """(n,) rows of zeta, G for a context without one."""
        table, wanted = to_numpy(self.global_contexts), to_numpy(contexts)
        if wanted.ndim != 2 or wanted.shape[1] != table.shape[1]:
            raise ValueError(
                f"`contexts` must have shape (n, {table.shape[1]}), got {wanted.shape}: one "
                "column per unit"
            )
        distinct, which = np.unique(np.vstack([table, wanted]), axis=0, return_inverse=True)
        which = which.ravel()
        row = np.full(len(distinct), len(table))
        row[which[: len(table)]] = np.arange(len(table))
        return row[which[len(table) :]]


@dataclass(frozen=True, eq=False, repr=False)
class ShallowGLNLimit(Limit):
    """The shallow GLN's solution; `zeta` has shape (G, D), a row per global context that occurs.

    The program has one group, so that `unit_norms` and `dual_norms` have one entry.

    Attributes
    ----------
    global_contexts : (G, H) integer array
        The distinct rows of the training contexts, in lexicographic order.
    context_objectives, context_dual_objectives : (G,) float64 arrays
        Certified bounds of each context's own hard-margin optimum `min ||beta||`; the squares of
        the optima sum to the square of the whole program's. inf above and 0 below where the
        solution says nothing: if the data are not separable, perhaps nothing but the contexts
        that are not.
    """

    global_contexts: Array
    context_objectives: Array
    context_dual_objectives: Array

    @property
    def predictor(self) -> ShallowGLNPredictor:
        """The limit as a function of new inputs and contexts; 0 in contexts unseen in training."""
        return ShallowGLNPredictor(self.zeta, self.global_contexts)

    def to_dict(self) -> dict[str, Any]:
        """As `Limit.to_dict`, with the contexts and the bounds of their own optima."""
        return super().to_dict() | {
            name: to_numpy(getattr(self, name)).tolist() for name in _CONTEXT_ARRAYS
        }


def shallow_gln_program(X: Array, y: Array, contexts: Array) -> MaxMarginProgram:
    """One hard-margin program for a predictor per global context, as one group.

        minimise  (sum_g ||beta[g]||^2)^(1/2)   s.t.   y[n] <beta[g(n)], x[n]> >= 1

    No constraint ties two contexts, so that each beta[g] is the hard-margin SVM of the samples
    in its own context.

    Parameters
    ----------
    X : (n, D) real array
        Inputs; a bias is a constant column. NumPy array or torch tensor.
    y : (n,) real or integer array
        Labels in {-1, +1}.
    contexts : (n, H) integer array
        Context of every sample in every unit; the row is its global context.

    Returns
    -------
    MaxMarginProgram
        One gate column per global context that occurs, in lexicographic order; one group.

    Raises
    ------
    TypeError, ValueError
        As `gln_program`.

    References
    ----------
    S. Lippl, L. F. Abbott, S. Chung, "The implicit bias of gradient descent on generalized gated
    linear networks": the shallow network of section 4.
    """
    checked = gln_program(X, y, contexts)
    X, y = checked.design.X, checked.y
    global_contexts, row = _global_contexts(contexts)
    xp = array_namespace(X)
    columns = xp.arange(len(global_contexts), device=X.device)
    Z = xp.astype(xp.asarray(row, device=X.device)[:, None] == columns[None, :], X.dtype)
    return MaxMarginProgram(GatedDesign(X=X, Z=Z, group=xp.zeros_like(columns)), y)


def solve_shallow_gln_svm(
    X: Array,
    y: Array,
    contexts: Array,
    *,
    solver: str = "interior-point",
    tol: float = 1e-8,
    max_iterations: int | None = None,
    progress: Progress | None = None,
) -> ShallowGLNLimit:
    """Where gradient descent takes a linear predictor per global context, in direction.

    Parameters
    ----------
    X, y, contexts
        As in `shallow_gln_program`, which says what they raise.
    solver : str
        "interior-point", or "cvxpy:CLARABEL", "cvxpy:ECOS", "cvxpy:SCS", "cvxpy:OSQP".
    tol : float
        Relative duality gap of the whole program to reach, in (0, 1). A context whose optimum
        is a small share of the whole may have a larger gap of its own.
    max_iterations : int, optional
        Iterations of each run of the solver; by default as many as it thinks right.
    progress : callable, optional
        `progress(iteration, gap)`, called once an iteration by the interior point.

    Returns
    -------
    ShallowGLNLimit
        With its certificate; call `.require()` to insist on `SOLVED`. Its predictor scores
        inputs in contexts that did not occur in training with 0.

    Examples
    --------
    >>> import numpy as np
    >>> X, y, contexts = np.array([[3.0, 4.0], [0.0, 2.0]]), np.array([1, -1]), np.array([[0], [1]])
    >>> limit = solve_shallow_gln_svm(X, y, contexts)
    >>> np.round(limit.context_objectives, 6).tolist()
    [0.2, 0.5]
    """
    program = shallow_gln_program(X, y, contexts)
    settings = Settings(tol=tol, max_iterations=max_iterations, progress=progress)
    return shallow_gln_limit(program, solve(program, solver=solver, settings=settings), contexts)


def shallow_gln_limit(
    program: MaxMarginProgram, solution: Solution, contexts: Array
) -> ShallowGLNLimit:
    """Read a solution of the `shallow_gln_program` of `contexts` (n, H) as a limit."""
    global_contexts, row = _global_contexts(contexts)
    xp, y = array_namespace(program.y), program.y
    bounds = []
    for g in range(len(global_contexts)):
        rows = xp.asarray(np.flatnonzero(row == g), device=y.device)
        # Empty columns of the design stay out: the norm of the context's own predictor alone.
        design = program.design.subset(rows)
        alone = MaxMarginProgram(
            design=GatedDesign(
                X=design.X, Z=design.Z[:, g : g + 1], group=program.design.group[:1]
            ),
            y=y[rows],
        )
        bounds.append(certify(alone, solution.primal[g : g + 1, :], solution.dual[rows]))
    return ShallowGLNLimit.from_solution(
        program,
        solution,
        tuple(solution.primal.shape),
        global_contexts=xp.asarray(global_contexts, device=y.device),
        context_objectives=as_float64(np.array([b.objective for b in bounds]), like=y),
        context_dual_objectives=as_float64(np.array([b.dual_objective for b in bounds]), like=y),
    )


def _global_contexts(contexts: Array) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The global contexts (G, H) that occur, in lexicographic order, and each sample's row (n,)."""
    distinct, row = np.unique(to_numpy(contexts), axis=0, return_inverse=True)
    return distinct.astype(np.int64), row.ravel()
