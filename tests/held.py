"""The text of `implicit_bias/reports/held.pyi`: what reports hold, as the table of models says it.

`python -m tests.choices` writes it.
"""

from __future__ import annotations

import pkgutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, astuple, replace
from pathlib import Path

import implicit_bias
from implicit_bias.models import MODELS, Model
from implicit_bias.options import ClassOptions, kinds
from implicit_bias.run_model import resolve
from implicit_bias.runs import Holds

HELD = Path(implicit_bias.__file__).parent / "reports" / "held.pyi"
# Options of which the classes in a report depend.
TELLING = sorted({"classes"} | {name for model in MODELS.values() for name, _ in model.holds_with})
HEAD = '''"""The types of what a report holds, by its model, for editors and type checkers.

Generated from the table of models by `python -m tests.choices`: change `holds` of a model there.
"""

from collections.abc import Mapping
from typing import Any, Literal, Self, overload

from torch.nn import Module
from typing_extensions import TypeVar

{imports}

MaxMarginModel = {separable}
ModelT = TypeVar("ModelT", bound=ModelName, covariant=True, default=MaxMarginModel)
{variables}
'''
CLASS = '''
class Held{kind}:
    """The {name} of a report."""

    def __init__(self, name: str) -> None: ...
    @overload
    def __get__(self, report: None, owner: Any = None) -> Self: ...
'''
CALL = """    @overload
    def __get__(
        self, report: {report}, owner: Any = None
    ) -> {held}: ...
"""
# Of all classes at once.
JOINT_LIMIT = "limits.multiclass:MulticlassLimit"
# By models without a program of all classes.
REFUSED = ("classes", "joint")
# The one class that is not of this package.
MODULE = "torch.nn:Module"
# Of any model with a limit of the SVM's kind; and of one that is not known.
MOST = Holds(limit="limits.limit:Limit", network=MODULE)
FOREIGN = ("options.choices:ModelName", "reports.report:Report")


def held_types() -> str:
    """Return the text of the stub."""
    text = HEAD.replace("{imports}", imports())
    separable = [f'"{name}"' for name, model in MODELS.items() if model.parts]
    text = text.replace("{separable}", f"Literal[{', '.join(separable)}]")
    text = text.replace("{variables}", "\n".join(map(declared, TELLING)))
    for name in asdict(MOST):
        text += CLASS.format(kind=name.capitalize(), name=name)
        calls = [
            (report(f'Literal["{model.name}"]', choice), getattr(holds, name))
            for model in MODELS.values()
            for choice, holds in held(model)
        ]
        calls.append((report("MaxMarginModel", {"classes": "two"}), getattr(MOST, name)))
        text += "".join(CALL.format(report=one, held=annotation(place)) for one, place in calls)
        text += CALL.format(report="Report[ModelName, Any, Any, Any]", held="Any")
    return formatted(text, HELD)


def formatted(text: str, path: Path) -> str:
    """Return the text of a module as the formatter of this repository breaks its lines."""
    return subprocess.run(
        [sys.executable, "-m", "ruff", "format", "--stdin-filename", str(path), "-"],
        input=text, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip


def declared(name: str) -> str:
    """Return the type variable of an option, with the value that most models begin from."""
    words = [word for model in MODELS.values() for word in words_of(model, name)]
    quoted = ", ".join(f'"{word}"' for word in dict.fromkeys(words))
    variable = f"{name.capitalize()}T"
    return (
        f'{variable} = TypeVar(\n    "{variable}", bound=Literal[{quoted}], covariant=True, '
        f'default=Literal["{words[0]}"]\n)'
    )


def words_of(model: Model, name: str) -> tuple[str, ...]:
    """Return the values of an option of a model; none where it has no such option."""
    own = kinds(model.options)
    return own[name].choices if name in own else ()


def report(model: str, choice: dict[str, str]) -> str:
    """Return the type of a report of a model with these values of the options that tell."""
    told = (f'Literal["{choice[name]}"]' if name in choice else "Any" for name in TELLING)
    return f"Report[{model}, {', '.join(told)}]"


def has_joint(model: Model) -> bool:
    """Return True if a model has a program of all classes at once."""
    parts = pkgutil.resolve_name(model.parts)
    return parts(resolve(model.name, {"classes": "joint"}).options).joint is not None


def held(model: Model) -> Iterator[tuple[dict[str, str], Holds]]:
    """Yield the values of options that tell what a report holds, and that."""
    by_value = dict(model.holds_with)
    if issubclass(model.options, ClassOptions):
        each = {name: f"Mapping[int] {place}" for name, place in asdict(model.holds).items()}
        by_value["classes", "all"] = Holds(**each)
        if has_joint(model):
            by_value.setdefault(("classes", "joint"), replace(model.holds, limit=JOINT_LIMIT))
    for (name, value), holds in by_value.items():
        yield {name: value}, holds
    # What is left of the values of each of these options is one, as of today.
    others = {
        name: [one for one in words_of(model, name) if (name, one) not in {*by_value, REFUSED}]
        for name, _ in by_value
    }
    yield {name: left for name, (left,) in others.items()}, model.holds


def annotation(place: str) -> str:
    """Return the type of what stands at "module:class", or of several of these."""
    several, _, one = place.rpartition(" ")
    name = one.partition(":")[2]
    if several == "tuple":
        return f"tuple[{name}, ...]"
    return f"{several.removesuffix(']')}, {name}]" if several else name


def imports() -> str:
    """Return the lines that import the classes."""
    places = {*FOREIGN, *astuple(MOST)}
    for model in MODELS.values():
        places |= {place.rpartition(" ")[2] for _, holds in held(model) for place in astuple(holds)}
    by_module: dict[str, list[str]] = {}
    for place in sorted(places - {MODULE}):
        module, _, name = place.partition(":")
        by_module.setdefault(f"..{module}".replace("..reports.", "."), []).append(name)
    order = sorted(by_module, key=lambda module: (not module.startswith(".."), module))
    return "\n".join(f"from {one} import {', '.join(by_module[one])}" for one in order)
