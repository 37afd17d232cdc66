"""The circle: do gates that are trained learn faster, and do open paths move to the easy half?

    python -m experiments.circle --out experiments/results/circle.csv

A function of low frequency on one half of the circle, sin 2a, and of high frequency on the other,
sin 10a, fitted by least squares with Adam. Networks of 4 x 16 half-spaces with soft gates of beta
4, either trained or left as they were drawn, from equal weights. The first claim of the source is
counted in steps; of the second every seed is shown, since it does not hold in all of them. Losses
with hard gates stand beside those with the soft ones that were trained.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

import click
import numpy as np
import torch

from implicit_bias.data.circle import circle_values, is_easy
from implicit_bias.models.dlgn.regions import active_paths, count_patterns
from implicit_bias.models.dlgn.training import hard_scores
from implicit_bias.networks.dlgn import DLGN

if TYPE_CHECKING:
    from matplotlib.figure import Figure

POINTS, WIDTHS, BETA, RATE = 400, (16, 16, 16, 16), 4.0, 3e-3
REACHED = 0.01  # mean of 1/2 (f - y)^2, that of f = 0 being 1/4

Row = dict[str, float | int | str]


def points() -> tuple[np.ndarray, np.ndarray]:
    """Equally spaced points of the circle, none at a change of sign, and the function on them."""
    angle = 2 * np.pi * (np.arange(POINTS) + 0.5) / POINTS
    X = np.column_stack([np.cos(angle), np.sin(angle)])
    return X, circle_values(X)


def fit(network: DLGN, *, trained: bool, steps: int) -> list[float]:
    """Train with Adam, gates with the rest or left alone; the loss before every step."""
    X, y = (torch.tensor(array) for array in points())
    network.gating.requires_grad_(trained)
    optimiser = torch.optim.Adam([p for p in network.parameters() if p.requires_grad], lr=RATE)
    losses = []
    for _ in range(steps):
        loss = (network(X) - y).square().mean() / 2
        losses.append(loss.item())
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
    return losses


def log_ratio(network: DLGN) -> float:
    """log2 of the mean number of open paths on the easy half over that on the hard half."""
    X, _ = points()
    paths = np.exp(active_paths(network.gates(X), widths=WIDTHS))
    easy = is_easy(X)
    return float(np.log2(paths[easy].mean() / paths[~easy].mean()))


def run(experts: str, seed: int, *, trained: bool, steps: int) -> tuple[Row, list[float], DLGN]:
    """One network, as a row of the table."""
    constant = experts == "constant"
    network = DLGN(2, widths=WIDTHS, constant_experts=constant, beta=BETA, random_state=seed)
    X, y = points()
    before = log_ratio(network)
    losses = fit(network, trained=trained, steps=steps)
    below = np.flatnonzero(np.array(losses) <= REACHED)
    row: Row = {
        "experts": experts,
        "seed": seed,
        "gates": "trained" if trained else "frozen",
        "steps_to_loss": int(below[0]) if len(below) else math.nan,
        "loss_soft": losses[-1],
        "loss_hard": float(np.mean((hard_scores(network, X) - y) ** 2) / 2),
        "log2_easy_hard_start": before,
        "log2_easy_hard_end": log_ratio(network),
        "patterns": count_patterns(network.gates(X)),
    }
    return row, losses, network


def picture(curves: dict[tuple[str, int, bool], list[float]], rows: list[Row]) -> Figure:
    """Losses of every network, and where open paths went in every seed."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 3.6), layout="constrained")
    axes = figure.subplots(1, 3)
    for ax, experts in zip(axes[:2], ("linear", "constant"), strict=True):
        for (kind, _, trained), losses in curves.items():
            if kind == experts:
                ax.semilogy(losses, color="#0072B2" if trained else "#D55E00", linewidth=0.9)
        ax.axhline(REACHED, color="0.6", linewidth=0.8)
        ax.set(title=f"{experts} experts", xlabel="Adam steps", ylabel="loss, soft gates")
    axes[0].plot([], [], color="#0072B2", label="gates trained")
    axes[0].plot([], [], color="#D55E00", label="gates frozen")
    axes[0].legend(frameon=False)
    moved = [row for row in rows if row["gates"] == "trained"]
    for row in moved:
        ends = [float(row["log2_easy_hard_start"]), float(row["log2_easy_hard_end"])]
        axes[2].plot(ends, color="#009E73" if ends[1] > ends[0] else "#D55E00", marker="o")
    axes[2].axhline(0, color="0.6", linewidth=0.8)
    axes[2].set_xticks([0, 1], ["start", "end"])
    axes[2].set(title="open paths (green: to the easy half)", ylabel="log2 easy / hard")
    return figure


@click.command()
@click.option("--seeds", type=click.IntRange(min=1), default=5, show_default=True)
@click.option("--steps", type=click.IntRange(min=1), default=600, show_default=True)
@click.option("--out", type=click.Path(path_type=Path), help="CSV file; a picture goes beside it.")
def main(seeds: int, steps: int, out: Path | None) -> None:
    """Train and freeze the gates of every seed; count steps, and paths on both halves."""
    import pandas as pd

    rows: list[Row] = []
    curves: dict[tuple[str, int, bool], list[float]] = {}
    for experts in ("linear", "constant"):
        for seed in range(seeds):
            for trained in (True, False):
                row, curves[experts, seed, trained], _ = run(
                    experts, seed, trained=trained, steps=steps
                )
                rows.append(row)
                click.echo("  ".join(f"{key} {value}" for key, value in row.items()))
            if out is not None:
                out.parent.mkdir(parents=True, exist_ok=True)
                pd.DataFrame(rows).to_csv(out, index=False)
    if out is not None:
        picture(curves, rows).savefig(out.with_suffix(".png"), dpi=110)


if __name__ == "__main__":
    main()
