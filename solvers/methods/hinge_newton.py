"""Newton's method on the active set of a program of margins that are linear less hinges."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import lsq_linear

from ..certificates.max_margin import gap_between
from ..numerics.arrays import NotPositiveDefinite
from ..numerics.factor import Factor
from ..programs.hinge_program import (
    Floats,
    HingeCertificate,
    HingeProgram,
    certify_hinge,
    margins_of,
)

Flags = NDArray[np.bool_]

# Multipliers beside the largest that may count as positive, and shares beside 0 and 1, of a point
# that an interior point gives; norms of units beside their sum.
_POSITIVE, _LIVE = 1e-6, 1e-9
# What rounding may take from a margin or add to a norm of 1.
_ROUNDING = 1e-11
# Steps in all, and those after the best point; from near the solution 3 to 12 were needed.
_MAX_STEPS, _PATIENCE = 40, 10
# Unknowns of one step: 200 MB.
_MAX_UNKNOWNS = 5000
# What keeps multipliers in place that are not unique, beside diagonals of 1.
_RIDGE = 1e-13
# Gaps beyond which the steps lead nowhere.
_LOST = 100.0
# Gaps at which they are tried, and how much smaller than at the last trial.
_NEAR, _NEARER = 1e-2, 0.3
# Gaps that are asked for without it.
_ROUGH = 1e-5


class HingePoint(NamedTuple):
    """Groups (H, D), multipliers (n,) and shares (n, H) of a program."""

    u: Floats
    lam: Floats
    shares: Floats


class Polished(NamedTuple):
    """The best point of some Newton steps, what it proves, and how many there were."""

    point: HingePoint
    certificate: HingeCertificate
    steps: int


class HingeRun:
    """The best points of a program so far, which Newton's method ends once they are near.

    It is not tried where the gap need not be small.

    Attributes
    ----------
    program : HingeProgram
    tight : float
        Gap at which it ends.
    deadline : float
        Moment of `time.perf_counter` after which nothing further begins.
    found : HingePoint or None
        Groups of the least objective, multipliers and shares of the highest bound.
    gap : float
        Theirs.
    steps : int
        Newton's, to the point; 0 if it is not from these.
    solves, rows, iterations : int
        What other methods count.
    """

    def __init__(self, program: HingeProgram, tight: float, deadline: float) -> None:
        self.program, self.tight, self.deadline = program, tight, deadline
        self.found: HingePoint | None = None
        self.steps = self.solves = self.rows = self.iterations = 0
        self._objective, self._bound = math.inf, 0.0
        self._tried = _NEAR if tight < _ROUGH else 0.0

    @property
    def gap(self) -> float:
        return gap_between(self._objective, self._bound)

    @property
    def spent(self) -> bool:
        """True if nothing further may begin."""
        return time.perf_counter() > self.deadline

    def take(self, point: HingePoint) -> bool:
        """Take a point in; return whether the lower bound rose."""
        certificate = certify_hinge(self.program, *point)
        rose = certificate.dual_objective > self._bound
        fell = certificate.objective < self._objective
        best = point if self.found is None else self.found
        self.found = HingePoint(
            point.u if fell else best.u,
            point.lam if rose else best.lam,
            point.shares if rose else best.shares,
        )
        self._bound = max(self._bound, certificate.dual_objective)
        self._objective = min(self._objective, certificate.objective)
        return rose

    def ended(self) -> bool:
        """Return whether the gap is small enough, if need be by Newton's method."""
        if self.found is not None and self.gap <= self._tried:
            self._tried = _NEARER * self.gap
            self.newton(self.found, min(self.gap, self.tight))
        return self.gap <= self.tight

    def newton(self, point: HingePoint, tight: float) -> bool:
        """Take Newton's steps from a point, if they end at a gap that is small enough."""
        near = polished(self.program, point)
        ends = near is not None and near.certificate.gap <= tight
        if near is not None and ends:
            self.steps = near.steps
            self.take(near.point)
        return ends


@dataclass(eq=False)
class _ActiveSet:
    """Which margins are active, which groups are not 0, and on which side of its kink each is.

    Attributes
    ----------
    samples : (n,) boolean array
        Margins of 1, with a multiplier.
    groups : (H,) boolean array
        Not 0, with blocks of norm 1.
    kinks : (n, H) boolean array
        Pairs of such a sample and such a group with ``<u_h, x_n> = 0``.
    gates : (n, H) boolean array
        Open hinges elsewhere.
    """

    samples: Flags
    groups: Flags
    kinks: Flags
    gates: Flags

    @property
    def n_unknowns(self) -> int:
        return int(self.samples.sum() + self.groups.sum() + self.kinks.sum())

    def copy(self) -> _ActiveSet:
        return _ActiveSet(*(each.copy() for each in vars(self).values()))

    def same_as(self, other: _ActiveSet) -> bool:
        pairs = zip(vars(self).values(), vars(other).values(), strict=True)
        return all(np.array_equal(*pair) for pair in pairs)


def polished(program: HingeProgram, point: HingePoint) -> Polished | None:
    r"""Solve the optimality conditions by Newton's method, on an active set that follows it.

    With the blocks v_h at the norm 1 the groups are ``u_h = r_h v_h``, so that the unknowns are
    the multipliers of active samples, ``mu_nh = lam_n shares_nh`` of kinks, and the norms r_h:

    .. math:: m_n(u) = 1, \qquad \langle v_h, x_n \rangle = 0, \qquad \|v_h\| = 1

    whatever the number of inputs. After each step, samples whose multipliers are negative leave
    and those of a margin below 1 join; pairs come to their kink as they change sides, and leave it
    as ``mu`` leaves ``[0, lam_n]``. From a point near the solution the active set settles after a
    few steps, and convergence is quadratic then; from others it may lead nowhere.

    Parameters
    ----------
    program : HingeProgram
    point : HingePoint
        Near the solution; at any scale of the groups, multipliers at blocks of norm about 1.

    Returns
    -------
    Polished or None
        The point of the smallest gap; None if the given one has no positive margins, or the
        active set is too large.

    References
    ----------
    M. Hintermueller, K. Ito, K. Kunisch, "The primal-dual active set strategy as a semismooth
    Newton method", 2002.
    """
    smallest = float(np.min(program.margins(point.u)))
    if not smallest > 0 or not np.max(point.lam) > 0:
        return None
    lam = np.maximum(point.lam, 0.0)
    norms = np.linalg.norm(point.u, axis=1) / smallest
    active = _begun(program, lam, norms, point)
    mu, shares = lam[:, None] * point.shares, point.shares
    best: Polished | None = None
    best_step = 0
    for step in range(1, _MAX_STEPS + 1):
        if not active.samples.any() or active.n_unknowns > _MAX_UNKNOWNS:
            break
        moved = _step(program, active, np.where(active.samples, lam, 0.0), mu, norms)
        if moved is None:
            break
        lam, mu, norms, u = moved
        before = active.copy()
        lam, shares = _followed(program, active, (lam, mu, norms, u), shares)
        settled = active.same_as(before) and not _joined(program, active, lam, shares)
        mu = lam[:, None] * shares
        certificate = certify_hinge(program, u, lam, shares)
        better = best is None or certificate.gap < best.certificate.gap
        if better:
            best, best_step = Polished(HingePoint(u, lam, shares), certificate, step), step
        # Once nothing is left but rounding, or where the steps lead away.
        if (settled and not better) or not certificate.gap < _LOST or step - best_step > _PATIENCE:
            break
    return best


def _begun(program: HingeProgram, lam: Floats, norms: Floats, point: HingePoint) -> _ActiveSet:
    # Of two that multiply to 0 at the solution the smaller one vanishes: a multiplier, beside the
    # others, and what a margin has above theirs; the distance of a share from 0 and 1 and of its
    # product from 0; the share of a norm and `1 - ||v_h||`.
    shares, products = point.shares, program.X @ point.u.T
    samples = lam > _POSITIVE * np.max(lam)
    margins = margins_of(program, products)
    usual = float(lam @ margins) / float(lam.sum())
    samples &= lam > (margins / usual - 1) * np.mean(lam[samples])
    slack = 1 - np.linalg.norm(program.blocks(lam, shares), axis=1)
    groups = norms / norms.sum() > np.maximum(slack, _LIVE)
    room = np.minimum(shares, 1 - shares)
    sizes = np.mean(np.abs(products), axis=0)
    between = (room > _POSITIVE) & (np.abs(products) < room * sizes)
    kinks = (program.hinges > 0) & between & samples[:, None] & groups
    return _ActiveSet(samples, groups, kinks, products > 0)


def _step(
    program: HingeProgram, active: _ActiveSet, lam: Floats, mu: Floats, norms: Floats
) -> tuple[Floats, Floats, Floats, Floats] | None:
    """Multipliers, those of pairs, norms and groups after a Newton step; None if it is singular."""
    samples, groups = np.flatnonzero(active.samples), np.flatnonzero(active.groups)
    p, inputs = len(samples), program.X[samples]
    slopes = program.linear - program.hinges * np.where(active.kinks, False, active.gates)
    slopes, hinges = slopes[np.ix_(samples, groups)], program.hinges[np.ix_(samples, groups)]
    at_kink = active.kinks[np.ix_(samples, groups)]
    radii = np.maximum(norms, _LIVE * np.max(norms))
    gram = inputs @ inputs.T
    # Weights of the inputs in the blocks v_h, and products of inputs and blocks.
    weights = slopes * lam[samples, None]
    weights -= np.where(at_kink, hinges * mu[np.ix_(samples, groups)], 0.0)
    products = gram @ weights
    # Multipliers of samples and norms; those of a group's kinks are eliminated.
    matrix = np.zeros((p + len(groups), p + len(groups)))
    matrix[:p, :p] = ((slopes * radii[groups]) @ slopes.T) * gram
    along = slopes * products
    matrix[:p, p:], matrix[p:, :p] = along, along.T
    right = np.concatenate([1 - along @ radii[groups], (1 - (weights * products).sum(axis=0)) / 2])
    eliminated = []
    for column, h in enumerate(groups):
        kinks = np.flatnonzero(at_kink[:, column])
        if not len(kinks):
            continue
        bends = -hinges[kinks, column]
        own = radii[h] * bends[:, None] * gram[np.ix_(kinks, kinks)] * bends
        border = np.zeros((len(kinks), len(right) + 1))
        border[:, :p] = radii[h] * bends[:, None] * gram[kinks] * slopes[:, column]
        border[:, p + column] = bends * products[kinks, column]
        border[:, -1] = -radii[h] * border[:, p + column]
        try:
            solved = Factor(own, _RIDGE).solve(border)
        except NotPositiveDefinite:
            return None
        matrix -= border[:, :-1].T @ solved[:, :-1]
        right -= border[:, :-1].T @ solved[:, -1]
        eliminated.append((column, kinks, solved))
    moved = _solved(matrix, right, p)
    if moved is None:
        return None
    new_lam, u = np.zeros(len(lam)), np.zeros((len(norms), program.X.shape[1]))
    new_lam[samples] = lam[samples] + moved[:p]
    new_mu = new_lam[:, None] * active.gates
    weights = slopes * new_lam[samples, None]
    for column, kinks, solved in eliminated:
        at = mu[samples[kinks], groups[column]] + solved[:, -1] - solved[:, :-1] @ moved
        new_mu[samples[kinks], groups[column]] = at
        weights[kinks, column] -= hinges[kinks, column] * at
    radii[groups] += moved[p:]
    u[groups] = np.maximum(radii[groups], 0.0)[:, None] * (weights.T @ inputs)
    return new_lam, new_mu, np.where(active.groups, radii, 0.0), u


def _solved(matrix: Floats, right: Floats, size: int) -> Floats | None:
    """Solve for a step; the first `size` rows and columns are scaled to a diagonal of 1."""
    scales = np.ones(len(right))
    diagonal = np.sqrt(np.abs(np.diag(matrix)[:size]))
    scales[:size] = np.where(diagonal > 0, diagonal, 1.0)
    scaled = matrix / scales[:, None] / scales
    scaled[np.arange(size), np.arange(size)] += _RIDGE
    try:
        moved = np.linalg.solve(scaled, right / scales) / scales
    except np.linalg.LinAlgError:
        return None
    return moved if np.all(np.isfinite(moved)) else None


def _followed(
    program: HingeProgram,
    active: _ActiveSet,
    moved: tuple[Floats, Floats, Floats, Floats],
    shares: Floats,
) -> tuple[Floats, Floats]:
    """Change the active set to the side that a step leads to; return multipliers and shares."""
    lam, mu, norms, u = moved
    negative = lam < 0
    active.samples &= ~negative
    active.kinks[negative] = False
    lam = np.maximum(lam, 0.0)
    closed, opened = active.kinks & (mu <= 0), active.kinks & (mu >= lam[:, None])
    active.kinks &= ~(closed | opened)
    active.gates = (active.gates & ~closed) | opened
    gone = active.groups & (norms <= 0)
    active.groups &= ~gone
    active.kinks[:, gone] = False
    products = program.X @ u.T
    hinged = (program.hinges > 0) & active.groups
    crossed = hinged & active.samples[:, None] & ~(closed | opened | active.kinks)
    active.kinks |= crossed & ((products > 0) != active.gates)
    active.gates = np.where(active.samples[:, None] | ~active.groups, active.gates, products > 0)
    active.samples |= ~negative & (program.margins(u) < 1 - _ROUNDING)
    held = lam > 0
    weights = np.where(active.kinks, np.clip(mu, 0.0, lam[:, None]), lam[:, None] * active.gates)
    following = np.where(
        held[:, None], weights / np.where(held, lam, 1.0)[:, None], active.gates.astype(float)
    )
    following[:, ~active.groups] = shares[:, ~active.groups]
    return lam, following


def _joined(program: HingeProgram, active: _ActiveSet, lam: Floats, shares: Floats) -> bool:
    """Let groups join whose blocks are longer than 1 at all shares; `shares` is changed."""
    joined = False
    norms = np.linalg.norm(program.blocks(lam, shares), axis=1)
    for h in np.flatnonzero(~active.groups & (norms > 1 + _ROUNDING)):
        free = (lam > 0) & (program.hinges[:, h] > 0)
        whole = (lam * program.linear[:, h]) @ program.X
        if free.any():
            hinges = (lam * program.hinges[:, h])[free, None] * program.X[free]
            shortest = lsq_linear(hinges.T, whole, bounds=(0.0, 1.0), tol=1e-12)
            shares[free, h] = np.clip(shortest.x, 0.0, 1.0)
            whole = whole - shares[free, h] @ hinges
        if np.linalg.norm(whole) > 1 + _ROUNDING:
            joined = active.groups[h] = True
            between = (shares[:, h] > _POSITIVE) & (shares[:, h] < 1 - _POSITIVE)
            active.kinks[:, h] = active.samples & free & between
            active.gates[:, h] = shares[:, h] > 0.5
    return joined
