"""The run of a network that is trained with weight decay, beside its finite limit."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._support.solve import Status, to_numpy
from ...limits.finite.limit import FitLimit
from ...quantities.assumptions import Assumption
from ..drawing.figures import Panel
from ..parts import Parts
from ..programs import StatedProgram, stated
from ..reports.finding import Finding
from ..reports.findings import gating_file
from ..reports.trained import Trained, divergence
from ..reports.verdict import Evidence
from ..separable import SeparableSetup
from ..setup import SampleSetup, data_record
from ..stages import Found, Run, Stage
from .decay_programs import ENDED, DecayProgram, decay_program

if TYPE_CHECKING:
    from ...limits.exact.multiclass import MarginLimit
    from ...training.trajectory import Trajectory
    from .decay_comparison import DecayComparison


@dataclass(frozen=True, eq=False, kw_only=True)
class DecayedSetup(SeparableSetup):
    """The setup of a run with weight decay.

    Attributes
    ----------
    finite : DecayProgram
    """

    finite: DecayProgram


def decayed_run(samples: SampleSetup, parts: Parts) -> Run[DecayedSetup]:
    """Predict the finite limit of a network with weight decay, train it, and compare them.

    Raises
    ------
    ValueError
        If no convex program of such training is known.
    """
    finite = _program(samples, parts)
    setup = DecayedSetup(**samples.shared, parts=parts, finite=finite)
    heading = setup.heading(
        data_record(setup.dataset),
        title=f"{parts.network_name} with weight decay beside its {finite.name}",
        theorem=finite.theorem,
        source=finite.source,
        program=finite.text,
    )
    assumed = tuple(one.declared(setup.options) for one in finite.premises)
    heading = replace(heading, assumptions=assumed)
    return Run(setup=setup, heading=heading, stages=STAGES, checks=setup.check)


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


def _state(setup: DecayedSetup) -> Iterator[StatedProgram]:
    finite = setup.finite
    setup.progress.stage(f"stating the {finite.name} on {len(setup.train.y)} samples")
    yield stated(f"weight decay, {finite.name}", finite.literal.literal(*setup.train))


def _predict(setup: DecayedSetup, found: Found) -> Iterator[Finding]:
    setup.progress.stage(f"solving the {setup.finite.name} on {len(setup.train.y)} samples")
    limit = setup.finite.solve(setup.train, setup.options.tol)
    yield Finding("limit", {"limit": limit}, setup.finite.name)
    yield gating_file(setup.gating)


def _train(setup: DecayedSetup, found: Found) -> Iterator[Finding]:
    """Train the network, and compare it with its limit and with that without decay."""
    from ..fit import fit
    from .decay_comparison import compare_decayed, observe_decayed

    limit, network = found["limit"], setup.runs[0].network
    setup.progress.stage(f"solving {setup.parts.name}, the limit without decay")
    beside = setup.solved()
    setup.progress.stage(f"training for {setup.settings.n_steps} steps")
    trajectory = fit(
        setup,
        network,
        *setup.train,
        settings=setup.settings,
        X_val=setup.held_out.X,
        gates_val=setup.held_out.gates,
        observer=partial(observe_decayed, limit, setup.train),
    )
    # What draws loads torch, which a limit alone does not need.
    from ..drawing.weight_decay import plot_decayed_units, plot_value_gap

    panels: list[Panel] = [partial(plot_value_gap, trajectory)]
    if len(limit.unit_norms) > 1:
        panels.append(partial(plot_decayed_units, trajectory, limit.unit_norms))
    ended = Trained(network, trajectory, margins=False)
    yield Finding("network", {"network": ended}, panels=tuple(panels))
    setup.progress.stage("comparing")
    ratio = _margin_ratio(limit, beside, setup)
    compared = compare_decayed(limit, network, *setup.samples, ratio)
    yield Finding(
        "comparison", {"comparison": compared}, assumptions=_measured(setup, limit, network)
    )
    yield Finding("verdict", evidence=(_evidence(limit, compared, trajectory),))


STAGES: tuple[Stage[DecayedSetup], ...] = (
    Stage(finds=_predict, states=_state),
    Stage(
        finds=_train,
        trains=True,
        when=lambda setup, found: found["limit"].status.severity <= 1,
    ),
)


def _evidence(limit: FitLimit, found: DecayComparison, trajectory: Trajectory) -> Evidence:
    """Return the evidence on a network beside its finite limit."""
    return Evidence(
        status=limit.status,
        near=_near(limit, found),
        beside={"agreement": found.agreement},
        diverged=divergence(trajectory),
        reason=trajectory.stopped
        or "steps have not converged: give more `--steps`, or another `--learning-rate`",
        proof=f"{limit.advice} (gap {limit.gap:.1e}, tolerance {limit.tol:.0e})",
        remark=_remark(limit, found) if trajectory.finished else "interrupted",
    )


def _near(limit: FitLimit, found: DecayComparison) -> dict[str, float]:
    """Return what decides: the value over the optimum, or scores where that may be 0."""
    name = "value_gap" if limit.radius is None else "over_optimum"
    # Scores are unique, whatever coefficients are.
    name = "score_distance" if math.isnan(getattr(found, name)) else name
    return {name: getattr(found, name)}


def _remark(limit: FitLimit, found: DecayComparison) -> str:
    """Say where the value alone is predicted."""
    if limit.radius is None or limit.binds:
        return ""
    many = "" if limit.is_unique else ": many coefficients have this value"
    return f"the ball does not bind{many}, and its scores are {found.score_distance:.0%} off"


def _measured(setup: DecayedSetup, limit: FitLimit, network: Any) -> tuple[Assumption, ...]:
    """Return what the network itself tells of the premises."""
    if limit.radius is not None or limit.penalty is None:
        return ()
    X, y, gates = setup.train
    if setup.finite.literal.norm != "units":
        one = ENDED.found(said="training ends at no strict saddle", largest=0.0, how="one unit")
        return (one,)
    from ...limits.finite.problem import fit_problem

    problem = fit_problem(X, y, gates, limit.loss, limit.n_contexts)
    zeta = to_numpy(network.zeta().detach().double())
    r = problem.loss.multipliers(problem.scores(zeta), problem.y)
    sizes = problem.unit_norms(problem.adjoint(r)) / limit.penalty
    dead = problem.unit_norms(zeta) <= 1e-6 * problem.unit_norms(zeta).max(initial=0.0)
    largest = float(np.max(sizes[dead], initial=0.0))
    how = f"measured: {largest:.4g} of it" if dead.any() else "measured: no unit is dead"
    return (ENDED.found(largest=largest, how=how),)


def _margin_ratio(limit: FitLimit, beside: MarginLimit, setup: SampleSetup) -> float:
    """Return the margin of the finite limit over the largest, each per unit of the norm."""
    if beside.status not in (Status.SOLVED, Status.INACCURATE) or limit.radius is not None:
        return math.nan
    margin = float((to_numpy(setup.train.y) * limit.scores).min())
    return margin / limit.size * beside.dual_objective if limit.size > 0 else math.nan
