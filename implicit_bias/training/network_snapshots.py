"""Copies of a network at chosen steps of its training."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch


class NetworkSnapshots:
    """A callback for `train` that keeps copies of the network at chosen steps.

    The trainer reports at its checkpoints and about 100 times in between: each chosen step is
    taken at the first report at or after it, and two steps taken by one report leave one copy.

    Parameters
    ----------
    network : Module
        The one that is trained.
    steps : iterable of int
        When to take a copy.

    Examples
    --------
    `snapshots = NetworkSnapshots(network, [0, 100]); train(network, ..., callback=snapshots)`; then
    `for step, network_then in snapshots` gives the copies.
    """

    def __init__(self, network: torch.nn.Module, steps: Iterable[int]) -> None:
        self._network = network
        self._due = sorted(set(steps))
        self._taken: list[tuple[int, torch.nn.Module]] = []

    def __call__(self, step: int, n_steps: int, log_loss: float) -> None:
        """Take a copy if a chosen step has been reached since the last one."""
        if self._due and self._due[0] <= step:
            self._due = [due for due in self._due if due > step]
            self.take(step)

    def take(self, step: int) -> None:
        """Copy the network as it is now, unless there is a copy of this step."""
        if step not in self.steps:
            self._taken.append((step, copy.deepcopy(self._network)))

    @property
    def steps(self) -> list[int]:
        """The steps at which copies have been taken."""
        return [step for step, _ in self._taken]

    def __len__(self) -> int:
        return len(self._taken)

    def __iter__(self) -> Iterator[tuple[int, torch.nn.Module]]:
        return iter(self._taken)


def logarithmic_steps(n_steps: int, n: int) -> list[int]:
    """Return at most `n` steps from 0 to `n_steps`, apart by equal factors after 0.

    Raises
    ------
    ValueError
        If `n_steps` is below 1 or `n` below 2.
    """
    if n_steps < 1 or n < 2:
        raise ValueError(f"`n_steps` must be at least 1 and `n` 2, got {n_steps} and {n}")
    factor = n_steps ** (1 / (n - 1))
    return sorted({0, n_steps, *(round(factor**k) for k in range(1, n - 1))})
