"""The run of networks whose outer layer is fixed: condition, limit, network, rank, linear SVM."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._support.solve import Status
from ...data.arrays import Floats
from ...data.made.near_orthogonal import NearOrthogonality, near_orthogonality
from ...limits.relu.fixed_outer import NAME, FixedOuterMargin, solve_fixed_outer
from ...quantities.atlas import cited, named
from ...runs.programs import StatedProgram, stated
from ...runs.reports.finding import Finding
from ...runs.setup import SampleSetup, Setup, data_record, prepare
from ...runs.stages import Found, Run, Stage, later
from .model import NEARLY

if TYPE_CHECKING:
    from ...networks.structured.fixed_outer import FixedOuterReLU

UNNAMED = named(
    "no theorem names the limit on data that are not nearly orthogonal: training goes to some KKT "
    "point ({lyu-2020}, theorem 4.4), and the local optimum next to the network is certified"
)


@dataclass(frozen=True, eq=False, kw_only=True)
class FixedOuterSetup(SampleSetup):
    """The setup of a run, with its condition and its outer weights."""

    @cached_property
    def nearly(self) -> NearOrthogonality:
        """How nearly orthogonal the inputs are."""
        return near_orthogonality(self.train.X, self.train.y, slope=self.options.slope)

    @property
    def outer(self) -> Floats:
        """The outer weights (H,): of both signs in turn, of length 1."""
        H = self.options.hidden_units
        return np.asarray((1.0 - 2.0 * (np.arange(H) % 2)) / np.sqrt(H))

    @cached_property
    def network(self) -> FixedOuterReLU:
        """The untrained network, of torch, which the limit alone does not need."""
        made: Any = resolve_name(f"{__package__}.beside_run:begun")(self)
        return made  # type: ignore[no-any-return]


def run_fixed_outer(setup: Setup) -> Run[FixedOuterSetup]:
    """Check the data, solve for the limit, train the inner layer, compare.

    Raises
    ------
    ValueError, FileNotFoundError
        If an option is out of range or the data are not there, before any long work.
    """
    whole = FixedOuterSetup(**prepare(setup).shared)
    leaky = f"leaky (slope {setup.options.slope:g}) " if setup.options.slope else ""
    heading = setup.heading(
        data_record(whole.dataset),
        title=f"{leaky}ReLU network of {setup.options.hidden_units} units with a fixed outer layer",
        theorem="" if whole.nearly else UNNAMED,
        source=cited("none names the limit; {lyu-2020}, theorem 4.4"),
    )
    checks = lambda: whole.trains and whole.network  # noqa: E731
    return Run(setup=whole, heading=heading, stages=STAGES, checks=checks)


def _predict(setup: FixedOuterSetup, found: Found) -> Iterator[Finding]:
    """Solve for the limit from the gates of the labels."""
    (X, y, _), options = setup.train, setup.options
    limit = solve_fixed_outer(X, y, setup.outer, slope=options.slope, tol=options.tol)
    holds = NEARLY.found(message=setup.nearly.message, holds=bool(setup.nearly))
    if limit.status is Status.SOLVED:
        yield Finding("limit", {"limit": limit}, NAME, assumptions=(holds,))
        return
    # Elsewhere it is one of several optima at best: that next to the network stands beside it.
    record = {"limit": limit.to_dict()}
    yield Finding.said("limit", record=record, objects={"limit": limit}, assumptions=(holds,))


def _state(setup: FixedOuterSetup) -> Iterator[StatedProgram]:
    X, y, _ = setup.train
    setup.progress.stage(f"stating the {NAME} on {len(y)} samples")
    problem = FixedOuterMargin(setup.outer, setup.options.slope).literal(X, y)
    yield stated(NAME, problem, "each neuron open on the samples of its own sign")


STAGES: tuple[Stage[FixedOuterSetup], ...] = (
    Stage(finds=_predict, says="solving on the gates of the labels", states=_state),
    Stage(finds=later(f"{__package__}.beside_run:train"), trains=True),
)
