"""The run of DLGNs: train half-spaces, freeze them, predict, go on, compare."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._support.solve import Status, to_numpy
from ...data.arrays import Floats, is_planar
from ...data.sample import Sample
from ...gates.layered import LinearGates
from ...limits.exact.frelu import SVMFReLU
from ...limits.exact.path_lasso import PathLasso
from ...limits.exact.path_limit import PathLimit
from ...limits.formulation import Formulation, solve_limit
from ...limits.limit import Limit
from ...limits.local.limit import LocalLimit
from ...measures.bounded_value import BoundedValue
from ...measures.distances import Distances
from ...measures.kkt import kkt_distance
from ...measures.scalars import scores
from ...networks.gated.dgn import DGN
from ...networks.gated.dlgn import DLGN
from ...quantities.formatting import DASH
from ...quantities.premises import MARGINS
from ...quantities.said import Side, Table
from ...runs.drawing.figures import Panels
from ...runs.fit import fit
from ...runs.programs import StatedProgram, stated
from ...runs.reports.bounds import (
    BOUND,
    bound_evidence,
    bound_finding,
    bounded_sides,
    comparison_finding,
    local_evidence,
)
from ...runs.reports.finding import Finding
from ...runs.reports.findings import (
    gating_file,
    loss_vanishes,
    solved,
    usable,
)
from ...runs.reports.trained import Trained, divergence, unseparated
from ...runs.reports.verdict import Evidence, Verdict, decide
from ...runs.setup import SampleSetup, Setup, data_record, prepare, start
from ...runs.stages import Found, Run, Stage
from ...training.settings import TrainingSettings
from ...training.trainers import check_trainer
from ...training.trajectory import Trajectory
from .comparison import (
    GLOBAL,
    DLGNComparison,
    assumptions_of,
    bounded_value,
    compare_dlgn,
    one_input,
)
from .figure import decision_row, gates_row
from .formulation import ConstantExperts
from .regions import closed_samples, count_patterns, most_patterns
from .training import GateTraining, gating_of, steepening, train_gates

if TYPE_CHECKING:
    from .model import DLGNOptions

DEEP = (
    "no theorem names the limit of a DLGN of several hidden layers. The path lasso is a lower "
    "bound of every network's value, not the limit; the point that a network is heading to is "
    "found from its weights and certified as a local optimum. Experts that were free parameters, "
    "one a path, would go to the machine of the overlap kernel: products of weights do not"
)
GATES_RUN = "gates-run-{}.safetensors"
# Named where data are not separable; of more the first ones.
NAMED = 10


@dataclass(frozen=True, eq=False)
class Frozen:
    """A DLGN whose gates have been frozen: the data as its value network sees them."""

    setup: SampleSetup
    gating: LinearGates
    samples: tuple[Sample, Sample]  # inputs of the experts, labels, gates
    widths: tuple[int, ...]

    @property
    def exact(self) -> bool:
        """True if a theorem names the limit: with one hidden layer."""
        return len(self.widths) == 1

    @cached_property
    def name(self) -> str:
        """Name of the program that is solved."""
        if not self.exact:
            return BOUND
        return "group lasso" if self.setup.options.experts == "linear" else ConstantExperts.name

    @property
    def formulation(self) -> Formulation[Any]:
        """The program: the limit itself with one hidden layer, the bound with more."""
        if not self.exact:
            return PathLasso(self.widths)
        return SVMFReLU() if self.setup.options.experts == "linear" else ConstantExperts()


@dataclass(frozen=True, eq=False, kw_only=True)
class DLGNSetup(SampleSetup):
    """The setup of a run, with its network, whose half-spaces train first.

    Attributes
    ----------
    network : DLGN
    phases : tuple of (float, int)
        Steepness of the soft gates, and steps at it.
    """

    network: DLGN
    phases: tuple[tuple[float, int], ...]

    @cached_property
    def frozen(self) -> Frozen:
        """The network with its gates frozen as they are when it is first asked for."""
        return _freeze(self, self.network)


def run_dlgn(setup: Setup) -> Run[DLGNSetup]:
    """Train the half-spaces of a DLGN with soft gates, freeze them, and go on to the limit.

    Raises
    ------
    ValueError, FileNotFoundError
        If an option is out of range or the data are not there, before any long work.
    """
    options = setup.options
    phases = steepening(options.beta, options.final_beta, options.gate_steps)
    _check_layers(options)
    samples = prepare(setup)
    network = DLGN(
        samples.train.X.shape[1],
        widths=_widths(options),
        constant_experts=options.experts == "constant",
        beta=options.beta,
        **start(options, setup.seeds.weights),
    )
    whole = DLGNSetup(**samples.shared, network=network, phases=phases)
    heading = setup.heading(
        data_record(samples.dataset),
        title=f"DLGN of {options.experts} experts, its half-spaces frozen",
        theorem="" if options.depth == 2 else DEEP,
        source="none names the limit of a DLGN of several hidden layers",
    )
    takes = partial(check_trainer, options.trainer, network.value)
    return Run(setup=whole, heading=heading, stages=STAGES, checks=takes)


def _learn_gates(setup: DLGNSetup, found: Found) -> Iterator[Finding]:
    setup.progress.stage(f"training half-spaces with soft gates for {_steps(setup.phases)} steps")
    training = _train_gates(setup, setup.network, setup.phases)
    yield _gates(training, setup.frozen)
    if training.finished:
        yield gating_file(setup.frozen.gating)


def _predict(setup: DLGNSetup, found: Found) -> Iterator[Finding]:
    frozen = setup.frozen
    setup.progress.stage(f"solving {frozen.name} ({setup.options.solver})")
    limit = _solve(frozen)
    yield _with_closed(_of_limit(limit, frozen), limit, frozen)


def _of_limit(limit: Limit, frozen: Frozen) -> Finding:
    return bound_finding(limit) if isinstance(limit, PathLimit) else solved(limit, frozen.name)


def _state(setup: DLGNSetup) -> Iterator[StatedProgram]:
    """State the program of the limit, or of the bound, in the half-spaces as they are drawn."""
    frozen, steps = setup.frozen, setup.options.gate_steps
    setup.progress.stage(f"stating {frozen.name} on {len(setup.train.y)} samples")
    note = f"half-spaces are as they were drawn, and a run trains them for {steps} steps first"
    yield stated(frozen.name, frozen.formulation.literal(*frozen.samples[0]), note if steps else "")


def _go_on(setup: DLGNSetup, found: Found) -> Iterator[Finding]:
    """Train the network with its gates frozen, and find how it compares."""
    frozen, limit = setup.frozen, found["limit"]
    twin = setup.network.freeze_gates()
    setup.progress.stage(f"going on with frozen gates for {setup.settings.n_steps} steps")
    trajectory = fit(
        setup,
        twin,
        *frozen.samples[0],
        settings=setup.settings,
        first=False,
        X_val=frozen.samples[1].X,
        gates_val=frozen.samples[1].gates,
        observer=Distances(None, *frozen.samples, loss=setup.options.loss),
    )
    held_out = to_numpy(limit.predictor(frozen.samples[1].X, frozen.samples[1].gates))
    panels = Panels("runs:run_panels", (trajectory, None, held_out, frozen.name))
    yield Finding("network", {"network": Trained(twin, trajectory)}, panels=(panels,))
    if not trajectory.finished or not trajectory.smallest_margin[-1] > 0:
        yield Finding("verdict", evidence=(_unseparated(limit, trajectory),))
        return
    setup.progress.stage("finding the local limit")
    constant = setup.options.experts == "constant"
    value = bounded_value(twin, limit, frozen.samples[0], constant=constant)
    known = (
        loss_vanishes(trajectory),
        MARGINS.found(smallest=float(trajectory.smallest_margin[-1])),
    )
    alone = _of_limit(limit, frozen)
    alone = alone.but(assumptions=(*alone.views.assumptions, *known))
    yield from _compared(frozen, limit, value, twin, alone)


STAGES: tuple[Stage[DLGNSetup], ...] = (
    Stage(finds=_learn_gates, required=True),
    Stage(finds=_predict, states=_state),
    Stage(finds=_go_on, trains=True, when=lambda setup, found: usable(found["limit"])),
)


def _compared(
    frozen: Frozen, limit: Limit, value: BoundedValue, twin: DGN, alone: Finding
) -> Iterator[Finding]:
    setup, samples = frozen.setup, frozen.samples
    setup.progress.stage("comparing")
    comparison = compare_dlgn(
        twin, value, limit, samples, widths=frozen.widths, name=frozen.name, tol=setup.options.tol,
        constant=setup.options.experts == "constant",
    )  # fmt: skip
    found = comparison_finding(alone, comparison, frozen.name)
    yield found.but(
        assumptions=(*found.views.assumptions, *assumptions_of(comparison)),
        row={**found.views.row, **kkt_distance(twin, *samples[0]).cells()},
        verdicts=_verdicts(limit, comparison, frozen.name),
        sides=_sides(frozen.name, limit, comparison),
    )
    if is_planar(setup.train.X):
        yield Finding.said("maps", panels=(_maps(frozen, limit, comparison, twin),))


def _sides(name: str, limit: Limit, comparison: DLGNComparison) -> tuple[Side, ...]:
    """Return limit or bound, local limit and network as columns of the first screen."""
    if isinstance(limit, PathLimit):
        return bounded_sides(limit, comparison)
    beside = comparison.classifiers[name]
    predicted = {
        "objective": limit.objective, "lower_bound": limit.dual_objective, "gap": limit.gap,
    }  # fmt: skip
    return (
        Side(name, predicted | {"error": beside.error}, predicted=True),
        Side(
            "network",
            {
                "objective": comparison.value,
                "margin_ratio": comparison.bound_ratio,
                "agreement": beside.agreement,
                "score_cosine": beside.score_cosine,
                "error": comparison.error_network,
            },
        ),
    )


def _verdicts(limit: Limit, comparison: DLGNComparison, name: str) -> tuple[Verdict, ...]:
    """Return the verdict on the network, and on all networks where no theorem names a limit."""
    if isinstance(limit, PathLimit):
        return decide(local_evidence(comparison)), decide(bound_evidence(limit, comparison))
    near = {"margin_ratio": comparison.bound_ratio}
    reason = "" if comparison.local_bound_ratio >= 1 - GLOBAL else (
        "it is heading to a local limit with units that are wrongly dead"
    )  # fmt: skip
    known = Evidence(
        status=limit.status,
        near=near,
        beside={"agreement": comparison.classifiers[name].agreement},
        reason=reason or "its weights still turn: give more `--steps`",
    )
    return (decide(known),)


def _unseparated(limit: Limit, trajectory: Trajectory) -> Evidence:
    """Return the evidence on a network that was not compared."""
    margin = float(trajectory.smallest_margin[-1])
    return Evidence(
        theory="local limit" if isinstance(limit, PathLimit) else "limit",
        smallest_margin=margin,
        diverged=divergence(trajectory),
        reason=unseparated(trajectory) or "training was interrupted",
    )


def _train_gates(
    setup: SampleSetup, network: DLGN, parts: tuple[tuple[float, int], ...]
) -> GateTraining:
    # Not homogeneous, so that trainers for margins do not take it; this one finds its own steps.
    settings = TrainingSettings(
        trainer="momentum",
        loss=setup.options.loss,
        n_checkpoints=setup.settings.n_checkpoints,
    )
    names = {index: GATES_RUN.format(index) for index in range(len(parts))}
    return train_gates(
        network,
        Sample(setup.train.X, setup.train.y, None),
        parts,
        settings=settings,
        callback=setup.progress.training(),
        folder_state={index: setup.folder.state(name) for index, name in names.items()},
        resume=setup.folder.resume,
    )


def _freeze(setup: SampleSetup, network: DLGN) -> Frozen:
    """The gates of now, by one gating for training and held-out inputs alike."""
    gating = gating_of(network)
    constant = network.constant_experts
    samples = tuple(
        Sample(
            np.ones_like(one.X) if constant else one.X, one.y, gating.transform(one.X).astype(float)
        )
        for one in setup.samples
    )
    return Frozen(setup, gating, (samples[0], samples[1]), network.widths)


def _solve(frozen: Frozen) -> Limit:
    options = frozen.setup.options
    limit: Limit = solve_limit(
        frozen.formulation, *frozen.samples[0], solver=options.solver, tol=options.tol
    )
    return limit


def _gates(training: GateTraining, frozen: Frozen) -> Finding:
    """The training of the half-spaces, and the patterns that the samples have in them."""
    sample, X = frozen.samples[0], frozen.setup.train.X
    patterns = count_patterns(sample.gates)
    most = most_patterns(sum(frozen.widths), X.shape[1])
    betas = " -> ".join(f"{beta:g}" for beta in dict.fromkeys(training.betas)) or DASH
    steps, *rows = training.rows()
    beta = ("beta", betas)
    count = ("activation patterns of samples", f"{patterns} (at most {min(most, len(X))})")
    row = gates_row(training, frozen.gating, Sample(X, sample.y, sample.gates), frozen.widths)
    return Finding.said(
        "gates",
        record={"gates": training.to_dict() | {"n_patterns": patterns}},
        tables=(Table("half-spaces (measured)", ("", "value"), (steps, beta, *rows, count)),),
        panels=(row,),
        objects={"gating": frozen.gating, "gate_training": training},
        row=training.cells(),
        finished=training.finished,
    )


def _with_closed(found: Finding, limit: Limit, frozen: Frozen) -> Finding:
    """Name the samples that stand in the way where there is no limit."""
    if limit.status is not Status.NOT_SEPARABLE:
        return found
    closed = closed_samples(*frozen.samples[0][::2], widths=frozen.widths)
    why = "give more `--hidden-units` or `--gate-steps`, or another `--seed`"
    if len(closed):
        names = ", ".join(map(str, closed[:NAMED])) + (", ..." if len(closed) > NAMED else "")
        why = f"no path reaches the samples {names} (by row number)"
    return found.but(
        record={**found.views.record, "closed_samples": closed.tolist()},
        shortfall=f"no weights separate the data behind these gates (proved): {why}",
    )


def _maps(frozen: Frozen, limit: Limit, value: BoundedValue, twin: DGN) -> Any:
    """The program's solution, the local limit and the network on the plane."""
    seen = (frozen.gating, frozen.setup.options.experts == "constant")
    scorers = [(frozen.name, partial(_predicted, limit, *seen), limit.objective)]
    local = value.limit
    if local is not None:
        scorers.append(("local limit", partial(_predicted, local, *seen), local.value))
    margin = float((frozen.samples[0].y * scores(twin, frozen.samples[0])).min())
    scorers.append(("network", partial(_scores, twin, *seen), value.value * margin))
    sample = Sample(frozen.setup.train.X, frozen.setup.train.y, None)
    return decision_row(sample, frozen.gating, scorers)


def _predicted(limit: Any, gating: LinearGates, constant: bool, X: Floats) -> Floats:
    seen = _seen(gating, constant, X)
    if isinstance(limit, LocalLimit) and constant:
        seen = one_input(seen)
    return to_numpy(limit.predictor(seen.X, seen.gates))


def _scores(twin: DGN, gating: LinearGates, constant: bool, X: Floats) -> Floats:
    return scores(twin, _seen(gating, constant, X))


def _seen(gating: LinearGates, constant: bool, X: Floats) -> Sample:
    """New inputs as the value network sees them: ones where its experts are constant."""
    gates = gating.transform(X).astype(float)
    return Sample(np.ones_like(X) if constant else X, np.ones(len(X)), gates)


def _check_layers(options: DLGNOptions) -> None:
    """See that units of further layers are asked for where there are such; ValueError if not."""
    if options.depth == 2 and options.upper_units is not None:
        raise ValueError(
            f"`--upper-units {options.upper_units}` is for two hidden layers or more: give "
            "`--depth 3`, or leave it out"
        )


def _widths(options: DLGNOptions) -> tuple[int, ...]:
    """Units of each hidden layer."""
    upper = options.hidden_units if options.upper_units is None else options.upper_units
    return (options.hidden_units, *[upper] * (options.depth - 2))


def _steps(parts: tuple[tuple[float, int], ...]) -> int:
    return sum(steps for _, steps in parts)
