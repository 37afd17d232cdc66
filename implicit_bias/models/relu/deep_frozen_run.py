"""A ReLU network of several hidden layers that freezes its gates on the way, and its bound.

No theorem names the limit of the copy. A certified bound of every network with its gates stands
beside it, and the KKT point next to its own weights.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial

from ...data.sample import Sample
from ...limits.exact.path_lasso import solve_path_lasso
from ...limits.exact.path_limit import PathLimit
from ...measures.bounded_value import BoundedComparison, measure_bounded_value, value_of
from ...measures.classifiers import compare_classifier
from ...measures.scalars import error_rate, scores
from ...networks.relu import DeepReLU
from ...quantities.table import lines
from ...runs.reports.bounds import (
    LASSO,
    LOCAL,
    bound_evidence,
    bound_table,
    bounded_sides,
    comparison_finding,
    local_columns,
    local_evidence,
)
from ...runs.reports.finding import Finding
from ...runs.reports.findings import usable
from ...runs.reports.verdict import decide
from ...runs.setup import SampleSetup
from .freezing import PartlyTrained
from .frozen_run import (
    COPY,
    changed_later,
    copy_finding,
    frozen_record,
    frozen_samples,
    train_frozen,
)


def find_deep_frozen(
    setup: SampleSetup, twin: DeepReLU, network: DeepReLU, *, freeze_at: int
) -> Iterator[Finding]:
    """Train a copy up to `freeze_at`, freeze its gates, go on, bound it, find its local limit.

    Parameters
    ----------
    setup : Setup
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
    if not parts.frozen:
        return
    train, held_out = frozen_samples(setup, twin)
    setup.progress.stage(f"solving the path lasso on the gates of step {freeze_at}")
    bound = solve_path_lasso(
        *train,
        widths=[len(layer) for layer in list(twin.layers)[:-1]],
        solver=setup.options.solver,
        tol=setup.options.tol,
    )
    found = _with_bound(found, parts, bound, freeze_at)
    yield found
    if not usable(bound) or math.isnan(value_of(parts.network, train)):
        return
    setup.progress.stage("finding the local limit of the copy")
    comparison = _compared(parts, bound, train, held_out)
    changed = changed_later(setup, train, network)
    yield _with_comparison(found, comparison, bound, changed, freeze_at)


def _with_bound(found: Finding, parts: PartlyTrained, bound: PathLimit, freeze_at: int) -> Finding:
    """The copy as training has left it, and the bound of every network with its gates."""
    proof = bound.to_dict()
    record = {
        "freeze_at": freeze_at,
        "limit": proof,
        "network": frozen_record(parts),
        "local_limit": None,
        "comparison": None,
    }
    known = copy_finding(found, parts, bound, LASSO, freeze_at)
    return known.but(
        record={"frozen": record},
        tables=(bound_table(bound, f"networks with the gates of step {freeze_at}: a bound"),),
        row={"freeze_at": freeze_at, "frozen_status": bound.status.name, "frozen_gap": bound.gap},
    )


def _compared(
    parts: PartlyTrained, bound: PathLimit, train: Sample, held_out: Sample
) -> BoundedComparison:
    value = measure_bounded_value(parts.network, train, float(bound.dual_objective))
    assert value.local is not None
    trained, inputs = scores(parts.network, held_out), (held_out.X, held_out.gates)
    compare = partial(compare_classifier, inputs=inputs, trained=trained, y=held_out.y)
    classifiers = compare(LOCAL, value.local), compare(LASSO, bound)
    return BoundedComparison(
        **vars(value),
        error_network=error_rate(held_out.y, trained),
        classifiers={one.name: one for one in classifiers},
    )


def _with_comparison(
    found: Finding,
    comparison: BoundedComparison,
    bound: PathLimit,
    changed: float,
    freeze_at: int,
) -> Finding:
    """The copy beside its local limit and the bound."""
    ((label, text),) = lines({"gates_that_changed_later": changed}, "gates_that_changed_later")
    further = (label, text, "measured")
    title = f"the copy that froze them at step {freeze_at}, beside its local limit and the bound"
    known = comparison_finding(Finding("frozen"), comparison, LASSO, further, title=title)
    record = {
        **found.views.record["frozen"],
        **known.views.record,
        "gates_that_changed_later": changed,
    }
    return found.but(
        record={"frozen": record},
        tables=(*found.views.tables, *known.views.tables),
        objects={
            **found.views.objects,
            "local_limit": comparison.local,
            "frozen_comparison": comparison,
        },
        row={
            **found.views.row,
            "frozen_margin_ratio": comparison.bound_ratio,
            "frozen_agreement": comparison.classifiers[LASSO].agreement,
            **local_columns(comparison),
        },
        verdicts=(
            decide(local_evidence(comparison, network=COPY)),
            decide(bound_evidence(bound, comparison)),
        ),
        sides=bounded_sides(bound, comparison),
    )
