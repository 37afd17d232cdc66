"""The setup of a run of gated linear networks, and what is said of its limit."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...quantities.premises import GATES
from ...quantities.said import Side, Table
from ...quantities.table import lines
from ...reports.finding import Finding
from ...runs.setup import Setup
from ...training.settings import TrainingSettings
from .data import RingData
from .formulation import GatedLeastSquares
from .limit import GatedOLS

__all__ = ["NAME", "GDLNSetup", "limit_finding"]

NAME = GatedLeastSquares.name


@dataclass(frozen=True, eq=False, kw_only=True)
class GDLNSetup(Setup):
    """The setup of a run, with its data and the start of both networks.

    Attributes
    ----------
    data : RingData
        The training samples.
    settings : TrainingSettings
        Plain steps on the squared loss.
    start : (K, D) array
        Initial weights of both networks.
    gates : (n, K) boolean array
        Gates of the ReLU network at these weights, which are the gates of its twin throughout.
    """

    data: RingData
    settings: TrainingSettings
    start: NDArray[np.float64]
    gates: NDArray[np.bool_]


def limit_finding(limit: GatedOLS, off_path: float | None = None) -> Finding:
    """Return the finding of the least-squares limit, and of how near training was to its path."""
    cells = {
        "limit": NAME,
        "stationarity": limit.certificate.stationarity,
        "optimal_loss": limit.loss,
        "n_units": len(limit.unit_norms),
        "limit_seconds": limit.seconds,
        "path_error": off_path,
    }
    rows = (
        ("status of the least-squares limit", limit.status.name),
        *lines(cells, "stationarity", "optimal_loss"),
        ("rank of the gated moments", f"{limit.rank} of {math.prod(limit.zeta.shape)}"),
        *lines(cells, "path_error"),
    )
    table = Table("gated linear network: prediction and training", ("", "value"), rows)
    record = limit.to_dict()
    return Finding.said(
        "limit",
        record={"limit": record} | ({} if off_path is None else {"path_error": off_path}),
        tables=(table,),
        files={"limit.safetensors": limit.save},
        assumptions=(
            GATES.found(said="the gates of the gated linear network are frozen", holds=True),
        ),
        statuses={NAME: limit.status},
        certificates={NAME: record},
        objects={"limit": limit},
        row=cells,
        sides=(
            Side(
                NAME,
                {"final_loss": limit.loss, "stationarity": limit.certificate.stationarity},
                predicted=True,
            ),
        ),
    )
