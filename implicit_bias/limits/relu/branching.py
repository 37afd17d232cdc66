"""Branch and bound over the gates of helping samples: the largest value of the dual function."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import lsq_linear

from ...data.arrays import Floats
from .directions import Direction, Side, shortest
from .problem import Flags

# Patterns that are bounded at once, and iterations of the accelerated gradient on each.
_CHUNK, _STEPS = 2**12, 40
# Shares of opposing samples that are set aside for free helping ones, tried one after the other.
_ASIDE = (0.0, 0.5, 1.0)
_ASIDE_STEPS = 150
# Rounds of the accelerated gradient on whole patterns; those that remain then are solved one at a
# time.
_ROUNDS = (5, 20, 80, 320, 1280)


class Largest(NamedTuple):
    """An upper bound of the dual function's size on the sphere, and a direction close to it.

    Attributes
    ----------
    bound : float
    direction : Direction
        The best one known.
    n_patterns : int
        Gate patterns, of some or all helping samples, that were looked at.
    """

    bound: float
    direction: Direction
    n_patterns: int


class GateNodes(NamedTuple):
    """Gates (K, k) of the first k helping samples, with dual variables (K, q + k) to begin with.

    Those of the q opposing samples are shares, those of fixed helping ones at least 0 where the
    gate is open, and at most 0 where it is closed.
    """

    gates: Floats
    duals: Floats

    def take(self, chosen: NDArray[np.int64] | Flags) -> GateNodes:
        """Return some of the nodes."""
        return GateNodes(self.gates[chosen], self.duals[chosen])

    def halves(self) -> list[GateNodes]:
        """Return the patterns with a further gate, closed and open, in parts."""
        column = np.zeros((len(self.gates), 1))
        duals = np.hstack([self.duals, column])
        gates = np.concatenate([np.hstack([self.gates, column + gate]) for gate in (0.0, 1.0)])
        both = GateNodes(gates, np.concatenate([duals, duals]))
        n_parts = -(-len(gates) // _CHUNK)
        return [both.take(part) for part in np.array_split(np.arange(len(gates)), n_parts)]


class SortedSide:
    """A side's helping samples, those of most weight first, with a constant part and opposing ones.

    The dual function is ``<constant, v> + sum_i max(<h_i, v>, 0) - sum_j max(<o_j, v>, 0)``.
    """

    def __init__(self, side: Side) -> None:
        order = np.argsort(-np.linalg.norm(side.helping, axis=1))
        self.helping = (1 - side.slope) * side.helping[order]
        self.opposing = side.hinges
        self.constant = side.linear(np.zeros((1, len(order))))[0]
        sizes = np.linalg.norm(self.helping, axis=1, keepdims=True)
        self.directions: Floats = self.helping / np.where(sizes > 0, sizes, 1.0)
        self._aside: dict[tuple[int, float], Floats] = {}

    def aside(self, k: int, most: float) -> Floats:
        """Return shares (p - k, q) of opposing samples for the helping ones behind the k-th.

        At most `most` of each in all, such that ``helping - W opposing`` is small; any will do.
        """
        if (k, most) not in self._aside:
            W = np.zeros((len(self.helping) - k, len(self.opposing)))
            if most > 0 and W.size:
                within = partial(_at_most, most=most)
                W = shortest(self.helping[k:], self.opposing, W, _ASIDE_STEPS, within)
            self._aside[k, most] = W
        return self._aside[k, most]

    def bounds(self, nodes: GateNodes, most: float) -> tuple[Floats, Floats]:
        """Return upper bounds (K,) of the dual function over all gates that nodes leave, and duals.

        Shares W of opposing samples are set aside for the free helping ones, so that
        ``e_i = h_i - W_i O`` of these count. With shares of what is left of the opposing ones, and
        duals of the sides of fixed ones, the function is at most ``||x + sum_i (g_i - 1/2) e_i||``
        on the sphere at gates g, with x the vector at half gates; the square of it is at most
        ``||x||^2 + sum_i |<x, e_i>| + sum_ij |<e_i, e_j>| / 4``.
        """
        k, q = nodes.gates.shape[1], len(self.opposing)
        W = self.aside(k, most)
        free = self.helping[k:] - W @ self.opposing
        middle = self.constant + nodes.gates @ self.helping[:k] + 0.5 * free.sum(axis=0)
        B = np.concatenate([self.opposing, -self.directions[:k]])
        left = np.broadcast_to(np.maximum(1 - W.sum(axis=0), 0.0), (len(middle), q))
        open_ = nodes.gates > 0
        low = np.hstack([np.zeros_like(left), np.where(open_, 0.0, -np.inf)])
        high = np.hstack([left, np.where(open_, np.inf, 0.0)])
        allowed = partial(np.clip, a_min=low, a_max=high)
        duals = shortest(middle, B, allowed(nodes.duals), _STEPS, allowed)
        x = middle - duals @ B
        gram = free @ free.T
        spread = 0.0
        if len(free):
            largest = float(np.linalg.eigvalsh(gram)[-1])
            spread = min(float(np.abs(gram).sum()), len(free) * largest) / 4
        squares = np.einsum("kr,kr->k", x, x) + np.abs(x @ free.T).sum(axis=1) + spread
        return np.sqrt(squares), duals


def largest_of_side(side: Side, known: Largest, max_patterns: int) -> Largest | None:
    """Bound the dual function of units of one sign, beside what is known of it.

    Gates are fixed one by one. Nodes whose bound is not above the largest value known are left;
    whole patterns are solved.

    Parameters
    ----------
    side : Side
    known : Largest
        Of the other sign, and from a search.
    max_patterns : int
        At most, those that `known` has looked at counted.

    Returns
    -------
    Largest or None
        None where that takes more patterns.
    """
    if not len(side.helping):
        return known
    problem = SortedSide(side)
    p, q = problem.helping.shape[0], len(problem.opposing)
    waiting = [GateNodes(np.zeros((1, 0)), np.full((1, q), 0.5))]
    while waiting:
        nodes = waiting.pop()
        known = known._replace(n_patterns=known.n_patterns + len(nodes.gates))
        if known.n_patterns > max_patterns:
            return None
        k = nodes.gates.shape[1]
        for most in _ASIDE if k < p else _ASIDE[:1]:
            bounds, duals = problem.bounds(nodes, most)
            if most == 0:
                nodes = nodes._replace(duals=duals)
            nodes = nodes.take(bounds > known.bound)
            if not len(nodes.gates):
                break
        if not len(nodes.gates):
            continue
        if k < p:
            waiting += nodes.halves()
        else:
            known = _refined(problem, nodes, side, known)
    return known


def _at_most(W: Floats, most: float) -> Floats:
    """Project columns of W onto those that sum to `most` at most, and are not negative."""
    W = np.maximum(W, 0.0)
    above = W.sum(axis=0) > most
    columns = W[:, above]
    falling = -np.sort(-columns, axis=0)
    excess = np.cumsum(falling, axis=0) - most
    counts = np.arange(1, len(W) + 1)[:, None]
    last = np.sum(falling > excess / counts, axis=0)
    cut = excess[last - 1, np.arange(columns.shape[1])] / last
    W[:, above] = np.maximum(columns - cut, 0.0)
    return W


def _refined(problem: SortedSide, nodes: GateNodes, side: Side, known: Largest) -> Largest:
    """Solve whole patterns, and keep the largest bound and the best direction."""
    B = problem.opposing
    c = problem.constant + nodes.gates @ problem.helping
    shares = nodes.duals[:, : len(B)]
    for n_steps in _ROUNDS:
        shares = shortest(c, B, shares, n_steps)
        left = c - shares @ B
        above = np.linalg.norm(left, axis=1) > known.bound
        c, shares = c[above], shares[above]
        if not len(c):
            return known
    for row in c:
        exact = lsq_linear(B.T, row, bounds=(0.0, 1.0), method="bvls").x if len(B) else np.zeros(0)
        left = row - np.clip(exact, 0.0, 1.0) @ B
        size = float(np.linalg.norm(left))
        if size > known.bound:
            found = Direction(left / size, side.sign, float(side.dual(left[None] / size)[0]))
            best = max(known.direction, found, key=lambda one: one.dual)
            known = known._replace(bound=size, direction=best)
    return known
