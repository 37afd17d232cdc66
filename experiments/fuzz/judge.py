"""What an answer claims, recomputed in exact arithmetic and held against HiGHS and Clarabel.

Shares no line with `solvers.certificates.max_margin`. Every float64 number is an integer times
a power of two: margins and blocks are sums of products of integers, without rounding; only norms,
which are roots, are rounded, to 60 digits.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from decimal import Decimal, localcontext
from typing import Any

import cvxpy as cp
import numpy as np
from scipy.optimize import linprog

from solvers import MaxMarginProgram, Solution, Status

from .programs import Array, Drawn

DIGITS = 60
# A root and a quotient in float64, of numbers that are known exactly here.
ROUNDED = Decimal(2) ** -50
# The program counts as separable for HiGHS if rows and columns of size one leave a margin above
# what it resolves (its feasibility tolerance); its coefficients are then held to exact arithmetic.
RESOLVED = 1e-8
# Within which an oracle's own pair must agree to be one.
ORACLE_GAP = 1e-5


@dataclass(frozen=True)
class Exact:
    """An array as integers times `2^exponent`."""

    integers: Any
    exponent: int

    @classmethod
    def of(cls, array: Array) -> Exact:
        mantissas, exponents = np.frexp(np.asarray(array, dtype=float))
        exponents = exponents.astype(int) - 53
        used = exponents[mantissas != 0]
        least = int(used.min()) if used.size else 0
        shifts = np.where(mantissas != 0, exponents - least, 0).astype(object)
        whole = np.vectorize(int, otypes=[object])(mantissas * 2.0**53)
        return cls(whole << shifts, least)

    def decimals(self) -> Any:
        """The numbers themselves, to `DIGITS` digits."""
        power = Decimal(2) ** self.exponent
        return np.vectorize(lambda whole: Decimal(whole) * power, otypes=[object])(self.integers)


@dataclass(frozen=True)
class Recomputed:
    """Bounds that the answer's points prove, and what is left of the blocks of its multipliers."""

    objective: Decimal
    dual_objective: Decimal
    cancellation: Decimal

    @property
    def gap(self) -> Decimal:
        return self.objective / self.dual_objective - 1


INFINITE = Decimal("Infinity")


def margins(program: MaxMarginProgram, V: Array) -> Any:
    """(n,) exact margins as decimals: `y_n sum_j Z_nj <x_n, V_j>`."""
    X, Z, W = (Exact.of(part) for part in (program.design.X, program.design.Z, V))
    scores = np.sum(X.integers.dot(W.integers.T) * Z.integers, axis=1)
    signs = program.y.astype(int).astype(object)
    return Exact(signs * scores, X.exponent + Z.exponent + W.exponent).decimals()


def _group_norms(group: Any, blocks: Exact) -> list[Decimal]:
    squares = Exact(np.sum(blocks.integers**2, axis=1), 2 * blocks.exponent).decimals()
    return [sum(squares[group == g], Decimal(0)).sqrt() for g in range(int(group.max()) + 1)]


def recompute(program: MaxMarginProgram, V: Array, lam: Array) -> Recomputed:
    """What coefficients and multipliers prove, from their literal formulas."""
    with localcontext(prec=DIGITS):
        design, smallest = program.design, min(margins(program, V))
        X, Z, weights = Exact.of(design.X), Exact.of(design.Z), Exact.of(lam)
        signed = (weights.integers * program.y.astype(int).astype(object))[:, None] * Z.integers
        exponent = X.exponent + Z.exponent + weights.exponent
        blocks = Exact(signed.T.dot(X.integers), exponent)
        terms = np.abs(signed).T.dot(np.abs(X.integers))
        largest = max(_group_norms(design.group, blocks))
        total = sum(weights.decimals(), Decimal(0))
        norm = sum(_group_norms(design.group, Exact.of(V)), Decimal(0))
        left = [
            Decimal(abs(b)) / Decimal(t)
            for b, t in zip(blocks.integers.ravel(), terms.ravel(), strict=True) if t
        ]  # fmt: skip
        return Recomputed(
            objective=norm / smallest if smallest > 0 else INFINITE,
            dual_objective=total / largest if largest > 0 else INFINITE,
            cancellation=max(left, default=Decimal(0)),
        )


def false_claims(program: MaxMarginProgram, solution: Solution) -> list[str]:
    """Claims of the status and the certificate that exact arithmetic refutes."""
    found = recompute(program, np.asarray(solution.primal), np.asarray(solution.dual))
    claimed, status = solution.certificate, solution.status
    separated = status in (Status.SOLVED, Status.INACCURATE)
    with localcontext(prec=DIGITS):
        gap = found.gap if found.objective < INFINITE and found.dual_objective > 0 else INFINITE
        claims = {
            "multipliers are not negative": bool(np.all(solution.dual >= 0)),
            "the upper bound holds": found.objective * (1 - ROUNDED) <= Decimal(claimed.objective),
            "the lower bound holds": (
                Decimal(claimed.dual_objective) <= found.dual_objective * (1 + ROUNDED)
            ),
            "separated": not separated or found.objective < INFINITE,
            "the gap holds": status is not Status.SOLVED
            or (gap <= Decimal(claimed.gap) + ROUNDED and claimed.gap <= solution.tol),
            "the blocks cancel": status is not Status.NOT_SEPARABLE
            or found.cancellation <= Decimal(claimed.separation_bound) <= Decimal(2) ** -52,
        }
    return [claim for claim, holds in claims.items() if not holds]


def rows_of(program: MaxMarginProgram) -> Array:
    """(n, J D) rows `y_n Z_nj x_n`: the constraints multiplied out."""
    design = program.design
    rows = np.einsum("n,nj,nd->njd", program.y, design.Z, design.X)
    return np.asarray(rows.reshape(len(rows), -1))


def separating(program: MaxMarginProgram) -> Array | None:
    """(J, D) coefficients with exactly positive margins, by HiGHS; None if it finds none.

    maximise t  s.t.  A v >= t,  |v| <= 1,  t <= 1,  for A with rows and columns of size one.
    """
    A = rows_of(program)
    columns = np.ones(A.shape[1])
    for _ in range(5):
        rows = np.abs(A).max(axis=1)
        if not np.all(rows > 0):
            return None
        A = A / rows[:, None]
        sizes = np.sqrt(np.abs(A).max(axis=0))
        sizes[sizes == 0] = 1.0
        A, columns = A / sizes, columns * sizes
    found = linprog(
        np.append(np.zeros(A.shape[1]), -1.0),
        A_ub=np.hstack([-A, np.ones((len(A), 1))]), b_ub=np.zeros(len(A)),
        bounds=[(-1, 1)] * A.shape[1] + [(None, 1)], method="highs",
    )  # fmt: skip
    if found.x is None or not found.x[-1] > RESOLVED:
        return None
    V = (found.x[:-1] / columns).reshape(program.design.Z.shape[1], -1)
    with localcontext(prec=DIGITS):
        return V if min(margins(program, V)) > 0 else None


def relative_margin(program: MaxMarginProgram, V: Array) -> Decimal:
    """The smallest margin of coefficients relative to the sum of the sizes of its terms."""
    with localcontext(prec=DIGITS):
        design = program.design
        sizes = MaxMarginProgram(
            type(design)(np.abs(design.X), np.abs(design.Z), design.group), np.ones_like(program.y)
        )
        terms = margins(sizes, np.abs(V))
        return Decimal(min(m / t for m, t in zip(margins(program, V), terms, strict=True) if t))


def oracle_value(program: MaxMarginProgram) -> float:
    """The optimum by Clarabel on the constraints multiplied out; NaN if its own pair disagrees."""
    A, group = rows_of(program), program.design.group
    size = float(np.abs(A).max()) or 1.0
    n_inputs = program.design.X.shape[1]
    owner = np.repeat(group, n_inputs)
    v = cp.Variable(A.shape[1])
    norms = [cp.norm(v[np.flatnonzero(owner == g)]) for g in range(program.n_groups)]
    problem = cp.Problem(cp.Minimize(cp.sum(norms)), [A / size @ v >= 1])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of inaccurate answers, which the bounds below leave out
        try:
            problem.solve(solver="CLARABEL", tol_gap_rel=1e-9, tol_gap_abs=1e-9, tol_feas=1e-9)
        except cp.SolverError:
            return float("nan")
    if v.value is None or problem.constraints[0].dual_value is None:
        return float("nan")
    lam = np.clip(problem.constraints[0].dual_value, 0, None)
    blocks, smallest = lam @ A / size, (A / size @ v.value).min()
    largest = max(np.linalg.norm(blocks[owner == g]) for g in range(program.n_groups))
    if not (smallest > 0 and largest > 0 and problem.value is not None):
        return float("nan")
    upper, lower = problem.value / smallest, lam.sum() / largest
    return float(upper / size) if upper <= (1 + ORACLE_GAP) * lower else float("nan")


@dataclass(frozen=True)
class Verdict:
    """What became of one program.

    `verdict` is "right"; "weaker: ..." for an honest status that decides nothing, with whether an
    oracle does better; or "wrong: ..." with what is false.
    """

    seed: int
    kind: str
    twist: str
    setting: str
    n: int
    n_inputs: int
    n_groups: int
    status: str
    gap: float
    objective: float
    known: str
    highs: str
    clarabel: float
    verdict: str


RIGHT = "right"
BEHIND, OPEN = "weaker: an oracle does better", "weaker: no oracle does better"
UNCERTAIN = (Status.UNDECIDED, Status.FAILED, Status.INACCURATE)


def judged(drawn: Drawn, solution: Solution) -> Verdict:
    """Hold the answer against exact arithmetic, construction, HiGHS and Clarabel."""
    program = drawn.program
    V, value = separating(program), oracle_value(program)
    wrong = false_claims(program, solution) + _contradictions(drawn, solution, V, value)
    separated = solution.status is Status.INACCURATE
    behind = value == value if separated else V is not None
    weaker = (BEHIND if behind else OPEN) if solution.status in UNCERTAIN else RIGHT
    return _verdict(
        drawn,
        status=solution.status.name,
        gap=solution.certificate.gap,
        objective=solution.certificate.objective,
        highs="" if V is None else "separable",
        clarabel=value,
        verdict=f"wrong: {'; '.join(wrong)}" if wrong else weaker,
    )


def unanswered(drawn: Drawn, seconds: float) -> Verdict:
    """The verdict on a program whose solve did not end within so many seconds."""
    return _verdict(
        drawn,
        status="NONE",
        gap=np.inf,
        objective=np.inf,
        highs="",
        clarabel=np.nan,
        verdict=f"wrong: no answer within {seconds:g} s",
    )


def _verdict(drawn: Drawn, **found: Any) -> Verdict:
    """The verdict with what is known of the program before it is solved."""
    program = drawn.program
    return Verdict(
        seed=drawn.seed,
        kind=drawn.kind,
        twist=drawn.twist,
        setting=drawn.setting,
        n=program.n_samples,
        n_inputs=int(program.design.X.shape[1]),
        n_groups=program.n_groups,
        known={None: "", True: "separable", False: "not separable"}[drawn.separable],
        **found,
    )


def _contradictions(drawn: Drawn, solution: Solution, V: Array | None, value: float) -> list[str]:
    """Where the status says otherwise than what is known of the program."""
    status, claimed = solution.status, solution.certificate
    separated = status in (Status.SOLVED, Status.INACCURATE)
    found = []
    if separated and drawn.separable is False:
        found.append("not separable by construction")
    if status is Status.NOT_SEPARABLE and V is not None:
        share = Decimal(claimed.separation_bound)
        if relative_margin(drawn.program, V) > share:
            found.append("HiGHS separates it beyond the bound")
    if separated and value == value:
        slack = 1 + 2 * ORACLE_GAP
        if not claimed.dual_objective <= slack * value <= slack**2 * claimed.objective:
            found.append(f"Clarabel's optimum {value:.9g} is outside the bounds")
    return found
