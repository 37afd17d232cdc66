"""What a sweep costs beside the work of its cells: a thousand small limits.

    python -m experiments.sweeps

The same sweep twice in one process: with its runs, and with runs that hand out a report of before.
The second is what planning, rows, files and reading them back take. Processor time stands beside
the clock, which other programs slow down.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from unittest.mock import patch

import click

from implicit_bias import run, sweep
from implicit_bias.sweeps import Sweep


@click.command()
@click.option("--cells", default=1000, show_default=True)
def main(cells: int) -> None:
    """Print milliseconds a cell."""
    _say("runs and all", cells, _measured(lambda out: _limits(cells, out)))
    ready = run("linear", n_train=20, n_val=20, steps=0)
    with patch("implicit_bias.sweeps.work.run", lambda model, **options: ready):
        _say("without the runs", cells, _measured(lambda out: _limits(cells, out)))


def _limits(cells: int, out: str) -> Sweep:
    return sweep("linear", {"seed": range(cells)}, out=out, n_train=20, n_val=20, steps=0)


def _measured(call: Callable[[str], Sweep]) -> tuple[float, float]:
    """Seconds of processor and clock of a sweep read back; what loads once is loaded before."""
    with tempfile.TemporaryDirectory() as folder:
        _limits(2, f"{folder}/first").frame()
        begun = time.process_time(), time.perf_counter()
        frame = call(f"{folder}/runs").frame()
        seconds = time.process_time() - begun[0], time.perf_counter() - begun[1]
    assert (frame["status"] == "SOLVED").all()
    return seconds


def _say(what: str, cells: int, seconds: tuple[float, float]) -> None:
    processor, clock = (1e3 * value / cells for value in seconds)
    click.echo(f"{what}: {processor:.2f} ms of a processor a cell, {clock:.2f} ms by the clock")


if __name__ == "__main__":
    main()
