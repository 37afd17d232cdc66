"""How far each model is brought towards its limit, and by which trainer in how many steps.

    python -m experiments.limits --data-dir DIR --out experiments/results

Writes `limits.csv` (one row a run: margin ratio, agreement, KKT residual and complementarity,
log(1/loss), steps, seconds), `frontier.csv` (the GLN of 500 MNIST images along the way, by every
trainer) and `frontier.png`. Without --data-dir the cases on MNIST are left out. Rows are written as
they come: an interrupted run keeps what it has finished.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import pandas as pd

import implicit_bias as ib

from .interrupts import finished
from .tables import Kept, data_folder, images_of, out_folder

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from implicit_bias.options.choices import ModelName

SEEDS = (1, 2, 3)


@dataclass(frozen=True)
class Case:
    """One model on one data set by one trainer."""

    model: ModelName
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def needs_files(self) -> bool:
        return self.options.get("data") == "mnist"


MNIST = {"data": "mnist", "n_train": 500, "n_val": 8000}
FRONTIER = tuple(
    Case("gln", {**MNIST, "trainer": trainer, **more})
    for trainer, more in (
        ("constant", {}),
        ("normalised", {"steps": (5000,)}),
        ("momentum", {"steps": (5000,)}),
        ("annealed", {"steps": (5000,)}),
    )
)
CASES = (
    Case("linear"),
    Case("linear", {**MNIST, "steps": (10000,)}),
    Case("deep-linear"),
    Case("shallow-gln"),
    Case("gln", {"trainer": "annealed"}),
    *FRONTIER,
    Case("frelu", {"trainer": "annealed"}),
    Case("frelu", {**MNIST, "hidden_units": 50, "trainer": "annealed", "steps": (5000,)}),
    Case("orthosep"),
)


# Columns of the result under another name than in the row of a report.
RENAMED = {"steps": "n_steps", "seconds": "training_seconds"}
COLUMNS = (
    "model",
    "data",
    "n_train",
    "hidden_units",
    "trainer",
    "seed",
    "steps",
    "seconds",
    "log_inverse_loss",
    "margin_ratio",
    "agreement",
    "zeta_cosine",
    "kkt_residual",
    "kkt_complementarity",
    "error_limit",
    "error_network",
    "status",
    "gap",
)


def run(case: Case, seed: int, data_dir: Path | None) -> tuple[dict[str, Any], pd.DataFrame]:
    """The row of one run, and its trajectory."""
    given = {**case.options, "seed": seed}
    if case.needs_files:
        given["data_dir"] = data_dir
    report = finished(ib.run(case.model, **given))
    found = report.row()
    row = {name: found[RENAMED.get(name, name)] for name in COLUMNS}
    return row, report.trajectory.to_frame()


def draw(frontier: pd.DataFrame) -> Figure:
    """What is left of margin and agreement, against steps, by trainer."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4), layout="constrained")
    panels = figure.subplots(1, 2)
    for panel, column, name in zip(
        panels,
        ("margin_ratio", "agreement"),
        ("1 - margin ratio", "held-out labels on which they differ"),
        strict=True,
    ):
        for trainer, rows in frontier.groupby("trainer", sort=False):
            for i, (_, one) in enumerate(rows.groupby("seed")):
                moved = one[(one["step"] > 0) & (one[column] > 0)]
                colour = f"C{list(frontier['trainer'].unique()).index(trainer)}"
                panel.plot(
                    moved["step"],
                    1 - moved[column],
                    color=colour,
                    label=str(trainer) if i == 0 else None,
                )
        panel.set(xscale="log", yscale="log", xlabel="steps", ylabel=name)
        panel.axhline(0.01, color="grey", linestyle=":", linewidth=1)
    panels[0].legend(frameon=False)
    return figure


@click.command()
@data_folder
@click.option("--seed", "seeds", type=int, multiple=True, default=SEEDS, show_default=True)
@click.option("--model", "models", multiple=True, help="These models alone.")
@out_folder
def main(data_dir: Path | None, seeds: Sequence[int], models: Sequence[str], out: Path) -> None:
    """Bring every model to its limit and write how far each one came."""
    chosen = {"model": models, "seed": seeds, "images": images_of(data_dir).file}
    kept = Kept(out / "limits.csv", options=chosen, float_format="%.8g")
    frontier = Kept(out / "frontier.csv", options=chosen, float_format="%.6g")
    for case in CASES:
        if (models and case.model not in models) or (case.needs_files and data_dir is None):
            continue
        for seed in seeds:
            row, trajectory = run(case, seed, data_dir)
            click.echo(
                f"{row['model']} on {row['data']}, {row['trainer']}, seed {seed}: "
                f"margin ratio {row['margin_ratio']:.5f}, agreement {row['agreement']:.2%}, "
                f"{row['steps']} steps, {row['seconds']:.0f} s"
            )
            kept.add([row])
            if case in FRONTIER:
                columns = ["step", "seconds", "log_loss", "margin_ratio", "agreement",
                           "kkt_residual", "zeta_cosine"]  # fmt: skip
                frontier.add(trajectory[columns].assign(trainer=row["trainer"], seed=seed))
                draw(frontier.table).savefig(frontier.path.with_suffix(".png"), dpi=120)


if __name__ == "__main__":
    main()
