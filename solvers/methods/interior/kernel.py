"""Interior point for programs that are given by their kernel."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

import numpy as np

from ...certificates.max_margin import RESOLUTION, Certificate
from ...certificates.solution import status_of
from ...numerics.arrays import cholesky_lower, cholesky_solve, is_sparse
from ...numerics.central_path import Lengths, OnePairSystem, Patience, follow
from ...programs.kernel_program import KernelProgram, KernelSolution, certify_kernel
from ..sets.sparse_active import exchange_multipliers
from ..settings import Settings

ITERATIONS = 100
# Added to the Newton matrix of unit diagonal: what a singular kernel needs to factorise. Steps
# are corrected by exact residuals, so that it costs iterations and not accuracy.
RIDGE = 1e-14
# Stop once this many iterations have not lowered the complementarity by a tenth.
PATIENCE = 10


def solve_kernel(program: KernelProgram, settings: Settings | None = None) -> KernelSolution:
    """Solve a program that is given by its kernel and certify the answer.

    A primal-dual interior point follows the central path of `min lam' Q lam` over multipliers of
    sum one, whose least value is the squared best margin: like the game of the other programs it
    always has an interior, and value zero is the proof that nothing separates. Every iteration
    takes one Cholesky factor.

    Parameters
    ----------
    program : KernelProgram
        With a kernel (n, n). A sparse one is solved by exchanges of blocks of samples, and made
        dense only where these do not end.
    settings : Settings, optional
        `tol`, `max_iterations` (by default 100) and `progress` count here.

    Returns
    -------
    KernelSolution

    References
    ----------
    S. Mehrotra, "On the implementation of a primal-dual interior point method", 1992.

    Examples
    --------
    With the kernel diag(4, 1) the function has norm sqrt(1/4 + 1):

    >>> program = KernelProgram(np.diag([4.0, 1.0]), np.array([1.0, -1.0]))
    >>> round(solve_kernel(program).require().certificate.objective ** 2, 6)
    1.25
    """
    start, chosen = time.perf_counter(), settings or Settings()
    found, before = None, 0
    if is_sparse(program.kernel):
        Q = program.signed
        if np.all(Q.diagonal() > 0):
            found, before = exchange_multipliers(
                Q.diagonal(), lambda rows: Q[rows][:, rows].dot, chosen
            )
        if found is None or not found.any():
            program, found = program.dense_rows(), None
    lam, iterations = (found, 0) if found is not None else _minimise(program.signed, chosen)
    iterations += before
    certificate = certify_kernel(program, lam)
    if not certificate.proves_optimality(chosen.tol):
        lam, certificate = _better(program, lam, certificate)
    products, separated = program.signed @ lam, certificate.proves_separability()
    root = math.sqrt(float(lam @ products)) if separated else float(lam.sum())
    smallest = float(products.min()) if separated else 1.0
    return KernelSolution(
        dual=lam / root,
        coefficients=program.signs * lam / smallest,
        margins=products / smallest,
        status=status_of(certificate, chosen.tol),
        certificate=certificate,
        tol=chosen.tol,
        iterations=iterations,
        seconds=time.perf_counter() - start,
    )


def _minimise(Q: np.ndarray, settings: Settings) -> tuple[np.ndarray, int]:
    """Multipliers (n,) of sum one with the least `lam' Q lam`, and the iterations."""
    diagonal = Q.diagonal()
    if not np.all(diagonal > 0):  # features that are zero: no function reaches these samples
        empty = (diagonal <= 0).astype(np.float64)
        return empty / empty.sum(), 0
    sizes = np.sqrt(diagonal)
    unit, c = Q / sizes[:, None] / sizes, 1 / sizes
    c = c / c.max()  # the sum of the multipliers, in these units
    run = _Run(unit, c, settings)
    limit = settings.max_iterations or ITERATIONS
    follow(_Point.start(unit, c), partial(_System, unit, c), run, limit=limit)
    lam = run.best / sizes
    return lam / lam.sum(), run.done


class _Run:
    """The multipliers of the smallest gap on the way, or the last ones where nothing separates.

    Both of its bounds are those of one point: what is certified is one vector.
    """

    best: np.ndarray

    def __init__(self, Q: np.ndarray, c: np.ndarray, settings: Settings) -> None:
        self.Q, self.c, self.settings = Q, c, settings
        self.gap, self.done, self.patience = math.inf, 0, Patience(PATIENCE)

    def __call__(self, point: _Point, done: int) -> bool:
        """True if the path goes on from this point."""
        if done > 0 and self.settings.progress is not None:
            self.settings.progress(done, self.gap)
        now, self.done = point.gap(self.c), done
        if now < self.gap or self.gap == math.inf:
            self.best, self.gap = point.lam, now
        settled = self.gap <= 0.1 * self.settings.tol or point.vanishes(self.Q)
        return not (self.patience.ends(float(point.lam @ point.z)) or settled)


@dataclass(frozen=True, eq=False)
class _Step:
    """Changes of a point."""

    lam: np.ndarray
    z: np.ndarray
    mu: float


@dataclass(frozen=True, eq=False)
class _Point(_Step):
    """Point of the path: `lam, z > 0`, and `Q lam - mu c = z`, `c' lam = 1` at its end."""

    products: np.ndarray

    @classmethod
    def start(cls, Q: np.ndarray, c: np.ndarray) -> _Point:
        """Point of multipliers inverse to `c`, with all slacks positive."""
        lam = 1 / (len(c) * c)
        products = Q @ lam
        mu = float(lam @ products)
        slack = products - mu * c
        return cls(
            lam, np.maximum(slack, 0) + np.abs(slack).mean() + 1e-3 * lam.mean(), mu, products
        )

    @property
    def value(self) -> float:
        """Objective `lam' Q lam`."""
        return float(self.lam @ self.products)

    def gap(self, c: np.ndarray) -> float:
        """Relative gap between the bounds of the optimum at this point."""
        margin = float((self.products / c).min())
        return self.value / (margin * float(c @ self.lam)) - 1 if margin > 0 else math.inf

    def vanishes(self, Q: np.ndarray) -> bool:
        """True if the value is zero to the resolution of its terms."""
        # No entry of a kernel of unit diagonal exceeds 1: most points need no more than that.
        if self.value > RESOLUTION * float(self.lam.sum()) ** 2:
            return False
        return self.value <= 0.1 * RESOLUTION * float(self.lam @ (np.abs(Q) @ self.lam))


class _System(OnePairSystem[_Point, _Step]):
    """Newton's system in the multipliers, `Q + diag(z / lam)`, and mu as its border."""

    inner: ClassVar[float] = 0.995
    pairs: ClassVar[tuple[tuple[str, str], ...]] = (("lam", "z"),)

    def __init__(self, Q: np.ndarray, c: np.ndarray, point: _Point) -> None:
        self.Q, self.c, self.point = Q, c, point
        # The symmetric matrix, read by columns: LAPACK then takes it without a copy.
        newton = Q.copy().T
        diagonal = np.einsum("nn->n", newton)
        diagonal += point.z / point.lam + RIDGE * len(c)
        self.factor = cholesky_lower(newton)
        self.column = cholesky_solve(self.factor, c)
        self.residual = point.products - point.mu * c - point.z
        self.missing = 1 - float(c @ point.lam)

    def solve(self, target: np.ndarray) -> _Step:
        """Step towards products `target`.

        `(Q + z / lam) dlam - dmu c = target / lam - z - residual`, and dz from the products.
        """
        point, c = self.point, self.c
        right = cholesky_solve(self.factor, target / point.lam - point.z - self.residual)
        dmu = (self.missing - float(c @ right)) / float(c @ self.column)
        dlam = right + dmu * self.column
        return _Step(dlam, (target - point.z * dlam) / point.lam - point.z, dmu)

    def moved(self, step: _Step, lengths: Lengths) -> _Point:
        point = super().moved(step, lengths)
        return replace(point, products=self.Q @ point.lam)


def _better(
    program: KernelProgram, lam: np.ndarray, certificate: Certificate
) -> tuple[np.ndarray, Certificate]:
    """Better one of `lam` and of the multipliers that make the margins of its support equal."""
    Q = program.signed
    weighed = lam * np.sqrt(np.maximum(Q.diagonal(), 0))
    support = np.flatnonzero(weighed > 1e-6 * weighed.max())
    solved, *_ = np.linalg.lstsq(Q[np.ix_(support, support)], np.ones(len(support)), rcond=None)
    if np.any(solved <= 0):
        return lam, certificate
    refined = np.zeros_like(lam)
    refined[support] = solved / solved.sum()
    found = certify_kernel(program, refined)
    return (refined, found) if found.gap < certificate.gap else (lam, certificate)
