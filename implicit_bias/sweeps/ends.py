"""Ends of a cell before its run is done: a time limit, or a function of the user's."""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

from .._support.interrupts import handled
from ..runs.progress import Progress
from .records import TIME_LIMIT

StepCallback = Callable[[int, int, float], object]


class Ends:
    """What may end one run early, as an interrupt would: what was found by then stays.

    Parameters
    ----------
    time_limit : float, optional
        Seconds.
    callback : callable, optional
        ``callback(step, n_steps, log_loss)`` along training; it ends it by StopIteration.

    Attributes
    ----------
    reason : str or None
        What has ended the run.
    """

    def __init__(self, time_limit: float | None, callback: StepCallback | None) -> None:
        self._limit, self._callback = time_limit, callback
        self._end = math.inf
        self.reason: str | None = None

    @contextmanager
    def watching(self) -> Iterator[Progress]:
        """Begin the time, and yield the progress to run with.

        The run sees a KeyboardInterrupt: in the main thread when the time is over, elsewhere when
        it tells its progress then.
        """
        if self._limit is None:
            yield _Watched(ends=self)
            return
        self._end = time.monotonic() + self._limit
        watched = _Watched(
            stage=lambda text: self.check(), advance=lambda done, of: self.check(), ends=self
        )
        with self._alarmed(self._limit):
            yield watched

    def step(self, step: int, n_steps: int, log_loss: float) -> None:
        """Call the user's function after a step, and end the run if it says so."""
        if self._callback is None:
            return
        try:
            self._callback(step, n_steps, log_loss)
        except StopIteration as stop:
            self.reason = f"the callback, after step {step}" + f": {stop}" * bool(str(stop))
            raise KeyboardInterrupt from None

    def check(self) -> None:
        """Raise KeyboardInterrupt once the time is over."""
        if time.monotonic() >= self._end:
            self._over()
            raise KeyboardInterrupt

    @contextmanager
    def _alarmed(self, seconds: float) -> Iterator[None]:
        """Interrupt the run after so many seconds, where a timer can interrupt Python.

        By the signal of Ctrl-C, at which training ends between two steps, and which here is none
        of the user's. Where it is ignored, as in the background of a shell, `check` ends the run.
        """
        usual = signal.getsignal(signal.SIGINT)
        main = threading.current_thread() is threading.main_thread()
        if not (main and callable(usual) and hasattr(signal, "setitimer")):
            yield
            return
        own = False

        def interrupt(number: int, frame: FrameType | None) -> None:
            """Pass on an interrupt of the user's."""
            if own:
                raise KeyboardInterrupt
            usual(number, frame)

        def alarm(number: int, frame: FrameType | None) -> None:
            """Interrupt the run."""
            nonlocal own
            if self.reason is None:
                self._over()
                own = True
                signal.raise_signal(signal.SIGINT)

        with handled(signal.SIGINT, interrupt), handled(signal.SIGALRM, alarm):
            try:
                signal.setitimer(signal.ITIMER_REAL, seconds)
                yield
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)

    def _over(self) -> None:
        self.reason = f"{TIME_LIMIT} {self._limit:g} s"
        self._end = math.inf  # what was trained is still compared


@dataclass(frozen=True, kw_only=True)
class _Watched(Progress):
    """Progress at which a run may end."""

    ends: Ends

    def training(
        self, *before: Callable[[int, int, float], None] | None
    ) -> Callable[[int, int, float], None]:
        """Return the callback of `Progress`, before it that of the user."""
        return super().training(*before, self.ends.step)
