"""What saved results may be made of: classes of this package, and functions that draw."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatch
from importlib import import_module
from types import FunctionType
from typing import Any

__all__ = ["found_class", "found_function", "is_function", "is_known", "path_of"]

PACKAGE = __name__.split(".")[0]
CLASSES = (f"{PACKAGE}.*:*", "solvers.*:*", "torch.nn.modules.container:*")
FUNCTIONS = (
    f"{PACKAGE}.drawing.*:*",
    f"{PACKAGE}.models.*.figure:*",
    f"{PACKAGE}.runs.user_data:gates_of",
)


def path_of(value: Any) -> str:
    """The name of a class or function, with its module."""
    return f"{value.__module__}:{value.__qualname__}"


def is_known(value: Any) -> bool:
    """Whether a value is of a class that may be saved."""
    return _fits(path_of(type(value)), CLASSES)


def is_function(value: Any) -> bool:
    """Whether a value is a function that may be saved."""
    return isinstance(value, FunctionType) and _fits(path_of(value), FUNCTIONS)


def found_class(path: str, kind: type) -> Any:
    """The class below `kind` of that name.

    Raises
    ------
    ValueError
        If it is none that may be saved.
    """
    found = _found(path, CLASSES)
    if not (isinstance(found, type) and issubclass(found, kind) and path_of(found) == path):
        raise ValueError(f"{path} is nothing that a result is made of")
    return found


def found_function(path: str) -> Any:
    """The function of that name; errors as of `found_class`."""
    found = _found(path, FUNCTIONS)
    if not is_function(found) or path_of(found) != path:
        raise ValueError(f"{path} is nothing that a result is made of")
    return found


def _found(path: str, allowed: Sequence[str]) -> Any:
    if not _fits(path, allowed):
        raise ValueError(f"{path} is nothing that a result is made of")
    module, _, name = path.partition(":")
    return getattr(import_module(module), name)


def _fits(path: str, allowed: Sequence[str]) -> bool:
    return any(fnmatch(path, pattern) for pattern in allowed)
