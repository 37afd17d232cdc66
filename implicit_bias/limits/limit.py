"""Predicted limits of networks: coefficients, multipliers, and their certificate."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import field
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self, runtime_checkable

import numpy as np

from .._support.doors import door
from .._support.pictures import draw
from .._support.solve import (
    Array,
    DenseArray,
    MaxMarginProgram,
    Norm,
    NormName,
    Solution,
    Status,
    array_namespace,
    as_float64,
    supports,
    to_numpy,
)
from .predictors import DecisionFunction
from .result import SeparatingLimit

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Norms and margins are sums of many terms, computed in another order when they are checked.
_CLOSE = 1e-9
_PACKAGE = __name__.partition(".")[0]


@runtime_checkable
class HasNorm(Protocol):
    """Limits whose norm is not the sum of the norms of a network's units."""

    def norm_of(self, zeta: Any) -> float:
        """Return the norm of coefficients `zeta` in the limit's own shape."""


class Limit(SeparatingLimit, ABC):
    """The max-margin solution that a theorem names as the limit of training.

    Arrays are of the kind and on the device of the inputs that were given, in float64.

    Attributes
    ----------
    zeta : array
        Coefficients in the model's own shape, scaled to smallest margin 1.
    dual : (n,) array
        Multipliers of the margin constraints; with sum 1 where they prove inseparability.
    margins : (n,) array
        `y[n] f(x[n])` of the coefficients.
    support : (n,) boolean array
        Support vectors: multiplier, relative to the largest, above the slack.
    unit_norms, dual_norms : (H,) arrays
        `||zeta[h]||` and `||v_h(dual)||` of every unit; a unit is dead only with the latter <= 1.
    status : Status
    certificate : Certificate
        Bounds of the optimum, recomputed from `zeta` and `dual`.
    tol, solver, iterations, seconds
        The gap asked for and how the solve went.
    norm : str or None
        Name of the norm that is least, where the program was asked for one: see `Norm.of`. None:
        the sum of `unit_norms`.

    Examples
    --------
    >>> limit = ib.solve_linear_svm(np.array([[2.0, 0.0]]), np.array([1.0]))
    >>> isinstance(limit, ib.limits.Limit), round(limit.objective, 7)
    (True, 0.5)
    """

    # "module:class" of the formulation that it solves, which reads its solutions as this class.
    FORMULATION: ClassVar[str]

    RECORD: ClassVar[tuple[str, ...]] = (
        "n_samples", "n_support", "n_units", "n_live", "unit_norms", "dual_norms"
    )  # fmt: skip
    BRIEF = (
        "{status.name}, coefficients {_sizes}\n"
        "  optimum in [{dual_objective:.10g}, {objective:.10g}], gap {gap:.2g} (tol {tol:.2g})\n"
        "  {n_support} support vectors of {n_samples} samples, {n_live} live units of {n_units}\n"
        "  {solver}, {iterations} iterations, {seconds:.3g} s"
    )

    unit_norms: DenseArray
    dual_norms: DenseArray
    norm: NormName | None = field(default=None, kw_only=True)

    @classmethod
    @door()
    def from_solution(
        cls, program: MaxMarginProgram, solution: Solution, shape: tuple[int, ...], **own: Array
    ) -> Self:
        """Read a solution of `program` as coefficients of the given shape, in C order.

        `own` are the arrays that a subclass adds, and the name of its norm.
        """
        design, margins = program.design, program.margins(solution.primal)
        return cls.read(
            solution,
            zeta=solution.primal.reshape(shape),
            margins=margins,
            support=supports(margins, solution.dual),
            unit_norms=design.group_norms(solution.primal),
            dual_norms=design.group_norms(program.dual_blocks(solution.dual)),
            **own,
        )

    @property
    @abstractmethod
    def predictor(self) -> DecisionFunction:
        """The limit as a function of new inputs and gates, at smallest margin 1."""

    @property
    def live(self) -> DenseArray:
        """(H,) booleans: units whose norm, relative to the largest, exceeds their dual slack."""
        xp = array_namespace(self.unit_norms)
        largest = xp.max(self.unit_norms)
        # Slack says that a unit is dead in the sum of norms alone.
        slack = 1 - self.dual_norms if self._sums_units() else xp.zeros_like(self.dual_norms)
        found: DenseArray = self.unit_norms > xp.clip(slack, min=2.0**-40) * largest
        return found

    def _sums_units(self) -> bool:
        """Return whether the norm that is least is the sum of `unit_norms`."""
        return self.norm is None or self.norm == "rows" or (len(self.unit_norms) == 1 and (
            self.norm == "l2"
        ))  # fmt: skip

    def certify(self, X: Any, y: Any, gates: Any = None) -> Self:
        """Prove coefficients and multipliers anew on the data, whoever found or stored them.

        A file says what its writer put into it, its status and certificate included; what it takes
        to prove them are the data, and gates that one has reason to trust.

        Parameters
        ----------
        X : (n, D) real array
            NumPy array or torch tensor.
        y : (n,) array
            Labels in {-1, +1}.
        gates : array, optional
            Gates or contexts with one row a sample, as the formulation takes them.

        Returns
        -------
        Limit
            Of the same class, its status, certificate, margins and norms computed from these data,
            to the same tolerance: call `.require()` to insist on `SOLVED`. Other data than those it
            was found on make other limits: it is then INACCURATE, UNDECIDED or NOT_SEPARABLE.

        Raises
        ------
        TypeError, ValueError
            If an array is malformed for the formulation, or the coefficients are of other sizes.

        Examples
        --------
        >>> X, y = np.array([[2.0, 0.0], [0.0, 1.0]]), np.array([1.0, -1.0])
        >>> limit = ib.solve_linear_svm(X, y)
        >>> limit.certify(X, y).status.name, limit.certify(X + 1e-3, y).status.name
        ('SOLVED', 'INACCURATE')
        """
        module, _, name = self.FORMULATION.partition(":")
        formulation = getattr(import_module(f"{_PACKAGE}.{module}"), name)
        proved: Self = formulation.of(self).certify(self, X, y, gates)
        return proved

    @door()
    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the margins in ascending order, on new axes unless `ax` is given."""
        return draw("runs.drawing.results:plot_ordered_margins", self, ax=ax)

    def _fault(self) -> str:
        # Of NumPy arrays: a loaded limit is looked at before it goes to its device.
        n, n_units = len(self.dual), len(self.unit_norms)
        shapes = {
            "dual": (n,),
            "margins": (n,),
            "support": (n,),
            "unit_norms": (n_units,),
            "dual_norms": (n_units,),
        }
        for name, shape in shapes.items():
            if getattr(self, name).shape != shape:
                return f"`{name}` has the shape {getattr(self, name).shape}, not {shape}"
        for name in ("zeta", *shapes):
            if not np.all(np.isfinite(getattr(self, name))):
                return f"`{name}` is not finite"
        if not math.isclose(self._norm(), float(np.linalg.norm(self.unit_norms)), rel_tol=_CLOSE):
            return "`zeta` does not have the norms of its units"
        if self.status is Status.SOLVED and not self._supports_certificate():
            return "its arrays do not support its certificate"
        return ""

    def _norm(self) -> float:
        """Return the root of the sum of squares of `unit_norms`, computed from `zeta`."""
        return float(np.linalg.norm(self.zeta))

    def _supports_certificate(self) -> bool:
        """Return whether norms, margins and multipliers support the certified bounds."""
        margin, total = float(self.margins.min()), float(self.dual.sum())
        above, below = float(self.unit_norms.sum()), float(self.dual_norms.max())
        if not self._sums_units():
            rows = self.zeta.reshape((len(self.unit_norms), -1))
            above, below = Norm.of(self.norm or "rows").value(rows), 0.0
        return (
            bool(margin > 0 and self.dual.min() >= 0)
            and above <= self.objective * margin * (1 + _CLOSE)
            and self.dual_objective * below * (1 - _CLOSE) <= total
            and self.gap <= self.tol
        )


class UnitsLimit(Limit):
    """A limit of two layers, whose coefficients (H, ..., D) are those of H hidden units."""

    def balanced_weights(self) -> tuple[DenseArray, DenseArray]:
        """Return weights w1 (H, ..., D), w2 (H,) of least norm with these coefficients.

            w1[h] = zeta[h] / sqrt(||zeta[h]||),  w2[h] = sqrt(||zeta[h]||),

        so that ||w1||^2 + ||w2||^2 = 2 sum_h ||zeta[h]||. Units with zeta[h] = 0 get zeros.
        In the norm "muon" both layers have the same spectral norm, the root of the limit's. In
        others than these the second layer is measured by its largest entry: ``w1 = zeta`` and ones.
        """
        xp = array_namespace(self.zeta)
        if self.norm == "muon":
            rows = to_numpy(self.zeta).reshape(len(self.unit_norms), -1)
            a, W = Norm.of(self.norm).factors(rows)
            w1 = xp.reshape(as_float64(W, like=self.zeta), tuple(self.zeta.shape))
            return w1, as_float64(a, like=self.zeta)
        if not self._sums_units():
            return self.zeta, xp.ones_like(self.unit_norms)
        roots = xp.sqrt(self.unit_norms)
        safe = xp.where(roots > 0, roots, xp.ones_like(roots))
        return self.zeta / xp.reshape(safe, (-1, *[1] * (self.zeta.ndim - 1))), roots
