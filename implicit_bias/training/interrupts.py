"""Signals that ask a run to end, held back until its state is whole."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType

__all__ = ["interrupts_held"]


@contextlib.contextmanager
def interrupts_held() -> Iterator[Callable[[], None]]:
    """Hold Ctrl-C and SIGTERM back until the function that this yields is called.

    It raises KeyboardInterrupt for either. A second signal is not held back, nor is any outside
    of the main thread, where Python hears none, or one that the process ignores.
    """
    pressed = False

    def hold(number: int, frame: FrameType | None) -> None:
        nonlocal pressed
        if pressed:
            raise KeyboardInterrupt
        pressed = True

    def check() -> None:
        if pressed:
            raise KeyboardInterrupt

    with contextlib.ExitStack() as handlers:
        for number in (signal.SIGINT, signal.SIGTERM):
            handlers.enter_context(_handler(number, hold))
        yield check


@contextlib.contextmanager
def _handler(
    number: signal.Signals, handle: Callable[[int, FrameType | None], None]
) -> Iterator[None]:
    """`handle` in place of the usual handler, where a signal would interrupt Python."""
    usual = signal.getsignal(number)
    # By default SIGTERM ends the process, without Python and without a word.
    heard = callable(usual) or (number == signal.SIGTERM and usual == signal.SIG_DFL)
    if not heard or threading.current_thread() is not threading.main_thread():
        yield
        return
    signal.signal(number, handle)
    try:
        yield
    finally:
        signal.signal(number, usual)
