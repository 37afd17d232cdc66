"""The runs that each figure is made of: small by default, the published sizes in full."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

__all__ = ["FIGURES", "PUBLISHED", "RECIPE", "Figure", "Sweep", "recipe_grid", "sweeps_of"]

# The published recipe, and what brings the same network to its limit. A row of a sweep needs the
# last checkpoint alone; the distances of all of them cost as much as the steps.
PUBLISHED: Final = "constant"
RECIPE: Mapping[str, Any] = {"trainer": PUBLISHED, "checkpoints": 2}
TO_THE_LIMIT: Mapping[str, Mapping[str, Any]] = {
    "gln": {"trainer": "annealed", "steps": 1000, "dtype": "float32", "checkpoints": 2},
    "relu": {"trainer": "smoothed", "checkpoints": 2},
}


@dataclass(frozen=True)
class Sweep:
    """One call of `ib.sweep`.

    Attributes
    ----------
    name : str
        Of its folder.
    model : str
    grid, options : mapping
        Options that vary, and those that do not.
    """

    name: str
    model: Literal["gln", "shallow-gln", "relu"]
    grid: Mapping[str, Any]
    options: Mapping[str, Any]


@dataclass(frozen=True)
class Figure:
    """One figure of the paper.

    Attributes
    ----------
    title : str
    of : {"gln", "relu"}
        Which networks it is of.
    by : {"cutoffs", "momentum"}
        The option that its rows of panels differ in.
    choices : tuple
        Its value in each of them.
    """

    title: str
    of: str
    by: str
    choices: tuple[Any, ...]


FIGURES: Mapping[str, Figure] = {
    "gln-2": Figure("figure 2: gated linear networks", "gln", "cutoffs", ("median",)),
    "relu-3": Figure("figure 3: ReLU networks", "relu", "momentum", (0.9,)),
    "gln-4": Figure("figure 4: gated linear networks, all", "gln", "cutoffs", ("median", "random")),
    "relu-5": Figure("figure 5: ReLU networks, all", "relu", "momentum", (0.0, 0.9)),
}
SMALL: Mapping[str, Any] = {"hidden_units": [10, 20, 50], "n_train": [500], "seed": [1]}
FULL: Mapping[str, Any] = {
    "hidden_units": [10, 20, 50, 100], "n_train": [500, 1000, 2000], "seed": [1, 2, 3],
}  # fmt: skip


def recipe_grid(figure: Figure, *, full: bool) -> Mapping[str, Any]:
    """Return the networks by the published recipe that a figure of gated linear networks needs."""
    return {**(FULL if full else SMALL), "contexts": [2, 4], figure.by: list(figure.choices)}


def sweeps_of(figure: Figure, *, full: bool) -> Iterator[Sweep]:
    """Yield the sweeps that a figure needs; figures of the same networks share them."""
    sizes = FULL if full else SMALL
    whole: dict[str, Any] = {figure.by: list(figure.choices)}
    to_the_limit = TO_THE_LIMIT[figure.of]
    if figure.of == "gln":
        yield Sweep("gln-to-the-limit", "gln", recipe_grid(figure, full=full), to_the_limit)
        planes = {"hidden_units": [1, 2, 4, 8] if full else [1, 2, 4]}
        shallow = {**sizes, **planes, "contexts": [2], **whole}
        yield Sweep("shallow-gln", "shallow-gln", shallow, RECIPE)
        return
    yield Sweep("relu", "relu", {**sizes, **whole}, RECIPE)
    # Its own steps have no momentum.
    yield Sweep("relu-to-the-limit", "relu", sizes, to_the_limit)
