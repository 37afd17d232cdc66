"""SVM-L2: the plain norm of a gated linear network's predictors, the control for SVM-GLN."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from types import ModuleType
from typing import TYPE_CHECKING, ClassVar, Self, Unpack

import numpy as np

from ..._support.doors import door, parameters
from ..._support.solve import (
    Array,
    ArrayLike,
    GatedDesign,
    MaxMarginProgram,
    Solution,
    array_namespace,
    as_float64,
    require_sizes,
    to_numpy,
)
from ...data.arrays import Floats
from ...limits.formulation import Formulation, Solving, solve_limit
from ...limits.limit import Limit
from ...limits.literal import constant
from ...limits.predictors import ContextPredictor
from .formulation import SVMGLN
from .norms import MainEffects

if TYPE_CHECKING:
    import cvxpy


class GLNL2Limit(Limit):
    """The SVM-L2 solution; `zeta` has shape (H, C, D).

    The program fixes the predictors `beta[gamma] = sum_h zeta[h, gamma_h]`; of all coefficients
    that have them, `zeta` has the least `sum_h ||zeta[h]||`, which is `gln_norm`. The objective is
    the root mean square of `||beta[gamma]||` over all C^H global contexts; it is one group, so
    `unit_norms` and `dual_norms` have one entry.

    Examples
    --------
    >>> limit = ib.solve_gln_l2_svm(np.array([[3.0, 4.0]]), np.ones(1), np.array([[0, 1]]))
    >>> limit.zeta.shape, limit.unit_norms.shape
    ((2, 2, 2), (1,))
    """

    FORMULATION: ClassVar[str] = "models.gln.l2:SVML2"

    @property
    def predictor(self) -> ContextPredictor:
        """The solution as a function of new inputs and contexts, at smallest margin 1."""
        return ContextPredictor(self.zeta)

    @door()
    def norm_of(self, zeta: Array) -> float:
        """The program's norm of coefficients (H, C, D): root mean square of `||beta[gamma]||`."""
        if np.ndim(zeta) != 3:
            raise ValueError(f"`zeta` must have shape (H, C, D), got {np.shape(zeta)}")
        return MainEffects.of_coefficients(zeta).rms_norm()

    def _norm(self) -> float:
        return self.norm_of(self.zeta)

    @property
    def gln_norm(self) -> float:
        """`sum_h ||zeta[h]||`: at least the optimum of SVM-GLN on the same data."""
        return MainEffects.of_coefficients(self.zeta).gln_norm()

    @property
    def log_beta_norm(self) -> float:
        """Natural logarithm of `||beta||_2 = C^(H/2) * objective`."""
        n_units, n_contexts, _ = self.zeta.shape
        return 0.5 * int(n_units) * math.log(n_contexts) + math.log(self.objective)

    @property
    def beta_norm(self) -> float:
        """`||beta||_2`, the root of the sum of `||beta[gamma]||^2`; inf beyond float64."""
        return _exp(self.log_beta_norm)


@parameters()
@dataclass(frozen=True)
class SVML2(Formulation[GLNL2Limit]):
    """The SVM-L2 program of data in contexts, as one group of (C - 1) H + 1 gate columns.

        minimise  ||beta||_2   s.t.   y[n] <beta[c[n]], x[n]> >= 1,
                                      beta[gamma] = sum_h zeta[h, gamma_h]

    With `(mean, effects)` as in `MainEffects`, `||beta||_2^2 = C^H (||mean||^2 + sum_h
    ||effects[h]||^2 / C)`. Coordinates `effects[h] = sqrt(C) U V[h]`, where the C - 1 columns
    of U are orthonormal and orthogonal to the ones vector, make this `C^H` times the squared
    norm of the coefficients `(mean, V)`; the objective leaves `C^(H/2)` out. The kernel is
    `<x, x'> (1 + C sum_h ([c_h = c'_h] - 1/C)) = <x, x'> (C agree - H + 1)`.

    It takes what `SVMGLN` takes. Contexts that no sample is in count: the norm is over all C^H
    predictors. `literal` is equation (25) with the right A, whose optimum is C times that of
    `program`; row h C + c of its variable is zeta[h, c], to which solvers may add what no
    predictor sees.

    Parameters
    ----------
    n_contexts : int, optional
        C; by default one more than the largest context that is given.

    References
    ----------
    S. Lippl, L. F. Abbott, S. Chung, "The implicit bias of gradient descent on generalized gated
    linear networks", equations (23) to (25), which print another matrix than the root that
    `gln_l2_root` is.

    Examples
    --------
    >>> program = ib.programs.SVML2(n_contexts=2).program(
    ...     np.array([[3.0, 4.0]]), np.ones(1), np.array([[0, 1]])
    ... )
    >>> program.n_groups, program.design.Z.shape[1]  # (C - 1) H + 1 columns
    (1, 3)
    """

    name: ClassVar[str] = "SVM-L2"

    n_contexts: int | None = None

    @classmethod
    @door()
    def of(cls, limit: Limit) -> Self:
        """Return the formulation of as many contexts as a limit has."""
        return cls(int(limit.zeta.shape[1]))

    @door()
    def program(self, X: Array, y: Array, gates: Array | None = None) -> MaxMarginProgram:
        """Column 0 is the mean, column 1 + h (C - 1) + k the k-th coordinate of the effect of h.

        Raises
        ------
        TypeError, ValueError
            If shapes disagree, values are not finite, labels are not -1 and +1, or a context is
            out of range.
        """
        standard = SVMGLN(self.n_contexts).program(X, y, gates)
        design = standard.design
        xp = array_namespace(design.X)
        n_units = design.n_groups
        n_contexts = int(design.Z.shape[1]) // n_units
        require_sizes("contrasts", {"n_contexts": n_contexts}, (n_contexts, n_contexts))
        U = as_float64(_contrasts(n_contexts), like=design.X)
        one_hot = design.Z.reshape((design.n_samples, n_units, n_contexts))
        effects = math.sqrt(n_contexts) * (one_hot @ U)
        ones = xp.ones((design.n_samples, 1), dtype=design.X.dtype, device=design.X.device)
        n_effects = n_units * (n_contexts - 1)
        Z = xp.concat([ones, effects.reshape((design.n_samples, n_effects))], axis=1)
        group = xp.zeros((1 + n_effects,), dtype=xp.int64, device=design.X.device)
        return MaxMarginProgram(design=GatedDesign(X=design.X, Z=Z, group=group), y=standard.y)

    @door()
    def limit(
        self, program: MaxMarginProgram, solution: Solution, gates: Array | None = None
    ) -> GLNL2Limit:
        """Read a solution as the coefficients (H, C, D) of least GLN norm."""
        n_units = int(to_numpy(gates).shape[1])
        n_columns, n_inputs = (int(size) for size in solution.primal.shape)
        n_contexts = 1 + (n_columns - 1) // n_units
        limit = GLNL2Limit.from_solution(program, solution, (n_columns, n_inputs))
        U = as_float64(_contrasts(n_contexts), like=limit.zeta)
        V = limit.zeta[1:, :].reshape((n_units, n_contexts - 1, n_inputs))
        family = MainEffects(mean=limit.zeta[0, :], effects=math.sqrt(n_contexts) * (U @ V))
        return replace(limit, zeta=family.coefficients())

    @door()
    def coefficients(self, limit: Limit, program: MaxMarginProgram) -> Array:
        """Return the mean and the coordinates of the effects of coefficients (H, C, D).

        Raises
        ------
        ValueError
            If the limit is of other sizes.
        """
        n_units, n_contexts, n_inputs = (int(size) for size in limit.zeta.shape)
        wanted = (1 + n_units * (n_contexts - 1), n_inputs)
        shape = (int(program.design.Z.shape[1]), int(program.design.X.shape[1]))
        if wanted != shape:
            raise ValueError(
                f"`X` and `gates` make a program of coefficients {shape}, and the limit has "
                f"{wanted}: give the data that it was solved on"
            )
        family = MainEffects.of_coefficients(limit.zeta)
        U = as_float64(_contrasts(n_contexts), like=limit.zeta)
        V = array_namespace(U).permute_dims(U, (1, 0)) @ family.effects / math.sqrt(n_contexts)
        rows = V.reshape((wanted[0] - 1, n_inputs))
        return array_namespace(rows).concat([family.mean[None, :], rows], axis=0)

    def _literal(
        self, cp: ModuleType, program: MaxMarginProgram, gates: Array | None
    ) -> cvxpy.Problem:
        gln = SVMGLN(self.n_contexts).literal(program.design.X, program.y, gates)
        (zeta,), n_units = gln.variables(), to_numpy(gates).shape[1]
        A = constant(gln_l2_root(n_units, zeta.shape[0] // n_units), "A")
        return cp.Problem(cp.Minimize(cp.norm(A @ zeta, "fro")), gln.constraints)


@door()
def solve_gln_l2_svm(
    X: ArrayLike,
    y: ArrayLike,
    contexts: ArrayLike,
    *,
    n_contexts: int | None = None,
    **solving: Unpack[Solving],
) -> GLNL2Limit:
    """Solve for the predictors of a gated linear network with the least Euclidean norm.

    No theorem says that gradient descent goes here: it is the control that shows how much of the
    network's generalisation is due to its norm and how much to its architecture alone.

    Parameters
    ----------
    X : (n, D) array
        Inputs.
    y : (n,) array
        Labels in {-1, +1}.
    contexts : (n, H) array of int
        Context of each sample in each unit, in 0 .. C-1.
    n_contexts : int, optional
        C; by default one more than the largest context that is given.
    **solving
        Keywords `solver`, `tol`, `max_iterations`, `progress` and `threads` of
        `ib.limits.Solving`.

    Returns
    -------
    GLNL2Limit
        With its certificate; call `.require()` to insist on `SOLVED`.
        `SVML2.literal` states the program in cvxpy.

    Raises
    ------
    ValueError
        If shapes disagree, values are not finite, labels are not -1 and +1, or a context is out
        of range.

    Examples
    --------
    >>> X, contexts = np.array([[3.0, 4.0]]), np.array([[0, 0, 1]])
    >>> limit = ib.solve_gln_l2_svm(X, np.array([1.0]), contexts, n_contexts=2)
    >>> round(limit.objective * 5, 9)  # 1 / sqrt((C agree - H + 1) <x, x>), agree = H = 3
    0.5
    """
    return solve_limit(SVML2(n_contexts), X, y, contexts, **solving)


def gln_l2_root(n_units: int, n_contexts: int) -> Floats:
    """The matrix A of the paper's (23), (25) as it has to be: `||beta||^2 = C^(H-2) ||A zeta||^2`.

        A = sqrt(C) I - B / sqrt(C) + J / sqrt(H C)

    is the root of `M = C I - B + J`, B the blocks of ones within units, J all ones: on
    differences within a unit M is C, on the common mean H C, and 0 on differences between the
    means of units, which no predictor sees. (Printed: C I - B + J / (H C), no root of M.)

    Returns
    -------
    (H C, H C) float64 array
        Row h C + c belongs to context c of unit h.
    """
    size = n_units * n_contexts
    B = np.kron(np.eye(n_units), np.ones((n_contexts, n_contexts)))
    root = math.sqrt(n_contexts)
    return np.asarray(root * np.eye(size) - B / root + 1 / math.sqrt(size))


def _contrasts(n_contexts: int) -> Floats:
    """U (C, C - 1) with orthonormal columns that sum to zero: `U U^T = I - J / C` (Helmert)."""
    steps = np.arange(1, n_contexts)
    rows = np.arange(n_contexts)[:, None]
    columns = np.where(rows < steps, 1.0, 0.0) - np.where(rows == steps, steps, 0.0)
    return np.asarray(columns / np.sqrt(steps * (steps + 1.0)))


def _exp(logarithm: float) -> float:
    try:
        return math.exp(logarithm)
    except OverflowError:
        return math.inf
