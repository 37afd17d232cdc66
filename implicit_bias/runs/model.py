"""A model of the table: which limit, by which theorem, with which options, run by what."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any

from ..options.resolve import OptionTable

__all__ = ["Model", "imported"]


@dataclass(frozen=True, kw_only=True)
class Model(OptionTable):
    """One predicted limit, as data: `implicit_bias.run_model` runs it.

    Attributes
    ----------
    theorem : str
        The statement in a sentence, and where it stands.
    source : str
        Where it stands, in a few words.
    program : str
        The convex program in one line.
    parts : str
        For a theory of separable data "module:function" with `function(options)` its `Parts`.
    run : str
        "module:function" where `function(setup)` predicts, trains, compares and returns a `Report`.
    programs : str
        "module:function" where `function(setup)` states the programs of the run and returns
        `RunPrograms`, nothing being solved or trained; empty where the limit is a closed form.
    """

    theorem: str
    source: str
    program: str
    parts: str = ""
    run: str = f"{__package__}.separable:run_separable"
    programs: str = f"{__package__}.separable:separable_programs"

    def refusal(self, kind: str) -> str:
        """Return why "data" or a "gating" of a user's own is not taken; empty where it is.

        Data are taken where they are an option, and gates where they or their hyperplanes are one.
        """
        if kind in self.refuses:
            return self.refuses[kind]
        known = {"data": {"data"}, "gating": {"gating", "cutoffs"}}[kind]
        return "" if known & set(self.option_names) else "it makes its own"


def imported(path: str) -> Any:
    """Return what "module:name" names, importing the module."""
    module, name = path.split(":")
    return getattr(import_module(module), name)
