"""Examples of docstrings, and the docstrings that exported names must have."""

from __future__ import annotations

import doctest
import importlib
import inspect
import pkgutil

import pytest

import solvers

MODULES = [module.name for module in pkgutil.walk_packages(solvers.__path__, "solvers.")]
# Names of array-api-compat, and what is neither a function nor a class.
FOREIGN = {"Array", "ArrayLike", "FIT_LOSSES", "NormName", "Progress", "SOLVERS", "SolverName",
           "array_namespace", "is_torch_array"}  # fmt: skip


@pytest.mark.parametrize("name", MODULES)
def test_examples_print_what_they_say(name: str) -> None:
    failed, _ = doctest.testmod(importlib.import_module(name))
    assert failed == 0


@pytest.mark.parametrize("name", sorted(set(solvers.__all__) - FOREIGN))
def test_exported_functions_say_what_they_take_and_return(name: str) -> None:
    exported = getattr(solvers, name)
    said = inspect.getdoc(exported) or ""
    assert said and said.split()[0] not in {"Of", "What", "That", "How", "Whether"}
    if inspect.isfunction(exported):
        parameters = inspect.signature(exported).parameters
        missing = [parameter for parameter in parameters if parameter not in said]
        assert missing == []
        assert (
            "Returns\n---" in said
            or "Yields\n---" in said
            or name.startswith(("require", "refuse"))
        )
