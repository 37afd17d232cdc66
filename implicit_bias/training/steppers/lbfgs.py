"""Limited-memory BFGS for several networks side by side: pure functions of the stored pairs.

Vectors as long as the weights stay in torch, in as few products as possible; matrices as small as
the memory are NumPy arrays on the CPU.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .batched import inner, numbers, per_network, to_numpy

# Pairs of steps and changes of the gradient that are stored.
MEMORY = 10
# A pair is stored if the cosine of its two vectors is above this: it needs positive curvature.
MIN_COSINE = 1e-10
# The pairs lie in a ring: if k is the next to be replaced, their places from the oldest on.
_PLACES = (np.arange(MEMORY) + np.arange(MEMORY)[:, None]) % MEMORY
_UPPER = np.triu(np.ones((MEMORY, MEMORY)))

Array = NDArray[np.float64]
Memory = dict[str, Tensor]


def empty_lbfgs_memory(like: Tensor) -> Memory:
    """Return the memory of networks with weights (B, P) that have taken no step yet."""
    n_networks, n_weights = like.shape
    zero = torch.zeros((), dtype=torch.float64)
    return {
        "pairs": like.new_zeros(n_networks, MEMORY, 2, n_weights),  # step s and change y
        "s_y": zero.new_zeros(n_networks, MEMORY, MEMORY),  # <s_i, y_j>
        "y_y": zero.new_zeros(n_networks, MEMORY, MEMORY),  # <y_i, y_j>
        "initial_scale": zero.new_zeros(n_networks),  # s^T y / y^T y of the last pair, or 0
        "n_pairs": zero,
    }


def lbfgs_direction(memory: Memory, gradient: Tensor) -> Tensor:
    r"""Return -H g for gradients g (B, P), H the inverse Hessian that the stored pairs define.

    In the compact form, with the pairs in the order of time as columns of S and Y, R the upper
    triangle of :math:`S^T Y`, D its diagonal and :math:`c = s^T y / y^T y` of the last pair,

    .. math:: H g = c g + S R^{-T} \bigl( (D + c\, Y^T Y) q - c\, Y^T g \bigr) - c\, Y q,
              \qquad q = R^{-1} S^T g.

    Without any pair H is 1 / |g|^2, whose step would lower a linear function by 1.

    References
    ----------
    R. Byrd, J. Nocedal, R. Schnabel, "Representations of quasi-Newton matrices and their use in
    limited memory methods", theorem 2.2.
    """
    scale = to_numpy(memory["initial_scale"])
    if not scale.all():
        (squared,) = numbers(inner(gradient, gradient))
        plain = np.divide(1.0, squared, out=np.zeros_like(squared), where=squared > 0)
        scale = np.where(scale > 0, scale, plain)
    pairs = memory["pairs"].flatten(1, 2)
    products = to_numpy(torch.bmm(pairs, gradient[:, :, None]).double()).reshape(-1, MEMORY, 2, 1)
    weights = _pair_weights(memory, scale[:, None, None], products[:, :, 0], products[:, :, 1])
    weights = weights.reshape(len(scale), 1, -1)
    combination = torch.as_tensor(weights, dtype=pairs.dtype, device=pairs.device)
    return torch.bmm(combination, pairs)[:, 0].sub_(per_network(scale, gradient) * gradient)


def _pair_weights(memory: Memory, c: Array, s_g: Array, y_g: Array) -> Array:
    """Weights (B, MEMORY, 2) of all s and y in -H g, from their products (B, MEMORY, 1) with g."""
    order = _PLACES[int(memory["n_pairs"]) % MEMORY]
    s_y, y_y = (to_numpy(memory[k])[:, order[:, None], order[None, :]] for k in ("s_y", "y_y"))
    diagonal = np.diagonal(s_y, axis1=1, axis2=2)[:, :, None]
    R = s_y * _UPPER
    if not diagonal.all():  # places without a pair hold zeros; their part of q is 0 then
        R += (diagonal == 0) * np.eye(MEMORY)
    # Elimination has nothing to do in an upper triangle, and a lower one read from its end is one.
    q = np.linalg.solve(R, s_g[:, order])
    right = diagonal * q + c * (y_y @ q - y_g[:, order])
    left = np.linalg.solve(R.transpose(0, 2, 1)[:, ::-1, ::-1], right[:, ::-1])
    weights = np.empty((len(R), MEMORY, 2))
    weights[:, order, 0], weights[:, order, 1] = -left[:, ::-1, 0], c[:, 0] * q[:, :, 0]
    return weights


def update_lbfgs(memory: Memory, step: Tensor, change: Tensor) -> None:
    """Store steps and changes of the gradient, (B, P) each, in place of the oldest pair.

    Networks whose pair has no positive curvature store none.
    """
    place = int(memory["n_pairs"]) % MEMORY
    pairs = memory["pairs"]
    pair = pairs[:, place]
    pair[:, 0], pair[:, 1] = step, change
    # Inner products of every s and y with the new pair: (B, MEMORY, 2, 2).
    found = to_numpy(torch.bmm(pairs.flatten(1, 2), pair.mT).double()).reshape(-1, MEMORY, 2, 2)
    product, size = found[:, place, 0, 1], found[:, place, 1, 1]
    good = product > MIN_COSINE * np.sqrt(found[:, place, 0, 0] * size)
    if not good.all():
        pair[torch.from_numpy(~good).to(pair.device)] = 0.0
        found[~good] = 0.0
    # Views, through which the memory is changed.
    s_y, y_y, scale = (to_numpy(memory[name]) for name in ("s_y", "y_y", "initial_scale"))
    s_y[:, :, place], s_y[:, place] = found[:, :, 0, 1], found[:, :, 1, 0]
    y_y[:, :, place] = y_y[:, place] = found[:, :, 1, 1]
    np.divide(product, size, out=scale, where=good)
    memory["n_pairs"] = memory["n_pairs"] + 1


def reset_lbfgs(memory: Memory, networks: NDArray[np.bool_]) -> None:
    """Drop the pairs of the networks marked (B,)."""
    if networks.any():
        for name in ("pairs", "s_y", "y_y", "initial_scale"):
            memory[name][torch.from_numpy(networks).to(memory[name].device)] = 0.0
