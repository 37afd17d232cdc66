"""Heads and students by plain descent, beside the limits that both have.

    python -m experiments.descent --out experiments/results

`heads_descent.csv`: heads of a trained trunk on 500 digits after 2000 steps, by the weight of hard
labels and exit. `student_temperatures.csv`: linear students of all ten digits at two temperatures.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import click

import implicit_bias as ib

from .interrupts import finished
from .tables import keep_rows, to_write_to

SHARES = (0.0, 0.5, 1.0)
TEMPERATURES = (1.0, 4.0)


def heads_rows(n_train: int = 500) -> Iterator[dict[str, Any]]:
    """Yield a row a head: its limit, what is proved of it, and the head that was trained."""
    for share in SHARES:
        trainer: Literal["constant", "momentum"] = "constant" if share < 1 else "momentum"
        report = finished(ib.run("heads", n_train=n_train, share=share, trainer=trainer))
        for limit, one in zip(report.limit.values(), report.comparison.exits, strict=True):
            yield {
                "share": share,
                "exit": one.exit,
                "kind": one.kind,
                "status": limit.status.name,
                "error_bound": limit.certificate.error,
                "accuracy_limit": one.limit.accuracy,
                "accuracy": one.network.accuracy,
                "anytime_limit": one.limit.anytime_accuracy,
                "anytime": one.network.anytime_accuracy,
                "agreement": one.agreement,
                "angle": one.angle,
                "excess": one.excess,
                "margin_ratio": one.margin_ratio,
            }


def student_rows(n_train: int = 30) -> Iterator[dict[str, Any]]:
    """Yield a row a temperature: how far the student and its gradient flow came."""
    for temperature in TEMPERATURES:
        report = ib.run(
            "distillation", data="digits", classes="all", n_train=n_train, temperature=temperature
        )
        row = finished(report).row()
        names = ("limit_error", "path_error", "score_cosine", "agreement", "risk", "risk_limit")
        yield {"temperature": temperature, "n_steps": row["n_steps"]} | {
            name: row[name] for name in names
        }


@click.command()
@click.option(
    "--out", type=click.Path(path_type=Path), callback=to_write_to, help="Folder of the CSV files."
)
def main(out: Path | None) -> None:
    """Train heads and students by descent, and write how near they come to their limits."""
    for name, rows in (("heads_descent", heads_rows), ("student_temperatures", student_rows)):
        keep_rows(rows(), None if out is None else out / f"{name}.csv", digits=".4g")


if __name__ == "__main__":
    main()
