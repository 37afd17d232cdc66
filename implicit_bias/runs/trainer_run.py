"""One trainer's way from the start to its end, beside the limit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..drawing.figures import Row
from ..drawing.map_rows import gating_lines, map_row, plane_snapshots
from ..drawing.runs import PREDICTED, run_panels
from ..drawing.trainers import of_trainer
from ..limits.limit import Limit
from ..measures.comparison import compare, measure_network
from ..measures.distances import Distances
from ..measures.kkt import kkt_distance
from ..options.resolve import OF_TRAINING
from ..reports.finding import Finding
from ..reports.findings import beside, separable_assumptions, trained
from ..training.loop import train
from ..training.snapshots import Snapshots
from ..training.trajectory import Trajectory
from .label_agreement import AgreementAhead, agreement_ahead
from .parts import Parts
from .prospects import FOLLOWS, outlook
from .setup import Setup
from .slow_units import slow_units

if TYPE_CHECKING:
    import torch

__all__ = ["RUN", "Road", "known_as", "make_roads", "predicted", "travel"]

# Where an unfinished run is kept, in the folder of its results.
RUN = "run.safetensors"


@dataclass(frozen=True, eq=False)
class Road:
    """One trainer's way: its own settings, and the network that it trains.

    Attributes
    ----------
    setup : Setup
        With the options and settings of this trainer.
    network : Module
    among : str
        The name of the trainer where there are others beside it; empty otherwise.
    first : bool
        Whether it is the first that is trained.
    """

    setup: Setup
    network: torch.nn.Module
    among: str
    first: bool

    @property
    def trainer(self) -> str:
        """The name of the trainer."""
        return str(self.setup.options.trainer)

    @property
    def state(self) -> Path | None:
        """Where its unfinished run is kept."""
        return self.setup.keeping.state(f"run-{self.among}.safetensors" if self.among else RUN)

    @property
    def resumes(self) -> bool:
        """Whether it goes on: of a run that was kept the first had begun, others left a file."""
        begun = self.first or (self.state is not None and self.state.exists())
        return self.setup.keeping.resume and begun

    @property
    def descends(self) -> bool:
        """Whether its steps are descent, so that they can be looked ahead."""
        return self.trainer in FOLLOWS


def make_roads(setup: Setup, parts: Parts) -> list[Road]:
    """One for every trainer that was named, all of them from the same weights."""
    several = setup.each_trainer()
    return [
        Road(
            own,
            parts.network(setup.train, setup.seeds.weights),
            among=trainer if len(several) > 1 else "",
            first=i == 0,
        )
        for i, (trainer, own) in enumerate(several.items())
    ]


def travel(road: Road, parts: Parts, limit: Limit) -> Iterator[Finding]:
    """What one trainer makes of a network, beside the limit."""
    setup, network, samples = road.setup, road.network, road.setup.samples
    by = f" by {road.among}" if road.among else ""
    setup.progress.stage(f"training a {parts.network_name}{by} for {setup.settings.n_steps} steps")
    snapshots = plane_snapshots(network, setup.train.X, setup.settings.n_steps)
    trajectory = _train(road, limit, snapshots)
    panels = run_panels(trajectory, limit, predicted(setup, limit), name=known_as(parts))
    yield _asked(road, trained(network, trajectory, panels=panels, among=road.among))
    setup.progress.stage("comparing")
    separates = trajectory.smallest_margin[-1] > 0
    kkt = kkt_distance(network, *setup.train) if separates else None
    comparison = compare(limit, network, *samples, kkt=kkt)
    state = measure_network(network, *samples, kkt)
    assumptions = separable_assumptions(comparison, trajectory)
    name = parts.formulation.name
    yield beside(limit, name, samples, state, trajectory, comparison, assumptions)
    own_limit = None if parts.control else limit
    yield _slow_units(road, own_limit, trajectory, kkt)
    if snapshots is not None:
        snapshots.take(int(trajectory.step[-1]))
        yield _maps(road, limit, name, snapshots)
    yield outlook(
        trajectory,
        degree=int(network.degree),  # type: ignore[arg-type]
        settings=setup.settings,
        control=parts.control,
        ahead=_ahead(road, own_limit),
    )


def predicted(setup: Setup, limit: Limit) -> Any:
    """Scores of the limit on the held-out inputs."""
    return limit.predictor(setup.held_out.X, setup.held_out.gates)


def known_as(parts: Parts) -> str:
    """What the limit is called in a picture."""
    return f"{parts.formulation.name}, a control" if parts.control else PREDICTED


def _train(road: Road, limit: Limit, snapshots: Snapshots | None) -> Trajectory:
    setup = road.setup
    return train(
        road.network,
        *setup.train,
        settings=setup.settings,
        X_val=setup.held_out.X,
        gates_val=setup.held_out.gates,
        callback=setup.progress.training(snapshots),
        observer=Distances(limit, *setup.samples, loss=setup.options.loss),
        state=road.state,
        resume=road.resumes,
    )


def _asked(road: Road, found: Finding) -> Finding:
    """With the choices that are this trainer's own, where others have theirs."""
    if not road.among:
        return found
    own = {name: getattr(road.setup.options, name) for name in OF_TRAINING}
    return replace(found, record={**found.record, "options": own}, row={**found.row, **own})


def _slow_units(road: Road, limit: Limit | None, trajectory: Trajectory, kkt: Any) -> Finding:
    if road.among and not road.descends:
        return Finding("slow units", record={"unit_growth": None})
    run = (trajectory, road.setup.settings)
    found = slow_units(road.network, road.setup.train, limit, run, kkt)
    if not road.among:
        return found
    panels = (one if isinstance(one, Row) else of_trainer(road.among, one) for one in found.panels)
    return replace(found, panels=tuple(panels))


def _ahead(road: Road, limit: Limit | None) -> AgreementAhead | None:
    if limit is None or not road.descends:
        return None
    return agreement_ahead(road.network, *road.setup.samples, limit)


def _maps(road: Road, limit: Limit, name: str, snapshots: Snapshots) -> Finding:
    """Limit and network at times of its training, on the plane."""
    setup = road.setup
    lines = gating_lines(setup.gating, setup.train.X)
    title = f"limit beside {road.among}: {name}" if road.among else f"limit: {name}"
    row = map_row(
        limit, snapshots, setup.train, setup.gates_of, limit_title=title, lines=lambda _: lines
    )
    return Finding("maps", panels=(row,))
