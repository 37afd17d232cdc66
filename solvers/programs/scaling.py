"""Scales of programs: those that are taken, and samples and inputs brought to size one."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse import csr_array

from ..numerics.arrays import Array, as_float64, entries_of, is_sparse, to_numpy
from ..numerics.checks import require_scale, require_size
from .max_margin import MaxMarginProgram

# Alternating passes over samples and inputs: matrices of rank one need one, others few more.
PASSES = 4


def require_scales(program: MaxMarginProgram) -> None:
    """Refuse inputs, gates and products of both that are out of float64's middle range.

    Raises
    ------
    ValueError
        If the largest is beyond 1e152 or, if not zero, below 1e-152.
    """
    require_size("X", program.design.largest)
    require_scale("Z", program.design.Z)
    require_scale("X` times gates `Z", program.design.sample_sizes)


@dataclass(frozen=True, eq=False)
class Scaled:
    """Program with inputs `X[n, d] / (samples[n] inputs[d])`, all factors powers of two.

    Coefficients V of it are `V / inputs` of the unscaled program, whose margins they multiply by
    `1 / samples` and whose norm they change; multipliers lam are `lam / samples`. Neither the
    sign of a margin nor the cancellation of a block changes, and nothing is rounded.
    """

    program: MaxMarginProgram
    samples: Array
    inputs: Array


def equilibrated(program: MaxMarginProgram) -> Scaled:
    """Scale a program to largest absolute entries of about one in every row and column of X."""
    X = program.design.X
    samples, inputs = np.zeros(X.shape[0]), np.zeros(X.shape[1])
    stored = entries_of(X) if is_sparse(X) else to_numpy(X)
    of = X.tocoo().coords if is_sparse(X) else np.indices(stored.shape, sparse=True)
    exponents = np.frexp(np.abs(stored))[1].astype(float)
    exponents[stored == 0] = -np.inf
    for _ in range(PASSES):
        inputs = _largest(exponents - samples[of[0]], of[1], axis=0, size=len(inputs))
        samples = _largest(exponents - inputs[of[1]], of[0], axis=1, size=len(samples))
    rows, columns = (as_float64(2.0**power, like=program.y) for power in (samples, inputs))
    if is_sparse(X):
        data = X.data / rows[of[0]] / columns[of[1]]
        scaled = csr_array((data, X.indices, X.indptr), shape=X.shape)
    else:
        scaled = X / rows[:, None] / columns[None, :]
    return Scaled(replace(program, design=replace(program.design, X=scaled)), rows, columns)


def _largest(exponents: np.ndarray, of: np.ndarray, axis: int, size: int) -> np.ndarray:
    """Largest exponent of every row or column, `of` which an entry is; 0 where all are zero."""
    if exponents.ndim == 2:
        largest = exponents.max(axis=axis)
    else:
        largest = np.full(size, -np.inf)
        np.maximum.at(largest, of, exponents)
    return np.where(np.isfinite(largest), largest, 0.0)
