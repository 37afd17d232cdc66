"""Linear decoders of next tokens in the table of models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ...options.fields import ScheduleOptions, option
from ...quantities.assumptions import Premise
from ...quantities.atlas import statement
from ...quantities.premises import FULL_BATCHES
from ...runs.model import Holds, Model


@dataclass(frozen=True, kw_only=True)
class NextTokenOptions(ScheduleOptions):
    """A text or contexts of a file, and how both parts of the decoder are trained."""

    data: str = option(
        "text",
        "Words of a bundled text of 40 sentences. Or a FILE of your own, .npz with X and y, X.npy "
        "beside y.npy, .csv or .parquet: a row is a context and its next token, and equal rows are "
        "one context.",
        choices=("text",),
        files=True,
    )
    label: str | None = option(
        None, "Column of the tokens in a table, or array in an .npz file.", unset="as for labels"
    )
    n_train: int | None = option(
        None, "Tokens that are counted, from the first one.", least=1, unset="all"
    )
    context: int | None = option(None, "Words of a context of --data text.", least=1, unset="1")
    dimension: int | None = option(
        None,
        "Dimension of the embeddings of --data text, one at random for each context.",
        least=1,
        unset="32",
    )
    trainer: Literal["momentum", "normalised"] = option(
        "momentum", "Method of the part that grows, on the logarithm of its loss."
    )
    descent_steps: int = option(
        4000, "Steps of plain descent on all weights beside it; 0 for none.", least=0
    )
    tol: float = option(1e-8, "Largest gap of the direction.", above=0, below=1)


COMPATIBLE = Premise(
    name="compatible odds",
    text="the log-odds of tokens that may follow have a solution (definition 1); without it the "
    "finite part is their least loss, by an argument of this project",
    said="{text}: here the loss ends {excess:.2g} above the entropy",
    known="proved",
)
SEPARABLE = Premise(
    name="separable contexts",
    text="some decoder has equal scores of all tokens that may follow a context, and higher ones "
    "than of all others (definition 2); those of which that fails stay in the finite part, by an "
    "argument of this project",
    said="{text}: it fails of {stuck} of {n} pairs of context and token",
    holds=lambda stuck, n: stuck == 0,
    known="proved",
)
SOME = Premise(
    name="some token never follows",
    text="after some context some token never follows",
    said="{text}: {n} such pairs",
    holds=lambda n: n > 0,
    known="measured",
)
ASSUMED = (
    Premise(
        name="constant small steps",
        text="embeddings of contexts stay as they are, and steps on the decoder are constant and "
        "so small that the loss falls: those of descent are, the decoder in two parts has others",
        known="by construction",
    ),
    COMPATIBLE,
    SEPARABLE,
    SOME,
    FULL_BATCHES,
)
MODELS = (
    Model(
        "next-token",
        **statement("next-token"),
        assumes=ASSUMED,
        options=NextTokenOptions,
        run=f"{__package__}.run:run_next_token",
        refuses={"gating": "a linear decoder has no gates"},
        defaults={"batch_size": 0, "steps": (1000,), "learning_rate": ()},
        provable=False,
        holds=Holds(
            limit="models.next_token.limit:NextTokenLimit",
            network="Mapping[str] networks.token_decoder:TokenDecoder",
            trajectory="Mapping[str] training.trajectory:Trajectory",
            comparison="Mapping[str] models.next_token.comparison:DecoderComparison",
        ),
    ),
)
