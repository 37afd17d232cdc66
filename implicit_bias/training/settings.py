"""How to train."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any

from .catalogue import Trainer, check_loss, get_trainer

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

__all__ = ["Phases", "TrainingSettings"]

Phases = tuple[tuple[int, float | None], ...]

# A trajectory counts steps in float64, which knows every whole number up to here.
MOST_STEPS = 2**53


@dataclass(frozen=True)
class TrainingSettings:
    r"""How to train; the defaults are those of the published GLN experiment.

    What is None is the trainer's own choice in `catalogue.TRAINERS`, and is filled in.

    Parameters
    ----------
    trainer : str
        A name in `catalogue.TRAINERS`.
    loss : str
        A name in `catalogue.LOSSES`.
    batch_size : int or None
        Samples a step: each epoch is a new permutation cut into batches, the last one as small as
        it falls. 0: the full training set, every step; the only choice of every trainer but
        "constant", since batches that each divide by a loss of their own have another limit.
    schedule : tuple of (steps, learning rate), or None
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

    References
    ----------
    S. Lippl, L. F. Abbott, S. Chung, "The implicit bias of gradient descent on generalized gated
    linear networks", appendix A.2.
    """

    trainer: str = "constant"
    loss: str = "logistic"
    batch_size: int | None = None
    schedule: Phases | None = None
    momentum: float = 0.0
    n_checkpoints: int = 40
    random_state: int | np.random.Generator = 0

    def __post_init__(self) -> None:
        trainer = get_trainer(self.trainer)
        check_loss(self.loss, self.trainer)
        size = trainer.batch_size if self.batch_size is None else self.batch_size
        phases = trainer.schedule if self.schedule is None else _read(self.schedule)
        object.__setattr__(self, "batch_size", _whole("`batch_size`", size, least=0))
        object.__setattr__(self, "schedule", phases)
        _whole("`n_checkpoints`", self.n_checkpoints, least=2)
        if not 0 <= self.momentum < 1:
            raise ValueError(f"`momentum` must lie in [0, 1), got {self.momentum}")
        _check_fit(self, trainer)

    @property
    def phases(self) -> Phases:
        """The schedule, whoever chose it."""
        return self.schedule or ()

    @property
    def n_steps(self) -> int:
        """Number of gradient steps of all phases together."""
        return sum(steps for steps, _ in self.phases)

    def split_phases(self, at: int) -> tuple[Phases, Phases]:
        """Return the phases of the first `at` steps and those of the rest, either may be empty.

        Examples
        --------
        >>> TrainingSettings(schedule=((60, 0.05), (40, 0.01))).split_phases(70)
        (((60, 0.05), (10, 0.01)), ((30, 0.01),))
        """
        first, second, start = [], [], 0
        for steps, rate in self.phases:
            early = min(max(at - start, 0), steps)
            first.append((early, rate))
            second.append((steps - early, rate))
            start += steps
        before, after = (tuple(one for one in part if one[0] > 0) for part in (first, second))
        return before, after

    @property
    def automatic(self) -> bool:
        """Whether the trainer finds its step sizes by itself."""
        return self.phases[0][1] is None

    def checkpoints(self) -> list[int]:
        """Return the increasing steps at which a trajectory has a row, 0 and `n_steps` among them.

        Spaced logarithmically: what a network tends to shows over factors of the steps.
        """
        import numpy as np

        spaced = np.geomspace(self.n_steps, 1, self.n_checkpoints - 1).round().astype(int)
        return sorted({0, self.n_steps, *spaced.tolist()})

    def flow_times(self, step: ArrayLike) -> NDArray[np.float64]:
        """Return the times (T,) of the gradient flow that so many steps (T,) approximate.

        Examples
        --------
        >>> settings = TrainingSettings(schedule=((10, 0.5), (10, 0.1)))
        >>> settings.flow_times([0, 10, 15]).tolist()
        [0.0, 5.0, 5.5]
        """
        import numpy as np

        left = np.asarray(step, dtype=np.float64)
        times = np.zeros_like(left)
        for count, rate in self.phases:
            times += np.clip(left, 0, count) * (rate or 0.0)
            left = left - count
        return times


def _read(schedule: Any) -> Phases:
    """A schedule as it was given, checked."""
    wanted = "`schedule` must be pairs (steps, learning rate) such as ((1600, 0.04), (1600, 0.01))"
    try:
        pairs = [(steps, rate) for steps, rate in schedule]
    except (TypeError, ValueError) as error:
        raise ValueError(f"{wanted}, got {schedule!r}") from error
    if not pairs:
        raise ValueError(f"{wanted}, at least one; got none")
    counts = _counts("the steps of `schedule`", [steps for steps, _ in pairs])
    rates = [
        None if rate is None else _rate("the learning rates of `schedule`", rate)
        for _, rate in pairs
    ]
    return tuple(zip(counts, rates, strict=True))


def _check_fit(settings: TrainingSettings, trainer: Trainer) -> None:
    """See that the trainer has what the settings ask of it."""
    name = settings.trainer
    if settings.batch_size and trainer.full_batch:
        raise ValueError(
            f"trainer {name!r} works with the loss over all samples, so it needs batch_size=0 "
            f"(full batch), got batch_size={settings.batch_size}"
        )
    found = {rate is None for _, rate in settings.phases}
    if len(found) > 1:
        raise ValueError(
            "learning rates must be numbers in every phase or None in every phase, got "
            f"{settings.schedule}"
        )
    if not found <= trainer.rates:
        wanted = "None (auto on the command line): it finds its own"
        if trainer.rates == {False}:
            wanted = "numbers"
        raise ValueError(
            f"the learning rates of trainer {name!r} must be {wanted}, got a schedule of "
            f"{settings.schedule}"
        )
    if settings.momentum and not trainer.takes_momentum:
        raise ValueError(
            f"trainer {name!r} has a momentum of its own, got momentum={settings.momentum}"
        )


def _counts(name: str, steps: Sequence[int]) -> list[int]:
    counts = [_whole(name, count, least=1) for count in steps]
    if not counts or sum(counts) > MOST_STEPS:
        raise ValueError(
            f"{name} must be at least one number, together at most {MOST_STEPS} (2^53, as far as "
            f"a trajectory can count), got {', '.join(map(str, counts)) or 'none'}"
        )
    return counts


def _whole(name: str, value: Any, *, least: int) -> int:
    try:
        number = operator.index(value)
    except TypeError as error:
        raise ValueError(f"{name} must be a whole number, got {value!r}") from error
    if number < least:
        raise ValueError(f"{name} must be at least {least}, got {number}")
    return number


def _rate(name: str, value: Any) -> float:
    if not isinstance(value, Real) or not 0 < float(value) < math.inf:
        raise ValueError(f"{name} must be positive and finite numbers, got {value!r}")
    return float(value)
