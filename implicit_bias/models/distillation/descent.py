"""Training of a linear student beside its flow and its limit."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import torch

from ...data.arrays import Floats
from ...networks.deep_linear import DeepLinear
from ...networks.student import LinearStudent
from ...quantities.said import Side, Table
from ...runs.fit import fit
from ...runs.reports.finding import Finding
from ...runs.reports.findings import TOGETHER
from ...runs.reports.saved.writers import write_path
from ...runs.reports.trained import Trained
from ...runs.reports.verdict import Evidence
from ...runs.reports.views import Views
from ...runs.setup import torch_dtype
from ...runs.stages import Found
from .comparison import DistillationComparison, compare_with_distillation
from .figure import plot_null_part, plot_span_error
from .start import DistillationSetup

# Layers between are as wide as one likes: of a balanced start all have rank one.
WIDTH = 10
# Of student and limit together, on the first screen.
SCREEN = ("path_error", "zeta_cosine", "agreement")


def train_and_compare(setup: DistillationSetup, found: Found) -> Iterator[Finding]:
    """Train a student from the start of the run, and find how it compares with its limit."""
    limit, task, settings, network = setup.limit, setup.task, setup.settings, _student(setup)
    labels = task.soft_labels
    trajectory = fit(setup, network, task.X, labels, settings=settings, observer=student_weights)
    ended = Trained(network, trajectory, margins=False, columns=False)
    path = {"path.safetensors": write_path(trajectory, settings)}
    yield Finding("network", {"network": ended}, further=Views(files=path))
    setup.progress.stage("integrating the flow, comparing")
    compared = compare_with_distillation(limit, task, trajectory, settings)
    heads = ("", "limit", "flow at this time", "trained student")
    tables = (
        Table(TOGETHER, heads, tuple(compared.states())),
        Table("comparison", ("", "value"), tuple(compared.rows())),
    )
    evidence = Evidence(
        status=limit.status,
        near={"limit_error": compared.network.error},
        beside={"agreement": compared.agreement},
        reason=trajectory.stopped
        or f"the flow is {compared.flow.error:.2%} off at this time: give more `--steps`",
    )
    yield Finding(
        "comparison",
        {"comparison": compared},
        evidence=(evidence,),
        panels=(
            partial(plot_span_error, curves=compared.curves),
            partial(plot_null_part, curves=compared.curves, limit=limit),
        ),
        further=Views(tables=tables, sides=_sides(compared)),
    )


def _student(setup: DistillationSetup) -> DeepLinear | LinearStudent:
    """Make the untrained student."""
    options = setup.options
    begins = torch.tensor(setup.start, dtype=torch_dtype(options.dtype))
    if setup.task.of_classes:
        return LinearStudent(begins, device=options.device)
    widths = (WIDTH,) * (options.depth - 1)
    return DeepLinear.from_zeta(begins, hidden_widths=widths, device=options.device)


def _sides(found: DistillationComparison) -> tuple[Side, ...]:
    """Return limit, flow and student as columns of the first screen."""
    own = {name: value for name, value in found.cells().items() if name in SCREEN}
    states = {"limit": found.limit, "flow, same time": found.flow}
    return (
        *(
            Side(name, {"final_loss": one.loss, **one.cells()}, predicted=name == "limit")
            for name, one in states.items()
        ),
        Side("student", {"final_loss": found.network.loss, **found.network.cells(), **own}),
    )


def student_weights(network: Any) -> dict[str, Floats]:
    """An observer for `train`: the "weights" of a linear network, end to end."""
    return {"weights": network.zeta().detach().double().cpu().numpy().copy()}
