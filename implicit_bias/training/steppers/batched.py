"""Arithmetic of tensors whose first axis counts networks that are trained side by side.

Weights are lists of tensors (B, ...), one entry a layer, or rows (B, P) of all weights together.
Numbers (B,), one a network, may be NumPy arrays: on the CPU these cost a microsecond an operation
instead of several.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Array = NDArray[np.float64]


def to_numpy(values: Tensor) -> NDArray[Any]:
    """Return a tensor as a NumPy array, which on the CPU shares its memory."""
    return values.cpu().numpy()


def per_network(values: Tensor | NDArray[Any], like: Tensor) -> Tensor:
    """Return values (B,) with the axes, device and, but for booleans, dtype of `like` (B, ...)."""
    placed = torch.as_tensor(values, device=like.device)
    placed = placed if placed.dtype == torch.bool else placed.to(like.dtype)
    return placed.view(-1, *[1] * (like.ndim - 1))


def on_device(values: NDArray[Any], like: Tensor) -> Tensor:
    """Return values (B,) as a tensor beside `like`, which shares their memory on the CPU."""
    return torch.from_numpy(values).to(like.device)


def numbers(*values: Tensor) -> tuple[Array, ...]:
    """Return several tensors (B,) of float64 as arrays, for which a device is asked once."""
    if values[0].device.type == "cpu":
        return tuple(value.numpy() for value in values)
    return tuple(torch.stack(values).cpu().numpy())


def inner(a: Tensor, b: Tensor) -> Tensor:
    """Return the inner products (B,) of rows (B, P), summed in float64."""
    return (a * b).sum(dim=1, dtype=torch.float64)


def lengths(vectors: Tensor) -> Tensor:
    """Return the Euclidean lengths (B,) of rows (B, P), summed in float64."""
    found: Tensor = torch.linalg.vector_norm(vectors, dim=1, dtype=torch.float64)
    return found


def dot(a: list[Tensor], b: list[Tensor]) -> Tensor:
    """Return the inner products (B,), in float64, of two lists of tensors (B, ...)."""
    # Squares of what float32 holds may lie beyond it.
    parts = [(x.double() * y.double()).flatten(1).sum(1) for x, y in zip(a, b, strict=True)]
    return torch.stack(parts).sum(0)


def assign(targets: list[Tensor], sources: list[Tensor]) -> None:
    """Copy `sources` into `targets`, in place."""
    for target, source in zip(targets, sources, strict=True):
        target.copy_(source)
