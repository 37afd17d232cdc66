r"""Training of exits that teach one another: algorithm 6.1, as its text means it.

As printed, line 10 hands teachers that line 8 has tempered to a loss that tempers them again: their
temperature would be tau squared. And (6.4) divides by the number of teachers of an exit, which is 0
for the last. Here teachers are tempered once, and an exit without one learns from labels alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, log_softmax, softmax

from ...data.arrays import Floats

__all__ = ["HeadsRun", "confidence", "distillation_loss", "exits_loss", "train_exit_heads"]


@dataclass(frozen=True, eq=False)
class HeadsRun:
    """Heads that were trained.

    Attributes
    ----------
    weights : tuple of (K, D_m) arrays
    loss : (n_steps,) array
        Before every step.
    temperature : (n_steps,) array
    """

    weights: tuple[Floats, ...]
    loss: Floats
    temperature: Floats


def distillation_loss(teacher: Tensor, student: Tensor, temperature: float) -> Tensor:
    """`-tau^2 sum_k p_k log softmax(s / tau)_k`, p = softmax(t / tau), meaned over samples.

    Parameters
    ----------
    teacher, student : (n, K) tensors
        Logits, both at temperature 1. No gradient goes to the teacher.
    temperature : float
    """
    taught = softmax(teacher.detach() / temperature, dim=1)
    learned = log_softmax(student / temperature, dim=1)
    return -(temperature**2) * (taught * learned).sum(dim=1).mean()


def exits_loss(
    logits: Sequence[Tensor],
    labels: Tensor,
    *,
    teachers: Sequence[Sequence[Tensor]],
    temperature: float,
    share: float,
) -> Tensor:
    """Mean over exits of `share` cross entropy and `1 - share` distillation, (6.1) to (6.6).

    Parameters
    ----------
    logits : sequence of (n, K) tensors
        One an exit.
    labels : (n,) tensor
        -1 where there is none.
    teachers : sequence of sequences of (n, K) tensors
        Logits of each exit's teachers; for an exit without any the term is left out.
    temperature, share : float
    """
    total = logits[0].new_zeros(())
    known = labels >= 0
    for own, taught in zip(logits, teachers, strict=True):
        if share > 0:
            total = total + share * cross_entropy(own[known], labels[known])
        if taught and share < 1:
            losses = [distillation_loss(t, own, temperature) for t in taught]
            total = total + (1 - share) * torch.stack(losses).mean()
    return total / len(logits)


def confidence(teachers: Sequence[Tensor], temperature: float) -> float:
    """Largest probability of the teachers' mean, tempered, averaged over samples: line 12."""
    tempered = [softmax(t.detach() / temperature, dim=1) for t in teachers]
    return float(torch.stack(tempered).mean(dim=0).amax(dim=1).mean())


def train_exit_heads(
    features: Sequence[Any],
    labels: Any,
    *,
    teacher: Any | None = None,
    temperature: float = 1.0,
    share: float = 0.5,
    n_steps: int = 1000,
    momentum: float = 0.9,
    most_confident: float | None = None,
    multiplier: float = 1.05,
) -> HeadsRun:
    """Full-batch descent with Nesterov's momentum on all heads at once, from zero.

    Every head takes steps of 1 over a bound of its curvature. Nothing of the predicted limit is
    used.

    Parameters
    ----------
    features : sequence of (n, D_m) arrays
    labels : (n,) ints
        -1 for none.
    teacher : (n, K) array, optional
        Frozen logits. Without them the last exit teaches the others and has no teacher itself.
    temperature : float
        At the start.
    share : float
        Weight of hard labels.
    n_steps : int
    momentum : float
        In [0, 1).
    most_confident : float, optional
        mu: the temperature is multiplied after every step whose teachers are more confident.
    multiplier : float

    Raises
    ------
    ValueError
        If there is neither a label nor a teacher, or a number is out of range.
    """
    _check(temperature, share, n_steps, momentum, multiplier)
    phis = [torch.as_tensor(phi, dtype=torch.float64) for phi in features]
    classes = torch.as_tensor(labels, dtype=torch.int64)
    given = None if teacher is None else torch.as_tensor(teacher, dtype=torch.float64)
    n_classes = int(classes.max()) + 1 if given is None else int(given.shape[1])
    if n_classes < 2:
        raise ValueError(f"`labels` must name two classes at least, got {n_classes}")
    heads, optimizer = _begin(phis, classes, n_classes, momentum)
    losses, temperatures = [], []
    for _ in range(n_steps):
        logits = [phi @ head.T for phi, head in zip(phis, heads, strict=True)]
        taught = _teachers(logits, given)
        loss = exits_loss(logits, classes, teachers=taught, temperature=temperature, share=share)
        losses.append(float(loss.detach()))
        temperatures.append(temperature)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        if most_confident is not None and confidence(taught[0], temperature) > most_confident:
            temperature *= multiplier
    weights = tuple(head.detach().numpy() for head in heads)
    return HeadsRun(weights, np.array(losses), np.array(temperatures))


def _begin(
    phis: Sequence[Tensor], labels: Tensor, n_classes: int, momentum: float
) -> tuple[list[Tensor], torch.optim.Optimizer]:
    """Heads of zeros, and their optimiser."""
    heads = [
        torch.zeros(n_classes, phi.shape[1], dtype=torch.float64, requires_grad=True)
        for phi in phis
    ]
    groups = [
        {"params": [head], "lr": _rate(phi, labels, len(phis))}
        for head, phi in zip(heads, phis, strict=True)
    ]
    return heads, torch.optim.SGD(groups, momentum=momentum, nesterov=momentum > 0)


def _teachers(logits: Sequence[Tensor], given: Tensor | None) -> list[list[Tensor]]:
    if given is not None:
        return [[given]] * len(logits)
    return [[logits[-1]]] * (len(logits) - 1) + [[]]


def _rate(phi: Tensor, labels: Tensor, n_exits: int) -> float:
    """1 over a bound of a head's curvature: softmax's is 1/2 at most, and tau cancels."""
    spread = [
        float(torch.linalg.matrix_norm(rows, 2)) ** 2 / len(rows)
        for rows in (phi, phi[labels >= 0])
        if len(rows)
    ]
    return 2 * n_exits / max(spread)


def _check(
    temperature: float, share: float, n_steps: int, momentum: float, multiplier: float
) -> None:
    if not (0 < temperature < np.inf and 1 <= multiplier < np.inf):
        raise ValueError(
            f"`temperature` must be positive and `multiplier` at least 1, got {temperature} and "
            f"{multiplier}"
        )
    if not (0 <= share <= 1 and 0 <= momentum < 1 and n_steps >= 1):
        raise ValueError(
            "`share` must lie in [0, 1], `momentum` in [0, 1) and `n_steps` be at least 1, got "
            f"{share}, {momentum} and {n_steps}"
        )
