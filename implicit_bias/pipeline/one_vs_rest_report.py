"""What a comparison of several classes says: tables, results, files and a picture."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from .._solve import Status
from ..data.labelled import ClassDataset
from ..limits.limit import Limit
from ..measures.comparison import Comparison, NetworkState
from ..measures.labels import MulticlassComparison
from ..training.trajectory import Trajectory
from .classification import network_results, provenance, worst_status, write_frame, write_weights
from .options import Options
from .report import Assumption, Report, Table
from .separable import Family

if TYPE_CHECKING:
    import torch
    from matplotlib.figure import Figure

__all__ = ["MulticlassRun", "TrainedClass", "report_multiclass"]


@dataclass(frozen=True, eq=False)
class TrainedClass:
    """The network of one class, beside its limit."""

    network: torch.nn.Module
    trajectory: Trajectory
    state: NetworkState
    comparison: Comparison


@dataclass(frozen=True, eq=False)
class MulticlassRun:
    """What has been done, class by class.

    Attributes
    ----------
    limits, trained : mapping of class to Limit and to TrainedClass
        Those that are done, ascending; at least one limit.
    labels : MulticlassComparison or None
        None while a class has no network.
    finished : bool
        False if the run was interrupted.
    failure : str or None
        Why no further class was trained, for instance that training diverged.
    """

    limits: Mapping[int, Limit]
    trained: Mapping[int, TrainedClass]
    labels: MulticlassComparison | None
    finished: bool
    failure: str | None


def report_multiclass(
    model: str,
    family: Family,
    options: Options,
    dataset: ClassDataset,
    gating: Any,
    run: MulticlassRun,
) -> Report:
    """Put a run into words, numbers and files; `gating` may be None."""
    from ..models import MODELS

    theorem = MODELS[model].theorem
    limits, trained = run.limits, run.trained
    status, classes = worst_status({str(label): limit for label, limit in limits.items()})
    assumptions = _assumptions(run)
    worst_gap = max(limit.gap for limit in limits.values())
    tables = [Table("every class against the rest", *_class_rows(dataset, run))]
    if run.labels is not None:
        columns = ("", "limits", "networks as trained", "networks at smallest margin 1")
        tables.append(Table("label by the largest score", columns, tuple(run.labels.rows())))
    results = {
        "model": model,
        "theorem": theorem,
        **provenance(options, dataset),
        "one_vs_rest": [
            {"class": label, "limit": limit.to_dict()} | _one_results(trained.get(label))
            for label, limit in limits.items()
        ],
        "worst_gap": worst_gap,
        "multiclass": None if run.labels is None else run.labels.to_dict(),
        "assumptions": [asdict(assumption) for assumption in assumptions],
        "failure": run.failure,
    }
    artefacts: dict[str, Any] = {f"limit-{k}.safetensors": one.save for k, one in limits.items()}
    for label, one in trained.items():
        artefacts[f"network-{label}.safetensors"] = write_weights(one.network)
        artefacts[f"trajectory-{label}.parquet"] = write_frame(one.trajectory)
    if gating is not None:
        artefacts["gating.npz"] = gating.save
    setup = (
        f"{dataset.description}; seed {options.seed}; largest duality gap of "
        f"{len(limits)} binary problems {worst_gap:.1e}"
    )
    return Report(
        model=model,
        theorem=theorem,
        setup=setup,
        assumptions=assumptions,
        tables=tuple(tables),
        results=results,
        status=status,
        finished=run.finished,
        failure=run.failure,
        artefacts=artefacts,
        figure=(lambda: _figure(family, run)) if trained else None,
        concerns="" if status is Status.SOLVED else f"class {', '.join(classes)}",
    )


def _class_rows(
    dataset: ClassDataset, run: MulticlassRun
) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    """Column titles and one row a class."""
    columns = (
        "class", "status", "optimum", "gap", "support vectors", "margin ratio", "zeta cosine",
        "agreement", "error, limit", "error, network", "log(1/loss)",
    )  # fmt: skip
    rows = []
    for label in dataset.classes:
        cells = ["-"] * (len(columns) - 1)
        if label in run.limits:
            limit = run.limits[label]
            cells[:2] = limit.status.name, f"{limit.objective:.6g}"
            cells[2:4] = f"{limit.gap:.1e}", f"{int(limit.support.sum())} of {len(limit.dual)}"
        if label in run.trained:
            one = run.trained[label]
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
    return columns, tuple(rows)


def _one_results(one: TrainedClass | None) -> dict[str, Any]:
    if one is None:
        return {}
    return network_results(one.state, one.trajectory) | {"comparison": one.comparison.to_dict()}


def _assumptions(run: MulticlassRun) -> tuple[Assumption, ...]:
    limits, trained = run.limits, run.trained
    inseparable = [str(k) for k, one in limits.items() if one.status is Status.NOT_SEPARABLE]
    separable = all(one.certificate.proves_separability() for one in limits.values())
    found = [
        Assumption(
            f"class {', '.join(inseparable)} can be separated from the rest in these gates"
            if inseparable
            else "every class can be separated from the rest in these gates (certified)",
            False if inseparable else separable or None,
        )
    ]
    if trained:
        least = min(-float(one.trajectory.log_loss[-1]) for one in trained.values())
        wrongly = [one.comparison.n_wrongly_dead for one in trained.values()]
        found += [
            Assumption(
                "the networks are homogeneous, their loss exponential-like (by construction)", True
            ),
            Assumption(
                f"the losses tend to 0: log(1/loss) is at least {least:.3g} at the end, and "
                "directions converge like its inverse",
                None,
            ),
            Assumption(
                "every dead unit of a network has a dual norm of at most 1",
                None if None in wrongly else not any(wrongly),
            ),
        ]
    return tuple(found)


def _figure(family: Family, run: MulticlassRun) -> Figure:
    from ..drawing.classes import plot_multiclass

    return plot_multiclass(
        {label: one.comparison for label, one in run.trained.items()},
        run.labels,
        title=f"one against the rest: {family.network_name} beside {family.limit_name}",
    )
