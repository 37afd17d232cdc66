"""The command line. Nothing heavy is imported before the options have been read."""

from __future__ import annotations

import json
import os
import shlex
import sys
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, TextIO

import click

from ._support import __version__
from ._support.extras import require
from ._support.files import check_writable
from ._support.pictures import write_figure
from .models import MODELS
from .models.run_model import run_programs, running
from .options.command_line import ARGUMENTS, Choice, ModelCommand, typed_choices
from .runs.exits import (
    BAD_INPUT,
    INTERRUPTED,
    PICTURES,
    ending,
    failures_reported,
    print_notices,
    rendered,
    say,
    watched,
    width,
)
from .runs.progress import Progress

if TYPE_CHECKING:
    from .runs.programs import RunPrograms
    from .runs.reports.report import Report

# Exit codes, as documented in the README.
DONE, NOT_SEPARABLE, NOT_SOLVED, NOT_TRAINED = 0, 3, 4, 5
COMMANDS = {"compare": "cli:compare", "show": "sweeps.showing:show",
            "sweep": "sweeps.commands:sweep", "which": "cli:which"}  # fmt: skip
PAGES = (".html", ".htm")
# What a picture and a page need beside the command line itself.
DRAWN, PAGED = ("matplotlib",), ("matplotlib", "jinja2")

EPILOG = (
    "Exit codes: 0 done; 2 usage or bad input; 3 the data are not separable (the certificate is "
    "reported); 4 the solver did not reach its tolerance; 5 training ended before the network "
    "separates its data; 130 interrupted (what was finished is reported and saved)."
)


@click.command(
    cls=ModelCommand, models=MODELS, epilog=EPILOG, context_settings={"max_content_width": 100}
)
@click.option("--model", type=Choice(sorted(MODELS)), required=True, help="Predicted limit.")
@click.option(
    "--json", "as_json", is_flag=True, help="One JSON object on stdout, the rest on stderr."
)
@click.option(
    "--plot",
    type=click.Path(path_type=Path),
    callback=ending(*PICTURES),
    help="Draw the run into this PNG, SVG or PDF file.",
)
@click.option(
    "--report",
    "page",
    type=click.Path(path_type=Path),
    callback=ending(*PAGES),
    help="Write everything about the run into this HTML file, pictures included.",
)
@click.option(
    "--save",
    "folder",
    type=click.Path(path_type=Path),
    help="Folder for results, weights, contexts and trajectory; an unfinished run is kept there.",
)
@click.option(
    "--resume", is_flag=True, help="Go on with the unfinished run in the folder of --save."
)
@click.option(
    "--overwrite", is_flag=True, help="Begin anew in the folder of --save, whatever it holds."
)
@click.option(
    "--program",
    is_flag=True,
    help="Print the convex program of this run, stated in cvxpy, and its size; solve nothing.",
)
@click.option("--details", is_flag=True, help="Print all tables, not the first screen alone.")
@click.option("--explain", is_flag=True, help="Print what each row of the first screen is.")
@click.option("--quiet", is_flag=True, help="No progress and no tables.")
@click.version_option(__version__, prog_name="implicit-bias")
def compare(
    model: str,
    as_json: bool,
    plot: Path | None,
    page: Path | None,
    folder: Path | None,
    resume: bool,
    overwrite: bool,
    program: bool,
    details: bool,
    explain: bool,
    quiet: bool,
    **choices: Any,
) -> None:
    """Compare a trained network with the limit that theory predicts for it.

    Solves the limit, trains the network on the same data, and prints both side by side. With no
    options beyond --model it does so on bundled data in under two minutes; some models begin from
    defaults of their own, which the results name.
    """
    _open_streams()
    for flag, asked in (("--resume", resume), ("--overwrite", overwrite)):
        if asked and folder is None:
            raise click.UsageError(f"`{flag}` needs `--save DIR`, the folder of the run")
    if resume and overwrite:
        raise click.UsageError(
            "`--resume` goes on with a run, `--overwrite` begins anew: give one of them"
        )
    if program and (plot or page or folder):
        raise click.UsageError("`--program` runs nothing: leave out --plot, --report and --save")
    with failures_reported():
        context = click.get_current_context()
        _check_files(plot, page)
        chosen = typed_choices(context, choices)
        progress = watched(quiet, Progress(stage=lambda text: say(f"{text} ...", err=True)))
        if program:
            _print(run_programs(model, chosen, progress=progress), as_json, quiet)
            return
        with running(
            model, chosen, progress=progress, save=folder, resume=resume, overwrite=overwrite
        ) as report:
            # Shown first: a disk that turns out to be full must not take the results with it.
            shown = _show(report, as_json=as_json, details=details, explain=explain, quiet=quiet)
        _write(context, report, plot, page)
    print_notices(report)
    raise SystemExit(_exit_code(report) if shown else BAD_INPUT)


@click.command(context_settings={"max_content_width": 100})
@click.option("--network", help="A kind of network, or a part of its name.")
@click.option("--loss", help="A loss.")
@click.option("--optimizer", help="How it is trained.")
@click.option("--json", "as_json", is_flag=True, help="A JSON list on stdout.")
def which(network: str | None, loss: str | None, optimizer: str | None, as_json: bool) -> None:
    """Print what is known of where training ends, with its source and what computes it.

    Without options all of the atlas.
    """
    from .quantities.selection import which as entries_of

    with failures_reported():
        entries = entries_of(network, loss, optimizer)
        if as_json:
            say(json.dumps([entry.to_dict() for entry in entries], ensure_ascii=False))
            return
        for entry in entries:
            first, *others = str(entry).splitlines()
            say(first)
            for line in others:
                say(click.wrap_text(line.strip(), width(), "  ", "    "))
            say("")
        found = "No entry names all of these" if not entries else f"Entries: {len(entries)}"
        say(f"{found}. `diagnose` says of a network of your own which apply.")


def _print(programs: RunPrograms, as_json: bool, quiet: bool) -> None:
    """Print programs as text, or as a JSON object and the text on stderr unless that is quiet."""
    if not (as_json and quiet):
        say(str(programs), err=as_json)
    if as_json:
        say(json.dumps(programs.to_dict()))


def _show(report: Report, *, as_json: bool, details: bool, explain: bool, quiet: bool) -> bool:
    """Print the report and the JSON object, each on its stream; False where that failed."""
    try:
        if not quiet:
            say(rendered(report, details=details, explain=explain), err=as_json)
        if as_json:
            say(report.to_json())
    except OSError as error:  # what follows may still reach the disk
        say(f"Error: the results could not be printed: {error}", err=True)
        # What it holds back would fail once more at the end, with an exit code of its own.
        sys.stdout = _nowhere()
        return False
    return True


def _open_streams() -> None:
    """Open streams that were closed before the program began, to nowhere."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, _nowhere())


def _nowhere() -> TextIO:
    """Open a stream of which nothing is kept."""
    return open(os.devnull, "w")


def _check_files(plot: Path | None, page: Path | None) -> None:
    """Check that all files asked for can be made and written, before any work."""
    for file, modules in ((plot, DRAWN), (page, PAGED)):
        if file is not None:
            require(*modules)
            check_writable(file, folder=False)


def _write(context: click.Context, report: Report, plot: Path | None, page: Path | None) -> None:
    """Write the files that were asked for."""
    try:
        if plot is not None:
            figure = report.figure()
            if figure is None:
                say(f"nothing was trained, so there is no picture for {plot}", err=True)
            else:
                write_figure(figure, plot)
        if page is not None:
            from .runs.reports.shown.page import write_html

            command = shlex.join([*context.command_path.split(), *context.meta[ARGUMENTS]])
            write_html(report, page, command=command)
    except OSError as error:
        raise OSError(f"the results could not be written: {error}") from error


def _exit_code(report: Report) -> int:
    if not report.finished:
        return INTERRUPTED
    if report.failure is not None:
        return BAD_INPUT
    if report.status is not None and report.status.name != "SOLVED":
        return NOT_SEPARABLE if report.status.name == "NOT_SEPARABLE" else NOT_SOLVED
    return NOT_TRAINED if report.shortfall else DONE


class _Commands(click.Group):
    """Commands that are loaded when they are called, or listed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return their names, in the order of the help."""
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Load a command; None if there is none of that name."""
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = resolve_name(f"{__package__}.{COMMANDS[cmd_name]}")
        return command


@click.group(cls=_Commands, context_settings={"max_content_width": 100})
@click.version_option(__version__, prog_name="implicit-bias")
def main() -> None:
    """Predictions of the implicit bias of gradient descent, certified and compared."""
