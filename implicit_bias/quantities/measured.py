"""Results made of declared quantities: record, table, cells of the run's row and notebook view."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, replace
from enum import Enum
from typing import Any, ClassVar, TypeVar, dataclass_transform

from .._shown import Shown
from .formatting import DASH, aligned
from .quantity import Format, Quantity, distance_from_ideal
from .table import TABLE

__all__ = ["Declared", "Measured", "derived", "part", "quantity", "side_by_side", "stacked"]

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
    kept : bool
        Whether the record has an entry of it.
    in_table : bool
        Whether the declaration is that of `TABLE`.
    """

    quantity: Quantity
    shown: bool = True
    kept: bool = True
    in_table: bool = False


def quantity(
    label: str | None = None,
    format: Format = ".4g",
    *,
    ideal: float | None = None,
    at_most: float | None = None,
    doc: str = "",
    column: str | None = None,
    shown: bool = True,
    kept: bool = True,
    default: Any = MISSING,
) -> Any:
    """A field of a `Measured` that holds a quantity.

    Parameters
    ----------
    label, format, ideal, at_most, doc
        As of `Quantity`, for one that this class alone has. Without a label the declaration is
        that of `TABLE` under the field's name.
    column : str, optional
        The name in `TABLE`, where it differs from the field's.
    shown, kept : bool
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
    margin ratio (1)     0.9900
    loss of the fit (0)  0.250
    """
    own = Quantity(column or "", label or "", format, ideal, at_most, doc)
    about = Declared(own, shown=shown, kept=kept, in_table=label is None)
    return field(default=default, metadata={KEY: about})


def part(doc: str, *, kept: bool = True, default: Any = MISSING) -> Any:
    """A field of a `Measured` that has no line in its table: an array, or a result of its own.

    Parameters
    ----------
    doc : str
        One sentence.
    kept : bool
        Whether the record has it.
    default
        The field's default.
    """
    about = Declared(Quantity("", "", doc=doc), shown=False, kept=kept)
    return field(default=default, metadata={KEY: about})


class _Derived(property):
    """A property with a declaration."""

    declared: Declared


def derived(
    label: str | None = None,
    format: Format = ".4g",
    *,
    ideal: float | None = None,
    at_most: float | None = None,
    column: str | None = None,
    shown: bool = True,
    kept: bool = False,
) -> Callable[[Callable[[Any], T]], T]:
    """A property of a `Measured` that is a quantity; parameters as of `quantity`.

    Its docstring takes the place of `doc`. The record has it only if `kept` says so, since it
    follows from the fields.
    """

    def decorate(function: Callable[[Any], T]) -> Any:
        found = _Derived(function)
        doc = inspect.getdoc(function) or ""
        own = Quantity(column or "", label or "", format, ideal, at_most, doc)
        found.declared = Declared(own, shown=shown, kept=kept, in_table=label is None)
        return found

    return decorate


@dataclass_transform(frozen_default=True, eq_default=False, field_specifiers=(quantity, part))
class Measured(Shown):
    """A mixin that makes its subclasses frozen dataclasses of declared quantities.

    Every field is declared by `quantity` or `part`. A subclass gets `to_dict`, `rows`, `cells`,
    its text and its notebook view from the declarations, and the section on attributes of its
    docstring. Say ``class C(Measured, eq=True)`` where fields can be compared.
    """

    declared: ClassVar[Mapping[str, Declared]] = {}

    def __init_subclass__(cls, *, eq: bool = False) -> None:
        super().__init_subclass__()
        own = {
            name: _completed(name, about)
            for name, value in vars(cls).items()
            if (about := _declared_in(value)) is not None
        }
        hints = {name: hint for name, hint in inspect.get_annotations(cls).items()
                 if "ClassVar" not in str(hint)}  # fmt: skip
        lacking = set(hints) - set(own)
        if lacking:
            raise TypeError(f"{cls.__name__}: {', '.join(sorted(lacking))} not declared")
        cls.declared = {**cls.declared, **own}
        cls.__doc__ = _documented(cls, hints)
        dataclass(frozen=True, eq=eq, repr=False)(cls)

    def to_dict(self) -> dict[str, Any]:
        """The quantities as plain Python values: arrays as lists, results as dictionaries."""
        return {name: plain(getattr(self, name))
                for name, one in self.declared.items() if one.kept}  # fmt: skip

    def rows(self) -> list[tuple[str, ...]]:
        """Label and text of every line of a table; none of what is None."""
        return self.lines(*(name for name, one in self.declared.items() if one.shown))

    def lines(self, *names: str) -> list[tuple[str, ...]]:
        """The lines of a table of these attributes; none of what is None."""
        return [(self.declared[name].quantity.title, self.text(name))
                for name in names if getattr(self, name) is not None]  # fmt: skip

    def text(self, name: str) -> str:
        """The value of an attribute as tables show it; a dash for None."""
        value = getattr(self, name)
        return DASH if value is None else self.declared[name].quantity.text(value)

    def cells(self) -> dict[str, Any]:
        """The values of the run's row, by their columns."""
        return {
            one.quantity.name: getattr(self, name)
            for name, one in self.declared.items()
            if one.quantity.type is not None
        }

    def distances_from_ideal(self) -> dict[str, float]:
        """Distances of the quantities from their ideal values, where known, the largest first."""
        found = {
            name: distance_from_ideal(one.quantity, getattr(self, name))
            for name, one in self.declared.items()
        }
        known = {name: far for name, far in found.items() if not math.isnan(far)}
        return dict(sorted(known.items(), key=lambda item: -item[1]))

    def _shown_rows(self) -> Sequence[tuple[str, ...]]:
        return self.rows()

    def __str__(self) -> str:
        return aligned(self.rows())


def side_by_side(results: Sequence[Measured | None], *names: str) -> list[tuple[str, ...]]:
    """Lines of a table with one column a result of one class, a dash where that is None.

    Parameters
    ----------
    results : sequence of Measured or None
        At least one that is not None.
    names : str
        Attributes, one a line; those that are shown if none is named.
    """
    declared = next(one.declared for one in results if one is not None)
    names = names or tuple(name for name, about in declared.items() if about.shown)
    return [(declared[name].quantity.title, *_texts(results, name)) for name in names]


def stacked(
    results: Mapping[str, Measured | None], *names: str
) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """`side_by_side` with rows and columns exchanged: the titles, and one line a result.

    Parameters
    ----------
    results : mapping of label to Measured or None
    names : str
        As of `side_by_side`.
    """
    lines = side_by_side(list(results.values()), *names)
    columns = ("", *(title for title, *_ in lines))
    rows = [(label, *(line[k] for line in lines)) for k, label in enumerate(results, start=1)]
    return columns, rows


def plain(value: Any) -> Any:
    """A value as JSON has it, but for infinities and NaN."""
    if isinstance(value, Measured):
        return value.to_dict()
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, Mapping):
        return {key: plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    return value.tolist() if hasattr(value, "tolist") else value


def _texts(results: Iterable[Measured | None], name: str) -> list[str]:
    return [DASH if one is None else one.text(name) for one in results]


def _declared_in(value: Any) -> Declared | None:
    """The declaration that an attribute of a class carries."""
    if isinstance(value, Field):
        found: Declared | None = value.metadata.get(KEY)
        return found
    return value.declared if isinstance(value, _Derived) else None


def _completed(name: str, about: Declared) -> Declared:
    """A declaration with the name of its attribute, or that of the table by that name."""
    own = about.quantity
    name = own.name or name
    if not about.in_table:
        return replace(about, quantity=replace(own, name=name))
    if name not in TABLE:
        raise TypeError(f"`{name}` is not declared: give it a label, or a line in the table")
    shared = TABLE[name]
    return replace(about, quantity=replace(shared, doc=own.doc or shared.doc))


def _documented(cls: type[Measured], hints: Mapping[str, Any]) -> str | None:
    """The docstring of a class with its section on attributes."""
    if cls.__doc__ is None:
        return None
    text = inspect.cleandoc(cls.__doc__)
    section = re.search(r"\n\n(Notes|References|Examples)\n-+\n", text)
    place = section.start() if section else len(text)
    lines = ["", "", "Attributes", "----------"]
    for name, hint in hints.items():
        lines += [f"{name} : {hint}", f"    {cls.declared[name].quantity.sentence}"]
    return text[:place] + "\n".join(lines) + text[place:]
