"""The limit of shallow gated linear networks: a hard-margin SVM for every global context."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, ClassVar, Unpack

import numpy as np
from numpy.typing import NDArray

from ..._support.doors import door
from ..._support.solve import (
    Array,
    ArrayLike,
    Certificate,
    DenseArray,
    GatedDesign,
    MaxMarginProgram,
    Solution,
    array_namespace,
    as_float64,
    certify,
    to_numpy,
)
from ...limits.formulation import Formulation, Solving, real_data, solve_limit
from ...limits.limit import Limit
from ...limits.literal import constant, max_margin
from ...limits.predictors import Predictor
from .formulation import checked_contexts

if TYPE_CHECKING:
    import cvxpy

_CONTEXT_ARRAYS = ("global_contexts", "context_objectives", "context_dual_objectives")


@dataclass(frozen=True, eq=False)
class GlobalContextColumns:
    """Column g is one where the contexts of all units are row g of a table.

    An input in a global context that is not in the table has zeros in all columns and so the
    score 0, which is on neither side: nothing in the training data says anything about it, and
    the network's weights for it stay where they were drawn.

    Parameters
    ----------
    table : (G, H) integer array
        Distinct rows.
    """

    table: DenseArray

    def check(self, gates: Array, X: Array) -> Array:
        """(n,) rows of the table, G for one that is not there; as `Columns.check` wants it."""
        rows, shape = self.rows(gates), (int(X.shape[0]), int(self.table.shape[1]))
        if len(rows) != shape[0]:
            raise ValueError(
                f"`contexts` must have shape {shape}, got {len(rows)} rows: one row per row of X"
            )
        return array_namespace(X).asarray(rows, device=X.device)

    def __call__(self, gates: Array) -> Array:
        """(n, G) columns."""
        xp = array_namespace(gates)
        known = xp.arange(int(self.table.shape[0]), device=gates.device)
        return xp.astype(gates[:, None] == known, xp.float64)

    def rows(self, contexts: Array) -> NDArray[np.int64]:
        """(n,) rows of the table that hold these contexts (n, H), G for one that is not there."""
        table, wanted = to_numpy(self.table), to_numpy(contexts)
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


def context_columns(contexts: Array) -> Callable[[Array], NDArray[np.int64]]:
    """Return a function of contexts (n, H): columns (n, G), one at the sample's global context.

    An input in a global context that these training contexts have not has zeros.
    """
    columns = GlobalContextColumns(_global_contexts(contexts)[0])
    return lambda given: to_numpy(columns(columns.rows(given))).astype(np.int64)


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

    Examples
    --------
    >>> X, y, contexts = np.array([[3.0, 4.0], [0.0, 2.0]]), np.array([1, -1]), np.array([[0], [1]])
    >>> limit = ib.solve_shallow_gln_svm(X, y, contexts)
    >>> limit.global_contexts.tolist(), limit.zeta.shape
    ([[0], [1]], (2, 2))
    """

    FORMULATION: ClassVar[str] = "models.gln.shallow:ContextSVMs"
    RECORD = (*Limit.RECORD, *_CONTEXT_ARRAYS)

    global_contexts: DenseArray
    context_objectives: DenseArray
    context_dual_objectives: DenseArray

    @property
    def predictor(self) -> Predictor:
        """The limit as a function of new inputs and contexts; 0 in contexts unseen in training."""
        return Predictor(self.zeta, GlobalContextColumns(self.global_contexts))

    @door()
    def covers(self, contexts: Array) -> NDArray[np.bool_]:
        """(n,) booleans: which rows of `contexts` (n, H) occurred in training."""
        return GlobalContextColumns(self.global_contexts).rows(contexts) < len(self.zeta)


@dataclass(frozen=True)
class ContextSVMs(Formulation[ShallowGLNLimit]):
    """One hard-margin program for a predictor per global context, as one group.

        minimise  (sum_g ||beta[g]||^2)^(1/2)   s.t.   y[n] <beta[g(n)], x[n]> >= 1

    No constraint ties two contexts, so that each beta[g] is the hard-margin SVM of the samples
    in its own context. It takes what `SVMGLN` takes: a row of contexts is a global context.

    References
    ----------
    S. Lippl, L. F. Abbott, S. Chung, "The implicit bias of gradient descent on generalized gated
    linear networks", theorem 3.1, equation (6) for the shallow network of section 4, with the norm
    in place of its square.

    Examples
    --------
    >>> X, y, contexts = np.array([[3.0, 4.0], [0.0, 2.0]]), np.array([1, -1]), np.array([[0], [1]])
    >>> ib.programs.ContextSVMs().program(X, y, contexts).n_groups
    1
    """

    name: ClassVar[str] = "one SVM per context"

    @door()
    def program(self, X: Array, y: Array, gates: Array | None = None) -> MaxMarginProgram:
        """One gate column per global context that occurs, in lexicographic order; one group.

        Raises
        ------
        TypeError, ValueError
            If shapes disagree, values are not finite, labels are not -1 and +1, or a context is
            no integer from 0 on.
        """
        X, y = real_data(X, y)
        contexts, _ = checked_contexts(gates, X)
        columns = GlobalContextColumns(_global_contexts(contexts)[0])
        Z = columns(columns.check(contexts, X))
        xp = array_namespace(X)
        group = xp.zeros((int(Z.shape[1]),), dtype=xp.int64, device=X.device)
        return MaxMarginProgram(GatedDesign(X=X, Z=Z, group=group), y)

    @door()
    def limit(
        self, program: MaxMarginProgram, solution: Solution, gates: Array | None = None
    ) -> ShallowGLNLimit:
        """Read a solution as a predictor (G, D) per global context, with bounds of its own."""
        global_contexts, row = _global_contexts(gates)
        xp, y = array_namespace(program.y), program.y
        bounds = [
            _alone(program, solution, g, xp.asarray(np.flatnonzero(row == g), device=y.device))
            for g in range(len(global_contexts))
        ]
        return ShallowGLNLimit.from_solution(
            program,
            solution,
            tuple(solution.primal.shape),
            global_contexts=xp.asarray(global_contexts, device=y.device),
            context_objectives=as_float64(np.array([b.objective for b in bounds]), like=y),
            context_dual_objectives=as_float64(
                np.array([b.dual_objective for b in bounds]), like=y
            ),
        )

    def _literal(
        self, cp: ModuleType, program: MaxMarginProgram, gates: Array | None
    ) -> cvxpy.Problem:
        X, (global_contexts, row) = constant(program.design.X, "X"), _global_contexts(gates)
        beta = cp.Variable((len(global_contexts), X.shape[1]), name="beta")
        scores = cp.sum(cp.multiply(beta[row, :], X), axis=1)  # <beta[g(n)], x[n]>
        return max_margin(cp.norm(beta, "fro"), program.y, scores)


def _alone(program: MaxMarginProgram, solution: Solution, g: int, rows: Array) -> Certificate:
    """Bounds that the solution proves for global context g alone, whose samples are `rows`."""
    # Empty columns of the design stay out: the norm of the context's own predictor alone.
    design = program.design.subset(rows)
    own = GatedDesign(X=design.X, Z=design.Z[:, g : g + 1], group=program.design.group[:1])
    alone = MaxMarginProgram(design=own, y=program.y[rows])
    return certify(alone, solution.primal[g : g + 1, :], solution.dual[rows])


@door()
def solve_shallow_gln_svm(
    X: ArrayLike, y: ArrayLike, contexts: ArrayLike, **solving: Unpack[Solving]
) -> ShallowGLNLimit:
    """Solve for the limit direction of gradient descent on a predictor per global context.

    Parameters
    ----------
    X : (n, D) array
        Inputs.
    y : (n,) array
        Labels in {-1, +1}.
    contexts : (n, H) array of int
        Context of each sample in each unit, in 0 .. C-1.
    **solving
        Keywords `solver`, `tol`, `max_iterations`, `progress` and `threads` of
        `ib.limits.Solving`. The gap is that of the whole program: a context whose optimum is a
        small share of it may have a larger one of its own.

    Returns
    -------
    ShallowGLNLimit
        With its certificate; call `.require()` to insist on `SOLVED`. Its predictor scores
        inputs in contexts that did not occur in training with 0.
        `ContextSVMs.literal` states the program in cvxpy.

    Raises
    ------
    ValueError
        If shapes disagree, values are not finite, labels are not -1 and +1, or a context is no
        integer from 0 on.

    Examples
    --------
    >>> X, y, contexts = np.array([[3.0, 4.0], [0.0, 2.0]]), np.array([1, -1]), np.array([[0], [1]])
    >>> limit = ib.solve_shallow_gln_svm(X, y, contexts)
    >>> np.round(limit.context_objectives, 6).tolist()
    [0.2, 0.5]
    """
    return solve_limit(ContextSVMs(), X, y, contexts, **solving)


def _global_contexts(contexts: Array) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The global contexts (G, H) that occur, in lexicographic order, and each sample's row (n,)."""
    distinct, row = np.unique(to_numpy(contexts), axis=0, return_inverse=True)
    return distinct.astype(np.int64), row.ravel()
