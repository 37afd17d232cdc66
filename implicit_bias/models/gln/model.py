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
from ...quantities.papers import LIPPL, LIPPL_B8
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
        theorem=f"directional limit of a two-layer GLN is SVM-GLN ({LIPPL}, proposition B.8)",
        source=LIPPL_B8,
        program="min sum_h ||zeta_h||_F  s.t.  y_n sum_h <zeta_h,c_h(n), x_n> >= 1",
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
        theorem="control experiment, the limit of no network here: SVM-L2 has the GLN's predictors "
        f"but the plain norm ({LIPPL}, equations 23-25, corrected)",
        source="none names SVM-L2; it is a control (Lippl, Abbott and Chung 2022, equations 23-25)",
        program="min ||beta||_2  s.t.  y_n <beta_c(n), x_n> >= 1,  beta_c = sum_h zeta_h,c_h",
        assumes=(SEPARABLE, GATES),
        options=GLNOptions,
        parts=f"{__package__}.parts:gln_l2",
        defaults={"trainer": "annealed"},
        variants={**EVERY_CLASS, **PLANE},
        holds=Holds(limit="models.gln.l2:GLNL2Limit", network="networks.gated.gln:GLN"),
    ),
    Model(
        "shallow-gln",
        theorem="directional limit of a shallow GLN is one hard-margin SVM per global context, "
        f"weighed by their norms ({LIPPL}, theorem 3.1)",
        source="Lippl, Abbott and Chung 2022, theorem 3.1",
        program="min sum_g ||beta_g||^2  s.t.  y_n <beta_g(n), x_n> >= 1",
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
