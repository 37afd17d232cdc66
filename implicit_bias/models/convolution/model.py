"""Full-width linear convolutions in the table of models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..._support.words import ConvolutionInit
from ...options.fields import EVERY_CLASS, ClassOptions, SolverOptions, TrainerOptions, option
from ...quantities.atlas import statement
from ...quantities.premises import HOMOGENEOUS, MARGINS, OF_CONVOLUTIONS, SEPARABLE
from ...runs.model import Holds, Model


@dataclass(frozen=True, kw_only=True)
class ConvolutionOptions(TrainerOptions, SolverOptions, ClassOptions):
    """Layers, a group, data, a solver and a trainer that descends the gradient."""

    trainer: str = option(
        "annealed",
        "Gradient method: constant steps, or one that goes far along; several, each from the same "
        "weights, side by side.",
        choices=("annealed", "constant", "momentum", "normalised"),
        joined=True,
    )
    depth: int = option(2, "Layers L: L - 1 convolutions below a linear one.", least=2)
    group: tuple[int, ...] | None = option(
        None,
        "Sizes of circles whose product the inputs are, row after row.",
        least=1,
        example="8,8",
        unset="one circle of all inputs",
    )
    init: ConvolutionInit = option("kaiming", "Initial weights.")
    init_scale: float = option(1.0, "Factor on the initial weights.")


# Data that are drawn take no word on a constant column.
DRAWN: Mapping[tuple[str, str], Mapping[str, Any]] = {
    ("data", name): {"constant": None} for name in ("orthants", "quadrants", "circle")
}
HOLDS = Holds(
    limit="limits.convolution.frequencies:ConvolutionLimit",
    network="networks.structured.convolution:LinearConvolution",
)
MODELS = (
    Model(
        "convolution",
        **statement("convolution"),
        assumes=(SEPARABLE, HOMOGENEOUS, *OF_CONVOLUTIONS, MARGINS),
        options=ConvolutionOptions,
        run=f"{__package__}.run:run_convolution",
        parts=f"{__package__}.parts:convolution",
        refuses={"gating": "a linear convolution has no gates"},
        # A constant column has no place on a circle.
        defaults={"n_train": 60, "trainer": "annealed", "constant": False},
        variants={**EVERY_CLASS, **DRAWN},
        holds=HOLDS,
    ),
)
