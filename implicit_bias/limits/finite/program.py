"""Convex programs of finite limits for cvxpy: weight decay, and diagonal networks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..._support.doors import door, parameters
from ..._support.kinds import anything, count, one_of, or_none
from ..._support.solve import FIT_LOSSES, ArrayLike, FitProgram
from ..literal import LiteralProgram, constant, cvxpy_module, labelled
from .arguments import require_one_form
from .diagonal import DATA, START, checked_start, checked_targets
from .problem import fit_problem

if TYPE_CHECKING:
    import cvxpy

_NORMS = ("units", "l2", "linf", "l1", "spectral", "nuclear", "ridge")


@dataclass(frozen=True)
class LeastPotential(LiteralProgram):
    """The interpolant of least potential: the limit of a diagonal network from its start.

        minimise  sum_i (kl(p_i, (u_i + v_i)^2 / 4) + kl(q_i, (u_i - v_i)^2 / 4)) / 2 - offset
        s.t.      features (p - q) = y,       kl(p, a) = p log(p / a) - p + a

    with coefficients p - q. Its optimum is that of `limits.solve_diagonal`, the offset being the
    sum of ``(u_i^2 + v_i^2) / 4``.

    References
    ----------
    B. Woodworth et al., "Kernel and rich regimes in overparametrized models", in the
    layers' products with each other.

    Examples
    --------
    >>> features, y, start = np.array([[2.0, 1.0]]), np.array([4.0]), np.full(2, 0.5)
    >>> problem = ib.programs.LeastPotential().literal(features, y, start)
    >>> limit = ib.limits.solve_diagonal(features, y, start)
    >>> bool(abs(problem.solve(solver="CLARABEL") - limit.objective) < 1e-6)
    True
    """

    name: ClassVar[str] = "least potential"

    @door(**DATA, **START)
    def literal(
        self,
        features: ArrayLike,
        y: ArrayLike,
        u0: ArrayLike,
        v0: ArrayLike | None = None,
        *,
        margin: float | None = None,
    ) -> cvxpy.Problem:
        """State the program in cvxpy, in the variables "p" and "q".

        Parameters
        ----------
        features, y, u0, v0, margin
            As `limits.solve_diagonal` takes them, at depth 2.

        Returns
        -------
        cvxpy.Problem

        Raises
        ------
        MissingExtra
            Without cvxpy.
        TypeError, ValueError
            If an array is malformed, or u0 and v0 are equal up to sign anywhere: a coefficient of
            one sign has no potential of this form.
        """
        Phi, targets = np.asarray(features), checked_targets(y, margin)
        u, v = checked_start(u0, v0, 2)
        sizes = (u + v) ** 2 / 4, (u - v) ** 2 / 4
        if not np.all(np.minimum(*sizes) > 0):
            raise ValueError("`u0` and `v0` must differ in size everywhere, for two signs")
        cp = cvxpy_module()
        parts = [cp.Variable(len(u), name=name) for name in "pq"]
        divergences = [
            cp.sum(cp.kl_div(part, constant(size, name)))
            for part, size, name in zip(parts, sizes, ("a", "b"), strict=True)
        ]
        offset = float((u**2 + v**2).sum()) / 4
        scores = constant(Phi, "X") @ (parts[0] - parts[1])
        asked = scores == constant(targets, "y")
        if margin is not None:
            asked = cp.multiply(constant(targets, "y"), scores) >= margin
        return cp.Problem(
            cp.Minimize((divergences[0] + divergences[1]) / 2 - offset),
            [labelled(asked, "scores" if margin is None else "margins")],
        )


@parameters(loss=one_of(FIT_LOSSES), norm=one_of(_NORMS), n_contexts=or_none(count(1)))
@dataclass(frozen=True)
class WeightDecay(LiteralProgram):
    """A mean loss with a penalty or within a ball; interpolation of least norm with neither.

        minimise  mean loss + penalty N(zeta)
        minimise  mean loss               s.t.  N(zeta) <= radius
        minimise  N(zeta)                 s.t.  scores = y

    Parameters
    ----------
    loss : {"logistic", "squared", "softmax"}
    norm : {"units", "l2", "linf", "l1", "spectral", "nuclear", "ridge"}
        "ridge" is half the squared l2 norm.
    penalty, radius : float, optional
        At most one of them, positive.
    n_contexts : int, optional
        Contexts of every unit, for gates that are contexts.

    References
    ----------
    B. Neyshabur, R. Tomioka, N. Srebro, "In search of the real inductive bias"; S. Xie, Z. Li,
    "Implicit bias of AdamW: l_inf-norm constrained optimization".

    Examples
    --------
    >>> X, y = np.array([[2.0, 0.0], [0.0, 1.0]]), np.array([1.0, -1.0])
    >>> problem = ib.programs.WeightDecay("squared", "l2", penalty=0.1).literal(X, y)
    >>> limit = ib.limits.solve_fit(X, y, loss="squared", penalty=0.1)
    >>> bool(abs(problem.solve(solver="CLARABEL") - limit.objective) < 1e-6)
    True
    """

    name: ClassVar[str] = "weight decay"

    loss: str = "logistic"
    norm: str = "units"
    penalty: float | None = None
    radius: float | None = None
    n_contexts: int | None = None

    def __post_init__(self) -> None:
        require_one_form(self.penalty, self.radius)
        if self.penalty is None and self.radius is None and self.loss != "squared":
            raise ValueError(f"`loss` {self.loss!r} has no interpolant: give `penalty` or `radius`")

    @door(gates=anything)
    def literal(self, X: ArrayLike, y: ArrayLike, gates: ArrayLike | None = None) -> cvxpy.Problem:
        """State the program in cvxpy, in the variable "zeta" of a row a unit.

        Parameters
        ----------
        X, y, gates
            As `limits.solve_fit` takes them.

        Returns
        -------
        cvxpy.Problem

        Raises
        ------
        MissingExtra
            Without cvxpy.
        TypeError, ValueError
            If an array is malformed, or the norm is not one of such coefficients.
        """
        problem = fit_problem(X, y, gates, self.loss, self.n_contexts)
        if problem.several and gates is not None:
            raise ValueError("`gates` with several scores a sample are not stated here")
        cp = cvxpy_module()
        rows = problem.y.shape[1] if problem.several else len(problem.group)
        zeta = cp.Variable((rows, problem.X.shape[1]), name="zeta")
        X_, y_ = constant(problem.X, "X"), constant(problem.y, "y")
        scores = X_ @ zeta.T
        if not problem.several:
            scores = cp.sum(cp.multiply(constant(problem.columns, "g"), scores), axis=1)
        size = self._size(cp, zeta, problem)
        if self.penalty is None and self.radius is None:
            return cp.Problem(cp.Minimize(size), [labelled(scores == y_, "scores")])
        n = len(problem.X)
        if self.loss == "squared":
            loss = cp.sum_squares(scores - y_) / (2 * n)
        elif self.loss == "logistic":
            loss = cp.sum(cp.logistic(-cp.multiply(y_, scores))) / n
        else:
            rest = cp.sum(cp.multiply(y_, scores))
            loss = (cp.sum(cp.log_sum_exp(scores, axis=1)) - rest) / n
        if self.radius is not None:
            return cp.Problem(cp.Minimize(loss), [labelled(size <= self.radius, "ball")])
        return cp.Problem(cp.Minimize(loss + self.penalty * size))

    def _size(self, cp: Any, zeta: Any, problem: FitProgram) -> Any:
        """Return the norm of the coefficients."""
        if self.norm == "ridge":
            return cp.sum_squares(zeta) / 2
        if self.norm == "units" and len(problem.group) == problem.n_units:
            return cp.sum(cp.norm(zeta, 2, axis=1))
        if self.norm == "units":
            n_rows = len(problem.group) // problem.n_units
            blocks = [zeta[h * n_rows : (h + 1) * n_rows] for h in range(problem.n_units)]
            return sum(cp.norm(block, "fro") for block in blocks)
        if self.norm == "l2":
            return cp.norm(zeta, "fro")
        if self.norm in ("linf", "l1"):
            return (cp.max if self.norm == "linf" else cp.sum)(cp.abs(zeta))
        return cp.norm(zeta, "nuc") if self.norm == "nuclear" else cp.sigma_max(zeta)
