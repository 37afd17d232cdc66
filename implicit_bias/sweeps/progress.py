"""Progress where there is no terminal: a line now and then, with the time that is left."""

from __future__ import annotations

import time
from collections.abc import Callable

from ..runs.progress import Progress

__all__ = ["Lines"]

SECONDS = 10.0  # between two lines


class Lines:
    """Lines about a number of cells.

    Parameters
    ----------
    say : callable
        `say(text)` prints a line.
    clock : callable
        Of seconds.
    """

    def __init__(
        self, say: Callable[[str], None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._say, self._clock = say, clock
        self._begun = self._said = clock()

    def progress(self) -> Progress:
        """Return the progress of a sweep, as lines."""
        return Progress(stage=self._say, advance=self._advance)

    def _advance(self, done: int, of: int) -> None:
        now = self._clock()
        if done == 0:
            self._begun = self._said = now
        elif now - self._said >= SECONDS or done == of:
            left = (now - self._begun) / done * (of - done)
            self._say(f"{done} of {of} cells, about {_in_words(left)} left")
            self._said = now


def _in_words(seconds: float) -> str:
    minutes = seconds / 60
    if minutes < 1.5:
        return f"{seconds:.0f} s"
    return f"{minutes:.0f} min" if minutes < 90 else f"{minutes / 60:.1f} h"
