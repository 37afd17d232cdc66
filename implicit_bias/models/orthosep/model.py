"""Small ReLU networks on orthogonally separable data in the table of models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ...options.fields import ImageOptions, SolverOptions, TrainerOptions, UnitOptions, option
from ...runs.model import Holds, Model

__all__ = ["MODELS"]


@dataclass(frozen=True, kw_only=True)
class OrthosepOptions(TrainerOptions, SolverOptions, UnitOptions, ImageOptions):
    """A network that begins small and balanced, data, a solver and a trainer."""

    network: Literal["two-layer", "residual"] = option(
        "two-layer", "The theorem's network, or four layers with skip connections."
    )
    init_scale: float = option(0.01, "Size of the initial weights.")
    starts: int = option(
        1, "Networks, each from weights of its own: which came to the same one.", least=1
    )


MODELS = (
    Model(
        "orthosep",
        theorem="every surviving neuron of a small ReLU network turns to one of two max-margin "
        "vectors (Phuong, Underspecification in Deep Learning, theorem 3.1 and corollary 3.1 with "
        "its constants)",
        source="Phuong 2021, theorem 3.1 and corollary 3.1",
        program="w+- = argmin ||w||  s.t.  <w, x_n> >= 1 for the samples of one class",
        options=OrthosepOptions,
        run=f"{__package__}.run:run_orthosep",
        programs=f"{__package__}.run:orthosep_programs",
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
        holds=Holds(
            limit="models.orthosep.limit:OrthosepLimit",
            network="networks.balanced_relu:BalancedReLU",
        ),
        holds_with={
            ("network", "residual"): Holds(
                limit="models.orthosep.limit:OrthosepLimit",
                network="networks.balanced_relu:ResidualReLU",
            )
        },
    ),
)
