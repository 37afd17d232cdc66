"""Signals: handled otherwise for a while, and Ctrl-C of a command while it starts and ends.

There Python would print a traceback.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType

INTERRUPTED = 130


def leave_at_once() -> None:
    """From now on let Ctrl-C end the process in one word, unless something else handles it."""
    with contextlib.suppress(ValueError):  # not the main thread, which alone is sent signals
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, _leave)


@contextlib.contextmanager
def raised() -> Iterator[None]:
    """Let Ctrl-C raise KeyboardInterrupt as usual where `leave_at_once` was called before."""
    if signal.getsignal(signal.SIGINT) is not _leave:
        yield
        return
    with handled(signal.SIGINT, signal.default_int_handler):
        yield


@contextlib.contextmanager
def handled(
    number: signal.Signals, handle: Callable[[int, FrameType | None], None]
) -> Iterator[None]:
    """Handle a signal so for a while, in the main thread, which alone is sent signals."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    usual = signal.signal(number, handle)
    try:
        yield
    finally:
        signal.signal(number, usual)


def _leave(number: int, frame: FrameType | None) -> None:
    # Nothing is open yet, or everything closed, and what Python would do may be interrupted again.
    os.write(2, b"interrupted\n")
    os._exit(INTERRUPTED)
