"""Second-order steps: quadratic programs of the Lagrangian, started near a KKT point."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cholesky, solve_triangular
from scipy.optimize import nnls
from torch import Tensor

from ..._support.solve import nonnegative_fit
from .problem import MarginProblem
from .reduced import ActiveGradients
from .successive import Approach

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

# Multiples of the identity added to the Hessian, whose own unit is 1 (that of ||w||^2 / 2): at
# first, the smallest, the largest before the steps count as leading nowhere, and their change.
_DAMPING, _LEAST, _MOST, _CHANGE = 1.0, 1e-9, 1e4, 4.0
# Weight of the active constraints in the Hessian, over their largest squared gradient. At degree L
# the Lagrangian curves by 2 - L along w, which is no direction that active margins leave free.
_PENALTY = 40.0
# Multipliers below this share of the largest count as zero, margins below 1 by more as violated.
_NO_MULTIPLIER, _VIOLATED = 1e-10, 1e-9
# Samples enter the program of a step by being violated: so often.
_SETS = 20
# Newton's corrections of the margins that a step of the linearised constraints leaves off 1.
_CORRECTIONS = 2
# Exchanges of non-negative least squares, a sample; mostly each enters once.
_PATIENCE = 30


@dataclass(frozen=True, eq=False)
class _Here:
    # Weights (P,) of smallest margin 1, their margins (n,), gradients (n, P) and active samples;
    # Hessian (P, P) and slope (P,) of the model that a step minimises, but for its damping.
    w: Tensor
    margins: Tensor
    rows: Tensor
    active: Tensor
    hessian: Array
    slope: Array

    @classmethod
    def at(cls, problem: MarginProblem, near: Approach) -> _Here:
        """Evaluate the model of the Lagrangian at an iterate."""
        w, margins, rows = near.w, problem.margins(near.w), problem.gradients(near.w)
        active = rows[near.active]
        weight = _PENALTY / float(active.square().sum(1).max())
        hessian = problem.hessian(w, near.lam) + weight * (active.T @ active)
        slope = w + weight * (active.T @ (margins[near.active] - 1))
        return cls(w, margins, rows, near.active, hessian.numpy(), slope.numpy())


def second_order_steps(
    problem: MarginProblem, near: Approach, max_steps: int
) -> Iterator[Approach]:
    r"""Iterate from near a KKT point, as long as the value falls or `max_steps` last.

    .. math:: \min_d \langle w, d\rangle + \tfrac12 d'(H + s I) d
              + \tfrac\rho2 \|A_a d + m_a - 1\|^2 \quad\text{s.t.}\quad m + A d \ge 1

    H is the Hessian of the Lagrangian, A the gradients of the margins m, A_a those with a
    multiplier. Where these stay active the last term is constant, and with s = 0 the step is
    Newton's; s grows until the program is convex and its solution, with active margins led back
    to 1, lowers the value, and falls again afterwards. Near a strict local optimum convergence is
    quadratic, where each first-order program gains a factor of 1 - (smallest curvature) alone.
    """
    damping = _DAMPING
    for _ in range(max_steps):
        if problem.is_late:
            return
        here = _Here.at(problem, near)
        moved = None
        while moved is None:
            if damping > _MOST:
                return
            moved = _lower(problem, here, damping)
            damping *= _CHANGE if moved is None else 1 / _CHANGE
        damping = max(damping, _LEAST)
        near = replace(moved, rounds=near.rounds + 1)
        yield near


def _lower(problem: MarginProblem, here: _Here, damping: float) -> Approach | None:
    # More damping is the answer to a program that is not convex, to one whose multipliers go round
    # in circles, and to a step that leads nowhere.
    try:
        return _step(problem, here, damping)
    except (LinAlgError, RuntimeError):
        return None


def _step(problem: MarginProblem, here: _Here, damping: float) -> Approach | None:
    # Weights of a lower value, active samples led back to margin 1; None if it is not lower.
    damped = here.hessian + damping * np.eye(len(here.slope))
    root = cholesky(damped, lower=True, overwrite_a=True, check_finite=False)
    step, support = _constrained(here, root)
    index = torch.from_numpy(support)
    active = ActiveGradients.of(here.rows[index])
    w = here.w + torch.from_numpy(step)
    for _ in range(_CORRECTIONS):
        w = w + active.restoring(1 - problem.margins(w)[index])
    reached = problem.value(w)
    if not (math.isfinite(reached) and reached < problem.value(here.w)):
        return None
    return _refitted(problem, problem.rescaled(w), support)


def _constrained(here: _Here, root: Array) -> tuple[Array, Indices]:
    # The step d (P,) of the program, and the samples with a multiplier in it: with C = R^-1 A',
    # c = R^-1 slope, its dual is min |C q - c|^2 / 2 - (1 - m)'q over q >= 0, d = R'^-1 (C q - c).
    rows, missing = here.rows.numpy(), 1 - here.margins.numpy()
    working = np.flatnonzero(here.active)
    c = solve_triangular(root, here.slope, lower=True, check_finite=False)
    for _ in range(_SETS):
        C = solve_triangular(root, rows[working].T, lower=True, check_finite=False)
        q = nonnegative_fit(C.T @ C, missing[working] + C.T @ c)
        step = solve_triangular(root, C @ q - c, lower=True, trans="T", check_finite=False)
        short = missing - rows @ step
        short[working] = 0
        if short.max() <= _VIOLATED:
            break
        working = np.union1d(working, np.flatnonzero(short > _VIOLATED))
    return step, working[q > _NO_MULTIPLIER * q.max()]


def _refitted(problem: MarginProblem, w: Tensor, support: Indices) -> Approach | None:
    # With the multipliers of these samples that fit best, none negative.
    if not len(support):
        return None  # scipy's nnls takes no matrix without columns
    rows = problem.gradients(w, torch.from_numpy(support)).numpy()
    fit, distance = nnls(rows.T, w.numpy(), maxiter=_PATIENCE * len(support))
    lam = torch.zeros(problem.n_margins, dtype=w.dtype)
    lam[support] = torch.from_numpy(fit)
    return Approach(w, lam, lam > _NO_MULTIPLIER * lam.max(), distance / float(w.norm()), 0)
