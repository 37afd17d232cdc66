"""Write `implicit_bias/options/choices.py` from the option dataclasses of all models.

`python -m tests.choices`, after an option, one of its values or a model has changed.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import get_args

import implicit_bias
from implicit_bias.models import MODELS
from implicit_bias.options import DeviceName, Kind, kinds
from solvers import SolverName

WIDTH = 100
PATH = Path(implicit_bias.__file__).parent / "options" / "choices.py"
HEAD = '''"""The names and types of all that `run` takes: for editors, type checkers, rows of runs.

Generated from the options of the models by `python -m tests.choices`: change them there.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, TypedDict

if TYPE_CHECKING:
    from ..data.dataset import Dataset
    from ..data.labelled import ClassDataset

__all__ = ["Choices", "ModelName", "RunOptions"]

'''
CHOICES = '''

class Choices(TypedDict, total=False):
    """Every option of every model, beside `data` and `gating`."""

'''
RUN = '''

class RunOptions(Choices, total=False):
    """The options, and data and gates of the user in place of bundled and drawn ones."""

'''
# What may be supplied beside the values of an option, and options that can be supplied alone.
USER_DATA = {"data": ["Dataset", "ClassDataset"], "gating": ["Any"]}
ARRAYS = ("X", "y", "X_val", "y_val")
# Options that are checked where they are used, by the declarations that the solver and torch have.
CHECKED_LATER = {"solver": SolverName, "device": DeviceName}


def source() -> str:
    """Return the text of the module."""
    own = {name: hint(kinds) for name, kinds in sorted(options().items())}
    own |= {name: [literal(get_args(declared))] for name, declared in CHECKED_LATER.items()}
    shared = [line(name, parts) for name, parts in own.items() if name not in USER_DATA]
    supplied = [line(name, [*own[name], *more]) for name, more in USER_DATA.items()]
    arrays = [line(name, ["Any"]) for name in ARRAYS]
    names = f"ModelName = {broken(literal(MODELS), 0)}\n"
    return "".join([HEAD, names, CHOICES, *shared, RUN, *arrays, *supplied])


def options() -> dict[str, list[Kind]]:
    """Return every option of every model, with what it takes in each of them."""
    found: dict[str, list[Kind]] = {}
    for model in MODELS.values():
        for name, kind in kinds(model.options).items():
            found.setdefault(name, []).append(kind)
    return found


def hint(kinds: list[Kind]) -> list[str]:
    """Return the types that an option takes, the parts of a union of those of all models."""
    parts = [part for kind in kinds for part in _parts(kind)]
    words = dict.fromkeys(word for kind in kinds for word in kind.choices)
    named = [literal(words)] if words else []
    optional = ["None"] if any(kind.optional for kind in kinds) else []
    return list(dict.fromkeys([*named, *parts, *optional]))


def _parts(kind: Kind) -> Iterable[str]:
    """Return the types that an option takes in one model, its choices and None aside."""
    about, base = kind.about, kind.base.__name__
    if kind.base is Path or about.files:
        yield from ("str", "os.PathLike[str]")
    elif about.numbers:
        yield from ("int", "str", "Sequence[int | str]")
    elif about.joined:
        yield f"Sequence[{literal(kind.choices)}]"
    elif not kind.choices:
        yield base
        if kind.several:
            yield f"Sequence[{base}]"
    if about.words:
        yield literal(about.words)


def literal(words: Iterable[str]) -> str:
    """Return the type of these words."""
    quoted = [f'"{word}"' for word in words]
    return f"Literal[{', '.join(quoted)}]"


def line(name: str, parts: list[str]) -> str:
    """Return the line of a key, broken as the formatter of this repository breaks it."""
    whole = f"    {name}: {' | '.join(parts)}\n"
    if len(whole) <= WIDTH + 1:
        return whole
    inner = [broken(part, 8) for part in parts]
    return f"    {name}: (\n        " + "\n        | ".join(inner) + "\n    )\n"


def broken(part: str, indent: int) -> str:
    """Return a `Literal`, a word a line where it is long."""
    if len(part) + indent + 2 <= WIDTH:
        return part
    words = part.removeprefix("Literal[").removesuffix("]").split(", ")
    inside, outside = " " * (indent + 4), " " * indent
    return "Literal[\n" + "".join(f"{inside}{word},\n" for word in words) + f"{outside}]"


if __name__ == "__main__":
    PATH.write_text(source(), encoding="utf-8")
