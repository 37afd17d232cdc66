"""Processor seconds and memory of one thread as samples, units, contexts and groups grow.

Beside them what the multiplications and additions of the working sets would take at the rate of
dgemm: the floor of this method on this machine.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from unittest.mock import patch

import click
import numpy as np

from solvers import MaxMarginProgram, solve

from .cases import halves_frelu, halves_gln
from .gln import required_flops
from .timing import Seconds, dgemm_rate_of_one_thread, in_child, machine, peak_mib, timed

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

REPEATS = 3
LIMIT = 300.0


@dataclass(frozen=True)
class Growth:
    """One size that grows, the others held: its letter, its values, and the program of each.

    `further` values are for a folder of images: the bundled digits are too few.
    """

    letter: str
    held: str
    values: tuple[int, ...]
    program: Callable[[Path | None, int], MaxMarginProgram]
    further: tuple[int, ...] = ()


def _gln(data_dir: Path | None, n: int, *, H: int = 20, C: int = 2) -> MaxMarginProgram:
    return halves_gln(data_dir, (H, C, n))


GROWTHS = (
    Growth("n", "GLN (20, 2, n)", (125, 250, 500, 1000, 1600), _gln, (3200, 6400)),
    Growth("H", "GLN (H, 4, 500)", (5, 10, 20, 40, 80, 160), lambda d, H: _gln(d, 500, H=H, C=4)),
    Growth("C", "GLN (20, C, 500)", (2, 4, 8, 16, 32), lambda d, C: _gln(d, 500, C=C)),
    Growth("G", "FReLU, G units, n = 300", (20, 80, 320, 1280, 5120),
           lambda d, G: halves_frelu(d, 300, G)),
)  # fmt: skip


@dataclass(frozen=True)
class Row:
    """One program of a growth."""

    letter: str
    held: str
    value: int
    status: str
    gap: float
    iterations: int
    cpu_seconds: float
    floor_seconds: float
    peak_mib: float
    machine: str


def run_growth(data_dir: Path | None, out: Path | None) -> None:
    """Rows as they come, and with `out` a CSV file and a picture beside it."""
    import pandas as pd
    from threadpoolctl import threadpool_limits

    rows: list[Row] = []
    where = machine()
    click.echo(where)
    with threadpool_limits(1):
        rate = dgemm_rate_of_one_thread()
        solve(_gln(None, 50))  # imports are not measured
        for growth in GROWTHS:
            for value in growth.values + (growth.further if data_dir else ()):
                program = growth.program(data_dir, value)
                made = partial(_measured, growth, value, program, rate, where)
                rows.extend(in_child(made, LIMIT))
                click.echo(_said(rows[-1]))
                if out is not None:
                    out.parent.mkdir(parents=True, exist_ok=True)
                    table = pd.DataFrame([asdict(row) for row in rows])
                    table.to_csv(out, index=False, float_format="%.4g")
    if out is not None:
        draw(table, out.with_suffix(".png"))


def _said(row: Row) -> str:
    return (
        f"{row.held}, {row.letter} = {row.value}: {row.status}, gap {row.gap:.1e}, "
        f"{row.cpu_seconds:.3g} s, floor {row.floor_seconds:.2g} s, {row.peak_mib:.0f} MiB"
    )


def _measured(
    growth: Growth, value: int, program: MaxMarginProgram, rate: float, where: str
) -> Iterator[Row]:
    before, times = peak_mib(), list[Seconds]()
    for _ in range(REPEATS):
        found, took = timed(partial(solve, program))
        times.append(took)
    peak = peak_mib() - before
    yield Row(
        growth.letter, growth.held, value, found.status.name, found.certificate.gap,
        found.iterations, statistics.median(took.cpu for took in times),
        working_set_flops(program) / rate, peak, where,
    )  # fmt: skip


def working_set_flops(program: MaxMarginProgram) -> float:
    """What one more solve of `program` cannot avoid on the sets of samples and groups it takes."""
    with _inner_programs() as parts:
        solve(program)
    return sum(_flops(part, iterations) for part, iterations in parts)


def _flops(part: MaxMarginProgram, iterations: int) -> float:
    n_groups = part.n_groups
    columns = round(part.design.Z.shape[1] / n_groups)
    return required_flops(
        (n_groups, columns, part.n_samples), int(part.design.X.shape[1]), iterations
    )


@contextmanager
def _inner_programs() -> Iterator[list[tuple[MaxMarginProgram, int]]]:
    """The programs that are solved at once within, whole ones or parts, and their iterations."""
    from solvers.methods import interior_point

    inner, parts = interior_point._solve_all, list[tuple[MaxMarginProgram, int]]()

    def recorded(program: MaxMarginProgram, *rest: object) -> object:
        attempt = inner(program, *rest)  # type: ignore[arg-type]
        parts.append((program, attempt[2]))
        return attempt

    with patch.object(interior_point, "_solve_all", recorded):
        yield parts


def draw(rows: pd.DataFrame, path: Path) -> None:
    """Seconds above memory, a column for every size that grows, all on logarithmic axes."""
    from matplotlib.figure import Figure

    names = list(dict.fromkeys(rows["letter"]))
    figure = Figure(figsize=(3.4 * len(names), 5.6), layout="constrained")
    panels = figure.subplots(2, len(names), squeeze=False, sharey="row")
    for letter, seconds, memory in zip(names, *panels, strict=True):
        own = rows[rows["letter"] == letter]
        seconds.plot(own["value"], own["cpu_seconds"], "C0o-", label="interior point")
        seconds.plot(own["value"], own["floor_seconds"], "k--", label="its flops at dgemm's rate")
        memory.plot(own["value"], own["peak_mib"].clip(lower=0.1), "C1s-")
        seconds.set_title(own["held"].iloc[0], fontsize="medium")
        memory.set_xlabel(letter)
        for panel in (seconds, memory):
            _logarithmic(panel, own["value"].to_numpy())
    panels[0, 0].set_ylabel("processor seconds")
    panels[1, 0].set_ylabel("peak memory beyond the data, MiB")
    panels[0, 0].legend(fontsize="small")
    figure.savefig(path, dpi=110)


def _logarithmic(panel: Axes, values: np.ndarray[tuple[int], np.dtype[np.int64]]) -> None:
    panel.set(xscale="log", yscale="log")
    panel.set_xticks(values, [str(value) for value in values], fontsize="x-small")
    panel.minorticks_off()
    panel.grid(alpha=0.3)
