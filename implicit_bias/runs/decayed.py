"""The run of a network that is trained with weight decay, beside its finite limit."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from .._solve import MaxMarginProgram, Status, to_numpy
from ..drawing.figures import Panel
from ..finite_limits.limit import FitLimit
from ..limits.limit import Limit
from ..quantities.assumptions import Assumption
from ..quantities.said import Side, Table
from ..reports.finding import Finding
from ..reports.findings import gating_file
from ..reports.report import Report
from ..reports.trained import Trained, divergence
from ..reports.verdict import Evidence
from .decay_programs import ENDED, DecayProgram, decay_program
from .gathering import gather
from .parts import Parts
from .programs import RunPrograms, stated
from .setup import SampleSetup, data_record

if TYPE_CHECKING:
    from .decay_comparison import DecayComparison
    from .trainer_run import TrainerRun

__all__ = ["decayed_programs", "decays", "run_decayed"]


def decays(options: Any) -> bool:
    """Return whether options ask for weight decay.

    Raises
    ------
    ValueError
        If they ask for decoupled decay or the squared loss, and for no decay.
    """
    found = bool(getattr(options, "weight_decay", 0.0))
    if not found and getattr(options, "decoupled", False):
        raise ValueError("`decoupled` is a form of weight decay: give `--weight-decay`")
    if not found and options.loss == "squared":
        raise ValueError(
            "`loss` 'squared' has a program with weight decay alone: give `--weight-decay`, or "
            "take `diagonal` or `gdln`, whose limits are those of the squared loss"
        )
    return found


def run_decayed(setup: SampleSetup, parts: Parts) -> Report:
    """Predict the finite limit of a network with weight decay, train it, and compare them.

    Raises
    ------
    ValueError
        If no convex program of such training is known, before any long work.
    """
    finite = _program(setup, parts)
    margin = parts.formulation.program(*setup.train)
    run = None
    if setup.trains:
        from .trainer_run import trainer_runs  # with torch, which no limit alone needs

        (run,) = trainer_runs(setup, parts)
    heading = setup.heading(
        data_record(setup.dataset),
        title=f"{parts.network_name} with weight decay beside its {finite.name}",
        theorem=finite.theorem,
        source=finite.source,
    )
    heading = replace(
        heading,
        program=finite.text,
        assumptions=tuple(one.declared(setup.options) for one in finite.premises),
    )
    return gather(heading, _find(setup, parts, finite, margin, run), setup.folder)


def decayed_programs(setup: SampleSetup, parts: Parts) -> RunPrograms:
    """State the finite program in cvxpy."""
    finite = _program(setup, parts)
    setup.progress.stage(f"stating the {finite.name} on {len(setup.train.y)} samples")
    program = stated(f"weight decay, {finite.name}", finite.literal.literal(*setup.train), "")
    return RunPrograms(setup.model, setup.dataset.description, (program,))


def _program(setup: SampleSetup, parts: Parts) -> DecayProgram:
    if parts.architecture is None:
        raise ValueError(
            f"`weight_decay` of {setup.model.name} has no program here: take linear, deep-linear, "
            "gln or frelu"
        )
    if setup.options.classes != "two":
        raise ValueError(f"`classes` {setup.options.classes!r} with weight decay: take two")
    if "," in setup.options.trainer:
        raise ValueError("`trainer`: with weight decay one trainer has one limit, name one")
    if setup.settings.batch_size:
        raise ValueError(
            "`batch_size` must be 0 with weight decay: steps on batches end elsewhere, and where "
            "is not predicted"
        )
    return decay_program(setup.options, parts.architecture)


def _find(
    setup: SampleSetup,
    parts: Parts,
    finite: DecayProgram,
    margin: MaxMarginProgram,
    run: TrainerRun | None,
) -> Iterator[Finding]:
    """Yield the findings of the run, each as soon as it is known."""
    options = setup.options
    setup.progress.stage(f"solving the {finite.name} on {len(setup.train.y)} samples")
    limit = finite.solve(setup.train, options.tol)
    yield _solved(limit, finite.name)
    yield gating_file(setup.gating)
    if limit.status.severity > 1 or run is None:
        return
    setup.progress.stage(f"solving {parts.formulation.name}, the limit without decay")
    beside = parts.solve(margin, setup.gates[0], solver=options.solver, tol=options.tol)
    yield from _train_and_compare(run, limit, finite, _margin_ratio(limit, beside, setup))


def _train_and_compare(
    run: TrainerRun, limit: FitLimit, finite: DecayProgram, margin_ratio: float
) -> Iterator[Finding]:
    from .decay_comparison import DecayObserver, compare_decayed
    from .fit import fit

    setup, network = run.setup, run.network
    setup.progress.stage(f"training for {setup.settings.n_steps} steps")
    trajectory = fit(
        setup,
        network,
        *setup.train,
        settings=setup.settings,
        X_val=setup.held_out.X,
        gates_val=setup.held_out.gates,
        observer=DecayObserver(limit, setup.train),
    )
    # What draws loads torch, which a limit alone does not need.
    from ..drawing.weight_decay import plot_decayed_units, plot_value_gap

    panels: list[Panel] = [partial(plot_value_gap, trajectory)]
    if len(limit.unit_norms) > 1:
        panels.append(partial(plot_decayed_units, trajectory, limit.unit_norms))
    yield Finding(
        "network", {"network": Trained(network, trajectory, margins=False)}, panels=tuple(panels)
    )
    setup.progress.stage("comparing")
    found = compare_decayed(limit, network, *setup.samples, margin_ratio)
    table = Table("network beside its finite limit", ("", "value"), tuple(found.rows()))
    side = Side(
        "network",
        {"value_gap": found.value_gap, "over_optimum": found.over_optimum,
         "score_distance": found.score_distance, "agreement": found.agreement},
    )  # fmt: skip
    yield Finding.measured(
        "comparison",
        found,
        tables=(table,),
        sides=(side,),
        assumptions=_measured(finite, limit, network, setup),
    )
    yield Finding(
        "verdict",
        evidence=(
            Evidence(
                status=limit.status,
                near={"value_gap": found.value_gap}
                if limit.radius is None
                else {"over_optimum": found.over_optimum},
                beside={"agreement": found.agreement},
                diverged=divergence(trajectory),
                reason="steps have not converged: give more `--steps`, or another "
                "`--learning-rate`",
                remark=_remark(limit, found) if trajectory.finished else "interrupted",
            ),
        ),
    )


def _remark(limit: FitLimit, found: DecayComparison) -> str:
    """Say where the value alone is predicted."""
    if limit.radius is None or limit.binds:
        return ""
    return (
        "the ball does not bind: many coefficients have this value, and its scores are "
        f"{found.score_distance:.0%} off"
    )


def _measured(
    finite: DecayProgram, limit: FitLimit, network: Any, setup: SampleSetup
) -> tuple[Assumption, ...]:
    """Return what the network itself tells of the premises."""
    if limit.radius is not None or limit.penalty is None:
        return ()
    X, y, gates = setup.train
    if finite.norm != "units":
        one = ENDED.found(said="training ends at no strict saddle", largest=0.0, how="one unit")
        return (one,)
    from ..finite_limits.problem import fit_problem

    problem = fit_problem(X, y, gates, limit.loss, limit.n_contexts)
    zeta = to_numpy(network.zeta().detach().double())
    r = problem.loss.multipliers(problem.scores(zeta), problem.y)
    sizes = problem.unit_norms(problem.adjoint(r)) / limit.penalty
    dead = problem.unit_norms(zeta) <= 1e-6 * problem.unit_norms(zeta).max(initial=0.0)
    largest = float(np.max(sizes[dead], initial=0.0))
    how = f"measured: {largest:.4g} of it" if dead.any() else "measured: no unit is dead"
    return (ENDED.found(largest=largest, how=how),)


def _solved(limit: FitLimit, name: str) -> Finding:
    """Return the finding of a finite limit."""
    return Finding.said(
        "limit",
        record={"limit": limit.to_dict()},
        tables=limit.tables(name),
        files=limit.files("limit"),
        statuses=limit.statuses(name),
        certificates=limit.proofs(name),
        row={"limit": name, **limit.cells()},
        sides=limit.sides(name),
        objects={"limit": limit},
        verdicts=(),
    )


def _margin_ratio(limit: FitLimit, beside: Limit, setup: SampleSetup) -> float:
    """Return the margin of the finite limit over the largest, each per unit of the norm."""
    if beside.status not in (Status.SOLVED, Status.INACCURATE) or limit.radius is not None:
        return math.nan
    margin = float((to_numpy(setup.train.y) * limit.scores).min())
    return margin / limit.size * beside.dual_objective if limit.size > 0 else math.nan
