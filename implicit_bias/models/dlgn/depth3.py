"""Two hidden layers of constant experts: the global optimum, between two proved bounds."""

from __future__ import annotations

import heapq
import itertools
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..._support.doors import door
from ..._support.solve import (
    Array,
    GatedDesign,
    MaxMarginProgram,
    Solution,
    Status,
    gap_between,
    to_numpy,
)
from ...data.arrays import Floats
from ...limits.formulation import real_data, solve_program
from ...limits.result import Result, proved

# Distinct gates of the layer whose weights are divided up: cells are simplices of one dimension
# less, whose number for a given width grows with that power.
MOST_GATES = 3
# Of the alternation that looks for good weights: each round is two programs, and falls.
_ROUNDS, _STALLED = 30, 1e-6
_SUB_TOL = 1e-7


@dataclass(frozen=True)
class Depth3Bounds:
    """Bounds of the least value, as programs with certificates of their own prove them.

    Attributes
    ----------
    lower, upper : float
    path_bound : float
        The bound of the path lasso, where the division of cells begins.
    """

    lower: float
    upper: float
    path_bound: float

    @property
    def gap(self) -> float:
        """`upper / lower - 1`."""
        return gap_between(self.upper, self.lower, self.lower)


class Depth3Interval(Result):
    """Proved bounds of the least value of all networks with these gates.

    Attributes
    ----------
    t, p : (H1,) and (H2,) arrays
        Shares of the first and second layer's units in the squared norm, with sum 1. The network
        that has them attains `upper`.
    status : Status
        SOLVED where the interval is as narrow as was asked for, else INACCURATE.
    certificate : Depth3Bounds
        The least value lies between `lower` and `upper`.
    tol : float
        Relative width that was asked for.
    programs : int
        Convex programs solved.
    seconds : float
        Wall time.

    Examples
    --------
    >>> gates = np.array([[1, 0, 1], [0, 1, 1]])
    >>> interval = ib.limits.certify_depth3(np.array([1.0, -1.0]), gates, widths=(2, 1))
    >>> interval.t.round(6).tolist(), interval.p.round(6).tolist()
    ([0.5, 0.5], [1.0])
    """

    ADVICE: ClassVar = {
        Status.SOLVED: "solved: the interval is as narrow as was asked for, and proved",
        Status.INACCURATE: "inaccurate: the interval is proved, and wider than `tol`. Allow more "
        "programs (`max_programs`)",
    }
    RECORD = ("gap", "finished", "t", "p")

    t: Floats
    p: Floats
    status: Status
    certificate: Depth3Bounds
    tol: float
    programs: int
    seconds: float

    lower = proved("lower", "Certified lower bound of the least value.")
    upper = proved("upper", "Certified upper bound of the least value.")
    gap = proved("gap", "`upper / lower - 1`.")

    @property
    def finished(self) -> bool:
        """True if the interval is as narrow as was asked for."""
        return self.status is Status.SOLVED


@door()
def certify_depth3(
    y: Array,
    gates: Array,
    widths: Sequence[int],
    *,
    n_inputs: int = 1,
    tol: float = 1e-2,
    max_programs: int = 400,
) -> Depth3Interval:
    r"""Bound the least value of two hidden layers of constant experts, by branch and bound.

    .. math:: V^{-2} = \max_{t, p} \min_\lambda \; \lambda' Y K_{t,p} Y \lambda, \qquad
              K_{t,p} = \Bigl(\sum_i t_i g^1_i {g^1_i}'\Bigr) \circ
                        \Bigl(\sum_j p_j g^2_j {g^2_j}'\Bigr)

    over simplices of t, p, lam: a kernel machine whose layer weights are learned. At given p it is
    a group lasso. For p in a cell with vertices p_1, .., p_K, a group lasso over pairs (unit,
    vertex), which lets every unit of the other layer have weights of its own, is a lower bound of
    V; at the cell of all p it is the path lasso. Cells are halved, those with the lowest bound
    first, until the lowest is within `tol` of the best value found.

    Parameters
    ----------
    y : (n,) array
        Labels in {-1, +1}.
    gates : (n, H1 + H2) array
        Gate values of both hidden layers; one of the layers has at most three distinct gates.
    widths : sequence of int
        Units of each hidden layer, (H1, H2).
    n_inputs : int
        D, the ones that the first layer sees: values fall by the factor `1 / sqrt(D)`.
    tol : float
        Relative width of the interval to reach.
    max_programs : int
        Most convex programs to solve; the interval is proved wherever that ends it.

    Returns
    -------
    Depth3Interval
        Proved lower and upper bounds, and the shares of the layers that attain the upper one.

    Raises
    ------
    TypeError, ValueError
        If shapes disagree, both layers have more gates, or no weights separate the data.

    Examples
    --------
    >>> gates = np.array([[1, 0, 1], [0, 1, 1]])
    >>> interval = ib.limits.certify_depth3(np.array([1.0, -1.0]), gates, widths=(2, 1))
    >>> interval.status.name, round(interval.lower, 6), round(interval.upper, 6)
    ('SOLVED', 2.0, 2.0)
    """
    start = time.perf_counter()
    labels, layers = _checked(y, gates, widths)
    # Of equal gates the first unit stands for all.
    found = [np.unique(layer, axis=1, return_index=True) for layer in layers]
    n_gates = [distinct.shape[1] for distinct, _ in found]
    small = int(n_gates[0] >= n_gates[1])
    if n_gates[small] > MOST_GATES:
        raise ValueError(
            f"one of the layers must have at most {MOST_GATES} distinct gates, got {n_gates[0]} "
            f"and {n_gates[1]}: `solve_path_lasso` and `local_limit` have no such restriction"
        )
    search = _Search(labels, found[1 - small][0], found[small][0], n_inputs, max_programs)
    root = np.eye(n_gates[small])
    path_bound, p = search.lower_bound(root)
    search.improve(p)
    search.improve(np.full(len(root), 1 / len(root)))
    lower = search.divide(root, path_bound, tol)
    shares = [np.zeros(width) for width in widths]
    for layer, weights in zip((1 - small, small), search.best, strict=True):
        shares[layer][found[layer][1]] = weights
    bounds = Depth3Bounds(lower, search.upper, path_bound)
    return Depth3Interval(
        t=shares[0],
        p=shares[1],
        status=Status.SOLVED if bounds.gap <= tol else Status.INACCURATE,
        certificate=bounds,
        tol=tol,
        programs=search.programs,
        seconds=time.perf_counter() - start,
    )


@dataclass(eq=False)
class _Search:
    y: Floats
    other: Floats  # (n, H) distinct gates of the layer whose weights programs find
    divided: Floats  # (n, K) those of the layer whose weights are divided up
    n_inputs: int
    max_programs: int
    programs: int = 0
    upper: float = math.inf
    best: tuple[Floats, ...] = ()  # shares of the other and of the divided layer at `upper`

    def lower_bound(self, vertices: Floats) -> tuple[float, Floats]:
        """Proved bound for weights in the hull of `vertices` (K, gates), and weights to try."""
        solution = self._solve(self.other, self.divided, vertices)
        shares = _norms(solution, len(vertices), vertices.shape[1]).sum(axis=0)
        return solution.certificate.dual_objective, shares @ vertices / shares.sum()

    def improve(self, p: Floats) -> None:
        """Alternate between the two layers from weights `p`; keep the best of all."""
        value = math.inf
        for _ in range(_ROUNDS):
            if self.programs + 2 > self.max_programs and math.isfinite(self.upper):
                return
            t, _ = self._at(self.other, self.divided, p)
            p, found = self._at(self.divided, self.other, t)
            if found < self.upper:
                self.upper, self.best = found, (t, p)
            if not found < value * (1 - _STALLED):
                return
            value = found

    def divide(self, root: Floats, bound: float, tol: float) -> float:
        """Halve cells until the lowest bound is near the best value; that bound."""
        count = itertools.count()  # ties are broken by age, not by comparing arrays
        cells = [(bound, next(count), root)]
        while cells[0][0] * (1 + tol) < self.upper and self.programs < self.max_programs:
            bound, _, cell = heapq.heappop(cells)
            for half in _halves(cell):
                below, p = self.lower_bound(half)
                heapq.heappush(cells, (max(bound, below), next(count), half))
                if self._at(self.other, self.divided, p)[1] < self.upper * (1 - _STALLED):
                    self.improve(p)
        return cells[0][0]

    def _at(self, free: Floats, fixed: Floats, weights: Floats) -> tuple[Floats, float]:
        """Best weights of the free layer at those of the fixed one, and the value that they have.

        That of `weights` and the free layer's shares is smaller still, or equal.
        """
        solution = self._solve(free, fixed, weights[None, :])
        norms = _norms(solution, 1, fixed.shape[1])[:, 0]
        return norms / norms.sum(), solution.certificate.objective

    def _solve(self, free: Floats, fixed: Floats, vertices: Floats) -> Solution:
        """The group lasso over (free unit, vertex), columns `sqrt(weight_j) free_i fixed_j`."""
        self.programs += 1
        n, n_units, n_vertices = len(self.y), free.shape[1], len(vertices)
        columns = np.sqrt(vertices)[None, :, :] * fixed[:, None, :]
        Z = free[:, :, None, None] * columns[:, None, :, :]
        group = np.arange(n_units * n_vertices).repeat(fixed.shape[1])
        design = GatedDesign(
            X=np.full((n, 1), math.sqrt(self.n_inputs)), Z=Z.reshape(n, -1), group=group
        )
        solution: Solution = solve_program(MaxMarginProgram(design, self.y), tol=_SUB_TOL)
        if solution.status is Status.NOT_SEPARABLE:
            raise ValueError(
                "no constant experts behind these gates separate the data, which has been "
                "proved: give more gates, or linear experts"
            )
        return solution


def _checked(y: Any, gates: Any, widths: Sequence[int]) -> tuple[Floats, list[Floats]]:
    """Return labels, and the gates of both layers."""
    placed, labels = (to_numpy(array) for array in real_data(gates, y, "gates"))
    if placed.ndim != 2 or not len(placed) or labels.shape != placed.shape[:1]:
        raise ValueError(
            f"`gates` must have shape (n, H1 + H2) and `y` (n,) with n >= 1, got {placed.shape} "
            f"and {labels.shape}"
        )
    if len(widths) != 2 or placed.shape[1] != sum(widths):
        raise ValueError(
            f"`gates` must have shape (n, H1 + H2) with `widths` (H1, H2), got {placed.shape} "
            f"and {tuple(widths)}"
        )
    if not np.all((placed == 0) | (placed == 1)):
        raise ValueError("`gates` must be exactly 0 (closed) or 1 (open)")
    return labels, np.split(placed, [int(widths[0])], axis=1)


def _norms(solution: Solution, n_vertices: int, width: int) -> Floats:
    """(units, vertices) norms of the groups of a solution, of `width` coefficients each."""
    blocks = to_numpy(solution.primal).reshape(-1, n_vertices, width)
    return np.asarray(np.linalg.norm(blocks, axis=2))


def _halves(cell: Floats) -> tuple[Floats, Floats]:
    """A simplex (K, gates) cut in two through the middle of its longest edge."""
    lengths = np.linalg.norm(cell[:, None] - cell[None, :], axis=2)
    a, b = np.unravel_index(int(lengths.argmax()), lengths.shape)
    halves = cell.copy(), cell.copy()
    halves[0][a] = halves[1][b] = (cell[a] + cell[b]) / 2
    return halves
