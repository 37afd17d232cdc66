"""The tables of the rich regime; each line says what it is: theorem, certified, or measured."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ...limits.path_limit import PathLimit
from ...local_limits.limit import LocalLimit
from ...measures.formatting import DASH, number, share
from ...reports.finding import Table
from .comparison import DGNComparison, lowest_curvature

__all__ = ["bound_rows", "comparison_table", "earlier_rows", "predicted_table", "starts_table"]


def bound_rows(bound: PathLimit) -> tuple[tuple[str, str], ...]:
    """What the bound is, and what it is not."""
    known = bound.certificate.proves_separability()
    tight = "attained by a network: it is the limit's value" if bound.is_tight() else (
        "not known to be attained: a bound, not the limit"
    )  # fmt: skip
    return (
        ("status", bound.status.name),
        ("every network's value is at least (theorem)", f"{bound.dual_objective:.8g}"),
        ("  optimum of the path lasso (certified)", f"{bound.objective:.8g}"),
        ("  duality gap", f"{bound.gap:.2e}"),
        ("  tight?", tight if known else DASH),
        ("  a network made of it has the value", number(bound.attained, ".6g")),
        ("distinct paths", f"{len(bound.paths)} of {math.prod(map(int, bound.widths))}"),
    )


def comparison_table(comparison: DGNComparison, local: LocalLimit) -> Table:
    """The network beside its own limit and beside the bound."""
    lowest = number(lowest_curvature(local))
    modes = f"{local.n_zero_modes}, {local.n_symmetry_modes} of them rotations of units"
    rows = (
        ("value of the network", number(comparison.value, ".8g"), "measured"),
        ("value of its local limit", number(comparison.local_value, ".8g"), "certified"),
        ("  status", local.status.name, "certified"),
        ("  residual of first-order conditions (0)", number(local.residual), "certified"),
        ("  smallest multiplier (> 0)", number(local.certificate.smallest_multiplier), "certified"),
        ("  zero modes", modes, "certified"),
        ("  lowest curvature beyond them (> 0)", lowest, "certified"),
        ("  active samples", f"{int(local.active.sum())} of {len(local.active)}", "certified"),
        ("local limit / network (1)", number(comparison.local_ratio, ".4f"), "measured"),
        ("cosine of weights (1)", number(comparison.weight_cosine, ".4f"), "measured"),
        ("distance of weights (0)", number(comparison.distance), "measured"),
        *earlier_rows(comparison),
        ("bound / network (at most 1)", number(comparison.bound_ratio, ".4f"), "certified"),
        ("bound / local limit", number(comparison.local_bound_ratio, ".4f"), "certified"),
        (
            "least value of all networks is in",
            f"[{number(comparison.bound, '.5g')}, {number(comparison.local_value, '.5g')}]",
            "certified",
        ),
    )
    title = "the network beside its local limit and the bound"
    return Table(title, ("", "value", "what it is"), rows)


def earlier_rows(comparison: DGNComparison) -> tuple[tuple[str, str, str], ...]:
    """The same run at an earlier step, where there was a look at it."""
    if comparison.earlier_step is None:
        return ()
    then = f"at step {comparison.earlier_step}"
    same = "yes" if comparison.earlier_same else "no"
    return (
        (f"  {then}", number(comparison.earlier_distance), "measured"),
        (f"  the limit computed {then} is this one", same, "measured"),
    )


def predicted_table(comparison: DGNComparison) -> Table:
    """Classifiers beside the network, on held-out data."""
    names, found = list(comparison.predicted), list(comparison.predicted.values())
    rows = (
        ("status", *(one.status for one in found)),
        ("gap | residual (certified)", *(number(one.certificate, ".1e") for one in found)),
        ("cosine of held-out scores", *(number(one.score_cosine, ".4f") for one in found)),
        ("agreement on held-out labels", *(share(one.agreement) for one in found)),
        ("held-out error", *(share(one.error) for one in found)),
        ("held-out error, network", *(share(comparison.error_network) for _ in found)),
    )
    return Table("classifiers beside the network (measured)", ("", *names), rows)


def starts_table(
    limits: Sequence[LocalLimit | None], reached: Sequence[int | None], bound: PathLimit
) -> Table:
    """One row a start: which limit it is heading to."""
    lower, rows = float(bound.dual_objective), []
    for index, (limit, which) in enumerate(zip(limits, reached, strict=True), start=1):
        if limit is None:
            rows.append((str(index), "not separating", *[DASH] * 5))
            continue
        rows.append(
            (
                str(index),
                limit.status.name,
                DASH if which is None else f"#{which}",
                f"{limit.value:.6g}",
                number(limit.value / limit.start_value, ".4f"),
                number(lower / limit.value, ".4f"),
                number(lowest_curvature(limit), ".2g"),
            )
        )
    n_limits = len({which for which in reached if which is not None})
    title = f"which limit is reached: {n_limits} from {len(limits)} starts"
    if any(limit is not None and limit.n_zero_modes for limit in limits):
        title += ", up to rotations of units"
    columns = ("start", "status", "limit", "value", "/ network", "bound /", "curvature")
    return Table(title, columns, tuple(rows))
