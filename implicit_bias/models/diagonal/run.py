"""The run of diagonal networks: the limit of their start, before anything is trained."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import cast

import numpy as np

from ..._support.solve import Status
from ...data.arrays import Floats
from ...data.dataset import Dataset
from ...data.sample import Sample
from ...limits.finite.diagonal import DiagonalLimit, solve_diagonal
from ...limits.finite.program import LeastPotential
from ...networks.drawn import balanced_diagonal
from ...quantities.atlas import statement
from ...runs.programs import StatedProgram, stated
from ...runs.reports.finding import Finding
from ...runs.setup import Setup, data_record, training_settings
from ...runs.stages import Found, Run, Stage, later
from ...runs.user_data import load_chosen
from ...training.settings import Phases, TrainingSettings
from .model import INTERPOLATES, SEPARATES

NAME = LeastPotential.name

# A learning rate over the inverse of the largest curvature: descent is stable below 2.
RATE = 0.1
# By how much it grows from phase to phase, up to the inverse of the curvature: steps move the start
# by their squares, and those of later phases, where the residual is small, hardly do.
GROWTH = 3.0


# The loss down to which the rate of steps on margins is chosen; without training the limit is that
# of its margin.
GOAL = 1e-8


@dataclass(frozen=True, eq=False, kw_only=True)
class DiagonalSetup(Setup):
    """The setup of a run, with its data and the start of its network.

    Attributes
    ----------
    dataset : Dataset
    start : pair of (m,) arrays
        Weights u and v that the network begins with.
    """

    dataset: Dataset
    start: tuple[Floats, Floats]

    @property
    def train(self) -> Sample:
        """The training part of the data."""
        return Sample(self.dataset.X_train, self.dataset.y_train, None)

    @property
    def held_out(self) -> Sample:
        """The held-out part of the data."""
        return Sample(self.dataset.X_val, self.dataset.y_val, None)

    @property
    def of_margins(self) -> bool:
        """True if the network is trained on the loss of margins."""
        return bool(self.options.loss == "logistic")

    @cached_property
    def X(self) -> Floats:
        """Inputs (n, D) of the training part in float64."""
        return np.asarray(self.dataset.X_train, dtype=np.float64)

    @cached_property
    def targets(self) -> Floats:
        """The part (n,) that features fit, whose slopes of the squared loss are those of all.

        They are the labels on the loss of margins.
        """
        y = np.asarray(self.dataset.y_train, dtype=np.float64)
        return y if self.of_margins else self.X @ np.linalg.lstsq(self.X, y, rcond=None)[0]

    @property
    def misfit(self) -> float:
        """The part of the targets that no coefficients fit, relative."""
        y = np.asarray(self.dataset.y_train, dtype=np.float64)
        return float(np.linalg.norm(y - self.targets) / np.linalg.norm(y))

    @property
    def goal(self) -> float | None:
        """The margin by which rates are chosen, and that of a prediction alone; None of targets."""
        return -math.log(GOAL) if self.of_margins else None

    @cached_property
    def limit(self) -> DiagonalLimit:
        """The limit of the start, of its targets or of the margin that is the goal."""
        return solve_diagonal(
            self.X, self.targets, *self.start, margin=self.goal, tol=self.options.tol
        )

    @cached_property
    def settings(self) -> TrainingSettings:
        """The settings of training, with rates by the curvature where none were chosen."""
        options = self.options
        schedule: Phases | None = None
        if not self.trains:
            schedule = ((1, 1.0),)
        elif not options.learning_rate:
            first = 1.0 if self.of_margins else RATE
            rate = first / _curvature(self.X, self.limit, options.init_scale, self.of_margins)
            grown = (min(GROWTH**phase, 1 / first) for phase in range(len(options.steps)))
            schedule = tuple((n, rate * by) for n, by in zip(options.steps, grown, strict=True))
        settings = training_settings(options, self.seeds, schedule=schedule)
        return replace(settings, trainer="normalised") if self.of_margins else settings


def run_diagonal(setup: Setup) -> Run[DiagonalSetup]:
    """Predict a diagonal network from its start, train it, and compare them.

    Raises
    ------
    ValueError, FileNotFoundError
        If an option is out of range or the data are not there, before any long work.
    """
    dataset = cast(Dataset, setup.user_data.dataset or load_chosen(setup.options))
    # The weights u and v that the network begins with, in its precision.
    scale, dtype = setup.options.init_scale, setup.options.dtype
    u, v = (
        (scale * weights).astype(dtype).astype(np.float64)
        for weights in balanced_diagonal(dataset.X_train.shape[1])
    )
    whole = DiagonalSetup(**setup.shared, dataset=dataset, start=(u, v))
    heading = setup.heading(
        data_record(dataset),
        title="a diagonal network beside the limit of its start, from kernel to rich",
        choices=f"start of scale {scale:g}",
        **statement("diagonal-logistic" if whole.of_margins else "diagonal"),
    )
    return Run(setup=whole, heading=heading, stages=STAGES, checks=lambda: whole.settings)


def _curvature(X: Floats, limit: DiagonalLimit, scale: float, of_margins: bool) -> float:
    """Return the largest curvature at the start and at the limit, of the mean loss or log(loss).

    That of the mean loss is of `X diag(u^2 + v^2) X^T / n`, and `(u^2 + v^2)^2 = c^2 + 4 (u v)^2`;
    that of log(loss) is of the margins' slopes.
    """
    c = 2 * scale**2
    sizes = (np.full(X.shape[1], c), np.sqrt(c**2 + 4 * limit.zeta**2))
    if of_margins:
        return max(float((X**2 @ size).max()) for size in sizes)
    return max(float(np.linalg.norm(X * np.sqrt(size), 2)) ** 2 / len(X) for size in sizes)


def _predict(setup: DiagonalSetup, found: Found) -> Iterator[Finding]:
    """Find the limit; that of margins follows from the network's own, where one is trained."""
    setup.progress.stage(f"solving for the {NAME} on {len(setup.targets)} samples")
    if not (setup.of_margins and _goes_on(setup, found)):
        yield limit_finding(setup.limit, setup.misfit)


def _goes_on(setup: DiagonalSetup, found: Found) -> bool:
    return setup.trains and setup.limit.status is not Status.NOT_SEPARABLE


def _state(setup: DiagonalSetup) -> Iterator[StatedProgram]:
    X, targets = setup.dataset.X_train, setup.targets
    setup.progress.stage(f"stating the {NAME} on {len(targets)} samples")
    problem = LeastPotential().literal(X, targets, *setup.start, margin=setup.goal)
    yield stated(NAME, problem, "coefficients are p - q")


STAGES: tuple[Stage[DiagonalSetup], ...] = (
    Stage(finds=_predict, states=_state),
    Stage(finds=later(f"{__package__}.beside_limit:train"), trains=True, when=_goes_on),
)


def limit_finding(limit: DiagonalLimit, misfit: float) -> Finding:
    """Return the finding of the limit."""
    separates = {Status.SOLVED: True, Status.NOT_SEPARABLE: False}.get(limit.status)
    assumption = (
        SEPARATES.found(holds=separates)
        if limit.margin is not None
        else INTERPOLATES.found(misfit=misfit, holds=misfit <= limit.tol)
    )
    return Finding("limit", {"limit": limit}, NAME, assumptions=(assumption,))
