"""Lazy imports: names that are loaded when first used, listed once, in the stub of a module."""

from __future__ import annotations

import ast
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from .extras import naming_extras


def lazy_names(
    module: str, file: str
) -> tuple[Callable[[str], object], Callable[[], list[str]], list[str]]:
    """Return `__getattr__`, `__dir__` and `__all__` of a module, from the stub beside it.

    The stub's ``from .module import name as name`` gives the module that each name is loaded from;
    ``from . import name as name`` is a module itself. Type checkers and editors read the same list.

    Parameters
    ----------
    module : str
        The module's `__name__`.
    file : str
        Its `__file__`; the stub has the ending ``.pyi``.

    Raises
    ------
    MissingExtra
        When a name is used that needs a package which is not installed.
    AttributeError
        When a name is used that is not in the stub.
    """
    stub = ast.parse(Path(file).with_suffix(".pyi").read_text(encoding="utf-8"))
    package = module if Path(file).stem == "__init__" else module.rpartition(".")[0]
    places = {
        alias.name: (f"{'.' * node.level}{node.module or alias.name}", node.module is None)
        for node in stub.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }

    def getattr_(name: str) -> object:
        """Load a name."""
        if name not in places:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        place, whole = places[name]
        with naming_extras():
            found = import_module(place, package)
        return found if whole else getattr(found, name)

    return getattr_, lambda: sorted(places), list(places)
