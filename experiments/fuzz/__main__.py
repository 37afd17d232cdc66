"""Statuses and certificates of random programs, judged by exact arithmetic and by other solvers.

    python -m experiments.fuzz --programs 1000 --out experiments/results/fuzz.csv

Programs go by their seeds; those that the file already holds are not run again. Ends with exit
code 1 if any status is wrong or an answer does not come.
"""

from __future__ import annotations

import signal
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from solvers import solve

from ..tables import out_file
from .judge import Verdict, judged, unanswered
from .programs import draw

# Seconds: the slowest of these programs take a tenth of one.
LIMIT = 60


def verdict(seed: int) -> Verdict:
    """Draw, solve and judge the program of `seed`."""
    drawn = draw(seed)
    try:
        with _at_most(LIMIT):
            solution = solve(drawn.program, settings=drawn.settings)
    except TimeoutError:
        return unanswered(drawn, LIMIT)
    return judged(drawn, solution)


@contextmanager
def _at_most(seconds: int) -> Iterator[None]:
    """Raise `TimeoutError` where the block takes longer."""

    def stop(*_: object) -> None:
        raise TimeoutError(f"no answer within {seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def summary(rows: list[dict[str, Any]]) -> str:
    """Counts of statuses by twist, and of verdicts."""
    statuses = sorted({row["status"] for row in rows})
    lines = [["data", *statuses], ["---"] * (1 + len(statuses))]
    for twist in sorted({row["twist"] for row in rows}):
        counts = Counter(row["status"] for row in rows if row["twist"] == twist)
        lines.append([twist, *(str(counts[status]) for status in statuses)])
    verdicts = Counter(
        "wrong" if row["verdict"].startswith("wrong") else row["verdict"] for row in rows
    )
    said = "; ".join(f"{count} {name}" for name, count in verdicts.items())
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + f"\n\n{said}"


@click.command()
@click.option("--programs", type=click.IntRange(min=1), default=1000, show_default=True)
@click.option("--first-seed", type=click.IntRange(min=0), default=0, show_default=True)
@out_file()
def main(programs: int, first_seed: int, out: Path | None) -> None:
    """Solve and judge random programs, one a seed."""
    import pandas as pd

    rows: list[dict[str, Any]] = []
    if out is not None and out.exists():
        rows = pd.read_csv(out, keep_default_na=False).to_dict("records")
    done = {int(row["seed"]) for row in rows}
    for seed in range(first_seed, first_seed + programs):
        if seed in done:
            continue
        row = verdict(seed)
        rows.append(asdict(row))
        if row.verdict.startswith("wrong"):
            click.echo(f"seed {seed}: {row.verdict}")
        if out is not None and (len(rows) % 20 == 0 or seed == first_seed + programs - 1):
            pd.DataFrame(rows).to_csv(out, index=False)
    click.echo(summary(rows))
    sys.exit(any(row["verdict"].startswith("wrong") for row in rows))


if __name__ == "__main__":
    main()
