"""What the networks share: tensors, seeds and balanced upper layers."""

from itertools import pairwise

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

__all__ = ["as_tensor", "rank_one_chain", "torch_generator"]


def rank_one_chain(a: Tensor, units: list[Tensor]) -> list[Tensor]:
    # V_1 = u_1 a^T and V_{l+1} = ||a|| u_{l+1} u_l^T: V_{l+1}^T V_{l+1} = ||a||^2 u_l u_l^T is
    # V_l V_l^T, and head = ||a||^(L-1) a.
    upper = [torch.outer(units[0], a)]
    for below, above in pairwise(units):
        upper.append(a.norm() * torch.outer(above, below))
    return upper


def torch_generator(random_state: int | np.random.Generator) -> torch.Generator:
    if isinstance(random_state, np.random.Generator):
        random_state = int(random_state.integers(2**63 - 1))
    return torch.Generator().manual_seed(random_state)


def as_tensor(values: ArrayLike | Tensor) -> Tensor:
    # A copy: torch warns about sharing memory with read-only arrays.
    return values if isinstance(values, Tensor) else torch.tensor(np.asarray(values))
