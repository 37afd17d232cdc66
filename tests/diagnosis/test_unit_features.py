"""Units whose features are no gate times the inputs, beside their program in cvxpy."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
import torch
from torch import nn

import implicit_bias as ib
from implicit_bias import Status
from tests.own_modules import drawn

RNG = np.random.default_rng(11)
X = RNG.normal(size=(16, 4))
Y = np.where(X @ [1.0, -0.5, 0.7, 0.2] > 0, 1.0, -1.0)
# Gates, the inputs masked for each unit, and two inputs each that change places.
MAPS = {
    "gates": np.einsum("h,de->hde", [1.0, -2.0, 0.5], np.eye(4)),
    "masks": np.stack([np.diag(row) for row in (RNG.random((3, 4)) < 0.6) * 1.0]),
    "nearly gates": np.stack([np.diag(1 + 1e-3 * row) for row in RNG.normal(size=(3, 4))]),
    "permutations": np.stack([np.eye(4)[RNG.permutation(4)] for _ in range(3)]),
}


class Mapped(nn.Module):
    """Units ``v_h <u_h, M_h x>`` below a linear layer."""

    def __init__(self, maps: np.ndarray) -> None:
        super().__init__()
        self.register_buffer("maps", torch.tensor(maps))
        self.units, self.readout = drawn(len(maps), 4), drawn(len(maps), seed=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the scores (n,)."""
        return torch.einsum("hde,ne,hd,h->n", self.maps, x, self.units, self.readout)


def least_sum_of_norms(maps: np.ndarray) -> float:
    zeta = cp.Variable((len(maps), 4))
    scores = sum((X @ M.T) @ zeta[h] for h, M in enumerate(maps))
    objective = cp.Minimize(cp.sum(cp.norm(zeta, 2, axis=1)))
    return float(cp.Problem(objective, [cp.multiply(Y, scores) >= 1]).solve(solver="CLARABEL"))


@pytest.mark.parametrize("name", MAPS)
def test_the_limit_of_units_is_that_of_their_own_features(name) -> None:
    limit = ib.diagnose(Mapped(MAPS[name]), X, Y).limit
    assert limit.status is Status.SOLVED
    assert limit.objective == pytest.approx(least_sum_of_norms(MAPS[name]), rel=1e-6)
