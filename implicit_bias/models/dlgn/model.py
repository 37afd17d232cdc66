"""Deep linearly gated networks in the table of models."""

from __future__ import annotations

from dataclasses import dataclass

from ..._support.words import Experts, InitName
from ...options.fields import ImageOptions, SolverOptions, TrainerOptions, option
from ...quantities.assumptions import Premise
from ...quantities.atlas import statement
from ...quantities.premises import DUAL_NORMS, LOCAL_OPTIMUM, ONE_LAYER, PROPOSITION_B8
from ...runs.model import Holds, Model


@dataclass(frozen=True, kw_only=True)
class DLGNOptions(TrainerOptions, SolverOptions, ImageOptions):
    """Half-spaces that are trained and then frozen, experts behind them, a solver and a trainer."""

    experts: Experts = option(
        "linear", "What the value network sees: the input, or ones (DLGN-PWC)."
    )
    depth: int = option(2, "Layers; 2 is one hidden layer.", least=2)
    hidden_units: int = option(10, "Units of each hidden layer.", least=1)
    upper_units: int | None = option(
        None, "Units of the hidden layers above the first.", least=1, unset="as many as there"
    )
    beta: float = option(4.0, "Steepness of the soft gates while they are trained.")
    final_beta: float | None = option(
        None,
        "Steepness to end with, over the second half of the gates' steps.",
        unset="beta",
    )
    gate_steps: int = option(
        500, "Steps with soft gates; 0 leaves half-spaces as they were drawn.", least=0
    )
    init: InitName = option("gaussian", "Initial value weights.")
    init_scale: float = option(1.0, "Factor on the initial value weights.")


HEADING = Premise(
    name="heading to the limit",
    text="the network is heading to the limit, not to a point with units that are wrongly dead",
    said="{text} (limit / local limit is {ratio:.6f}, certified)",
    known="proved",
)
# In place of the dual norms of units, whether the point next to the network is the optimum.
ASSUMED = (
    *(one for one in PROPOSITION_B8 if one is not DUAL_NORMS),
    ONE_LAYER,
    LOCAL_OPTIMUM,
    HEADING,
)
MODELS = (
    Model(
        "dlgn",
        **statement("dlgn"),
        assumes=ASSUMED,
        options=DLGNOptions,
        run=f"{__package__}.run:run_dlgn",
        refuses={
            "gating": "its gates are learned; take frelu for gates that are given",
            "trainers": "its tables are about the one network behind the gates that it has trained",
        },
        defaults={"trainer": "annealed", "steps": (2000,)},
        # Twelve arcs: ten half-spaces through the origin cut the circle into twenty.
        variants={("data", "circle"): {"hidden_units": 32}},
        provable=False,
        holds=Holds(
            limit="limits.limit:Limit",
            network="networks.gated.dgn:DGN",
            comparison="models.dlgn.comparison:DLGNComparison",
        ),
    ),
)
