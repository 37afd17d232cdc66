"""Settings that a caller may choose for a solve."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from ..numerics.checks import require_count, require_tolerance, shown

SolverName = Literal[
    "interior-point", "highs", "cvxpy", "cvxpy:CLARABEL", "cvxpy:ECOS", "cvxpy:SCS", "cvxpy:OSQP",
    "cvxpy:HIGHS", "cvxpy:COPT", "cvxpy:CPLEX", "cvxpy:GUROBI", "cvxpy:MOSEK", "cvxpy:XPRESS",
]  # fmt: skip
"""Names of solvers, "cvxpy:NAME" for what cvxpy has installed; further ones of it are taken too."""

Progress = Callable[[int, float], None]
"""Callable that is told `(iteration, gap)` once an iteration."""


@dataclass(frozen=True)
class Settings:
    """Settings that every solver obeys.

    Attributes
    ----------
    tol : float
        Relative duality gap at which a program counts as solved, in (0, 1).
    max_iterations : int or None
        Iterations that one run of the solver may take; None leaves it to the solver.
    working_set_from : int
        Number of samples from which the interior point solves on a growing working set
        instead of on all samples at once.
    group_set_from : int
        Number of groups from which it solves on a growing set of groups instead of on all at once.
    single_from : int
        Number of samples from which, on NumPy arrays, it tries Newton matrices in single precision
        first. Certificates are in double precision throughout.
    threads : int or None
        Threads of NumPy's and SciPy's BLAS, and of torch, while the interior point runs. None: one,
        and as many as find a free core where an iteration is long, up to what they have already
        (`OMP_NUM_THREADS`).
    progress : callable or None
        Called as `progress(iteration, gap)` once an iteration by solvers that allow it.

    Raises
    ------
    TypeError
        If a number of samples, groups, iterations or threads is no integer.
    ValueError
        If one is below 1, or `tol` is not strictly between 0 and 1.

    Examples
    --------
    >>> Settings(tol=1e-6).max_iterations is None
    True
    """

    tol: float = 1e-8
    max_iterations: int | None = None
    # Measured on MNIST digits: a first set of 300 adds a quarter to the time of a program that
    # needs all of 1,000 samples, and a twentieth at 2,000; where few matter it saves nine tenths.
    working_set_from: int = 1500
    # On 500 samples behind gates a set ends at some 600 groups, and its rounds take thrice the
    # iterations: it pays from about twice as many groups on.
    group_set_from: int = 1200
    # On digits behind 100 units a solve of 2,000 samples takes 0.7 of the time, one of 8,000 0.56.
    single_from: int = 1500
    threads: int | None = None
    progress: Progress | None = None

    def __post_init__(self) -> None:
        require_tolerance(self.tol)
        if self.progress is not None and (
            not callable(self.progress) or isinstance(self.progress, type)
        ):
            raise TypeError(f"`progress` must be a function or None, got {shown(self.progress)}")
        for name in ("working_set_from", "group_set_from", "single_from"):
            require_count(name, getattr(self, name))
        for name in ("max_iterations", "threads"):
            if (value := getattr(self, name)) is not None:
                require_count(name, value, " or None")
