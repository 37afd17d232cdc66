"""The run of DLGNs: train half-spaces, freeze them, predict, go on, compare."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from ..._support.solve import Status, to_numpy
from ...data.arrays import Floats, is_planar
from ...data.sample import Sample
from ...gates.layered import LinearGates
from ...limits.exact.path_limit import PathLimit
from ...limits.formulation import solve_limit
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
from ...runs.drawing.figures import Panels, Row
from ...runs.fit import fit
from ...runs.programs import StatedProgram, stated
from ...runs.reports.bounds import (
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
from ...runs.reports.trained import Trained, divergence, held_back
from ...runs.reports.verdict import Evidence, decide
from ...runs.setup import Setup, data_record, prepare, start
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
from .freezing import DLGNSetup, seen_inputs
from .regions import closed_samples, count_patterns, most_patterns
from .training import GateTraining, steepening, train_gates

DEEP = (
    "no theorem names the limit of a DLGN of several hidden layers. The path lasso is a lower "
    "bound of every network's value, not the limit; the point that a network is heading to is "
    "found from its weights and certified as a local optimum. Experts that were free parameters, "
    "one a path, would go to the machine of the overlap kernel: products of weights do not"
)
# Named where data are not separable; of more the first ones.
NAMED = 10


def run_dlgn(setup: Setup) -> Run[DLGNSetup]:
    """Train the half-spaces of a DLGN with soft gates, freeze them, and go on to the limit.

    Raises
    ------
    ValueError, FileNotFoundError
        If an option is out of range or the data are not there, before any long work.
    """
    options = setup.options
    phases = steepening(options.beta, options.final_beta, options.gate_steps)
    if options.depth == 2 and options.upper_units is not None:
        raise ValueError(
            f"`--upper-units {options.upper_units}` is for two hidden layers or more: give "
            "`--depth 3`, or leave it out"
        )
    upper = options.hidden_units if options.upper_units is None else options.upper_units
    samples = prepare(setup)
    network = DLGN(
        samples.train.X.shape[1],
        widths=(options.hidden_units, *[upper] * (options.depth - 2)),
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
    n_steps = sum(steps for _, steps in setup.phases)
    setup.progress.stage(f"training half-spaces with soft gates for {n_steps} steps")
    # Not homogeneous, so that trainers for margins do not take it; this one finds its own steps.
    settings = TrainingSettings(
        trainer="momentum",
        loss=setup.options.loss,
        n_checkpoints=setup.settings.n_checkpoints,
    )
    training = train_gates(
        setup.network,
        setup.train,
        setup.phases,
        settings=settings,
        callback=setup.progress.training(),
        folder=setup.folder,
    )
    yield _gates(training, setup)
    if training.finished:
        yield gating_file(setup.half_spaces)


def _predict(setup: DLGNSetup, found: Found) -> Iterator[Finding]:
    options = setup.options
    setup.progress.stage(f"solving {setup.program_name} ({options.solver})")
    limit = solve_limit(setup.formulation, *setup.seen[0], solver=options.solver, tol=options.tol)
    yield _with_closed(_of_limit(limit, setup), limit, setup)


def _of_limit(limit: Limit, setup: DLGNSetup) -> Finding:
    if isinstance(limit, PathLimit):
        return bound_finding(limit)
    return solved(limit, setup.program_name)


def _state(setup: DLGNSetup) -> Iterator[StatedProgram]:
    """State the program of the limit, or of the bound, in the half-spaces as they are drawn."""
    name, steps = setup.program_name, setup.options.gate_steps
    setup.progress.stage(f"stating {name} on {len(setup.train.y)} samples")
    note = f"half-spaces are as they were drawn, and a run trains them for {steps} steps first"
    yield stated(name, setup.formulation.literal(*setup.seen[0]), note if steps else "")


def _go_on(setup: DLGNSetup, found: Found) -> Iterator[Finding]:
    """Train the network with its gates frozen, and find how it compares."""
    limit, name, (train, held_out) = found["limit"], setup.program_name, setup.seen
    twin = setup.network.freeze_gates()
    setup.progress.stage(f"going on with frozen gates for {setup.settings.n_steps} steps")
    trajectory = fit(
        setup,
        twin,
        *train,
        settings=setup.settings,
        first=False,
        X_val=held_out.X,
        gates_val=held_out.gates,
        observer=Distances(None, train, held_out, loss=setup.options.loss),
    )
    predicted = to_numpy(limit.predictor(held_out.X, held_out.gates))
    panels = Panels("runs:run_panels", (trajectory, None, predicted, name))
    yield Finding("network", {"network": Trained(twin, trajectory)}, panels=(panels,))
    margin = float(trajectory.smallest_margin[-1])
    if not trajectory.finished or not margin > 0:
        known = Evidence(
            theory="limit" if setup.exact else "local limit",
            smallest_margin=margin,
            diverged=divergence(trajectory),
            reason=held_back(trajectory, "training was interrupted"),
        )
        yield Finding("verdict", evidence=(known,))
        return
    setup.progress.stage("finding the local limit")
    value = bounded_value(setup, twin, limit)
    setup.progress.stage("comparing")
    compared = compare_dlgn(setup, twin, value, limit)
    of_limit = _of_limit(limit, setup)
    both = comparison_finding(of_limit, compared, name)
    yield both.but(
        assumptions=(
            *both.views.assumptions,
            loss_vanishes(trajectory),
            MARGINS.found(smallest=margin),
            *assumptions_of(compared),
        ),
        row={**both.views.row, **kkt_distance(twin, *train).cells()},
        **_beside(limit, compared, name, trajectory),
    )
    if is_planar(setup.train.X):
        yield Finding.said("maps", panels=(_maps(setup, limit, value, twin),))


STAGES: tuple[Stage[DLGNSetup], ...] = (
    Stage(finds=_learn_gates, required=True),
    Stage(finds=_predict, states=_state),
    Stage(finds=_go_on, trains=True, when=lambda setup, found: usable(found["limit"])),
)


def _beside(
    limit: Limit, found: DLGNComparison, name: str, trajectory: Trajectory
) -> dict[str, Any]:
    """Return sides and verdicts: on the network, and on all where no theorem names a limit."""
    if isinstance(limit, PathLimit):
        evidence = local_evidence(found), bound_evidence(limit, found)
        return {"sides": bounded_sides(limit, found), "verdicts": tuple(map(decide, evidence))}
    beside = found.classifiers[name]
    predicted = {
        "objective": limit.objective, "lower_bound": limit.dual_objective, "gap": limit.gap,
    }  # fmt: skip
    network = {
        "objective": found.value,
        "margin_ratio": found.bound_ratio,
        "agreement": beside.agreement,
        "score_cosine": beside.score_cosine,
        "error": found.error_network,
    }
    turning = trajectory.stopped or "its weights still turn: give more `--steps`"
    dead = "it is heading to a local limit with units that are wrongly dead"
    known = Evidence(
        status=limit.status,
        near={"margin_ratio": found.bound_ratio},
        beside={"agreement": beside.agreement},
        reason=turning if found.local_bound_ratio >= 1 - GLOBAL else dead,
    )
    sides = (
        Side(name, predicted | {"error": beside.error}, predicted=True),
        Side("network", network),
    )
    return {"sides": sides, "verdicts": (decide(known),)}


def _gates(training: GateTraining, setup: DLGNSetup) -> Finding:
    """The training of the half-spaces, and the patterns that the samples have in them."""
    X, y, gates = setup.train.X, setup.train.y, setup.seen[0].gates
    widths, patterns = setup.network.widths, count_patterns(gates)
    most = min(most_patterns(sum(widths), X.shape[1]), len(X))
    betas = " -> ".join(f"{beta:g}" for beta in dict.fromkeys(training.betas)) or DASH
    steps, *rows = training.rows()
    count = ("activation patterns of samples", f"{patterns} (at most {most})")
    lines = (steps, ("beta", betas), *rows, count)
    return Finding.said(
        "gates",
        record={"gates": training.to_dict() | {"n_patterns": patterns}},
        tables=(Table("half-spaces (measured)", ("", "value"), lines),),
        panels=(gates_row(training, setup.half_spaces, Sample(X, y, gates), widths),),
        objects={"gating": setup.half_spaces, "gate_training": training},
        row=training.cells(),
        finished=training.finished,
    )


def _with_closed(found: Finding, limit: Limit, setup: DLGNSetup) -> Finding:
    """Name the samples that stand in the way where there is no limit."""
    if limit.status is not Status.NOT_SEPARABLE:
        return found
    closed = closed_samples(*setup.seen[0][::2], widths=setup.network.widths)
    why = "give more `--hidden-units` or `--gate-steps`, or another `--seed`"
    if len(closed):
        names = ", ".join(map(str, closed[:NAMED])) + (", ..." if len(closed) > NAMED else "")
        why = f"no path reaches the samples {names} (by row number)"
    return found.but(
        record={**found.views.record, "closed_samples": closed.tolist()},
        shortfall=f"no weights separate the data behind these gates (proved): {why}",
    )


def _maps(setup: DLGNSetup, limit: Limit, value: BoundedValue, twin: DGN) -> Row:
    """The program's solution, the local limit and the network on the plane."""
    seen, local = (setup.half_spaces, setup.constant), value.limit
    scorers = [(setup.program_name, partial(_predicted, limit, *seen), limit.objective)]
    if local is not None:
        scorers.append(("local limit", partial(_predicted, local, *seen), local.value))
    train = setup.seen[0]
    margin = float((train.y * scores(twin, train)).min())
    scorers.append(("network", partial(_scores, twin, *seen), value.value * margin))
    return decision_row(setup.train, setup.half_spaces, scorers)


def _predicted(limit: Any, gating: LinearGates, constant: bool, X: Floats) -> Floats:
    seen = seen_inputs(gating, constant, X, np.ones(len(X)))
    if isinstance(limit, LocalLimit) and constant:
        seen = one_input(seen)
    return to_numpy(limit.predictor(seen.X, seen.gates))


def _scores(twin: DGN, gating: LinearGates, constant: bool, X: Floats) -> Floats:
    return scores(twin, seen_inputs(gating, constant, X, np.ones(len(X))))
