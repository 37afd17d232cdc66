"""The two-layer ReLU network of least norm over all widths."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from ..._support.doors import door
from ..._support.kinds import count, positive
from ..._support.solve import (
    GatedDesign,
    MaxMarginProgram,
    Status,
    require_fraction,
    require_tolerance,
    solve,
)
from .bound import MAX_PATTERNS
from .descent import Programs
from .limit import ReLULocalLimit, network_units
from .problem import ReLUProblem, Units
from .search import Found, as_limit, failed, seek, units_at

if TYPE_CHECKING:
    import torch

# Units of each sign to begin with, and how often their number is doubled.
_FIRST, _DOUBLINGS = 8, 8
# Roundings between the entries of samples on one line, and a cosine below which there are more.
_ROUNDINGS, _CLOSE = 8, 1 - 1e-12


@door(max_programs=count(), max_patterns=count(), max_seconds=positive)
def solve_relu_minnorm(
    X: ArrayLike,
    y: ArrayLike,
    *,
    start: torch.nn.Module | None = None,
    slope: float = 0.0,
    tol: float = 1e-6,
    max_programs: int = 200,
    max_seconds: float | None = None,
    max_patterns: int = MAX_PATTERNS,
    random_state: int = 0,
) -> ReLULocalLimit:
    r"""Solve for the two-layer ReLU network of least norm, over all widths.

    .. math:: \min_{H, \theta} \tfrac12 \|\theta\|^2 \quad\text{s.t.}\quad
              y_n \sum_h a_h \max(\langle w_h, x_n \rangle, 0) \ge 1

    From a network, or from random gates, units are added along directions in which the multipliers
    ask for one, and local optima taken, until no direction is found any more; then a lower bound
    of all widths is computed. Inputs of rank 3 or less are always decided by it, others if the
    support samples of a label have no more than `max_patterns` gate patterns.

    Parameters
    ----------
    X : (n, D) array
        Inputs; a bias is a constant column.
    y : (n,) array
        Labels in {-1, +1}.
    start : Module, optional
        Network to begin with, as for `relu_local_limit`.
    slope : float
        Of the activation left of its kink, in [0, 1): a leaky ReLU.
    tol : float
        Relative gap to reach, in (0, 1).
    max_programs : int
        Convex programs in all.
    max_seconds : float, optional
        Seconds after which no further program begins.
    max_patterns : int
        Gate patterns that the bound of all widths may look at.
    random_state : int
        Seed of the first gates.

    Returns
    -------
    ReLULocalLimit
        GLOBAL_OPTIMUM if `certificate.lower_bound` is within `tol` of the value; LIVE_OPTIMUM or
        STATIONARY where that is not proved; NOT_SEPARABLE if two samples of different labels are
        on one ray, on which every such network is linear, or if no linear function separates the
        samples whose opposites have the other label, as ``f(x) - f(-x)`` is linear.

    Raises
    ------
    TypeError, ValueError
        If an array is malformed, a number out of range, or `start` no such network.

    Notes
    -----
    This is what an infinitely wide network of least norm computes; that training comes to it is
    not implied.

    Examples
    --------
    >>> X, y = np.array([[1.0, 0.0], [0.0, 2.0]]), np.array([1.0, -1.0])
    >>> limit = ib.limits.solve_relu_minnorm(X, y)
    >>> limit.status.name, round(limit.value, 6), len(limit.units)
    ('GLOBAL_OPTIMUM', 1.5, 2)
    """
    require_tolerance(tol)
    require_fraction("slope", slope)
    begun = time.perf_counter()
    problem = ReLUProblem.checked(X, y, slope)
    # Half of the tolerance for the local gap, as the bound of all widths comes on top.
    programs = Programs(problem, tol / 2, max_programs, max_seconds, max_patterns, begun)
    start_value = math.inf
    clash = no_network(problem)
    if clash:
        found = replace(failed(problem, (), clash), status=Status.NOT_SEPARABLE)
    elif start is not None:
        u, signs, own = network_units(start)
        if own != slope:
            raise ValueError(f"`start` must have the slope {slope} of `slope`, got {own}")
        if u.shape[1] != problem.inputs.shape[1]:
            raise ValueError(
                f"`start` must take the {problem.inputs.shape[1]} columns of `X`, got a network of "
                f"{u.shape[1]}"
            )
        units = units_at(problem, u, signs)
        start_value = problem.value_of_network(u, signs)
        found = seek(programs, units, math.inf, math.inf)
    else:
        found = _from_random(programs, random_state)
    return as_limit(programs, found, start_value, tol)


def _from_random(programs: Programs, random_state: int) -> Found:
    """Begin with random gates, twice as many where those are too few to separate the data."""
    problem, rng = programs.problem, np.random.default_rng(random_state)
    found = failed(problem, (), "no program was allowed")
    for doubling in range(_DOUBLINGS):
        u = rng.normal(size=(_FIRST * 2**doubling, problem.X.shape[1]))
        u = np.concatenate([u, u])
        signs = np.repeat([1.0, -1.0], len(u) // 2)
        units = Units(u, signs, problem.X @ u.T > 0)
        found = seek(programs, units, math.inf, math.inf)
        if found.status is not Status.FAILED or programs.spent:
            break
    return found


def no_network(problem: ReLUProblem) -> str:
    """Samples that no network tells apart, in words; empty without such."""
    zero = np.flatnonzero(problem.sizes == 0)
    if len(zero):
        return f"sample {zero[0]} is 0, and so is every score of it"
    same = on_one_line(problem, 1.0)
    if same:
        a, b = same[0]
        return f"samples {a} and {b} have different labels and are on one ray from 0"
    # f(x) - f(-x) is linear in x: where labels of opposite samples differ it must separate them.
    rows = [int(a) for a, _ in on_one_line(problem, -1.0)]
    if not rows:
        return ""
    one, unit = np.ones((len(rows), 1)), problem.inputs[rows] / problem.sizes[rows, None]
    odd = solve(MaxMarginProgram(GatedDesign(unit, one, np.zeros(1, dtype=np.int64)), one[:, 0]))
    if odd.status is not Status.NOT_SEPARABLE:
        return ""
    return (
        f"f(x) - f(-x) is linear in x, and no linear function is positive at samples "
        f"{', '.join(map(str, rows))}, whose opposites have the other label"
    )


def on_one_line(problem: ReLUProblem, side: float) -> list[tuple[int, int]]:
    """Return pairs of a positive and a negative sample on one line, and one or opposite rays."""
    unit = problem.X / problem.sizes[:, None]
    positive, negative = np.flatnonzero(problem.y > 0), np.flatnonzero(problem.y < 0)
    pairs = []
    for row, column in np.argwhere(side * unit[positive] @ unit[negative].T > _CLOSE):
        a, b = int(positive[row]), int(negative[column])
        one, other = problem.inputs[a], problem.inputs[b]
        largest = np.argmax(np.abs(one))
        missing = np.abs(other - one * (other[largest] / one[largest]))
        if np.all(missing <= _ROUNDINGS * 2.0**-53 * np.abs(other)):
            pairs.append((a, b))
    return pairs
