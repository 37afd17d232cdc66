"""What several answers are worth together: no more than the worst of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, TypeVar

__all__ = ["worst"]

# A proof that there is no limit comes before failures to find it.
WORST_FIRST = (
    "NOT_SEPARABLE", "INCONSISTENT", "NO_MINIMISER", "FAILED", "UNDECIDED", "INACCURATE", "SOLVED",
)  # fmt: skip


class Named(Protocol):
    """A status of any kind of program."""

    @property
    def name(self) -> str: ...


StatusT = TypeVar("StatusT", bound=Named)


def worst(statuses: Iterable[StatusT]) -> StatusT:
    """The worst of at least one status."""
    return min(statuses, key=lambda status: WORST_FIRST.index(status.name))
