"""Limited-memory BFGS, of several runs side by side: pure functions of the pairs it remembers."""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["direction", "forget", "inner", "learn", "no_pairs"]

# Pairs of steps and changes of the gradient.
PAIRS = 10
# A pair says something of the curvature if the cosine of its two vectors is above this.
LEAST_COSINE = 1e-10

Pairs = dict[str, Tensor]


def inner(a: Tensor, b: Tensor) -> Tensor:
    """(B,) inner products of rows (B, P), summed in float64."""
    return (a * b).sum(dim=1, dtype=torch.float64)


def no_pairs(like: Tensor) -> Pairs:
    """The memory of runs (B, P) that have not moved yet."""
    n_runs, n_weights = like.shape
    zero = torch.zeros((), dtype=torch.float64, device=like.device)
    return {
        "pairs": like.new_zeros(n_runs, 2 * PAIRS, n_weights),  # steps s, then changes y
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
    squared = inner(gradient, gradient)
    plain = torch.where(squared > 0, 1 / squared, 0.0)
    unit = torch.where(memory["unit"] > 0, memory["unit"], plain)
    c = unit[:, None, None]
    order = _order(memory)
    s_y, y_y = (memory[name][:, order][:, :, order] for name in ("s_y", "y_y"))
    diagonal = torch.diagonal(s_y, dim1=1, dim2=2)
    # The places of pairs left out hold zeros; their part of q is 0 then.
    R = torch.triu(s_y) + torch.diag_embed((diagonal == 0).double())
    known = torch.bmm(memory["pairs"], gradient[:, :, None]).double()
    s_g, y_g = known[:, :PAIRS][:, order], known[:, PAIRS:][:, order]
    q = torch.linalg.solve_triangular(R, s_g, upper=True)
    right = diagonal[:, :, None] * q + c * (y_y @ q - y_g)
    shares = torch.empty_like(known)
    shares[:, order] = torch.linalg.solve_triangular(R.mT, right, upper=False)
    shares[:, [PAIRS + i for i in order]] = -c * q
    found = torch.bmm(shares.mT.to(gradient), memory["pairs"])[:, 0]
    return -(found + unit[:, None].to(gradient) * gradient)


def learn(memory: Pairs, step: Tensor, change: Tensor) -> None:
    """Take a pair (B, P) each in, in place of the oldest; without positive curvature, none."""
    product, size = inner(step, change), inner(change, change)
    good = product > LEAST_COSINE * torch.sqrt(inner(step, step) * size)
    place = int(memory["n_pairs"]) % PAIRS
    pairs = memory["pairs"]
    pairs[:, place] = torch.where(good[:, None], step, 0.0)
    pairs[:, PAIRS + place] = torch.where(good[:, None], change, 0.0)
    products = torch.bmm(pairs, pairs[:, [place, PAIRS + place]].mT).double()  # (B, 2 PAIRS, 2)
    memory["s_y"][:, :, place] = products[:, :PAIRS, 1]
    memory["s_y"][:, place] = products[:, PAIRS:, 0]
    memory["y_y"][:, :, place] = products[:, PAIRS:, 1]
    memory["y_y"][:, place] = products[:, PAIRS:, 1]
    memory["unit"] = torch.where(good, product / size, memory["unit"])
    memory["n_pairs"] = memory["n_pairs"] + 1


def forget(memory: Pairs, runs: Tensor) -> None:
    """Drop the pairs of the runs (B,) marked."""
    for name in ("pairs", "s_y", "y_y", "unit"):
        memory[name][runs] = 0.0


def _order(memory: Pairs) -> list[int]:
    """Places of the pairs, the oldest first."""
    first = int(memory["n_pairs"]) % PAIRS
    return [(first + i) % PAIRS for i in range(PAIRS)]
