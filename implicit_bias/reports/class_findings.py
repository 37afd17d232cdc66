"""The finding of a run of several classes, class by class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from .._solve import Status
from ..drawing.classes import class_row
from ..limits.limit import Limit
from ..measures.comparison import Comparison, NetworkState
from ..measures.labels import MulticlassComparison
from ..training.trajectory import Trajectory
from .columns import comparison_columns, least, training_columns
from .finding import Assumption, Finding, Table
from .findings import network_record, shortfall
from .writers import write_frame, write_weights

if TYPE_CHECKING:
    import torch

__all__ = ["Progressed", "Trained", "class_finding"]


@dataclass(frozen=True, eq=False)
class Trained:
    """The network of one class, beside its limit."""

    network: torch.nn.Module
    trajectory: Trajectory
    state: NetworkState
    comparison: Comparison


@dataclass(frozen=True, eq=False)
class Progressed:
    """The limits and networks that are done, class by class.

    Attributes
    ----------
    limits, trained : mapping of class to Limit and to Trained
        Those that are done, ascending.
    labels : MulticlassComparison or None
        Labels by the largest score; None while a class has no network.
    finished : bool
        False if the training of a class was interrupted.
    """

    limits: Mapping[int, Limit] = field(default_factory=dict)
    trained: Mapping[int, Trained] = field(default_factory=dict)
    labels: MulticlassComparison | None = None
    finished: bool = True


def class_finding(classes: Sequence[int], done: Progressed) -> Finding:
    """Return all that is done, as one finding."""
    worst_gap = max(limit.gap for limit in done.limits.values())
    tables = [Table("every class against the rest", COLUMNS, _rows(classes, done))]
    if done.labels is not None:
        columns = ("", "limits", "networks as trained", "networks at smallest margin 1")
        tables.append(Table("label by the largest score", columns, tuple(done.labels.rows())))
    comparisons = {label: one.comparison for label, one in done.trained.items()}
    records = {label: limit.to_dict() for label, limit in done.limits.items()}
    files: dict[str, Any] = {f"limit-{k}.safetensors": one.save for k, one in done.limits.items()}
    for label, one in done.trained.items():
        files[f"network-{label}.safetensors"] = write_weights(one.network)
        files[f"trajectory-{label}.parquet"] = write_frame(one.trajectory)
    return Finding(
        "classes",
        record={
            "one_vs_rest": [
                {"class": label, "limit": record} | _record(done.trained.get(label))
                for label, record in records.items()
            ],
            "worst_gap": worst_gap,
            "multiclass": None if done.labels is None else done.labels.to_dict(),
        },
        tables=tuple(tables),
        files=files,
        panels=(class_row(comparisons, done.labels),) if done.trained else (),
        assumptions=_assumptions(done),
        statuses={f"class {label}": limit.status for label, limit in done.limits.items()},
        certificates={f"class {label}": record for label, record in records.items()},
        objects=_objects(done),
        row=class_columns(done),
        finished=done.finished,
        shortfall=_shortfall(done),
    )


def _objects(done: Progressed) -> dict[str, Any]:
    """Return everything by its class; things that there are none of are left out."""
    things = {
        "limit": done.limits,
        "network": {label: one.network for label, one in done.trained.items()},
        "trajectory": {label: one.trajectory for label, one in done.trained.items()},
        "comparison": {label: one.comparison for label, one in done.trained.items()},
    }
    return {name: found for name, found in things.items() if found} | {"labels": done.labels}


def class_columns(done: Progressed) -> dict[str, Any]:
    """Return the row of all classes: the worst over them, and the labels by the largest score."""
    limits, trained = list(done.limits.values()), list(done.trained.values())
    compared = [comparison_columns(one.comparison) for one in trained]
    paths = [training_columns(one.trajectory) for one in trained]
    found: dict[str, Any] = {
        "n_classes": len(limits),
        "gap": max(limit.gap for limit in limits),
        "limit_seconds": sum(limit.seconds for limit in limits),
        **{name: least([float(one[name]) for one in compared]) for name in LEAST},
        **{name: -least([-float(one[name]) for one in compared]) for name in LARGEST},
    }
    if paths:
        found |= {name: least([one[name] for one in paths]) for name in LEAST_TRAINED}
        found |= {
            "n_steps": max(one["n_steps"] for one in paths),
            "training_seconds": sum(one["training_seconds"] for one in paths),
        }
    if done.labels is not None:
        found |= {
            "agreement": done.labels.agreement,
            "error_limit": 1 - done.labels.accuracy_limit,
            "error_network": 1 - done.labels.accuracy_network,
        }
    return found


LEAST = ("margin_ratio", "zeta_cosine", "score_cosine", "kkt_cosine")
LARGEST = ("kkt_residual", "kkt_complementarity", "largest_dual_norm")
LEAST_TRAINED = ("log_inverse_loss", "smallest_margin")
COLUMNS = (
    "class", "status", "optimum", "gap", "support vectors", "margin ratio", "zeta cosine",
    "agreement", "error, limit", "error, network", "log(1/loss)",
)  # fmt: skip


def _rows(classes: Sequence[int], done: Progressed) -> tuple[tuple[str, ...], ...]:
    rows = []
    for label in classes:
        cells = ["-"] * (len(COLUMNS) - 1)
        if label in done.limits:
            limit = done.limits[label]
            cells[:2] = limit.status.name, f"{limit.objective:.6g}"
            cells[2:4] = f"{limit.gap:.1e}", f"{int(limit.support.sum())} of {len(limit.dual)}"
        if label in done.trained:
            one = done.trained[label]
            comparison = one.comparison
            cells[4:] = (
                f"{comparison.margin_ratio:.4f}",
                f"{comparison.zeta_cosine:.4f}",
                f"{comparison.agreement:.2%}",
                f"{comparison.error_limit:.2%}",
                f"{comparison.error_network:.2%}",
                f"{-one.trajectory.log_loss[-1]:.4g}",
            )
        rows.append((str(label), *cells))
    return tuple(rows)


def _record(one: Trained | None) -> dict[str, Any]:
    if one is None:
        return {}
    return {
        "network": asdict(one.state) | network_record(one.trajectory),
        "comparison": one.comparison.to_dict(),
    }


def _shortfall(done: Progressed) -> str:
    found = (
        shortfall(one.trajectory, f"the network of class {label}")
        for label, one in done.trained.items()
    )
    return next(filter(None, found), "")


def _assumptions(done: Progressed) -> tuple[Assumption, ...]:
    inseparable = [
        str(label) for label, limit in done.limits.items() if limit.status is Status.NOT_SEPARABLE
    ]
    separable = all(limit.certificate.proves_separability() for limit in done.limits.values())
    found = Assumption(
        f"class {', '.join(inseparable)} can be separated from the rest in these gates"
        if inseparable
        else "every class can be separated from the rest in these gates (certified)",
        False if inseparable else separable or None,
    )
    return (found, *_of_training(done)) if done.trained else (found,)


def _of_training(done: Progressed) -> tuple[Assumption, ...]:
    """Return the assumptions about the networks, of which there is one at least."""
    least = min(-float(one.trajectory.log_loss[-1]) for one in done.trained.values())
    holds = {one.comparison.dual_condition for one in done.trained.values()}
    return (
        Assumption(
            "the networks are homogeneous, their loss exponential-like (by construction)", True
        ),
        Assumption(f"the losses tend to 0: log(1/loss) is at least {least:.3g} at the end", None),
        Assumption(
            "every unit of a network has a dual norm of at most 1, to a hundredth",
            False if False in holds else None if None in holds else True,
        ),
    )
