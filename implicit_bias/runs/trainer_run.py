"""One trainer's run beside the limit: training, comparison, prospects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from .._support.words import WeightNorm
from ..data.arrays import is_planar
from ..limits.limit import Limit
from ..measures.comparison import compare, measure_network
from ..measures.distances import Distances
from ..measures.kkt import kkt_distance
from ..measures.own_norm import OwnNorm
from ..networks.losses.margins import n_margins
from ..options.resolve import SCHEDULE
from ..quantities.table import TABLE
from ..training.trainers import check_trainer
from .classes.label_agreement import agreement_ahead
from .drawing.figures import PREDICTED, Panels
from .fit import STATE, fit
from .own_norms import norms_finding, own_norms
from .parts import JointParts, n_outputs
from .prospects import FOLLOWS, farther_in_words, prospects
from .reports.finding import Finding
from .reports.findings import compared, evidence, separable_assumptions
from .reports.shown.side_by_side import side_by_side
from .reports.trained import Trained
from .separable import SeparableSetup
from .stages import Found
from .unit_changes import slow_units_finding

if TYPE_CHECKING:
    import torch

    from ..limits.exact.multiclass import MarginLimit
    from ..training.network_snapshots import NetworkSnapshots

# The KKT fit of more relative margins than this is left out of a run: it takes minutes where most
# of them have multipliers.
MOST_MARGINS = 1000


@dataclass(frozen=True, eq=False)
class TrainerRun:
    """One trainer's settings, and the network that it trains.

    Attributes
    ----------
    setup : SeparableSetup
        With the options and settings of this trainer.
    network : Module
    among : str
        Name of the trainer where the run has several; empty otherwise.
    first : bool
        True for the first that is trained.
    """

    setup: SeparableSetup
    network: torch.nn.Module
    among: str
    first: bool

    @property
    def trainer(self) -> str:
        """The name of the trainer."""
        return str(self.setup.options.trainer)

    @property
    def descends(self) -> bool:
        """True where its steps follow the law of descent, so that they can be extrapolated."""
        return self.trainer in FOLLOWS


def trainer_runs(setup: SeparableSetup) -> list[TrainerRun]:
    """Return one run for every trainer that was named, all of them from the same weights.

    Raises
    ------
    ValueError
        If a trainer does not take the network.
    """
    several = setup.each_trainer()
    runs = [
        TrainerRun(
            own,
            setup.parts.network(setup.train, setup.seeds.weights),
            among=trainer if len(several) > 1 else "",
            first=i == 0,
        )
        for i, (trainer, own) in enumerate(several.items())
    ]
    for one in runs:
        check_trainer(one.trainer, one.network)
    return runs


def train_side_by_side(setup: SeparableSetup, before: Found) -> Iterator[Finding]:
    """Train a network by each trainer in turn, and find how they compare with the limit.

    The curves of all trainers are in the same panels.
    """
    limit: MarginLimit = before["limit"]
    found: dict[str, dict[str, Finding]] = {}
    norms = own_norms(setup, [one.trainer for one in setup.runs], limit)
    for one in setup.runs:
        for finding in _train_and_compare(one, limit, norms):
            of_each = found.setdefault(finding.key, {})
            of_each[one.trainer] = finding
            whole = side_by_side(of_each)
            if len(of_each) > 1 and whole.key == "network":
                runs = {name: part.views.objects["trajectory"] for name, part in of_each.items()}
                panels = Panels("trainers:trainer_panels", (runs, *_pictured(setup, limit)))
                whole = whole.but(panels=(panels,))
            yield whole
        if not found["network"][one.trainer].views.finished:
            return


def _pictured(setup: SeparableSetup, limit: MarginLimit) -> tuple[MarginLimit, Any, str]:
    """Return the limit, its scores on the held-out inputs, and its name in a picture."""
    parts, held_out = setup.parts, setup.held_out
    name = f"{parts.name}, a control" if parts.control else PREDICTED
    return limit, limit.predictor(held_out.X, held_out.gates), name


def _train_and_compare(
    one: TrainerRun, limit: MarginLimit, norms: Mapping[str, OwnNorm]
) -> Iterator[Finding]:
    """Train a network by one trainer, and find how it compares with the limit."""
    own = norms.get(one.trainer)
    euclidean = own is None or own.euclidean
    setup, network, samples = one.setup, one.network, one.setup.samples
    parts, name = setup.parts, setup.parts.name
    by = f" by {one.among}" if one.among else ""
    setup.progress.stage(f"training a {parts.network_name}{by} for {setup.settings.n_steps} steps")
    classes = n_outputs(setup.train) > 1
    snapshots = None
    if not classes and is_planar(setup.train.X):  # maps are of the sign of one score
        from .drawing.map_rows import plane_snapshots

        snapshots = plane_snapshots(network, setup.train.X, setup.settings.n_steps)
    # The KKT fit of n (K - 1) relative margins costs more than a step: at the end alone.
    along = euclidean and not classes
    trajectory = fit(
        setup,
        network,
        *setup.train,
        settings=setup.settings,
        X_val=setup.held_out.X,
        gates_val=setup.held_out.gates,
        observer=Distances(limit, *samples, loss=setup.options.loss, kkt=along, own=own),
        callback=snapshots,
        state=f"run-{one.among}.safetensors" if one.among else STATE,
        first=one.first,
    )
    panels = Panels("runs:run_panels", (trajectory, *_pictured(setup, limit)))
    trained = Trained(network, trajectory, among=one.among)
    yield _asked(one, Finding("network", {"network": trained}, panels=(panels,)))
    if own is not None:  # at hand already, should what follows be interrupted
        yield norms_finding(one.trainer, norms, network, trajectory, None)
    setup.progress.stage("comparing")
    quick = not classes or n_margins(setup.train.y) <= MOST_MARGINS
    layers = None if own is None or euclidean else _layers(network, own)
    kkt = None
    if trained.separates and quick:
        # Their gates are given, so that there are no kinks.
        kkt = kkt_distance(network, *setup.train, norm=layers, kinks=False)
    comparison = compare(limit, network, *samples, kkt=kkt if euclidean else None, own=own)
    state = measure_network(network, *samples, kkt)
    assumptions = setup.declared(
        separable_assumptions(limit, comparison, trajectory, setup.train, setup.options.loss)
    )
    found = compared(limit, name, samples, state, trajectory, comparison, assumptions)
    yield _in_its_norm(found, own)
    if own is not None:
        yield norms_finding(one.trainer, norms, network, trajectory, kkt)
    known = evidence(limit, comparison, trajectory, **_theory(one, own))
    yield Finding("verdict", evidence=(known,))
    own_limit = limit if isinstance(limit, Limit) and euclidean and not parts.control else None
    if classes:
        from .classes.joint import joint_labels

        yield joint_labels(setup, limit, network)
    elif euclidean and (one.descends or not one.among):
        run = (trajectory, setup.settings)
        yield slow_units_finding(network, setup.train, own_limit, run, kkt, among=one.among)
    else:
        yield Finding.said("slow units", record={"unit_growth": None})
    if snapshots is not None and isinstance(limit, Limit):
        snapshots.take(int(trajectory.step[-1]))
        yield _maps(one, limit, name, snapshots)
    ahead = None
    if own_limit is not None and one.descends and not classes:
        ahead = agreement_ahead(network, *samples, own_limit, trajectory)
    future = prospects(
        trajectory,
        degree=int(network.degree),  # type: ignore[arg-type]
        settings=setup.settings,
        control=parts.control,
        ahead=ahead,
    )
    yield future
    predicted = "" if trajectory.stopped else farther_in_words(future)
    yield Finding("verdict", evidence=(replace(known, predicted=predicted),))


def _in_its_norm(found: Finding, own: OwnNorm | None) -> Finding:
    """Name the norm of a network's value on the screen where it is not that of the limit."""
    if own is None or own.limit:
        return found
    value = TABLE["objective"]
    sides = tuple(
        side if side.predicted or not isinstance(side.values.get(value.name), float)
        else replace(side, values={
            **side.values, value.name: f"{value.text(side.values[value.name])} {own.induced.norm}"
        })
        for side in found.views.sides
    )  # fmt: skip
    return found.but(sides=sides)


def _layers(network: torch.nn.Module, own: OwnNorm) -> dict[str, WeightNorm]:
    """Return the norm of each layer by the name of its weights."""
    first, *above = (name for name, one in network.named_parameters() if one.requires_grad)
    below, last = own.layers
    return dict.fromkeys((first, *above), below) | dict.fromkeys(above[-1:], last)


def _theory(one: TrainerRun, norm: OwnNorm | None) -> dict[str, Any]:
    """Return what theory says of a network of this run, and which of several it is."""
    parts = one.setup.parts
    own: dict[str, Any] = {"trainer": one.among}
    exact = norm is None or norm.induced.exact
    if isinstance(parts, JointParts) and not exact:
        name = parts.of(one.trainer, n_outputs(one.setup.train)).name
        return own | {"theory": "bound", "reason": f"{name} bounds the norm from below"}
    if norm is not None and not exact:
        reason = f"no theorem names its limit: {norm.induced.described} bounds it alone"
        return own | {"theory": "none", "reason": reason}
    if norm is not None and not norm.limit:
        own |= {"remark": f"of the largest margin in the {norm.induced.described}"}
    if parts.control:
        name = parts.name
        own |= {"theory": "control", "reason": f"{name} is a control: no network here goes there"}
    return own


def _asked(one: TrainerRun, found: Finding) -> Finding:
    """Add the choices that are this trainer's own, where others have theirs."""
    if not one.among:
        return found
    own = {name: getattr(one.setup.options, name) for name in (*SCHEDULE, "trainer")}
    return found.also(record={"options": own}, row=own)


def _maps(one: TrainerRun, limit: Limit, name: str, snapshots: NetworkSnapshots) -> Finding:
    """Return the maps of limit and network at times of its training, on the plane."""
    from .drawing.map_rows import gating_lines, map_row

    setup = one.setup
    lines = gating_lines(setup.gating, setup.train.X)
    title = f"limit beside {one.among}: {name}" if one.among else f"limit: {name}"
    row = map_row(
        limit, snapshots, setup.train, setup.gates_of, limit_title=title, lines=lambda _: lines
    )
    return Finding.said("maps", panels=(row,))
