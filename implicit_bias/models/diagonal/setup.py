"""The setup of a run of diagonal networks, and what is said of its limit."""

from __future__ import annotations

from dataclasses import dataclass

from ..._support.solve import Status
from ...data.arrays import Floats
from ...data.dataset import Dataset
from ...data.sample import Sample
from ...limits.finite.diagonal import DiagonalLimit
from ...limits.finite.program import LeastPotential
from ...runs.reports.finding import Finding
from ...runs.setup import Setup
from ...training.settings import TrainingSettings
from .model import INTERPOLATES, SEPARATES

__all__ = ["NAME", "DiagonalSetup", "of_margins", "solved"]

NAME = LeastPotential.name


@dataclass(frozen=True, eq=False, kw_only=True)
class DiagonalSetup(Setup):
    """The setup of a run, with its data, network, limit and rates.

    Attributes
    ----------
    dataset : Dataset
    start : pair of (m,) arrays
        Weights u and v that the network begins with.
    limit : DiagonalLimit
        From this start, of the targets' part in the range of the features; on the logistic loss
        of a margin.
    misfit : float
        The part of the targets that no coefficients fit, relative.
    settings : TrainingSettings
    """

    dataset: Dataset
    start: tuple[Floats, Floats]
    limit: DiagonalLimit
    misfit: float
    settings: TrainingSettings

    @property
    def train(self) -> Sample:
        """The training part of the data."""
        return Sample(self.dataset.X_train, self.dataset.y_train, None)

    @property
    def held_out(self) -> Sample:
        """The held-out part of the data."""
        return Sample(self.dataset.X_val, self.dataset.y_val, None)


def of_margins(setup: Setup) -> bool:
    """Return whether the network is trained on the loss of margins."""
    return bool(setup.options.loss == "logistic")


def solved(setup: DiagonalSetup) -> Finding:
    """Return the finding of the limit."""
    limit = setup.limit
    fits = setup.misfit <= limit.tol
    separates = {Status.SOLVED: True, Status.NOT_SEPARABLE: False}.get(limit.status)
    assumption = (
        SEPARATES.found(holds=separates)
        if limit.margin is not None
        else INTERPOLATES.found(misfit=setup.misfit, holds=fits)
    )
    return Finding.said(
        "limit",
        record={"limit": limit.to_dict()},
        tables=limit.tables(NAME),
        assumptions=(assumption,),
        files=limit.files("limit"),
        statuses=limit.statuses(NAME),
        certificates=limit.proofs(NAME),
        row={"limit": NAME, **limit.cells()},
        sides=limit.sides(NAME),
        objects={"limit": limit},
        verdicts=(),
    )
