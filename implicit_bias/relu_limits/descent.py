"""Descent through convex programs, each on the gates of the last solution."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace

import numpy as np

from .._solve import HingeSolution, Status, solve_hinge
from ..data.arrays import Floats
from .problem import Flags, ReLUProblem, Units, merged

__all__ = ["Budget", "Descent", "descend", "kinks_of", "live_units"]

# Multipliers (n,) and shares (n, H).
Guess = tuple[Floats, Floats]

# Cosines of a sample and a unit that count as a kink.
KINK = 1e-6
# Multipliers of support samples, relative to the largest.
SUPPORT = 1e-9
# Falls of the value, relative to it, that count as none.
STILL = 1e-9


@dataclass
class Budget:
    """Programs and seconds that a search may still take.

    Attributes
    ----------
    programs : int
        Left.
    ends : float
        Moment of `time.perf_counter` at which it ends.
    solves : int
        Group lassos so far.
    """

    programs: int
    ends: float = math.inf
    solves: int = 0

    @classmethod
    def within(cls, programs: int, seconds: float | None) -> Budget:
        """Begin with so many programs, and seconds from now on; None is no limit."""
        return cls(programs, math.inf if seconds is None else time.perf_counter() + seconds)

    @property
    def spent(self) -> bool:
        """True if no further program may begin."""
        return self.programs <= 0 or time.perf_counter() >= self.ends

    def solve(
        self, problem: ReLUProblem, units: Units, tol: float, guess: Guess | None = None
    ) -> HingeSolution:
        """Solve the program on the units' gates, from multipliers and shares if there are any."""
        self.programs -= 1
        seconds = max(self.ends - time.perf_counter(), 1e-9)
        program = problem.program(units)
        solution = solve_hinge(program, units.u, guess=guess, tol=tol, max_seconds=seconds)
        self.solves += solution.solves
        return solution


@dataclass(frozen=True, eq=False)
class Descent:
    """Units that are optimal in the program of their gates, with its solution.

    Attributes
    ----------
    units : Units
        At smallest margin 1 of the program, with the gates that it was solved on.
    solution : HingeSolution
    values : tuple of float
        Value of the network after each program; they never rise.
    """

    units: Units
    solution: HingeSolution
    values: tuple[float, ...]

    @property
    def found(self) -> bool:
        """True if there is a network."""
        return self.solution.status in (Status.SOLVED, Status.INACCURATE)

    @property
    def value(self) -> float:
        """Value of the network; infinite where there is none."""
        return self.values[-1] if self.values else math.inf


def descend(
    problem: ReLUProblem, units: Units, budget: Budget, tol: float, guess: Guess | None = None
) -> Descent:
    """Solve the program on the units' gates, take the gates of its solution, and so on.

    It ends where the gates stay or the value no longer falls. Gates have finitely many values and
    each is left for a strictly smaller value, so it ends by itself. `guess` has multipliers and
    shares near those of the first program.
    """
    values: list[float] = []
    while True:
        n_before, units = len(units.u), merged(problem, units)
        solution = budget.solve(problem, units, tol, guess if len(units.u) == n_before else None)
        if solution.status not in (Status.SOLVED, Status.INACCURATE):
            return Descent(units, solution, tuple(values))
        solved = replace(units, u=solution.u)
        before = values[-1] if values else math.inf
        values.append(min(problem.value(solved.u, solved.signs), before))
        gates = _next_gates(problem, solved, solution)
        fell = before - values[-1] > STILL * values[-1]
        stays = bool(np.all(gates == solved.gates))
        if stays or not fell or budget.spent:
            return Descent(solved, solution, tuple(values))
        units, guess = replace(solved, gates=gates), (solution.multipliers, solution.shares)


def live_units(solution: HingeSolution, norms: Floats, blocks: Floats) -> Flags:
    """Return which units (H,) are not dead, by strict complementarity.

    Of ``||u_h||`` over the value and ``1 - ||v_h||`` one vanishes; the smaller one does.
    """
    share = norms / max(float(norms.sum()), np.finfo(float).tiny)
    slack = 1 - np.linalg.norm(blocks, axis=1)
    return np.asarray(share > np.maximum(slack, SUPPORT))


def kinks_of(problem: ReLUProblem, units: Units, lam: Floats) -> tuple[Flags, Flags]:
    """Return which pairs (n, H) are helping and opposing kinks at samples with a multiplier."""
    support = lam > SUPPORT * np.max(lam)
    at_kink = (np.abs(problem.cosines(units.u)) <= KINK) & support[:, None]
    helping = problem.helping(units.signs)
    return at_kink & helping, at_kink & ~helping


def _next_gates(problem: ReLUProblem, units: Units, solution: HingeSolution) -> Flags:
    # On a kink, and of a dead unit, the sign of a rounding error is no gate.
    blocks = problem.program(units).blocks(solution.multipliers, solution.shares)
    live = live_units(solution, units.norms, blocks)
    cosines = problem.cosines(units.u)
    decided = (np.abs(cosines) > KINK) & live & problem.helping(units.signs)
    return np.asarray(np.where(decided, cosines > 0, units.gates))
