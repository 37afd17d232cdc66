"""The group lasso over units: the limit of two-layer ReLU networks with frozen gates."""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, ClassVar, Unpack

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
    require_inputs,
)
from ..formulation import Solving, real_data, solve_limit
from ..limit import UnitsLimit
from ..literal import constant, max_margin
from ..predictors import GateColumns, Predictor, checked_columns
from .normed import NormedFormulation

if TYPE_CHECKING:
    import cvxpy


class FReLULimit(UnitsLimit):
    """The group-lasso solution; `zeta` has shape (H, D).

    Examples
    --------
    >>> X, y = np.array([[2.0, 0.0], [0.0, 1.0]]), np.array([1.0, -1.0])
    >>> limit = ib.solve_frelu_svm(X, y, np.eye(2))
    >>> limit.zeta.shape, limit.predictor.predict(X, np.eye(2)).tolist()
    ((2, 2), [1, -1])
    """

    FORMULATION: ClassVar[str] = "limits.exact.frelu:SVMFReLU"

    @property
    def predictor(self) -> Predictor:
        """The limit as a function of new inputs and gates, at smallest margin 1."""
        return Predictor(self.zeta, GateColumns(int(self.zeta.shape[0]), binary=True))


@parameters(norm=anything)
@dataclass(frozen=True)
class SVMFReLU(NormedFormulation[FReLULimit]):
    """The group lasso of data under frozen gates.

        minimise  sum_h ||zeta[h]||   s.t.   y[n] sum_h g[n, h] <zeta[h], x[n]> >= 1

    Gates are an (n, H) array of exactly 0 (closed) and 1 (open), booleans included; those of leaky
    units have their slope, one number in (0, 1), in place of 0. A sample on which every gate is 0
    makes the program infeasible, which is for the solver to prove; it is not an error here.

    Parameters
    ----------
    norm : str or Norm
        Of zeta (H, D); by default "rows", the sum above: see `solve_frelu_svm`.

    References
    ----------
    S. Lippl, L. F. Abbott, S. Chung, "The implicit bias of gradient descent on generalized gated
    linear networks", equation (22), as printed.

    Examples
    --------
    >>> X, y = np.array([[2.0, 0.0], [0.0, 1.0]]), np.array([1.0, -1.0])
    >>> limit = ib.limits.solve_limit(ib.programs.SVMFReLU(), X, y, np.eye(2))
    >>> round(limit.objective, 6)
    1.5
    """

    name: ClassVar[str] = "SVM-FReLU"
    OWN: ClassVar[NormName] = "rows"

    norm: Norm | NormName = "rows"

    @door()
    def program(self, X: Array, y: Array, gates: Array | None = None) -> MaxMarginProgram:
        """Build the program with unit h as column h of its design and as group h.

        Raises
        ------
        ValueError
            If shapes disagree, values are not finite, labels are not -1 and +1, or a gate is
            neither 1 nor the one value of closed ones.
        """
        X, y = real_data(X, y)
        require_inputs(X)
        Z, _ = checked_columns("gates", gates, X, binary=True)
        group = array_namespace(X).arange(int(Z.shape[1]), device=X.device)
        return MaxMarginProgram(design=GatedDesign(X=X, Z=Z, group=group), y=y)

    @door()
    def limit(
        self, program: MaxMarginProgram, solution: Solution, gates: Array | None = None
    ) -> FReLULimit:
        """Read a solution as coefficients (H, D)."""
        shape = (program.n_groups, int(program.design.X.shape[1]))
        norm = Norm.of(self.norm).name
        return FReLULimit.from_solution(program, solution, shape, norm=norm)

    def _literal(
        self, cp: ModuleType, program: MaxMarginProgram, gates: Array | None
    ) -> cvxpy.Problem:
        X, g = constant(program.design.X, "X"), constant(program.design.Z, "g")
        zeta = cp.Variable((g.shape[1], X.shape[1]), name="zeta")
        scores = cp.sum(cp.multiply(g, X @ zeta.T), axis=1)  # sum_h g[n, h] <zeta[h], x[n]>
        norm: cvxpy.Expression = cp.sum(cp.norm(zeta, 2, axis=1))
        stated: list[cvxpy.Constraint] = []
        if not self.is_own:
            norm, stated = self._stated([zeta[[h], :] for h in range(g.shape[1])])
        return max_margin(norm, program.y, scores, stated)


@door(norm=anything)
def solve_frelu_svm(
    X: ArrayLike,
    y: ArrayLike,
    gates: ArrayLike,
    *,
    norm: Norm | NormName = "rows",
    **solving: Unpack[Solving],
) -> FReLULimit:
    """Solve the group lasso, the limit of two-layer ReLU networks with frozen gates.

    Gradient descent takes the network in its direction. Steepest descent in other norms on the two
    layers has other norms of the coefficients: that of the first layer, where the second is
    measured by its largest entry, as sign descent, Signum and Adam measure it.

    Parameters
    ----------
    X : (n, D) real array
        NumPy array or torch tensor; a bias is a constant column.
    y : (n,) array
        Labels in {-1, +1}.
    gates : (n, H) array
        Exactly 0 (closed) or 1 (open), booleans included. Of a leaky ReLU closed gates are its
        slope, one number in (0, 1).
    norm : str or Norm
        Of zeta (H, D): "rows", gradient descent on both layers; "linf", sign descent, Signum or
        Adam without its constant on both; "spectral", Muon on the first layer and any of these on
        the second; "muon", Muon on both; "l2", gradient descent on the first and Adam or signs on
        the second. Margins reach the optimum's at best: training is known to reach points of first
        order (KKT) alone.
    **solving
        `solver`, `tol`, `max_iterations`, `progress`, `threads`: see `Solving`.

    Returns
    -------
    FReLULimit
        With its certificate. Where no coefficients separate the data under these gates (a sample
        on which every gate is closed, too few units) its status is `NOT_SEPARABLE` and `dual`
        holds the multipliers that prove it; call `.require()` to insist on `SOLVED`.
        `SVMFReLU.literal` states the program in cvxpy.

    Examples
    --------
    >>> X, y = np.array([[3.0, 4.0], [0.0, -2.0]]), np.array([1.0, -1.0])
    >>> limit = ib.solve_frelu_svm(X, y, np.eye(2))
    >>> limit.status.name, round(limit.objective, 7)
    ('SOLVED', 0.7)
    >>> ib.solve_frelu_svm(X, y, np.array([[1], [0]])).status.name
    'NOT_SEPARABLE'
    >>> round(ib.solve_frelu_svm(X, y, np.array([[1.0, 0.1], [0.1, 1.0]])).objective, 4)
    0.6472
    """
    return solve_limit(SVMFReLU(norm), X, y, gates, **solving)
