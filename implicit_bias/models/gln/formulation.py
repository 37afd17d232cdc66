"""SVM-GLN: the limit of two-layer gated linear networks, and of deeper ones with linear tops."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral

from ..._solve import (
    Array,
    GatedDesign,
    MaxMarginProgram,
    Progress,
    Settings,
    Solution,
    array_namespace,
    as_float64,
    is_torch_array,
    solve,
    to_numpy,
)
from ...limits.limit import Limit
from ...limits.predictors import ContextPredictor

__all__ = ["GLNLimit", "gln_limit", "gln_program", "solve_gln_svm"]


@dataclass(frozen=True, eq=False, repr=False)
class GLNLimit(Limit):
    """The SVM-GLN solution; `zeta` has shape (H, C, D)."""

    @property
    def predictor(self) -> ContextPredictor:
        """The limit as a function of new inputs and contexts, at smallest margin 1."""
        return ContextPredictor(self.zeta)

    def balanced_weights(self) -> tuple[Array, Array]:
        """Weights w1 (H, C, D), w2 (H,) of the network of least norm with these coefficients.

            w1[h] = zeta[h] / sqrt(||zeta[h]||),  w2[h] = sqrt(||zeta[h]||),

        so that ||w1||^2 + ||w2||^2 = 2 sum_h ||zeta[h]||. Units with zeta[h] = 0 get zeros.
        """
        xp = array_namespace(self.zeta)
        roots = xp.sqrt(self.unit_norms)
        safe = xp.where(roots > 0, roots, xp.ones_like(roots))
        return self.zeta / safe[:, None, None], roots


def gln_program(
    X: Array, y: Array, contexts: Array, *, n_contexts: int | None = None
) -> MaxMarginProgram:
    """The SVM-GLN program of data in contexts.

        minimise  sum_h ||zeta[h]||_F   s.t.   y[n] sum_h <zeta[h, c[n, h]], x[n]> >= 1

    Parameters
    ----------
    X : (n, D) real array
        Inputs; a bias is a constant column. NumPy array or torch tensor.
    y : (n,) real or integer array
        Labels in {-1, +1}.
    contexts : (n, H) integer array
        Context of every sample in every unit, in 0 .. C-1.
    n_contexts : int, optional
        C; by default one more than the largest entry of `contexts`.

    Returns
    -------
    MaxMarginProgram
        Column h * C + c of its design is context c of unit h; group h is unit h.

    Raises
    ------
    TypeError
        If `contexts` does not hold integers.
    ValueError
        If shapes disagree, values are not finite, labels are not -1 and +1, or a context is out
        of range.

    References
    ----------
    S. Lippl, L. F. Abbott, S. Chung, "The implicit bias of gradient descent on generalized gated
    linear networks", equation (20) and proposition B.8.
    """
    X = as_float64(X)
    xp = array_namespace(X)
    y = as_float64(y, like=X)
    if not is_torch_array(X):
        contexts = to_numpy(contexts)
    contexts = xp.asarray(contexts, device=X.device)
    if not xp.isdtype(contexts.dtype, "integral"):
        raise TypeError(f"`contexts` must hold integers in 0 .. C-1, got dtype {contexts.dtype}")
    if X.ndim != 2:
        raise ValueError(f"`X` must have shape (n, D), got {tuple(X.shape)}")
    if contexts.ndim != 2 or contexts.shape[0] != X.shape[0] or contexts.shape[1] == 0:
        raise ValueError(
            f"`contexts` must have shape ({X.shape[0]}, H) with H >= 1, got "
            f"{tuple(contexts.shape)}: one row per row of X, one column per unit"
        )
    if X.shape[0] == 0:
        raise ValueError("`X` has no rows: give at least one sample")
    largest = int(xp.max(contexts))
    if int(xp.min(contexts)) < 0:
        raise ValueError(f"`contexts` must not be negative, got {int(xp.min(contexts))}")
    if n_contexts is not None and not isinstance(n_contexts, Integral):
        raise TypeError(f"`n_contexts` must be an integer, got {n_contexts!r}")
    if n_contexts is None:
        n_contexts = largest + 1
    if largest >= n_contexts:
        raise ValueError(f"`contexts` holds {largest}, but `n_contexts` is {n_contexts}")
    n_units = int(contexts.shape[1])
    columns = xp.arange(n_units * n_contexts, device=X.device)
    # Column h C + c is one exactly where unit h is in context c.
    owner, context = columns // n_contexts, columns % n_contexts
    Z = xp.astype(contexts[:, owner] == context[None, :], X.dtype)
    return MaxMarginProgram(design=GatedDesign(X=X, Z=Z, group=owner), y=y)


def solve_gln_svm(
    X: Array,
    y: Array,
    contexts: Array,
    *,
    n_contexts: int | None = None,
    solver: str = "interior-point",
    tol: float = 1e-8,
    max_iterations: int | None = None,
    progress: Progress | None = None,
) -> GLNLimit:
    """Where gradient descent takes a two-layer gated linear network, in direction.

    Solves SVM-GLN, see `gln_program` for the program, its arguments and what they raise.

    Parameters
    ----------
    X, y, contexts, n_contexts
        As in `gln_program`.
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
    GLNLimit
        With its certificate; call `.require()` to insist on `SOLVED`.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[3.0, 4.0]])
    >>> limit = solve_gln_svm(X, np.array([1.0]), np.array([[0]]))
    >>> limit.status.name, round(limit.objective, 9)
    ('SOLVED', 0.2)
    """
    program = gln_program(X, y, contexts, n_contexts=n_contexts)
    settings = Settings(tol=tol, max_iterations=max_iterations, progress=progress)
    return gln_limit(program, solve(program, solver=solver, settings=settings))


def gln_limit(program: MaxMarginProgram, solution: Solution) -> GLNLimit:
    """Read a solution of a `gln_program` as a limit."""
    n_units = program.n_groups
    n_columns = int(program.design.Z.shape[1])
    shape = (n_units, n_columns // n_units, int(program.design.X.shape[1]))
    return GLNLimit.from_solution(program, solution, shape)
