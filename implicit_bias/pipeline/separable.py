"""The run of separable data: predict the limit, train a network, compare."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from .._solve import MaxMarginProgram
from ..drawing.map_rows import gating_lines, map_row, plane_snapshots
from ..drawing.runs import PREDICTED, run_panels
from ..limits.limit import Limit
from ..measures.comparison import compare, measure_network
from ..measures.distances import Distances
from ..measures.kkt import kkt_distance
from ..training.loop import train
from ..training.snapshots import Snapshots
from ..training.trainers import check_trainer
from .finding import Finding
from .findings import (
    beside,
    gating_file,
    limit_alone,
    separable_assumptions,
    trained,
    usable,
)
from .keeping import Keeping
from .outlook import outlook
from .parts import Parts
from .progress import Progress
from .report import Report, gather
from .setup import Setup, prepare
from .slow_units import slow_units

if TYPE_CHECKING:
    import torch

    from .model import Model

__all__ = ["RUN", "run_separable"]

# Where an unfinished run is kept, in the folder of its results.
RUN = "run.safetensors"


def run_separable(
    model: Model, options: Any, parts: Parts, progress: Progress, keeping: Keeping
) -> Report:
    """Predict the limit of a network, train one, and compare them.

    Raises
    ------
    ValueError, FileNotFoundError
        If an option is out of range or the data are not there, before any long work.
    """
    setup = prepare(model, options, progress, keeping, gating=parts.gating)
    # First: it knows what memory the problem takes.
    program = parts.formulation.program(*setup.train)
    network = parts.network(setup.train, setup.seeds.weights)
    check_trainer(options.trainer, network)
    title = f"{parts.network_name} beside {parts.formulation.name}"
    return gather(setup.heading(title=title), _find(setup, parts, program, network), keeping)


def _find(
    setup: Setup, parts: Parts, program: MaxMarginProgram, network: torch.nn.Module
) -> Iterator[Finding]:
    """What there is to find, each as soon as it is known."""
    options, samples, name = setup.options, setup.samples, parts.formulation.name
    setup.progress.stage(f"solving {name} on {len(setup.train.y)} samples ({options.solver})")
    limit = parts.solve(program, setup.gates[0], solver=options.solver, tol=options.tol)
    yield limit_alone(limit, name)
    yield gating_file(setup.gating)
    if not usable(limit):
        return
    setup.progress.stage(f"training a {parts.network_name} for {setup.settings.n_steps} steps")
    snapshots = plane_snapshots(network, setup.train.X, setup.settings.n_steps)
    trajectory = train(
        network,
        *setup.train,
        settings=setup.settings,
        monitor=(setup.held_out.X, setup.held_out.gates),
        callback=setup.progress.training(snapshots),
        observer=Distances(limit, *samples, loss=options.loss),
        state=setup.keeping.state(RUN),
        resume=setup.keeping.resume,
    )
    scores = limit.predictor(setup.held_out.X, setup.held_out.gates)
    known_as = f"{name}, a control" if parts.control else PREDICTED
    panels = run_panels(trajectory, limit, scores, name=known_as)
    yield trained(network, trajectory, panels=panels)
    setup.progress.stage("comparing")
    separates = trajectory.smallest_margin[-1] > 0
    kkt = kkt_distance(network, *setup.train) if separates else None
    comparison = compare(limit, network, *samples, kkt=kkt)
    state = measure_network(network, *samples, kkt)
    assumptions = separable_assumptions(comparison, trajectory)
    yield beside(limit, name, samples, state, trajectory, comparison, assumptions)
    own_limit = None if parts.control else limit
    yield slow_units(network, setup.train, own_limit, (trajectory, setup.settings), kkt)
    if snapshots is not None:
        snapshots.take(int(trajectory.step[-1]))
        yield _maps(setup, limit, name, snapshots)
    yield outlook(
        trajectory,
        degree=int(network.degree),  # type: ignore[arg-type]
        settings=setup.settings,
        control=parts.control,
    )


def _maps(setup: Setup, limit: Limit, name: str, snapshots: Snapshots) -> Finding:
    """Limit and network at times of its training, on the plane."""
    lines = gating_lines(setup.gating, setup.train.X)
    row = map_row(
        limit, snapshots, setup.train, setup.gates_of,
        limit_title=f"limit: {name}", lines=lambda _: lines,
    )  # fmt: skip
    return Finding("maps", panels=(row,))
