"""Mini-batches: the samples of each step."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from ..networks.placed_data import GatedData


class Batches:
    """Batches of samples: every epoch is a new permutation, cut into parts of equal size.

    Parameters
    ----------
    data : GatedData
    batch_size : int or None
        Samples a step; None or 0 for all of them.
    random_state : int or numpy Generator

    Attributes
    ----------
    size : int
        Samples of a step.
    """

    def __init__(
        self, data: GatedData, batch_size: int | None, random_state: int | np.random.Generator
    ) -> None:
        n = len(data.y)
        self._data = data
        self.size = min(batch_size or n, n)
        self._rng = np.random.default_rng(random_state)
        self._epoch: Any = None
        self._order: torch.Tensor | None = None
        self._position = 0
        self._start_epoch()

    def next(self) -> GatedData:
        """Return the samples of the next step."""
        if self.size == len(self._data.y):
            return self._data
        order = self._order
        if order is None or self._position >= len(self._data.y):
            self._start_epoch()
            order = self._order = self._permutation()
        index = order[self._position : self._position + self.size]
        self._position += self.size
        return self._data.take(index)

    def _start_epoch(self) -> None:
        self._epoch = self._rng.bit_generator.state
        self._order, self._position = None, 0

    def _permutation(self) -> torch.Tensor:
        order = self._rng.permutation(len(self._data.y))
        return torch.from_numpy(order).to(self._data.y.device)

    @property
    def state(self) -> dict[str, Any]:
        """Numbers and texts on which all further batches depend; may be set to resume a run."""
        begun = self._order is not None
        return {"generator": self._epoch, "begun": begun, "position": self._position}

    @state.setter
    def state(self, state: dict[str, Any]) -> None:
        """Go on from the state of an earlier run."""
        self._rng.bit_generator.state = state["generator"]
        self._start_epoch()
        if state["begun"]:
            self._order = self._permutation()
            self._position = state["position"]
