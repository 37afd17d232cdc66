"""Figures 2.1 to 2.4: piecewise linear surfaces, their greedy layers and their dependencies."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

import implicit_bias as ib
from implicit_bias.equivalence import FoldSurface, ReLUWeights, fold_surface
from implicit_bias.runs.drawing import Row, compose, legend_above, plot_surface
from implicit_bias.runs.drawing.palette import BLACK, BLUE, ORANGE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Blue, orange and black, as printed.
LAYERS = (BLUE, ORANGE, BLACK)
SQUARE = np.array([[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]])


def networks() -> dict[str, tuple[ReLUWeights, np.ndarray]]:
    """The network behind each surface, and the square in which it is looked at."""
    found = {
        f"2.1, order {depth}": (
            ib.equivalence.identifiable_network((2,) * (depth + 1), random_state=37), SQUARE / 1.5
        )
        for depth in (1, 2, 3)
    }  # fmt: skip
    # A layer that is open everywhere bends nothing: the second one's lines look like the first's.
    found["2.2"] = (
        ReLUWeights.from_arrays(
            [[[1.0, 0.6], [-0.4, 1.0], [0.3, 0.2], [-0.5, 0.4]],
             [[0.0, 0.0, 1.0, 0.3], [0.0, 0.0, -0.4, 1.0]], [[1.0, 1.0]]],
            [[-0.5, 0.6, 2.0, 2.0], [-2.5, -1.35], [0.0]],
        ),
        SQUARE,
    )  # fmt: skip
    return found


def surfaces() -> dict[str, FoldSurface]:
    return {name: fold_surface(*pair) for name, pair in networks().items()}


def rows() -> Iterator[dict[str, Any]]:
    """A row for each piece of each surface."""
    for name, surface in surfaces().items():
        for k, ((x0, y0), (x1, y1)) in enumerate(surface.segments):
            yield {
                "surface": name, "layer": int(surface.layer[k]), "unit": int(surface.unit[k]),
                "index": int(surface.index[k]), "path": int(surface.path_lengths[k]),
                "x0": float(x0), "y0": float(y0), "x1": float(x1), "y1": float(y1),
            }  # fmt: skip


def draw() -> Figure:
    """The four figures, a row each but for 2.2 and 2.4, which share one."""
    from matplotlib.lines import Line2D

    found = surfaces()
    deepest = found["2.1, order 3"]

    def orders(axes: list[Axes]) -> None:
        for ax, (name, surface) in zip(axes, list(found.items())[:3], strict=True):
            _pieces(ax, surface, surface.layer, f"figure {name}")
        legend_above(axes[0], [
            Line2D([], [], color=color, label=f"layer {k}")
            for k, color in enumerate(LAYERS, start=1)
        ])  # fmt: skip

    def apart(axes: list[Axes]) -> None:
        flat = found["2.2"]
        _pieces(axes[0], flat, flat.layer, "figure 2.2, left: by layer of the network")
        _pieces(axes[1], flat, np.full(len(flat.index), 3), "figure 2.2, right: what is seen")
        plot_surface(deepest, axes[2])
        _square(axes[2], "figure 2.4: canonical form, dependencies")

    def greedy(axes: list[Axes]) -> None:
        for k, ax in enumerate(axes, start=1):
            shown = np.where(deepest.index <= k, deepest.index, 0)
            left = int(np.sum(deepest.index > k))
            _pieces(ax, deepest, shown, f"figure 2.3: after step {k}, {left} pieces are left")
        legend_above(axes[0], [
            *(Line2D([], [], color=color, label=f"index {k}")
              for k, color in enumerate(LAYERS, start=1)),
            Line2D([], [], color="0.8", label="left"),
        ])  # fmt: skip

    return compose(
        [Row(3, orders, height=4.4), Row(3, apart, height=4.4), Row(3, greedy, height=4.4)],
        title="Chapter 2 of the thesis: zero sets of units in the plane (constructed networks)",
    )


def _pieces(ax: Axes, surface: FoldSurface, layers: np.ndarray, title: str) -> None:
    for ends, layer in zip(surface.segments, layers, strict=True):
        color = LAYERS[layer - 1] if layer else "0.8"
        ax.plot(*ends.T, color=color, linewidth=1.6, zorder=2 if layer else 1)
    _square(ax, title)


def _square(ax: Axes, title: str) -> None:
    side = float(np.abs(np.concatenate([line.get_xydata() for line in ax.lines])).max())
    ax.set(xticks=[], yticks=[], aspect="equal", adjustable="box", xlabel=title,
           xlim=(-side, side), ylim=(-side, side))  # fmt: skip
