"""What a report holds: its limit, network, trajectory and comparison, of types that checkers know.

The types follow from the table of models: `_typed_models.pyi`, which is written as the package is
built.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    from ..._typed_models import (
        ClassesWord,
        MaxMarginModel,
        ModelName,
        NetworkWord,
        RegimeWord,
    )
    from ..._typed_models import HeldComparison as HeldComparison
    from ..._typed_models import HeldLimit as HeldLimit
    from ..._typed_models import HeldNetwork as HeldNetwork
    from ..._typed_models import HeldTrajectory as HeldTrajectory

    # The model, and the options that tell what a report of it holds.
    ModelT = TypeVar("ModelT", bound=ModelName | str, covariant=True, default=MaxMarginModel)
    ClassesT = TypeVar("ClassesT", bound=ClassesWord, covariant=True, default=Literal["two"])
    NetworkT = TypeVar("NetworkT", bound=NetworkWord, covariant=True, default=Literal["two-layer"])
    RegimeT = TypeVar("RegimeT", bound=RegimeWord, covariant=True, default=Literal["rich"])
else:
    # Python 3.13 is the first whose type variables have defaults.
    from typing import TypeVar

    ModelT = TypeVar("ModelT")
    ClassesT = TypeVar("ClassesT")
    NetworkT = TypeVar("NetworkT")
    RegimeT = TypeVar("RegimeT")


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


if not TYPE_CHECKING:
    HeldLimit = HeldNetwork = HeldTrajectory = HeldComparison = _Held
