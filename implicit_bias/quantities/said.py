"""What an object of a run says of itself: all that is shown and kept of it is read from here.

A class declares what it holds; views (record, cells of the run's row, lines of a table, column of
the first screen, status, certificate, files, panels) are read from that by functions that know no
model.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, ClassVar

from .._support.doors import door
from .._support.shown import Shown

if TYPE_CHECKING:
    from .._support.solve import Status

Writer = Callable[[Path], None]
_PACKAGE = __name__.partition(".")[0]


@dataclass(frozen=True)
class Table:
    """Rows of text under column titles; the first column is the label.

    `of_network` says that the last column is of a network, beside which those of others can stand.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    of_network: bool = False

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(f"row {row} of table {self.title!r} has not {len(self.columns)}")


@dataclass(frozen=True)
class Side:
    """One column of the first screen: a prediction, or a network beside it.

    `values` are by the names of their quantities in `quantities.TABLE`, the important ones first;
    texts stand for themselves. A prediction has the ideal value of what it has none of.
    """

    name: str
    values: Mapping[str, Any]
    predicted: bool = False


class Said(Shown):
    """Base of the objects of a run: results, comparisons and trajectories.

    A subclass declares the attributes below and inherits the views; it overrides one where what it
    says depends on its values.

    Attributes
    ----------
    ROW : mapping of str to str
        Columns of the run's row, and the paths of their values: ``{"gap": "certificate.gap"}``.
    SCREEN : tuple of str
        Quantities of its column of the first screen, the important ones first: columns of the row,
        or else paths.
    PREDICTED : bool
        True if that column is of a prediction.
    TITLE : str
        Of its table; empty if it has none.
    HEADS : tuple of str
        Over the columns of that table, "{}" being what the object is called.
    PANELS : tuple of str
        "module:function" of each panel, a function of the object and the axes.
    """

    ROW: ClassVar[Mapping[str, str]] = {}
    SCREEN: ClassVar[tuple[str, ...]] = ()
    PREDICTED: ClassVar[bool] = False
    TITLE: ClassVar[str] = ""
    HEADS: ClassVar[tuple[str, ...]] = ("", "value")
    PANELS: ClassVar[tuple[str, ...]] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return what it holds as plain Python values; floats may be infinite or NaN."""
        raise NotImplementedError

    def record(self) -> dict[str, Any]:
        """Return its entry of the run's record: all that it holds, but for what is too long."""
        return self.to_dict()

    def rows(self) -> list[tuple[str, ...]]:
        """Return the lines of its table, each with a text under every head."""
        return []

    def _shown_rows(self) -> Sequence[tuple[str, ...]]:
        return self.rows()

    def cells(self) -> dict[str, Any]:
        """Return the values of the run's row, by their columns."""
        return {column: attrgetter(path)(self) for column, path in self.ROW.items()}

    def screen(self) -> dict[str, Any]:
        """Return what the first screen shows of it, by the names of quantities; no None."""
        places = self._places()
        found = {name: attrgetter(places.get(name, name))(self) for name in self.SCREEN}
        return {name: value for name, value in found.items() if value is not None}

    @door()
    def sides(self, name: str) -> tuple[Side, ...]:
        """Return its columns of the first screen."""
        return (Side(name, self.screen(), self.PREDICTED),) if self.SCREEN else ()

    @door()
    def tables(self, name: str = "") -> tuple[Table, ...]:
        """Return its tables."""
        heads = tuple(head.format(name) for head in self.HEADS)
        return (Table(self.TITLE, heads, tuple(self.rows())),) if self.TITLE else ()

    @door()
    def statuses(self, name: str) -> dict[str, Status]:
        """Return what is proved of it in one word; empty where nothing is."""
        return {}

    @door()
    def proofs(self, name: str) -> dict[str, Mapping[str, Any]]:
        """Return the proved numbers, for the page; empty where nothing is proved."""
        return {}

    @door()
    def files(self, name: str) -> dict[str, Writer]:
        """Return writers of its files, by their names, which begin with `name`."""
        return {}

    def panels(self) -> tuple[Any, ...]:
        """Return its part of the picture: functions of axes, and rows of them, that pickle."""
        return tuple(partial(resolve_name(f"{_PACKAGE}.{at}"), self) for at in self.PANELS)

    def _places(self) -> Mapping[str, str]:
        """Return the paths of quantities whose names differ from their attributes'."""
        return self.ROW
