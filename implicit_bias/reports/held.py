"""What a report holds: its limit, network, trajectory and comparison, of types that checkers know.

The types stand in the stub beside this file, which `python -m tests.choices` writes from the table
of models.
"""

from __future__ import annotations

from typing import Any, TypeVar

__all__ = [
    "ClassesT",
    "HeldComparison",
    "HeldLimit",
    "HeldNetwork",
    "HeldTrajectory",
    "ModelT",
    "NetworkT",
    "RegimeT",
]

# The model, and the options that tell what a report of it holds; their defaults are in the stub.
ModelT = TypeVar("ModelT", covariant=True)
ClassesT = TypeVar("ClassesT", covariant=True)
NetworkT = TypeVar("NetworkT", covariant=True)
RegimeT = TypeVar("RegimeT", covariant=True)


class _Held:
    """One of a report's objects, as an attribute of the report."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, report: Any, owner: Any = None) -> Any:
        """Return the object; raises AttributeError, with the reason, where there is none."""
        if report is None:
            return self
        if (held := report.objects.get(self.name)) is not None:
            return held
        reason = report.failure or (
            "the run was interrupted before there was one"
            if report.interrupted
            else "no network was trained, or it stands among `objects` under another name"
        )
        raise AttributeError(f"this report has no `{self.name}`: {reason}")


class HeldLimit(_Held):
    """The limit of a report."""


class HeldNetwork(_Held):
    """The network of a report."""


class HeldTrajectory(_Held):
    """The trajectory of a report."""


class HeldComparison(_Held):
    """The comparison of a report."""
