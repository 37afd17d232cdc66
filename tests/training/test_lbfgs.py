"""Limited-memory BFGS: the compact form against the two-loop recursion of the textbooks."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from implicit_bias.training import (
    MEMORY,
    empty_lbfgs_memory,
    lbfgs_direction,
    reset_lbfgs,
    update_lbfgs,
)

Array = NDArray[np.float64]

P = 30


def two_loops(gradient: Array, steps: list[Array], changes: list[Array]) -> Array:
    """-H g (Nocedal and Wright, algorithm 7.4), pairs in the order of time."""
    q, shares = gradient.copy(), []
    for s, y in zip(steps[::-1], changes[::-1], strict=True):
        shares.append((s @ q) / (s @ y))
        q = q - shares[-1] * y
    q = q * (steps[-1] @ changes[-1]) / (changes[-1] @ changes[-1])
    for s, y, share in zip(steps, changes, shares[::-1], strict=True):
        q = q + s * (share - (y @ q) / (s @ y))
    return -q


def pairs(seed: int, n: int) -> tuple[list[Array], list[Array]]:
    """Steps and changes of the gradient of a convex quadratic."""
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(P, P))
    steps = list(rng.normal(size=(n, P)))
    return steps, [root @ root.T @ s for s in steps]


@pytest.mark.parametrize("n", [1, 3, MEMORY, 2 * MEMORY + 3])
def test_the_direction_is_that_of_the_two_loop_recursion_on_the_last_pairs_of_each_network(
    n,
) -> None:
    runs = [pairs(seed, n) for seed in (1, 2)]
    gradient = np.random.default_rng(3).normal(size=(2, P))
    memory = empty_lbfgs_memory(torch.zeros(2, P, dtype=torch.float64))
    for i in range(n):
        update_lbfgs(memory, *(torch.tensor(np.stack([run[k][i] for run in runs])) for k in (0, 1)))
    found = lbfgs_direction(memory, torch.tensor(gradient)).numpy()
    for b, (steps, changes) in enumerate(runs):
        expected = two_loops(gradient[b], steps[-MEMORY:], changes[-MEMORY:])
        np.testing.assert_allclose(found[b], expected, rtol=1e-8, atol=1e-10)


def test_a_pair_of_negative_curvature_is_left_out_of_its_network_alone() -> None:
    (steps, changes), gradient = pairs(1, 4), np.linspace(-1, 2, P)
    memory = empty_lbfgs_memory(torch.zeros(2, P, dtype=torch.float64))
    for i, (s, y) in enumerate(zip(steps, changes, strict=True)):
        turned = np.stack([-y if i == 2 else y, y])
        update_lbfgs(memory, torch.tensor(np.stack([s, s])), torch.tensor(turned))
    found = lbfgs_direction(memory, torch.tensor(np.stack([gradient] * 2))).numpy()
    rest = [0, 1, 3]
    left_out = two_loops(gradient, [steps[i] for i in rest], [changes[i] for i in rest])
    np.testing.assert_allclose(found[0], left_out, rtol=1e-8)
    np.testing.assert_allclose(found[1], two_loops(gradient, steps, changes), rtol=1e-8)


def test_a_network_without_pairs_begins_with_a_step_that_promises_a_fall_by_one() -> None:
    memory = empty_lbfgs_memory(torch.zeros(2, P, dtype=torch.float64))
    gradient = torch.tensor(np.stack([np.linspace(-1, 2, P)] * 2))
    for s, y in zip(*pairs(1, 4), strict=True):
        update_lbfgs(memory, torch.tensor(np.stack([s, s])), torch.tensor(np.stack([y, y])))
    before = lbfgs_direction(memory, gradient)
    reset_lbfgs(memory, np.array([True, False]))
    after = lbfgs_direction(memory, gradient)
    assert float(after[0] @ gradient[0]) == pytest.approx(-1)
    np.testing.assert_allclose(after[0] / after[0].norm(), -gradient[0] / gradient[0].norm())
    np.testing.assert_array_equal(after[1], before[1])
