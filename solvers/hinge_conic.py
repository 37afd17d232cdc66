"""Programs of margins that are linear less hinges, by a conic solver, hinges one at a time."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from .checks import require_shape, require_tolerance
from .hinge_program import Floats, HingeCertificate, HingeProgram, certify_hinge
from .memory import require_memory
from .status import Status

__all__ = ["HingeSolution", "solve_hinge"]

# Hinges whose argument is within this cosine of 0 are stated from the start; the others are taken
# as linear on the side on which they are, and stated once a solution has crossed.
_NEAR = 0.03
# Asked of the conic solver, which answers with less where it cannot: certificates judge.
_TIGHT = 1e-11


@dataclass(frozen=True, eq=False)
class HingeSolution:
    """A solved `HingeProgram`.

    Attributes
    ----------
    u : (H, D) array
        At smallest margin 1 if there is a solution.
    multipliers : (n,) array
        lam >= 0.
    shares : (n, H) array
        Slopes in [0, 1] that stand for the hinges: 0 or 1 off the kinks, dual variables on them.
    certificate : HingeCertificate
    status : Status
        SOLVED, INACCURATE where the gap is above `tol`, NOT_SEPARABLE where the conic solver says
        that no margins are positive, FAILED where it found nothing.
    solves : int
        Conic programs.
    seconds : float
    """

    u: Floats
    multipliers: Floats
    shares: Floats
    certificate: HingeCertificate
    status: Status
    solves: int
    seconds: float


def solve_hinge(
    program: HingeProgram,
    start: Floats | None = None,
    *,
    tol: float = 1e-8,
    max_seconds: float = math.inf,
) -> HingeSolution:
    """Solve a program of margins that are linear less hinges, by Clarabel.

    Hinges far from their kinks are linear to begin with. Those that a solution has taken across
    are stated by their epigraph, and the program is solved again until there are none, so that the
    answer is exact.

    Parameters
    ----------
    program : HingeProgram
    start : (H, D) array, optional
        Groups near the solution; without them all hinges are stated.
    tol : float
        Relative duality gap that counts as solved, in (0, 1).
    max_seconds : float
        Seconds after which the conic solver stops.

    Returns
    -------
    HingeSolution

    Raises
    ------
    ModuleNotFoundError
        Without Clarabel.
    ValueError
        If `start` has another shape, `tol` is out of range, or memory cannot hold the program.

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
    n_samples, n_inputs = program.X.shape
    n_groups = program.n_groups
    size = n_groups * n_inputs
    require_memory(
        (n_samples + size) ** 2,
        f"the conic program of {n_groups} units of {n_inputs} inputs",
        "take fewer units or samples",
    )
    began = time.perf_counter()
    scale = float(np.max(np.linalg.norm(program.X, axis=1))) or 1.0
    X = program.X / scale
    stated, sides = _first(program, X, start)
    solves, answer = 0, None
    while True:
        left = max_seconds - (time.perf_counter() - began)
        if left <= 0:
            break
        answer = _solve(program, X, stated, sides, left)
        solves += 1
        if answer.status not in ("Solved", "AlmostSolved"):
            break
        products = X @ answer.u.T
        crossed = (program.hinges > 0) & ~stated & np.where(sides, products < 0, products > 0)
        if not crossed.any():
            break
        stated |= crossed
    seconds = time.perf_counter() - began
    if answer is None or not np.all(np.isfinite(answer.u)):
        return _nothing(program, Status.FAILED, solves, seconds)
    if "PrimalInfeasible" in answer.status:
        return _nothing(program, Status.NOT_SEPARABLE, solves, seconds)
    u, lam, shares = answer.u / scale, answer.lam, answer.shares
    certificate = certify_hinge(program, u, lam, shares)
    if not certificate.smallest_margin > 0:
        return _nothing(program, Status.FAILED, solves, seconds)
    u = u / certificate.smallest_margin
    # At the scale at which multipliers add up to the optimum.
    peak = float(np.max(np.linalg.norm(program.blocks(lam, shares), axis=1)))
    lam = lam / peak if peak > 0 else lam
    certificate = certify_hinge(program, u, lam, shares)
    status = Status.SOLVED if certificate.gap <= tol else Status.INACCURATE
    return HingeSolution(u, lam, shares, certificate, status, solves, seconds)


@dataclass(frozen=True, eq=False)
class _Conic:
    u: Floats
    lam: Floats
    shares: Floats
    status: str


def _first(
    program: HingeProgram, X: Floats, start: Floats | None
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Hinges (n, H) that are stated, and the sides on which the others are."""
    hinged = program.hinges > 0
    if start is None:
        return hinged, hinged
    require_shape("start", start, (program.n_groups, X.shape[1]), "one row a group")
    products = X @ start.T
    sizes = np.linalg.norm(X, axis=1)[:, None] * np.linalg.norm(start, axis=1)
    return hinged & (np.abs(products) <= _NEAR * sizes), products > 0


def _solve(
    program: HingeProgram,
    X: Floats,
    stated: NDArray[np.bool_],
    sides: NDArray[np.bool_],
    max_seconds: float,
) -> _Conic:
    """Solve with some hinges stated: variables are groups, their norms, and the stated hinges."""
    import clarabel

    n_samples, n_inputs = X.shape
    n_groups = program.n_groups
    size = n_groups * n_inputs
    rows, groups = np.nonzero(stated)
    n_stated = len(rows)
    slopes = program.linear - np.where(stated, 0.0, program.hinges * sides)
    margins = sparse.csr_array((slopes[:, :, None] * X[:, None, :]).reshape(n_samples, size))
    counter = np.arange(n_stated)
    own = program.hinges[rows, groups]
    less = sparse.csr_array((own, (rows, counter)), shape=(n_samples, n_stated))
    inside = sparse.csr_array(
        (
            X[rows].ravel(),
            (
                np.repeat(counter, n_inputs),
                (groups[:, None] * n_inputs + np.arange(n_inputs)).ravel(),
            ),
        ),
        shape=(n_stated, size),
    )
    eye = sparse.eye_array(n_stated)
    # Each cone is (t_h, u_h): rows of norms and of groups, interleaved.
    order = np.concatenate(
        [np.concatenate([[size + h], h * n_inputs + np.arange(n_inputs)]) for h in range(n_groups)]
    )
    height = n_groups * (n_inputs + 1)
    cones = sparse.csr_array(
        (-np.ones(height), (np.arange(height), order)), shape=(height, size + n_groups)
    )
    zeros = sparse.csr_array((height, n_stated))
    none = sparse.csr_array((n_samples, n_groups))
    A = sparse.vstack(
        [
            sparse.hstack([-margins, none, less]),
            sparse.hstack([sparse.csr_array((n_stated, size + n_groups)), -eye]),
            sparse.hstack([inside, sparse.csr_array((n_stated, n_groups)), -eye]),
            sparse.hstack([cones, zeros]),
        ],
        format="csc",
    )
    n_variables = size + n_groups + n_stated
    b = np.zeros(A.shape[0])
    b[:n_samples] = -1.0
    q = np.zeros(n_variables)
    q[size : size + n_groups] = 1.0
    kinds = [clarabel.NonnegativeConeT(n_samples + 2 * n_stated)]
    kinds += [clarabel.SecondOrderConeT(n_inputs + 1)] * n_groups
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = _TIGHT
    settings.max_threads = 1
    if math.isfinite(max_seconds):
        settings.time_limit = max_seconds
    nothing = sparse.csc_matrix((n_variables, n_variables))
    found: Any = clarabel.DefaultSolver(
        nothing, q, sparse.csc_matrix(A), b, kinds, settings
    ).solve()
    x, z = np.array(found.x), np.array(found.z)
    lam = np.maximum(z[:n_samples], 0.0)
    upper = np.maximum(z[n_samples + n_stated : n_samples + 2 * n_stated], 0.0)
    shares = np.where(stated, 0.0, np.asarray(sides, dtype=np.float64))
    products = np.sum(X[rows] * x[:size].reshape(n_groups, n_inputs)[groups], axis=1)
    weights = lam[rows] * own
    # Without a multiplier any share does.
    known = weights > 1e-300
    shares[rows, groups] = np.where(
        known, np.clip(upper / np.where(known, weights, 1.0), 0.0, 1.0), products > 0
    )
    return _Conic(x[:size].reshape(n_groups, n_inputs), lam, shares, str(found.status))


def _nothing(program: HingeProgram, status: Status, solves: int, seconds: float) -> HingeSolution:
    n_samples, n_inputs = program.X.shape
    shape = (program.n_groups, n_inputs)
    return HingeSolution(
        u=np.full(shape, math.nan),
        multipliers=np.full(n_samples, math.nan),
        shares=np.full((n_samples, program.n_groups), math.nan),
        certificate=HingeCertificate(math.inf, 0.0, math.inf, math.nan),
        status=status,
        solves=solves,
        seconds=seconds,
    )
