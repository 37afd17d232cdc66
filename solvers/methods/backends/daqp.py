"""Programs of one group in few dimensions, by DAQP: a dual active set that is made for them."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from ...certificates.max_margin import CLOSE, Certificate, certify
from ...numerics.arrays import is_sparse, is_torch_array
from ...numerics.summation import power_of_two, rounding
from ...programs.max_margin import MaxMarginProgram
from ..refinement import PrimalDual
from ..settings import Settings

# Most dimensions. Gaussian inputs on one thread: of 300 x 20 DAQP takes 1.3 ms with the certificate
# and the active set of samples 13, of 1,000 x 200 it takes 33 and the other 190; of 100 x 400 and
# 300 x 785 it takes twice as long.
DIMENSIONS = 200
# Share of the tolerance by which margins of 1 may be missed, and iterations for every dimension.
EXACT, ITERATIONS = 0.1, 100
LEAST_ITERATIONS = 500
# Samples of a set, and the least for every dimension; twice as many are solved at once.
SET, SET_EACH = 500, 50
UNBOUNDED = 1e30
# What a smallest margin is above 1, so that rounding does not bring it below.
SLACK = 1e-13


def has_few_dimensions(program: MaxMarginProgram) -> bool:
    """Tell whether a program has one group, on dense NumPy arrays, and few coefficients."""
    X, Z = program.design.X, program.design.Z
    few = int(X.shape[1]) * int(Z.shape[1]) <= DIMENSIONS
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
    found = _of_all_rows(daqp, program, settings)
    if found is None:
        return None
    answer, iterations = found
    certificate = certify(program, answer.primal, answer.dual)
    if not certificate.proves_optimality(settings.tol):
        return None
    if settings.progress is not None:
        settings.progress(iterations, certificate.gap)
    return answer, certificate, iterations


def _of_all_rows(
    daqp: ModuleType, program: MaxMarginProgram, settings: Settings
) -> tuple[PrimalDual, int] | None:
    """Solve for all rows by sets of these: feasible points and iterations.

    DAQP reads every row in each iteration. Of many samples it gets those of least margin along
    the mean of the rows, and those that its answer violates most, until none is violated.
    """
    n, total = program.n_samples, 0
    shape = program.design.Z.shape[1], program.design.X.shape[1]
    D, unit = shape[0] * shape[1], power_of_two(float(program.design.sample_sizes.max()))
    size = max(SET, SET_EACH * D)
    held = np.arange(n)
    if n > 2 * size:
        mean = program.dual_blocks(np.full(n, 1 / unit / n))
        held = _least(program.margins(mean), size)
    while True:
        of_held = _signed_rows(program, unit, held)
        _, _, flag, found = daqp.solve(
            np.eye(D),
            np.zeros(D),
            of_held,
            np.full(len(held), UNBOUNDED),
            np.ones(len(held)),
            np.zeros(len(held), dtype=np.int32),
            primal_tol=EXACT * settings.tol,
            iter_limit=settings.max_iterations or ITERATIONS * D + LEAST_ITERATIONS,
        )
        multipliers = np.clip(-np.asarray(found["lam"]), 0.0, None)
        total += int(found["iterations"])
        if flag != 1 or not multipliers.any() or not np.all(np.isfinite(multipliers)):
            return None
        # From the active rows and not from their sum, in which most of many digits may cancel.
        acting = np.flatnonzero(multipliers)
        active = of_held[acting]
        w = _at_margin_one(active) / unit
        margins = program.margins(w.reshape(shape))
        smallest = float(margins.min())
        margins[held] = np.inf
        violated = np.flatnonzero(margins < 1 - EXACT * settings.tol)
        if not len(violated):
            lam = np.zeros(n)
            lam[held[acting]] = multipliers[acting] / _block(active, multipliers[acting], n) / unit
            primal = w.reshape(shape)
            if smallest > 0:
                primal = primal / (smallest * (1 - SLACK))
            return PrimalDual(primal=primal, dual=lam), total
        if len(violated) > size:
            violated = violated[_least(margins[violated], size)]
        held = np.concatenate([held, violated])


def _least(values: NDArray[Any], count: int) -> NDArray[np.intp]:
    """Return the places of the `count` least values."""
    return np.argpartition(values, count)[:count]


def _at_margin_one(active: NDArray[Any]) -> NDArray[Any]:
    """Return the coefficients (D,) of least norm at which rows (k, D) have margin 1."""
    ones = np.ones(len(active))
    if len(active) == active.shape[1]:
        _, _, w, info = lapack.dgesv(active, ones)
        if info == 0 and np.abs(active @ w - 1).max() <= SLACK:
            return np.asarray(w)
    return np.asarray(np.linalg.lstsq(active, ones, rcond=None)[0])


def _block(active: NDArray[Any], multipliers: NDArray[Any], n: int) -> float:
    """Return the norm of the block of multipliers (k,), and what rounding takes off their sum.

    Over it they are feasible as the certificate of all n samples sees it, which then holds as it
    is, unless its own sums of many thousands of samples round by more.
    """
    terms = float(multipliers @ np.sqrt(np.einsum("kd,kd->k", active, active)))
    block, lost = float(np.linalg.norm(multipliers @ active)), rounding(len(active) + 2) * terms
    # Where terms cancel beyond that, their sum is known better: it is compensated there.
    return (block + (lost if lost <= CLOSE * block else 0.0)) * (1 + rounding(n))


@cache
def _daqp() -> ModuleType | None:
    try:
        return import_module("daqp")
    except ImportError:  # a platform without a wheel: all else solves these programs too
        return None


def _signed_rows(program: MaxMarginProgram, unit: float, of: NDArray[np.intp]) -> NDArray[Any]:
    """(k, J D) rows `y[n] Z[n, j] X[n] / unit` of k samples."""
    design = program.design
    gates = (program.y[of] / unit)[:, None] * design.Z[of]
    rows = gates[:, :, None] * design.X[of][:, None, :]
    return np.ascontiguousarray(rows.reshape(len(of), -1))
