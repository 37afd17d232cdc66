"""A model of the table: which limit, by which theorem, with which options, run by what."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pkgutil import resolve_name
from typing import Any

from ..options.resolve import OptionTable
from ..quantities.assumptions import Premise


@dataclass(frozen=True, kw_only=True)
class Holds:
    """The classes of what a report holds: "module:class", the module without this package's name.

    Where it holds several of a class, "kind module:class": "Mapping[str]" by names, "Mapping[int]"
    by numbers, "tuple". Type checkers learn them from what `typed_models.py` writes.
    """

    limit: str
    network: str
    trajectory: str = "training.trajectory:Trajectory"
    comparison: str = "measures.comparison:Comparison"


@dataclass(frozen=True, kw_only=True)
class Model(OptionTable):
    """One predicted limit, as data: `implicit_bias.models.run_model` runs it.

    Attributes
    ----------
    theorem : str
        The statement in a sentence, and where it stands.
    source : str
        Where it stands, in a few words.
    program : str
        The convex program in one line.
    assumes : tuple of Premise
        All that the theorem assumes, or what stands in its place, and how a run knows it.
    parts : str
        For a theory of separable data "module:function" with `function(options)` its `Parts`.
    run : str
        "module:function" where `function(setup)` returns the `Run`: its stages, before any work.
    holds : Holds
        What its report holds.
    provable : bool
        True where data and gates follow from the options, so that a saved limit is proved again.
    holds_with : mapping of (str, str) to Holds
        The same with another value of an option, by option and value. Models with one limit a class
        need no entry for that.
    joint : str
        The class of a network of all classes at once, where the theory has a program of them.
    """

    theorem: str
    source: str
    program: str
    assumes: tuple[Premise, ...]
    parts: str = ""
    run: str = f"{__package__}.separable:run_separable"
    holds: Holds
    provable: bool = True
    holds_with: Mapping[tuple[str, str], Holds] = field(default_factory=dict)
    joint: str = ""

    def premises(self, options: Any) -> tuple[Premise, ...]:
        """Return what the theorem assumes of a run with these options."""
        return tuple(one for one in self.assumes if one.applies(options))

    def refusal(self, kind: str) -> str:
        """Return why "data", "queries" or a "gating" of a user's own is not taken; else nothing.

        Data are taken where they are an option, queries beside sequences of tokens, and gates where
        they or their hyperplanes are an option.
        """
        if kind in self.refuses:
            return self.refuses[kind]
        known = {"data": {"data"}, "queries": {"tokens"}, "gating": {"gating", "cutoffs"}}[kind]
        none = "it has none" if kind == "queries" else "it makes its own"
        return "" if known & set(self.option_names) else none


class Models(Mapping[str, Model]):
    """Models by their names; the module of one is imported when it is asked for.

    Parameters
    ----------
    rooms : mapping of str to str
        The folder in `package` whose ``model.MODELS`` has the model of that name.
    package : str
    """

    def __init__(self, rooms: Mapping[str, str], *, package: str) -> None:
        self._rooms, self._package = dict(rooms), package

    def __getitem__(self, name: str) -> Model:
        models: tuple[Model, ...] = resolve_name(
            f"{self._package}.{self._rooms[name]}.model:MODELS"
        )
        return next(model for model in models if model.name == name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._rooms)

    def __len__(self) -> int:
        return len(self._rooms)
