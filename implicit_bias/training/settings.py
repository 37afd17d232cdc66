"""How to train."""

import math
from dataclasses import dataclass

import numpy as np

from .objectives import get_loss
from .trainers import get_trainer

__all__ = ["TrainingSettings"]


@dataclass(frozen=True)
class TrainingSettings:
    r"""How to train; the defaults are those of the published GLN experiment (seed 004, A.2).

    Parameters
    ----------
    trainer : str
        A name in `TRAINERS`.
    loss : {"logistic", "exponential"}
    batch_size : int or None
        Samples a step: each epoch is a new permutation cut into batches, the last one as small as
        it falls. None: the full training set, every step; the only choice of every trainer but
        "constant", since batches that each divide by a loss of their own have another limit.
    schedule : tuple of (steps, learning rate)
        Phases, one after the other. A rate of None leaves the step size to the trainer, which
        chooses it by itself; "constant" needs numbers, "dual" and "annealed" take None alone.
    momentum : float
        Heavy-ball momentum in [0, 1) of "constant" and "normalised".
    n_checkpoints : int
        Rows of the trajectory at most, spaced logarithmically, the first and last step included.
    random_state : int or numpy Generator
        Order of the mini-batches; drawn on the CPU, so the same for every device.

    Raises
    ------
    ValueError
        If a setting is out of its range, or not one that the trainer has.
    """

    trainer: str = "constant"
    loss: str = "logistic"
    batch_size: int | None = 128
    schedule: tuple[tuple[int, float | None], ...] = ((1600, 0.04), (1600, 0.01))
    momentum: float = 0.0
    n_checkpoints: int = 40
    random_state: int | np.random.Generator = 0

    def __post_init__(self) -> None:
        get_loss(self.loss)
        if self.batch_size is not None and self.batch_size < 1:
            raise ValueError(f"`batch_size` must be at least 1 or None, got {self.batch_size}")
        phases = tuple(
            (int(steps), None if rate is None else float(rate)) for steps, rate in self.schedule
        )
        if not phases or not all(
            steps > 0 and (rate is None or 0 < rate < math.inf) for steps, rate in phases
        ):
            raise ValueError(
                "`schedule` must be pairs (steps, learning rate), at least one, all numbers "
                f"positive and finite, a rate None where the trainer finds its own, got "
                f"{self.schedule}"
            )
        object.__setattr__(self, "schedule", phases)
        if not 0 <= self.momentum < 1:
            raise ValueError(f"`momentum` must lie in [0, 1), got {self.momentum}")
        if self.n_checkpoints < 2:
            raise ValueError(f"`n_checkpoints` must be at least 2, got {self.n_checkpoints}")
        trainer = get_trainer(self.trainer)
        if self.batch_size is not None and trainer.full_batch:
            raise ValueError(
                f"trainer {self.trainer!r} works with the loss over all samples, so it needs "
                f"batch_size=None (full batch), got batch_size={self.batch_size}"
            )
        found = {rate is None for _, rate in phases}
        if not found <= trainer.rates:
            wanted = (
                "numbers"
                if trainer.rates == {False}
                else "None (auto on the command line): it finds its own"
            )
            raise ValueError(
                f"the learning rates of trainer {self.trainer!r} must be {wanted}, got a schedule "
                f"of {self.schedule}"
            )
        if len(found) > 1:
            raise ValueError(
                "learning rates must be numbers in every phase or None in every phase, got "
                f"{self.schedule}"
            )
        if self.momentum and not trainer.takes_momentum:
            raise ValueError(
                f"trainer {self.trainer!r} has a momentum of its own, got momentum={self.momentum}"
            )

    @property
    def n_steps(self) -> int:
        """Number of gradient steps of all phases together."""
        return sum(steps for steps, _ in self.schedule)

    @property
    def automatic(self) -> bool:
        """Whether the trainer finds its step sizes by itself."""
        return self.schedule[0][1] is None

    def checkpoints(self) -> list[int]:
        """Return the increasing steps at which a trajectory has a row, 0 and `n_steps` among them.

        Spaced logarithmically, since directions converge like 1 / log(step).
        """
        spaced = np.geomspace(self.n_steps, 1, self.n_checkpoints - 1).round().astype(int)
        return sorted({0, self.n_steps, *spaced.tolist()})
