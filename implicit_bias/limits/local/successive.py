"""Successive max-margin programs: from separating weights to the active set of a KKT point."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ..._support.solve import (
    GatedDesign,
    MaxMarginProgram,
    Settings,
    Status,
    solve,
    support_vectors,
)
from .problem import MarginProblem

# The programs of one step: their gap has to be far below the residual that is asked for.
_GAP = 1e-10
# Halvings of a step before it counts as leading nowhere.
_HALVINGS = 20


@dataclass(frozen=True, eq=False)
class Approach:
    """An iterate: weights of smallest margin 1, multipliers, and the KKT residual.

    Attributes
    ----------
    w : (P,)
    lam : (n,)
        Multipliers of the program at `w`; ``u = sum_n lam_n y_n grad f_n`` solves it.
    active : (n,) boolean
        Its support vectors.
    residual : float
        ``||w - u|| / ||w||``.
    rounds : int
        Programs solved so far.
    """

    w: Tensor
    lam: Tensor
    active: Tensor
    residual: float
    rounds: int


def approaches(problem: MarginProblem, w: Tensor, max_rounds: int) -> Iterator[Approach]:
    r"""Iterate from weights of positive margins, as long as the margin grows or `max_rounds` last.

    At weights w of smallest margin 1, with :math:`\langle \nabla f_n, w\rangle = L f_n`:

    .. math:: \min_u \tfrac12 \|u\|^2 \quad\text{s.t.}\quad
              y_n \langle \nabla f_n(w), u \rangle \ge 1 + (L - 1) m_n(w) ,

    the constraints linearised at w. Its solution is w exactly where w is a KKT point; elsewhere u
    is a direction in which the normalised margin grows.
    """
    w = problem.rescaled(w)
    for rounds in range(1, max_rounds + 1):
        if problem.is_late:
            return
        gradients = problem.gradients(w)
        solved = linearised(problem, w, gradients)
        if solved is None:
            return
        lam, active = solved
        u = gradients.T @ lam
        residual = float((w - u).norm() / w.norm())
        yield Approach(w, lam, active, residual, rounds)
        moved = lower_towards(problem, w, u)
        if moved is None:
            return
        w = moved


def linearised(
    problem: MarginProblem, w: Tensor, gradients: Tensor
) -> tuple[Tensor, Tensor] | None:
    """Return multipliers (n,) of the linearised program and its support; None if unsolved."""
    wanted = 1 + (problem.degree - 1) * problem.margins(w)
    rows = (gradients / wanted[:, None]).numpy()
    n = len(rows)
    design = GatedDesign(rows, np.ones((n, 1)), np.zeros(1, dtype=np.int64))
    program = MaxMarginProgram(design, np.ones(n))
    solution = solve(program, settings=Settings(tol=_GAP))
    if solution.status not in (Status.SOLVED, Status.INACCURATE):
        return None
    # The optimum is the dual objective times the direction of `v(lam)`, whose norm is 1.
    size = solution.certificate.dual_objective
    lam = torch.from_numpy(solution.dual) * size / wanted
    active = support_vectors(program, solution.primal, solution.dual)
    return lam, torch.from_numpy(active)


def lower_towards(problem: MarginProblem, w: Tensor, u: Tensor) -> Tensor | None:
    """Return the first of halved steps towards u that lowers the value; None if there is none."""
    value = problem.value(w)
    for halving in range(_HALVINGS):
        moved = w + 0.5**halving * (u - w)
        reached = problem.value(moved)
        if math.isfinite(reached) and reached < value:
            return problem.rescaled(moved)
    return None
