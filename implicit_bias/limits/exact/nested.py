"""Limits of growing numbers of samples, each solve started from the one before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

from ..._support.doors import door
from ..._support.kinds import arrays
from ..._support.solve import Array, ArrayLike, solve_nested
from ...data.arrays import SparseLike
from ..formulation import Formulation, LimitT, Solving, chosen


@door(gates=arrays)
def solve_path(
    formulation: Formulation[LimitT],
    X: SparseLike,
    y: ArrayLike,
    gates: Array | None = None,
    *,
    sizes: Sequence[int],
    **solving: Unpack[Solving],
) -> tuple[LimitT, ...]:
    """Solve for the first n samples, for every n of `sizes`, each from the solution before.

    From 1,500 samples on, the support vectors of one limit and the samples that it brings close to
    the margin are the first working set of the next.

    Parameters
    ----------
    formulation : Formulation
        `HardMarginSVM()`, `SVMGLN(n_contexts)` or `SVMFReLU()`.
    X : (n, D) real array
        NumPy array or torch tensor.
    y : (n,) array
        Labels in {-1, +1}.
    gates : array, optional
        Gates or contexts with one row a sample, as the formulation takes them.
    sizes : sequence of int
        Increasing, from 1 to n.
    **solving
        `solver`, `tol`, `max_iterations`, `progress`, `threads`: see `Solving`.

    Returns
    -------
    tuple of limits
        One for each size, each with its certificate over all its samples.

    Raises
    ------
    TypeError, ValueError
        If an array is malformed for the formulation, `sizes` does not increase or leaves the
        samples, or a setting is out of range.

    Examples
    --------
    >>> X, y = np.array([[1.0, 2.0], [3.0, 4.0], [-1.0, 0.0]]), np.array([1.0, 1.0, -1.0])
    >>> path = ib.limits.solve_path(ib.programs.HardMarginSVM(), X, y, sizes=[1, 3])
    >>> [round(limit.objective, 6) for limit in path]
    [0.447214, 1.0]
    """
    if not getattr(formulation, "is_own", True):
        raise ValueError(
            "`formulation` must have its own norm, that of gradient descent, for growing sets of "
            "samples: solve each set by itself in another"
        )
    program = formulation.program(X, y, gates)
    solver, settings = chosen(**solving)
    solutions = solve_nested(program, sizes, solver=solver, settings=settings)
    return tuple(
        formulation.limit(program.first(n), solution, None if gates is None else gates[:n])
        for n, solution in zip(sizes, solutions, strict=True)
    )
