"""A measured quantity: one declaration, which tables, records and the run's row are read from."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from .formatting import DASH, number

Format = str | Callable[[Any], str]
Type = Literal["bool", "float64", "int64", "string"]
Rule = Literal["least", "largest", "sum"]


@dataclass(frozen=True)
class Quantity:
    """A quantity as every table, record and row speaks of it.

    Attributes
    ----------
    name : str
        Its column in the run's row, or the field that holds it.
    label : str
        Its line in a table, without the ideal value; two blanks in front of what belongs to the
        line above.
    format : str or callable
        Python's format of a number, or what makes a text of a value, for instance `spread`.
    ideal : float, optional
        Its value where theory and training agree perfectly.
    at_most : float, optional
        The largest value that theory allows, where there is no single ideal one.
    doc : str
        One sentence; the label if it is left out.
    type : {"bool", "float64", "int64", "string"}, optional
        Of its column in the run's row; None if it has none.
    over_classes : {"least", "largest", "sum"}, optional
        Its value in the row of a run of several classes, each against the rest.
    head : str
        A short label for the head of a column; the label if it is left out.
    phrase : str
        The value in a sentence, as `str.format` fills it in; label and value if it is left out.

    Examples
    --------
    >>> ratio = Quantity("ratio", "margin ratio", ".2f", ideal=1.0)
    >>> ratio.title, ratio.text(0.987)
    ('margin ratio (ideal 1)', '0.99')
    """

    name: str
    label: str
    format: Format = ".4g"
    ideal: float | None = None
    at_most: float | None = None
    doc: str = ""
    type: Type | None = None
    over_classes: Rule | None = None
    head: str = ""
    phrase: str = ""

    @property
    def title(self) -> str:
        """The label, with the ideal value in parentheses."""
        return self.label + self._ideal_text()

    @property
    def column_title(self) -> str:
        """The head of a column, with the ideal value in parentheses."""
        return (self.head or self.label.strip()) + self._ideal_text()

    @property
    def distance_label(self) -> str:
        """The label of the distance from the ideal value, as an axis has it."""
        label = self.label.strip()
        return f"{self.ideal:g} - {label}" if self.ideal else label

    @property
    def sentence(self) -> str:
        """Description as a sentence: `doc`, or else the title."""
        title = self.title.strip()
        return self.doc or f"{title[:1].upper()}{title[1:]}."

    @property
    def ideal_text(self) -> str:
        """The ideal value in as few characters as it takes; a dash without one."""
        return DASH if self.ideal is None else self._shortest(self.ideal)

    def text(self, value: Any) -> str:
        """Format a value as tables show it; a dash for None, NaN and infinity."""
        if value is None:
            return DASH
        if isinstance(value, str):
            return value
        if callable(self.format):
            return self.format(value)
        if isinstance(value, bool):
            return str(value)
        return number(value, self.format)

    def said(self, value: Any) -> str:
        """Say a value in a sentence."""
        return (
            self.phrase.format(value) if self.phrase else f"{self.label.strip()} {self.text(value)}"
        )

    def _ideal_text(self) -> str:
        value = self.ideal if self.at_most is None else self.at_most
        if value is None:
            return ""
        words = self._shortest(value)
        return f" (ideal {words})" if self.at_most is None else f" (at most {words})"

    def _shortest(self, value: float) -> str:
        percent = isinstance(self.format, str) and self.format.endswith("%")
        return f"{100 * value:g}%" if percent else f"{value:g}"


def distance_from_ideal(quantity: Quantity, value: Any) -> float:
    """Measure how far a value is from the quantity's ideal; of several values the largest.

    Parameters
    ----------
    quantity : Quantity
    value : float or array
        None and NaN count as unknown.

    Returns
    -------
    float
        NaN where the quantity has no ideal value or nothing is known. Below a value `at_most` the
        distance is 0.

    Examples
    --------
    >>> distance_from_ideal(Quantity("share", "share", ".0%", ideal=1.0), 0.75)
    0.25
    """
    if value is None or (quantity.ideal is None and quantity.at_most is None):
        return math.nan
    values = np.asarray(value, dtype=np.float64)
    if quantity.ideal is not None:
        distances = np.abs(values - quantity.ideal)
    else:
        assert quantity.at_most is not None
        distances = np.where(np.isnan(values), np.nan, np.maximum(values - quantity.at_most, 0.0))
    known = distances[~np.isnan(distances)]
    return float(known.max()) if known.size else math.nan


def by_name(quantities: tuple[Quantity, ...]) -> Mapping[str, Quantity]:
    """Return quantities by their names.

    Raises
    ------
    ValueError
        If two have one name.
    """
    found = {one.name: one for one in quantities}
    if len(found) < len(quantities):
        names = [one.name for one in quantities]
        twice = sorted({name for name in names if names.count(name) > 1})
        raise ValueError(f"{', '.join(twice)} declared twice")
    return found
