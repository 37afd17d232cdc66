"""Descent through convex programs, each on the gates of the last solution."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field, replace

import numpy as np

from ..._support.solve import HingeSolution, Status, solve_hinge
from ...data.arrays import Floats
from .problem import Flags, ReLUProblem, Units, merged

# Multipliers (n,) and shares (n, H).
Guess = tuple[Floats, Floats]

# Cosines of a sample and a unit that count as a kink.
KINK = 1e-6
# Multipliers of support samples, relative to the largest.
SUPPORT = 1e-9
# Falls of the value, relative to it, that count as none.
STILL = 1e-9
# Pairs of a sample and a unit from which programs are solved roughly at first, and how roughly.
_LARGE, _ROUGH = 20_000, 1e-3


@dataclass(eq=False)
class Programs:
    """Convex programs of a problem, as many and for as long as a search may solve them.

    Attributes
    ----------
    problem : ReLUProblem
    tol : float
        Relative gap of each.
    max_programs : int or None
        None is no limit: each program of a descent has a strictly lower value.
    max_seconds : float or None
        From the beginning on; None is no limit.
    max_patterns : int
        Gate patterns that the bound of all widths may look at.
    begun : float
        Moment of `time.perf_counter`.
    taken, solves : int
        Programs and group lassos so far.
    """

    problem: ReLUProblem
    tol: float
    max_programs: int | None
    max_seconds: float | None
    max_patterns: int
    begun: float = field(default_factory=time.perf_counter)
    taken: int = 0
    solves: int = 0

    @property
    def seconds(self) -> float:
        """Seconds so far."""
        return time.perf_counter() - self.begun

    @property
    def spent(self) -> bool:
        """True if no further program may begin."""
        enough = self.max_programs is not None and self.taken >= self.max_programs
        return enough or self.seconds >= (self.max_seconds or math.inf)

    def solve(
        self, units: Units, guess: Guess | None = None, *, rough: float | None = None
    ) -> HingeSolution:
        """Solve the program on the units' gates, from multipliers and shares if there are any.

        To rounding as far as it goes, or to a gap of `rough`.
        """
        self.taken += 1
        left = max((self.max_seconds or math.inf) - self.seconds, 1e-9)
        program = self.problem.program(units)
        solution = solve_hinge(
            program, units.u, guess=guess, tol=self.tol, ends_at=rough, max_seconds=left
        )
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


def has_network(solution: HingeSolution) -> bool:
    """Return whether a solution has a network, proved or not."""
    return solution.status in (Status.SOLVED, Status.INACCURATE)


def descend(programs: Programs, units: Units, guess: Guess | None = None) -> Descent:
    """Solve the program on the units' gates, take the gates of its solution, and so on.

    It ends where the gates stay or the value no longer falls. Gates have finitely many values and
    each is left for a strictly smaller value, so it ends by itself. `guess` has multipliers and
    shares near those of the first program. Of large programs dead units are left out.
    """
    problem, values = programs.problem, tuple[float, ...]()
    # The gates of large programs are found roughly as long as the value falls by more than that.
    large = len(problem.y) * len(units.u) >= _LARGE
    rough = _ROUGH if large else None
    while True:
        units, kept = merged(problem, units)
        guess = None if guess is None else (guess[0], guess[1][:, kept])
        solution = programs.solve(units, guess, rough=rough)
        if not has_network(solution):
            return Descent(units, solution, values)
        solved = replace(units, u=solution.u)
        before = values[-1] if values else math.inf
        values += (min(problem.value(solved.u, solved.signs), before),)
        live = _live(problem, solved, solution)
        gates = _next_gates(problem, solved, live)
        fell = before - values[-1] > (rough or STILL) * values[-1]
        stays = bool(np.all(gates == solved.gates))
        if programs.spent or ((stays or not fell) and rough is None):
            return Descent(solved, solution, values)
        if stays or not fell:
            rough = None
        left = live if large else np.full(len(live), True)
        units = replace(solved, gates=gates).take(left)
        guess = (solution.multipliers, solution.shares[:, left])


def live_units(norms: Floats, blocks: Floats) -> Flags:
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


def _live(problem: ReLUProblem, units: Units, solution: HingeSolution) -> Flags:
    """Return which units (H,) of a solution are not dead."""
    blocks = problem.program(units).blocks(solution.multipliers, solution.shares)
    return live_units(units.norms, blocks)


def _next_gates(problem: ReLUProblem, units: Units, live: Flags) -> Flags:
    # On a kink, and of a dead unit, the sign of a rounding error is no gate.
    cosines = problem.cosines(units.u)
    decided = (np.abs(cosines) > KINK) & live & problem.helping(units.signs)
    return np.asarray(np.where(decided, cosines > 0, units.gates))
