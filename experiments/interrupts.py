"""Interrupts of training: a run that was cut short is no row of a table."""

from __future__ import annotations

from typing import Protocol, TypeVar


class Interruptible(Protocol):
    """A trajectory, or a report."""

    @property
    def finished(self) -> bool:
        """False if an interrupt came."""
        ...


Run = TypeVar("Run", bound=Interruptible)


def finished(run: Run) -> Run:
    """Return a run that was finished; training hands back what there is at Ctrl-C.

    Raises
    ------
    KeyboardInterrupt
        If an interrupt has cut it short.
    """
    if not run.finished:
        raise KeyboardInterrupt
    return run
