"""A gating that does something else than gates, for what may happen to a cell of a sweep."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


def no_such_luck() -> None:
    raise RuntimeError("no such luck")


def interrupt() -> None:
    raise KeyboardInterrupt


class Trap:
    """Two hyperplanes, which first do `act` in the run with so many training samples.

    Only after all cells have been checked: `spring` is the progress of the sweep.
    """

    def __init__(self, size: int, act: Callable[[], Any]) -> None:
        self.size, self.act, self.set = size, act, False

    def spring(self, stage: str, done: int, of: int) -> None:
        self.set = True

    def transform(self, X: Any) -> Any:
        if self.set and len(X) == self.size:
            self.act()
        return (np.asarray(X)[:, [20, 42]] > 0.3).astype(int)
