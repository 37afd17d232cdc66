"""What a gating structure is worth: the loss that gated OLS reaches with it."""

from __future__ import annotations

from dataclasses import dataclass

from ..._solve import Array, MomentLeastSquares, array_namespace, to_numpy
from .formulation import GatedLeastSquares, solve_gated_ols, solve_gated_ols_from_moments

__all__ = ["ClassMoments", "balanced_gating_loss", "class_moments", "gating_loss"]


@dataclass(frozen=True, eq=False)
class ClassMoments:
    """Moments of the gated inputs `xt` given the class, for targets in {0, 1}.

    Attributes
    ----------
    m1 : (K D,) array
        Mean of class 1.
    S1, S0 : (K D, K D) arrays
        Second moments `<xt xt^T | y>`, not centred, of class 1 and class 0.
    n_units : int
        K.
    """

    m1: Array
    S1: Array
    S0: Array
    n_units: int

    def balanced(self) -> MomentLeastSquares:
        """The population in which both classes have probability 1/2.

            A = (S1 + S0) / 2,   b = m1 / 2,   <y^2> = 1/2

        for targets 0 and 1.
        """
        return MomentLeastSquares(
            A=(self.S1 + self.S0) / 2, b=self.m1 / 2, n_columns=self.n_units, second_moment=0.5
        )


def gating_loss(X: Array, y: Array, gates: Array, *, rcond: float | None = None) -> float:
    """Loss `1/2 (<y^2> - b^T A^+ b)` that the best weights reach behind these gates.

    Parameters
    ----------
    X, y, gates, rcond
        As in `solve_gated_ols`.

    Returns
    -------
    float
        Measured at the solution; half the mean squared error.

    References
    ----------
    Notes on gated deep linear networks, equations (13) to (15).
    """
    return solve_gated_ols(X, y, gates, rcond=rcond).loss


def class_moments(X: Array, y: Array, gates: Array) -> ClassMoments:
    """Class-conditional sample moments of the gated inputs; targets in {0, 1}.

    Raises
    ------
    ValueError
        If a target is neither 0 nor 1, a class is missing, or shapes disagree.
    """
    program = GatedLeastSquares().program(X, y, gates)
    xp = array_namespace(program.y)
    positive = program.y == 1
    if not bool(xp.all(positive | (program.y == 0))) or bool(xp.all(positive == positive[0])):
        raise ValueError(
            "`y` must hold targets 0 and 1, both of them: without a bias the loss depends on "
            f"which numbers stand for the classes, got {sorted(set(to_numpy(program.y)))[:4]}"
        )
    rows = program.stacked()
    one, zero = rows[positive], rows[~positive]
    return ClassMoments(
        m1=xp.mean(one, axis=0),
        S1=one.T @ one / int(one.shape[0]),
        S0=zero.T @ zero / int(zero.shape[0]),
        n_units=program.shape[0],
    )


def balanced_gating_loss(moments: ClassMoments, *, rcond: float | None = None) -> float:
    """Loss of a gating for two equally likely classes with targets 0 and 1.

        1/2 (1/2 - 1/2 m1^T (S1 + S0)^+ m1)

    Returns
    -------
    float
        Half the mean squared error; 1/4 for gates that tell nothing.

    References
    ----------
    Notes on gated deep linear networks, equation (16); its (18) puts outer products of
    the means for the second moments.
    """
    total = solve_gated_ols_from_moments(
        moments.S1 + moments.S0, moments.m1, moments.n_units, rcond=rcond
    )
    xp = array_namespace(moments.m1)
    # zeta = (S1 + S0)^+ m1, in C order: coefficient k D + d is input d of unit k.
    explained = float(moments.m1 @ xp.reshape(total.zeta, (-1,)))
    return 0.5 * (0.5 - 0.5 * explained)
