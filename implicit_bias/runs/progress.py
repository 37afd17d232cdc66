"""The progress of a run: calls of functions, a bar, or lines with the time that is left."""

from __future__ import annotations

import contextlib
import inspect
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from .._support.files import harmless

ProgressCallback = Callable[[str, int, int], None]
SECONDS = 10.0  # between two lines
FEW = 8  # cells behind the first ones, from which on the time that is left is known


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
        """Return a callback for `train` that advances, after all of `before` but None."""

        def callback(step: int, n_steps: int, log_loss: float) -> None:
            """Advance the progress after the callbacks before it."""
            for call in before:
                if call is not None:
                    call(step, n_steps, log_loss)
            self.advance(step, n_steps)

        return callback


@contextlib.contextmanager
def progress_of(wanted: bool | ProgressCallback | Progress) -> Iterator[Progress]:
    """Open progress as it is asked for: none, a bar, or calls of `wanted(stage, done, of)`.

    A stage begins with `done` and `of` 0.

    Raises
    ------
    TypeError
        If it is asked for otherwise, also by a function that takes other arguments.
    """
    if isinstance(wanted, Progress):
        yield wanted
    elif wanted is True:
        with bar() as progress:
            yield progress
    elif callable(wanted) and not isinstance(wanted, type) and _takes_three(wanted):
        yield _calls(wanted)
    elif wanted is False:
        yield Progress()
    else:
        raise TypeError(
            "`progress` must be True, False or a function of (stage, done, of), got "
            f"{getattr(wanted, '__name__', type(wanted).__name__)}"
        )


def _takes_three(function: Callable[..., Any]) -> bool:
    """Return whether a function can be called as `ProgressCallback`, as far as it says."""
    try:
        inspect.signature(function).bind("", 0, 0)
    except TypeError:
        return False
    except ValueError:  # of builtins that state no signature
        return True
    return True


@contextlib.contextmanager
def bar() -> Iterator[Progress]:
    """Open a bar on stderr, or below the cell of a notebook, that goes when the run ends."""
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import Progress as Bar

    with Bar(console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task("starting", total=None)
        yield Progress(
            stage=lambda text: shown.reset(task, total=None, description=escape(harmless(text))),
            advance=lambda done, of: shown.update(task, completed=done, total=of),
        )


def _calls(function: ProgressCallback) -> Progress:
    """Return progress as calls of a user's function, which gets the stage each time."""
    current = ""

    def begin(text: str) -> None:
        """Begin a stage."""
        nonlocal current
        current = text
        function(text, 0, 0)

    return Progress(stage=begin, advance=lambda done, of: function(current, done, of))


class Lines:
    """Lines about a number of cells.

    Parameters
    ----------
    say : callable
        `say(text)` prints a line.
    clock : callable
        Return the time in seconds.
    """

    def __init__(
        self, say: Callable[[str], None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._say, self._clock = say, clock
        self._said = clock()
        self._first: tuple[float, int] | None = None  # when cells were done first, and how many

    def progress(self) -> Progress:
        """Return the progress of a sweep, as lines."""
        return Progress(stage=self._say, advance=self._advance)

    def _advance(self, done: int, of: int) -> None:
        now = self._clock()
        if done == 0:
            self._said, self._first = now, None
            return
        # What processes take to begin is no cell's time: it ends where the first ones are done.
        begun, before = self._first = self._first or (now, done)
        if now - self._said >= SECONDS or done == of:
            left = (now - begun) / max(done - before, 1) * (of - done)
            known = done == of or done - before >= FEW
            about = f", about {_in_words(left)} left" if known else ""
            self._say(f"{done} of {of} cells{about}")
            self._said = now


def _in_words(seconds: float) -> str:
    minutes = seconds / 60
    if minutes < 1.5:
        return f"{seconds:.0f} s"
    return f"{minutes:.0f} min" if minutes < 90 else f"{minutes / 60:.1f} h"
