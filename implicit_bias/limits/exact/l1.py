"""The L1 margin over features: the limit where every feature has a weight on either side."""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, ClassVar, Unpack

from ..._support.doors import door
from ..._support.solve import (
    Array,
    ArrayLike,
    DenseArray,
    GatedDesign,
    MaxMarginProgram,
    Solution,
    array_namespace,
    as_float64,
    require_columns,
    require_finite,
    require_real,
)
from ..formulation import Formulation, Solving, real_data, solve_limit
from ..limit import Limit
from ..literal import constant, max_margin
from ..predictors import DecisionFunction

if TYPE_CHECKING:
    import cvxpy


@dataclass(frozen=True, eq=False)
class L1Predictor(DecisionFunction):
    """Scores of features: `f = sum_j features[j] zeta[j]`."""

    zeta: DenseArray

    def __call__(self, features: ArrayLike, gates: ArrayLike | None = None) -> DenseArray:
        """Return the scores (n,), in float64, of `features` (n, m); there are no gates.

        Raises
        ------
        ValueError
            If the shape is not that.
        """
        require_real("features", features)
        Phi = as_float64(features, like=self.zeta)
        require_columns("features", Phi, int(self.zeta.shape[0]), "one column a coefficient")
        scores: DenseArray = Phi @ self.zeta
        return scores


class L1Limit(Limit):
    """The L1-margin solution; `zeta` has shape (m,), one coefficient a feature.

    Examples
    --------
    >>> limit = ib.limits.solve_l1_svm(np.array([[2.0, 1.0]]), np.array([1.0]), solver="highs")
    >>> limit.zeta.tolist(), limit.predictor.decision_function([[4.0, 0.0]]).tolist()
    ([0.5, 0.0], [2.0])
    """

    FORMULATION: ClassVar[str] = "limits.exact.l1:L1Margin"

    @property
    def predictor(self) -> L1Predictor:
        """The limit as a function of new features, at smallest margin 1."""
        return L1Predictor(self.zeta)


@dataclass(frozen=True)
class L1Margin(Formulation[L1Limit]):
    """The margin in the L1 norm over features.

        minimise  sum_j |b[j]|   s.t.   y[n] sum_j features[n, j] b[j] >= 1

    It is the limit of two-layer networks `f = sum_j u_j v_j features[j]`: diagonal linear ones, and
    those of constant experts behind gates, whose features are the gates. There are no gates
    beside the features, and any others are ignored.

    References
    ----------
    S. Gunasekar, J. D. Lee, D. Soudry, N. Srebro, "Implicit bias of gradient descent on linear
    convolutional networks", theorem 2 and corollary 1, whose norm is this one at depth 2, by
    analogy: of Fourier coefficients, where here are features.

    Examples
    --------
    >>> X, y = np.array([[2.0, 0.0], [0.0, 1.0]]), np.array([1.0, -1.0])
    >>> round(ib.limits.solve_limit(ib.programs.L1Margin(), X, y).objective, 6)
    1.5
    """

    name: ClassVar[str] = "L1 margin"

    @door()
    def program(self, X: Array, y: Array, gates: Array | None = None) -> MaxMarginProgram:
        """Build the program of a constant input, with a gate column and group a feature.

        Raises
        ------
        ValueError
            If shapes disagree, values are not finite, or labels are not -1 and +1.
        """
        features, y = real_data(X, y, "features")
        if features.ndim != 2 or features.shape[0] == 0 or features.shape[1] == 0:
            raise ValueError(
                f"`features` must have shape (n, m) with n, m >= 1, got {tuple(features.shape)}"
            )
        xp = array_namespace(features)
        require_finite("features", features)
        group = xp.arange(int(features.shape[1]), device=features.device)
        design = GatedDesign(X=xp.ones_like(features[:, :1]), Z=features, group=group)
        return MaxMarginProgram(design=design, y=y)

    @door()
    def limit(
        self, program: MaxMarginProgram, solution: Solution, gates: Array | None = None
    ) -> L1Limit:
        """Read a solution as coefficients (m,)."""
        return L1Limit.from_solution(program, solution, (program.n_groups,))

    def _literal(
        self, cp: ModuleType, program: MaxMarginProgram, gates: Array | None
    ) -> cvxpy.Problem:
        features = constant(program.design.Z, "features")
        b = cp.Variable(features.shape[1], name="b")
        return max_margin(cp.norm(b, 1), program.y, features @ b)


@door()
def solve_l1_svm(features: ArrayLike, y: ArrayLike, **solving: Unpack[Solving]) -> L1Limit:
    """Solve the L1 margin over features, with a certificate.

    Optima need not be unique: equal columns share a coefficient in any way. The interior point
    ends in the interior of the set of optima, `solver="highs"` at a vertex with at most n nonzero
    coefficients; objective and certificate are the same.

    Parameters
    ----------
    features : (n, m) real array
        NumPy array or torch tensor.
    y : (n,) array
        Labels in {-1, +1}.
    **solving
        See `Solving`; also `solver="highs"`.

    Returns
    -------
    L1Limit
        With its certificate; call `.require()` to insist on `SOLVED`.

    Examples
    --------
    >>> features = np.array([[2.0, 1.0, 0.0], [0.0, 1.0, 1.0]])
    >>> limit = ib.limits.solve_l1_svm(features, np.array([1.0, 1.0]), solver="highs")
    >>> limit.status.name, round(limit.objective, 9), limit.zeta.tolist()
    ('SOLVED', 1.0, [0.0, 1.0, 0.0])
    """
    return solve_limit(L1Margin(), features, y, **solving)
