"""How near every trainer comes to the largest margin in its own norm, by the defaults of `compare`.

    python -m experiments.own_norms --out experiments/results

What `compare --model MODEL --trainer sign,spectral,adam,momentum` trains and measures on bundled
data: `own_norms.csv`, a row a trainer, with the processor seconds of the whole command (set
OMP_NUM_THREADS=1). Some minutes in all.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click

import implicit_bias as ib

from .interrupts import finished
from .tables import keep_rows, to_write_to

TRAINERS: Any = "sign,spectral,adam,momentum"
RATIOS = ("margin_ratio", "certified_ratio", "kkt_ratio")
# Models and the data that they are trained on.
COMMANDS: tuple[tuple[Any, Any], ...] = (
    ("linear", "digits"),
    ("linear", "breast-cancer"),
    ("gln", "digits"),
    ("frelu", "digits"),
    ("deep-linear", "digits"),
)


def rows(
    commands: Sequence[tuple[Any, Any]] = COMMANDS, **options: Any
) -> Iterator[dict[str, Any]]:
    """Run the commands one after the other; `options` stand in place of defaults."""
    for model, data in commands:
        before = time.process_time()
        report = finished(ib.run(model, data=data, trainer=TRAINERS, **options))
        seconds = time.process_time() - before
        for row in report.rows():
            yield {
                "model": model,
                "data": data,
                "n_train": row["n_train"],
                "trainer": row["trainer"],
                "norm": row["norm"],
                "steps": row["n_steps"],
                **{name: None if row[name] is None else round(row[name], 5) for name in RATIOS},
                "seconds": round(seconds, 1),
            }


@click.command()
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    callback=to_write_to,
    default=None,
    help="Folder of the rows.",
)
def main(out: Path | None) -> None:
    """Write `own_norms.csv`."""
    keep_rows(rows(), None if out is None else out / "own_norms.csv", digits=".4f")


if __name__ == "__main__":
    main()
