"""The limit of deep linearly gated networks of one hidden layer, their gates frozen."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
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
)
from ..._support.words import Experts, check_word
from ...limits.exact.frelu import FReLULimit, SVMFReLU
from ...limits.formulation import Formulation, Solving, solve_limit
from ...limits.limit import Limit, UnitsLimit
from ...limits.literal import constant, max_margin
from ...limits.predictors import DecisionFunction, GateColumns, Predictor

if TYPE_CHECKING:
    import cvxpy


@dataclass(frozen=True, eq=False)
class ConstantPredictor(DecisionFunction):
    """Scores of constant experts: of inputs (n, D) and gates (n, H), the gates alone count."""

    zeta: DenseArray

    def __call__(self, X: ArrayLike, gates: ArrayLike | None = None) -> DenseArray:
        """Return the scores (n,), in float64; raises as `Predictor` does."""
        behind = Predictor(self.zeta, GateColumns(int(self.zeta.shape[0]), binary=True))
        return behind(array_namespace(X).ones_like(X), gates)


class ConstantExpertsLimit(UnitsLimit):
    """The L1-margin solution over gates; `zeta` (H, D) are coefficients of the D ones.

    `objective` is in the units of every other limit of two layers, the sum of unit norms
    ``||zeta[h]||`` at margin 1, so that a network of that value has ``||w||^2 / 2`` equal to it.
    In terms of the constants it is their L1 norm divided by ``sqrt(D)``.

    Examples
    --------
    >>> X, y = np.array([[3.0, 4.0], [0.0, -2.0]]), np.array([1.0, -1.0])
    >>> limit = ib.limits.solve_dlgn_svm(X, y, np.eye(2), experts="constant")
    >>> limit.zeta.shape, limit.experts.round(6).tolist()
    ((2, 2), [1.0, -1.0])
    """

    FORMULATION: ClassVar[str] = "models.dlgn.formulation:ConstantExperts"

    @property
    def experts(self) -> DenseArray:
        """(H,) constants v with `f = sum_h gates[h] v[h]`, at smallest margin 1."""
        found: DenseArray = array_namespace(self.zeta).sum(self.zeta, axis=1)
        return found

    @property
    def predictor(self) -> ConstantPredictor:
        """The limit as a function of new inputs, whose shape alone counts, and gates."""
        return ConstantPredictor(self.zeta)


@dataclass(frozen=True)
class ConstantExperts(Formulation[ConstantExpertsLimit]):
    r"""The L1 margin of gates: constant experts behind half-spaces, one hidden layer.

        minimise  sum_h |v[h]| / sqrt(D)   s.t.   y[n] sum_h g[n, h] v[h] >= 1

    A unit :math:`w_2 \langle w_1, \mathbf 1 \rangle` has the constant v for its score where it is
    open, and :math:`\tfrac12 (w_2^2 + \|w_1\|^2) \ge |w_2| \|w_1\| \ge |v| / \sqrt D`, with
    equality for balanced weights along the ones: the norm of the weights is an L1 norm of the
    constants. It is not the norm of the overlap kernel, which belongs to experts that are free
    parameters.

    References
    ----------
    S. Lippl, L. F. Abbott, S. Chung, "The implicit bias of gradient descent on generalized gated
    linear networks", (22), of inputs that are all 1 behind the gates of X. By analogy S. Gunasekar,
    J. D. Lee, D. Soudry, N. Srebro, "Implicit bias of gradient descent on linear convolutional
    networks", theorem 2 at depth 2, on Fourier coefficients in place of gates.

    Examples
    --------
    >>> X, y = np.array([[3.0, 4.0], [0.0, -2.0]]), np.array([1.0, -1.0])
    >>> program = ib.programs.ConstantExperts().program(X, y, np.eye(2))
    >>> program.n_groups
    2
    """

    name: ClassVar[str] = "L1 margin of gates"

    @door()
    def program(self, X: Array, y: Array, gates: Array | None = None) -> MaxMarginProgram:
        """A column of `sqrt(D)` for inputs, and a gate column and group a unit.

        Raises
        ------
        ValueError
            If shapes disagree, values are not finite, labels are not -1 and +1, or gates are not
            0 and 1.
        """
        program = SVMFReLU().program(X, y, gates)
        design, xp = program.design, array_namespace(program.design.X)
        column = xp.ones_like(design.X[:, :1]) * math.sqrt(design.X.shape[1])
        return MaxMarginProgram(GatedDesign(X=column, Z=design.Z, group=design.group), program.y)

    @door()
    def limit(
        self, program: MaxMarginProgram, solution: Solution, gates: Array | None = None
    ) -> ConstantExpertsLimit:
        """Read a solution as coefficients (H, D), equal along the ones."""
        found = ConstantExpertsLimit.from_solution(program, solution, (program.n_groups, 1))
        # The column of the design is sqrt(D): unit vectors of ones carry the coefficients.
        n_inputs = round(float(program.design.X[0, 0]) ** 2)
        ones = array_namespace(found.zeta).ones_like(program.design.X[:1, :1])
        along = array_namespace(ones).tile(ones, (1, n_inputs)) / math.sqrt(n_inputs)
        return replace(found, zeta=found.zeta * along)

    @door()
    def coefficients(self, limit: Limit, program: MaxMarginProgram) -> Array:
        """Return the constants (H, 1) in units of the design's column.

        Raises
        ------
        ValueError
            If the limit is of other sizes.
        """
        root = float(program.design.X[0, 0])
        if limit.zeta.shape != (program.n_groups, round(root**2)):
            raise ValueError(
                f"`X` and `gates` have {round(root**2)} columns and {program.n_groups} units, and "
                f"the limit's coefficients {tuple(limit.zeta.shape)}: give the data that it was "
                "solved on"
            )
        return array_namespace(limit.zeta).sum(limit.zeta, axis=1)[:, None] / root

    def _literal(
        self, cp: ModuleType, program: MaxMarginProgram, gates: Array | None
    ) -> cvxpy.Problem:
        g, root = constant(program.design.Z, "g"), float(program.design.X[0, 0])  # sqrt(D)
        v = cp.Variable(g.shape[1], name="v")
        return max_margin(cp.norm(v, 1) / root, program.y, g @ v)


@door()
def solve_dlgn_svm(
    X: ArrayLike,
    y: ArrayLike,
    gates: ArrayLike,
    *,
    experts: Experts = "linear",
    **solving: Unpack[Solving],
) -> FReLULimit | ConstantExpertsLimit:
    """Solve the limit in direction of a DLGN of one hidden layer with frozen gates.

    Linear experts are the units of a frozen-gate ReLU network: the group lasso of
    `solve_frelu_svm`. Constant ones have the L1 margin over gates, up to the factor `1 / sqrt(D)`
    of `ConstantExperts`. With several hidden layers neither is a limit: `solve_path_lasso` is
    a bound then, `local_limit` finds the point that one network is heading to, and
    `certify_depth3` bounds the least value of two hidden layers.

    Parameters
    ----------
    X : (n, D) array
        Inputs; behind constant experts D counts alone.
    y : (n,) array
        Labels in {-1, +1}.
    gates : (n, H) array
        Exactly 0 (closed) or 1 (open).
    experts : {"linear", "constant"}
        What the units compute where they are open.
    **solving
        Keywords `solver`, `tol`, `max_iterations`, `progress` and `threads` of
        `ib.limits.Solving`. For constant experts also `solver="highs"`, which ends at a vertex: at
        most n experts that are not 0.

    Returns
    -------
    FReLULimit or ConstantExpertsLimit
        With its certificate. A sample in no half-space, or x = 0 behind linear experts, makes it
        `NOT_SEPARABLE`, with the multipliers on that sample; `closed_samples` names all of them.

    Raises
    ------
    ValueError
        If there are no such experts, shapes disagree, values are not finite, labels are not -1
        and +1, or gates are not 0 and 1.

    Examples
    --------
    >>> X, y = np.array([[3.0, 4.0], [0.0, -2.0]]), np.array([1.0, -1.0])
    >>> limit = ib.limits.solve_dlgn_svm(X, y, np.eye(2), experts="constant")
    >>> limit.status.name, round(limit.objective, 7), limit.experts.round(7).tolist()
    ('SOLVED', 1.4142136, [1.0, -1.0])
    """
    check_word("experts", experts, Experts)
    if experts == "linear":
        return solve_limit(SVMFReLU(), X, y, gates, **solving)
    return solve_limit(ConstantExperts(), X, y, gates, **solving)
