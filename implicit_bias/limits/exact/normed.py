"""Programs of two layers whose norm on the coefficients follows from the optimiser's norms."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar, Unpack

import numpy as np

from ..._support.doors import door
from ..._support.solve import (
    Array,
    GatedDesign,
    GatedRows,
    MaxMarginProgram,
    Norm,
    NormName,
    Solution,
    array_namespace,
    as_float64,
    conclude_norm,
    norm_expression,
    solve_norm,
    solver_of,
    to_numpy,
)
from ..formulation import Formulation, Solving, chosen
from ..limit import Limit
from ..literal import cvxpy_module

if TYPE_CHECKING:
    import cvxpy

    from ..._support.solve import NormProgram, NormSolution

LimitT = TypeVar("LimitT", bound=Limit, covariant=True)


class NormedFormulation(Formulation[LimitT]):
    """A max-margin program in any norm of the coefficients, a matrix with one row a unit.

    Attributes
    ----------
    OWN : str
        Norm of gradient descent, in which the structured solver is at home.
    norm : str or Norm
        The norm that is least.
    """

    OWN: ClassVar[NormName]

    @property
    @abstractmethod
    def norm(self) -> Norm | NormName:
        """The norm that is least."""

    def __post_init__(self) -> None:
        Norm.of(self.norm)

    @classmethod
    @door()
    def of(cls, limit: Limit) -> Self:
        """Return the formulation in the norm of a limit."""
        return cls(norm=limit.norm or cls.OWN)  # type: ignore[call-arg]

    @property
    def is_own(self) -> bool:
        """True if the norm is that of gradient descent."""
        return Norm.of(self.norm) == Norm.of(self.OWN)

    def _solve(self, program: MaxMarginProgram, **solving: Unpack[Solving]) -> Solution:
        """Solve a `program` in the formulation's norm."""
        if self.is_own:
            return super()._solve(program, **solving)
        default = {"solver": solver_of(Norm.of(self.norm))}
        solver, settings = chosen(**(default | solving))  # type: ignore[arg-type]
        found = solve_norm(self._matrix_program(program), solver=solver, settings=settings)
        return self._read(program, found)

    def _conclude(
        self, program: MaxMarginProgram, primal: Array, dual: Array, how: dict[str, Any]
    ) -> Solution:
        """Certify points of a `program` in the formulation's norm."""
        if self.is_own:
            return super()._conclude(program, primal, dual, how)
        matrix = self._matrix_program(program)
        B = np.asarray(to_numpy(primal)).reshape(matrix.image.shape)
        found = conclude_norm(matrix, B, np.asarray(to_numpy(dual)), **how)
        return self._read(program, found)

    def _matrix_program(self, program: MaxMarginProgram) -> NormProgram:
        """The program in its norm, on NumPy arrays."""
        from ..._support.solve import NormProgram

        design = program.design
        X = design.X.toarray() if hasattr(design.X, "toarray") else to_numpy(design.X)
        group = np.asarray(to_numpy(design.group), dtype=np.int64)
        arrays = GatedDesign(X=np.asarray(X), Z=np.asarray(to_numpy(design.Z)), group=group)
        shape = (program.n_groups, len(group) // program.n_groups * int(X.shape[1]))
        y = np.asarray(to_numpy(program.y))
        return NormProgram(GatedRows(MaxMarginProgram(arrays, y), shape), Norm.of(self.norm))

    def _read(self, program: MaxMarginProgram, found: NormSolution) -> Solution:
        """Solution in the arrays of the program, at the scale of the found one."""
        xp = array_namespace(program.y)
        shape = (int(program.design.Z.shape[1]), int(program.design.X.shape[1]))
        return replace(
            found,
            primal=xp.reshape(as_float64(found.primal, like=program.y), shape),
            dual=as_float64(found.dual, like=program.y),
        )

    def _stated(
        self, units: list[cvxpy.Expression]
    ) -> tuple[cvxpy.Expression, list[cvxpy.Constraint]]:
        """State the norm of coefficients, one row vector a unit, in cvxpy, with its constraints."""
        norm = Norm.of(self.norm)
        if norm.blocks == "units":
            return norm_expression(norm, units)
        return norm_expression(norm, [cvxpy_module().vstack(units)])
