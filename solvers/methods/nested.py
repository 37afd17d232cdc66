"""Solver of programs of nested samples, each begun where the last one ended."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from ..certificates.solution import Solution
from ..certificates.status import Status
from ..numerics.arrays import Array, array_namespace
from ..programs.max_margin import MaxMarginProgram
from ..programs.scaling import require_scales
from .dispatch import solve
from .interior_point import solve_interior_point
from .refinement import PrimalDual
from .settings import Settings, SolverName


def solve_nested(
    program: MaxMarginProgram,
    sizes: Sequence[int],
    *,
    solver: SolverName = "interior-point",
    settings: Settings | None = None,
) -> tuple[Solution, ...]:
    """Solve the programs of the first n samples of `program`, for every n of `sizes`.

    The support vectors of one answer and the samples that it brings close to the margin are the
    first working set of the next. Programs below `settings.working_set_from` have no such set, nor
    have other solvers: they are solved one by one.

    Parameters
    ----------
    program : MaxMarginProgram
    sizes : sequence of int
        Rising, from 1 to the number of samples.
    solver : str
        Name of the solver, "interior-point" unless another is named.
    settings : Settings, optional
        Tolerance and limits of every solve.

    Returns
    -------
    tuple of Solution
        One for each size, certified on all its samples as `solve` does.

    Raises
    ------
    ValueError
        If `sizes` is empty, does not rise or leaves the samples, or there is no such solver.

    Examples
    --------
    >>> import numpy as np
    >>> from solvers import GatedDesign
    >>> design = GatedDesign(np.diag([2.0, 1.0]), np.ones((2, 1)), np.zeros(1, dtype=np.int64))
    >>> program = MaxMarginProgram(design, np.array([1.0, -1.0]))
    >>> [round(s.certificate.objective**2, 6) for s in solve_nested(program, [1, 2])]
    [0.25, 1.25]
    """
    require_rising(sizes, program.n_samples)
    require_scales(program)
    settings = settings or Settings()
    solutions: list[Solution] = []
    for size in sizes:
        part = program.first(size)
        known = solutions[-1] if solutions else None
        if solver == "interior-point" and known is not None and known.status is Status.SOLVED:
            guess = PrimalDual(primal=known.primal, dual=_padded(known.dual, part.y))
            solutions.append(solve_interior_point(part, settings, guess=guess))
        else:
            solutions.append(solve(part, solver=solver, settings=settings))
    return tuple(solutions)


def require_rising(sizes: Sequence[int], n_samples: int) -> None:
    """Refuse `sizes` that are not numbers of samples, from few to many, by a `ValueError`."""
    inside = all(0 < size <= n_samples for size in sizes)
    rising = all(one < other for one, other in pairwise(sizes))
    if len(sizes) == 0 or not (inside and rising):
        raise ValueError(
            f"`sizes` must rise from 1 to at most {n_samples}, the number of samples, "
            f"got {list(sizes)}"
        )


def _padded(dual: Array, like: Array) -> Array:
    """Multipliers with zeros for the samples that are new."""
    padded = array_namespace(like).zeros_like(like)
    padded[: dual.shape[0]] = dual
    return padded
