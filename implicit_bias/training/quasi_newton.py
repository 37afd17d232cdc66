"""Limited-memory BFGS, of several runs side by side: pure functions of the pairs it remembers.

What is as long as the weights stays in torch, in as few products as there can be; what is as small
as the memory is NumPy's on the CPU, where an operation costs a microsecond instead of several.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

__all__ = ["direction", "forget", "inner", "learn", "no_pairs", "numbers", "rows"]

# Pairs of steps and changes of the gradient.
PAIRS = 10
# A pair says something of the curvature if the cosine of its two vectors is above this.
LEAST_COSINE = 1e-10
# The pairs lie in a ring: if k is the next to be replaced, their places from the oldest on.
_PLACES = (np.arange(PAIRS) + np.arange(PAIRS)[:, None]) % PAIRS
_UPPER = np.triu(np.ones((PAIRS, PAIRS)))

Array = NDArray[np.float64]
Pairs = dict[str, Tensor]


def numbers(values: Tensor) -> NDArray[Any]:
    """What torch holds, as an array of NumPy: on the CPU one and the same memory."""
    return values.cpu().numpy()


def rows(values: NDArray[Any], like: Tensor) -> Tensor:
    """Numbers (B,), one a run, as a factor (B, 1) of tensors (B, P) like this one."""
    return torch.as_tensor(values[:, None], dtype=like.dtype, device=like.device)


def inner(a: Tensor, b: Tensor) -> Array:
    """(B,) inner products of rows (B, P), summed in float64."""
    return numbers((a * b).sum(dim=1, dtype=torch.float64))


def no_pairs(like: Tensor) -> Pairs:
    """The memory of runs (B, P) that have not moved yet."""
    n_runs, n_weights = like.shape
    zero = torch.zeros((), dtype=torch.float64)
    return {
        "pairs": like.new_zeros(n_runs, PAIRS, 2, n_weights),  # step s and change y
        "s_y": zero.new_zeros(n_runs, PAIRS, PAIRS),  # <s_i, y_j>
        "y_y": zero.new_zeros(n_runs, PAIRS, PAIRS),  # <y_i, y_j>
        "unit": zero.new_zeros(n_runs),  # s^T y / y^T y of the last pair, 0 without one
        "n_pairs": zero,
    }


def direction(memory: Pairs, gradient: Tensor) -> Tensor:
    r"""-H g of gradients (B, P), H the inverse Hessian that the pairs tell.

    In the compact form, with the pairs in the order of time as columns of S and Y, R the upper
    triangle of :math:`S^T Y`, D its diagonal and :math:`c = s^T y / y^T y` of the last pair,

    .. math:: H g = c g + S R^{-T} \bigl( (D + c\, Y^T Y) q - c\, Y^T g \bigr) - c\, Y q,
              \qquad q = R^{-1} S^T g.

    Without any pair H is 1 / |g|^2, which promises a fall by 1.

    References
    ----------
    R. Byrd, J. Nocedal, R. Schnabel, "Representations of quasi-Newton matrices and their use in
    limited memory methods", theorem 2.2.
    """
    unit = numbers(memory["unit"])
    if not unit.all():
        squared = inner(gradient, gradient)
        plain = np.divide(1.0, squared, out=np.zeros_like(squared), where=squared > 0)
        unit = np.where(unit > 0, unit, plain)
    pairs = memory["pairs"].flatten(1, 2)
    known = numbers(torch.bmm(pairs, gradient[:, :, None]).double()).reshape(-1, PAIRS, 2, 1)
    shares = _shares(memory, unit[:, None, None], known[:, :, 0], known[:, :, 1])
    told = torch.as_tensor(shares.reshape(len(unit), 1, -1), dtype=pairs.dtype, device=pairs.device)
    return torch.bmm(told, pairs)[:, 0].sub_(rows(unit, gradient) * gradient)


def _shares(memory: Pairs, c: Array, s_g: Array, y_g: Array) -> Array:
    """(B, PAIRS, 2) of every s and y in -H g, from their products (B, PAIRS, 1) with g."""
    order = _PLACES[int(memory["n_pairs"]) % PAIRS]
    s_y, y_y = (numbers(memory[name])[:, order[:, None], order[None, :]] for name in ("s_y", "y_y"))
    diagonal = np.diagonal(s_y, axis1=1, axis2=2)[:, :, None]
    R = s_y * _UPPER
    if not diagonal.all():  # places of pairs left out hold zeros; their part of q is 0 then
        R += (diagonal == 0) * np.eye(PAIRS)
    # Elimination has nothing to do in an upper triangle, and a lower one read from its end is one.
    q = np.linalg.solve(R, s_g[:, order])
    right = diagonal * q + c * (y_y @ q - y_g[:, order])
    left = np.linalg.solve(R.transpose(0, 2, 1)[:, ::-1, ::-1], right[:, ::-1])
    shares = np.empty((len(R), PAIRS, 2))
    shares[:, order, 0], shares[:, order, 1] = -left[:, ::-1, 0], c[:, 0] * q[:, :, 0]
    return shares


def learn(memory: Pairs, step: Tensor, change: Tensor) -> None:
    """Take a pair (B, P) each in, in place of the oldest; without positive curvature, none."""
    place = int(memory["n_pairs"]) % PAIRS
    pairs = memory["pairs"]
    pair = pairs[:, place]
    pair[:, 0], pair[:, 1] = step, change
    # Of every s and y with the new ones: (B, PAIRS, 2, 2).
    found = numbers(torch.bmm(pairs.flatten(1, 2), pair.mT).double()).reshape(-1, PAIRS, 2, 2)
    product, size = found[:, place, 0, 1], found[:, place, 1, 1]
    good = product > LEAST_COSINE * np.sqrt(found[:, place, 0, 0] * size)
    if not good.all():
        pair[torch.from_numpy(~good).to(pair.device)] = 0.0
        found[~good] = 0.0
    s_y, y_y, unit = (numbers(memory[name]) for name in ("s_y", "y_y", "unit"))
    s_y[:, :, place], s_y[:, place] = found[:, :, 0, 1], found[:, :, 1, 0]
    y_y[:, :, place] = y_y[:, place] = found[:, :, 1, 1]
    np.divide(product, size, out=unit, where=good)
    kept = {"s_y": s_y, "y_y": y_y, "unit": unit}
    memory |= {name: torch.from_numpy(values) for name, values in kept.items()}
    memory["n_pairs"] = memory["n_pairs"] + 1


def forget(memory: Pairs, runs: NDArray[np.bool_]) -> None:
    """Drop the pairs of the runs (B,) marked."""
    if runs.any():
        for name in ("pairs", "s_y", "y_y", "unit"):
            memory[name][torch.from_numpy(runs).to(memory[name].device)] = 0.0
