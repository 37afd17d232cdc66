"""Two-layer ReLU networks whose outer layer is fixed: certified optima of degree one."""

from __future__ import annotations

import math
import time
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from ..._support.doors import door, parameters
from ..._support.kinds import anything, count, floats, fraction, positive
from ..._support.solve import (
    GatedDesign,
    MaxMarginProgram,
    Settings,
    Status,
    gap_between,
    require_real,
    require_shape,
    solve,
    to_numpy,
)
from ...data.arrays import Floats
from ..literal import LiteralProgram, constant, cvxpy_module, labelled
from ..result import Result, proved, size_of
from .arrangement import arrangement_directions
from .bound import TooManyPatterns
from .branching import Largest, largest_of_side
from .descent import KINK, STILL, SUPPORT
from .directions import Direction, best_directions, dual_function, sides
from .limit import ReLUCertificate, ReLUPredictor, degrees
from .problem import ReLUProblem

if TYPE_CHECKING:
    import cvxpy

# Rounds in which gates of opposing pairs are added to a program, and by how much margins may lack.
ROUNDS, LACKING = 60, 1e-9
NAME = "fixed outer layer"
_CLOSE = 1e-10
_UNIT = 2.0**-53


class FixedOuterCertificate(ReLUCertificate):
    """Bounds of ``||W||`` over the smallest margin, where the outer layer is fixed.

    `objective` is that of the limit, `dual_objective` a lower bound of all W whose neurons have its
    gates on the support samples of their own sign, `smallest_turn` the angle in degrees by which
    any neuron may turn until then, and `lower_bound` one of all W; 0 where it was not computed.
    """


class FixedOuterLimit(Result):
    r"""The inner layer of least norm, of all or of all nearby, where the outer layer is fixed.

    .. math:: \min_W \|W\|_F \quad\text{s.t.}\quad
              y_n \sum_h a_h \rho(\langle w_h, x_n \rangle) \ge 1

    Attributes
    ----------
    zeta : (H, D) array
        W, at smallest margin 1.
    outer : (H,) array
        The fixed weights a.
    slope : float
        Of the activation rho left of its kink.
    dual : (n,) array
        Multipliers lam of the margins.
    slopes : (n, H) array
        Slope that stands for each activation in the proof: the gate where neuron and sample have
        one sign, anything between the slope and 1 elsewhere.
    margins : (n,) array
    status : Status
        SOLVED: no W is better. LOCAL_OPTIMUM: none nearby is. STATIONARY: a support sample
        is on the kink of a neuron of its own sign. FAILED, with `reason`.
    certificate : FixedOuterCertificate
    programs : int
        Convex programs of the search.
    reason : str
    tol, seconds : float

    Examples
    --------
    >>> X, y = np.array([[1.0, 0.0], [0.0, 2.0]]), np.array([1.0, -1.0])
    >>> limit = ib.limits.solve_fixed_outer(X, y, [1.0, -1.0], slope=0.5)
    >>> limit.status.name, limit.zeta.round(6).tolist()
    ('SOLVED', [[0.8, -0.2], [-0.4, 0.4]])
    """

    ADVICE: ClassVar = {
        Status.SOLVED: "solved: no inner layer of this outer one has a smaller "
        "norm per margin by more than the tolerance",
        Status.LOCAL_OPTIMUM: "local optimum: no inner layer nearby has a smaller norm per margin. "
        "Others may have: the lower bound of all was not attained, or not computed",
        Status.STATIONARY: "stationary: optimal in the convex program of its own gates, but a "
        "support sample is on the kink of a neuron of its own sign",
        Status.FAILED: "failed: `reason` says why. Give another `start`, or raise `tol`",
    }
    RECORD = ("n_samples", "n_support", "n_units", "rank")
    ROW: ClassVar = {"objective": "value", "lower_bound": "certificate.lower_bound", "gap": "gap"}
    SCREEN = ("objective", "lower_bound", "gap")
    TITLE, HEADS = "prediction", ("", "{}")
    LINES = ("status", "objective", "lower_bound", "gap")
    BRIEF = (
        "{status.name}, {n_units} neurons of rank {rank}, slope {slope:g}{_because}\n"
        "  value {value:.10g}, no inner layer in its cones below "
        "{certificate.dual_objective:.10g}, of all {certificate.lower_bound:.10g}\n"
        "  smallest turn {certificate.smallest_turn:.3g} degrees, {n_support} of {n_samples} "
        "samples support\n"
        "  {programs} programs, {seconds:.3g} s"
    )

    zeta: Floats
    outer: Floats
    dual: Floats
    slopes: Floats
    margins: Floats
    status: Status
    certificate: FixedOuterCertificate
    reason: str
    slope: float = field(kw_only=True)
    programs: int = field(kw_only=True)
    tol: float = field(kw_only=True)
    seconds: float = field(kw_only=True)

    value = proved("objective", "``||W||`` at smallest margin 1.")
    gap = proved("gap", "Of the bound in its cones.")
    n_samples = size_of("dual", "Number of samples.")
    n_units = size_of("outer", "Number of neurons.")

    @property
    def n_support(self) -> int:
        """Number of samples with a multiplier."""
        return int(np.sum(self.dual > SUPPORT * self.dual.max(initial=0.0)))

    @property
    def rank(self) -> int:
        """Number of singular values of W above a millionth of the largest."""
        sizes = np.linalg.svd(self.zeta, compute_uv=False)
        return int(np.sum(sizes > 1e-6 * sizes[0]))

    @property
    def classifier(self) -> Floats:
        """``sum_h a_h w_h`` (D,): of two directions of a leaky network the boundary's normal."""
        return np.asarray(self.outer @ self.zeta)

    @property
    def predictor(self) -> ReLUPredictor:
        """The limit as a function of new inputs, at smallest margin 1."""
        scaled = np.abs(self.outer)[:, None] * self.zeta
        return ReLUPredictor(scaled, np.sign(self.outer), self.slope)

    @door(zeta=floats("H D"))
    def norm_of(self, zeta: ArrayLike) -> float:
        """Return the norm that is least, of other weights (H, D).

        Examples
        --------
        >>> X, y = np.array([[1.0, 0.0], [0.0, 2.0]]), np.array([1.0, -1.0])
        >>> ib.limits.solve_fixed_outer(X, y, [1.0, -1.0]).norm_of([[3.0, 0.0], [0.0, 4.0]])
        5.0
        """
        return float(np.linalg.norm(np.asarray(to_numpy(zeta), dtype=np.float64)))

    @door()
    def certify(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Prove weights, slopes and multipliers anew on the data, whoever found or stored them.

        Parameters
        ----------
        X : (n, D) array
        y : (n,) array
            Labels in {-1, +1}.

        Raises
        ------
        TypeError, ValueError
            If an array is malformed, or of another number of samples or inputs.

        Examples
        --------
        >>> X, y = np.array([[1.0, 0.0], [0.0, 2.0]]), np.array([1.0, -1.0])
        >>> limit = ib.limits.solve_fixed_outer(X, y, [1.0, -1.0], slope=0.5)
        >>> limit.certify(X, y).status.name, limit.certify(X + 0.1, y).status.name
        ('SOLVED', 'FAILED')
        """
        problem, unit = scaled_problem(X, y, self.outer, self.slope)
        require_shape("y", problem.y, self.dual.shape, "the samples of the limit")
        require_shape("X", problem.X, (len(self.dual), self.zeta.shape[1]), "as the limit's")
        lower = problem.least(self.dual) if self.certificate.lower_bound > 0 else 0.0
        how = {name: getattr(self, name) for name in ("programs", "tol", "seconds")}
        proof = Point(self.zeta * unit, self.dual, self.slopes)
        return replace(self, **vars(problem.conclude(proof, lower, unit, **how)))


@dataclass(frozen=True, eq=False)
class Point:
    """Weights (H, D), multipliers (n,) and slopes (n, H), of one program."""

    zeta: Floats
    lam: Floats
    slopes: Floats


@dataclass(frozen=True, eq=False)
class FixedOuter:
    """The margin problem of an outer layer that is fixed, and its programs on fixed gates."""

    relu: ReLUProblem
    outer: Floats

    @property
    def X(self) -> Floats:
        return self.relu.inputs

    @property
    def y(self) -> Floats:
        return self.relu.y

    @property
    def helping(self) -> Any:
        return self.relu.helping(self.outer)

    def slopes(self, zeta: Floats) -> Floats:
        """Return the slopes (n, H) of the activations of weights, 1 on a kink."""
        return np.where(self.X @ zeta.T >= 0, 1.0, self.relu.slope)

    def margins(self, zeta: Floats, slopes: Floats | None = None) -> Floats:
        """Return margins (n,), or those of the program on the slopes of helping pairs."""
        own = self.slopes(zeta)
        used = own if slopes is None else np.where(self.helping, slopes, own)
        return np.asarray(self.y * ((used * (self.X @ zeta.T)) @ self.outer))

    def solve(self, slopes: Floats, settings: Settings) -> Point | None:
        """Solve the program on slopes of helping pairs; None where it separates nothing.

        An opposing activation is the larger of two lines: gates that a solution has are added as
        rows of its samples until it has no others.
        """
        rows, gates, n = np.arange(len(self.y)), slopes, len(self.y)
        for _ in range(ROUNDS):
            group = np.zeros(len(self.outer), dtype=np.int64)
            design = GatedDesign(self.X[rows], gates * self.outer, group)
            found = solve(MaxMarginProgram(design, self.y[rows]), settings=settings)
            if not found.certificate.proves_separability():
                return None
            zeta = np.asarray(found.primal)
            new = np.where(self.helping, slopes, self.slopes(zeta))
            short = np.flatnonzero(self.margins(zeta, slopes) < 1 - LACKING)
            known = {(k, *row) for k, row in zip(rows.tolist(), gates.tolist(), strict=True)}
            lacking = [k for k in short.tolist() if (k, *new[k].tolist()) not in known]
            if not lacking:
                break  # no margin lacks a gate
            rows, gates = np.append(rows, lacking), np.vstack([gates, new[lacking]])
        lam = np.bincount(rows, found.dual, n).astype(np.float64)
        total = np.zeros((n, len(self.outer)))
        np.add.at(total, rows, np.asarray(found.dual)[:, None] * gates)
        shares = total / np.where(lam > 0, lam, 1.0)[:, None]
        return Point(zeta, lam, np.where(lam[:, None] > 0, shares, new))

    def least(self, lam: Floats, max_patterns: int = 2**16) -> float:
        """Return a lower bound of the norm of all W at margin 1, by the gates of every neuron."""
        squares = [(sign, float(np.sum(self.outer[np.sign(self.outer) == sign] ** 2)))
                   for sign in (1.0, -1.0)]  # fmt: skip
        largest = sum(
            share * _largest(self.relu, lam, sign, max_patterns) ** 2
            for sign, share in squares if share > 0
        )  # fmt: skip
        total = float(lam.sum()) * (1 - (len(lam) + 2) * _UNIT)
        return total / math.sqrt(largest) * (1 - 8 * _UNIT) if largest > 0 else math.inf

    def conclude(self, point: Point, lower: float, unit: float, **how: Any) -> FixedOuterLimit:
        """Return the limit with all that is said of it recomputed, of inputs times `unit`."""
        zeta, lam = point.zeta, np.clip(point.lam, 0.0, None)
        smallest = float(self.margins(zeta).min())
        value = float(np.linalg.norm(zeta)) / smallest if smallest > 0 else math.inf
        support = lam > SUPPORT * lam.max(initial=0.0)
        own = np.where(self.helping, self.slopes(zeta), 0.0)
        low = self.relu.slope
        blocks = ((lam * self.y)[:, None] * point.slopes).T @ self.X * self.outer[:, None]
        below = float(lam.sum()) / max(float(np.linalg.norm(blocks)), 1e-300)
        below *= 1 - (sum(self.X.shape) + 8) * _UNIT
        cosines = np.abs(self.relu.cosines(zeta @ self.relu.basis.T))
        pairs = self.helping & support[:, None]
        # On a kink either gate is that of the cone, whose boundary the neuron is on.
        legal = np.where(
            self.helping,
            np.isclose(point.slopes, own) | (cosines <= KINK),
            (point.slopes <= 1 + 1e-12) & (point.slopes >= low * (1 - 1e-12)),
        )
        nearest = float(np.min(cosines, where=pairs, initial=1.0))
        if not legal[support].all():
            below = 0.0
        gap, overall = gap_between(value, below, below), gap_between(value, lower, lower)
        status, reason = Status.LOCAL_OPTIMUM, ""
        if nearest <= KINK:
            status, reason = Status.STATIONARY, "a support sample is on a kink of its own sign"
        if not gap <= how["tol"]:
            status = Status.FAILED
            reason = f"its gap is {gap:.2g}" if math.isfinite(value) else "it does not separate"
        elif overall <= how["tol"]:
            status, reason = Status.SOLVED, ""
        turn = float(degrees(np.array([nearest]))[0])
        certificate = FixedOuterCertificate(
            value / unit, below / unit, gap, turn, lower / unit, overall
        )
        scaled = zeta / smallest if smallest > 0 else zeta
        return FixedOuterLimit(
            scaled / unit, self.outer, lam, point.slopes, self.margins(scaled), status, certificate,
            reason, slope=self.relu.slope, **how,
        )  # fmt: skip


@parameters(outer=floats("H"), slope=fraction)
@dataclass(frozen=True, eq=False)
class FixedOuterMargin(LiteralProgram):
    """The margin program of a two-layer ReLU network with a fixed outer layer, on fixed gates.

        minimise  ||W||_F
        s.t.  sum_{h helps n} |a[h]| g[n, h] <w[h], x[n]>
              - sum_{h opposes n} |a[h]| max(<w[h], x[n]>, 0) >= 1

    Unit h helps sample n if ``a[h]`` has the sign of the sample's label, and opposes it otherwise.
    A leaky activation adds its slope to both.

    Parameters
    ----------
    outer : (H,) array
        The fixed weights a.
    slope : float
        Of the activation left of its kink, in [0, 1).

    Examples
    --------
    >>> X, y = np.array([[1.0, 0.0], [0.0, 2.0]]), np.array([1.0, -1.0])
    >>> problem = ib.programs.FixedOuterMargin([1.0, -1.0], slope=0.5).literal(X, y)
    >>> round(float(problem.solve(solver="CLARABEL")), 6)
    1.0
    """

    name: ClassVar[str] = NAME

    outer: Floats
    slope: float = 0.0

    @door(gates=anything)
    def literal(self, X: ArrayLike, y: ArrayLike, gates: ArrayLike | None = None) -> cvxpy.Problem:
        """State the program in cvxpy.

        Parameters
        ----------
        X : (n, D) array
        y : (n,) array
            Labels in {-1, +1}.
        gates : (n, H) array, optional
            0 or 1, by default all open; those of opposing pairs are not read.

        Returns
        -------
        cvxpy.Problem
            In the variable "W" (H, D), with one constraint, "margins".

        Raises
        ------
        MissingExtra
            Without cvxpy.
        TypeError, ValueError
            If an array is malformed.
        """
        relu, a = ReLUProblem.checked(X, y, self.slope), np.asarray(self.outer, dtype=np.float64)
        shape = (len(relu.y), len(a))
        require_real("gates", np.ones(1) if gates is None else gates)
        g = np.ones(shape) if gates is None else np.asarray(to_numpy(gates), dtype=np.float64)
        require_shape("gates", g, shape, "one gate a sample and unit")
        if not np.all((g == 0) | (g == 1)):
            raise ValueError("`gates` must be exactly 0 (closed) or 1 (open)")
        cp, low, size = cvxpy_module(), self.slope, np.abs(a)
        W = cp.Variable((len(a), relu.inputs.shape[1]), name="W")
        z, helping = constant(relu.inputs, "X") @ W.T, relu.helping(a)
        rising = np.where(helping, low + (1 - low) * g, -low) * size
        hinged = np.where(helping, 0.0, (1 - low) * size)
        terms = cp.multiply(constant(rising, "g"), z)
        terms -= cp.multiply(constant(hinged, "opposing"), cp.pos(z))
        margins = labelled(cp.sum(terms, axis=1) >= 1, "margins")
        return cp.Problem(cp.Minimize(cp.norm(W, "fro")), [margins])


def scaled_problem(
    X: ArrayLike, y: ArrayLike, outer: Floats, slope: float
) -> tuple[FixedOuter, float]:
    """Return the problem of inputs over a power of two, the largest near one, and that power."""
    relu = ReLUProblem.checked(X, y, slope)
    unit = 2.0 ** math.frexp(float(np.abs(relu.inputs).max()))[1]
    return FixedOuter(replace(relu, inputs=relu.inputs / unit), outer), unit


def _largest(problem: ReLUProblem, lam: Floats, sign: float, max_patterns: int) -> float:
    """Return an upper bound of ``sum_n lam_n y_n s rho(<v, x_n>)`` over unit v, of one sign s.

    Raises
    ------
    TooManyPatterns
    """
    lost = (sum(problem.X.shape) + 8) * _UNIT * float(lam @ problem.sizes)
    if problem.X.shape[1] <= 3:
        v = arrangement_directions(problem, lam)
        return float(np.max(sign * dual_function(problem, lam, v))) * (1 + _CLOSE) + lost
    side = next(one for one in sides(problem, lam) if one.sign == sign)
    begins = side.linear(np.ones((1, len(side.helping))))
    found = best_directions(problem, lam, begins / max(float(np.linalg.norm(begins)), 1e-300))
    own = [one for one in found if one.sign == sign]
    best = own[0] if own else Direction(begins[0], sign, 0.0)
    known = max(best.dual, float(side.dual(begins)[0]) / max(float(np.linalg.norm(begins)), 1e-300))
    largest = largest_of_side(side, Largest(known * (1 + _CLOSE), best, 0), max_patterns)
    if largest is None:
        raise TooManyPatterns(f"more than {max_patterns} gate patterns")
    return largest.bound + lost


@door(outer=floats("H"), slope=fraction, start=floats("H D"), max_programs=count(1),
      max_patterns=count(0), max_seconds=positive)  # fmt: skip
def solve_fixed_outer(
    X: ArrayLike,
    y: ArrayLike,
    outer: ArrayLike,
    *,
    slope: float = 0.0,
    start: ArrayLike | None = None,
    tol: float = 1e-7,
    max_programs: int = 50,
    max_patterns: int = 2**16,
    max_seconds: float | None = None,
) -> FixedOuterLimit:
    r"""Solve for the inner layer of least norm of a two-layer ReLU network of fixed outer weights.

    Training goes to some KKT point of this problem (Lyu and Li). On nearly orthogonal inputs
    (`datasets.near_orthogonality`) there is one alone, of rank two at most, and it is found from
    the gates of the labels. On others the search begins at a network and ends at the local optimum
    that convex programs on its gates lead to.

    Parameters
    ----------
    X : (n, D) array
        Inputs; a bias is a constant column.
    y : (n,) array
        Labels in {-1, +1}.
    outer : (H,) array
        The fixed weights a_h, none of them 0.
    slope : float
        Of the activation left of its kink, in [0, 1): a leaky ReLU.
    start : (H, D) array, optional
        Weights next to which the optimum is looked for; by default every neuron is open on the
        samples of its own sign.
    tol : float
        Relative gap that the proof is to have.
    max_programs, max_patterns : int
        Convex programs on changing gates; gate patterns that the bound of all W may look at, 0 for
        no such bound.
    max_seconds : float, optional
        After which no further program begins.

    Returns
    -------
    FixedOuterLimit

    Raises
    ------
    TypeError, ValueError
        If an array is malformed, an outer weight is 0, or a number is out of range.

    References
    ----------
    S. Frei, G. Vardi, P. L. Bartlett, N. Srebro, W. Hu, "Implicit bias in leaky ReLU networks
    trained on high-dimensional data"; K. Lyu, J. Li, "Gradient descent maximizes the margin of
    homogeneous neural networks". Programs, proofs and the bound of all W are this package's own.

    Examples
    --------
    >>> X, y = np.array([[1.0, 0.0], [0.0, 2.0]]), np.array([1.0, -1.0])
    >>> limit = ib.limits.solve_fixed_outer(X, y, [1.0, -1.0, -1.0], slope=0.5)
    >>> limit.status.name, limit.rank, limit.margins.round(6).tolist()
    ('SOLVED', 2, [1.0, 1.0])
    """
    begin, a = time.perf_counter(), np.asarray(outer, dtype=np.float64)
    if not np.all(a != 0):
        raise ValueError("`outer` must have no weight of 0: such a neuron is not there")
    problem, unit = scaled_problem(X, y, a, slope)
    slopes = np.where(problem.helping, 1.0, slope)
    if start is not None:
        W = np.asarray(to_numpy(start), dtype=np.float64)
        require_shape("start", W, (len(a), problem.X.shape[1]), "a row a neuron")
        slopes = problem.slopes(W)
    settings, best, programs = Settings(tol=tol / 10), None, 0
    value = math.inf
    while programs < max_programs and time.perf_counter() - begin < (max_seconds or math.inf):
        point = problem.solve(slopes, settings)
        programs += 1
        if point is None:
            break
        smallest = float(problem.margins(point.zeta).min())
        now = float(np.linalg.norm(point.zeta)) / smallest if smallest > 0 else math.inf
        # It never rises; where it stays, this one is on the gates of the last one, and proves it.
        fell, best, value = now < value * (1 - STILL), point, now
        if not fell:
            break
        cosines = problem.relu.cosines(point.zeta @ problem.relu.basis.T)
        # On a kink, and of a neuron that is 0, an open gate takes nothing and may give.
        sizes = np.linalg.norm(point.zeta, axis=1)
        kink = (np.abs(cosines) <= KINK) | (sizes <= SUPPORT * sizes.max())
        settled = np.where(kink & problem.helping, 1.0, problem.slopes(point.zeta))
        if np.array_equal(np.where(problem.helping, settled, 0), np.where(
            problem.helping, slopes, 0)):  # fmt: skip
            break
        slopes = settled
    how = {"programs": programs, "tol": tol}
    if best is None:
        n, H = problem.helping.shape
        best = Point(np.zeros((H, problem.X.shape[1])), np.zeros(n), slopes)
    lower = 0.0
    if max_patterns and best.lam.any():
        with suppress(TooManyPatterns):
            lower = problem.least(best.lam / best.lam.max(), max_patterns)
    return problem.conclude(best, lower, unit, seconds=time.perf_counter() - begin, **how)
