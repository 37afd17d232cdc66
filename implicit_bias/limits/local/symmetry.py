"""Rotations of units along which a KKT point stays one: zero modes that cost no optimality."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import combinations, permutations

import torch
from torch import Tensor

from .newton import Point
from .problem import MarginProblem
from .reduced import ActiveGradients

# Residuals of points that are KKT points up to rounding, and sizes of tangents that are none.
_SAME, _NOTHING = 1e-8, 1e-5
# Layers wider than this are rotated as a whole only, not plane by plane.
_WIDEST = 100

# Parameters whose first axis is the units that are rotated.
Names = tuple[str, ...]


def symmetry_tangents(problem: MarginProblem, point: Point) -> Tensor:
    """Return orthonormal tangents (k, P) of the rotations that lead to KKT points of equal value.

    Where units i and j of a layer are open on the same active samples, rotating their incoming
    weights (the first axis of one parameter, and of their biases) and outgoing ones (the last axis
    of another) together changes neither active margins nor the norm of the weights; the other
    margins are above 1, so that the point is one of a whole orbit of equal value. That holds for
    all units of a linear layer and for units with the same gates, and for parallel units of any
    gates, which share one direction; it is tried at the point, plane by plane.
    """
    w = point.w
    tangents = [w.new_zeros(0, len(w))]
    shapes = {name: p.shape for name, p in problem.parameters.items()}
    for name, upper in permutations(shapes, 2):
        width = shapes[name][0]
        if len(shapes[name]) < 2 or shapes[upper][-1] != width:
            continue
        biases = [other for other, shape in shapes.items() if shape == (width,)]
        for lower in ((name,), *((name, bias) for bias in biases if bias != upper)):
            planes = _free_planes(problem, point, lower, upper)
            tangents += [_generator(problem, w, lower, upper, plane)[None] for plane in planes]
    return _orthonormal(torch.cat(tangents))


def _free_planes(
    problem: MarginProblem, point: Point, lower: Names, upper: str
) -> list[tuple[int, int]]:
    # Planes (i, j) of units whose rotation leads to another KKT point.
    weights, width = point.w, len(problem.parameters[lower[0]])
    planes = list(combinations(range(width), 2))
    some = replace(problem, data=problem.data.take(point.index))

    def free(rotation: Tensor) -> bool:
        """Return whether a rotation leaves every active margin as it is, and stationarity."""
        turned = _rotated(problem, weights, lower, upper, rotation)
        if float((some.margins(turned) - 1).abs().max()) > _SAME:
            return False
        off = ActiveGradients.of(some.gradients(turned)).project(turned)
        return float(off.norm()) <= _SAME * float(turned.norm())

    generator = torch.Generator().manual_seed(1)
    square = torch.randn(width, width, generator=generator, dtype=weights.dtype)
    if free(torch.linalg.qr(square).Q):
        return planes
    if width > _WIDEST:
        return []
    return [plane for plane in planes if free(_turn(weights, width, plane))]


def _turn(like: Tensor, width: int, plane: tuple[int, int], angle: float = 1.0) -> Tensor:
    rotation = torch.eye(width, dtype=like.dtype)
    i, j = plane
    rotation[i, i] = rotation[j, j] = math.cos(angle)
    rotation[i, j], rotation[j, i] = -math.sin(angle), math.sin(angle)
    return rotation


def _rotated(
    problem: MarginProblem, w: Tensor, lower: Names, upper: str, rotation: Tensor
) -> Tensor:
    turned = dict(problem.unflatten(w))
    for name in lower:
        turned[name] = torch.tensordot(rotation, turned[name], dims=1)
    turned[upper] = turned[upper] @ rotation.T
    return torch.cat([part.flatten() for part in turned.values()])


def _generator(
    problem: MarginProblem, w: Tensor, lower: Names, upper: str, plane: tuple[int, int]
) -> Tensor:
    # The derivative of the rotation of a plane by its angle, at angle 0.
    i, j = plane
    parts = problem.unflatten(w)
    moved = {name: torch.zeros_like(part) for name, part in parts.items()}
    for name in lower:
        moved[name][i], moved[name][j] = -parts[name][j], parts[name][i]
    moved[upper][..., i], moved[upper][..., j] = -parts[upper][..., j], parts[upper][..., i]
    return torch.cat([part.flatten() for part in moved.values()])


def _orthonormal(tangents: Tensor) -> Tensor:
    _, sizes, basis = torch.linalg.svd(tangents, full_matrices=False)
    kept: Tensor = basis[sizes > _NOTHING * sizes[:1].clamp(min=1e-300)]
    return kept
