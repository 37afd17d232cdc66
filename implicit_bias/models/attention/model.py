"""One layer of softmax attention in the table of models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ..._support.words import LossName
from ...options.fields import ScheduleOptions, option
from ...quantities.assumptions import Premise
from ...quantities.atlas import statement
from ...quantities.premises import (
    ATTENTION_START,
    FALLING,
    FEASIBLE,
    FULL_BATCHES,
    HEAD,
    KEY_QUERY,
    LOCAL,
    PATH,
)
from ...runs.model import Holds, Model
from ...training.catalogue import TRAINERS

LOSS: LossName = "attention"
DRAWN = ("planted", "equal")


@dataclass(frozen=True, kw_only=True)
class AttentionOptions(ScheduleOptions):
    """Sequences of tokens, the parameters of attention, and steps on its loss."""

    data: str = option(
        "planted",
        "planted: drawn tokens and queries, of which a planted matrix asks for the best; equal: "
        "so, and all others have one score. Or a FILE of your own: .npz with X (n, T, d), queries "
        "(n, q) or else the last tokens, and scores (n, T) of all tokens or y, labels (n,).",
        choices=DRAWN,
        files=True,
    )
    n_train: int | None = option(None, "Sequences.", least=1, unset="60")
    tokens: int | None = option(None, "Tokens T of a drawn sequence.", least=2, unset="8")
    inputs: int | None = option(None, "Inputs d of drawn tokens and queries.", least=1, unset="12")
    parameters: Literal["combined", "key-query"] = option(
        "combined", "What is trained: W as one matrix, or K and Q of W = K Q'."
    )
    width: int | None = option(None, "Columns of K and Q.", least=1, unset="as many as inputs")
    init_scale: float = option(0.01, "Standard deviation of the initial weights.", above=0)
    trainer: str = option(
        "normalised",
        "Gradient method: normalised steps, those of another norm, or constant ones, which end "
        "where softmax is 1 in floats.",
        choices=tuple(sorted(name for name, one in TRAINERS.items() if LOSS in one.losses)),
    )
    tol: float = option(1e-6, "Relative duality gap to reach.", above=0, below=1)


METHOD = Premise(
    name="gradient descent",
    text="steps are those of gradient descent on W: of other norms the program is that of the same "
    "argument, and what training does is observed, not proved",
    known="cannot be checked",
    needs={"trainer": ("constant", "normalised")},
)
MODELS = (
    Model(
        "attention",
        **statement("attention"),
        assumes=(HEAD, FALLING, FEASIBLE, LOCAL, ATTENTION_START, METHOD, PATH, FULL_BATCHES),
        options=AttentionOptions,
        run=f"{__package__}.run:run_attention",
        refuses={"gating": "its queries are data: give them as `queries`"},
        defaults={"n_train": None, "batch_size": 0, "steps": (4000,), "learning_rate": ()},
        variants={KEY_QUERY: {"init_scale": 0.1, "steps": (8000,)}},
        provable=False,
        holds=Holds(
            limit="limits.exact.tokens:TokenLimit",
            network="networks.attention:Attention",
            comparison="models.attention.comparison:AttentionComparison",
        ),
    ),
)
