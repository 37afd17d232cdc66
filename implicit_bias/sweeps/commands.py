"""The command `sweep`. Nothing heavy is imported before the options have been read."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .._support.words import EngineName, words
from ..models import MODELS
from ..options.command_line import MODEL, Choice, ModelCommand, Typed
from ..options.fields import flag
from ..options.values import Kind, kinds
from ..runs.exits import (
    INTERRUPTED,
    failures_reported,
    say,
    watched,
)
from ..runs.progress import Lines

if TYPE_CHECKING:
    from .files import SweepFile
    from .sweep import Sweep

FAILED_CELLS = 6
ENGINES = words(EngineName)
EPILOG = (
    "Exit codes: 0 done; 2 usage or bad input, or a full disk; 6 some cells failed, and their rows "
    "say why, or were lost with their processes or jobs; 130 interrupted. What was finished is in "
    "the folder, and the same command goes on."
)


class SweepCommand(ModelCommand):
    """A command whose further options are those of a model, each with any number of values."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the command's own parameters, and the model's, each with several values."""
        own, model = click.Command.get_params(self, ctx), ctx.meta.get(MODEL)
        if model is None:
            return own
        return [*own, *(_several(name, kind) for name, kind in kinds(model.options).items())]


def _several(name: str, kind: Kind) -> click.Option:
    form = "once a value" if kind.several else "commas between values"
    return click.Option(
        [flag(name), name], multiple=True, type=_Entries(kind), help=f"{kind.about.help}  [{form}]"
    )


class _Entries(Typed):
    """Values of an option between commas, or one value that has commas of its own."""

    def __init__(self, kind: Kind) -> None:
        super().__init__(kind)
        self.name = "list" if kind.several else "values"

    def read(self, value: Any) -> Any:
        """Return the values of what was typed."""
        from .grids import entries_of

        kind = self.kind
        if kind.several or kind.base is Path:
            return (kind.parse(str(value)),)
        parts = [part.strip() for part in str(value).split(",")]
        if kind.base is int:
            parts = [entry for part in parts for entry in entries_of(kind, part)]
        return tuple(kind.parse(str(part)) for part in parts)


def named_values(
    context: click.Context, parameter: click.Parameter, texts: tuple[str, ...]
) -> dict[str, str]:
    """Read options of the form NAME=VALUE."""
    found = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise click.BadParameter(f"{text!r} is not of the form NAME=VALUE")
        found[name.strip().replace("-", "_")] = value.strip()
    return found


@click.command(
    cls=SweepCommand, models=MODELS, epilog=EPILOG, context_settings={"max_content_width": 100}
)
@click.argument("file", type=click.Path(path_type=Path), required=False)
@click.option("--model", type=Choice(sorted(MODELS)), help="In place of FILE: the model ...")
@click.option("--out", type=click.Path(path_type=Path), required=True, help="Folder of the rows.")
@click.option("--jobs", type=click.IntRange(1), default=1, show_default=True, help="At a time.")
@click.option("--engine", type=Choice(ENGINES), help="What runs the cells.  [default: joblib]")
@click.option("--scheduler", help="Address of the Dask scheduler; local: slurm without a cluster.")
@click.option("--threads", type=click.IntRange(1), help="Of BLAS and PyTorch a process.")
@click.option(
    "--engine-option",
    "further",
    multiple=True,
    callback=named_values,
    help="NAME=VALUE for the engine, such as slurm_partition=long.",
)
@click.option(
    "--retry", is_flag=True, help="Run cells again that failed earlier, or ran out of time."
)
@click.option("--time-limit", type=float, help="Seconds of a cell.")
@click.option("--save", help="Kept of every cell: report, or some of limit,network,trajectory.")
@click.option("--sync", is_flag=True, help="Wait for the disk after every cell.")
@click.option("--quiet", is_flag=True, help="No progress and no summary.")
def sweep(
    file: Path | None,
    model: str | None,
    out: Path,
    jobs: int,
    retry: bool,
    time_limit: float | None,
    save: str | None,
    sync: bool,
    quiet: bool,
    **choices: Any,
) -> None:
    """Run a model for all combinations of values of its options.

    By FILE, in TOML: `model`, a table [grid] of options with lists of values, [zip] and [draw] for
    others that vary, and a table [options] for all that do not; or by options, `--hidden-units
    1,2,5 --seed 0:10`, each with its values between commas. Cells whose rows are in the folder of
    --out are not run again.
    """
    with failures_reported():
        engine = {name: choices.pop(name) for name in ("engine", "scheduler", "threads", "further")}
        wanted = _wanted(file, model, choices)
        from .engines.engine import Engine
        from .kept import as_rules
        from .store import Store
        from .sweep import Settings, sweeping
        from .work import CellSettings

        runs_with = Engine(**_merged(wanted.engine, engine))
        of_cells = CellSettings(
            runs_with.threads, sync, time_limit, save=as_rules(save.split(",") if save else ())
        )
        how = Settings(runs_with, of_cells, jobs, retry)
        # With the time that is left: a bar on a terminal, lines elsewhere.
        progress = watched(quiet, Lines(lambda text: say(text, err=True)).progress())
        done = sweeping(wanted.model, wanted.grid, wanted.options, Store(out), how, progress)
        if not quiet:
            _summarise(done)
    if not done.finished and not done.lost:
        raise SystemExit(INTERRUPTED)
    raise SystemExit(FAILED_CELLS if done.failures or done.lost else 0)


def _wanted(file: Path | None, model: str | None, choices: Mapping[str, Any]) -> SweepFile:
    """Return the sweep of a file, or of options."""
    from .files import SweepFile, read_sweep_file

    if (file is None) == (model is None):
        raise click.UsageError("give a FILE, or `--model` and options: one of them")
    if file is not None:
        return read_sweep_file(file)
    assert model is not None
    grid = {name: tuple(value for part in parts for value in part)
            for name, parts in choices.items() if parts}  # fmt: skip
    return SweepFile(model, grid)


def _merged(of_file: Mapping[str, Any], typed: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of an engine: what is typed comes before what a file says."""
    given = {
        "name": typed["engine"],
        "scheduler": typed["scheduler"],
        "threads": typed["threads"],
        "options": {name: _number(value) for name, value in typed["further"].items()} or None,
    }
    return {**of_file, **{name: value for name, value in given.items() if value is not None}}


def _number(text: str) -> Any:
    """Return a whole number where it is one."""
    return int(text) if text.removeprefix("-").isdecimal() else text


def _summarise(done: Sweep) -> None:
    """Print the numbers of cells that are done and failed, with the messages of failures."""
    from collections import Counter

    parts = [f"{done.n_done} of {len(done.cells)} cells are in {done.folder}"]
    if done.n_skipped:
        parts.append(f"{done.n_skipped} were there before")
    say("; ".join(parts), err=True)
    for messages, what in (
        (done.failures, "failed (`--retry` runs them again):"),
        (done.ended, "were ended early, and their rows are of what there was:"),
        (done.lost, "were lost (the same command runs them):"),
    ):
        if messages:
            say(f"{len(messages)} {what}", err=True)
        for message, count in Counter(messages.values()).most_common(5):
            say(f"  {count} x {message}", err=True)
    if not (done.lost or done.finished):
        say("interrupted: the same command goes on", err=True)
