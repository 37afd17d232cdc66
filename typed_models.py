"""Write `implicit_bias/_typed_models.pyi`: what type checkers and editors are told of the models.

The names and types of all options, and the classes of what a report of each model holds, follow
from the table of models. They are written as the package is built: into what is installed, or into
the checkout where that is what is installed (`pip install -e`). `python typed_models.py` writes
them into the checkout, for mypy to check the calls that stand there. Nothing reads them at run
time, and where they are not there type checkers let every option pass.

The description of what is built is README.md, with files of the checkout named and not linked.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict, astuple, replace
from inspect import cleandoc
from pathlib import Path
from textwrap import indent
from typing import TYPE_CHECKING, Any

from setuptools.command.build_py import build_py
from setuptools.command.egg_info import egg_info

if TYPE_CHECKING:
    from implicit_bias.runs.model import Holds, Model

__all__ = ["BuildTyped", "Described", "described", "held", "typed_models", "write"]

ROOT = Path(__file__).resolve().parent
STUB = Path("implicit_bias", "_typed_models.pyi")
# Options on which the classes in a report depend, with the names of their type variables.
TELLING = {"classes": "ClassesT", "network": "NetworkT", "regime": "RegimeT"}
# Declared where they are checked, by the solver and by torch.
CHECKED_LATER = {"solver": "SolverName", "device": "DeviceName"}
JOINT_LIMIT = "limits.exact.multiclass:MulticlassLimit"
# By models without a program of all classes at once.
REFUSED = ("classes", "joint")
# Of any model with a limit of the SVM's kind.
MOST = {
    "limit": "limits.limit:Limit",
    "network": "torch.nn:Module",
    "trajectory": "training.trajectory:Trajectory",
    "comparison": "measures.comparison:Comparison",
}

HEAD = '''"""What type checkers are told of the models, from their table: see `typed_models.py`."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Generic, Literal, Protocol, Self, TypeAlias, TypedDict, TypeVar, overload

from torch.nn import Module

from solvers import ArrayLike, SolverName

from ._support.words import DeviceName
from .data.dataset import Dataset
from .data.labelled import ClassDataset
from .runs.reports.held import ClassesT, NetworkT, RegimeT
from .runs.reports.report import Report
{imports}

ModelName: TypeAlias = {models}
MaxMarginModel: TypeAlias = {separable}
{words}
_T = TypeVar("_T")
# One value, several, or a function of the cell.
Values: TypeAlias = _T | Iterable[_T] | Callable[[Mapping[str, Any]], Any]

class Transformer(Protocol):
    """A gating of the user's own: fitted, or with `fit(X)` too."""

    def transform(self, X: Any, /) -> Any:
        """Return the gates (n, H) of inputs (n, D)."""
'''
DICTIONARY = '''
class {name}({bases}, total=False):
    """{doc}"""

{lines}
'''
HELD = '''
class {kind}:
    """The {name} of a report."""

    def __init__(self, name: str) -> None: ...
    @overload
    def __get__(self, report: None, owner: Any = None) -> Self: ...
'''
CALL = """    @overload
    def __get__(self, report: {report}, owner: Any = None) -> {held}: ...
"""


def typed_models() -> str:
    """Return the text of the stub."""
    from implicit_bias.models import MODELS
    from implicit_bias.options.choices import Choices, GridOptions, RunOptions
    from implicit_bias.options.of_models import literal

    chosen, every = _hints(Choices), _hints(RunOptions)
    telling = {name: chosen[name] for name in TELLING}
    head = HEAD
    for mark, text in {
        "{imports}": "\n".join(_imports(MODELS)),
        "{models}": literal(MODELS),
        "{separable}": literal(name for name, model in MODELS.items() if model.parts),
        "{words}": "\n".join(
            f"{name.capitalize()}Word: TypeAlias = {hint}" for name, hint in telling.items()
        ),
    }.items():
        head = head.replace(mark, text)
    plain = {name: hint for name, hint in chosen.items() if name not in TELLING}
    given = {name: hint for name, hint in every.items() if name not in chosen}
    telling_bases = f"_Plain, _Given, Generic[{', '.join(TELLING.values())}]"
    return "".join(
        [
            head,
            _dictionary("_Plain", "TypedDict", "Options that tell nothing of the report.", plain),
            _dictionary("_Given", "TypedDict", "Data and gates of the user.", given),
            _dictionary("Choices", "_Plain", Choices.__doc__, telling),
            _dictionary("RunOptions", "Choices, _Given", RunOptions.__doc__, {}),
            _dictionary("TellingOptions", telling_bases, RunOptions.__doc__, TELLING),
            _dictionary("GridOptions", "TypedDict", GridOptions.__doc__, _hints(GridOptions)),
            *(_held(name, MODELS) for name in MOST),
        ]
    )


def _hints(dictionary: Any) -> dict[str, str]:
    """Return the types in a typed dictionary, those that are checked later from where they are."""
    return {
        name: hint.__forward_arg__.replace("str", CHECKED_LATER.get(name, "str"))
        for name, hint in dictionary.__annotations__.items()
    }


def _dictionary(name: str, bases: str, doc: str | None, hints: Mapping[str, str]) -> str:
    # From Python 3.13 on, docstrings have no indentation.
    doc = indent(cleandoc(doc or ""), "    ").lstrip()
    doc += "\n    " if "\n" in doc else ""
    lines = "".join(f"    {key}: {hint}\n" for key, hint in hints.items())
    return f'\nclass {name}({bases}, total=False):\n    """{doc}"""\n\n{lines}'


def _held(name: str, models: Mapping[str, Model]) -> str:
    """Return the class of an attribute of reports, with what it is in a report of each model."""
    calls = [
        (_report(f'Literal["{model.name}"]', choice), _class(getattr(holds, name)))
        for model in models.values()
        for choice, holds in held(model)
    ]
    calls.append((_report("MaxMarginModel", {"classes": "two"}), _class(MOST[name])))
    calls.append(("Report[ModelName | str, Any, Any, Any]", "Any"))
    return HELD.format(kind=f"Held{name.capitalize()}", name=name) + "".join(
        CALL.format(report=report, held=kind) for report, kind in calls
    )


def held(model: Model) -> Iterator[tuple[dict[str, str], Holds]]:
    """Yield the values of options that tell what a report of a model holds, and that."""
    from implicit_bias.options.fields import ClassOptions
    from implicit_bias.options.values import kinds
    from implicit_bias.runs.model import Holds

    by_value = dict(model.holds_with)
    if issubclass(model.options, ClassOptions):
        each = {name: f"Mapping[int] {place}" for name, place in asdict(model.holds).items()}
        by_value["classes", "all"] = Holds(**each)
    if model.joint:
        joint = replace(model.holds, limit=JOINT_LIMIT, network=model.joint)
        by_value["classes", "joint"] = joint
    for (name, value), holds in by_value.items():
        yield {name: value}, holds
    # What is left of the values of each of these options is one, as of today.
    taken = kinds(model.options)
    others = {
        name: [one for one in taken[name].choices if (name, one) not in {*by_value, REFUSED}]
        for name, _ in by_value
    }
    yield {name: left for name, (left,) in others.items()}, model.holds


def _report(model: str, choice: Mapping[str, str]) -> str:
    """Return the type of a report of a model with these values of the options that tell."""
    told = (f'Literal["{choice[name]}"]' if name in choice else "Any" for name in TELLING)
    return f"Report[{model}, {', '.join(told)}]"


def _class(place: str) -> str:
    """Return the type of what stands at "module:class", or of several of these."""
    several, _, one = place.rpartition(" ")
    name = one.partition(":")[2]
    if several == "tuple":
        return f"tuple[{name}, ...]"
    return f"{several.removesuffix(']')}, {name}]" if several else name


def _imports(models: Mapping[str, Model]) -> list[str]:
    """Return the lines that import the classes of what reports hold."""
    places = {MOST["limit"]}
    for model in models.values():
        places |= {place.rpartition(" ")[2] for _, holds in held(model) for place in astuple(holds)}
    ours = sorted(places - {MOST["network"]})  # which is torch's
    return ["from .{} import {}".format(*place.split(":")) for place in ours]


def write(package: Path) -> None:
    """Write the stub beside a package that stands in this folder."""
    (package / STUB).write_text(typed_models(), encoding="utf-8")


class BuildTyped(build_py):
    """Builds the package with the stub in it; of an editable one in the checkout itself."""

    def run(self) -> None:
        """Copy the modules, and write the stub beside them."""
        super().run()
        sys.path.insert(0, str(ROOT))
        write(ROOT if self.editable_mode else Path(self.build_lib))

    def get_outputs(self, include_bytecode: bool = True) -> list[str]:
        """Return the files that are installed."""
        return [*super().get_outputs(include_bytecode), str(Path(self.build_lib) / STUB)]


def described(text: str) -> str:
    """Return Markdown without pictures from files, and their captions, and with files by name."""
    text = re.sub(r"!\[[^]]*\]\((?!\w+:)[^)]+\)\n\n(\*[^*]+\*\n\n)?", "", text)
    return re.sub(r"\[([^]]+)\]\((?!\w+:)([^)]+)\)", r"\1 (`\2`)", text)


class Described(egg_info):
    """Writes the metadata of the package, whose description is read where no checkout is."""

    def run(self) -> None:
        """Replace links within the checkout, and write."""
        metadata = self.distribution.metadata
        metadata.long_description = described(metadata.long_description)
        super().run()


if __name__ == "__main__":
    write(ROOT)
