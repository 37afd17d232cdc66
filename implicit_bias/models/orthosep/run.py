"""The run of ReLU networks that begin near zero, on orthogonally separable data."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from ...quantities.papers import LYU, PHUONG
from ...runs.gathering import gather
from ...runs.programs import RunPrograms, stated
from ...runs.reports.finding import Finding
from ...runs.reports.findings import solved, usable
from ...runs.reports.report import Report
from ...runs.setup import SampleSetup, Setup, data_record, prepare, training_settings
from .formulation import NotOrthogonallySeparable, OrthogonallySeparable, solve_orthosep
from .limit import OrthosepLimit
from .schedule import halving_phases

if TYPE_CHECKING:
    from .trained_run import Network

__all__ = ["orthosep_programs", "run_orthosep"]

NAME = OrthogonallySeparable.name
RESIDUAL = (
    "nothing is proved for the residual network: its skips carry no weights, so it is not "
    "homogeneous, and theorem 3.1 and corollary 3.1 are about two layers. Conjectured from "
    "experiments: every layer comes near rank two, and the rows of the first turn to the two "
    f"max-margin vectors of the theorem ({PHUONG}, section 3.4.2)"
)


LEAKY = (
    "on orthogonally separable data neurons of a leaky network, from any balanced start, turn to "
    "the two vectors of one program, the least norm of all widths, if it separates the data and "
    "neither kind vanishes beside the other: an argument of this package (notes of "
    "solve_orthosep) on the KKT points of "
    f"{LYU}. Theorem 3.1 is about ReLUs"
)


def run_orthosep(setup: Setup) -> Report:
    """Predict the limit of a small-initialisation ReLU network, train one, compare them.

    Raises
    ------
    ValueError, FileNotFoundError
        If an option is out of range or the data are not there, before any long work.
    """
    options = setup.options
    if options.starts > 1 and options.network == "residual":
        raise ValueError(
            f"`--starts {options.starts}` is for `--network two-layer`: permutations and scales "
            "are no symmetries of a network with skip connections"
        )
    if options.slope and options.network == "residual":
        raise ValueError(
            f"`--slope {options.slope:g}` is for `--network two-layer`: nothing is known of leaky "
            "units beside skip connections"
        )
    whole = _with_phases(prepare(setup))
    network = None
    if setup.trains:
        from .trained_run import begun  # with torch, which the limit alone does not need

        network = begun(whole)
    leaky = f"leaky (slope {options.slope:g}) " if options.slope else ""
    title = f"{options.network} {leaky}ReLU network beside its two max-margin directions"
    theorem, source = "", ""
    if options.network == "residual":
        theorem, source = RESIDUAL, "none with skip connections: conjectured from experiments"
    elif leaky:
        theorem, source = LEAKY, "notes of solve_orthosep; Lyu and Li 2020"
    heading = whole.heading(data_record(whole.dataset), title=title, theorem=theorem, source=source)
    return gather(heading, _find(whole, network), setup.folder)


def orthosep_programs(setup: Setup) -> RunPrograms:
    """State both one-sided programs, as one.

    Raises
    ------
    ValueError, FileNotFoundError
        If an option is out of range or the data are not there.
    """
    samples = prepare(setup)
    setup.progress.stage(f"stating {NAME} on {len(samples.train.y)} samples")
    note = RESIDUAL if setup.options.network == "residual" else ""
    problem = OrthogonallySeparable(setup.options.slope).literal(samples.train.X, samples.train.y)
    return RunPrograms(setup.model, samples.dataset.description, (stated(NAME, problem, note),))


def _with_phases(setup: SampleSetup) -> SampleSetup:
    """Fill in phases by which the network reaches its limit on these data, if none were chosen."""
    if setup.options.steps is not None:
        return setup
    steps, rates = zip(*halving_phases(setup.train.X), strict=True)
    options = replace(setup.options, steps=steps, learning_rate=rates)
    return replace(setup, options=options, settings=training_settings(options, setup.seeds))


def _find(setup: SampleSetup, network: Network | None) -> Iterator[Finding]:
    """Yield the findings of the run, each as soon as it is known."""
    setup.progress.stage(f"solving both one-sided SVMs ({setup.options.solver})")
    limit = _predict(setup)
    yield solved(limit, NAME)
    if usable(limit) and network is not None:
        from .trained_run import train_and_compare

        yield from train_and_compare(setup, network, limit)


def _predict(setup: SampleSetup) -> OrthosepLimit:
    X, y, _ = setup.train
    with warnings.catch_warnings():
        # Said among the assumptions.
        warnings.simplefilter("ignore", NotOrthogonallySeparable)
        options = setup.options
        return solve_orthosep(X, y, slope=options.slope, solver=options.solver, tol=options.tol)
