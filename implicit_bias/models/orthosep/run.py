"""The run of ReLU networks that begin near zero, on orthogonally separable data."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pkgutil import resolve_name
from typing import Any

from ...quantities.atlas import named
from ...runs.programs import StatedProgram, stated
from ...runs.reports.finding import Finding
from ...runs.reports.findings import solved, usable
from ...runs.setup import SampleSetup, Setup, data_record, prepare, training_settings
from ...runs.stages import Found, Run, Stage, later
from .formulation import NotOrthogonallySeparable, OrthogonallySeparable, solve_orthosep
from .schedule import halving_phases

NAME = OrthogonallySeparable.name
TRAINING = f"{__package__}.training"
RESIDUAL = named(
    "nothing is proved for the residual network: its skips carry no weights, so it is not "
    "homogeneous, and theorem 3.1 and corollary 3.1 are about two layers. Conjectured from "
    "experiments: every layer comes near rank two, and the rows of the first turn to the two "
    "max-margin vectors of the theorem ({phuong-2021}, section 3.4.2)"
)


LEAKY = named(
    "on orthogonally separable data neurons of a leaky network, from any balanced start, turn to "
    "the two vectors of one program, the least norm of all widths, if it separates the data and "
    "neither kind vanishes beside the other: an argument of this package (notes of "
    "solve_orthosep) on the KKT points of {lyu-2020}. Theorem 3.1 is about ReLUs"
)


@dataclass(frozen=True, eq=False, kw_only=True)
class OrthosepSetup(SampleSetup):
    """The setup of a run, with its network."""

    @cached_property
    def network(self) -> Any:
        """The untrained network, of torch, which the limit alone does not need."""
        return resolve_name(f"{TRAINING}:begun")(self)


def run_orthosep(setup: Setup) -> Run[OrthosepSetup]:
    """Predict the limit of a small-initialisation ReLU network, train one, compare them.

    Raises
    ------
    ValueError, FileNotFoundError
        If an option is out of range or the data are not there, before any long work.
    """
    options = setup.options
    whole = OrthosepSetup(**_with_phases(prepare(setup)).shared)
    leaky = f"leaky (slope {options.slope:g}) " if options.slope else ""
    theorem, source = "", ""
    if options.network == "residual":
        theorem, source = RESIDUAL, "none with skip connections: conjectured from experiments"
    elif leaky:
        theorem, source = LEAKY, "notes of solve_orthosep; Lyu and Li 2020"
    heading = whole.heading(
        data_record(whole.dataset),
        title=f"{options.network} {leaky}ReLU network beside its two max-margin directions",
        theorem=theorem,
        source=source,
    )
    return Run(setup=whole, heading=heading, stages=STAGES, checks=lambda: _check(whole))


def _check(setup: OrthosepSetup) -> None:
    """See that the options go with the network, and that the trainer takes it."""
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
    _ = setup.trains and setup.network


def _with_phases(setup: SampleSetup) -> SampleSetup:
    """Fill in phases by which the network reaches its limit on these data, if none were chosen."""
    if setup.options.steps is not None:
        return setup
    steps, rates = zip(*halving_phases(setup.train.X), strict=True)
    options = replace(setup.options, steps=steps, learning_rate=rates)
    return replace(setup, options=options, settings=training_settings(options, setup.seeds))


def _predict(setup: OrthosepSetup, found: Found) -> Iterator[Finding]:
    (X, y, _), options = setup.train, setup.options
    with warnings.catch_warnings():
        # Said among the assumptions.
        warnings.simplefilter("ignore", NotOrthogonallySeparable)
        limit = solve_orthosep(X, y, slope=options.slope, solver=options.solver, tol=options.tol)
    yield solved(limit, NAME)


def _state(setup: OrthosepSetup) -> Iterator[StatedProgram]:
    """State both one-sided programs, as one."""
    X, y, _ = setup.train
    setup.progress.stage(f"stating {NAME} on {len(y)} samples")
    note = RESIDUAL if setup.options.network == "residual" else ""
    yield stated(NAME, OrthogonallySeparable(setup.options.slope).literal(X, y), note)


STAGES: tuple[Stage[OrthosepSetup], ...] = (
    Stage(
        finds=_predict,
        says="solving both one-sided SVMs ({setup.options.solver})",
        states=_state,
    ),
    Stage(
        finds=later(f"{TRAINING}:train"),
        trains=True,
        when=lambda setup, found: usable(found["limit"]),
    ),
    Stage(finds=later(f"{TRAINING}:compare"), says="comparing", needs=("trajectory",)),
    Stage(
        finds=later(f"{TRAINING}:train_others"),
        trains=True,
        needs=("trajectory",),
        when=lambda setup, found: setup.options.starts > 1,
    ),
)
