"""ReLU networks whose outer layer is fixed, in the table of models."""

from __future__ import annotations

from dataclasses import dataclass

from ..._support.words import PlainInit
from ...options.fields import ImageOptions, SlopeOptions, TrainerOptions, UnitOptions, option
from ...quantities.assumptions import Premise
from ...quantities.atlas import statement
from ...quantities.premises import FULL_BATCHES, HOMOGENEOUS, LOSS, LOSS_TO_0, METHOD, SEPARATES
from ...runs.model import Holds, Model


@dataclass(frozen=True, kw_only=True)
class FixedOuterOptions(TrainerOptions, SlopeOptions, UnitOptions, ImageOptions):
    """A network whose inner layer is trained, data and a trainer that descends the gradient."""

    trainer: str = option(
        "annealed",
        "Gradient method: constant steps, or one that goes far along.",
        choices=("annealed", "constant", "momentum", "normalised"),
    )
    init: PlainInit = option("kaiming", "Initial weights.")
    init_scale: float = option(0.01, "Factor on the initial weights.")
    tol: float = option(1e-7, "Relative gap to reach.", above=0, below=1)


NEARLY = Premise(
    name="nearly orthogonal",
    text="the inputs are nearly orthogonal: the shortest squared norm exceeds slope^-3 (R^2 + 2 "
    "slope) n times the largest product, R^2 the longest over the shortest; on others no theorem "
    "names the limit",
    said="the inputs are nearly orthogonal ({message})",
    known="proved",
)
MODELS = (
    Model(
        "fixed-outer",
        **statement("fixed-outer"),
        assumes=(NEARLY, HOMOGENEOUS, SEPARATES, LOSS, METHOD, FULL_BATCHES, LOSS_TO_0),
        options=FixedOuterOptions,
        run=f"{__package__}.run:run_fixed_outer",
        refuses={
            "gating": "its units gate themselves; take frelu for gates that are given",
            "trainers": "its tables are about the neurons of one network",
        },
        defaults={"data": "near-orthogonal", "slope": 0.5, "hidden_units": 20},
        provable=False,
        holds=Holds(
            limit="limits.relu.fixed_outer:FixedOuterLimit",
            network="networks.structured.fixed_outer:FixedOuterReLU",
            comparison="models.fixed_outer.comparison:FixedOuterComparison",
        ),
    ),
)
