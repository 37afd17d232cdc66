"""Small ReLU networks on orthogonally separable data in the table of models."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from ...options.fields import (
    ImageOptions,
    SlopeOptions,
    SolverOptions,
    TrainerOptions,
    UnitOptions,
    option,
)
from ...quantities.assumptions import Premise
from ...quantities.atlas import statement
from ...quantities.premises import FULL_BATCHES, HOMOGENEOUS, LOSS, METHOD, SEPARATES
from ...runs.model import Holds, Model


@dataclass(frozen=True, kw_only=True)
class OrthosepOptions(TrainerOptions, SolverOptions, SlopeOptions, UnitOptions, ImageOptions):
    """A network that begins small and balanced, data, a solver and a trainer."""

    network: Literal["two-layer", "residual"] = option(
        "two-layer", "The theorem's network, or four layers with skip connections."
    )
    init_scale: float = option(0.01, "Size of the initial weights.")
    starts: int = option(
        1, "Networks, each from weights of its own: which came to the same one.", least=1
    )


PLAIN = {"slope": (0.0,)}
ORTHOGONAL = Premise(
    name="orthogonally separable",
    text="the data are orthogonally separable: inner products are positive within each class, and "
    "at most 0 across",
    said="the data are orthogonally separable ({message})",
    known="proved",
)
SUPPORTS_SPAN = Premise(
    name="support examples span the inputs",
    text="the support examples of each class span the inputs (theorem 3.1; the corollary's "
    "constants hold without)",
    said="the support examples span the inputs (theorem 3.1 assumes it; the corollary's constants "
    "hold without)",
    known="measured",
    where=PLAIN,
)
ALMOST_ALL = Premise(
    name="almost all data",
    text="the data are not among the few that theorem 3.1 leaves out: it is stated for almost all, "
    "such as those drawn from a density have probability 1",
    known="cannot be checked",
    where=PLAIN,
)
LEAKY_SEPARATES = replace(
    SEPARATES,
    text="of leaky units: the network comes to separate the training data",
    said="of leaky units: the network separates the training data",
    unless=PLAIN,
)
BOTH_STAY = Premise(
    name="both kinds stay",
    text="of leaky units: neither kind of neurons vanishes beside the other, unless it does so "
    "in the program",
    said="of leaky units: neither kind vanishes (positive neurons have {found:.1%} of all norms, "
    "{wanted:.1%} in the program)",
    known="measured",
    unless=PLAIN,
)
ASSUMED = (
    ORTHOGONAL,
    SUPPORTS_SPAN,
    ALMOST_ALL,
    replace(
        HOMOGENEOUS,
        text="the network has two layers and is homogeneous in its weights",
        needs={"network": ("two-layer",)},
    ),
    Premise(
        name="small balanced start",
        text="the start is balanced and small enough, and a neuron of each sign is active on its "
        "class",
        known="cannot be checked",
        needs={"network": ("two-layer",)},
        where=PLAIN,
    ),
    Premise(
        name="balanced start",
        text="of leaky units: the start is balanced, of any size",
        known="by construction",
        unless=PLAIN,
    ),
    LEAKY_SEPARATES,
    BOTH_STAY,
    LOSS,
    METHOD,
    FULL_BATCHES,
)
HOLDS = Holds(
    limit="models.orthosep.limit:OrthosepLimit", network="networks.balanced_relu:BalancedReLU"
)
MODELS = (
    Model(
        "orthosep",
        **statement("orthosep"),
        assumes=ASSUMED,
        options=OrthosepOptions,
        run=f"{__package__}.run:run_orthosep",
        refuses={
            "gating": "its units gate themselves; take frelu for gates that are given",
            "trainers": "its tables are about the neurons and layers of one network",
        },
        # Without steps: the phases that take this network to its limit follow from the data.
        defaults={
            "data": "orthants",
            "hidden_units": 100,
            "trainer": "normalised",
            "steps": None,
            "learning_rate": None,
        },
        # As published: 500 epochs of 500 samples.
        variants={
            ("network", "residual"): {
                "trainer": "constant",
                "batch_size": 50,
                "steps": (5000,),
                "learning_rate": (0.1,),
                "init_scale": 0.05,
            }
        },
        holds=HOLDS,
        holds_with={
            ("network", "residual"): replace(HOLDS, network="networks.balanced_relu:ResidualReLU")
        },
    ),
)
