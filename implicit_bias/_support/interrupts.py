"""Ctrl-C of a command where Python would print a traceback: while it starts, and while it ends."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
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
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, _leave)


def _leave(number: int, frame: FrameType | None) -> None:
    # Nothing is open yet, or everything closed, and what Python would do may be interrupted again.
    os.write(2, b"interrupted\n")
    os._exit(INTERRUPTED)
