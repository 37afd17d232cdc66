"""Processor seconds and memory of one thread as the sizes of every family of programs grow.

Where a call is one program for the interior point of groups, beside them what the multiplications
and additions of its working sets would take at the rate of dgemm: the floor of that method on this
machine. `summary` says what ten and a hundred times the size would take.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import click
import numpy as np

from implicit_bias.limits import Limit
from solvers import MaxMarginProgram

from ..tables import Kept, keep_rows
from .families import GROWTHS, Call, Growth
from .gln import required_flops
from .timing import dgemm_rate_of_one_thread, forget_peak, in_child, machine, peak_mib, timed

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

KEY = ("family", "held", "value")
# The median of so many calls, of fewer once they have taken so many seconds.
REPEATS, LONG = 3, 5.0
LIMIT = 300.0
# Points that a slope is of, and MiB below which memory is that of any call.
LAST, LEAST_MIB = 3, 1.0
# Seconds and MiB of a cell up to which an engine of sweeps carries it, the plainest first.
ENGINES = {"joblib": (600, 4 * 1024), "Dask": (7200, 32 * 1024), "Slurm": (604_800, 512 * 1024)}
COLUMNS = 7
TIMES = {"s": 1.0, "min": 60.0, "h": 3600.0, "days": 86400.0, "years": 3.156e7}
SIZES = {"MiB": 1.0, "GiB": 1024.0, "TiB": 1024.0**2}


def run_growth(
    data_dir: Path | None, out: Path | None, growths: Iterable[Growth] = GROWTHS
) -> None:
    """Print rows as they come and their table, and with `out` add them to a CSV file.

    Rows that the file has are kept; a picture of all is drawn beside it.
    """
    import pandas as pd
    from threadpoolctl import threadpool_limits

    kept = Kept(out, KEY, float_format="%.4g") if out is not None else None
    rows: list[dict[str, Any]] = []

    def measured() -> Iterator[dict[str, Any]]:
        where = machine()
        rate = dgemm_rate_of_one_thread()
        for growth in growths:
            values = growth.values + (growth.further if data_dir else ())
            for value in values:
                if kept is not None and (growth.family, growth.held, value) in kept:
                    continue
                call, first = (growth.made(data_dir, size) for size in (value, values[0]))
                made = partial(_measured, growth, value, call, first, rate)
                for row in in_child(made, LIMIT):
                    rows.append(row | {"machine": where})
                    yield rows[-1]

    with threadpool_limits(1):
        keep_rows(measured(), kept, digits=".3g")
    table = pd.DataFrame(rows) if kept is None else kept.table
    click.echo("\n".join(f"| {' | '.join(line)} |" for line in summary(table)))
    if out is not None:
        draw(table, out.with_suffix(".png"))


def _measured(
    growth: Growth, value: int, call: Call, first: Call, rate: float
) -> Iterator[dict[str, Any]]:
    """Yield the row of a call, after one of the least size: imports are not measured."""
    first()
    forget_peak()
    before, times = peak_mib(), list[float]()
    while len(times) < REPEATS and sum(times) < LONG:
        with flops_within() as flops:
            found, took = timed(call)
        times.append(took.cpu)
    yield {
        "family": growth.family, "held": growth.held, "letter": growth.letter, "value": value,
        "status": found.status.name, "gap": getattr(found.certificate, "gap", math.nan),
        "cpu_seconds": statistics.median(times),
        "floor_seconds": sum(flops) / rate if flops and isinstance(found, Limit) else math.nan,
        "peak_mib": peak_mib() - before,
    }  # fmt: skip


def _flops(part: MaxMarginProgram, iterations: int) -> float:
    n_groups = part.n_groups
    columns = round(part.design.Z.shape[1] / n_groups)
    return required_flops(
        (n_groups, columns, part.n_samples), int(part.design.X.shape[1]), iterations
    )


@contextmanager
def flops_within() -> Iterator[list[float]]:
    """What calls within cannot avoid on each set of samples and groups that is solved at once.

    Programs of one group are left out: they have cheaper ways.
    """
    from solvers.methods import interior_point

    inner, flops = interior_point._solve_all, list[float]()

    def recorded(program: MaxMarginProgram, *rest: object) -> object:
        attempt = inner(program, *rest)  # type: ignore[arg-type]
        if program.n_groups > 1:
            flops.append(_flops(program, attempt[2]))
        return attempt

    with patch.object(interior_point, "_solve_all", recorded):
        yield flops


def _growths(rows: pd.DataFrame) -> Iterator[tuple[pd.DataFrame, float, float]]:
    """Yield the rows of each growth with the slopes of its seconds and of its memory, from 0 on."""
    for _, own in rows.groupby(["family", "held"], sort=False):
        last = own.sort_values("value").tail(LAST)
        logs = np.log(np.column_stack([last.cpu_seconds, last.peak_mib.clip(lower=LEAST_MIB)]))
        yield own, *np.polyfit(np.log(last.value), logs, 1)[0].clip(min=0)


def summary(rows: pd.DataFrame) -> Iterator[list[str]]:
    """Yield a line a growth: the largest size, its seconds and MiB with their slopes, and ahead."""
    for own, of_time, of_memory in _growths(rows):
        last = own.iloc[-1]
        line = [
            f"{last.family} {last.held}", f"{last.value:,}", _proof(own), f"{last.cpu_seconds:.2g}",
            f"{last.letter}^{of_time:.1f}", f"{last.peak_mib:.0f}",
            f"{last.letter}^{of_memory:.1f}",
        ]  # fmt: skip
        for factor in (10, 100):
            seconds = last.cpu_seconds * factor**of_time
            mib = max(last.peak_mib, LEAST_MIB) * factor**of_memory
            line += [f"{_of(seconds, TIMES)}, {_of(mib, SIZES)}", engine(seconds, mib)]
        yield line


def _proof(own: pd.DataFrame) -> str:
    """Return the largest gap, or the statuses where certificates are of residuals."""
    if own.gap.isna().all():
        return ", ".join(name.lower().replace("_", " ") for name in own.status.unique())
    return f"{own.gap.max():.0e}"


def _of(value: float, units: Mapping[str, float]) -> str:
    """Say a number to two digits, in the largest unit of which there are two."""
    fitting = [name for name, unit in units.items() if value >= 2 * unit]
    name = fitting[-1] if fitting else next(iter(units))
    return f"{float(f'{value / units[name]:.2g}'):,g} {name}"


def engine(seconds: float, mib: float) -> str:
    """Return the plainest engine that carries cells of so much, or what is too much for all."""
    for name, (longest, largest) in ENGINES.items():
        if seconds <= longest and mib <= largest:
            return name
    return "none: " + ("time" if seconds / longest > mib / largest else "memory")


def draw(rows: pd.DataFrame, path: Path) -> None:
    """Seconds and memory of every growth in a panel of its own, all on the same two axes."""
    from matplotlib.figure import Figure

    found = list(_growths(rows))
    lines = math.ceil(len(found) / COLUMNS)
    figure = Figure(figsize=(2.3 * COLUMNS, 1.9 * lines), layout="constrained")
    panels = figure.subplots(lines, COLUMNS, squeeze=False, sharey=True).ravel()
    memories = [panel.twinx() for panel in panels]
    for k, (own, *slopes) in enumerate(found):
        _draw_one(panels[k], memories[k], own, *slopes)
    for k, (panel, memory) in enumerate(zip(panels, memories, strict=True)):
        panel.set(yscale="log", ylim=(5e-3, 200))
        memory.set(yscale="log", ylim=(0.5, 2e4))
        memory.tick_params(labelright=k % COLUMNS == COLUMNS - 1, labelsize="x-small", colors="C1")
        panel.tick_params(axis="y", labelsize="x-small", colors="C0")
        if k >= len(found):
            panel.set_axis_off()
            memory.set_axis_off()
    figure.supylabel("processor seconds (circles), flops at dgemm's rate (dashed)", color="C0")
    figure.text(1.005, 0.5, "peak memory beyond the data, MiB (squares)", color="C1",
                rotation=90, va="center")  # fmt: skip
    figure.savefig(path, dpi=90, bbox_inches="tight")


def _draw_one(panel: Axes, memory: Axes, own: pd.DataFrame, *slopes: float) -> None:
    letter = own.letter.iloc[0]
    panel.plot(own.value, own.cpu_seconds, "C0o-", markersize=3)
    panel.plot(own.value, own.floor_seconds, "k--", linewidth=1)
    memory.plot(own.value, own.peak_mib.clip(lower=LEAST_MIB), "C1s-", markersize=3)
    panel.set_title(f"{own.family.iloc[0]}\n{own.held.iloc[0]}", fontsize="small")
    panel.set_xscale("log")
    panel.set_xticks(own.value, [f"{value:,}" for value in own.value], fontsize="xx-small")
    panel.minorticks_off()
    panel.grid(alpha=0.3)
    for at, color, slope in zip((0.85, 0.7), ("C0", "C1"), slopes, strict=True):
        panel.text(0.04, at, f"${letter}^{{{slope:.1f}}}$", color=color, transform=panel.transAxes)
