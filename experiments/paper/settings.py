"""The runs that each figure is made of: small by default, the published sizes in full."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

# The published recipe, and what brings gated linear networks to their limits. A row of a sweep
# needs the last checkpoint alone; the distances of all of them cost as much as the steps.
PUBLISHED: Final = "constant"
RECIPE: Mapping[str, Any] = {"trainer": PUBLISHED, "checkpoints": 2}
MACHINES: Mapping[str, Any] = {"beside": "machines", "checkpoints": 2}
TO_THE_LIMIT: Mapping[str, Any] = {
    "trainer": "annealed", "steps": 1000, "dtype": "float32", "checkpoints": 2,
}  # fmt: skip


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
    model: Literal["gln", "relu", "shallow-gln"]
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
    contexts : tuple
        Numbers of contexts whose errors are drawn by size; None for ReLU networks.
    beside : tuple of str
        Programs of other networks, of which the best alone is shown.
    """

    title: str
    of: str
    by: str
    choices: tuple[Any, ...]
    contexts: tuple[int | None, ...]
    beside: tuple[str, ...] = ()


FIGURES: Mapping[str, Figure] = {
    "gln-2": Figure("Figure 2: gated linear networks", "gln", "cutoffs", ("median",), (2,)),
    "relu-3": Figure("Figure 3: ReLU networks", "relu", "momentum", (0.9,), (None,), ("svm-gln",)),
    "gln-4": Figure(
        "Figure 4: gated linear networks, all", "gln", "cutoffs", ("median", "random"), (2, 4)
    ),
    "relu-5": Figure("Figure 5: ReLU networks, all", "relu", "momentum", (0.0, 0.9), (None,)),
}
# Hidden units of the networks in print, and of the deep gated linear networks, of two contexts,
# that stand beside ReLU networks: more have more parameters than these.
AT_MOST, BESIDE = 100, 50
SMALL: Mapping[str, Any] = {"hidden_units": [10, 20, 50], "n_train": [500], "seed": [1]}
FULL: Mapping[str, Any] = {
    "hidden_units": [10, 20, 50, 100], "n_train": [500, 1000, 2000], "seed": [1, 2, 3],
}  # fmt: skip


def recipe_grids(figure: Figure, *, full: bool) -> Iterator[Mapping[str, Any]]:
    """Yield the gated linear networks by the published recipe that a figure needs.

    Beside ReLU networks: those that are no larger, with the usual cutoffs.
    """
    sizes = FULL if full else SMALL
    if figure.of == "gln":
        yield {**sizes, "contexts": [2, 4], figure.by: list(figure.choices)}
    elif figure.beside:
        units = [one for one in sizes["hidden_units"] if one <= BESIDE]
        yield {**sizes, "hidden_units": units, "contexts": [2], "cutoffs": ["median"]}


def sweeps_of(figure: Figure, *, full: bool) -> Iterator[Sweep]:
    """Yield the sweeps that a figure needs."""
    sizes = FULL if full else SMALL
    if figure.of == "relu":
        momenta = {**sizes, "momentum": list(figure.choices)}
        yield Sweep("relu", "relu", momenta, {"trainer": PUBLISHED, **MACHINES})
        # Its own steps have no momentum.
        yield Sweep("relu-to-the-limit", "relu", sizes, {"trainer": "smoothed", **MACHINES})
        return
    (recipe,) = recipe_grids(figure, full=full)
    yield Sweep("gln-to-the-limit", "gln", recipe, TO_THE_LIMIT)
    shallow = {
        **sizes,
        "hidden_units": [1, 2, 4, 8] if full else [1, 2, 4],
        "contexts": [2],
        figure.by: list(figure.choices),
    }
    yield Sweep("shallow-gln", "shallow-gln", shallow, RECIPE)
