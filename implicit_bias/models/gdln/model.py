"""Gated linear networks under squared loss in the table of models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ...options.fields import ScheduleOptions, UnitOptions, option
from ...quantities.assumptions import Premise
from ...quantities.atlas import statement
from ...quantities.premises import FLOW, FULL_BATCHES, GATES, SQUARED
from ...runs.model import Holds, Model


@dataclass(frozen=True, kw_only=True)
class GDLNOptions(ScheduleOptions, UnitOptions):
    """Targets on a ring, averaged units, gradient descent on the squared loss."""

    data: Literal["ring", "pulse"] = option(
        "ring", "Two length scales on a ring: of a nonlinear Gaussian process or of pulses."
    )
    length_scales: tuple[float, ...] | None = option(
        None,
        "Length scales XI_1,XI_0 of the classes y = 1 and y = 0.",
        example="5,1",
        unset="5,1 on the ring, 10,5 for pulses",
    )
    n_train: int | None = option(None, "Training samples.", least=2, unset="8000")
    learning_rate: tuple[float, ...] | None = option(
        None,
        "Learning rate of each phase, stable below 2 K^2 / lambda_max(A), or auto: nine tenths of "
        "2 K / lambda_max(X^T X / n), below which it is stable whatever gates are open.",
        above=0,
        example="2,3 (or auto)",
        words={"auto": ()},
    )
    init_scale: float = option(0.01, "Size of the initial weights.")
    tol: float = option(1e-8, "Largest residual of the least-squares limit.")


STAY = Premise(
    name="gates of the ReLU network stay",
    text="of the ReLU network beside it: its gates stay as they began",
    said="the gates of the ReLU network stay as they began: {flips:.1%} of them changed",
    how="{flips:.1%} changed",
    holds=lambda flips: flips == 0,
    known="measured",
)
MODELS = (
    Model(
        "gdln",
        **statement("gdln"),
        assumes=(GATES, SQUARED, FLOW, FULL_BATCHES, STAY),
        options=GDLNOptions,
        run=f"{__package__}.run:run_gdln",
        refuses={"gating": "its gates are those that its ReLU network begins with"},
        defaults={
            "hidden_units": 8,
            "batch_size": 0,
            "steps": (2750,),
            "learning_rate": (),
        },
        provable=False,
        holds=Holds(
            limit="models.gdln.formulation:GatedOLS",
            network="Mapping[str] torch.nn:Module",
            trajectory="Mapping[str] training.trajectory:Trajectory",
            comparison="models.gdln.comparison:GDLNComparison",
        ),
    ),
)
