"""Signals that ask a run to end, held back until its state is whole."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Iterator
from types import FrameType

from .._support.interrupts import handled


@contextlib.contextmanager
def deferred_interrupts() -> Iterator[Callable[[], None]]:
    """Defer Ctrl-C and SIGTERM until the function that this context yields is called.

    It raises KeyboardInterrupt for either. A second signal is not deferred, nor is any outside
    of the main thread, where Python handles none, or one that the process ignores.
    """
    received = False

    def defer(number: int, frame: FrameType | None) -> None:
        """Note the first signal; raise for the second."""
        nonlocal received
        if received:
            raise KeyboardInterrupt
        received = True

    def check() -> None:
        """Raise KeyboardInterrupt if a signal has come."""
        if received:
            raise KeyboardInterrupt

    with contextlib.ExitStack() as handlers:
        for number in (signal.SIGINT, signal.SIGTERM):
            usual = signal.getsignal(number)
            # By default SIGTERM ends the process outside of Python.
            if callable(usual) or (number == signal.SIGTERM and usual == signal.SIG_DFL):
                handlers.enter_context(handled(number, defer))
        yield check
