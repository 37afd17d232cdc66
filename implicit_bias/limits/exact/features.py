"""The group lasso over units with given features: the limit of units below linear layers."""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, ClassVar, Self

from ..._support.doors import door, parameters
from ..._support.kinds import count
from ..._support.solve import (
    Array,
    GatedDesign,
    MaxMarginProgram,
    Solution,
    array_namespace,
    require_inputs,
)
from ..formulation import Formulation, real_data
from ..limit import Limit, UnitsLimit
from ..literal import constant, max_margin
from ..predictors import Predictor
from .linear import Ungated

if TYPE_CHECKING:
    import cvxpy


class FeatureLimit(UnitsLimit):
    """The group lasso over units; `zeta` (H, P) weighs the features of each.

    Examples
    --------
    >>> features, y = np.array([[3.0, 4.0, 1.0, 0.0], [0.0, 1.0, 0.0, 0.0]]), np.array([1.0, -1.0])
    >>> limit = ib.limits.solve_limit(ib.programs.UnitFeatures(2), features, y)
    >>> limit.zeta.shape, limit.predictor.predict(features).tolist()
    ((2, 2), [1, -1])
    """

    FORMULATION: ClassVar[str] = "limits.exact.features:UnitFeatures"

    @property
    def predictor(self) -> Predictor:
        """The limit as a function of new features (n, H P), at smallest margin 1."""
        return Predictor(self.zeta.reshape((1, -1)), Ungated())


@parameters(n_units=count(1))
@dataclass(frozen=True)
class UnitFeatures(Formulation[FeatureLimit]):
    r"""The group lasso over units whose features are given.

        minimise  sum_h ||zeta[h]||   s.t.   y[n] sum_h <zeta[h], phi[n, h]> >= 1

    X holds phi (n, H P), those of unit h in the columns h P to (h + 1) P. It is the least
    :math:`(\|w\|^2 / L)^{L/2}` at margin 1 of every network that is linear in the weights of each
    unit and has linear layers above, L in all: `SVMGLN` and `SVMFReLU` are two such, and with one
    feature a unit it is the L1 margin.

    Parameters
    ----------
    n_units : int
        H.

    References
    ----------
    S. Lippl, L. F. Abbott, S. Chung, "The implicit bias of gradient descent on generalized gated
    linear networks", theorem 3.1 and proposition B.8, whose proof asks no more of the features.

    Examples
    --------
    >>> features, y = np.array([[3.0, 4.0, 1.0, 0.0], [0.0, 1.0, 0.0, 0.0]]), np.array([1.0, -1.0])
    >>> limit = ib.limits.solve_limit(ib.programs.UnitFeatures(2), features, y)
    >>> limit.status.name, limit.unit_norms.shape, limit.certify(features, y).status.name
    ('SOLVED', (2,), 'SOLVED')
    """

    name: ClassVar[str] = "group lasso"

    n_units: int

    @classmethod
    @door()
    def of(cls, limit: Limit) -> Self:
        """Return the formulation of as many units."""
        return cls(len(limit.unit_norms))

    @door()
    def program(self, X: Array, y: Array, gates: Array | None = None) -> MaxMarginProgram:
        """Build the program with one column a feature and one group a unit.

        Raises
        ------
        ValueError
            If shapes disagree, values are not finite, labels are not -1 and +1, or the columns are
            not as many for each unit.
        """
        X, y = real_data(X, y)
        require_inputs(X)
        n_columns = int(X.shape[1])
        if n_columns % self.n_units:
            raise ValueError(
                f"`X` must have as many columns for each of {self.n_units} units, got {n_columns}: "
                "give the features of all units side by side; of a limit that is there already, "
                "give the data that it was solved on"
            )
        xp = array_namespace(X)
        group = xp.arange(n_columns, device=X.device) // (n_columns // self.n_units)
        return MaxMarginProgram(design=GatedDesign(X=xp.ones_like(X[:, :1]), Z=X, group=group), y=y)

    @door()
    def limit(
        self, program: MaxMarginProgram, solution: Solution, gates: Array | None = None
    ) -> FeatureLimit:
        """Read a solution as coefficients (H, P)."""
        n_columns = int(program.design.Z.shape[1])
        shape = (self.n_units, n_columns // self.n_units)
        return FeatureLimit.from_solution(program, solution, shape)

    def _literal(
        self, cp: ModuleType, program: MaxMarginProgram, gates: Array | None
    ) -> cvxpy.Problem:
        phi = constant(program.design.Z, "phi")
        size = phi.shape[1] // self.n_units
        zeta = cp.Variable(phi.shape[1], name="zeta")
        units = [zeta[h * size : (h + 1) * size] for h in range(self.n_units)]
        return max_margin(cp.sum([cp.norm(unit, 2) for unit in units]), program.y, phi @ zeta)
