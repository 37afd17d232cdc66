"""Linear networks in the table of models."""

from __future__ import annotations

from dataclasses import dataclass

from ...options.fields import (
    DECAYED,
    EVERY_CLASS,
    ClassOptions,
    DecayOptions,
    SolverOptions,
    StartOptions,
    UnitOptions,
    option,
)
from ...quantities.atlas import statement
from ...quantities.premises import (
    FULL_BATCHES,
    HOMOGENEOUS,
    LINEAR_METHODS,
    LOSS,
    METHOD,
    SEPARABLE,
    SPAN,
    START,
    STEEPEST,
)
from ...runs.model import Holds, Model


@dataclass(frozen=True, kw_only=True)
class LinearOptions(DecayOptions, StartOptions, SolverOptions, ClassOptions):
    """Data, a solver and a trainer."""


@dataclass(frozen=True, kw_only=True)
class DeepLinearOptions(UnitOptions, LinearOptions):
    """Linear layers of one width."""

    depth: int = option(3, "Linear layers.", least=1)


UNGATED = {"gating": "a linear network has no gates; take gln or frelu for gates that are given"}
MODELS = (
    Model(
        "deep-linear",
        **statement("deep-linear"),
        assumes=(SEPARABLE, HOMOGENEOUS, LOSS, METHOD, STEEPEST, FULL_BATCHES, START, SPAN),
        options=DeepLinearOptions,
        parts=f"{__package__}.parts:deep_linear",
        refuses=UNGATED,
        defaults={"n_train": 60, "trainer": "annealed"},
        variants={**EVERY_CLASS, ("classes", "joint"): {"depth": 2}, **DECAYED},
        holds=Holds(
            limit="limits.exact.linear:LinearLimit", network="networks.deep_linear:DeepLinear"
        ),
        joint="networks.deep_linear:DeepLinear",
    ),
    Model(
        "linear",
        **statement("linear"),
        assumes=(SEPARABLE, LOSS, LINEAR_METHODS, STEEPEST, FULL_BATCHES),
        options=LinearOptions,
        parts=f"{__package__}.parts:linear",
        refuses=UNGATED,
        defaults={"n_train": 60, "trainer": "dual"},
        variants={**EVERY_CLASS, **DECAYED},
        holds=Holds(
            limit="limits.exact.linear:LinearLimit", network="networks.deep_linear:DeepLinear"
        ),
        joint="networks.deep_linear:DeepLinear",
    ),
)
