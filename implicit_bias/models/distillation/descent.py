"""Training of a linear student beside its flow and its limit."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import torch

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
from .limit import DistillationLimit
from .run import DistillationSetup
from .training import student_weights

# Layers between are as wide as one likes: of a balanced start all have rank one.
WIDTH = 10
# Of student and limit together, on the first screen.
SCREEN = ("path_error", "zeta_cosine", "agreement")


def train_and_compare(setup: DistillationSetup, found: Found) -> Iterator[Finding]:
    """Train a student from the start of the run, and find how it compares with its limit."""
    task = setup.task
    network = _student(setup)
    X, labels, settings = task.X, task.soft_labels, setup.settings
    trajectory = fit(setup, network, X, labels, settings=settings, observer=student_weights)
    ended = Trained(network, trajectory, margins=False, columns=False)
    path = {"path.safetensors": write_path(trajectory, settings)}
    yield Finding("network", {"network": ended}, further=Views(files=path))
    setup.progress.stage("integrating the flow, comparing")
    yield _comparison(
        setup, compare_with_distillation(setup.limit, task, trajectory, setup.settings)
    )


def _student(setup: DistillationSetup) -> DeepLinear | LinearStudent:
    """Make the untrained student."""
    options = setup.options
    begins = torch.tensor(setup.start, dtype=torch_dtype(options.dtype))
    if setup.task.of_classes:
        return LinearStudent(begins, device=options.device)
    widths = (WIDTH,) * (options.depth - 1)
    return DeepLinear.from_zeta(begins, hidden_widths=widths, device=options.device)


def _comparison(setup: DistillationSetup, found: DistillationComparison) -> Finding:
    """Return the finding that compares the student with its flow and its limit."""
    heads = ("", "limit", "flow at this time", "trained student")
    tables = (
        Table(TOGETHER, heads, tuple(found.states())),
        Table("comparison", ("", "value"), tuple(found.rows())),
    )
    return Finding(
        "comparison",
        {"comparison": found},
        evidence=(_evidence(setup.limit, found),),
        panels=(
            partial(plot_span_error, curves=found.curves),
            partial(plot_null_part, curves=found.curves, limit=setup.limit),
        ),
        further=Views(tables=tables, sides=_sides(found)),
    )


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


def _evidence(limit: DistillationLimit, found: DistillationComparison) -> Evidence:
    """Return the evidence on a student beside its limit."""
    return Evidence(
        status=limit.status,
        near={"limit_error": found.network.error},
        beside={"agreement": found.agreement},
        reason=f"the flow is {found.flow.error:.2%} off at this time: give more `--steps`",
    )
