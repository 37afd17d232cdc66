"""How a run tells of its progress."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["Progress"]


@dataclass(frozen=True)
class Progress:
    """Callbacks of a run.

    Attributes
    ----------
    stage, advance : callable
        `stage(text)` once, `advance(done, of)` along it.
    """

    stage: Callable[[str], None] = lambda text: None
    advance: Callable[[int, int], None] = lambda done, of: None

    def training(
        self, *before: Callable[[int, int, float], None] | None
    ) -> Callable[[int, int, float], None]:
        """A callback for `train` that advances, after the callbacks `before` that there are."""

        def callback(step: int, n_steps: int, log_loss: float) -> None:
            for call in before:
                if call is not None:
                    call(step, n_steps, log_loss)
            self.advance(step, n_steps)

        return callback
