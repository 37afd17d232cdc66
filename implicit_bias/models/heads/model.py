"""Heads at several exits of a frozen trunk in the table of models."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from ..._support.words import ClassesName
from ...options.fields import ImageOptions, ScheduleOptions, UnitOptions, option
from ...quantities.assumptions import Premise
from ...quantities.atlas import statement
from ...quantities.premises import FULL_BATCHES, METHOD, SEPARABLE
from ...runs.model import Holds, Model


@dataclass(frozen=True, kw_only=True)
class HeadsOptions(ScheduleOptions, UnitOptions, ImageOptions):
    """A trunk, where its exits are, what their heads learn from, and how they descend."""

    classes: ClassesName = option(
        "all", "Two, such as 0-4 against 5-9, or all of them, by one softmax."
    )
    hidden_units: int = option(32, "Units of each layer of the trunk.", least=1)
    depth: int = option(3, "Layers of the trunk.", least=1)
    exits: tuple[int, ...] | None = option(
        None,
        "Layers with an exit, counted from 1.",
        least=1,
        example="1,3",
        unset="every layer",
    )
    trunk: Literal["trained", "random"] = option(
        "trained", "Trained under a head at its last layer, which teaches; or as it was drawn."
    )
    trunk_steps: int = option(
        200, "Steps of Adam of the head that teaches, and of a trained trunk below it.", least=1
    )
    n_labelled: int | None = option(
        None,
        "Training samples with a label: of the others the teacher alone speaks.",
        least=1,
        unset="all",
    )
    share: float = option(
        0.5, "Weight of hard labels: 0 for the teacher's soft labels alone, 1 for hard ones alone."
    )
    temperature: float | None = option(
        None, "Temperature of teacher and student where there are soft labels.", unset="3"
    )
    trainer: str = option(
        "newton",
        "Method; momentum and normalised work with log(loss), for hard labels alone, and newton "
        "goes to the minimiser of soft ones.",
        choices=("constant", "momentum", "newton", "normalised"),
    )
    momentum: float = option(0.0, "Heavy-ball momentum of the trainers constant and normalised.")
    tol: float = option(
        1e-6, "Largest proved error of a minimiser's weights, largest gap of a direction."
    )


HARD = {"share": (1, 1.0)}
HARD_SEPARABLE = replace(
    SEPARABLE,
    text="hard labels are separable by the features of every exit",
    said="{text} (certified)",
    where=HARD,
)
INSIDE = Premise(
    name="soft labels inside the simplex",
    text="soft labels lie inside the simplex in this precision",
    said="soft labels lie inside the simplex: tempered logits of a sample part by {spread:.3g} at "
    "most, and round to 0 and 1 from {cut} on",
    how="",
    holds=lambda spread, cut: spread < cut,
    known="measured",
    unless=HARD,
)
UNIQUE = Premise(
    name="unique minimisers",
    text="minimisers are unique on the span of the features",
    said="minimisers are unique on the span: lowest curvature {lowest:.2e}",
    holds=lambda lowest: lowest > 0,
    known="proved",
    unless=HARD,
)
ASSUMED = (
    Premise(
        name="frozen trunk",
        text="the trunk is frozen, and heads begin at 0",
        known="by construction",
    ),
    FULL_BATCHES,
    HARD_SEPARABLE,
    replace(METHOD, where=HARD),
    INSIDE,
    UNIQUE,
)
MODELS = (
    Model(
        "heads",
        **statement("heads"),
        assumes=ASSUMED,
        options=HeadsOptions,
        run=f"{__package__}.run:run_heads",
        refuses={
            "gating": "heads have no gates of their own, their trunk is trained or drawn here"
        },
        # Rates of constant steps: 1 over a bound of every head's curvature.
        defaults={
            "batch_size": 0,
            "steps": (30,),
            "learning_rate": (),
        },
        # Hard labels alone: 2000 constant steps come to margin ratios of 0.5 to 0.7, these to 0.97.
        variants={
            ("share", 1.0): {"trainer": "momentum", "steps": (2000,), "momentum": 0.0},
            # Named again: what a trainer begins from elsewhere is not for it.
            ("trainer", "constant"): {"trainer": "constant", "steps": (2000,), "momentum": 0.98},
        },
        provable=False,
        holds=Holds(
            limit="Mapping[int] models.heads.limit:HeadLimit",
            network="networks.exits:ExitNetwork",
            trajectory="Mapping[int] training.trajectory:Trajectory",
            comparison="models.heads.comparison:HeadsComparison",
        ),
    ),
)
