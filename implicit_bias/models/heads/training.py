r"""Training of exits that teach one another: algorithm 6.1, as its text means it.

As printed, line 10 hands teachers that line 8 has tempered to a loss that tempers them again: their
temperature would be tau squared. And (6.4) divides by the number of teachers of an exit, which is 0
for the last. Here teachers are tempered once, and an exit without one learns from labels alone.

The loop is one of its own, not that of `training.loop`, where a loss is one of weights and data
and steps are those of a trainer of the catalogue: here teachers move along with their pupils, the
last step raises the temperature, and steps are Nesterov's or Adam's. Heads of a fixed teacher and
temperature do go through that loop, in `compare --model heads`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, log_softmax, softmax

from ..._support.doors import door, parameters
from ..._support.kinds import between, count, fraction, positive
from ..._support.solve import Array, to_numpy
from ...data.arrays import Floats
from ...networks.exits import Trunk
from ...networks.protocols import check_inputs


@dataclass(frozen=True, eq=False)
class HeadsRun:
    """Trained heads, and the course of their training.

    Attributes
    ----------
    weights : tuple of (K, D_m) arrays
        Weights of every head after training.
    loss : (n_steps,) array
        Loss before every step.
    temperature : (n_steps,) array
        Temperature of every step.
    confidence : (n_steps, 2) array
        Mean confidence of the teachers, at temperature 1 and at that of the step.
    """

    weights: tuple[Floats, ...]
    loss: Floats
    temperature: Floats
    confidence: Floats


@parameters(temperature=positive, share=between(0, 1), n_steps=count(1))
@dataclass(frozen=True)
class _Schedule:
    """Settings that both kinds of training share, under the names of the arguments."""

    temperature: float
    share: float
    n_steps: int
    most_confident: float | None
    multiplier: float
    later_teach: bool = False

    def __post_init__(self) -> None:
        if self.multiplier < 1:
            raise ValueError(f"`multiplier` must be at least 1, got {self.multiplier}")


def distillation_loss(teacher: Tensor, student: Tensor, temperature: float) -> Tensor:
    """Return the mean over samples of `-tau^2 sum_k p_k log softmax(s / tau)_k`.

    Here s are the student's logits, t the teacher's, and p = softmax(t / tau).

    Parameters
    ----------
    teacher, student : (n, K) tensors
        Logits, both at temperature 1. No gradient goes to the teacher.
    temperature : float
        tau, positive.

    Returns
    -------
    () tensor
    """
    taught = softmax(teacher.detach() / temperature, dim=1)
    return -(temperature**2) * (taught * log_softmax(student / temperature, dim=1)).sum(1).mean()


def exits_loss(
    logits: Sequence[Tensor],
    labels: Tensor,
    *,
    teachers: Sequence[Sequence[Tensor]],
    temperature: float,
    share: float,
) -> Tensor:
    """Return the mean over exits of `share` cross entropy plus `1 - share` distillation loss.

    Parameters
    ----------
    logits : sequence of (n, K) tensors
        Logits of each exit.
    labels : (n,) tensor
        Classes from 0; -1 for samples without a label.
    teachers : sequence of sequences of (n, K) tensors
        Logits of each exit's teachers; for an exit without any the term is left out.
    temperature : float
        tau, positive.
    share : float
        Weight of hard labels, in [0, 1].

    Returns
    -------
    () tensor

    References
    ----------
    Phuong, "Underspecification in Deep Learning" (2021), equations (6.1) to (6.6).
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
    """Return the largest probability of the teachers' tempered mean, averaged over samples."""
    tempered = [softmax(t.detach() / temperature, dim=1) for t in teachers]
    return float(torch.stack(tempered).mean(dim=0).amax(dim=1).mean())


@door(
    features="n _D: one row a sample",
    labels="n: one a sample",
    teacher="n K: one row of logits a sample",
)
def train_exit_heads(
    features: Sequence[Array],
    labels: Array,
    *,
    teacher: Array | None = None,
    temperature: float = 1.0,
    share: float = 0.5,
    n_steps: int = 1000,
    momentum: float = 0.9,
    most_confident: float | None = None,
    multiplier: float = 1.05,
) -> HeadsRun:
    """Train all heads at once from zero, by full-batch descent with Nesterov's momentum.

    The learning rate of a head is 1 over a bound of its curvature. The predicted limits are not
    used.

    Parameters
    ----------
    features : sequence of (n, D_m) arrays
        Features of the samples at each exit.
    labels : (n,) ints
        Classes from 0; -1 for samples without a label.
    teacher : (n, K) array, optional
        Frozen logits of a teacher. Without them the last exit teaches the others, and learns from
        labels alone itself.
    temperature : float
        Temperature of the first step, positive.
    share : float
        Weight of hard labels, in [0, 1].
    n_steps : int
        Number of steps.
    momentum : float
        Nesterov's momentum, in [0, 1).
    most_confident : float, optional
        mu: the temperature is multiplied after every step whose teachers are more confident.
    multiplier : float
        Factor of the temperature, at least 1.

    Returns
    -------
    HeadsRun

    Raises
    ------
    ValueError
        If there is neither a label nor a teacher, or a number is out of range.

    References
    ----------
    Phuong, "Underspecification in Deep Learning" (2021), algorithm 6.1 on a frozen trunk.

    Examples
    --------
    >>> teacher = [[2.0, 0.0], [0.0, 4.0]]
    >>> trained = ib.heads.train_exit_heads(
    ...     [np.eye(2)], [-1, -1], teacher=teacher, share=0.0, n_steps=600
    ... )
    >>> trained.weights[0].round(3).tolist()
    [[1.0, -2.0], [-1.0, 2.0]]
    """
    schedule = _Schedule(temperature, share, n_steps, most_confident, multiplier)
    fraction("momentum", momentum)
    phis = [torch.as_tensor(phi, dtype=torch.float64) for phi in features]
    if not phis:
        raise ValueError("`features` must be arrays (n, D), one an exit, got none")
    classes = _classes(labels)
    fixed = None if teacher is None else torch.as_tensor(teacher, dtype=torch.float64)
    n_classes = _count(classes) if fixed is None else int(fixed.shape[1])
    heads = [_zeros(n_classes, phi.shape[1]) for phi in phis]
    groups = [
        {"params": [head], "lr": _rate(phi, classes, len(phis))}
        for head, phi in zip(heads, phis, strict=True)
    ]
    optimizer = torch.optim.SGD(groups, momentum=momentum, nesterov=momentum > 0)
    return _descend(lambda: phis, heads, optimizer, classes, fixed, schedule)


@door(X="n D", labels="n: one a sample")
def train_multi_exit(
    trunk: Trunk,
    X: Array,
    labels: Array,
    *,
    temperature: float = 1.0,
    share: float = 0.5,
    n_steps: int = 300,
    learning_rate: float = 3e-3,
    most_confident: float | None = None,
    multiplier: float = 1.05,
    later_teach: bool = False,
) -> HeadsRun:
    """Train a trunk and a head at each of its layers together, on full batches.

    No limit of this training is known. Steps are Adam's, the learning rate a tenth after a half of
    them and a hundredth after three quarters: the thesis takes Nesterov's on a trunk with batch
    normalisation, without which gradients that grow with tau^2 leave ReLU units inactive.

    Parameters
    ----------
    trunk : Trunk
        The trunk; its weights are changed in place.
    X : (n, D) array
        Inputs.
    labels : (n,) ints
        Classes from 0; -1 for samples without a label, which the teachers alone label: (6.6).
    temperature : float
        Temperature of the first step, positive.
    share : float
        Weight of hard labels in (0, 1]: 1/2 weighs labels and teachers equally, (6.1), and 1 is
        the exit-wise loss (6.7).
    n_steps : int
        Number of steps.
    learning_rate : float
        Adam's, of the first half of the steps; positive.
    most_confident : float, optional
        mu: the temperature is multiplied after every step whose teachers are more confident.
    multiplier : float
        Factor of the temperature, at least 1.
    later_teach : bool
        If True all later exits teach an exit, else the last one alone.

    Returns
    -------
    HeadsRun

    Raises
    ------
    ValueError
        If no sample has a label, or a number is out of range.

    References
    ----------
    Phuong, "Underspecification in Deep Learning" (2021), algorithm 6.1.

    Examples
    --------
    >>> trunk = ib.heads.Trunk(2, widths=(3, 4), random_state=0)
    >>> trained = ib.heads.train_multi_exit(trunk, [[1.0, 0.0], [0.0, 1.0]], [0, 1], n_steps=5)
    >>> [W.shape for W in trained.weights], trained.loss.shape
    ([(2, 3), (2, 4)], (5,))
    """
    schedule = _Schedule(temperature, share, n_steps, most_confident, multiplier, later_teach)
    if not (share > 0 and 0 < learning_rate < np.inf):
        raise ValueError(
            "`share` and `learning_rate` must be positive, since the last exit has labels alone, "
            f"got {share} and {learning_rate}"
        )
    inputs = torch.tensor(np.asarray(X), dtype=torch.float64)
    check_inputs(inputs, trunk.layers[0], trunk.layers[0].shape[1])
    classes = _classes(labels)
    heads = [_zeros(_count(classes), int(weight.shape[0])) for weight in trunk.layers]
    optimizer = torch.optim.Adam([*trunk.parameters(), *heads], lr=learning_rate)
    falling = torch.optim.lr_scheduler.MultiStepLR(optimizer, [n_steps // 2, 3 * n_steps // 4])
    return _descend(lambda: trunk(inputs), heads, optimizer, classes, None, schedule, falling.step)


def _descend(
    features: Callable[[], Sequence[Tensor]],
    heads: Sequence[Tensor],
    optimizer: torch.optim.Optimizer,
    classes: Tensor,
    fixed: Tensor | None,
    schedule: _Schedule,
    after: Callable[[], None] = lambda: None,
) -> HeadsRun:
    """Iterate lines 3 to 14 of algorithm 6.1, a full batch at a time."""
    tau, mu = schedule.temperature, schedule.most_confident
    losses, temperatures, sure = [], [], []
    for _ in range(schedule.n_steps):
        logits = [phi @ head.T for phi, head in zip(features(), heads, strict=True)]
        taught = _teachers(logits, fixed, later=schedule.later_teach)
        loss = exits_loss(logits, classes, teachers=taught, temperature=tau, share=schedule.share)
        losses.append(float(loss.detach()))
        temperatures.append(tau)
        sure.append([confidence(taught[0], t) if taught[0] else np.nan for t in (1.0, tau)])
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        after()
        if mu is not None and sure[-1][1] > mu:
            tau *= schedule.multiplier
    weights = tuple(head.detach().numpy() for head in heads)
    return HeadsRun(weights, np.array(losses), np.array(temperatures), np.array(sure))


def _teachers(
    logits: Sequence[Tensor], fixed: Tensor | None, *, later: bool = False
) -> list[list[Tensor]]:
    if fixed is not None:
        return [[fixed]] * len(logits)
    first = range(1, len(logits) + 1) if later else [-1] * (len(logits) - 1) + [len(logits)]
    return [list(logits[m:]) for m in first]


def _classes(labels: Array) -> Tensor:
    given = to_numpy(labels)
    if given.dtype.kind not in "iu":
        raise ValueError(f"`labels` must be integers, got dtype {given.dtype}")
    return torch.tensor(given, dtype=torch.int64)


def _zeros(n_classes: int, n_features: int) -> Tensor:
    return torch.zeros(n_classes, n_features, dtype=torch.float64, requires_grad=True)


def _count(classes: Tensor) -> int:
    n_classes = int(classes.max()) + 1
    if n_classes < 2:
        raise ValueError(f"`labels` must name two classes at least, got {n_classes}")
    return n_classes


def _rate(phi: Tensor, labels: Tensor, n_exits: int) -> float:
    """Return 1 over a bound of a head's curvature: softmax's is 1/2 at most, and tau cancels."""
    spread = [
        float(torch.linalg.matrix_norm(rows, 2)) ** 2 / len(rows)
        for rows in (phi, phi[labels >= 0])
        if len(rows)
    ]
    return 2 * n_exits / max(spread)
