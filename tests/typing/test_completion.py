"""What editors and `help` are told of the options of `run` and `sweep`."""

from __future__ import annotations

import inspect

import pytest

import implicit_bias as ib
from implicit_bias.models import MODELS
from tests.commands import python

COMPLETE = """
import implicit_bias as ib
from IPython.core.completer import provisionalcompleter
from IPython.core.interactiveshell import InteractiveShell

shell = InteractiveShell.instance()
shell.user_ns["ib"] = ib
for text in ('ib.run("gln", hid', 'ib.sweep("gln", grid, out="runs", hid'):
    with provisionalcompleter():
        print([one.text for one in shell.Completer.completions(text, len(text))])
"""


def test_ipython_completes_options(monkeypatch, tmp_path) -> None:
    pytest.importorskip("IPython")
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    assert python("-c", COMPLETE).stdout.splitlines() == ["['hidden_units=']"] * 2


@pytest.mark.parametrize("function", [ib.run, ib.sweep])
def test_the_signature_has_every_option_of_every_model(function) -> None:
    parameters = inspect.signature(function).parameters
    options = {name for model in MODELS.values() for name in model.option_names}
    assert options | {"X", "y", "X_val", "y_val"} <= set(parameters)
    assert all(one.kind is not one.VAR_KEYWORD for one in parameters.values())
    assert "hidden_units: 'int' = None" in str(inspect.signature(function))
