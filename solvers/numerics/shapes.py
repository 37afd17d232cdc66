"""Shapes of arrays in letters that several arrays share: "n D" of inputs, "n" of their labels."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from typing import Any, NamedTuple, Self


class Size(NamedTuple):
    """The length of one axis: a letter or a number, and the least that a letter may be."""

    name: str
    least: int

    @classmethod
    def of(cls, text: str) -> Self:
        name, _, least = text.partition(">=")
        return cls(name, int(least or 1))

    def known(self, sizes: Mapping[str, Any]) -> int | None:
        """Return the length that it must have, None of a letter that no array has had yet."""
        known: int | None = sizes.get(self.name)
        return int(self.name) if self.name.isdigit() else known

    @property
    def is_own(self) -> bool:
        """True of a letter that no other array shares."""
        return self.name.startswith("_")

    def shown(self, sizes: Mapping[str, Any]) -> str:
        known = self.known(sizes)
        return self.name.strip("_+") if known is None else str(known)


REST = Size("...", 1)  # any axes more


class Axes:
    """The shape that an array must have, in letters, and why.

    Parameters
    ----------
    text : str
        Letters, numbers and names between spaces, such as "n D" or "n 2". A letter stands for one
        length in all arrays of a call, of 1 at least; "K>=2" and "m>=0" say another least length,
        and one that begins with "_" is of this array alone. ".n_units" and "+widths" are lengths,
        "=a" is a shape, that `sizes` has beforehand. "D | K D" are two shapes that will do; "n ..."
        has any axes more. What follows a colon is the end of the message.

    Examples
    --------
    >>> sizes = {}
    >>> Axes("n D").fit("X", (50, 3), sizes)
    >>> Axes("n: one label per row of X").fit("y", (49,), sizes)
    Traceback (most recent call last):
    ValueError: `y` must have shape (50,), got (49,): one label per row of X
    """

    def __init__(self, text: str) -> None:
        shapes, _, self.reason = text.partition(": ")
        self.shapes = [[Size.of(one) for one in shape.split()] for shape in shapes.split("|")]

    @property
    def asked(self) -> set[str]:
        """What an array does not tell: ".n_units" of an object, "+widths" a sum, "=a" a shape."""
        names = {one.name for axes in self.shapes for one in axes if one != REST}
        return {name for name in names if name[0] in ".+="}

    def fit(self, name: str, shape: tuple[int, ...], sizes: MutableMapping[str, Any]) -> None:
        """Refuse another shape, and add the lengths of letters that are new to `sizes`.

        Raises
        ------
        ValueError
            With the shape that it must have, the one that it has, and the reason.
        """
        shapes = [_whole(axes, sizes) for axes in self.shapes]
        for axes in shapes:
            found = _lengths(axes, shape, sizes)
            if found is not None:
                sizes.update(found)
                return
        wanted = ", or ".join(_shown(axes, sizes) for axes in shapes)
        reason = f": {self.reason}" if self.reason else ""
        raise ValueError(f"`{name}` must have shape {wanted}, got {tuple(shape)}{reason}")


def _whole(axes: list[Size], sizes: Mapping[str, Any]) -> list[Size]:
    """Return axes with those of another array in the place of its name."""
    if len(axes) == 1 and axes[0].name.startswith("="):
        return [Size(str(length), 1) for length in sizes[axes[0].name]]
    return axes


def _lengths(
    axes: list[Size], shape: tuple[int, ...], sizes: Mapping[str, Any]
) -> dict[str, int] | None:
    """Return the lengths of letters that a shape makes known; None if it is another shape."""
    if axes and axes[-1] == REST:
        axes, shape = axes[:-1], shape[: len(axes) - 1]
    if len(shape) != len(axes):
        return None
    found: dict[str, int] = {}
    for size, length in zip(axes, shape, strict=True):
        known = size.known({**found, **sizes})
        if length < size.least if known is None else length != known:
            return None
        if known is None and not size.is_own:
            found[size.name] = int(length)
    return found


def _shown(axes: list[Size], sizes: Mapping[str, Any]) -> str:
    """Return a shape as messages have it: "(50, J) with J >= 1"."""
    names = [size.shown(sizes) for size in axes]
    free = {size.shown(sizes): size.least for size in axes if size.known(sizes) is None}
    of_one = [name for name, least in free.items() if least == 1 and name != REST.name]
    others = [f"{name} >= {least}" for name, least in free.items() if least > 1]
    conditions = [*([f"{', '.join(of_one)} >= 1"] if of_one else []), *others]
    shown = f"({', '.join(names)}{',' if len(names) == 1 else ''})"
    return f"{shown} with {' and '.join(conditions)}" if conditions else shown
