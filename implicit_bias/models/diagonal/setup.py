"""The setup of a run of diagonal networks, and what is said of its limit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..._solve import Status
from ...data.arrays import Floats
from ...data.dataset import Dataset
from ...data.sample import Sample
from ...finite_limits.diagonal import DiagonalLimit
from ...finite_limits.program import LeastPotential
from ...quantities.said import Side, Table
from ...quantities.table import lines
from ...reports.finding import Finding
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
    limit, proof = setup.limit, setup.limit.certificate
    record = limit.to_dict()
    cells = {
        "limit": NAME,
        "objective": limit.objective,
        "lower_bound": proof.dual_objective,
        "gap": limit.gap,
        "n_units": len(limit.zeta),
        "iterations": limit.iterations,
        "limit_seconds": limit.seconds,
    }
    norms = {
        "l1_limit": float(np.abs(limit.zeta).sum()),
        "l2_limit": float(np.linalg.norm(limit.zeta)),
    }
    rows = (
        ("status", limit.status.name),
        ("least potential", f"{limit.objective:.10g}"),
        *lines(cells | norms, "lower_bound", "gap"),
        *((("margin", f"{limit.margin:.6g}"),) if limit.margin is not None else ()),
        ("misfit", f"{proof.misfit:.2e}"),
        ("every coefficient within", f"{proof.distance:.2e}"),
        *lines(cells | norms, "l1_limit", "l2_limit", "n_units", "iterations", "limit_seconds"),
    )
    fits = setup.misfit <= limit.tol
    separates = {Status.SOLVED: True, Status.NOT_SEPARABLE: False}.get(limit.status)
    assumption = (
        SEPARATES.found(holds=separates)
        if limit.margin is not None
        else INTERPOLATES.found(misfit=setup.misfit, holds=fits)
    )
    return Finding.said(
        "limit",
        record={"limit": record},
        tables=(Table("prediction", ("", NAME), rows),),
        assumptions=(assumption,),
        files={"limit.safetensors": limit.save},
        statuses={NAME: limit.status},
        certificates={NAME: record},
        row=cells | norms,
        sides=(
            Side(
                NAME,
                {"status": limit.status.name, "lower_bound": proof.dual_objective,
                 "gap": limit.gap, "l1_norm": norms["l1_limit"], "l2_norm": norms["l2_limit"]},
                predicted=True,
            ),
        ),
        objects={"limit": limit},
        verdicts=(),
    )  # fmt: skip
