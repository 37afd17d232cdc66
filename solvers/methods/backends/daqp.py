"""Programs of one group in few dimensions, by DAQP: a dual active set that is made for them."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...certificates.max_margin import Certificate, certify
from ...numerics.arrays import is_sparse, is_torch_array
from ...numerics.summation import power_of_two
from ...programs.max_margin import MaxMarginProgram
from ..refinement import PrimalDual
from ..settings import Settings

# Most dimensions, and the least samples, also for every dimension. Gaussian inputs on one thread:
# of 3,000 x 20 DAQP takes 0.8 ms and the active set of samples 34, of 3,000 x 100 it takes 70 and
# the other 100; of digits, 1,000 x 65, both take few milliseconds.
DIMENSIONS, SAMPLES, EACH = 100, 500, 20
# Share of the tolerance by which margins of 1 may be missed, and iterations for every dimension.
EXACT, ITERATIONS = 0.1, 100
# Samples of a set, and the least for every dimension; twice as many are solved at once.
SET, SET_EACH = 500, 50
UNBOUNDED = 1e30
# What a smallest margin is above 1, so that rounding does not bring it below.
SLACK = 1e-13


def has_few_dimensions(program: MaxMarginProgram) -> bool:
    """Tell whether a program has one group, on dense NumPy arrays, and few coefficients."""
    X, Z = program.design.X, program.design.Z
    n_samples, size = int(X.shape[0]), int(X.shape[1]) * int(Z.shape[1])
    few = size <= DIMENSIONS and n_samples >= max(SAMPLES, EACH * size)
    return few and program.n_groups == 1 and not is_torch_array(X) and not is_sparse(X)


def solve_few_dimensions(
    program: MaxMarginProgram, settings: Settings
) -> tuple[PrimalDual, Certificate, int] | None:
    """Solve a program of few dimensions and certify the answer.

        minimise  ||w||^2 / 2   subject to   <w, y[n] Z[n] X[n]> >= 1   for every n

    Parameters
    ----------
    program : MaxMarginProgram
    settings : Settings
        `tol`, `max_iterations` and `progress`, which is called once.

    Returns
    -------
    points, their certificate and the iterations, or None
        None where the program is not for this method, DAQP is not installed, or the certificate
        does not reach the tolerance, as of data that are not separable: there other methods go on.

    References
    ----------
    D. Arnstrom, A. Bemporad, D. Axehill, "A dual active-set solver for embedded quadratic
    programming using recursive LDL^T updates", IEEE Transactions on Automatic Control, 2022.
    """
    daqp = _daqp() if has_few_dimensions(program) else None
    if daqp is None:
        return None
    rows = _signed_rows(program)
    found = _of_all_rows(daqp, rows, settings)
    if found is None:
        return None
    w, lam, iterations = found
    answer = _scaled(program, w.reshape(-1, program.design.X.shape[1]), lam)
    certificate = certify(program, answer.primal, answer.dual)
    if not certificate.proves_optimality(settings.tol):
        return None
    if settings.progress is not None:
        settings.progress(iterations, certificate.gap)
    return answer, certificate, iterations


def _of_all_rows(
    daqp: ModuleType, rows: NDArray[Any], settings: Settings
) -> tuple[NDArray[Any], NDArray[Any], int] | None:
    """Solve for all rows by sets of these: coefficients, multipliers (n,) and iterations.

    DAQP reads every row in each iteration. Of many samples it gets those of least margin along
    the mean of the rows, and those that its answer violates most, until none is violated.
    """
    (n, D), total = rows.shape, 0
    size = max(SET, SET_EACH * D)
    held = np.arange(n) if n <= 2 * size else _least(rows @ rows.mean(axis=0), size)
    while True:
        of_held = rows[held]
        _, _, flag, found = daqp.solve(
            np.eye(D),
            np.zeros(D),
            of_held,
            np.full(len(held), UNBOUNDED),
            np.ones(len(held)),
            np.zeros(len(held), dtype=np.int32),
            primal_tol=EXACT * settings.tol,
            iter_limit=settings.max_iterations or ITERATIONS * D + SAMPLES,
        )
        multipliers = np.clip(-np.asarray(found["lam"]), 0.0, None)
        total += int(found["iterations"])
        if flag != 1 or not multipliers.any() or not np.all(np.isfinite(multipliers)):
            return None
        # From the active rows and not from their sum, in which most of many digits may cancel.
        active = of_held[multipliers > 0]
        w = np.linalg.lstsq(active, np.ones(len(active)), rcond=None)[0]
        margins = rows @ w
        margins[held] = np.inf
        violated = np.flatnonzero(margins < 1 - EXACT * settings.tol)
        if not len(violated):
            lam = np.zeros(n)
            lam[held] = multipliers
            return w, lam, total
        if len(violated) > size:
            violated = violated[_least(margins[violated], size)]
        held = np.concatenate([held, violated])


def _least(values: NDArray[Any], count: int) -> NDArray[np.intp]:
    """Return the places of the `count` least values."""
    return np.argpartition(values, count)[:count]


def _scaled(program: MaxMarginProgram, primal: NDArray[Any], lam: NDArray[Any]) -> PrimalDual:
    """Return points as `conclude` wants them, so that its certificate is that of this method."""
    smallest = float(np.min(program.margins(primal)))
    largest = float(np.max(program.design.group_norms(program.dual_blocks(lam))))
    if smallest > 0 and largest > 0:
        primal, lam = primal / (smallest * (1 - SLACK)), lam / largest
    return PrimalDual(primal=primal, dual=lam)


@cache
def _daqp() -> ModuleType | None:
    try:
        return import_module("daqp")
    except ImportError:  # a platform without a wheel: all else solves these programs too
        return None


def _signed_rows(program: MaxMarginProgram) -> NDArray[Any]:
    """(n, J D) rows `y[n] Z[n, j] X[n]`, over a power of two that makes the longest about one."""
    design = program.design
    signs = program.y / power_of_two(float(design.sample_sizes.max()))
    rows = (signs[:, None] * design.Z)[:, :, None] * design.X[:, None, :]
    return np.ascontiguousarray(rows.reshape(len(rows), -1))
