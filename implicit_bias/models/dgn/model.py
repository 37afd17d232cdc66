"""Deep gated networks in the table of models: a bound, local limits, and kernels."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from ..._support.words import InitName
from ...options.fields import (
    ImageOptions,
    SolverOptions,
    TrainerOptions,
    UnitOptions,
    option,
)
from ...quantities.assumptions import Premise
from ...quantities.atlas import statement
from ...quantities.premises import (
    FULL_BATCHES,
    GATES,
    HOMOGENEOUS,
    LOCAL_OPTIMUM,
    LOSS,
    LOSS_TO_0,
    METHOD,
    SEPARABLE,
)
from ...runs.model import Holds, Model


@dataclass(frozen=True, kw_only=True)
class DGNOptions(TrainerOptions, SolverOptions, UnitOptions, ImageOptions):
    """Gates of every layer, a regime, data, a solver and a trainer."""

    gating: Literal["random", "relu", "learned", "dlgn", "contexts"] = option(
        "relu",
        "Gates: random, drawn for each sample; of a ReLU network as it starts, or learned by it; "
        "dlgn, half-spaces by a deep linear network; contexts in place of gates (a deep GLN).",
    )
    regime: Literal["rich", "lazy"] = option(
        "rich",
        "rich: exponential-like loss, margins; lazy: squared loss at large output scales, the "
        "kernel of the start.",
    )
    depth: int = option(3, "Layers of weights L: L - 1 hidden layers, all gated.", least=1)
    hidden_units: int = option(10, "Units of each hidden layer.", least=1)
    contexts: int | None = option(
        None, "Contexts of a unit with --gating contexts, a power of two.", least=1, unset="2"
    )
    gate_rate: float | None = option(
        None, "Share of open gates of --gating random, in (0, 1].", unset="0.5"
    )
    starts: int | None = option(
        None, "Networks of --regime rich, each from weights of its own.", least=1, unset="4"
    )
    output_scales: tuple[float, ...] | None = option(
        None,
        "Output scales of --regime lazy, one network each.",
        example="100,1000,10000",
        unset="100,1000,10000",
    )
    init: InitName = option("kaiming", "Initial weights.")
    init_scale: float = option(1.0, "Factor on the initial weights.")


LAZY = {"regime": ("lazy",)}
RICH = {"regime": ("rich",)}
ATTAINED = Premise(
    name="bound attained",
    text="a network attains the bound: only then is it the least value of all",
    said="a network attains the bound, so that it is the least value of all (the bound is the "
    "limit only there)",
    known="proved",
    where=RICH,
)
FULL_RANK = Premise(
    name="kernel of full rank",
    text="the tangent kernel of the start has full rank",
    said="the tangent kernel has full rank",
    how="",
    known="measured",
    where=LAZY,
)
TO_INFINITY = Premise(
    name="alpha to infinity",
    text="the output scale alpha tends to infinity",
    said="alpha tends to infinity: see the exponents of the scales",
    known="cannot be checked",
    where=LAZY,
)
GATES_SEPARATE = Premise(
    name="gates' network separates",
    text="the network that learned the gates separates the training data",
    how="",
    known="measured",
    where={"gating": ("learned",)},
)
ASSUMED = (
    *(replace(one, where=RICH) for one in (SEPARABLE, HOMOGENEOUS, LOSS, LOSS_TO_0)),
    GATES,
    METHOD,
    FULL_BATCHES,
    ATTAINED,
    replace(LOCAL_OPTIMUM, where=RICH),
    FULL_RANK,
    TO_INFINITY,
    GATES_SEPARATE,
)
MODELS = (
    Model(
        "dgn",
        **statement("dgn"),
        assumes=ASSUMED,
        options=DGNOptions,
        run=f"{__package__}.run:run_dgn",
        defaults={"trainer": "annealed", "steps": (1000,), "n_train": 120},
        variants={
            ("regime", "lazy"): {"trainer": "normalised", "init": "gaussian", "hidden_units": 30},
            # With fewer, every gate of a layer is closed on some sample.
            ("gating", "random"): {"hidden_units": 14},
            ("gating", "contexts"): {"hidden_units": 5},
            # With fewer, training the network that sets the gates may close a layer for good.
            ("gating", "learned"): {"hidden_units": 14},
        },
        refuses={"trainers": "its networks differ in their starts"},
        provable=False,
        holds=Holds(
            limit="limits.exact.path_limit:PathLimit",
            network="networks.gated.dgn:GatedStack",
            comparison="measures.bounded_value:BoundedComparison",
        ),
        holds_with={
            ("regime", "lazy"): Holds(
                limit="limits.kernels.regression:KernelRegression",
                network="Mapping[str] networks.gated.dgn:GatedStack",
                trajectory="Mapping[str] training.trajectory:Trajectory",
                comparison="tuple models.dgn.lazy_comparison:ScaleComparison",
            )
        },
    ),
)
