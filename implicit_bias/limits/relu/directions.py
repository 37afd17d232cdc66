"""Directions along which a further unit would raise margins at given multipliers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ...data.arrays import Floats
from .problem import Flags, ReLUProblem

_STARTS, _ROUNDS = 600, 50
# Iterations of the accelerated projected gradient a round.
_STEPS = 200
# Rises of the dual function, relative to it, that count, after the first rounds: on a kink the sign
# of rounding errors is no gate.
_RISE, _FIRST = 1e-10, 5
# As many times more from the best directions.
_FINE = 10
# Directions closer than this cosine are one.
_SAME = 1 - 1e-6


@dataclass(frozen=True, eq=False)
class Side:
    """Samples with a multiplier, as units of one sign see them, times their multipliers.

    Attributes
    ----------
    sign : float
    helping, opposing : (p, r), (q, r) arrays
        ``lam_n x_n``.
    slope : float
        Slope of the activation left of its kink.
    """

    sign: float
    helping: Floats
    opposing: Floats
    slope: float

    def dual(self, v: Floats) -> Floats:
        """Return ``sum_n lam_n y_n s rho(<v, x_n>)`` of directions (k, r), shape (k,)."""
        return np.asarray(
            self._rho(v @ self.helping.T).sum(axis=1) - self._rho(v @ self.opposing.T).sum(axis=1)
        )

    def linear(self, gates: Floats) -> Floats:
        """Return the sums (k, r) of helping samples on gates (k, p), less closed opposing ones."""
        weights = self.slope + (1 - self.slope) * gates
        return np.asarray(weights @ self.helping - self.slope * self.opposing.sum(axis=0))

    @property
    def hinges(self) -> Floats:
        """Opposing samples (q, r) by the part of their slope that opens."""
        return (1 - self.slope) * self.opposing

    def _rho(self, z: Floats) -> Floats:
        return np.asarray(self.slope * z + (1 - self.slope) * np.maximum(z, 0.0))


@dataclass(frozen=True, eq=False)
class Direction:
    """A unit direction (r,), the sign of its unit, and the dual function there."""

    v: Floats
    sign: float
    dual: float


def sides(problem: ReLUProblem, lam: Floats) -> tuple[Side, Side]:
    """Return the samples with a multiplier as positive and as negative units see them."""
    support = lam > 0
    scaled = lam[:, None] * problem.X
    return tuple(
        Side(
            sign,
            scaled[support & (problem.y == sign)],
            scaled[support & (problem.y != sign)],
            problem.slope,
        )
        for sign in (1.0, -1.0)
    )  # type: ignore[return-value]


def dual_function(problem: ReLUProblem, lam: Floats, v: Floats) -> Floats:
    """Return ``sum_n lam_n y_n rho(<v, x_n>)`` of directions (k, r), shape (k,)."""
    return np.asarray(problem.activation(v @ problem.X.T) @ (lam * problem.y))


def shortest(
    c: Floats,
    B: Floats,
    shares: Floats,
    n_steps: int,
    allowed: Callable[[Floats], Floats] = lambda shares: np.clip(shares, 0.0, 1.0),
) -> Floats:
    """Return shares (k, q) that are allowed and make ``||c - shares B||`` small, row by row.

    Accelerated projected gradient with restarts; any shares bound the minimum from above.

    Parameters
    ----------
    c : (k, r) array
    B : (q, r) array
    shares : (k, q) array
        To begin with.
    n_steps : int
    allowed : callable
        Projection onto shares that are allowed; by default on those in [0, 1].
    """
    gram, target = B @ B.T, c @ B.T
    if not gram.size:
        return shares
    step = 1 / max(float(np.linalg.norm(gram, 2)), np.finfo(float).tiny)
    ahead, momentum = shares, np.ones(len(c))
    for _ in range(n_steps):
        slope = ahead @ gram - target
        moved = allowed(ahead - step * slope)
        # Momentum that leads uphill is dropped.
        uphill = np.einsum("kq,kq->k", slope, moved - shares) > 0
        following = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        weight = np.where(uphill, 0.0, (momentum - 1) / following)
        momentum = np.where(uphill, 1.0, following)
        ahead = moved + weight[:, None] * (moved - shares)
        shares = moved
    return shares


def best_directions(
    problem: ReLUProblem, lam: Floats, known: Floats, *, random_state: int = 0
) -> list[Direction]:
    """Search for the largest values of the dual function on the unit sphere, largest first.

    Helping terms are linearised at a direction, opposing ones stay: the best direction of that
    concave function is a shortest vector, and helping gates of it are taken next. Values never
    fall. What is found are local maxima; that there are no others is not proved.

    Parameters
    ----------
    problem : ReLUProblem
    lam : (n,) array
        Multipliers.
    known : (k, r) array
        Directions to begin with, beside random ones: those of the network's units.
    random_state : int
    """
    rng = np.random.default_rng(random_state)
    drawn = rng.normal(size=(_STARTS, problem.X.shape[1]))
    begins = np.concatenate([known, drawn])
    found: list[Direction] = []
    for side in sides(problem, lam):
        if not len(side.helping):
            continue
        v = _climbed(side, _unit(begins), _STEPS)
        order = np.argsort(-side.dual(v))
        kept: list[int] = []
        for k in order:
            if all(v[k] @ v[j] < _SAME for j in kept):
                kept.append(int(k))
            if len(kept) == 8:
                break
        best = _climbed(side, v[kept], _FINE * _STEPS)
        found += [
            Direction(one, side.sign, float(dual))
            for one, dual in zip(best, side.dual(best), strict=True)
        ]
    return sorted(found, key=lambda direction: -direction.dual)


def _climbed(side: Side, begins: Floats, n_steps: int) -> Floats:
    """Directions (k, r) from which no change of helping gates leads higher."""
    best, duals = begins.copy(), side.dual(begins)
    v, going = begins, np.arange(len(begins))
    gates: Flags = v @ side.helping.T > 0
    shares = np.zeros((len(v), len(side.opposing)))
    for turn in range(_ROUNDS):
        c = side.linear(gates.astype(float))
        shares = shortest(c, side.hinges, shares, n_steps)
        v = _unit(c - shares @ side.hinges)
        now = side.dual(v)
        higher = now > duals[going]
        rose = now > duals[going] * (1 + _RISE)
        best[going[higher]], duals[going[higher]] = v[higher], now[higher]
        opened = v @ side.helping.T > 0
        moved = np.any(opened != gates, axis=1) & (rose | (turn < _FIRST))
        if not moved.any():
            break
        going, gates, shares = going[moved], opened[moved], shares[moved]
    return best


def _unit(v: Floats) -> Floats:
    norms = np.linalg.norm(v, axis=1, keepdims=True)
    return np.asarray(v / np.where(norms > 0, norms, 1.0))
