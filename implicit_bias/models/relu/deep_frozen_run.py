"""A ReLU network of several hidden layers that freezes its gates on the way, beside what is known.

No theorem names the limit of the copy. A certified bound of every network with its gates stands
beside it, and the KKT point next to its own weights.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from ..._solve import Status, to_numpy
from ...data.sample import Sample
from ...gates.changes import gate_changes
from ...limits.path_lasso import solve_path_lasso
from ...limits.path_limit import PathLimit
from ...local_limits.limit import LocalLimit
from ...local_limits.search import local_limit
from ...measures.scalars import error_rate, scores
from ...networks.relu import DeepReLU
from ...quantities.formatting import share
from ...reports.finding import Assumption, Finding, Table
from ...reports.findings import usable
from ...runs.setup import SampleSetup
from ..dgn.comparison import DGNComparison, compare_dgn, compare_scores, value_of
from ..dgn.rich_comparison import bound_rows, comparison_table, predicted_table
from .freezing import PartlyTrained
from .frozen_run import (
    copy_shortfall,
    frozen_record,
    frozen_samples,
    is_frozen,
    train_frozen,
)

__all__ = ["find_deep_frozen"]


def find_deep_frozen(
    setup: SampleSetup, twin: DeepReLU, network: DeepReLU, *, freeze_at: int
) -> Iterator[Finding]:
    """Train a copy up to `freeze_at`, freeze its gates, go on, bound it, find its local limit.

    Parameters
    ----------
    twin : DeepReLU
        As `network` began; trained in place up to the freeze.
    network : DeepReLU
        As it ended.
    freeze_at : int

    Yields
    ------
    Finding
        About one thing, known better each time; unfinished alone if the freeze was not reached.

    Raises
    ------
    FloatingPointError
        If training diverges.
    """
    parts, found = train_frozen(setup, twin, freeze_at)
    yield found
    if not is_frozen(parts):
        return
    gated = frozen_samples(setup, twin)
    setup.progress.stage(f"solving the path lasso on the gates of step {freeze_at}")
    bound = solve_path_lasso(
        *gated[0],
        widths=[len(layer) for layer in list(twin.layers)[:-1]],
        solver=setup.options.solver,
        tol=setup.options.tol,
    )
    found = _with_bound(found, parts, bound, freeze_at)
    yield found
    if usable(bound) and not math.isnan(value_of(parts.network, gated[0])):
        setup.progress.stage("finding the local limit of the copy")
        local = local_limit(parts.network, *gated[0])
        changed = float(gate_changes(gated[0].gates, network.gates(setup.train.X)).mean())
        yield _with_limit(found, parts, bound, local, gated, changed, freeze_at)


def _with_bound(found: Finding, parts: PartlyTrained, bound: PathLimit, freeze_at: int) -> Finding:
    """What is known of the copy, and the bound of every network with its gates."""
    proof = bound.to_dict()
    record = {
        "freeze_at": freeze_at,
        "limit": proof,
        "network": frozen_record(parts),
        "local_limit": None,
        "comparison": None,
    }
    title = f"networks with the gates of step {freeze_at}: a bound"
    return replace(
        found,
        record={"frozen": record},
        tables=(Table(title, ("", "path lasso (bound)"), bound_rows(bound)),),
        files={**found.files, "frozen-limit.safetensors": bound.save},
        assumptions=(
            Assumption(
                f"the data are separable in the gates of step {freeze_at} (certified)",
                False if bound.status is Status.NOT_SEPARABLE else usable(bound) or None,
            ),
        ),
        statuses={f"path lasso on the gates of step {freeze_at}": bound.status},
        certificates={"frozen gates": proof},
        objects={**found.objects, "frozen_limit": bound},
        row={"freeze_at": freeze_at, "frozen_status": bound.status.name, "frozen_gap": bound.gap},
        shortfall=copy_shortfall(parts, bound),
    )


def _with_limit(
    found: Finding,
    parts: PartlyTrained,
    bound: PathLimit,
    local: LocalLimit,
    gated: tuple[Sample, Sample],
    changed: float,
    freeze_at: int,
) -> Finding:
    """The copy beside its local limit and the bound."""
    comparison = _compared(parts, bound, local, gated[1])
    table = comparison_table(comparison, local)
    title = f"the copy that froze them at step {freeze_at}, beside its local limit and the bound"
    further = ("gates that the other network changed since", share(changed), "measured")
    lasso = comparison.predicted["path lasso"]
    return replace(
        found,
        record={
            "frozen": {
                **found.record["frozen"],
                "local_limit": local.to_dict(),
                "comparison": comparison.to_dict(),
                "gates_that_changed_later": changed,
            }
        },
        tables=(
            *found.tables,
            Table(title, table.columns, (*table.rows, further)),
            predicted_table(comparison),
        ),
        objects={**found.objects, "local_limit": local, "frozen_comparison": comparison},
        row={
            **found.row,
            "frozen_margin_ratio": comparison.bound_ratio,
            "frozen_agreement": lasso.agreement,
            "local_status": local.status.name,
            "local_value": local.value,
            "local_residual": local.residual,
            "local_ratio": comparison.local_ratio,
            "local_bound_ratio": comparison.local_bound_ratio,
        },
    )


def _compared(
    parts: PartlyTrained, bound: PathLimit, local: LocalLimit, held_out: Sample
) -> DGNComparison:
    trained: Any = scores(parts.network, held_out)
    own = local.predictor(held_out.X, held_out.gates)
    lasso = np.asarray(to_numpy(bound.predictor(held_out.X, held_out.gates)))
    beside = {
        "local limit": (local.status.name, local.residual, own),
        "path lasso": (bound.status.name, bound.gap, lasso),
    }
    predicted = {
        name: compare_scores(*one, trained=trained, y=held_out.y) for name, one in beside.items()
    }
    error = error_rate(held_out.y, trained)
    return compare_dgn(parts.network, local, bound, predicted, error, None)
