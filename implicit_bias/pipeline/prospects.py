"""Where a run was going when it ended, and how fast."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..measures.extrapolation import SeriesStatus, extrapolate, inverse_log_loss
from ..measures.rates import measure_rates
from ..training.trajectory import Trajectory
from .report import Table

__all__ = ["prospects"]


def prospects(
    trajectory: Trajectory, *, degree: int, trainer: str, control: bool
) -> tuple[tuple[Table, ...], dict[str, Any]]:
    """Tables and results: margin ratio extrapolated to zero loss, exponents beside proved ones.

    Parameters
    ----------
    trajectory : Trajectory
        With `margin_ratio` and `zeta_cosine` observed along it.
    degree : int
        Degree of homogeneity of the network.
    trainer : str
        Name of the trainer.
    control : bool
        Whether the limit is another network's, so that no distance from it tends to 0.
    """
    ratio = trajectory.observed["margin_ratio"]
    u = inverse_log_loss(trajectory.log_loss)
    limit = extrapolate(u, ratio)
    distances = {}
    if not control:
        cosines = np.clip(trajectory.observed["zeta_cosine"], -1, 1)
        distances = {"1 - margin ratio": 1 - ratio, "angle of zeta": np.arccos(cosines)}
    rates = measure_rates(
        trajectory.step,
        trajectory.log_loss,
        distances,
        weight_norm=trajectory.weight_norm,
        degree=degree,
        trainer=trainer,
    )
    estimate = f"none: {limit.status.advice}"
    if limit.status is SeriesStatus.ESTIMATED:
        estimate = f"{limit.value:.4f} +- {limit.error:.2g}"
    reached = f"{ratio[-1]:.4f}" if math.isfinite(ratio[-1]) else "-"
    rows = (
        ("margin ratio reached", reached),
        ("extrapolated to zero loss", estimate),
        ("proved of the limit, by the certificate", "at most 1"),
    )
    tables = (
        Table("where the margin ratio is going", ("", "value"), rows),
        Table(
            "exponents over the last half of the checkpoints",
            ("", "measured", "known", "of what"),
            tuple(
                rate.row()
                for rate in rates
                if rate.status is SeriesStatus.ESTIMATED
                and (rate.variable != "log t" or trainer == "constant")
            ),
        ),
    )
    results = {"extrapolation": limit.to_dict(), "rates": [rate.to_dict() for rate in rates]}
    return tables if tables[1].rows else tables[:1], results
