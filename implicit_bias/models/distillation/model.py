"""Linear students of linear teachers in the table of models."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from ..._support.words import ClassesName
from ...options.fields import ScheduleOptions, SplitOptions, option
from ...quantities.assumptions import Premise
from ...quantities.atlas import statement
from ...quantities.premises import FLOW, FULL_BATCHES, START
from ...runs.model import Holds, Model


@dataclass(frozen=True, kw_only=True)
class DistillationOptions(ScheduleOptions, SplitOptions):
    """A transfer set, a teacher, a student of so many layers, gradient descent on soft labels."""

    data: Literal["angles", "digits", "mnist"] = option(
        "angles",
        "Inputs in 100 dimensions at angles with the teacher that --kappa says; scikit-learn's "
        "bundled digits or IDX files of MNIST's kind, with a logistic regression of "
        "half of the held-out images as teacher.",
    )
    data_dir: Path | None = option(None, "Folder of the IDX files of --data mnist, gzipped or not.")
    classes: ClassesName = option(
        "two", "Two, 0 against 1, or all classes of images by softmax, of one layer alone."
    )
    kappa: float | None = option(
        None,
        "Degree of --data angles: P[angle >= theta] = (1 - 2 theta / pi)^KAPPA.",
        unset="1",
    )
    temperature: float = option(
        1.0, "Of soft labels: it divides the scores of teacher and student."
    )
    depth: int = option(2, "Layers of the student.", least=1)
    init_scale: float = option(
        0.01, "Length of the student's initial weights, end to end; 0 for one layer alone."
    )
    tol: float = option(1e-8, "Largest residual of the limit.")


ONE_LAYER = {"depth": (1,)}
RESOLVED = Premise(
    name="soft labels resolved",
    text="soft labels tell the teacher's scores apart in this precision",
    said="soft labels tell the teacher's scores apart: {what} at most {largest:.3g}, and {ends} "
    "from {cut} on",
    holds=lambda largest, cut, **_: largest < cut,
    known="measured",
)
BELOW_ZERO = replace(
    START,
    text="the start has a smaller loss than weights of 0",
    said="{text}: {begins:.6g} below {at_zero:.6g}{way}",
    holds=lambda begins, at_zero, way: begins < at_zero,
    unless=ONE_LAYER,
)
ZERO_START = Premise(
    name="any start of one layer",
    text="one layer begins at any weights: theorem 5.1 asks for 0, and of others what no sample "
    "sees stays as it is",
    known="by construction",
    where=ONE_LAYER,
)
ASSUMED = (
    Premise(
        name="linear teacher",
        text="soft labels are those of a linear teacher, on inputs without noise",
        known="by construction",
    ),
    RESOLVED,
    ZERO_START,
    FULL_BATCHES,
    replace(FLOW, unless=ONE_LAYER),
    Premise(
        name="balanced start",
        text="the layers begin balanced",
        known="by construction",
        unless=ONE_LAYER,
    ),
    BELOW_ZERO,
)
HOLDS = Holds(
    limit="models.distillation.limit:DistillationLimit",
    network="networks.deep_linear:DeepLinear",
    comparison="models.distillation.comparison:DistillationComparison",
)
MODELS = (
    Model(
        "distillation",
        **statement("distillation"),
        assumes=ASSUMED,
        options=DistillationOptions,
        run=f"{__package__}.run:run_distillation",
        refuses={"gating": "a linear student has no gates"},
        # Rates follow from the data: small ones while the length of the weights grows, then as
        # large as is stable.
        defaults={"batch_size": 0, "steps": (2000, 20_000), "learning_rate": ()},
        variants={
            ("classes", "all"): {
                "depth": 1,
                "data": "digits",
                "temperature": 4.0,
                "steps": (100, 10_000),
            }
        },
        provable=False,
        holds=HOLDS,
        holds_with={("classes", "all"): replace(HOLDS, network="networks.student:LinearStudent")},
    ),
)
