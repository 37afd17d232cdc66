"""Write `options/choices.py` and `reports/held.pyi` of the package from the table of models.

`python -m tests.choices`, after an option, one of its values, what a report holds or a model has
changed.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import get_args

import implicit_bias
from implicit_bias.models import MODELS
from implicit_bias.options import DeviceName, Kind, kinds
from solvers import SolverName
from tests.held import HELD, TELLING, formatted, held_types

WIDTH = 100
PATH = Path(implicit_bias.__file__).parent / "options" / "choices.py"
HEAD = '''"""The names and types of all that `run` takes: for editors, type checkers, rows of runs.

Generated from the options of the models by `python -m tests.choices`: change them there.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, Literal, Protocol, TypeAlias, TypedDict

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    from .._solve import ArrayLike
    from ..data.dataset import Dataset
    from ..data.labelled import ClassDataset

__all__ = [
    "Choices",
    "ClassesT",
    "GridOptions",
    "ModelName",
    "ModelT",
    "NetworkT",
    "RegimeT",
    "RunOptions",
    "TellingOptions",
    "Transformer",
    "UserData",
]


class Transformer(Protocol):
    """A gating of the user's own: fitted, or with `fit(X)` too."""

    def transform(self, X: Any, /) -> Any:
        """Return the gates (n, H) of inputs (n, D)."""


'''
PLAIN = '''

class _PlainChoices(TypedDict, total=False):
    """The options that do not change what a report holds, beside `data` and `gating`."""

'''
CHOICES = '''

class Choices(_PlainChoices, total=False):
    """Every option of every model, beside `data` and `gating`."""

'''
USER = '''

class UserData(TypedDict, total=False):
    """Data and gates of the user, in place of bundled and drawn ones."""

'''
RUN = '''

class RunOptions(Choices, UserData, total=False):
    """Everything that a model may be told."""


if TYPE_CHECKING:
    ValueT = TypeVar("ValueT")
    # One value, several, or a function of the cell.
    Values: TypeAlias = ValueT | Iterable[ValueT] | Callable[[Mapping[str, Any]], Any]


class GridOptions(TypedDict, total=False):
    """The grid of a sweep as a mapping: options by their names, with the values that each takes.

    Type checkers know the names and values of all models; whether the model at hand has an option
    is seen as the sweep begins. A mapping that is written into the call of `sweep` needs no
    annotation, and one that is computed goes through `product`.

    Examples
    --------
    >>> grid: ib.sweeps.GridOptions = {"n_train": [20, 40], "seed": "0:3"}
    >>> len(ib.sweep("linear", grid, out="runs", steps=0).cells)
    6
    """

{grid}


# The model, and the values of the options of which the classes in a report depend.
if TYPE_CHECKING:
    ModelT = TypeVar("ModelT", bound=ModelName)
{variables}
else:  # Python 3.13 is the first whose type variables have defaults
    from typing import TypeVar

    ModelT = TypeVar("ModelT")
{plain variables}


class TellingOptions(_PlainChoices, UserData, Generic[{names}], total=False):
    """The same, by whose values type checkers know what the report holds."""

{telling}'''
# What may be supplied beside the values of an option, and options that can be supplied alone.
USER_DATA = {"data": ["Dataset", "ClassDataset"], "gating": ["Transformer", "None"]}
ARRAYS = ("X", "y", "X_val", "y_val")
# Options that are checked where they are used, by the declarations that the solver and torch have.
CHECKED_LATER = {"solver": SolverName, "device": DeviceName}


def source() -> str:
    """Return the text of the module."""
    own = {name: hint(kinds) for name, kinds in sorted(options().items())}
    own |= {name: [literal(get_args(declared))] for name, declared in CHECKED_LATER.items()}
    shared = {name: line(name, parts) for name, parts in own.items() if name not in USER_DATA}
    telling = [shared.pop(name) for name in sorted(TELLING)]
    swept = [f"    {name}: {values(name, own[name])}" for name in sorted({*own} - {"gating"})]
    supplied = [line(name, [*own[name], *more]) for name, more in USER_DATA.items()]
    arrays = [line(name, ["ArrayLike", "None"]) for name in ARRAYS]
    names = f"ModelName = {broken(literal(MODELS), 0)}\n"
    run = RUN.replace("{names}", ", ".join(map(variable, sorted(TELLING))))
    parts = {
        "{variables}": [f"    {declared(name, own[name][0])}" for name in sorted(TELLING)],
        "{plain variables}": [
            f'    {variable(name)} = TypeVar("{variable(name)}")' for name in sorted(TELLING)
        ],
        "{grid}": swept,
        "{telling}": [*(f"    {name}: {variable(name)}" for name in sorted(TELLING)), ""],
    }
    for mark, lines in parts.items():
        run = run.replace(mark, "\n".join(lines))
    return formatted(
        "".join(
            [HEAD, names, PLAIN, *shared.values(), CHOICES, *telling, USER, *arrays, *supplied, run]
        ),
        PATH,
    )


def variable(name: str) -> str:
    """Return the name of the type variable of an option."""
    return f"{name.capitalize()}T"


def declared(name: str, words: str) -> str:
    """Return the type variable of an option, whose first word most models begin from."""
    first = literal([words.removeprefix('Literal["').partition('"')[0]])
    return f'{variable(name)} = TypeVar("{variable(name)}", bound={words}, default={first})'


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


def values(name: str, parts: list[str]) -> str:
    """Return the type of what a grid says of an option, ranges such as "0:10" among it."""
    ranges = " | str" if any(kind.base is int for kind in options()[name]) else ""
    return f"Values[{' | '.join(parts)}]{ranges}"


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
    """Return a `Literal`, or a sequence of one, a word a line where it is long."""
    if len(part) + indent + 2 <= WIDTH:
        return part
    inside, outside = " " * (indent + 4), " " * indent
    if part.startswith("Sequence["):
        inner = broken(part.removeprefix("Sequence[").removesuffix("]"), indent + 4)
        return f"Sequence[\n{inside}{inner}\n{outside}]"
    words = part.removeprefix("Literal[").removesuffix("]").split(", ")
    return "Literal[\n" + "".join(f"{inside}{word},\n" for word in words) + f"{outside}]"


if __name__ == "__main__":
    PATH.write_text(source(), encoding="utf-8")
    HELD.write_text(held_types(), encoding="utf-8")
