"""Names that saved files speak: promised for good, whatever module a class or function moves to.

A file names classes of results, members of enumerations, networks, gatings and functions that draw
by a sort and a name, ``class:GLNLimit`` or ``panel:gdln.losses``, and can name nothing else than
what stands in the table `_support/names.toml`.
"""

from __future__ import annotations

import tomllib
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import Any


class Unreadable(ValueError):
    """A saved file, whole and unchanged, says something that this version does not know."""


def _promised() -> dict[str, str]:
    """Return "module:attribute" by "sort:name"."""
    text = Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")
    return {
        f"{sort}:{name}": place
        for sort, names in tomllib.loads(text).items()
        for name, place in names.items()
    }


PACKAGE = __package__.rpartition(".")[0]
PROMISED = MappingProxyType(_promised())
_NAMES = MappingProxyType(
    {f"{PACKAGE * place.startswith('.')}{place}": name for name, place in PROMISED.items()}
)


def name_of(thing: Any) -> str | None:
    """The promised name of a class or function; None if it has none and cannot be saved."""
    return _NAMES.get(f"{thing.__module__}:{thing.__qualname__}")


def bare(name: str) -> str:
    """A promised name without its sort, for messages."""
    return name.rpartition(":")[2]


def found(name: Any, *sorts: str) -> Any:
    """The class or function of a promised name, its module imported now.

    Parameters
    ----------
    name : str
        As a file has it.
    *sorts : str
        Those that may stand there; by default any.

    Raises
    ------
    Unreadable
        If no such name has been promised, or it is of another sort.
    ImportError
        If it needs a package that is not installed.
    """
    place = PROMISED.get(name) if isinstance(name, str) else None
    if place is None or (sorts and name.partition(":")[0] not in sorts):
        raise Unreadable(f"{name!r} is no {' or '.join(sorts) or 'part'} of results")
    module, _, attribute = place.partition(":")
    return getattr(import_module(module, PACKAGE), attribute)
