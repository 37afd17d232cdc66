"""What the networks share: tensors, seeds and balanced upper layers."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

__all__ = [
    "as_tensor",
    "layer_imbalance",
    "linear_factors",
    "rank_one_chain",
    "torch_generator",
]


def rank_one_chain(a: Tensor, units: list[Tensor]) -> list[Tensor]:
    # V_1 = u_1 a^T and V_{l+1} = ||a|| u_{l+1} u_l^T: V_{l+1}^T V_{l+1} = ||a||^2 u_l u_l^T is
    # V_l V_l^T, and head = ||a||^(L-1) a.
    upper = [torch.outer(units[0], a)]
    for below, above in pairwise(units):
        upper.append(a.norm() * torch.outer(above, below))
    return upper


def layer_imbalance(layers: Sequence[Tensor]) -> Tensor:
    # Squared norm of what comes into each hidden unit less that of what goes out, (width_1 + ...,):
    # for homogeneous units gradient flow changes both alike. One matrix (above, below) a layer.
    squares = [layer.new_empty(0) for layer in layers[:1]]
    for below, above in pairwise(layers):
        squares.append(below.square().sum(1) - above.square().sum(0))
    return torch.cat(squares)


def linear_factors(hidden: Tensor, layers: Sequence[Tensor]) -> list[tuple[Tensor, Tensor]]:
    # Of linear layers on top of `hidden` (n, H): the score's gradient in V_l is the product of the
    # layers above, the same for every sample, times the input of V_l.
    factors = []
    above = [layers[-1].new_ones(1, 1)]
    for layer in reversed(layers[1:]):
        above.append(above[-1] @ layer)
    for layer, outer in zip(layers, reversed(above), strict=True):
        factors.append((outer.expand(len(hidden), -1), hidden))
        hidden = hidden @ layer.T
    return factors


def torch_generator(random_state: int | np.random.Generator) -> torch.Generator:
    if isinstance(random_state, np.random.Generator):
        random_state = int(random_state.integers(2**63 - 1))
    return torch.Generator().manual_seed(random_state)


def as_tensor(values: ArrayLike | Tensor) -> Tensor:
    # A copy: torch warns about sharing memory with read-only arrays.
    return values if isinstance(values, Tensor) else torch.tensor(np.asarray(values))
