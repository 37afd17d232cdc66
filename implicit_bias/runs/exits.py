"""The end of every command: exit codes, messages, signals."""

from __future__ import annotations

import contextlib
import logging
import signal
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .._support.files import harmless
from .._support.interrupts import INTERRUPTED as INTERRUPTED
from .._support.interrupts import handled, raised
from .progress import Progress, bar

if TYPE_CHECKING:
    from .reports.report import Report

BAD_INPUT = 2
PICTURES = (".png", ".svg", ".pdf")


def say(text: str, *, err: bool = False) -> None:
    """Print a text, on stderr if `err`, without what would command the terminal.

    Names and labels of data, and messages about them, come from files. Letters that the stream
    does not have are printed as their numbers.
    """
    encoding = getattr(sys.stderr if err else sys.stdout, "encoding", None) or "utf-8"
    click.echo(harmless(text).encode(encoding, "backslashreplace").decode(encoding), err=err)


def ending(*endings: str) -> Any:
    """Return a check that a path ends in one of these."""

    def check(context: click.Context, parameter: click.Parameter, path: Path | None) -> Path | None:
        """Refuse a path with another ending."""
        if path is not None and path.suffix.lower() not in endings:
            *some, last = endings
            raise click.BadParameter(f"{path} must end in {', '.join(some)} or {last}")
        return path

    return check


@contextlib.contextmanager
def failures_reported() -> Iterator[None]:
    """Turn everything that ends a run early into one message on stderr and an exit code.

    Warnings of the library go there too.
    """
    try:
        with _warnings_shown():
            yield
    except (MemoryError, RuntimeError) as error:
        # PyTorch has no type of its own for what its allocator on the CPU refuses.
        if not isinstance(error, MemoryError) and "allocate memory" not in str(error):
            raise
        words = str(error).split("DefaultCPUAllocator: ")[-1].split(" Error code")[0].rstrip(".")
        why = f": {words}" if words else ""
        say(f"Error: out of memory{why}: take a smaller network, or fewer samples", err=True)
        raise SystemExit(BAD_INPUT) from error
    except BrokenPipeError:  # whoever reads has read enough, as `head` has: click ends in silence
        raise
    except (ValueError, TypeError, OverflowError, OSError) as error:
        say(f"Error: {error}", err=True)
        raise SystemExit(BAD_INPUT) from error
    except KeyboardInterrupt:
        say("interrupted before there was anything to report", err=True)
        raise SystemExit(INTERRUPTED) from None


class _Echo(logging.Handler):
    """Messages as lines on stderr."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record as one line."""
        say(f"{record.levelname.lower()}: {record.getMessage()}", err=True)


@contextlib.contextmanager
def _warnings_shown() -> Iterator[None]:
    """Print the warnings that both packages log."""
    echo = _Echo(logging.WARNING)
    loggers = [logging.getLogger(name) for name in (__name__.split(".")[0], "solvers")]
    for logger in loggers:
        logger.addHandler(echo)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeHandler(echo)


def print_notices(report: Report) -> None:
    """Print all that a reader must not miss, on stderr."""
    if report.status is not None and report.status.name != "SOLVED":
        where = f" ({report.concerns})" if report.concerns else ""
        say(f"{report.status.name}{where}: {report.advice}", err=True)
    if report.shortfall:
        say(f"NOT SEPARATED: {report.shortfall}", err=True)
    if report.failure is not None:
        say(f"Error: {report.failure}", err=True)
    if not report.finished:
        say("interrupted: what was finished is reported", err=True)


@contextlib.contextmanager
def watched(quiet: bool, elsewhere: Progress) -> Iterator[Progress]:
    """Show progress on stderr, and let Ctrl-C end what runs so that it is reported and saved.

    SIGTERM, which cluster schedulers send, does as Ctrl-C does.

    Parameters
    ----------
    quiet : bool
        True to show nothing.
    elsewhere : Progress
        Shown where stderr is no terminal, on which there is a moving bar.
    """

    def interrupt(number: int, frame: object) -> None:
        """Pass the signal on as SIGINT."""
        signal.raise_signal(signal.SIGINT)

    shown: AbstractContextManager[Progress] = contextlib.nullcontext(elsewhere)
    if quiet:
        shown = contextlib.nullcontext(Progress())
    elif sys.stderr.isatty():
        shown = bar()
    with shown as progress, handled(signal.SIGTERM, interrupt), raised():
        yield progress


def rendered(report: Report, *, details: bool, explain: bool = False) -> str:
    """Render a report as wide as the terminal: its first screen, or all that it has."""
    return report.details(width()) if details else report.first_screen(width(), explain=explain)


def width() -> int:
    """Return the columns of the terminal; of a page where there is none."""
    import shutil

    return shutil.get_terminal_size((100, 24)).columns
