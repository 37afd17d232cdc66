"""The command line. Nothing heavy is imported before the options have been read."""

from __future__ import annotations

import contextlib
import shlex
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from ._version import __version__
from .models import MODELS, check_options
from .pipeline.options import TRAINERS, Options, Reporter, resolve

if TYPE_CHECKING:
    from .pipeline.report import Report

__all__ = ["compare_main", "main"]

# Exit codes, as documented in the README.
DONE, BAD_INPUT, NOT_SEPARABLE, NOT_SOLVED, INTERRUPTED = 0, 2, 3, 4, 130
PICTURES = (".png", ".svg", ".pdf")
PAGES = (".html", ".htm")
ARGUMENTS = "implicit_bias.arguments"

EPILOG = (
    "Exit codes: 0 done; 2 usage or bad input; 3 the data are not separable (the certificate is "
    "reported); 4 the solver did not reach its tolerance; 130 interrupted (what was finished is "
    "reported and saved)."
)


def _numbers(kind: type, example: str) -> Any:
    def read(
        context: click.Context, parameter: click.Parameter, value: str | None
    ) -> tuple[Any, ...] | None:
        if value is None:
            return None
        try:
            numbers = tuple(kind(part) for part in value.split(","))
        except ValueError as error:
            raise click.BadParameter(f"{value!r} is not a list such as {example}") from error
        return numbers

    return read


def _rates(
    context: click.Context, parameter: click.Parameter, value: str | None
) -> tuple[float, ...] | None:
    """Learning rates; none of them for `auto`."""
    if value == "auto":
        return ()
    rates: tuple[float, ...] | None = _numbers(float, "0.04,0.01 (or auto)")(
        context, parameter, value
    )
    return rates


class _Recorded(click.Command):
    """A command that keeps its arguments as they were typed, for the report."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.meta[ARGUMENTS] = tuple(args)
        return super().parse_args(ctx, args)


@click.command(
    cls=_Recorded, epilog=EPILOG, context_settings={"max_content_width": 100, "show_default": True}
)
@click.option("--model", type=click.Choice(sorted(MODELS)), required=True, help="Predicted limit.")
@click.option(
    "--data",
    type=click.Choice(["digits", "mnist", "orthants", "pulse", "quadrants", "ring"]),
    default="digits",
    help="scikit-learn's bundled digits or IDX files of MNIST's kind, 0-4 against 5-9; "
    "orthogonally separable orthants; four quadrants of the plane; a ring with two length scales, "
    "of pulses or of a process.",
)
@click.option(
    "--data-dir", type=click.Path(path_type=Path), help="Folder of the IDX files, gzipped or not."
)
@click.option(
    "--classes",
    type=click.Choice(["two", "all"]),
    default="two",
    help="0-4 against 5-9, or each of the ten classes against the rest.",
)
@click.option("--n-train", type=click.IntRange(min=1), help="Training samples.  [default: 500]")
@click.option(
    "--n-val", type=click.IntRange(min=1), help="Held-out samples.  [default: all that are left]"
)
@click.option("--hidden-units", type=click.IntRange(min=1), default=10, help="Units H.")
@click.option(
    "--network",
    type=click.Choice(["two-layer", "residual"]),
    default="two-layer",
    help="Network of the model orthosep: the theorem's, or four layers with skip connections.",
)
@click.option(
    "--depth",
    type=click.IntRange(min=1),
    help="Layers of the models deep-linear and relu, for which 2 is one hidden layer.  "
    "[default: 3 and 2]",
)
@click.option(
    "--length-scales",
    metavar="XI_1,XI_0",
    callback=_numbers(float, "5,1"),
    help="Length scales of the classes y = 1 and y = 0 of the model gdln.  "
    "[default: 5,1 on the ring, 10,5 for pulses]",
)
@click.option(
    "--contexts",
    type=click.IntRange(min=1),
    default=2,
    help="Contexts C of a unit, a power of two.",
)
@click.option(
    "--cutoffs",
    type=click.Choice(["median", "random", "axes"]),
    default="median",
    help="Where the hyperplanes of the contexts cut; axes: one coordinate plane each.",
)
@click.option(
    "--solver",
    default="interior-point",
    help="interior-point, or cvxpy:NAME (CLARABEL, ECOS, SCS).",
)
@click.option("--tol", type=float, default=1e-8, help="Relative duality gap to reach.")
@click.option(
    "--trainer",
    type=click.Choice(sorted(TRAINERS)),
    help="Gradient method: constant steps, or one that goes far along.  [default: by model]",
)
@click.option("--loss", type=click.Choice(["logistic", "exponential"]), default="logistic")
@click.option(
    "--steps",
    callback=_numbers(int, "1600,1600"),
    help="Gradient steps of each phase of training.  [default: by model and trainer]",
)
@click.option(
    "--learning-rate",
    "learning_rates",
    callback=_rates,
    help="Learning rate of each phase, or auto: found by the trainer.  "
    "[default: by model and trainer]",
)
@click.option(
    "--freeze-at",
    type=click.IntRange(min=0),
    help="Step at which the model relu freezes the gates of a copy of its network, which goes on "
    "without changing them.  [default: half of the steps]",
)
@click.option("--momentum", type=float, default=0.0)
@click.option(
    "--batch-size",
    type=click.IntRange(min=0),
    help="Samples of a step; 0 is the full batch.  [default: by model and trainer]",
)
@click.option(
    "--init", type=click.Choice(["orthogonal", "kaiming", "balanced"]), default="orthogonal"
)
@click.option("--init-scale", type=float, default=1.0, help="Factor on the initial weights.")
@click.option("--device", default="cpu", help="Device of the network: cpu, cuda, cuda:1, ...")
@click.option(
    "--dtype",
    type=click.Choice(["float32", "float64"]),
    default="float64",
    help="Precision of the network; the limit is always solved in float64.",
)
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=0,
    help="Seed of data split, contexts, weights and batches.",
)
@click.option(
    "--json", "as_json", is_flag=True, help="One JSON object on stdout, the rest on stderr."
)
@click.option(
    "--plot", type=click.Path(path_type=Path), help="Draw the run into this PNG, SVG or PDF file."
)
@click.option(
    "--report",
    "page",
    type=click.Path(path_type=Path),
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
@click.option("--quiet", is_flag=True, help="No progress and no tables.")
@click.version_option(__version__, prog_name="implicit-bias")
def compare(
    model: str,
    as_json: bool,
    plot: Path | None,
    page: Path | None,
    folder: Path | None,
    resume: bool,
    quiet: bool,
    **choices: Any,
) -> None:
    """Compare a trained network with the limit that theory predicts for it.

    Solves the limit, trains the network on the same data, and prints both side by side. With no
    options beyond --model it does so on bundled data in under two minutes; some models begin from
    defaults of their own, which the results name.
    """
    if plot is not None and plot.suffix.lower() not in PICTURES:
        raise click.BadParameter(f"{plot} must end in .png, .svg or .pdf", param_hint="--plot")
    if page is not None and page.suffix.lower() not in PAGES:
        raise click.BadParameter(f"{page} must end in .html or .htm", param_hint="--report")
    if resume and folder is None:
        raise click.UsageError("`--resume` needs `--save DIR`, the folder that the run was kept in")
    source = click.get_current_context().get_parameter_source
    given = {k: v for k, v in choices.items() if source(k) is not ParameterSource.DEFAULT}
    defaults = MODELS[model].defaults_for(choices)
    try:
        with _progress(quiet) as reporter:
            keeping = replace(reporter, folder=folder, resume=resume)
            report = _run(model, resolve(defaults, given), (plot, page), keeping)
    except MemoryError as error:
        click.echo(f"Error: out of memory: {error}", err=True)
        raise SystemExit(BAD_INPUT) from error
    except (ValueError, OSError) as error:
        click.echo(f"Error: {error}", err=True)
        raise SystemExit(BAD_INPUT) from error
    except KeyboardInterrupt:
        click.echo("interrupted before there was anything to report", err=True)
        raise SystemExit(INTERRUPTED) from None
    if not quiet:
        click.echo(str(report), err=as_json)
    if as_json:
        click.echo(report.to_json())
    # Shown first: a disk that turns out to be full must not take the results with it.
    try:
        _write(report, plot, page, folder)
    except OSError as error:
        click.echo(f"Error: the results could not be written: {error}", err=True)
        raise SystemExit(BAD_INPUT) from error
    if report.status.name != "SOLVED":
        where = f" ({report.concerns})" if report.concerns else ""
        click.echo(f"{report.status.name}{where}: {report.status.advice}", err=True)
    if report.failure is not None:
        click.echo(f"Error: {report.failure}", err=True)
    raise SystemExit(_exit_code(report))


def _run(
    model: str, options: Options, files: tuple[Path | None, ...], reporter: Reporter
) -> Report:
    """The report; paths to write to are checked before any work."""
    from .pipeline.report import check_writable

    for file in files:
        if file is not None:
            check_writable(file, folder=False)
    if reporter.folder is not None:
        check_writable(reporter.folder, folder=True)
    check_options(model, options)
    return MODELS[model].run(options, reporter)


def _write(report: Report, plot: Path | None, page: Path | None, folder: Path | None) -> None:
    """What was asked for on disk."""
    if folder is not None:
        report.save(folder)
    if plot is not None:
        if report.figure is None:
            click.echo(f"nothing was trained, so there is no picture for {plot}", err=True)
        else:
            report.figure().savefig(plot, dpi=150)
    if page is not None:
        from .pipeline.page import write_html

        context = click.get_current_context()
        command = shlex.join([*context.command_path.split(), *context.meta[ARGUMENTS]])
        write_html(report, page, command=command)


def _exit_code(report: Report) -> int:
    if not report.finished:
        return INTERRUPTED
    if report.failure is not None:
        return BAD_INPUT
    return {"SOLVED": DONE, "NOT_SEPARABLE": NOT_SEPARABLE}.get(report.status.name, NOT_SOLVED)


@contextlib.contextmanager
def _progress(quiet: bool) -> Iterator[Reporter]:
    """Progress on stderr: a moving bar on a terminal, a line a stage elsewhere."""
    if quiet:
        yield Reporter()
    elif not sys.stderr.isatty():
        yield Reporter(stage=lambda text: click.echo(f"{text} ...", err=True))
    else:
        from rich.console import Console
        from rich.progress import Progress

        with Progress(console=Console(stderr=True), transient=True) as bar:
            task = bar.add_task("starting", total=None)
            yield Reporter(
                stage=lambda text: bar.reset(task, total=None, description=text),
                advance=lambda done, of: bar.update(task, completed=done, total=of),
            )


@click.group(context_settings={"max_content_width": 100})
@click.version_option(__version__, prog_name="implicit-bias")
def main() -> None:
    """Predictions of the implicit bias of gradient descent, certified and compared."""


main.add_command(compare)


def compare_main() -> None:
    """The command `compare`, which the package also installs by that name alone."""
    compare(prog_name="compare")
