"""What a student begins with: the setup, initial weights, and rates that are stable on its data."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...data.arrays import Floats
from ...runs.setup import Setup
from ...training.settings import TrainingSettings
from .data import TransferTask
from .limit import DistillationLimit
from .losses import mean_loss

# Shares of the largest stable rate: errors of the deep part of the limit are proportional to the
# rate while the weights grow, 2e-4 of it at a fiftieth, and to nothing later.
_EARLY, _LATE = 0.02, 1.0


@dataclass(frozen=True, eq=False, kw_only=True)
class DistillationSetup(Setup):
    """The setup of a run, its learning rates filled in, with its task, start and limit.

    Attributes
    ----------
    task : TransferTask
        Inputs, teacher and held-out inputs.
    start : (D,) or (K, D) array
        Initial end-to-end weights of the student.
    turned : bool
        True if the direction that was drawn is reversed.
    limit : DistillationLimit
        The limit from `start`.
    settings : TrainingSettings
        The settings of training, learning rates included.
    """

    task: TransferTask
    start: Floats
    turned: bool
    limit: DistillationLimit
    settings: TrainingSettings


def draw_start(
    X: Floats, teacher: Floats, scale: float, depth: int, random_state: int
) -> tuple[Floats, bool]:
    """End-to-end weights of length `scale`, like the teacher's, in a random direction, and whether
    that is turned around.

    Of a deep student the direction is turned around where that begins below the loss of 0, the
    assumption of its limit, and the one drawn does not.

    Raises
    ------
    ValueError
        If a deep student is to begin at 0, where it would stay.
    """
    if not 0 <= scale < np.inf or (depth > 1 and scale == 0):
        raise ValueError(
            f"`--init-scale` must be finite and positive, or 0 for `--depth 1`, got {scale:g} at "
            f"depth {depth}: a deep student that begins at 0 stays there"
        )
    direction = np.random.default_rng(random_state).standard_normal(teacher.shape)
    start = np.asarray(scale / np.linalg.norm(direction) * direction)
    losses = [mean_loss(X, w, teacher, "cross-entropy") for w in (start, 0 * start, -start)]
    turned = depth > 1 and losses[2] < losses[1] <= losses[0]
    return (-start if turned else start), turned


def stable_rates(
    X: Floats, depth: int, size: float, n_phases: int, *, of_classes: bool = False
) -> tuple[float, ...]:
    """Learning rates of so many phases, the last at half of what full-batch descent allows.

    Near weights of length `size` the curvature of the mean loss over L layers is at most
    `L max(size, 1)^(2 - 2/L) ||X||^2 / (4 n)`, and twice that of a softmax; rates above
    2 / curvature diverge.
    """
    of_loss = 0.5 if of_classes else 0.25
    spread = np.linalg.norm(X, 2) ** 2 / len(X)
    curvature = of_loss * spread * depth * max(size, 1.0) ** (2 - 2 / depth)
    shares = (_EARLY,) * (n_phases - 1) + ((_LATE,) if n_phases > 1 else (0.1,))
    return tuple(float(f"{share / curvature:.3g}") for share in shares)
