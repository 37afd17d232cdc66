"""SVM-GLN: the limit of two-layer gated linear networks, and of deeper ones with linear tops."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from types import ModuleType
from typing import TYPE_CHECKING, ClassVar, Self, Unpack

from ..._support.doors import door, parameters
from ..._support.kinds import anything
from ..._support.solve import (
    Array,
    ArrayLike,
    GatedDesign,
    MaxMarginProgram,
    Norm,
    NormName,
    Solution,
    array_namespace,
    is_torch_array,
    require_inputs,
    require_real,
    require_sizes,
    to_numpy,
)
from ...limits.exact.normed import NormedFormulation
from ...limits.formulation import Solving, real_data, solve_limit
from ...limits.limit import Limit, UnitsLimit
from ...limits.literal import constant, max_margin
from ...limits.predictors import ContextColumns, ContextPredictor, count_units

if TYPE_CHECKING:
    import cvxpy


class GLNLimit(UnitsLimit):
    """The SVM-GLN solution; `zeta` has shape (H, C, D).

    Examples
    --------
    >>> contexts = np.array([[0, 1]])
    >>> limit = ib.solve_gln_svm(np.array([[3.0, 4.0]]), np.ones(1), contexts)
    >>> limit.zeta.shape, limit.predictor(np.array([[3.0, 4.0]]), contexts).round(6).tolist()
    ((2, 2, 2), [1.0])
    """

    FORMULATION: ClassVar[str] = "models.gln.formulation:SVMGLN"

    @property
    def predictor(self) -> ContextPredictor:
        """The limit as a function of new inputs and contexts, at smallest margin 1."""
        return ContextPredictor(self.zeta)


@parameters(norm=anything)
@dataclass(frozen=True)
class SVMGLN(NormedFormulation[GLNLimit]):
    """The SVM-GLN program of data in contexts.

        minimise  sum_h ||zeta[h]||_F   s.t.   y[n] sum_h <zeta[h, c[n, h]], x[n]> >= 1

    The gates are contexts, an (n, H) array of integers in 0 .. C-1. Row h C + c of the variable of
    `literal` is zeta[h, c].

    Parameters
    ----------
    n_contexts : int, optional
        C; by default one more than the largest context that is given.
    norm : str or Norm
        Of zeta as a matrix (H, C D), one row a unit; by default "rows", the sum above: see
        `solve_gln_svm`.

    References
    ----------
    S. Lippl, L. F. Abbott, S. Chung, "The implicit bias of gradient descent on generalized gated
    linear networks", equation (20), as printed, and proposition B.8, which leaves out that a dead
    unit has a dual norm of at most 1.

    Examples
    --------
    >>> contexts = np.array([[0, 1]])
    >>> program = ib.programs.SVMGLN(n_contexts=2).program(
    ...     np.array([[3.0, 4.0]]), np.ones(1), contexts
    ... )
    >>> program.n_groups
    2
    """

    name: ClassVar[str] = "SVM-GLN"

    OWN: ClassVar[NormName] = "rows"

    n_contexts: int | None = None
    norm: Norm | NormName = "rows"

    @classmethod
    @door()
    def of(cls, limit: Limit) -> Self:
        """Return the formulation of as many contexts as a limit has, in its norm."""
        return cls(int(limit.zeta.shape[1]), limit.norm or cls.OWN)

    @door()
    def program(self, X: Array, y: Array, gates: Array | None = None) -> MaxMarginProgram:
        """Column h * C + c of its design is context c of unit h; group h is unit h.

        Raises
        ------
        TypeError
            If the contexts are not integers.
        ValueError
            If shapes disagree, values are not finite, labels are not -1 and +1, or a context is
            out of range.
        """
        X, y = real_data(X, y)
        xp = array_namespace(X)
        contexts, n_contexts = checked_contexts(gates, X, self.n_contexts)
        n_units = int(contexts.shape[1])
        sizes = {"n_contexts": n_contexts, "gates": n_units}
        require_sizes("columns", sizes, (n_units, n_contexts, sum(map(int, X.shape))))
        Z = ContextColumns(n_units, n_contexts)(contexts)
        owner = xp.arange(n_units * n_contexts, device=X.device) // n_contexts
        design = GatedDesign(X=X, Z=Z, group=owner)
        return MaxMarginProgram(design=design, y=y)

    @door()
    def limit(
        self, program: MaxMarginProgram, solution: Solution, gates: Array | None = None
    ) -> GLNLimit:
        """Read a solution as coefficients (H, C, D)."""
        n_units = program.n_groups
        n_columns = int(program.design.Z.shape[1])
        shape = (n_units, n_columns // n_units, int(program.design.X.shape[1]))
        norm = Norm.of(self.norm).name
        return GLNLimit.from_solution(program, solution, shape, norm=norm)

    def _literal(
        self, cp: ModuleType, program: MaxMarginProgram, gates: Array | None
    ) -> cvxpy.Problem:
        X, contexts = constant(program.design.X, "X"), to_numpy(gates)
        n_units = contexts.shape[1]
        n_contexts = int(program.design.Z.shape[1]) // n_units
        zeta = cp.Variable((n_units * n_contexts, X.shape[1]), name="zeta")
        units = [zeta[h * n_contexts : (h + 1) * n_contexts, :] for h in range(n_units)]
        scores = cp.sum(
            [  # sum_h <zeta[h, c[n, h]], x[n]>
                cp.sum(cp.multiply(unit[contexts[:, h], :], X), axis=1)
                for h, unit in enumerate(units)
            ]
        )
        norm: cvxpy.Expression = cp.sum([cp.norm(unit, "fro") for unit in units])
        stated: list[cvxpy.Constraint] = []
        if not self.is_own:
            rows = [cp.reshape(one, (1, n_contexts * X.shape[1]), order="C") for one in units]
            norm, stated = self._stated(rows)
        return max_margin(norm, program.y, scores, stated)


def checked_contexts(contexts: Array, X: Array, n_contexts: int | None = None) -> tuple[Array, int]:
    """Contexts (n, H) of the kind of `X`, and C; raises as `SVMGLN.program` says."""
    xp = array_namespace(X)
    require_real("contexts", contexts, "integers in 0 .. C-1")
    if not is_torch_array(X):
        contexts = to_numpy(contexts)
    contexts = xp.asarray(contexts, device=X.device)
    if not xp.isdtype(contexts.dtype, "integral"):
        raise TypeError(f"`contexts` must hold integers in 0 .. C-1, got dtype {contexts.dtype}")
    require_inputs(X)
    count_units("contexts", contexts, int(X.shape[0]))
    least, largest = int(xp.min(contexts)), int(xp.max(contexts))
    if least < 0:
        raise ValueError(f"`contexts` must not be negative, got {least}")
    if n_contexts is None:
        return contexts, largest + 1
    if not isinstance(n_contexts, Integral):
        raise TypeError(f"`n_contexts` must be an integer, got {n_contexts!r}")
    if largest >= n_contexts:
        raise ValueError(f"`contexts` holds {largest}, but `n_contexts` is {n_contexts}")
    return contexts, int(n_contexts)


@door(norm=anything)
def solve_gln_svm(
    X: ArrayLike,
    y: ArrayLike,
    contexts: ArrayLike,
    *,
    n_contexts: int | None = None,
    norm: Norm | NormName = "rows",
    **solving: Unpack[Solving],
) -> GLNLimit:
    """Solve for the limit direction of gradient descent on a two-layer gated linear network.

    Parameters
    ----------
    X : (n, D) array of real numbers
        Inputs, NumPy or torch; solved in float64.
    y : (n,) array
        Labels in {-1, +1}.
    contexts : (n, H) array of int
        Context of each sample in each of H units, in 0 .. C-1.
    n_contexts : int, optional
        C; by default one more than the largest context that is given.
    norm : str or Norm
        Of zeta as a matrix (H, C D), one row a unit: "rows", gradient descent on both layers;
        "linf", sign descent, Signum or Adam without its constant on both; "spectral", Muon on the
        first layer, as such a matrix, and any of these on the second; "muon", Muon on both; "l2",
        gradient descent on the first and Adam or signs on the second.
    **solving
        Keywords `solver`, `tol`, `max_iterations`, `progress` and `threads` of
        `ib.limits.Solving`.

    Returns
    -------
    GLNLimit
        `zeta` (H, C, D), `dual`, `margins` and `support` (n,), `unit_norms` and `dual_norms` (H,),
        in float64 and of the kind of `X`, and the certificate; call `.require()` to insist on
        `SOLVED`.
        `SVMGLN.literal` states the program in cvxpy.

    Raises
    ------
    ValueError
        If shapes disagree, values are not finite, labels are not -1 and +1, or a context is out
        of range.

    References
    ----------
    S. Lippl, L. F. Abbott, S. Chung, "The implicit bias of gradient descent on generalized gated
    linear networks", equation (20).

    Examples
    --------
    >>> X = np.array([[3.0, 4.0]])
    >>> limit = ib.solve_gln_svm(X, np.array([1.0]), np.array([[0]]))
    >>> limit.status.name, round(limit.objective, 9)
    ('SOLVED', 0.2)
    """
    return solve_limit(SVMGLN(n_contexts, norm), X, y, contexts, **solving)
