"""Regions of paths through ReLU networks: one in two pieces, and one that jumps.

    python -m experiments.path_regions --out experiments/results

The source's figure 1, whose weights are not printed; these have the regions that it names.

Left: inputs (x, 1), five units and one above them, whose pre-activation climbs and falls by turns.
The path through the first unit of the first layer and that one is open on [0.5, 1.5] and on
[2.5, 3.5].

Right: units relu(x_1), relu(x_2), relu(-x_2), and one above them with the pre-activation
relu(x_2) + eps relu(-x_2). For every eps > 0 the path through the first one and that one is open on
the right half of the plane, for every eps < 0 on the first quadrant alone. On the axis x_2 = 0 the
pre-activation is 0, which counts as open.

`path_regions.csv` has the share of a grid of the plane on which the path is open, by eps;
`path_regions.png` both regions.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np
from numpy.typing import NDArray

import implicit_bias as ib
from implicit_bias.runs.drawing.palette import BLUE, GREEN

from .tables import Kept, out_folder

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Floats = NDArray[np.float64]
TWO_PIECES = (
    np.array([[1.0, 0.0], [1.0, -1.0], [1.0, -2.0], [1.0, -3.0], [0.0, 1.0]]),
    np.array([[1.0, -2.0, 2.0, -2.0, -0.5]]),
)
EPSILONS = (-1.0, -1e-3, -1e-9, 1e-9, 1e-3, 1.0)
SIDE = 200


def jumping(eps: float) -> tuple[Floats, Floats]:
    """Layers of the network whose path jumps as eps changes its sign."""
    return np.array([[1.0, 0.0], [0.0, 1.0], [0.0, -1.0]]), np.array([[0.0, 1.0, eps]])


def is_open(layers: tuple[Floats, Floats], X: Floats) -> NDArray[np.bool_]:
    """Where the path through the first unit and the one above is open."""
    gates = ib.gates.NetworkGates(layers).fit_transform(X)
    opened: NDArray[np.bool_] = (gates[:, 0] * gates[:, len(layers[0])]) == 1
    return opened


def grid() -> Floats:
    """Points of the square [-1, 1]^2, none on an axis."""
    line = (np.arange(SIDE) + 0.5) / SIDE * 2 - 1
    return np.stack(np.meshgrid(line, line), axis=-1).reshape(-1, 2)


def rows() -> list[dict[str, Any]]:
    """Share of the square on which the path is open, and of each quadrant."""
    X = grid()
    right, above = X[:, 0] > 0, X[:, 1] > 0
    quadrants = {"first": right & above, "second": ~right & above, "third": ~right & ~above,
                 "fourth": right & ~above}  # fmt: skip
    found = []
    for eps in EPSILONS:
        opened = is_open(jumping(eps), X)
        shares = {name: float(opened[where].mean()) for name, where in quadrants.items()}
        found.append({"eps": eps, "square": float(opened.mean()), **shares})
    return found


def draw() -> Figure:
    """Both panels of the figure."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 3.4), layout="constrained")
    left, *planes = figure.subplots(1, 3, width_ratios=(1.6, 1, 1))
    x = np.linspace(-0.5, 4.5, 2001)
    X = np.column_stack([x, np.ones_like(x)])
    q = np.maximum(X @ TWO_PIECES[0].T, 0) @ TWO_PIECES[1].T
    left.plot(x, q[:, 0], color="k", linewidth=1)
    left.axhline(0, color="0.6", linewidth=0.8)
    left.fill_between(
        x, -3, 1.5, where=is_open(TWO_PIECES, X), color=GREEN, alpha=0.3, linewidth=0,
        label="path open",
    )  # fmt: skip
    left.set(xlabel="x", ylabel="pre-activation of the second layer", ylim=(-1, 1),
             title="figure 1 left: open on two pieces")  # fmt: skip
    left.legend(frameon=False)
    for ax, eps in zip(planes, (1e-9, -1e-9), strict=True):
        opened = is_open(jumping(eps), grid()).reshape(SIDE, SIDE)
        ax.contourf(
            np.where(opened, 1.0, np.nan), levels=[0.5, 1.5], extent=(-1, 1, -1, 1), colors=[BLUE],
            alpha=0.4,
        )  # fmt: skip
        ax.axhline(0, color="k", linewidth=0.6)
        ax.axvline(0, color="k", linewidth=0.6)
        ax.set(xlim=(-1, 1), ylim=(-1, 1), aspect="equal", xlabel="$x_1$", ylabel="$x_2$",
               title=f"figure 1 right: eps = {eps:g}")  # fmt: skip
    return figure


@click.command()
@out_folder
def main(out: Path) -> None:
    """Regions of paths that are not convex, and that jump."""
    kept = Kept(out / "path_regions.csv")
    kept.add(rows())
    draw().savefig(kept.path.with_suffix(".png"), dpi=100)
    click.echo(kept.table.to_string(index=False))


if __name__ == "__main__":
    main()
