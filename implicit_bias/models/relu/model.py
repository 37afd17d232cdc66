"""ReLU networks in the table of models: with frozen gates, and with gates that learn."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ...options.fields import (
    DECAYED,
    ONE_TRAINER,
    TWO_TRAINERS,
    ClassOptions,
    DecayOptions,
    GateOptions,
    ImageOptions,
    SlopeOptions,
    SolverOptions,
    StartOptions,
    TrainerOptions,
    option,
)
from ...quantities.assumptions import Premise
from ...quantities.atlas import statement
from ...quantities.premises import LOSS_TO_0, ONE_LAYER, PROPOSITION_B8, SEPARATES
from ...runs.model import Holds, Model


@dataclass(frozen=True, kw_only=True)
class FReLUOptions(
    DecayOptions, StartOptions, SolverOptions, SlopeOptions, GateOptions, ClassOptions
):
    """A network of units behind hyperplanes, data, a solver and a trainer."""


@dataclass(frozen=True, kw_only=True)
class ReLUOptions(
    TrainerOptions, StartOptions, SolverOptions, SlopeOptions, GateOptions, ImageOptions
):
    """A network whose gates learn, and machines on gates that do not."""

    depth: int = option(2, "Layers; 2 is one hidden layer.", least=1)
    freeze_at: int | None = option(
        None,
        "Step at which a copy of the network freezes its gates and goes on without changing them.",
        least=0,
        unset="half of the steps; none with several hidden layers",
    )
    frozen_trainer: str = option(
        "annealed",
        "Gradient method of that copy once its gates are frozen; same: it goes on as it began.",
        choices=("annealed", "momentum", "normalised", "same"),
    )
    beside: str = option(
        "all",
        "What the network stands beside; machines: neither its local optimum nor its copy with "
        "frozen gates is computed, which take most of a run.",
        choices=("all", "machines"),
    )
    starts: int = option(
        1, "Networks, each from weights of its own: which came to the same one.", least=1
    )


# The published schedule, which is far from the local optimum after as many steps.
CONSTANT = {"trainer": "constant", "momentum": 0.9, "steps": (1600, 1600)}
WITH_COPY = {"beside": ("all",)}
GATES_STAY = Premise(
    name="gates stay",
    text="gates no longer change: no theorem says that they ever stay",
    said="the gates no longer change: {flips:.1%} of them changed since the start, and nothing "
    "says that the rest will stay",
    holds=lambda flips: None,
    known="cannot be checked",
)
OPTIMAL = Premise(
    name="optimal in its cones",
    text="no network whose units turn by less than a stated angle has a lower value than the "
    "local limit",
    said="no network whose units turn by less than {turn:.3g} degrees has a lower value than the "
    "local limit (gap {gap:.1g}){why}",
    known="proved",
    where={"depth": (2,), "beside": ("all",)},
)
SHALLOW = replace(
    ONE_LAYER,
    text="there is one hidden layer: no convex program predicts a deeper network, its gates "
    "frozen or not",
    said="the network has one hidden layer: it has {n_hidden}, and SVM-LC and gates-only see the "
    "gates of all of them. No convex program predicts a deeper network with frozen gates; "
    "`--freeze-at` sets a copy that freezes them beside a bound and its local limit",
    how=None,
    holds=lambda n_hidden: n_hidden == 1,
    unless={"depth": (2,)},
)
COPY_SEPARABLE = Premise(
    name="separable in frozen gates",
    text="of the copy that froze its gates: the data are separable in these",
    said="the data are separable in {gates} (certified)",
    known="proved",
    where=WITH_COPY,
)
COPY_LOSS = replace(
    LOSS_TO_0,
    text="of the copy that froze its gates: its loss tends to 0",
    said="the loss of the copy that froze them tends to 0{end}",
    where=WITH_COPY,
)
LEARNED = (GATES_STAY, SEPARATES, OPTIMAL, SHALLOW, COPY_SEPARABLE, COPY_LOSS)
MODELS = (
    Model(
        "frelu",
        **statement("frelu"),
        assumes=PROPOSITION_B8,
        options=FReLUOptions,
        parts=f"{__package__}.parts:frelu",
        defaults={"init": "kaiming", **TWO_TRAINERS},
        variants={
            **ONE_TRAINER,
            ("classes", "joint"): {"n_train": 60, "hidden_units": 4, "trainer": "annealed"},
            ("data", "quadrants"): {"hidden_units": 2, "cutoffs": "axes"},
            **DECAYED,
        },
        holds=Holds(limit="limits.exact.frelu:FReLULimit", network="networks.gated.frelu:FReLU"),
        joint="networks.copied:CopiedUnits",
    ),
    Model(
        "relu",
        **statement("relu"),
        assumes=LEARNED,
        options=ReLUOptions,
        run=f"{__package__}.run:run_relu",
        refuses={
            "gating": "its gates are learned; take frelu for gates that are given",
            "trainers": "its machines freeze what one network has learned",
        },
        defaults={
            "hidden_units": 20,
            "n_train": 200,
            "init": "kaiming",
            "trainer": "smoothed",
            "steps": (2000,),
        },
        variants={("trainer", "constant"): CONSTANT},
        provable=False,
        holds=Holds(
            limit="Mapping[str] limits.limit:Limit",
            network="networks.relu:DeepReLU",
            comparison="models.relu.comparison:ReLUComparison",
        ),
    ),
)
