"""Diagonal linear networks on the squared loss in the table of models."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ...options.fields import ImageOptions, ScheduleOptions, option
from ...quantities.assumptions import Premise
from ...quantities.atlas import statement
from ...quantities.premises import FULL_BATCHES, SEPARABLE, SQUARED
from ...runs.model import Holds, Model


@dataclass(frozen=True, kw_only=True)
class DiagonalOptions(ScheduleOptions, ImageOptions):
    """Features, the scale of the start, and steps on the squared loss."""

    learning_rate: tuple[float, ...] | None = option(
        None,
        "Learning rate of each phase.",
        above=0,
        example="0.04,0.01 (or auto)",
        words={"auto": ()},
        unset="0.1 over the largest curvature at the start and at the limit, up to 10 times that "
        "in later phases",
    )
    loss: str = option(
        "squared",
        "squared: the limit interpolates. logistic: steps along the gradient of log(loss), beside "
        "the least potential of the network's own smallest margin.",
        choices=("squared", "logistic"),
    )
    init_scale: float = option(
        0.1, "Scale of the start u = sqrt(2) scale, v = 0: small is rich, large is kernel.", above=0
    )
    tol: float = option(1e-8, "Relative gap and misfit to reach.", above=0)


OF_MARGINS = {"loss": ("logistic",)}
SEPARATES = replace(SEPARABLE, said="the features separate the labels", where=OF_MARGINS)
LARGE = Premise(
    name="large weights and margins",
    text="the start and log(1/loss) become large together; at finite values the ratio of "
    "potentials says how near a network is",
    known="cannot be checked",
    where=OF_MARGINS,
)
FLOW = Premise(
    name="gradient flow",
    text="steps are small enough to follow gradient flow: the start that they amount to is "
    "measured, whatever their size",
    said="steps follow gradient flow: the start that they amount to has a scale of "
    "{reached:.4g} beside {scale:.4g}",
    how="measured: {moved:.2g} off",
    known="measured",
)
INTERPOLATES = Premise(
    name="interpolation",
    text="features interpolate the targets; else the limit is that of their best fit",
    said="features interpolate the targets, else the limit is that of their best fit: what is "
    "left of them is {misfit:.2g}",
    known="measured",
    unless=OF_MARGINS,
)
MODELS = (
    Model(
        "diagonal",
        **statement("diagonal"),
        assumes=(
            replace(SQUARED, unless=OF_MARGINS),
            FLOW,
            FULL_BATCHES,
            INTERPOLATES,
            SEPARATES,
            LARGE,
        ),
        options=DiagonalOptions,
        run=f"{__package__}.run:run_diagonal",
        refuses={"gating": "its features have no gates; gates may be its features"},
        defaults={
            "n_train": 20,
            "batch_size": 0,
            "steps": (4000, 6000, 10000),
            "learning_rate": (),
        },
        provable=False,
        holds=Holds(
            limit="limits.finite.diagonal:DiagonalLimit",
            network="networks.diagonal_linear:DiagonalLinear",
            comparison="models.diagonal.comparison:DiagonalComparison",
        ),
    ),
)
