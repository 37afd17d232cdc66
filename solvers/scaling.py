"""Scales of programs: those that are taken, and samples and inputs brought to size one."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from .arrays import Array, as_float64, to_numpy
from .checks import require_scale
from .programs import MaxMarginProgram

__all__ = ["Scaled", "equilibrated", "require_scales"]

# Alternating passes over samples and inputs: matrices of rank one need one, others few more.
PASSES = 4


def require_scales(program: MaxMarginProgram) -> None:
    """Refuse inputs, gates and products of both that are out of float64's middle range.

    Raises
    ------
    ValueError
        If the largest is beyond 1e152 or, if not zero, below 1e-152.
    """
    require_scale("X", program.design.X)
    require_scale("Z", program.design.Z)
    require_scale("X times Z", program.design.sample_sizes)


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
    exponents = np.frexp(np.abs(to_numpy(program.design.X)))[1].astype(float)
    exponents[to_numpy(program.design.X) == 0] = -np.inf
    samples, inputs = np.zeros(len(exponents)), np.zeros(exponents.shape[1])
    for _ in range(PASSES):
        inputs = _largest(exponents - samples[:, None], axis=0)
        samples = _largest(exponents - inputs[None, :], axis=1)
    X = program.design.X
    rows, columns = (as_float64(2.0**power, like=X) for power in (samples, inputs))
    scaled = X / rows[:, None] / columns[None, :]
    return Scaled(replace(program, design=replace(program.design, X=scaled)), rows, columns)


def _largest(exponents: np.ndarray, axis: int) -> np.ndarray:
    """Largest exponent along an axis; 0 where all entries are zero."""
    largest = exponents.max(axis=axis)
    return np.where(np.isfinite(largest), largest, 0.0)
