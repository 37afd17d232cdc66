"""The run of linear convolutions: beside the l1 optimum, or beside a point of the quasi-norm."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from ...quantities.atlas import named
from ...runs.reports.finding import Finding
from ...runs.separable import SeparableSetup, run_separable
from ...runs.setup import Setup
from ...runs.stages import Found, Run, Stage, later
from .figure import plot_spectra

DEEPER = named(
    "the limit of more than two layers, end to end, is a first-order point of the quasi-norm "
    "||F b||_(2/L) at margin 1 ({gunasekar-2018}, theorem 2). Which one is not said: the one "
    "next to the network is certified here, and a convex program bounds all from below"
)


def run_convolution(setup: Setup) -> Run[Any]:
    """Predict the limit of a linear convolution, train one, and compare them and their spectra.

    Raises
    ------
    ValueError, FileNotFoundError
        If an option is out of range or the data are not there, before any long work.
    """
    options = setup.options
    if options.depth > 2 and ("," in options.trainer or options.classes != "two"):
        raise ValueError(
            f"`--depth {options.depth}` takes one `--trainer` and two `--classes`, got "
            f"{options.trainer!r} and {options.classes!r}"
        )
    run = run_separable(setup)
    if options.classes != "two":
        return run
    predict, train = run.stages
    if options.depth == 2:
        return replace(run, stages=(predict, train, Stage(finds=_spectra, needs=("trajectory",))))
    heading = replace(
        run.heading,
        theorem=DEEPER,
        program=f"min ||F b||_(2/{options.depth})  s.t.  y_n <b, x_n> >= 1, locally",
    )
    deeper = replace(train, finds=later(f"{__package__}.deeper_run:train"))
    bound = replace(predict, finds=later(f"{__package__}.deeper_run:bound"))
    return replace(run, heading=heading, stages=(bound, deeper))


def _spectra(setup: SeparableSetup, found: Found) -> Iterator[Finding]:
    """Draw the spectra of the network on its way to that of the limit."""
    panel = partial(plot_spectra, found["trajectory"], found["limit"].unit_norms)
    yield Finding.said("spectra", panels=(panel,))
