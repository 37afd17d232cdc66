"""Predictions of the implicit bias of gradient descent, certified and compared with training.

Names are imported when they are first used, so that `import implicit_bias` stays instant. Which
there are, and where they live, stands once: in the stub beside this file, which type checkers read.
"""

import ast
import logging
from importlib import import_module

from ._extras import naming_extras

logging.getLogger(__name__).addHandler(logging.NullHandler())

with open(f"{__file__}i", encoding="utf-8") as stub:
    _MODULES = {
        # A module of this package is its own name.
        alias.name: f".{node.module or alias.name}"
        for node in ast.parse(stub.read()).body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }

__all__ = list(_MODULES)


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with naming_extras():
        module = import_module(_MODULES[name], __name__)
    return module if _MODULES[name] == f".{name}" else getattr(module, name)


def __dir__() -> list[str]:
    return sorted(__all__)
