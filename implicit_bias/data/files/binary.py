"""Binary labels of data with several classes."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral

from ..._support.words import nearest
from ..dataset import Dataset
from ..labelled import ClassDataset
from ..table import listed


def with_binary_labels(
    dataset: ClassDataset, positive: Sequence[str | int] | str | int | None
) -> Dataset:
    """Return the data with the label +1 for some classes and -1 for all others.

    Parameters
    ----------
    dataset : ClassDataset
    positive : name or number of a class, or a sequence of them, or None
        Classes that are +1; None for the second of two.

    Raises
    ------
    ValueError
        If a class is not there, or a label is left without one.
    """
    names = {dataset.name_of(k): k for k in dataset.classes}
    if len(names) < 2:
        raise ValueError(
            f"the labels have one class only, {listed(list(names))}: give samples of two classes"
        )
    if positive is None:
        chosen = _by_default(list(names))
    elif isinstance(positive, str | int | Integral):
        chosen = [str(positive)]
    else:
        chosen = [str(k) for k in positive]
    for name in chosen:
        if name not in names:
            known = listed(list(names))
            raise ValueError(
                f"`positive`: {name!r} is not one of the classes {known}{nearest(name, names)}"
            )
    rest = [name for name in names if name not in chosen]
    if not rest or not chosen:
        raise ValueError(
            f"`positive` must leave some of the classes {listed(list(names))} to be -1, and name "
            f"others, got {listed(chosen)}"
        )
    plus = [name for name in names if name in chosen]
    text = f"classes {', '.join(plus)} (+1) against {', '.join(rest)} (-1)"
    return dataset.two_classes([names[name] for name in chosen], text)


def _by_default(names: list[str]) -> list[str]:
    if len(names) > 2:
        raise ValueError(
            f"there are {len(names)} classes, {listed(names)}: say which are +1 against the rest, "
            f"such as `--positive {names[0]}`, or take `--classes all`"
        )
    return names[1:]
