"""Search for the certified local optimum next to a trained two-layer ReLU network."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from ..._support.doors import door
from ..._support.kinds import count, positive
from ..._support.solve import (
    HingeCertificate,
    HingeProgram,
    HingeSolution,
    Status,
    certify_hinge,
    gap_between,
    require_tolerance,
)
from ...data.arrays import Floats
from .bound import TooManyPatterns, largest_dual
from .descent import SUPPORT, Descent, Guess, Programs, descend, has_network, kinks_of, live_units
from .directions import Direction, best_directions
from .kinks import split_units, too_many_kinks
from .limit import ReLUCertificate, ReLULocalLimit, degrees, network_units, no_certificate
from .problem import Flags, ReLUProblem, Units

if TYPE_CHECKING:
    import torch

# Gate patterns that a global bound may look at: a few seconds.
_PATTERNS = 2**18
# Norm at which a unit is born, relative to the mean of the others.
_BORN = 1e-3
# Cosines of units that are one.
_PARALLEL = 1 - 1e-9
# Cones that are added in search of multipliers that ask for no further unit.
_TRIALS = 20
# Of the dual function: how much more than at the units a direction must have to be one that the
# search missed.
_MISSED = 1e-8
# Falls of the value by a birth that count as none: they are quadratic in what the dual function is
# above that of the units.
_FELL = 1e-10
# Units that are born before the next program.
_AT_ONCE = 4


@door(births=count(0), max_programs=count(), max_patterns=count(), max_seconds=positive)
def relu_local_limit(
    network: torch.nn.Module,
    X: ArrayLike,
    y: ArrayLike,
    *,
    births: int = 0,
    tol: float = 1e-8,
    max_programs: int | None = None,
    max_seconds: float | None = None,
    max_patterns: int = _PATTERNS,
) -> ReLULocalLimit:
    r"""Find the local optimum next to a trained two-layer ReLU network, and certify it.

    .. math:: \min_\theta \tfrac12 \|\theta\|^2 \quad\text{s.t.}\quad y_n f_\theta(x_n) \ge 1

    Pairs of a sample and a unit of its label help: their terms of the margins are convex, and are
    replaced by the line of their gate. The others oppose, their terms are concave, and stay. The
    program is convex, spans all activation cells that differ in opposing pairs, and every point
    that it allows is a network of at most that value. Its solution gives the next gates; one to
    seven programs end at a network that is optimal in the program of its own gates. Multipliers
    prove its value a lower bound for every network whose neurons stay in stated cones, and often
    for every network of any width.

    Parameters
    ----------
    network : Module
        A `networks.ReLU`, a `torch.nn.Sequential` of Linear, ReLU or LeakyReLU, and Linear, both
        without biases, or a module of one's own with the same scores; it is not modified. It need
        not separate the data.
    X : (n, D) array
        Inputs; a bias is a constant column.
    y : (n,) array
        Labels in {-1, +1}.
    births : int
        Units that may be added along directions that lower the value, which is not what training
        does; at most as many as the network has to spare.
    tol : float
        Relative gap to reach, in (0, 1).
    max_programs : int, optional
        Convex programs in all. By default as many as there are: each has a lower value.
    max_seconds : float, optional
        Seconds after which no further program begins.
    max_patterns : int
        Gate patterns that the bound of all widths may look at: with more support samples of a
        label than the logarithm of it no such bound is computed.

    Returns
    -------
    ReLULocalLimit
        With one of these statuses:

        - GLOBAL_OPTIMUM: no two-layer ReLU network of any width has a lower value;
        - LOCAL_OPTIMUM: none in the cones has, and all units of this width are in use;
        - LIVE_OPTIMUM: none in the cones has, of live units; units are to spare, and `reason`
          tells what is known of them: that one lowers the value, or that none was found to;
        - STATIONARY: too many kinks at samples with a multiplier to look at all sides of;
        - FAILED: the gap is above `tol`, or no network with these gates separates the data.

    Raises
    ------
    TypeError
        If `network` is no ReLU network, or an array is not of real numbers.
    ValueError
        If it has several hidden layers or biases, weights are not finite, or shapes or numbers are
        out of range.

    Notes
    -----
    Let lam >= 0 be multipliers, g the gates of helping pairs, gam in [0, 1] any shares of the
    opposing ones, and ``v_h = s_h sum_n lam_n y_n gam_nh x_n`` with g for gam on helping pairs. A
    network of any width and norms whose neurons j lie each in a cone of some unit h(j) has margins
    ``sum_n lam_n m_n <= sum_j <v_h(j), u_j> <= max_h ||v_h|| sum_j ||u_j||``, so that its value is
    at least ``sum lam / max_h ||v_h||``. A cone has a face for each sample of the unit's label
    with a multiplier, and no others. No theorem says that training ends at this point.

    References
    ----------
    Training of homogeneous networks ends at a KKT point, in Clarke's sense: K. Lyu, J. Li,
    "Gradient descent maximizes the margin of homogeneous neural networks", theorem 4.4. It need
    not be a local optimum: G. Vardi, O. Shamir, N. Srebro, "On margin maximization in linear and
    ReLU networks".

    Examples
    --------
    >>> X, y = np.array([[1.0, 0.0], [0.0, 2.0]]), np.array([1.0, -1.0])
    >>> network = ib.ReLU.from_weights([[1.0, 0.1], [0.2, 1.0]], [1.0, -1.0])
    >>> limit = ib.limits.relu_local_limit(network, X, y)
    >>> limit.status.name, round(limit.start_value, 6), round(limit.value, 6)
    ('GLOBAL_OPTIMUM', 2.530989, 1.5)
    """
    require_tolerance(tol)
    programs, units, (start_value, width) = _prepared(
        network, X, y, tol, (max_programs, max_seconds, max_patterns)
    )
    return as_limit(programs, seek(programs, units, births, width), start_value, tol)


def settled_limit(
    network: torch.nn.Module, X: ArrayLike, y: ArrayLike, *, tol: float, max_seconds: float
) -> ReLULocalLimit:
    """Return what `relu_local_limit` does, without a look at further units and at other widths.

    Of the same value: its status is LIVE_OPTIMUM where more could be proved.
    """
    limits = (None, max_seconds, _PATTERNS)
    programs, units, (start_value, _) = _prepared(network, X, y, tol, limits)
    return as_limit(programs, _settled(programs, units, ()), start_value, tol)


def _prepared(
    network: torch.nn.Module,
    X: ArrayLike,
    y: ArrayLike,
    tol: float,
    limits: tuple[int | None, float | None, int],
) -> tuple[Programs, Units, tuple[float, int]]:
    """Programs, the units of a network with their gates, its value and its number of units."""
    begun = time.perf_counter()
    u, signs, slope = network_units(network)
    problem = ReLUProblem.checked(X, y, slope)
    if u.shape[1] != problem.inputs.shape[1]:
        raise ValueError(
            f"`X` must have {u.shape[1]} columns, those of the network, got "
            f"{problem.inputs.shape[1]}"
        )
    units = units_at(problem, u, signs)
    if not len(units.u):
        raise ValueError("`network` is 0 on every input: no unit has weights of both layers")
    programs = Programs(problem, tol, *limits, begun)
    return programs, units, (problem.value_of_network(u, signs), len(u))


def units_at(problem: ReLUProblem, u: Floats, signs: Floats) -> Units:
    """Return the units that are not 0 on the inputs, of weights (H, D), with their own gates."""
    u = u @ problem.basis.T
    return Units(u, signs, problem.X @ u.T > 0).take(np.any(u != 0, axis=1))


@dataclass(frozen=True, eq=False)
class Found:
    """Outcome of a search, in the coordinates of the problem.

    Attributes
    ----------
    units : Units
        Live ones at smallest margin 1, none parallel; empty if nothing was found.
    cones : Units
        Of the proof; their `u` is not read.
    lam : (n,) array
    shares : (n, K) array
        Of hinges, beside the gates of `cones`.
    certificate : ReLUCertificate
    split : (n, H) boolean array
        Helping kinks of the units whose both sides are among the cones.
    values : tuple of float
    status : Status
    reason : str
    n_spare : int
    escape : Direction or None
    escape_ratio : float
    births : int
    """

    units: Units
    cones: Units
    lam: Floats
    shares: Floats
    certificate: ReLUCertificate
    split: Flags
    values: tuple[float, ...]
    status: Status
    reason: str = ""
    n_spare: int = 0
    escape: Direction | None = None
    escape_ratio: float = math.nan
    births: int = 0


def seek(programs: Programs, units: Units, births: float, width: float) -> Found:
    """Descend, split units at kinks, let units be born if they may be, and judge what was found.

    Parameters
    ----------
    programs : Programs
    units : Units
    births, width : float
        Units that may be added, and that there may be in all; infinity for no limit.
    """
    best, born = _settled(programs, units, ()), 0
    while True:
        if best.status is Status.FAILED:
            return replace(best, births=born)
        spare = width - len(best.units.u)
        directions, ratio = _directions(programs.problem, best)
        # Multipliers that are not unique may ask for units that do not help: the value tells.
        enough = directions[0].dual / ratio * (1 + programs.tol)
        helpful = [d for d in directions if d.dual > enough]
        if not helpful and min(spare, births - born) >= 1 and not programs.spent:
            best, missed = _with_global_bound(programs, best)
            helpful = [missed] if missed is not None else []
        room = int(min(spare, births - born, _AT_ONCE, len(helpful)))
        if room < 1 or programs.spent or best.status is not Status.LIVE_OPTIMUM:
            break
        units = _with_births(programs.problem, best.units, helpful[:room])
        near = _near(programs.problem, best, units)
        following = _settled(programs, units, best.values, near)
        fell = best.certificate.objective - following.certificate.objective
        if not fell > _FELL * best.certificate.objective:
            break
        best, born = following, born + room
    left = width - len(best.units.u)
    n_spare = int(left) if math.isfinite(left) else 0
    best = replace(best, n_spare=n_spare, escape=directions[0], escape_ratio=ratio, births=born)
    return _judged(programs, best, left)


def _settled(
    programs: Programs, units: Units, values: tuple[float, ...], guess: Guess | None = None
) -> Found:
    """Descend until neither gates nor the sides of kinks give a lower value.

    The status is LIVE_OPTIMUM where that is proved, STATIONARY or FAILED.
    """
    while True:
        reached = descend(programs, units, guess)
        values += reached.values
        if not has_network(reached.solution):
            return failed(programs.problem, values, _why_not(reached.solution, programs))
        split, copies = _split(programs, _without_dead(programs, reached, values))
        if copies is None:
            return split
        units, guess = copies, None


def _split(programs: Programs, best: Found) -> tuple[Found, Units | None]:
    """Decide over all sides of the helping kinks at samples with a multiplier.

    Returns the units with the proof of all sides, or copies of them with a lower value. The
    multipliers of more cones may have further samples, and so further kinks.
    """
    problem, open_ = programs.problem, replace(best, status=Status.STATIONARY)
    kinks, _ = kinks_of(problem, best.units, best.lam)
    if not kinks.any():
        return best, None
    while True:
        if too_many_kinks(kinks):
            most = int(kinks.sum(axis=0).max())
            why = f"a unit has its kink at {most} samples of its own label that have a multiplier"
            return replace(open_, reason=why), None
        if programs.spent:
            return replace(open_, reason="no program was left for kinks"), None
        copies = split_units(best.units, kinks)
        solution = programs.solve(copies)
        if not has_network(solution):
            why = "the program over all sides of the kinks was not solved"
            return replace(open_, reason=why), None
        value = problem.value(solution.u, copies.signs)
        if value < best.certificate.objective * (1 - programs.tol):
            return best, replace(copies, u=solution.u)
        proved = replace(_bounded(programs, best, copies, solution), split=kinks)
        further, _ = kinks_of(problem, proved.units, proved.lam)
        if not np.any(further & ~kinks):
            return proved, None
        kinks = kinks | further


def _without_dead(programs: Programs, reached: Descent, values: tuple[float, ...]) -> Found:
    """Live units of a descent, with the proof of their cones.

    Where those that are left out had as much as a small share of the norms, the program of the
    others is solved again.
    """
    best = _certified(programs, reached.units, reached.solution, values)
    rose = best.certificate.objective / reached.solution.certificate.objective - 1
    if not rose > programs.tol / 10 or programs.spent:
        return best
    solution = programs.solve(best.cones)
    if not has_network(solution):
        return best
    again = _certified(programs, replace(best.cones, u=solution.u), solution, values)
    better = again.certificate.objective < best.certificate.objective
    return again if better else best


def _certified(
    programs: Programs, units: Units, solution: HingeSolution, values: tuple[float, ...]
) -> Found:
    """Live units of a solution, parallel ones joined, with the proof of their cones."""
    problem, lam = programs.problem, _cleaned(solution.multipliers)
    blocks = problem.program(units).blocks(lam, solution.shares)
    live = live_units(units.norms, blocks)
    cones, shares = units.take(live), solution.shares[:, live]
    joined = _joined(cones)
    best = Found(
        units=joined,
        cones=cones,
        lam=lam,
        shares=shares,
        certificate=no_certificate(),
        split=np.zeros((len(problem.y), len(joined.u)), dtype=bool),
        values=values,
        status=Status.LIVE_OPTIMUM,
    )
    return _bounded(programs, best, cones)


def _bounded(
    programs: Programs, best: Found, cones: Units, solution: HingeSolution | None = None
) -> Found:
    """The same units with the bound of these cones, by the multipliers of a solution of them."""
    problem, lam, shares = programs.problem, best.lam, best.shares
    if solution is not None:
        lam, shares = _cleaned(solution.multipliers), solution.shares
    above = _proof(problem, best.units, lam, np.full(best.units.gates.shape, 0.5))
    if not above.smallest_margin > 0:
        reason = "the units of a program that was not solved do not separate the data"
        return replace(best, cones=cones, status=Status.FAILED, reason=reason)
    value, bound = above.objective, _proof(problem, cones, lam, shares).dual_objective
    gap = gap_between(value, bound, bound)
    ok = gap <= programs.tol
    return replace(
        best,
        units=replace(best.units, u=best.units.u / above.smallest_margin),
        cones=cones,
        lam=lam,
        shares=shares,
        certificate=ReLUCertificate(value, bound, gap, 0.0, 0.0, math.inf),
        status=Status.LIVE_OPTIMUM if ok else Status.FAILED,
        reason="" if ok else f"the gap is {gap:.2g}, above `tol`",
    )


def _proof(problem: ReLUProblem, units: Units, lam: Floats, shares: Floats) -> HingeCertificate:
    """Bounds of the program on the inputs as they were given, which the proof is about."""
    reduced = problem.program(units)
    program = HingeProgram(problem.inputs, reduced.linear, reduced.hinges)
    return certify_hinge(program, units.u @ problem.basis, lam, shares)


def _cleaned(lam: Floats) -> Floats:
    """Multipliers without those that are rounding."""
    return np.where(lam > SUPPORT * np.max(lam), lam, 0.0)


def _joined(units: Units) -> Units:
    """Units with parallel ones of one sign as one."""
    order = np.argsort(-units.norms)
    directions = units.u / units.norms[:, None]
    u = units.u.copy()
    kept: list[int] = []
    for h in order:
        same = [
            k for k in kept
            if units.signs[k] == units.signs[h] and directions[k] @ directions[h] > _PARALLEL
        ]  # fmt: skip
        if same:
            u[same[0]] += u[h]
        else:
            kept.append(int(h))
    return replace(units, u=u).take(np.sort(np.array(kept)))


def _directions(problem: ReLUProblem, best: Found) -> tuple[list[Direction], float]:
    """Best directions of the dual function, and the best over its value at the units."""
    own = best.units.u / best.units.norms[:, None]
    directions = best_directions(problem, best.lam, own)
    largest = float(best.lam.sum()) / best.certificate.dual_objective
    ratio = directions[0].dual / largest
    # Units begin at their own directions, where it is the largest norm up to the gap.
    assert ratio > 1 - max(1e-6, 10 * best.certificate.gap), ratio
    return directions, ratio


def _with_births(problem: ReLUProblem, units: Units, directions: list[Direction]) -> Units:
    """The units and short ones along these directions."""
    u = np.array([d.v for d in directions])
    born = Units(
        _BORN * float(units.norms.mean()) * u,
        np.array([d.sign for d in directions]),
        problem.X @ u.T > 0,
    )
    return units.joined(born)


def _near(problem: ReLUProblem, best: Found, units: Units) -> Guess | None:
    """Multipliers and shares of what was found, for these units and others behind them.

    None where its cones are not those of its units alone.
    """
    n_units = len(best.units.u)
    if best.split.any() or len(best.cones.u) != n_units:
        return None
    born = (problem.X @ units.u[n_units:].T > 0).astype(float)
    return best.lam, np.concatenate([best.shares, born], axis=1)


def _judged(programs: Programs, best: Found, left: float) -> Found:
    """The verdict on units that are optimal in their cones, with so many left."""
    if best.escape_ratio <= 1 + programs.tol:
        best, _ = _with_global_bound(programs, best)
        if best.certificate.global_gap <= programs.tol:
            return replace(best, status=Status.GLOBAL_OPTIMUM, reason="")
    if best.status is not Status.LIVE_OPTIMUM:
        return best
    if left <= 0:
        return replace(best, status=Status.LOCAL_OPTIMUM)
    spare = "units may be added"
    if best.n_spare:
        spare = f"{best.n_spare} of the units {'is' if best.n_spare == 1 else 'are'} to spare"
    if best.escape_ratio <= 1 + programs.tol:
        return _not_proved(best, spare)
    return _tried(programs, best, spare)


def _not_proved(best: Found, spare: str) -> Found:
    why = f"{spare}, and no direction was found in which one helps; that is not proved"
    return replace(best, reason=f"{why}{': ' * bool(best.reason)}{best.reason}")


def _tried(programs: Programs, best: Found, spare: str) -> Found:
    """The verdict where the multipliers ask for a unit: whether one helps, or others prove none.

    Multipliers need not be unique. The program with a cone more either has a lower value, or
    multipliers that do not ask for that unit.
    """
    assert best.escape is not None
    problem, tol = programs.problem, programs.tol
    more, kinks = [best.escape], best.split
    unsolved = f"{spare}, and the program with one more was not solved"
    for _ in range(_TRIALS):
        if programs.spent:
            return replace(best, reason=f"{spare}, and no program was left to try one")
        if too_many_kinks(kinks):
            why = "and one along `escape` was not tried: others are at too many kinks"
            return replace(best, reason=f"{spare}, {why}")
        cones = _with_births(problem, split_units(best.units, kinks), more)
        solution = programs.solve(cones, _near(problem, best, cones))
        lower = solution.certificate.objective
        if lower < best.certificate.objective * (1 - tol):
            why = (
                f"{spare}: a dead one of another direction lowers the value, to "
                f"{lower:.8g} at once, so that the whole network is at a saddle"
            )
            return replace(best, reason=why)
        if not has_network(solution):
            return replace(best, reason=unsolved)
        following = _bounded(programs, best, cones, solution)
        if following.status is Status.FAILED:
            return replace(best, reason=unsolved)
        further, _ = kinks_of(problem, following.units, following.lam)
        if np.any(further & ~kinks):
            kinks = kinks | further
            continue
        directions, ratio = _directions(problem, following)
        best = replace(following, split=kinks, escape=directions[0], escape_ratio=ratio)
        if ratio <= 1 + tol:
            best, _ = _with_global_bound(programs, best)
            if best.certificate.global_gap <= tol:
                return replace(best, status=Status.GLOBAL_OPTIMUM, reason="")
            return _not_proved(best, spare)
        more = [*more, directions[0]]
    why = "and none that multipliers asked for in turn lowers the value, as they are not unique"
    return replace(best, reason=f"{spare}, {why}")


def _with_global_bound(programs: Programs, best: Found) -> tuple[Found, Direction | None]:
    """The lower bound of all widths, and a direction that helps where the search missed it."""
    if best.certificate.lower_bound > 0:
        return best, None
    own = best.units.u / best.units.norms[:, None]
    try:
        largest = largest_dual(programs.problem, best.lam, own, max_patterns=programs.max_patterns)
    except TooManyPatterns as many:
        return replace(best, reason=str(many)), None
    total = float(best.lam.sum())
    lower = total / largest.bound * (1 - len(best.lam) * 2.0**-52)
    gap = gap_between(best.certificate.objective, lower, lower)
    certificate = replace(best.certificate, lower_bound=lower, global_gap=gap)
    helps = largest.direction.dual > total / best.certificate.dual_objective * (1 + _MISSED)
    return replace(best, certificate=certificate), largest.direction if helps else None


def _why_not(solution: HingeSolution, programs: Programs) -> str:
    if solution.status is Status.NOT_SEPARABLE:
        return "no network with these helping gates separates the data"
    return (
        "`max_seconds` ended before the first program"
        if programs.spent
        else ("the solver found nothing")
    )


def failed(problem: ReLUProblem, values: tuple[float, ...], why: str) -> Found:
    """Return that nothing was found, and why."""
    n, r = problem.X.shape
    none = Units(np.zeros((0, r)), np.zeros(0), np.zeros((n, 0), dtype=bool))
    nothing = np.zeros((n, 0))
    return Found(
        units=none, cones=none, lam=np.zeros(n), shares=nothing, certificate=no_certificate(),
        split=nothing > 0, values=values, status=Status.FAILED, reason=why,
    )  # fmt: skip


def as_limit(programs: Programs, found: Found, start_value: float, tol: float) -> ReLULocalLimit:
    """Return the result of a search in the coordinates of the inputs."""
    problem = programs.problem
    support = found.lam > 0
    u, units = found.units.u @ problem.basis, found.units
    helping, opposing = kinks_of(problem, units, found.lam) if len(u) else (found.split,) * 2
    faces = problem.helping(units.signs) & support[:, None] & ~found.split
    sines = np.where(faces, np.abs(problem.cosines(units.u)), 1.0)
    turn = degrees(np.min(sines, axis=0, initial=1.0))
    own = problem.helping(found.cones.signs)
    escape = found.escape
    limit = ReLULocalLimit.read(
        found,
        units=u,
        signs=units.signs,
        multipliers=found.lam,
        cone_signs=found.cones.signs,
        cone_gates=found.cones.gates[support],
        cone_shares=np.where(own, found.cones.gates, found.shares)[support],
        support=support,
        support_inputs=problem.inputs[support].copy(),
        support_labels=problem.y[support].copy(),
        turn=turn,
        start_value=start_value,
        kinks_helping=int(helping.sum()),
        kinks_opposing=int(opposing.sum()),
        escape=None if escape is None else escape.v @ problem.basis,
        escape_sign=math.nan if escape is None else escape.sign,
        escape_dual=found.escape_ratio,
        certificate=replace(
            found.certificate, smallest_turn=float(np.min(turn, initial=90.0)) if len(u) else 0.0
        ),
        scores=problem.y * problem.margins(units.u, units.signs),
        slope=problem.slope,
        programs=programs.taken,
        solves=programs.solves,
        tol=tol,
        seconds=programs.seconds,
    )
    if limit.status in (Status.LOCAL_OPTIMUM, Status.LIVE_OPTIMUM, Status.STATIONARY):
        why = ""
        if not limit.in_own_cones and programs.spent:
            why = "no program was left for the gates of the last one"
        elif not limit.in_own_cones and limit.status is not Status.STATIONARY:
            why = "a unit is outside its cones, by rounding at a kink"
        elif limit.value > start_value * (1 + tol):
            why = f"its value {limit.value:.8g} is above the network's own, {start_value:.8g}"
        if why:
            return replace(limit, status=Status.FAILED, reason=why)
    return limit
