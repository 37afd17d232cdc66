"""Formulations: a program, how its solution is read as a limit, and solving any of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar, Generic, TypedDict, TypeVar, Unpack

from .._solve import Array, MaxMarginProgram, Progress, Settings, Solution, as_float64, solve
from ..data.arrays import require_real
from .limit import Limit

if TYPE_CHECKING:
    import cvxpy

__all__ = [
    "Formulation",
    "Solving",
    "chosen",
    "labelled",
    "real_data",
    "solve_limit",
    "solve_program",
]

LimitT = TypeVar("LimitT", bound=Limit, covariant=True)


class Formulation(ABC, Generic[LimitT]):
    """A max-margin program and how to read its solution: a frozen dataclass of its parameters.

    X is an (n, D) real array, NumPy or torch, whose constant column is the bias; y holds -1 and
    +1; what gates are, or contexts, each class says.

    Attributes
    ----------
    name : str
        What the literature calls the program, for messages and pictures.
    """

    name: ClassVar[str]

    @abstractmethod
    def program(self, X: Array, y: Array, gates: Array | None = None) -> MaxMarginProgram:
        """The program of inputs `X` (n, D), labels `y` (n,) in {-1, +1} and `gates` (n, H).

        Its design depends on inputs and gates alone, so that one serves several labellings.

        Raises
        ------
        TypeError, ValueError
            If an array is not what the class says that it takes.
        """

    @abstractmethod
    def limit(
        self, program: MaxMarginProgram, solution: Solution, gates: Array | None = None
    ) -> LimitT:
        """Read a solution of a `program` made with these `gates`."""

    @abstractmethod
    def literal(self, X: Array, y: Array, gates: Array | None = None) -> cvxpy.Problem:
        """The program as the paper prints it, for cvxpy; what is printed wrongly is mended here.

        Its optimum is that of `program`, unless the class says otherwise. Variables have the
        paper's letters, and constraints are called "margins".

        Raises
        ------
        TypeError, ValueError
            As `program`.
        """


def real_data(X: Array, y: Array) -> tuple[Array, Array]:
    """Inputs and labels in float64, the labels of the kind and on the device of the inputs.

    Raises
    ------
    TypeError
        If either is complex, masked, sparse, or no array of numbers.
    """
    require_real("X", X)
    require_real("y", y)
    X = as_float64(X)
    return X, as_float64(y, like=X)


def labelled(constraint: cvxpy.Constraint, name: str) -> cvxpy.Constraint:
    """The constraint, printed under this name by a cvxpy that knows labels (from 1.7 on)."""
    return constraint.set_label(name) if hasattr(constraint, "set_label") else constraint


class Solving(TypedDict, total=False):
    """How a program is solved: keywords of every `solve_*` of a max-margin limit.

    Attributes
    ----------
    solver : str
        "interior-point", the default, or "cvxpy:NAME" with NAME one of CLARABEL, ECOS, SCS; OSQP
        for programs of one group, such as the linear SVM and SVM-L2; "highs" for programs with one
        coefficient a group, such as the L1 margin, at a vertex. cvxpy is given
        the standard form, `Formulation.program`; `Formulation.literal` is it in the paper's words.
    tol : float
        Relative duality gap to reach, in (0, 1); by default 1e-8. A looser one saves iterations,
        yet little time above 2000 samples, where the first working set is large whatever the gap.
    max_iterations : int or None
        Iterations of each run of the solver; by default None, as many as it thinks right.
    progress : callable or None
        `progress(iteration, gap)`, called once an iteration by the interior point.
    threads : int or None
        Of BLAS, in the interior point; by default None, by the size of the work and by the cores
        that stand idle.
    """

    solver: str
    tol: float
    max_iterations: int | None
    progress: Progress | None
    threads: int | None


def solve_limit(
    formulation: Formulation[LimitT],
    X: Array,
    y: Array,
    gates: Array | None = None,
    **solving: Unpack[Solving],
) -> LimitT:
    """Formulate, solve, read: the limit of these data, with its certificate.

    Parameters
    ----------
    formulation : Formulation
    X, y, gates
        As the formulation takes them; it says what they raise.
    **solving
        See `Solving`.

    Raises
    ------
    ValueError
        If there is no such solver, or a setting is out of range.
    """
    program = formulation.program(X, y, gates)
    return formulation.limit(program, solve_program(program, **solving), gates)


def solve_program(program: MaxMarginProgram, **solving: Unpack[Solving]) -> Solution:
    """Solve a program as the keywords of `Solving` say; raises as `solve_limit`."""
    solver, settings = chosen(**solving)
    return solve(program, solver=solver, settings=settings)


def chosen(
    *,
    solver: str = "interior-point",
    tol: float = 1e-8,
    max_iterations: int | None = None,
    progress: Progress | None = None,
    threads: int | None = None,
) -> tuple[str, Settings]:
    """The solver's name and its settings, as the keywords of `Solving` say."""
    return solver, Settings(
        tol=tol, max_iterations=max_iterations, progress=progress, threads=threads
    )
