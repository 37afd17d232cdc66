"""Max-margin programs of group norms: structured solvers, cvxpy, certificates.

A name is loaded when it is first asked for; the stub beside this file lists them all.
"""

import ast
import logging
from importlib import import_module
from pathlib import Path

_PLACES = {
    alias.name: f"{__name__}.{node.module}"
    for node in ast.parse(Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8")).body
    if isinstance(node, ast.ImportFrom)
    for alias in node.names
}
__all__ = list(_PLACES)


def __getattr__(name: str) -> object:
    """Load a name."""
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found = getattr(import_module(_PLACES[name]), name)
    return found


def __dir__() -> list[str]:
    return __all__


logging.getLogger(__name__).addHandler(logging.NullHandler())
