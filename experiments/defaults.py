"""Which models come to their limits by their defaults, how near, and in how many seconds.

    python -m experiments.defaults --out experiments/results/defaults.csv

One row a network: the model, the word of its verdict, the quantity that decides (a margin ratio,
or a distance from a unique minimiser), its value and distance from the ideal one, and seconds of
the whole run, data, prediction and diagnosis included. Processor seconds of one core, so that
other work on the machine does not count: set OMP_NUM_THREADS=1. Loading the libraries is left out.

With `--check` it ends with 1 if a model whose limit is a theorem is not within 1 % of it, or takes
more than a minute.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

import implicit_bias as ib
from implicit_bias.models import MODELS
from implicit_bias.quantities import TABLE, distance_from_ideal
from implicit_bias.runs.reports import WITHIN, Verdict

from .tables import keep_rows, out_file

# What decides, in the order in which it is looked for.
DECIDE = ("margin_ratio", "limit_error", "local_ratio", "local_value")
# Models whose limit is a theorem: one of their networks has to be there.
THEOREMS = tuple(name for name in MODELS if name not in ("dgn", "gln-l2"))
MINUTE = 60.0


def row_of(model: str, verdict: Verdict, seconds: float) -> dict[str, Any]:
    """Return what is kept of a verdict."""
    name = next((one for one in DECIDE if one in verdict.numbers), "")
    value = verdict.numbers.get(name, math.nan)
    away = distance_from_ideal(TABLE[name], value) if name else math.nan
    if verdict.word == "AT A LOCAL LIMIT":
        # Its numbers are the values of network and local limit.
        name, value = "local_ratio", verdict.numbers["local_value"] / verdict.numbers["value"]
        away = abs(1 - value)
    return {
        "model": model,
        "network": verdict.subject or "network",
        "verdict": verdict.word,
        "quantity": name,
        "value": value,
        "distance": away,
        "seconds": seconds,
    }


def rows_of(model: str) -> Iterator[dict[str, Any]]:
    """Run a model by its defaults, and yield a row for each of its networks."""
    began = time.process_time()
    report: Any = ib.run(model)  # type: ignore[type-var]
    seconds = time.process_time() - began
    for verdict in report.verdicts:
        if verdict.word != "BOUND":
            yield row_of(model, verdict, seconds)


def falls_short(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the models whose limit is a theorem that are not near it within a minute."""
    names = dict.fromkeys(row["model"] for row in rows)
    near = {
        row["model"] for row in rows
        if row["verdict"] == "AT ITS LIMIT" and row["distance"] <= WITHIN
        and row["seconds"] <= MINUTE
    }  # fmt: skip
    return [name for name in names if name in THEOREMS and name not in near]


@click.command()
@click.option("--model", "models", multiple=True, type=click.Choice(sorted(MODELS)))
@out_file()
@click.option("--check", is_flag=True, help="End with 1 if a model falls short.")
def main(models: Sequence[str], out: Path | None, check: bool) -> None:
    """Run models by their defaults and write how near they come to their limits."""
    # The libraries are loaded before clocks start.
    from implicit_bias.gates import HyperplaneGates  # noqa: F401  # scikit-learn
    from implicit_bias.training import train  # noqa: F401  # torch

    found: list[dict[str, Any]] = []

    def rows() -> Iterator[dict[str, Any]]:
        """Yield the rows of all models, and keep them."""
        for model in models or sorted(MODELS):
            for row in rows_of(model):
                found.append(row)
                yield row

    keep_rows(rows(), out, digits=".4g")
    short = falls_short(found)
    if short:
        click.echo(f"not within 1 % of the limit in a minute: {', '.join(short)}")
    if check and short:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
