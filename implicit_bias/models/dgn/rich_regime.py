"""The rich regime: networks trained from several starts, their local limits, a certified bound."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import torch

from ...data.sample import Sample
from ...limits.exact.path_lasso import PathLasso
from ...limits.exact.path_limit import PathLimit
from ...limits.formulation import solve_limit
from ...limits.local.limit import same_limit
from ...limits.local.orbits import limits_reached
from ...limits.local.search import local_limit
from ...measures.bounded_value import BoundedComparison, BoundedValue, measure_bounded_value
from ...measures.scalars import error_rate, scores
from ...runs.drawing.runs import plot_growth
from ...runs.programs import StatedProgram, stated
from ...runs.reports.bounds import (
    BOUND,
    LASSO,
    bound_evidence,
    bound_finding,
    bounded_sides,
    comparison_finding,
    local_evidence,
    strict_local_optimum,
)
from ...runs.reports.finding import Finding
from ...runs.reports.findings import loss_vanishes, usable
from ...runs.reports.trained import Trained, divergence, held_back
from ...runs.reports.verdict import decide
from ...runs.reports.views import Views
from ...runs.stages import Found, Stage
from ...runs.starts import Start, start_files, train_starts
from .figure import plot_distances, plot_residuals, plot_values, plot_weights
from .gated_layers import DGNSetup, as_begun, held_out_of, make_network, network_name, widths_of
from .model import ATTAINED
from .rich_comparison import (
    ValueObserver,
    compare_classifiers,
    distances_along,
    starts_table,
)


def _bound(setup: DGNSetup, found: Found) -> Iterator[Finding]:
    """The bound of all networks."""
    options = setup.options
    setup.progress.stage(f"solving the path lasso on {len(setup.train.y)} samples")
    yield bound_finding(
        solve_limit(_formulation(setup), *setup.train, solver=options.solver, tol=options.tol)
    )


def _state(setup: DGNSetup) -> Iterator[StatedProgram]:
    """State the bound; the program of the local limit is not convex."""
    setup, note = as_begun(setup)
    setup.progress.stage(f"stating the path lasso on {len(setup.train.y)} samples")
    local = "the program of the local limit beside it is not convex"
    notes = "; ".join([note, local] if note else [local])
    yield stated(BOUND, _formulation(setup).literal(*setup.train), notes)


def _formulation(setup: DGNSetup) -> PathLasso:
    options = setup.options
    return PathLasso(widths_of(options), contexts=options.contexts is not None)


def _train(setup: DGNSetup, found: Found) -> Iterator[Finding]:
    """The networks, their local limits, and what stands beside the first of them."""
    options, sample, bound = setup.options, setup.train, found["limit"]
    make = partial(make_network, options, sample.X.shape[1])
    observer = ValueObserver(sample)
    starts = train_starts(setup, make, network_name(options), first=0, observer=observer)
    yield Finding("network", {"network": Trained(starts[0].network, starts[0].trajectory)})
    if not starts[0].trajectory.finished:
        return
    setup.progress.stage("finding the local limits")
    values: list[BoundedValue] = []
    for one in starts:
        values.append(measure_bounded_value(one.network, sample, float(bound.dual_objective)))
        setup.progress.advance(len(values), len(starts))
    yield _networks(starts, values, bound)
    setup.progress.stage("comparing")
    if values[0].local is not None:
        yield _compared(setup, starts[0], values[0], bound, bound_finding(bound))
    if options.starts > 1:
        yield _several(starts, values)


def _networks(starts: Sequence[Start], values: Sequence[BoundedValue], bound: PathLimit) -> Finding:
    """The first network, with the panels of all of them."""
    paths, limits = [one.trajectory for one in starts], [one.limit for one in values]
    first, unfound = starts[0], values[0].local is None
    alone = local_evidence(
        values[0],
        smallest_margin=float(paths[0].smallest_margin[-1]),
        diverged=divergence(paths[0]),
        reason=held_back(paths[0]),
    )
    return Finding(
        "network",
        {"network": Trained(first.network, first.trajectory)},
        # Without a local limit it does not separate its data.
        evidence=(alone,) if unfound else (),
        panels=(
            partial(plot_values, paths, limits, float(bound.dual_objective)),
            partial(plot_distances, paths, limits),
            partial(plot_weights, paths, limits),
            partial(plot_residuals, paths),
            partial(plot_growth, paths[0]),
        ),
        further=Views(files=start_files(starts)),
    )


def _compared(
    setup: DGNSetup, first: Start, value: BoundedValue, bound: PathLimit, found: Finding
) -> Finding:
    """The first network beside its local limit, the bound, and machines of two kernels."""
    assert value.local is not None
    held_out = held_out_of(setup)
    predicted = None if held_out is None else scores(first.network, held_out)
    comparison = BoundedComparison(
        **vars(_with_earlier(value, first, setup.train)),
        error_network=math.nan if predicted is None else error_rate(setup.held_out.y, predicted),
        classifiers=compare_classifiers(setup, value.local, bound, predicted),
    )
    network = first.trajectory.record() | {"value": comparison.value}
    found = found.but(record={**found.views.record, "network": network})
    known = comparison_finding(found, comparison, LASSO)
    return known.but(
        assumptions=(
            *known.views.assumptions,
            ATTAINED.found(
                holds=True if bound.is_tight() else None,
                how="proved" if bound.is_tight() else "not known",
            ),
            strict_local_optimum(value.local),
            loss_vanishes(first.trajectory),
        ),
        verdicts=(
            decide(local_evidence(comparison)),
            decide(bound_evidence(bound, comparison)),
        ),
        sides=bounded_sides(bound, comparison),
    )


def _with_earlier(value: BoundedValue, first: Start, sample: Sample) -> BoundedValue:
    """Look at the run at about half of its steps, if it separated its data then."""
    trajectory, local = first.trajectory, value.limit
    row = int(np.searchsorted(trajectory.step, trajectory.step[-1] / 2, side="right")) - 1
    if local is None or not trajectory.observed["value"][row] > 0:
        return value
    then = copy.deepcopy(first.network)
    weights = torch.tensor(trajectory.observed["weights"][row])
    with torch.no_grad():
        torch.nn.utils.vector_to_parameters(weights.to(next(then.parameters())), then.parameters())
    return replace(
        value,
        earlier_step=int(trajectory.step[row]),
        earlier_distance=float(distances_along(trajectory, local)[row]),
        earlier_same=same_limit(local_limit(then, *sample), local),
    )


def _several(starts: Sequence[Start], values: Sequence[BoundedValue]) -> Finding:
    """The limits that are reached, and from how many starts each."""
    limits = [one.local for one in values]
    reached = limits_reached(limits)
    record = [
        {"start": i, "limit": number} | ({} if one is None else one.to_dict())
        for i, (one, number) in enumerate(zip(limits, reached, strict=True), start=1)
    ]
    n_limits = len({number for number in reached if number is not None})
    best = min((one.value for one in limits if one is not None), default=None)
    return Finding.said(
        "starts",
        record={"starts": record, "n_limits": n_limits},
        tables=(starts_table(values, reached),),
        objects={"local_limits": limits, "networks": [one.network for one in starts]},
        row={"n_limits": n_limits, "best_local_value": best},
    )


STAGES: tuple[Stage[DGNSetup], ...] = (
    Stage(finds=_bound, states=_state),
    Stage(finds=_train, trains=True, when=lambda setup, found: usable(found["limit"])),
)
