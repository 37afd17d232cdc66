"""The command `show`: one saved run, or the rows of a sweep."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .._support.extras import require
from .._support.files import check_writable
from .._support.pictures import write_figure
from ..options.fields import flag
from ..runs.exits import PICTURES, ending, failures_reported, print_notices, rendered, say, width
from .commands import named_values

if TYPE_CHECKING:
    from ..runs.reports.report import Report


def _names(
    context: click.Context, parameter: click.Parameter, text: str | None
) -> tuple[str, ...] | None:
    """Return the columns between commas."""
    return None if text is None else tuple(one.strip().replace("-", "_") for one in text.split(","))


@click.command(context_settings={"max_content_width": 100})
@click.argument("folder", type=click.Path(path_type=Path))
@click.option(
    "--where",
    multiple=True,
    callback=named_values,
    help="NAME=VALUE: rows that have it; repeatable.",
)
@click.option("--by", callback=_names, help="Options to group by.  [default: those that differ]")
@click.option("--columns", callback=_names, help="What to show.  [default: what there usually is]")
@click.option("--details", is_flag=True, help="All tables of a run, not its first screen alone.")
@click.option("--each", is_flag=True, help="A line a row, not mean and spread over the seeds.")
@click.option(
    "--plot",
    type=click.Path(path_type=Path),
    callback=ending(*PICTURES),
    help="Draw the run; of a sweep the columns against the first option of --by.",
)
def show(
    folder: Path,
    where: dict[str, str],
    by: tuple[str, ...] | None,
    columns: tuple[str, ...] | None,
    details: bool,
    each: bool,
    plot: Path | None,
) -> None:
    """Show a saved run, or the rows of a sweep: means, spreads, pictures."""
    with failures_reported():
        if plot is not None:
            require("matplotlib")
            check_writable(plot, folder=False)
        from ..runs.reports.saved.loading import is_run

        choices = {"where": where, "by": by, "columns": columns, "each": each}
        if is_run(folder):
            _show_run(folder, choices, plot, details=details)
        else:
            _show_sweep(folder, where, by, columns, each=each, plot=plot)


def _show_run(
    folder: Path, choices: Mapping[str, Any], plot: Path | None, *, details: bool
) -> None:
    from ..runs.reports.saved.loading import load

    for name, value in choices.items():
        if value:
            raise ValueError(
                f"`{flag(name)}` picks rows of a sweep, and {str(folder)!r} holds a single run: "
                "leave it out"
            )
    report = load(folder)
    say(rendered(report, details=details))
    print_notices(report)
    _prove(report)
    if plot is not None:
        figure = report.figure()
        if figure is None:
            raise ValueError(f"nothing was trained, so there is no picture for {str(plot)!r}")
        write_figure(figure, plot)


def _prove(report: Report) -> None:
    """Say what the data of a run prove of its limits; refuse a report that claims more."""
    from ..models.proving import NotProvable, proved_again

    try:
        proved = proved_again(report)
    except NotProvable as error:
        say(f"certificates are as they were written, not proved again: {error}", err=True)
        return
    gap = max(limit.gap for limit in proved.values())
    words = "certificate" if len(proved) == 1 else f"{len(proved)} certificates"
    say(f"{words} proved again on the data of the run: largest gap {gap:.2e}", err=True)


def _show_sweep(
    folder: Path,
    where: dict[str, str],
    by: tuple[str, ...] | None,
    columns: tuple[str, ...] | None,
    *,
    each: bool,
    plot: Path | None,
) -> None:
    from ..runs.reports.shown.text import render_table
    from .table import (
        averaged,
        averaged_over,
        failures_of,
        matching,
        measured,
        read_rows,
        rows_table,
        summary_table,
        varying,
        with_trainers,
    )

    rows = matching(read_rows(folder), where)
    by = tuple(with_trainers(rows, by or varying(rows)))
    columns = columns or tuple(measured(rows))
    averages = averaged(rows, by, columns)
    shown = (
        rows_table(rows, by, columns)
        if each
        else summary_table(averages, columns, averaged_over(rows, by))
    )
    say(render_table(shown, width()))
    for message, count in failures_of(rows).items():
        say(f"failed, {count} of {len(rows)} rows: {message}", err=True)
    if plot is not None:
        from .figure import sweep_figure

        write_figure(sweep_figure(averages, columns), plot)
