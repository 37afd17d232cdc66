"""Search for the KKT point near a trained network."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..._support.doors import door
from ..._support.kinds import anything, extended
from ..._support.solve import Status, require_memory, require_tolerance
from ...networks.placed_data import Inputs
from .cells import Cells, Kinks, approach_through
from .curvature import Curvature, escaped, measure_curvature
from .limit import LocalCertificate, LocalLimit
from .newton import Point, polish
from .problem import MarginProblem, pose_problem
from .second_order import second_order_steps
from .successive import Approach, approaches

# Programs in all. The residual of first-order ones falls like (1 - smallest curvature)^k, and the
# smallest curvature is 1e-4 to 1e-2: after so many, or from this residual on, second order leads.
_MAX_ROUNDS, _FIRST_ORDER, _NEAR = 400, 40, 1e-3
# Newton's method is tried from this residual on, then when it has fallen to a tenth, and after
# so many programs in any case.
_FIRST_TRY, _NEXT_TRY, _PATIENCE = 1e-5, 0.1, 40
# Without Newton's method: where programs stop, and what counts as stationary, active margins in it.
_ENOUGH, _STATIONARY = 1e-5, 1e-4
# Of (weights, weights) that live at once.
_MATRICES = 5
# Newton's method must not climb: values above that of where it started by more are other points.
_CLIMBED = 1e-9
# Sets of gates of a ReLU network that are tried, and what a margin of 1 may lack behind its own.
_MAX_CELLS, _OWN = 30, 1e-9
# Parts of ||w||: a network that is off a saddle in its unstable directions by more is leaving it.
# From nearer than the residual below, the way out is taken at once; programs would creep.
_OFF, _CREEPING = 1e-6, 1e-3


@door(y=anything, max_seconds=extended)
def local_limit(
    network: torch.nn.Module,
    X: Inputs,
    y: Any,
    gates: Inputs | None = None,
    *,
    tol: float = 1e-10,
    max_weights: int = 3000,
    max_seconds: float = math.inf,
) -> LocalLimit:
    r"""Find the KKT point of the margin problem near a network, and certify it.

    .. math:: \min_w \tfrac12 \|w\|^2 \quad\text{s.t.}\quad y_n f_w(x_n; g(n)) \ge 1

    or, of K scores, :math:`f_{y_n} - f_k \ge 1` for every other class k.

    Successive max-margin programs find the active samples, quadratic programs of the Lagrangian
    lead on where these creep, Newton's method takes weights and multipliers to rounding, and the
    Hessian of the Lagrangian on the null space of the active gradients decides on second order.
    Saddles on the way are left on the side on which the network is. Any number of layers, any gates
    that do not depend on the weights, and ReLUs, leaky or not, of any network, whose kinks are met.

    Parameters
    ----------
    network : Module
        Homogeneous of degree ``network.degree``, with positive margins; it is not modified.
    X : (n, D) array or tensor
        Inputs.
    y : (n,), (n, 1) or (n, K) array or tensor
        Labels: numbers, booleans or strings, as `kkt_distance` takes them.
    gates : (n, ...) array or tensor, optional
        Gates or contexts that the network takes; None for networks without.
    tol : float
        Residual to reach, in (0, 1).
    max_weights : int
        With more weights Newton's method and second order, which take matrices of (weights,
        weights), are left out: the answer is STATIONARY at best. With 200 weights a limit takes a
        second or two, with 3000 half a minute.
    max_seconds : float
        After so many no further program begins: the answer is STATIONARY at best.

    Returns
    -------
    LocalLimit
        Weights at smallest margin 1, multipliers, curvature and status; `.require()` insists on a
        certified one.

    Raises
    ------
    TypeError
        If the network has no positive integer `degree`.
    ValueError
        If data are malformed, weights are not finite, some training sample has no positive
        margin, degrees are mixed, `tol` or `max_weights` is out of range, or memory cannot hold
        what so many weights take.

    Notes
    -----
    The certificate is computed in floating point: it is evidence to 1e-10, not interval
    arithmetic. That a run ends at the point computed from its weights is to be measured: the
    distance has to fall along training and the point must not change.

    Of a ReLU network margins are those of all cells near by; a maximum is the ReLU of a difference,
    and a tie its kink. Where a unit opposes a sample, whose margins fall as it opens, the point may
    lie on its kink: multipliers then hold the input of the unit at 0, with a share of both gates,
    and second order is looked at where it stays 0. With one that helps there (none in general
    position), or kinks of several layers on one sample, the answer is STATIONARY; with units that
    have no weights, whose gates may be anything, it is LIVE_OPTIMUM, of the other units.

    References
    ----------
    Training of homogeneous networks ends at a KKT point: K. Lyu, J. Li, "Gradient descent
    maximizes the margin of homogeneous neural networks", theorem 4.4. It need not be a local
    optimum: G. Vardi, O. Shamir, N. Srebro, "On margin maximization in linear and ReLU networks".

    Examples
    --------
    >>> X, y = np.array([[2.0, 0.0], [-1.0, 1.0]]), np.array([1.0, -1.0])
    >>> network = ib.DeepLinear.from_weights(np.array([[1.0, -0.5]]))
    >>> limit = ib.local_limit(network, X, y)
    >>> limit.status.name, round(limit.value, 6), limit.predictor.predict(X).tolist()
    ('LOCAL_OPTIMUM', 0.707107, [1, -1])
    """
    require_tolerance(tol)
    if not max_seconds > 0:
        raise ValueError(f"`max_seconds` must be positive, got {max_seconds}")
    started = time.perf_counter()
    problem = replace(pose_problem(network, X, y, gates), until=started + max_seconds)
    n_weights = len(problem.start)
    with_newton = n_weights <= max_weights
    if with_newton:
        what = f"second order in {n_weights} weights"
        require_memory(_MATRICES * n_weights**2, what, "take a smaller `max_weights`")
    cells = Cells.around(problem)
    if cells is not None:
        found = _through_cells(cells, tol, max_weights if not with_newton else None)
    else:
        found = _search(problem, tol) if with_newton else _approach(problem, max_weights)
    return _limit(problem, found, time.perf_counter() - started)


@dataclass(frozen=True, eq=False)
class _Found:
    # `cells` has the rows that the point is of, where these are other than the margins.
    point: Point
    status: Status
    rounds: int = 0
    reason: str = ""
    curvature: Curvature | None = None
    cells: Cells | None = None
    n_kinks: int = 0


@dataclass(frozen=True, eq=False)
class _Passing:
    # Weights beyond a saddle that was close by, or None if programs get on by themselves.
    beyond: Tensor | None


def _search(problem: MarginProblem, tol: float) -> _Found:
    w: Tensor | None = problem.start
    spent, last = 0, None
    while w is not None:
        before, steps, w = spent, _approaches(problem, w, _MAX_ROUNDS - spent), None
        for last in _worth_a_try(steps):
            spent = before + last.rounds
            tried = _try(problem, last, tol)
            if isinstance(tried, _Found):
                return replace(tried, rounds=spent)
            if tried.beyond is not None:
                w = tried.beyond
                break
    return _unfinished(problem, last, spent, "Newton's method found no KKT point from there")


def _through_cells(cells: Cells, tol: float, max_weights: int | None) -> _Found:
    # Each time the point of the rows at hand; rows enter and leave until they are of its own cells.
    w, spent = cells.of.start, 0
    most, enough = (_FIRST_ORDER, _NEAR) if max_weights is None else (_MAX_ROUNDS, _ENOUGH)
    for _ in range(_MAX_CELLS):
        cells, near = approach_through(cells, w, most, enough)
        spent += 0 if near is None else near.rounds
        if near is None:
            return _unfinished(cells.of, None, spent, "")
        if max_weights is not None:
            why = _too_many(cells.of, max_weights)
            return replace(_unfinished(cells.problem, near, spent, why), cells=cells)
        # Rows of gates met elsewhere may have no positive margin here.
        cells = cells.at(near.w, torch.ones(len(cells.index), dtype=torch.bool))
        found = _search(cells.started(near.w), tol)
        spent += found.rounds
        found = replace(found, rounds=spent, cells=cells)
        own, rows = (one.margins(found.point.w) for one in (cells.of, cells.problem))
        short, below = own < 1 - _OWN, found.point.active & (rows < own[cells.index] - _OWN)
        if not bool(short.any() or below.any()):
            return _judged_at_kinks(found)
        w, gates = near.w, cells.own_gates(found.point.w)
        if cells.of.value(found.point.w) < cells.of.value(w):
            w, cells = found.point.w, cells.at(found.point.w, found.point.active & ~below)
        cells = cells.joined(short.nonzero()[:, 0], gates[short])
    return replace(found, status=Status.FAILED, reason="gates changed in every round")


def _judged_at_kinks(found: _Found) -> _Found:
    cells, point, curvature = found.cells, found.point, found.curvature
    if cells is None or curvature is None:
        return found
    kinks = Kinks.of(cells, point)
    found = replace(found, n_kinks=kinks.n_live)
    if kinks.undecided:
        return replace(found, status=Status.STATIONARY, reason=kinks.undecided, curvature=None)
    judged = _judged(cells.of, cells.gathered(point), curvature)
    if bool(kinks.dead.any()) and judged.status is Status.LOCAL_OPTIMUM:
        why = "units to spare have no weights, and what they would gain was not looked at"
        judged = replace(judged, status=Status.LIVE_OPTIMUM, reason=why)
    return replace(found, status=judged.status, reason=judged.reason)


def _approaches(problem: MarginProblem, w: Tensor, max_rounds: int) -> Iterator[Approach]:
    # First-order programs up to near a KKT point, second-order ones from there.
    near = None
    for near in approaches(problem, w, min(_FIRST_ORDER, max_rounds)):
        yield near
        if near.residual <= _NEAR:
            break
    if near is not None:
        yield from second_order_steps(problem, near, max_rounds - near.rounds)


def _worth_a_try(steps: Iterator[Approach]) -> Iterator[Approach]:
    # Those with residuals that fell enough, or after much patience, and the last one in any case.
    wanted, waited, last = _FIRST_TRY, 0, None
    for last in steps:
        waited += 1
        if last.residual <= wanted or waited == _PATIENCE:
            yield last
            wanted, waited, last = min(wanted, last.residual * _NEXT_TRY), 0, None
    if last is not None:
        yield last


def _try(problem: MarginProblem, near: Approach, tol: float) -> _Found | _Passing:
    point = polish(problem, Point(near.w, near.lam, near.active), tol)
    if point is None or problem.value(point.w) > problem.value(near.w) * (1 + _CLIMBED):
        return _Passing(None)
    curvature = measure_curvature(problem, point)
    unstable = curvature.unstable
    # Where the network is, seen from the saddle, in the directions in which it leaves it.
    off = unstable @ (unstable.T @ (near.w - point.w))
    if float(off.norm()) <= _OFF * float(point.w.norm()):
        return _judged(problem, point, curvature)
    return _Passing(escaped(problem, point, off) if near.residual <= _CREEPING else None)


def _judged(problem: MarginProblem, point: Point, curvature: Curvature) -> _Found:
    if curvature.unstable.shape[1]:
        if escaped(problem, point, curvature.unstable[:, 0]) is not None:
            return _Found(point, Status.SADDLE, curvature=curvature)
        reason = (
            f"the Lagrangian curves downwards ({float(curvature.eigenvalues[0]):.3g}), but no "
            "larger margin was found that way: constraints are dependent or have no multiplier"
        )
        return _Found(point, Status.STATIONARY, reason=reason, curvature=curvature)
    explained = curvature.n_zero_modes <= curvature.n_symmetry
    status = Status.LOCAL_OPTIMUM if explained else Status.FLAT
    return _Found(point, status, curvature=curvature)


def _approach(problem: MarginProblem, max_weights: int) -> _Found:
    # Successive programs alone.
    last = None
    for last in approaches(problem, problem.start, _MAX_ROUNDS):
        if last.residual <= _ENOUGH:
            break
    why = _too_many(problem, max_weights)
    return _unfinished(problem, last, 0 if last is None else last.rounds, why)


def _too_many(problem: MarginProblem, max_weights: int) -> str:
    return f"{len(problem.start)} weights are more than `max_weights` = {max_weights}"


def _unfinished(problem: MarginProblem, last: Approach | None, rounds: int, why: str) -> _Found:
    why = "`max_seconds` are over" if problem.is_late else why
    if last is None:
        w, nothing = problem.rescaled(problem.start), problem.start.new_zeros(problem.n_margins)
        late = "no KKT point was found within `max_seconds`"
        reason = late if problem.is_late else "the first max-margin program was not solved"
        return _Found(Point(w, nothing, nothing > 0), Status.FAILED, rounds, reason)
    point = Point(last.w, torch.where(last.active, last.lam, 0.0), last.active)
    residual = point.residual(problem)
    status = Status.STATIONARY if residual <= _STATIONARY else Status.FAILED
    reason = f"{rounds} max-margin programs reached a residual of {residual:.2g}, and {why}"
    return _Found(point, status, rounds, reason)


def _limit(problem: MarginProblem, found: _Found, seconds: float) -> LocalLimit:
    point, curvature = found.point, found.curvature
    residual = point.residual(problem if found.cells is None else found.cells.problem)
    point = point if found.cells is None else found.cells.gathered(point)
    start, margins = problem.rescaled(problem.start), problem.margins(point.w)
    saddle = curvature is not None and found.status is Status.SADDLE
    lam, active = problem.by_sample(point.lam), problem.by_sample(point.active)
    return LocalLimit.read(
        found,
        weights=_arrays(problem, point.w),
        multipliers=lam.numpy().copy(),
        active=active.numpy().copy(),
        value=problem.value(point.w),
        start_value=problem.value(start),
        distance=float((point.w - start).norm() / point.w.norm()),
        curvature=np.zeros(0) if curvature is None else curvature.eigenvalues.numpy().copy(),
        n_zero_modes=0 if curvature is None else curvature.n_zero_modes,
        n_symmetry_modes=0 if curvature is None else curvature.n_symmetry,
        escape=_arrays(problem, curvature.unstable[:, 0]) if curvature and saddle else None,
        certificate=LocalCertificate(
            residual=residual,
            smallest_margin=float(margins.min()),
            smallest_multiplier=float(lam[active].numpy().min(initial=np.inf)),
        ),
        scores=problem.scores(point.w).numpy(),
        seconds=seconds,
        network=problem.at(point.w),
    )


def _arrays(problem: MarginProblem, flat: Tensor) -> Mapping[str, NDArray[np.float64]]:
    return {name: part.numpy().copy() for name, part in problem.unflatten(flat).items()}
