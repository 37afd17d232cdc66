"""Second-order conditions at a KKT point: strict local optimum, saddle with escape, or neither."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from .newton import Point
from .problem import MarginProblem
from .reduced import ZERO_MODE, ActiveGradients, ReducedHessian
from .symmetry import symmetry_tangents

# Steps of an escape, as parts of ||w||: the first that lowers the value counts.
_FIRST_STEP, _HALVINGS = 0.25, 12
# What a rotation moves that is held, but for rounding.
_MOVED = 1e-5
# By what the value has to fall, relatively, so that it is no rounding.
_LOWER = 1e-12


@dataclass(frozen=True, eq=False)
class Curvature:
    """Lowest eigenvalues of the reduced Hessian, with their eigenvectors.

    Attributes
    ----------
    eigenvalues : (k,)
        Ascending.
    directions : (P, k)
        Unit eigenvectors.
    n_symmetry : int
        Zero eigenvalues that rotations of units explain.
    """

    eigenvalues: Tensor
    directions: Tensor
    n_symmetry: int

    @property
    def n_zero_modes(self) -> int:
        """Number of eigenvalues that are zero up to rounding."""
        return int((self.eigenvalues.abs() <= ZERO_MODE).sum())

    @property
    def unstable(self) -> Tensor:
        """Eigenvectors (P, u) of negative eigenvalues."""
        return self.directions[:, self.eigenvalues < -ZERO_MODE]


def measure_curvature(problem: MarginProblem, point: Point) -> Curvature:
    """Measure the Lagrangian's lowest curvature along directions that keep what is active."""
    held = problem.held(point)
    active = ActiveGradients.of(torch.cat([point.gradients(problem), held]))
    hessian = problem.hessian(point.w, point.lam)
    values, directions = ReducedHessian.of(hessian, active).lowest()
    flat = bool((values.abs() <= ZERO_MODE).any())
    tangents = symmetry_tangents(problem, point) if flat else held[:0]
    # Of all that they span, what keeps the rest.
    moved = (
        int(torch.linalg.matrix_rank(tangents @ held.T, atol=_MOVED))
        if len(tangents) and len(held)
        else 0
    )
    return Curvature(values, directions, len(tangents) - moved)


def escaped(problem: MarginProblem, point: Point, direction: Tensor) -> Tensor | None:
    """Find weights of lower value along a direction (P,) or its opposite; None without any.

    Second-order changes of the active margins are undone by the shortest step, so that what is
    gained is the curvature of the Lagrangian. Finding such weights proves that the point is no
    local optimum, whatever constraints are dependent or have no multiplier.
    """
    active = ActiveGradients.of(point.gradients(problem))
    value, size = problem.value(point.w), float(point.w.norm())
    unit = direction / direction.norm()
    for halving in range(_HALVINGS):
        for first in (_FIRST_STEP, -_FIRST_STEP):
            moved = point.w + first * size / 2**halving * unit
            moved = moved + active.restoring(1 - problem.margins(moved)[point.index])
            if problem.value(moved) < value * (1 - _LOWER):
                return problem.rescaled(moved)
    return None
