"""What the models may be told, all of them together: each option with what it takes."""

from __future__ import annotations

import pkgutil
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType

from .values import Kind, kinds

# By its path, as the table names runs by theirs: nothing that it is made of imports it.
MODELS = "implicit_bias.models:MODELS"


def model_names() -> tuple[str, ...]:
    """Return the names of all models."""
    return tuple(pkgutil.resolve_name(MODELS))


@cache
def options_of_models() -> Mapping[str, tuple[Kind, ...]]:
    """Return every option by its name, with what it takes in each model that has it."""
    found: dict[str, tuple[Kind, ...]] = {}
    for model in pkgutil.resolve_name(MODELS).values():
        for name, kind in kinds(model.options).items():
            found[name] = (*found.get(name, ()), kind)
    return MappingProxyType(dict(sorted(found.items())))


def hint_of(taken: Iterable[Kind]) -> str:
    """Return the type of what an option takes in these models, as it is written."""
    taken = tuple(taken)
    parts = [literal(word for kind in taken for word in kind.choices)]
    parts += [part for kind in taken for part in _parts(kind)]
    parts += ["None" for kind in taken if kind.optional]
    return " | ".join(dict.fromkeys(filter(None, parts)))


def literal(words: Iterable[str]) -> str:
    """Return the type of these words; empty where there are none."""
    quoted = ", ".join(dict.fromkeys(f'"{word}"' for word in words))
    return f"Literal[{quoted}]" if quoted else ""


def _parts(kind: Kind) -> Iterable[str]:
    """Yield the types that an option takes in one model, its choices and None aside."""
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
    yield literal(about.words)
