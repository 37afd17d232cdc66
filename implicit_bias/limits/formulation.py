"""Formulations: a program, how its solution is read as a limit, and solving any of them."""

from __future__ import annotations

import math
from abc import abstractmethod
from types import ModuleType
from typing import TYPE_CHECKING, Any, Generic, Self, TypedDict, TypeVar, Unpack

from .._support.doors import door
from .._support.kinds import arrays
from .._support.solve import (
    Array,
    ArrayLike,
    MaxMarginProgram,
    Progress,
    Settings,
    Solution,
    SolverName,
    as_float64,
    conclude,
    require_real,
    require_scale,
    solve,
    to_numpy,
)
from ..data.arrays import SparseArray, SparseLike, as_csr
from .limit import Limit
from .literal import LiteralProgram, cvxpy_module

if TYPE_CHECKING:
    import cvxpy

LimitT = TypeVar("LimitT", bound=Limit, covariant=True)


class Formulation(LiteralProgram, Generic[LimitT]):
    """A max-margin program and how to read its solution: a frozen dataclass of its parameters.

    X is an (n, D) real array, NumPy or torch, whose constant column is the bias; y holds -1 and
    +1; each class defines its gates or contexts.
    """

    @abstractmethod
    def program(self, X: SparseArray, y: Array, gates: Array | None = None) -> MaxMarginProgram:
        """Build the program of inputs `X` (n, D), labels `y` (n,) in {-1, +1} and `gates` (n, H).

        Its design depends on inputs and gates alone, so that one serves several labellings.

        Raises
        ------
        TypeError, ValueError
            If an array is malformed for the class.
        """

    @abstractmethod
    def limit(
        self, program: MaxMarginProgram, solution: Solution, gates: Array | None = None
    ) -> LimitT:
        """Read a solution of a `program` made with these `gates`."""

    @classmethod
    @door()
    def of(cls, limit: Limit) -> Self:
        """Return the formulation that a limit solves, with its parameters."""
        return cls()

    @door()
    def coefficients(self, limit: Limit, program: MaxMarginProgram) -> Array:
        """Return the coefficients (J, D) of a `program` that its limit has: the inverse of `limit`.

        Raises
        ------
        ValueError
            If the limit is of other sizes.
        """
        shape = (int(program.design.Z.shape[1]), int(program.design.X.shape[1]))
        found = tuple(limit.zeta.shape)
        if math.prod(found) != math.prod(shape) or shape[1] not in (1, found[-1]):
            raise ValueError(
                f"`X` and `gates` make a program of coefficients {shape}, and the limit has "
                f"{found}: give the data that it was solved on"
            )
        return limit.zeta.reshape(shape)

    def _solve(self, program: MaxMarginProgram, **solving: Unpack[Solving]) -> Solution:
        """Solve a `program` under the keywords of `Solving`."""
        return solve_program(program, **solving)

    def _conclude(
        self, program: MaxMarginProgram, primal: Array, dual: Array, how: dict[str, Any]
    ) -> Solution:
        """Certify coefficients (J, D) and multipliers (n,) of a `program`, whoever found them."""
        return conclude(program, primal, dual, **how)

    @door(gates=arrays)
    def certify(self, limit: Limit, X: SparseArray, y: Array, gates: Array | None = None) -> LimitT:
        """Return a limit with all but its coefficients and multipliers computed from the data.

        Parameters and errors are those of `Limit.certify`, which calls it.
        """
        program = self.program(X, y, gates)
        if len(limit.dual) != program.n_samples:
            raise ValueError(
                f"`X` has {program.n_samples} rows, and the limit multipliers of "
                f"{len(limit.dual)} samples: give the data that it was solved on"
            )
        solution = self._conclude(
            program,
            as_float64(self.coefficients(limit, program), like=program.y),
            as_float64(limit.dual, like=program.y),
            limit._how,
        )
        return self.limit(program, solution, gates)

    @door(gates=arrays)
    def literal(self, X: SparseArray, y: Array, gates: Array | None = None) -> cvxpy.Problem:
        """State the program as the paper does; what is printed wrongly there is mended.

        Its optimum is that of `program`, unless the class says otherwise. Variables and constants
        have the paper's letters, constraints are labelled "margins". `describe_program` returns
        its text and size.

        Parameters
        ----------
        X, y, gates
            As `program` takes them.

        Returns
        -------
        cvxpy.Problem
            For any solver that cvxpy has, or to add terms and constraints to.

        Raises
        ------
        MissingExtra
            Without cvxpy.
        TypeError, ValueError
            As `program`.

        Examples
        --------
        >>> import numpy as np
        >>> from implicit_bias.programs import HardMarginSVM
        >>> X, y = np.array([[2.0, 0.0], [0.0, 1.0]]), np.array([1.0, -1.0])
        >>> problem = HardMarginSVM().literal(X, y)
        >>> print(problem.constraints[0].args[1])
        y * X @ b
        >>> round(float(problem.solve(solver="CLARABEL")), 6)
        1.118034
        """
        cp = cvxpy_module()
        return self._literal(cp, self.program(X, y, gates), gates)

    @abstractmethod
    def _literal(
        self, cp: ModuleType, program: MaxMarginProgram, gates: Array | None
    ) -> cvxpy.Problem:
        """State a checked `program`, made with these `gates`, in the module cvxpy."""


def real_data(X: Array, y: Array, name: str = "X", *, sparse: bool = False) -> tuple[Array, Array]:
    """Return inputs and labels in float64, the labels of the inputs' kind and device.

    Messages call the inputs `name`. With `sparse`, sparse inputs stay so, as CSR.

    Raises
    ------
    TypeError
        If either is complex, masked, sparse, or no array of numbers.
    ValueError
        If the largest input is beyond 1e152 or, if not zero, below 1e-152.
    """
    csr = as_csr(name, X) if sparse else None
    if csr is None:
        require_real(name, X)
        X = as_float64(X)
    require_real("y", y)
    require_scale(name, X if csr is None else csr)
    if csr is not None:
        return csr, as_float64(to_numpy(y))
    return X, as_float64(y, like=X)


class Solving(TypedDict, total=False):
    """Solver keywords of every `solve_*` of a max-margin limit.

    Attributes
    ----------
    solver : str
        "interior-point", the default, or "cvxpy:NAME" with NAME one of CLARABEL, ECOS, SCS; OSQP
        for programs of one group, such as the linear SVM and SVM-L2; "highs" for programs with one
        coefficient a group, such as the L1 margin, at a vertex. cvxpy solves
        the standard form, `Formulation.program`; `Formulation.literal` is the paper's form.
    tol : float
        Relative duality gap to reach, in (0, 1); by default 1e-8. A looser one saves iterations,
        yet little time above 2000 samples, where the first working set is large whatever the gap.
    max_iterations : int or None
        Iterations of each run of the solver; by default None, its own limit.
    progress : callable or None
        `progress(iteration, gap)`, called once an iteration by the interior point.
    threads : int or None
        Threads of BLAS in the interior point; by default None, chosen by problem size and idle
        cores.
    """

    solver: SolverName
    tol: float
    max_iterations: int | None
    progress: Progress | None
    threads: int | None


@door(gates=arrays)
def solve_limit(
    formulation: Formulation[LimitT],
    X: SparseLike,
    y: ArrayLike,
    gates: ArrayLike | None = None,
    **solving: Unpack[Solving],
) -> LimitT:
    """Solve the program of a formulation on these data and return the certified limit.

    Parameters
    ----------
    formulation : Formulation
    X : (n, D) real array
        NumPy array or torch tensor; a bias is a constant column.
    y : (n,) array
        Labels in {-1, +1}.
    gates : array, optional
        Gates or contexts with one row a sample, as the formulation takes them.
    **solving
        `solver`, `tol`, `max_iterations`, `progress`, `threads`: see `Solving`.

    Returns
    -------
    Limit
        Of the formulation's class; call `.require()` to insist on `SOLVED`.

    Raises
    ------
    TypeError, ValueError
        If an array is malformed for the formulation, there is no such solver, or a setting is out
        of range.

    Examples
    --------
    >>> X, y = np.array([[2.0, 0.0], [0.0, 1.0]]), np.array([1.0, -1.0])
    >>> limit = ib.limits.solve_limit(ib.programs.HardMarginSVM(), X, y)
    >>> limit.status.name, limit.zeta.round(6).tolist()
    ('SOLVED', [0.5, -1.0])
    """
    program = formulation.program(X, y, gates)
    return formulation.limit(program, formulation._solve(program, **solving), gates)


def solve_program(program: MaxMarginProgram, **solving: Unpack[Solving]) -> Solution:
    """Solve a program under the keywords of `Solving`.

    Raises
    ------
    ValueError
        If there is no such solver, or a setting is out of range.
    """
    solver, settings = chosen(**solving)
    return solve(program, solver=solver, settings=settings)


def chosen(
    *,
    solver: SolverName = "interior-point",
    tol: float = 1e-8,
    max_iterations: int | None = None,
    progress: Progress | None = None,
    threads: int | None = None,
) -> tuple[SolverName, Settings]:
    """Return the solver's name and settings from the keywords of `Solving`."""
    return solver, Settings(
        tol=tol, max_iterations=max_iterations, progress=progress, threads=threads
    )
