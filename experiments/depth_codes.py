"""Which code do deep linear networks of six classes end at: simplex, octahedron or hexagon?

    python -m experiments.depth_codes --out experiments/results

One input a class, the unit vectors: scores are the end-to-end matrix itself. The least squared
weights of L layers with a matrix of singular values s cost L sum s^(2/L), so that depth asks for a
lower rank. One row a depth and start: the cost (sum s^(2/L))^(L/2) of the trained matrix at least
margin 1, its rank and the code that it is, beside the cost of each code in closed form.
`depth_codes.csv` and `depth_codes.png`, in half a minute; rows that are there are kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
import numpy as np
import pandas as pd
from numpy.typing import NDArray

import implicit_bias as ib

from .interrupts import finished
from .tables import Kept, keep_rows, out_folder

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.figure import Figure

Array = NDArray[np.float64]

KEY = ("depth", "seed")
N_CLASSES = 6
DEPTHS = range(1, 7)
STEPS = 800
# Singular values that are this near to a code's, relative to the largest, are its.
SAME = 0.02


def codes() -> dict[str, Array]:
    """The scores (6, 6) of three codes at least margin 1: classes at the corners of a body.

    The simplex has rank 5, as class means under neural collapse; the octahedron 3, the hexagon 2.
    """
    angles = 2 * np.pi * np.arange(N_CLASSES) / N_CLASSES
    corners = {
        "simplex": np.eye(N_CLASSES) - 1 / N_CLASSES,
        "octahedron": np.vstack([np.eye(3), -np.eye(3)]),
        "hexagon": np.stack([np.cos(angles), np.sin(angles)], axis=1),
    }
    found = {}
    for name, points in corners.items():
        scores = points @ points.T
        own = np.diag(scores)[:, None] - scores
        found[name] = scores / own[~np.eye(N_CLASSES, dtype=bool)].min()
    return found


def cost(values: NDArray[Any], depth: int) -> float:
    """Cost of the shortest weights of so many layers, by the singular values of their product."""
    return float(np.sum(values ** (2 / depth)) ** (depth / 2))


def row(depth: int, seed: int) -> dict[str, Any]:
    """Train one network, and say which code it has come to."""
    X = np.eye(N_CLASSES)
    network = ib.DeepLinear(
        N_CLASSES, hidden_widths=(N_CLASSES,) * (depth - 1), n_outputs=N_CLASSES, random_state=seed
    )
    settings = ib.TrainingSettings(trainer="annealed", schedule=((STEPS, None),), n_checkpoints=2)
    trajectory = finished(ib.train(network, X, X, settings=settings))
    trained = network.zeta().detach().numpy()
    margin = float(trajectory.smallest_margin[-1])
    # What all classes share moves no margin.
    values = np.linalg.svd((trained - trained.mean(axis=0)) / margin, compute_uv=False)
    known = {name: np.linalg.svd(code, compute_uv=False) for name, code in codes().items()}
    same = [k for k, s in known.items() if np.abs(values - s).max() < SAME * values[0]]
    return {
        "depth": depth, "seed": seed, "cost": cost(values, depth),
        "rank": int((values > SAME * values[0]).sum()), "code": same[0] if same else "other",
        **{name: cost(s, depth) for name, s in known.items()},
        "log_inverse_loss": -float(trajectory.log_loss[-1]),
    }  # fmt: skip


def draw(table: pd.DataFrame) -> Figure:
    """Cost of the codes over the depth, and of every network that was trained."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 4), layout="constrained")
    ax = figure.subplots()
    best = table[list(codes())].min(axis=1)
    for name, style in zip(codes(), ("-", "--", ":"), strict=True):
        curve = (table[name] / best).groupby(table["depth"]).first()
        ax.plot(curve.index, curve, style, label=name)
    shift = 0.06 * (table["seed"] - table["seed"].mean())
    ax.plot(table["depth"] + shift, table["cost"] / best, "k.", label="trained, one start each")
    ax.set(xlabel="layers", ylabel="cost at margin 1, over the best code's", ylim=(0.95, 2.6))
    ax.legend(frameon=False)
    return figure


@click.command()
@click.option("--starts", type=click.IntRange(min=1), default=5, show_default=True)
@out_folder
def main(starts: int, out: Path) -> None:
    """Codes that deep linear networks of six classes end at."""
    kept = Kept(out / "depth_codes.csv", KEY)
    cases = [(depth, seed) for depth in DEPTHS for seed in range(starts)]
    keep_rows((row(*case) for case in cases if case not in kept), kept, digits=".6g")
    draw(kept.table).savefig(kept.path.with_suffix(".png"), dpi=150)


if __name__ == "__main__":
    main()
