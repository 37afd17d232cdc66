"""Gradients of many rows and Hessians, by plain backward passes.

`torch.func.grad` loads the compiler of torch, which takes four seconds of a short run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.func import vmap


def row_gradients(
    function: Callable[..., Tensor], weights: Mapping[str, Tensor], *rows: Any, at_once: int
) -> dict[str, Tensor]:
    """Return the gradients in the weights of a function of one row, for every row.

    Each row has a view of the weights as a leaf of its own: one backward of the sum gives all.

    Parameters
    ----------
    function : callable
        ``function(weights, *row)`` is a scalar.
    weights : mapping of str to tensors
    *rows : (k, ...) tensors, or None
        The first one a tensor.
    at_once : int
        Rows whose gradients are computed together.

    Returns
    -------
    dict of str to (k, ...) tensors
        Zero where the function does not depend on a weight.
    """
    of_each = vmap(function, in_dims=(0, *(None if one is None else 0 for one in rows)))
    parts = [torch.split(one, at_once) if one is not None else None for one in rows]
    found = []
    with torch.enable_grad():
        for number, first in enumerate(parts[0] or ()):
            leaves = {
                name: weight.detach().expand(len(first), *weight.shape).requires_grad_()
                for name, weight in weights.items()
            }
            some = (None if part is None else part[number] for part in parts)
            total = of_each(leaves, *some).sum()
            found.append(
                torch.autograd.grad(
                    total, list(leaves.values()), allow_unused=True, materialize_grads=True
                )
            )
    columns = zip(*found, strict=True)
    # A single part is not copied, which would take as long as its gradients.
    whole = (column[0] if len(column) == 1 else torch.cat(column) for column in columns)
    return dict(zip(weights, whole, strict=True))


def slope_and_hessian(
    function: Callable[[Tensor], Tensor], w: Tensor, at_once: int | None = None
) -> tuple[Tensor, Tensor]:
    """Return gradient (P,) and Hessian (P, P) of a scalar function of w (P,).

    `at_once` rows of the Hessian are computed together, by default all.
    """
    with torch.enable_grad():
        leaf = w.detach().requires_grad_()
        (slope,) = torch.autograd.grad(function(leaf), leaf, create_graph=True)

        def row(direction: Tensor) -> Tensor:
            """Return the gradient of the slope along one direction."""
            found: Tensor = torch.autograd.grad(
                slope, leaf, direction, retain_graph=True, materialize_grads=True
            )[0]
            return found

        if not slope.requires_grad:  # of a linear function
            return slope, w.new_zeros(len(w), len(w))
        identity = torch.eye(len(w), dtype=w.dtype, device=w.device)
        rows: Tensor = vmap(row, chunk_size=at_once)(identity)
    return slope.detach(), rows.detach()
