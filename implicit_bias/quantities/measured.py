"""Results made of declared quantities: record, table, cells of the run's row and notebook view."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, replace
from enum import Enum
from typing import Any, ClassVar, TypeVar, dataclass_transform

from .._support.doors import door
from .definition import Format, Quantity, distance_from_ideal
from .formatting import DASH, aligned
from .said import Said
from .table import TABLE

T = TypeVar("T")
KEY = "quantity"


@dataclass(frozen=True)
class Declared:
    """One attribute of a result and its declaration.

    Attributes
    ----------
    quantity : Quantity
        Of `TABLE`, or the attribute's own.
    shown : bool
        Whether tables have a line of it.
    recorded : bool
        Whether the record has an entry of it.
    """

    quantity: Quantity
    shown: bool
    recorded: bool


# A declaration before its attribute has a name, with which it is called.
_Draft = Callable[[str], Declared]


def quantity(
    label: str | None = None,
    format: Format | None = None,
    *,
    ideal: float | None = None,
    at_most: float | None = None,
    doc: str | None = None,
    head: str | None = None,
    column: str | None = None,
    shown: bool = True,
    recorded: bool = True,
    default: Any = MISSING,
) -> Any:
    """Declare a field of a `Measured` that holds a quantity.

    Parameters
    ----------
    label, format, ideal, at_most, doc, head
        As of `Quantity`. Without a label the declaration is that of `TABLE` under the field's
        name, and what is given takes the place of what stands there.
    column : str, optional
        The name in `TABLE`, where it differs from the field's.
    shown, recorded : bool
        Whether the table and the record have it.
    default
        The field's default.

    Examples
    --------
    >>> class Fit(Measured):
    ...     '''A fit.'''
    ...     margin_ratio: float = quantity()
    ...     loss: float = quantity("loss of the fit", ".3f", ideal=0.0)
    >>> print(Fit(margin_ratio=0.99, loss=0.25))
    margin ratio (ideal 1)     0.9900
    loss of the fit (ideal 0)  0.250
    """
    values = {"label": label, "format": format, "ideal": ideal, "at_most": at_most, "doc": doc,
             "head": head}  # fmt: skip
    return field(
        default=default, metadata={KEY: _draft(values, column, shown=shown, recorded=recorded)}
    )


def part(doc: str, *, recorded: bool = True, default: Any = MISSING) -> Any:
    """Declare a field of a `Measured` without a line in its table: an array, or another result.

    Parameters
    ----------
    doc : str
        One sentence.
    recorded : bool
        Whether the record has it.
    default
        The field's default.
    """
    draft = _draft({"label": "", "doc": doc}, None, shown=False, recorded=recorded)
    return field(default=default, metadata={KEY: draft})


class _Derived(property):
    """A property with a declaration."""

    draft: _Draft


def derived(
    label: str | None = None,
    format: Format | None = None,
    *,
    ideal: float | None = None,
    at_most: float | None = None,
    column: str | None = None,
    shown: bool = True,
    recorded: bool = False,
) -> Callable[[Callable[[Any], T]], T]:
    """Declare a property of a `Measured` that is a quantity; parameters as of `quantity`.

    Its docstring takes the place of `doc`. The record has it only if `recorded` says so, since it
    follows from the fields.
    """

    def decorate(function: Callable[[Any], T]) -> Any:
        """Make the property a quantity."""
        found = _Derived(function)
        values = {"label": label, "format": format, "ideal": ideal, "at_most": at_most,
                 "doc": inspect.getdoc(function)}  # fmt: skip
        found.draft = _draft(values, column, shown=shown, recorded=recorded)
        return found

    return decorate


def _draft(values: Mapping[str, Any], column: str | None, *, shown: bool, recorded: bool) -> _Draft:
    """Return what declares the attribute of a name, `column` being that in the table."""
    known = {name: value for name, value in values.items() if value is not None}

    def completed(name: str) -> Declared:
        """Raise TypeError for one that has no label and that the table does not know."""
        place = column or name
        if column is None and "label" in known:
            return Declared(Quantity(name, **known), shown, recorded)
        if place not in TABLE:
            raise TypeError(f"`{place}` is not declared: give it a label, or a line in the table")
        return Declared(replace(TABLE[place], **known), shown, recorded)

    return completed


@dataclass_transform(frozen_default=True, eq_default=False, field_specifiers=(quantity, part))
class Measured(Said):
    """A mixin that makes its subclasses frozen dataclasses of declared quantities.

    Every field is declared by `quantity` or `part`. A subclass gets `to_dict`, `rows`, `cells`,
    its text and its notebook view from the declarations, and the section on attributes of its
    docstring. Say ``class C(Measured, eq=True)`` where fields can be compared.
    """

    declared: ClassVar[Mapping[str, Declared]] = {}

    def __init_subclass__(cls, *, eq: bool = False) -> None:
        super().__init_subclass__()
        own = {
            name: draft(name)
            for name, value in vars(cls).items()
            if (draft := _draft_of(value)) is not None
        }
        lacking = set(_fields_of(cls)) - set(own)
        if lacking:
            raise TypeError(f"{cls.__name__}: {', '.join(sorted(lacking))} not declared")
        cls.declared = {**cls.declared, **own}
        cls.__doc__ = _documented(cls)
        dataclass(frozen=True, eq=eq, repr=False)(cls)

    def to_dict(self) -> dict[str, Any]:
        """Return quantities as plain Python values: arrays as lists, results as dictionaries."""
        return {name: plain(getattr(self, name))
                for name, one in self.declared.items() if one.recorded}  # fmt: skip

    def shown(self) -> tuple[str, ...]:
        """Return the attributes with a line in the table, where they are not None."""
        return tuple(name for name, one in self.declared.items() if one.shown)

    def rows(self) -> list[tuple[str, ...]]:
        """Return the label and text of every line of the table."""
        return self.lines(*self.shown())

    def lines(self, *names: str) -> list[tuple[str, ...]]:
        """Return the label and text of these attributes; no line of one that is None."""
        known = [name for name in names if getattr(self, name) is not None]
        return [(self.declared[name].quantity.title, self.text(name)) for name in known]

    @door()
    def text(self, name: str) -> str:
        """Return the value of an attribute as tables show it; a dash for None."""
        return self.declared[name].quantity.text(getattr(self, name))

    def cells(self) -> dict[str, Any]:
        """Return the values of the run's row, by their columns."""
        return {
            one.quantity.name: getattr(self, name)
            for name, one in self.declared.items()
            if one.quantity.type is not None
        } | super().cells()

    def distances_from_ideal(self) -> dict[str, float]:
        """Measure how far quantities are from their ideal values, the largest distance first."""
        found = {
            name: distance_from_ideal(one.quantity, getattr(self, name))
            for name, one in self.declared.items()
        }
        known = {name: far for name, far in found.items() if not math.isnan(far)}
        return dict(sorted(known.items(), key=lambda item: -item[1]))

    def _places(self) -> Mapping[str, str]:
        own = {one.quantity.name: name for name, one in self.declared.items()}
        return own | dict(self.ROW)

    def __str__(self) -> str:
        return aligned(self.rows())


def side_by_side(results: Sequence[Measured | None], *names: str) -> list[tuple[str, ...]]:
    """Return the lines of a table with one column for each result of one class.

    Parameters
    ----------
    results : sequence of Measured or None
        At least one that is not None.
    names : str
        Attributes, one a line; those that are shown if none is named.
    """
    declared = next(one.declared for one in results if one is not None)
    names = names or tuple(name for name, about in declared.items() if about.shown)
    return [
        (
            declared[name].quantity.title,
            *(DASH if one is None else one.text(name) for one in results),
        )
        for name in names
    ]


def stacked(
    results: Mapping[str, Measured | None], *names: str
) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Return heads and lines of a table with one line for each result of one class.

    Parameters
    ----------
    results : mapping of label to Measured or None
    names : str
        Attributes, one a column; those that are shown if none is named.
    """
    declared = next(one.declared for one in results.values() if one is not None)
    names = names or tuple(name for name, about in declared.items() if about.shown)
    heads = ("", *(declared[name].quantity.column_title for name in names))
    rows = [
        (label, *(DASH if one is None else one.text(name) for name in names))
        for label, one in results.items()
    ]
    return heads, rows


def plain(value: Any) -> Any:
    """Convert a value to what JSON has, but for infinities and NaN."""
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, Mapping):
        return {key: plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    return value.tolist() if hasattr(value, "tolist") else value


def _draft_of(value: Any) -> _Draft | None:
    """Return the declaration that an attribute of a class carries."""
    if isinstance(value, Field):
        found: _Draft | None = value.metadata.get(KEY)
        return found
    return value.draft if isinstance(value, _Derived) else None


def _fields_of(cls: type) -> dict[str, Any]:
    """Return the annotations of a class that are fields of it."""
    hints = inspect.get_annotations(cls).items()
    return {name: hint for name, hint in hints if "ClassVar" not in str(hint)}


def _documented(cls: type[Measured]) -> str | None:
    """Return the docstring of a class with its section on attributes."""
    if cls.__doc__ is None:
        return None
    text = inspect.cleandoc(cls.__doc__)
    section = re.search(r"\n\n(Notes|References|Examples)\n-+\n", text)
    place = section.start() if section else len(text)
    lines = ["", "", "Attributes", "----------"]
    hints: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        hints |= _fields_of(base)
    for name, hint in hints.items():
        kind = hint if isinstance(hint, str) else inspect.formatannotation(hint)
        lines += [f"{name} : {kind}", f"    {cls.declared[name].quantity.sentence}"]
    return text[:place] + "\n".join(lines) + text[place:]
