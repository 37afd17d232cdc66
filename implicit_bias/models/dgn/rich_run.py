"""The rich regime: networks trained from several starts, their local limits, a certified bound."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from ..._solve import Status
from ...data.sample import Sample
from ...limits.path_lasso import solve_path_lasso
from ...limits.path_limit import PathLimit
from ...local_limits.limit import LocalLimit
from ...local_limits.search import local_limit
from ...measures.scalars import error_rate
from ...reports.columns import limit_columns
from ...reports.finding import Assumption, Finding, Table
from ...reports.findings import limit_alone, network_record, trained, usable
from ...reports.writers import write_frame, write_weights
from ...runs.separable import RUN
from ...runs.setup import Setup
from ...training.loop import train
from ...training.trajectory import Trajectory
from .comparison import (
    DGNComparison,
    Earlier,
    Values,
    alike,
    compare_dgn,
    distances_from,
    held_out_scores,
    limits_reached,
    lowest_curvature,
    value_of,
)
from .figure import rich_panels
from .machines import predicted_beside
from .parts import held_out_of, make_network, network_name, resume_at, widths_of
from .rich_comparison import bound_rows, comparison_table, predicted_table, starts_table

__all__ = ["find_rich"]

BOUND = "path lasso (bound)"


@dataclass(frozen=True, eq=False)
class Start:
    """One network, from its start to its local limit; None where it does not separate."""

    network: torch.nn.Module
    trajectory: Trajectory
    local: LocalLimit | None = None


def find_rich(setup: Setup) -> Iterator[Finding]:
    """The bound, the networks, their local limits, and what stands beside the first of them."""
    options = setup.options
    train_sample = setup.train
    setup.progress.stage(f"solving the path lasso on {len(train_sample.y)} samples")
    bound = _bound(setup, train_sample)
    alone = limit_alone(bound, BOUND)
    found = replace(
        alone, tables=(Table("a bound of every network with these gates", ("", BOUND),
                             (*bound_rows(bound), *alone.tables[0].rows[4:])),),
    )  # fmt: skip
    yield found
    if not (usable(bound) and setup.trains):
        return
    starts: list[Start] = []
    for one in _trained(setup, train_sample):
        starts.append(one)
        if len(starts) == 1 or not one.trajectory.finished:
            yield trained(starts[0].network, starts[0].trajectory, panels=())
        if not one.trajectory.finished:
            return
    setup.progress.stage("finding the local limits")
    for index, one in enumerate(starts):
        starts[index] = replace(one, local=_local(one.network, train_sample))
        setup.progress.advance(index + 1, len(starts))
    yield _networks(starts, bound)
    setup.progress.stage("comparing")
    yield from _compared(setup, starts, bound, found)
    if options.starts > 1:
        yield _several(starts, bound)


def _bound(setup: Setup, sample: Sample) -> PathLimit:
    options = setup.options
    return solve_path_lasso(
        *sample,
        widths=widths_of(options),
        contexts=options.contexts is not None,
        solver=options.solver,
        tol=options.tol,
    )


def _trained(setup: Setup, sample: Sample) -> Iterator[Start]:
    """Networks in the order of their seeds, each trained."""
    options, n_inputs = setup.options, sample.X.shape[1]
    for index in range(options.starts):
        network = make_network(options, n_inputs, setup.seeds.weights + index)
        which = f" ({index + 1} of {options.starts})" if options.starts > 1 else ""
        setup.progress.stage(
            f"training a {network_name(options)}{which} for {setup.settings.n_steps} steps"
        )
        state, resume = resume_at(setup, RUN if index == 0 else f"run-{index + 1}.safetensors")
        trajectory = train(
            network,
            *sample,
            settings=setup.settings,
            callback=setup.progress.training(),
            observer=Values(sample),
            state=state,
            resume=resume,
        )
        yield Start(network, trajectory)


def _local(network: torch.nn.Module, sample: Sample) -> LocalLimit | None:
    """The KKT point next to a network; None for one that does not separate."""
    return None if math.isnan(value_of(network, sample)) else local_limit(network, *sample)


def _networks(starts: Sequence[Start], bound: PathLimit) -> Finding:
    """The first network, with the panels of all of them."""
    first = starts[0]
    panels = rich_panels([one.trajectory for one in starts], [one.local for one in starts], bound)
    found = trained(first.network, first.trajectory, panels=panels)
    files = dict(found.files)
    for index, one in enumerate(starts[1:], start=2):
        files[f"network-{index}.safetensors"] = write_weights(one.network)
        files[f"trajectory-{index}.parquet"] = write_frame(one.trajectory)
    return replace(found, files=files)


def _compared(
    setup: Setup, starts: Sequence[Start], bound: PathLimit, found: Finding
) -> Iterator[Finding]:
    """The first network beside its local limit, the bound, and the three machines."""
    first, local = starts[0], starts[0].local
    if local is None:
        return
    train_sample, held_out = setup.train, held_out_of(setup)
    scores = held_out_scores(first.network, held_out)
    predicted = predicted_beside(setup, local, bound, train_sample, held_out, scores)
    error = math.nan if scores is None else error_rate(setup.held_out.y, scores)
    earlier = _earlier(first, train_sample)
    comparison = compare_dgn(first.network, local, bound, predicted, error, earlier)
    yield replace(
        found,
        record={
            **found.record,
            "network": network_record(first.trajectory) | {"value": comparison.value},
            "local_limit": local.to_dict(),
            "comparison": comparison.to_dict(),
        },
        tables=(*found.tables, comparison_table(comparison, local), predicted_table(comparison)),
        assumptions=(*found.assumptions, *_assumptions(first, local, bound)),
        certificates={**found.certificates, "local limit": _certificate(local)},
        objects={**found.objects, "local_limit": local, "comparison": comparison},
        row={**limit_columns(bound, BOUND), **_columns(comparison, local)},
    )


def _earlier(first: Start, sample: Sample) -> Earlier | None:
    """The run at about half of its steps, beside the local limit of its end.

    None if it did not separate its data then.
    """
    trajectory, local = first.trajectory, first.local
    assert local is not None
    row = int(np.searchsorted(trajectory.step, trajectory.step[-1] / 2, side="right")) - 1
    if not trajectory.observed["value"][row] > 0:
        return None
    then = copy.deepcopy(first.network)
    weights = torch.tensor(trajectory.observed["weights"][row])
    with torch.no_grad():
        torch.nn.utils.vector_to_parameters(weights.to(next(then.parameters())), then.parameters())
    return Earlier(
        step=int(trajectory.step[row]),
        distance=float(distances_from(trajectory, local)[row]),
        same=alike(local_limit(then, *sample), local),
    )


def _several(starts: Sequence[Start], bound: PathLimit) -> Finding:
    """How many limits are reached, and which."""
    limits = [one.local for one in starts]
    reached = limits_reached(limits)
    values = [one.value for one in limits if one is not None]
    record = [
        {"start": i + 1, "limit": number} | ({} if one is None else one.to_dict())
        for i, (one, number) in enumerate(zip(limits, reached, strict=True))
    ]
    n_limits = len({number for number in reached if number is not None})
    return Finding(
        "starts",
        record={"starts": record, "n_limits": n_limits},
        tables=(starts_table(limits, reached, bound),),
        objects={
            "local_limits": limits,
            "networks": [one.network for one in starts],
        },
        row={"n_limits": n_limits, "best_local_value": min(values, default=None)},
    )


def _assumptions(first: Start, local: LocalLimit, bound: PathLimit) -> tuple[Assumption, ...]:
    tight, why = bound.is_tight(), f"; {local.reason}" if local.reason else ""
    return (
        Assumption(
            "a network attains the bound, so that it is the least value of all (the bound is the "
            "limit only there)",
            True if tight else None,
        ),
        Assumption(
            "the point next to the network is a strict local optimum, up to rotations of units "
            f"(certified in floating point){why}",
            {Status.LOCAL_OPTIMUM: True, Status.SADDLE: False}.get(local.status),
        ),
        Assumption(
            f"the loss tends to 0: log(1/loss) is {-first.trajectory.log_loss[-1]:.3g} at the end",
            None,
        ),
    )


def _certificate(local: LocalLimit) -> Mapping[str, Any]:
    return {"status": local.status.name, "seconds": local.seconds, "n_samples": len(local.active)}


def _columns(comparison: DGNComparison, local: LocalLimit) -> dict[str, Any]:
    """Of the bound as the limit, like the exit code; of the local limit by names of its own."""
    lasso, own = comparison.predicted["path lasso"], comparison.predicted["local limit"]
    return {
        "margin_ratio": comparison.bound_ratio,
        "score_cosine": lasso.score_cosine,
        "agreement": lasso.agreement,
        "error_limit": lasso.error,
        "error_network": comparison.error_network,
        "local_status": local.status.name,
        "local_value": local.value,
        "local_residual": local.residual,
        "local_curvature": lowest_curvature(local),
        "local_ratio": comparison.local_ratio,
        "local_bound_ratio": comparison.local_bound_ratio,
        "local_score_cosine": own.score_cosine,
        "local_agreement": own.agreement,
        "local_error": own.error,
    }
