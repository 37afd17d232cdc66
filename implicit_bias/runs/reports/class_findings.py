"""The finding of a run of several classes, class by class."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..._support.solve import Status
from ...limits.limit import Limit
from ...measures.comparison import Comparison, NetworkState
from ...measures.labels import COLUMNS, MulticlassComparison
from ...quantities.assumptions import Assumption
from ...quantities.definition import Rule
from ...quantities.formatting import number
from ...quantities.premises import LOSS_TO_0, MARGINS, SEPARABLE
from ...quantities.said import Side, Table
from ...quantities.table import MEASURED, stacked
from ..drawing.classes import class_row
from .finding import Finding
from .findings import dual_condition, evidence, of_screen
from .telling import Several
from .trained import Trained
from .verdict import Verdict, decide, nearest_first

RULES: Mapping[Rule, Callable[[Sequence[Any]], Any]] = {
    "least": min, "largest": max, "sum": sum,
}  # fmt: skip


@dataclass(frozen=True, eq=False, kw_only=True)
class OfClass(Trained):
    """The network of one class, beside its limit."""

    state: NetworkState
    comparison: Comparison

    @property
    def cells(self) -> dict[str, Any]:
        """Columns of a run's row."""
        return self.comparison.cells() | self.trajectory.cells()

    @property
    def record(self) -> dict[str, Any]:
        """Entries of the run's record."""
        return {
            "network": self.state.to_dict() | self.trajectory.record(),
            "comparison": self.comparison.to_dict(),
        }


@dataclass(frozen=True, eq=False)
class Progressed:
    """The limits and networks that are done, class by class.

    Attributes
    ----------
    limits, trained : mapping of class to Limit and to OfClass
        Those that are done, ascending.
    labels : MulticlassComparison or None
        Labels by the largest score; None while a class has no network.
    finished : bool
        False if the training of a class was interrupted.
    """

    limits: Mapping[int, Limit] = field(default_factory=dict)
    trained: Mapping[int, OfClass] = field(default_factory=dict)
    labels: MulticlassComparison | None = None
    finished: bool = True


def class_finding(classes: Sequence[int], done: Progressed) -> Finding:
    """Return all that is done, as one finding."""
    tables = [_table(classes, done)]
    if done.labels is not None:
        tables.append(Table("label by the largest score", COLUMNS, tuple(done.labels.rows())))
    comparisons = {label: one.comparison for label, one in done.trained.items()}
    found = Finding(
        "classes",
        {
            "limit": Several(done.limits),
            "network": Several(done.trained),
            "comparison": Several(comparisons),
            "labels": done.labels,
        },
        "class {}",
        assumptions=_assumptions(done),
        panels=(class_row(comparisons, done.labels),) if done.trained else (),
    )
    # One line a class, and of all of them the worst, in place of what each limit says.
    return found.but(
        record={
            "one_vs_rest": [
                {"class": label, "limit": limit.to_dict()}
                | (done.trained[label].record if label in done.trained else {})
                for label, limit in done.limits.items()
            ],
            "worst_gap": max(limit.gap for limit in done.limits.values()),
            "multiclass": None if done.labels is None else done.labels.to_dict(),
        },
        tables=tuple(tables),
        row=class_columns(done),
        finished=done.finished,
        verdicts=_verdicts(done),
        sides=_sides(done),
    )


def class_columns(done: Progressed) -> dict[str, Any]:
    """Return the row of all classes: the worst over them, and the labels by the largest score."""
    limits = [limit.cells() for limit in done.limits.values()]
    found = {"n_classes": len(done.limits)}
    found |= over_classes([*limits, *(one.cells for one in done.trained.values())])
    return found | ({} if done.labels is None else done.labels.cells())


def _table(classes: Sequence[int], done: Progressed) -> Table:
    """Return a table with one line for each class, dashes for what is not done yet."""
    known: dict[str, dict[str, Any]] = {str(label): {} for label in classes}
    for label, limit in done.limits.items():
        known[str(label)] |= limit.cells() | {
            "status": limit.status.name,
            # Narrow, so that eleven columns fit beside each other.
            "objective": number(limit.objective, ".6g"),
            "gap": number(limit.gap, ".1e"),
            "n_support": f"{int(limit.supported.sum())} of {len(limit.dual)}",
        }
    for label, one in done.trained.items():
        known[str(label)] |= one.cells
    heads, rows = stacked(
        known, "status", "objective", "gap", "n_support", "margin_ratio", "zeta_cosine",
        "agreement", "error_limit", "error_network", "log_inverse_loss",
    )  # fmt: skip
    return Table("every class against the rest", ("class", *heads[1:]), tuple(rows))


def _sides(done: Progressed) -> tuple[Side, ...]:
    """Return the worst over all classes, of limits and of networks."""
    limits = of_screen(over_classes([one.cells() for one in done.limits.values()]))
    cells = [one.cells for one in done.trained.values()]
    labels = {} if done.labels is None else done.labels.cells()
    errors = {name: labels[name] for name in ("error_limit", "error_network") if name in labels}
    networks = of_screen(over_classes(cells) | labels) | errors
    found = Side(f"{len(done.limits)} limits, the worst", limits, predicted=True)
    return (found, Side("their networks", networks)) if cells else (found,)


def _verdicts(done: Progressed) -> tuple[Verdict, ...]:
    """Return the verdict on the networks of all classes: that on the one farthest away."""
    if done.labels is None:
        return ()
    several = f"the farthest of {len(done.trained)} classes"
    each = [
        decide(
            evidence(
                done.limits[label], one.comparison, one.trajectory,
                network=f"class {label}", remark=several,
            )
        )
        for label, one in done.trained.items()
    ]  # fmt: skip
    return nearest_first(each)[-1:]


def _assumptions(done: Progressed) -> tuple[Assumption, ...]:
    inseparable = [
        str(label) for label, limit in done.limits.items() if limit.status is Status.NOT_SEPARABLE
    ]
    separable = all(limit.certificate.proves_separability() for limit in done.limits.values())
    found = SEPARABLE.found(
        said=f"class {', '.join(inseparable)} can be separated from the rest in these gates"
        if inseparable
        else "every class can be separated from the rest in these gates (certified)",
        holds=False if inseparable else separable or None,
    )
    if not done.trained:
        return (found,)
    worst = over_classes([one.cells for one in done.trained.values()])
    least = worst["log_inverse_loss"]
    holds = {one.comparison.dual_condition for one in done.trained.values()}
    return (
        found,
        LOSS_TO_0.found(
            said=f"the losses tend to 0: log(1/loss) is at least {least:.3g} at the end"
        ),
        MARGINS.found(smallest=worst["smallest_margin"]),
        dual_condition(
            False if False in holds else None if None in holds else True,
            worst["largest_dual_norm"],
        ),
    )


def over_classes(cells: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the cells of several classes in one row, by the rules of their quantities.

    Parameters
    ----------
    cells : sequence of mappings
        Columns of limits, trajectories and comparisons, one mapping each.

    Returns
    -------
    dict of str to value
        Of quantities with a rule alone; NaN where one of the values is NaN.
    """
    found = {}
    for one in MEASURED:
        values = [own[one.name] for own in cells if one.name in own]
        if one.over_classes is not None and values:
            unknown = any(math.isnan(value) for value in values)
            found[one.name] = math.nan if unknown else RULES[one.over_classes](values)
    return found
