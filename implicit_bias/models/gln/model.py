"""Gated linear networks in the table of models: the deep one, the plain norm, the shallow one."""

from __future__ import annotations

from dataclasses import dataclass

from ..._support.words import PlainInit
from ...options.fields import (
    DECAYED,
    EVERY_CLASS,
    ONE_TRAINER,
    PLANE,
    TWO_TRAINERS,
    ClassOptions,
    ContextOptions,
    DecayOptions,
    SolverOptions,
    StartOptions,
    TrainerOptions,
    option,
)
from ...quantities.atlas import statement
from ...quantities.premises import (
    FULL_BATCHES,
    GATES,
    LINEAR_METHODS,
    LOSS,
    PROPOSITION_B8,
    SEPARABLE,
    STEEPEST,
)
from ...runs.model import Holds, Model


@dataclass(frozen=True, kw_only=True)
class GLNOptions(TrainerOptions, StartOptions, SolverOptions, ContextOptions, ClassOptions):
    """A network of units with contexts, data, a solver and a trainer."""


@dataclass(frozen=True, kw_only=True)
class DeepGLNOptions(DecayOptions, GLNOptions):
    """The same, with weight decay."""


@dataclass(frozen=True, kw_only=True)
class ShallowGLNOptions(GLNOptions):
    """The same, but for a start that needs a second layer."""

    init: PlainInit = option("orthogonal", "Initial weights.")


MODELS = (
    Model(
        "gln",
        **statement("gln"),
        assumes=PROPOSITION_B8,
        options=DeepGLNOptions,
        parts=f"{__package__}.parts:gln",
        defaults=TWO_TRAINERS,
        variants={
            **ONE_TRAINER,
            ("classes", "joint"): {"n_train": 60, "hidden_units": 4, "trainer": "annealed"},
            **PLANE,
            **DECAYED,
        },
        holds=Holds(limit="models.gln.formulation:GLNLimit", network="networks.gated.gln:GLN"),
        joint="networks.copied:CopiedUnits",
    ),
    Model(
        "gln-l2",
        **statement("gln-l2"),
        assumes=(SEPARABLE, GATES),
        options=GLNOptions,
        parts=f"{__package__}.parts:gln_l2",
        defaults={"trainer": "annealed"},
        variants={**EVERY_CLASS, **PLANE},
        holds=Holds(limit="models.gln.l2:GLNL2Limit", network="networks.gated.gln:GLN"),
    ),
    Model(
        "shallow-gln",
        **statement("shallow-gln"),
        assumes=(SEPARABLE, GATES, LOSS, LINEAR_METHODS, STEEPEST, FULL_BATCHES),
        options=ShallowGLNOptions,
        parts=f"{__package__}.parts:shallow_gln",
        defaults={"hidden_units": 2, "n_train": 300, "trainer": "dual"},
        variants={**EVERY_CLASS, ("classes", "joint"): {"n_train": 100}, **PLANE},
        holds=Holds(
            limit="models.gln.shallow:ShallowGLNLimit",
            network="networks.gated.shallow_gln:ShallowGLN",
        ),
        joint="networks.gated.shallow_gln:ShallowGLN",
    ),
)
