"""Neural collapse of unconstrained features in the table of models."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ...options.fields import Positive, StartOptions, TrainerOptions, option
from ...quantities.assumptions import Premise
from ...quantities.atlas import statement
from ...quantities.premises import FULL_BATCHES, LOSS, LOSS_TO_0, METHOD
from ...runs.model import Holds, Model


@dataclass(frozen=True, kw_only=True)
class CollapseOptions(TrainerOptions, StartOptions):
    """Classes, their features and layers, and a trainer."""

    data: str = option(
        "sizes",
        "Where classes come from: --class-sizes; the labels of scikit-learn's digits, iris, wine "
        "or breast cancer, or of a FILE of your own, .npz, .csv or .parquet. Inputs do not matter.",
        choices=("sizes", "digits", "iris", "wine", "breast-cancer"),
        files=True,
    )
    label: str | None = option(
        None,
        "Column of the labels in a table, or array in an .npz file.",
        unset="y, or the column called label, target, class or y",
    )
    n_train: int | None = option(None, "Samples whose labels are taken.", least=2, unset="all")
    class_sizes: tuple[int, ...] | None = option(
        None,
        "Samples of every class.",
        least=1,
        example="10,10,1,1",
        unset="10,10,10,1,1,1, and beside it six classes of 6",
    )
    dimension: int | None = option(
        None, "Dimension of features and of layers between.", least=1, unset="as many as classes"
    )
    depth: int = option(2, "Layers, that of the features counted.", least=2)
    weight_decay: float = option(
        0.0, "Decay lam of all weights, lam ||w||^2 / 2 in the loss: the limit is finite.", least=0
    )
    tol: float = option(1e-8, "Relative duality gap to reach.", above=0, below=1)


DECAYED = {"weight_decay": (Positive(),)}
WIDE = Premise(
    name="K - 1 dimensions",
    text="two layers, features of K - 1 dimensions at least: elsewhere none names the optimum",
    said="there are {depth} layers, of {dimension} dimensions for {n_classes} classes: the optimum "
    "is known with two, in {least} dimensions at least",
    holds=lambda depth, dimension, n_classes, least: depth == 2 and dimension >= least,
    how="",
    known="measured",
)
KKT = Premise(
    name="the best KKT point",
    text="training ends at the best of the KKT points: there may be others",
    known="cannot be checked",
)
NO_DECAY = tuple(replace(one, unless=DECAYED) for one in (LOSS, METHOD, LOSS_TO_0, KKT))
CONVERGES = {
    "trainer": "constant", "steps": (6000,), "learning_rate": (1.0,), "momentum": 0.9,
    "init_scale": 1.0,
}  # fmt: skip
MODELS = (
    Model(
        "collapse",
        **statement("collapse"),
        assumes=(WIDE, *NO_DECAY, FULL_BATCHES),
        options=CollapseOptions,
        run=f"{__package__}.run:run_collapse",
        refuses={"gating": "its features are weights, with no gates"},
        defaults={"trainer": "momentum", "batch_size": 0, "steps": (1500,), "init_scale": 0.1},
        variants={("weight_decay", Positive()): CONVERGES},
        provable=False,
        holds=Holds(
            limit="models.collapse.limit:CollapseLimit",
            network="networks.deep_linear:UnconstrainedFeatures",
            comparison="models.collapse.comparison:CollapseComparison",
        ),
    ),
)
