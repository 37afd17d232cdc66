"""Multipliers of sparse programs of one group, by exchanging blocks of samples.

Where inputs are sparse and many, most samples are support vectors: sets are nearly all samples, and
their systems are solved by conjugate gradients, with products that cost as many operations as there
are entries. No matrix of the samples is formed.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.linalg import LinearOperator, cg

from ...certificates.max_margin import Certificate, certify
from ...numerics.arrays import scale_rows
from ...programs.max_margin import MaxMarginProgram
from ..refinement import PrimalDual
from ..settings import Settings
from .exchange import Exchanged, SetSolution, exchange

Floats = NDArray[np.float64]

# Residual of a system, as a share of its right side, and the steps it may take.
RESIDUAL, STEPS = 1e-13, 1000
# Share of the tolerance by which margins may fall short.
EXACT = 0.1
# Exchanges, and how many may fail to lower the number of wrong signs: block exchanges can cycle.
EXCHANGES, PATIENCE = 60, 5


Product = Callable[[Floats], Floats]
"""Product with a matrix that is not formed."""


def of_rows(A: csr_array) -> Callable[[NDArray[np.intp]], Product]:
    """Return the products with parts of `Q = A A'` of rows A (n, D)."""

    def part_of(samples: NDArray[np.intp]) -> Product:
        part = A[samples]
        turned = part.T.tocsr()
        return lambda v: part @ (turned @ v)

    return part_of


def exchange_multipliers(
    diagonal: Floats, part_of: Callable[[NDArray[np.intp]], Product], settings: Settings
) -> Exchanged:
    """Find multipliers (n,) of `max sum(lam) - lam' Q lam / 2, lam >= 0`, and count the exchanges.

    Parameters
    ----------
    diagonal : (n,) array
        That of Q, which is positive semidefinite.
    part_of : callable
        Product with the part of Q of some samples.
    settings : Settings
        `tol` and `max_iterations`, a bound of the exchanges.

    Returns
    -------
    ((n,) array or None, int)
        None where a system cannot be solved, as of samples that depend on each other, or the
        exchanges do not end.

    Examples
    --------
    >>> rows = csr_array(np.diag([2.0, 1.0]))
    >>> lam, _ = exchange_multipliers(np.array([4.0, 1.0]), of_rows(rows), Settings())
    >>> lam.round(9).tolist()
    [0.25, 1.0]
    """
    inverse, allowed = 1 / diagonal, EXACT * settings.tol
    product = part_of(np.arange(len(diagonal)))

    def operator(matvec: Product, size: int) -> LinearOperator:
        return LinearOperator((size, size), matvec=matvec, dtype=np.float64)

    def solve(active: NDArray[np.bool_], lam: Floats, exact: bool) -> SetSolution | None:
        rows = np.flatnonzero(active)
        part, start, right = operator(part_of(rows), len(rows)), lam[rows], np.ones(len(rows))
        scaled = operator(lambda v: inverse[rows] * v, len(rows))
        with np.errstate(all="ignore"):  # where no multipliers solve a system
            found, failed = cg(part, right, start, rtol=RESIDUAL, atol=0.0, maxiter=STEPS, M=scaled)
        if not len(rows) or failed or not np.all(np.isfinite(found)):
            return None
        lam = np.zeros_like(lam)
        lam[rows] = found
        return SetSolution(lam, product(lam) - 1, allowed)

    def told(done: int, wrong: int) -> None:
        if settings.progress is not None:
            settings.progress(done, np.inf if wrong else 0.0)

    return exchange(
        solve,
        np.ones(len(inverse), dtype=bool),
        max_exchanges=settings.max_iterations or EXCHANGES,
        patience=PATIENCE,
        told=told,
    )


def solve_sparse(
    program: MaxMarginProgram, settings: Settings
) -> tuple[PrimalDual, Certificate, int] | None:
    """Solve a program of sparse inputs and one gate column, and certify it.

    Parameters
    ----------
    program : MaxMarginProgram
    settings : Settings

    Returns
    -------
    points, their certificate and the number of exchanges, or None
        None where the certificate does not reach the tolerance: there other methods go on.
    """
    design = program.design
    if design.Z.shape[1] != 1 or not np.all(design.sample_sizes > 0):
        return None
    if design.X.shape[0] > design.X.shape[1]:  # not all rows are independent
        return None
    rows = scale_rows(design.X, program.y * design.Z[:, 0])
    lam, exchanges = exchange_multipliers((rows * rows).sum(axis=1), of_rows(rows), settings)
    if lam is None or not lam.any():
        return None
    answer = PrimalDual(primal=program.dual_blocks(lam), dual=lam)
    certificate = certify(program, answer.primal, answer.dual)
    if not certificate.proves_optimality(settings.tol):
        return None
    return answer, certificate, exchanges
