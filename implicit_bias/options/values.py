"""Values of options: one reading of each, and one message, for Python and for the command line."""

from __future__ import annotations

import math
import os
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, fields
from functools import cache
from numbers import Integral, Real
from pathlib import Path
from types import MappingProxyType, NoneType
from typing import Any, Literal, get_args, get_origin, get_type_hints

from .._support.words import nearest
from ..data.names import is_file
from .fields import About, Options

WORDS = {int: "a whole number", float: "a number", str: "a string", bool: "True or False",
         Path: "a path"}  # fmt: skip


@dataclass(frozen=True)
class Kind:
    """The values that an option takes: what its type says, and what is declared beside it.

    Attributes
    ----------
    base : type
        int, float, str, bool or Path.
    several : bool
        True for a list of them.
    optional : bool
        True where None leaves it to the model, the trainer or the data.
    choices : tuple of str
        All that there are, for a string of which not every one will do.
    about : About
    """

    base: type
    several: bool
    optional: bool
    choices: tuple[str, ...]
    about: About

    def read(self, value: Any) -> Any:
        """Return `value` as the option holds it.

        Raises
        ------
        TypeError
            If it is of another type.
        ValueError
            If it is out of range, or none of the choices. The messages do not name the option.
        """
        if value is None and self.optional:
            return None
        if isinstance(value, str) and value in self.about.words:
            return self.about.words[value]
        if self.about.joined:
            return self._join(value)
        if self.several:
            entries = value if _is_list(value) else [value]
            return tuple(self._one(entry, value) for entry in entries)
        return self._one(value, value)

    def parse(self, text: str) -> Any:
        """Read what was typed: lists have commas between their entries."""
        if text in self.about.words:
            return self.about.words[text]
        if self.base is bool:
            return self.read(_truth(text))
        try:
            values = [self.base(part) for part in (text.split(",") if self.several else [text])]
        except ValueError as error:
            raise TypeError(f"{text!r} is not {self._wanted()}") from error
        return self.read(values if self.several else values[0])

    def _join(self, value: Any) -> str:
        names = value.split(",") if isinstance(value, str) else value
        if not (isinstance(value, str) or _is_list(value)) or len(names) == 0:
            raise TypeError(f"{value!r} is no name, nor a list of them")
        read = [self._one(name, value) for name in names]
        twice = [name for name in read if read.count(name) > 1]
        if twice:
            raise ValueError(f"{twice[0]!r} is named twice: name each once")
        return ",".join(read)

    def _as_typed(self, value: Any) -> Any:
        """Return paths and numbers, where they stand for strings, as strings."""
        if self.about.files and isinstance(value, os.PathLike):
            return os.fspath(value)
        # True is the label "True".
        return str(value) if self.about.numbers and isinstance(value, Integral) else value

    def _one(self, value: Any, whole: Any) -> Any:
        value, files = self._as_typed(value), self.about.files
        if not _fits(value, self.base):
            raise TypeError(f"{whole!r} is not {self._wanted()}")
        if self.choices and value not in self.choices and not (files and is_file(value)):
            raise ValueError(not_one_of(value, self.choices, ", nor a file" * files))
        if self.base is float and not math.isfinite(value):
            raise ValueError(f"{float(value)} is no finite number")
        if self.about.above is not None and not value > self.about.above:
            raise ValueError(f"{value} is not above {self.about.above:g}")
        if self.about.least is not None and value < self.about.least:
            raise ValueError(f"{value} is below {self.about.least}")
        if self.about.below is not None and not value < self.about.below:
            raise ValueError(f"{value} is not below {self.about.below:g}")
        if self.about.power_of_two and value & (value - 1):
            below = 1 << (value.bit_length() - 1)
            raise ValueError(f"{value} is no power of two: take {below} or {2 * below}")
        return value if self.base is bool else self.base(value)

    def _wanted(self) -> str:
        words = [f"`{word!r}`" for word in self.about.words]
        wanted = f"a list such as {self.about.example}" if self.several else WORDS[self.base]
        return " or ".join([wanted, *words])


def kinds(options: Any) -> Mapping[str, Kind]:
    """Return the values that each option of a dataclass of options takes, by its name."""
    return _kinds(options)


@cache
def _kinds(options: Any) -> Mapping[str, Kind]:  # a class of fields is hashable, mypy says not
    hints = get_type_hints(options)
    return MappingProxyType(
        {one.name: _kind(hints[one.name], one.metadata["about"]) for one in fields(options)}
    )


def check_choices(options: type[Options], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the choices as options hold them, without those that None leaves to the model.

    Raises
    ------
    TypeError, ValueError
        For the first value that is none of its option's, with its name.
    """
    known, read = kinds(options), {}
    for name, value in given.items():
        if value is None:  # as if it had not been given
            continue
        try:
            read[name] = known[name].read(value)
        except (TypeError, ValueError) as error:
            raise type(error)(f"`{name}`: {error}") from error
    return {name: value for name, value in read.items() if value is not None}


def not_one_of(value: object, choices: Iterable[str], nor: str = "") -> str:
    """Return the message for an invalid choice, with the nearest valid one."""
    choices = list(choices)
    return f"{value!r} is not one of {', '.join(map(repr, choices))}{nor}{nearest(value, choices)}"


def no_such_option(
    name: str,
    typed: str,
    model: str | None,
    takers: Mapping[str, Collection[str]],
    own: Collection[str] = (),
) -> str:
    """Return the message for an option that a model does not have.

    Parameters
    ----------
    name, typed : str
        The option, and with the value that it was given.
    model : str or None
        None where the model is not known.
    takers : mapping of str to collection of str
        The models that have an option, by the option's name.
    own : collection of str
        Further names that may be meant.
    """
    if name in takers and model is not None:
        return (
            f"`{typed}` is not for the model {model}: leave it out, or take one of "
            f"{', '.join(takers[name])}"
        )
    mine = [key for key, models in takers.items() if model is None or model in models]
    # Options of other models are suggested only where none of this one's is near.
    close = nearest(name, [*mine, *own], "`{}`".format) or nearest(name, takers, "`{}`".format)
    return f"No such option: `{name}`{close}"


def _kind(hint: Any, about: About) -> Kind:
    optional = NoneType in get_args(hint)
    if optional:
        (hint,) = (part for part in get_args(hint) if part is not NoneType)
    several = get_origin(hint) is tuple
    base = get_args(hint)[0] if several else hint
    choices = get_args(base) if get_origin(base) is Literal else about.choices
    return Kind(str if choices else base, several, optional, tuple(choices), about)


def _truth(text: str) -> Any:
    """Return True or False as they are typed, in TOML or in Python; anything else as it is."""
    return {"true": True, "false": False}.get(text.lower(), text)


def _is_list(value: Any) -> bool:
    return isinstance(value, list | tuple) or getattr(value, "ndim", 0) == 1


def _fits(value: Any, base: type) -> bool:
    """Return True for a value of a type; numpy numbers are of the Python type they stand for."""
    if base is bool or isinstance(value, bool):
        return base is bool and isinstance(value, bool)
    if base is int:
        return isinstance(value, Integral)
    if base is float:
        return isinstance(value, Real)
    return isinstance(value, str | os.PathLike) if base is Path else isinstance(value, base)
