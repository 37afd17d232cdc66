"""Programs of margins that are linear less hinges: the choice of a method, and the answer."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace

import numpy as np

from ..certificates.answer import Answer
from ..certificates.status import Status
from ..numerics.central_path import Patience
from ..numerics.checks import require_positive, require_shape, require_tolerance
from ..numerics.summation import power_of_two
from ..programs.hinge_program import (
    Floats,
    HingeCertificate,
    HingeProgram,
    certify_hinge,
)
from .hinge_newton import HingePoint, HingeRun
from .hinge_rows import solve_lassos
from .interior.hinges import HingePath, hinge_path

# By default the bounds of the program are to be as near to each other as that.
_TIGHT = 1e-10
# Pairs of a sample and a hinge from which the interior point is faster, where samples are at most
# so many times the inputs.
_LARGE, _WIDE = 10_000, 4
# Its iterations; 10 to 25 were needed. It ends where so many have not narrowed the gap by a tenth.
_ITERATIONS, _PATIENCE = 60, 6
# Multipliers beside the largest, and shares beside 0 and 1, that lassos begin without.
_VANISHING = 1e-2


@dataclass(frozen=True, eq=False)
class HingeSolution(Answer):
    """A solved `HingeProgram`.

    Attributes
    ----------
    u : (H, D) array
        At smallest margin 1 if there is a solution.
    multipliers : (n,) array
        lam >= 0, adding up to the optimum.
    shares : (n, H) array
        Slopes in [0, 1] that stand for the hinges: 0 or 1 off the kinks, dual variables on them.
    certificate : HingeCertificate
    status : Status
        SOLVED, INACCURATE where the gap is above `tol`, NOT_SEPARABLE where it is proved that no
        margins are positive, FAILED where nothing was found.
    solves : int
        Group lassos; 0 where the interior point or Newton's method alone led to the solution.
    rows : int
        Of the last one.
    iterations : int
        Of the interior point.
    steps : int
        Newton steps to the point from any of these, or from the start; 0 where they gave nothing.
    seconds : float
    """

    u: Floats
    multipliers: Floats
    shares: Floats
    certificate: HingeCertificate
    status: Status
    solves: int
    rows: int
    iterations: int
    steps: int
    seconds: float


def solve_hinge(
    program: HingeProgram,
    start: Floats | None = None,
    *,
    guess: tuple[Floats, Floats] | None = None,
    tol: float = 1e-8,
    ends_at: float | None = None,
    max_seconds: float = math.inf,
) -> HingeSolution:
    """Solve a program of margins that are linear less hinges.

    Large programs of many inputs follow an interior point from a start of positive margins, others,
    and what it leaves open, group lassos of as many linear margins as are needed. Once the bounds
    are near, or from a `guess` at once, Newton's method on the active set ends it, to rounding
    where the solution is unique.

    Parameters
    ----------
    program : HingeProgram
    start : (H, D) array, optional
        Groups near the solution.
    guess : ((n,) array, (n, H) array), optional
        Multipliers and shares near it, such as those of a program of few other coefficients.
    tol : float
        Relative duality gap that counts as solved, in (0, 1).
    ends_at : float, optional
        Gap at which it ends, by default 1e-10 or `tol`, whichever is smaller.
    max_seconds : float
        Seconds after which no further group lasso, or iteration, is begun.

    Returns
    -------
    HingeSolution

    Raises
    ------
    ValueError
        If `start` or `guess` has another shape, or is not finite, a number is out of range, or
        memory cannot hold the program.

    Examples
    --------
    Two units, of which the second must not open on the first sample:

    >>> import numpy as np
    >>> from solvers import HingeProgram, solve_hinge
    >>> X = np.array([[1.0, 0.0], [1.0, 1.0]])
    >>> program = HingeProgram(X, np.eye(2), 1 - np.eye(2))
    >>> solution = solve_hinge(program)
    >>> solution.status.name, round(solution.certificate.objective, 6)
    ('SOLVED', 2.414214)
    """
    require_tolerance(tol)
    if max_seconds != math.inf:
        require_positive("max_seconds", max_seconds)
    began = time.perf_counter()
    shape = (program.n_groups, program.X.shape[1])
    u = np.zeros(shape) if start is None else start
    require_shape("start", u, shape, "one row a group")
    unit = power_of_two(float(np.max(np.abs(program.X))))
    scaled, u = replace(program, X=program.X / unit), u * unit
    run = HingeRun(scaled, min(_TIGHT, tol) if ends_at is None else ends_at, began + max_seconds)
    if guess is not None:
        require_shape("guess[0]", guess[0], program.linear.shape[:1], "one a sample")
        require_shape("guess[1]", guess[1], program.linear.shape, "one share a hinge")
        if not all(np.all(np.isfinite(array)) for array in (u, *guess)):
            raise ValueError("`start` and `guess` must be finite")
        guess = (guess[0] * unit, guess[1])
        if run.newton(HingePoint(u, *guess), run.tight):
            return _concluded(run, program, None, tol, began)
    many = np.count_nonzero(program.hinges) >= _LARGE
    if many and len(program.X) <= _WIDE * shape[1] and np.min(scaled.margins(u)) > 0:
        _follow(run, u, guess if guess is not None and np.any(guess[0] > 0) else None)
    status = None
    if run.gap > max(run.tight, tol):
        if run.found is not None:
            u, guess = run.found.u, (run.found.lam, run.found.shares)
        status = solve_lassos(run, u, None if guess is None else _decided(*guess))
    return _concluded(run, program, status, tol, began)


def _follow(run: HingeRun, u: Floats, guess: tuple[Floats, Floats] | None) -> None:
    """Follow the interior point from groups of positive margins."""
    patience = Patience(_PATIENCE)

    def goes_on(point: HingePath, done: int) -> bool:
        run.iterations = done
        run.take(HingePoint(point.u, point.lam, point.shares))
        return not (run.ended() or run.spent or patience.ends(run.gap))

    hinge_path(run.program, u, guess, goes_on, limit=_ITERATIONS)


def _decided(lam: Floats, shares: Floats) -> tuple[Floats, Floats]:
    """Multipliers and shares, those of an interior point too, without what is about to vanish."""
    lam = np.where(lam > _VANISHING * np.max(lam), lam, 0.0)
    return lam, np.where(np.minimum(shares, 1 - shares) < _VANISHING, np.round(shares), shares)


def _concluded(
    run: HingeRun, program: HingeProgram, status: Status | None, tol: float, began: float
) -> HingeSolution:
    """Judge the best points, at smallest margin 1 and multipliers that add up to the optimum.

    That of the run is the program at another scale, of which neither point has any here.
    """
    separable = status is not Status.NOT_SEPARABLE
    u, lam, shares = run.found if run.found and separable else _nothing(program)
    certificate = certify_hinge(program, u, lam, shares)
    if certificate.smallest_margin > 0:
        peak = float(np.max(np.linalg.norm(program.blocks(lam, shares), axis=1)))
        u, lam = u / certificate.smallest_margin, lam / peak if peak > 0 else lam
        certificate = certify_hinge(program, u, lam, shares)
        status = Status.SOLVED if certificate.gap <= tol else Status.INACCURATE
    else:
        u, lam, shares = _nothing(program)
    counts = (run.solves, run.rows, run.iterations, run.steps)
    seconds = time.perf_counter() - began
    return HingeSolution(u, lam, shares, certificate, status or Status.FAILED, *counts, seconds)


def _nothing(program: HingeProgram) -> HingePoint:
    (n_samples, n_inputs), n_groups = program.X.shape, program.n_groups
    return HingePoint(
        np.full((n_groups, n_inputs), math.nan),
        np.full(n_samples, math.nan),
        np.full((n_samples, n_groups), math.nan),
    )
