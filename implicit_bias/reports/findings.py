"""The findings that runs of several theories share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from .._solve import Status
from ..data.sample import Sample
from ..drawing.figures import Panel, Row
from ..gates.saved import Gating
from ..limits.limit import Limit
from ..measures.comparison import Comparison, NetworkState
from ..measures.scalars import accuracy
from ..quantities.formatting import loss_in_words, number
from ..training.trajectory import Trajectory
from .columns import comparison_columns, limit_columns, state_columns, training_columns
from .finding import Assumption, Finding, Table
from .writers import write_frame, write_weights

if TYPE_CHECKING:
    import torch

__all__ = [
    "compared",
    "gating_file",
    "network_record",
    "separable_assumptions",
    "shortfall",
    "solved",
    "trained",
    "usable",
]


def usable(limit: Limit) -> bool:
    """Return True for a limit that separates its data: a network can be compared with it."""
    return limit.status in (Status.SOLVED, Status.INACCURATE)


def solved(limit: Limit, name: str) -> Finding:
    """Return the finding of a limit that no network has been compared with."""
    certificate, record = limit.certificate, limit.to_dict()
    separable = certificate.proves_separability() or None
    rows = (
        ("status", limit.status.name),
        ("norm per unit margin", f"{limit.objective:.8g}"),
        ("  certified lower bound", f"{limit.dual_objective:.8g}"),
        ("  duality gap", f"{limit.gap:.2e}"),
        (
            "smallest margin over the sum of its absolute terms, <=",
            f"{certificate.separation_bound:.3e}",
        ),
        ("  counts as zero at or below", f"{certificate.separation_rounding:.3e}"),
        ("samples with a multiplier", f"{int((limit.dual > 0).sum())} of {len(limit.dual)}"),
        ("iterations", str(limit.iterations)),
        ("seconds", f"{limit.seconds:.2f}"),
    )
    return Finding(
        "limit",
        record={"limit": record},
        tables=(Table("prediction", ("", name), rows),),
        assumptions=(
            Assumption(
                "the data are separable in these gates (certified)",
                False if limit.status is Status.NOT_SEPARABLE else separable,
            ),
        ),
        row=limit_columns(limit, name),
        objects={"limit": limit},
        **_of_limit(limit, name, record),
    )


def trained(
    network: torch.nn.Module,
    trajectory: Trajectory,
    *,
    panels: Sequence[Panel | Row],
    among: str = "",
) -> Finding:
    """Return the finding of a trained network: weights, trajectory and the panels of the run.

    `among` is its trainer, where others have trained networks beside it.
    """
    own = f"-{among}" if among else ""
    return Finding(
        "network",
        record={"network": network_record(trajectory)},
        files={
            f"network{own}.safetensors": write_weights(network),
            f"trajectory{own}.parquet": write_frame(trajectory),
        },
        panels=tuple(panels),
        objects={"network": network, "trajectory": trajectory},
        row=training_columns(trajectory),
        finished=trajectory.finished,
        shortfall=shortfall(trajectory),
    )


def compared(
    limit: Limit,
    name: str,
    samples: tuple[Sample, Sample],
    state: NetworkState,
    trajectory: Trajectory,
    comparison: Comparison,
    assumptions: tuple[Assumption, ...],
) -> Finding:
    """Return the finding of a limit and a network side by side, with their differences."""
    scores = [limit.predictor(sample.X, sample.gates) for sample in samples]
    at_train, at_val = (accuracy(s.y, f) for s, f in zip(samples, scores, strict=True))
    # That of the function, whose accuracy stands beside it: programs may have margins of their own.
    margin = float((samples[0].y * scores[0]).min())
    record = limit.to_dict()
    return Finding(
        "limit",
        record={
            "limit": record | {"train_accuracy": at_train, "val_accuracy": at_val},
            "network": asdict(state) | network_record(trajectory),
            "comparison": comparison.to_dict(),
        },
        tables=(
            Table(
                "prediction and training",
                ("", name, "trained network"),
                _both(limit, margin, (at_train, at_val), state, trajectory, comparison),
                of_network=True,
            ),
            Table("comparison", ("", "value"), _measures(comparison), of_network=True),
        ),
        assumptions=assumptions,
        objects={"limit": limit, "comparison": comparison},
        row=limit_columns(limit, name)
        | state_columns(state)
        | comparison_columns(comparison)
        | {"train_error_limit": 1 - at_train},
        **_of_limit(limit, name, record),
    )


def separable_assumptions(comparison: Comparison, trajectory: Trajectory) -> tuple[Assumption, ...]:
    """Return the assumptions of theorems about homogeneous networks on separable data."""
    return (
        Assumption("the data are separable by such a network (certified)", True),
        Assumption("the network is homogeneous, its loss exponential-like (by construction)", True),
        Assumption(
            f"the loss tends to 0: log(1/loss) is {-trajectory.log_loss[-1]:.3g} at the end", None
        ),
        Assumption(
            "every unit of the network has a dual norm of at most 1, to a hundredth",
            comparison.dual_condition,
        ),
    )


def gating_file(gating: Any) -> Finding:
    """Return the finding of a run's gating, to be loaded again; empty without one to save."""
    return Finding(
        "gating", files={"gating.safetensors": gating.save} if isinstance(gating, Gating) else {}
    )


def network_record(trajectory: Trajectory) -> dict[str, Any]:
    """Return the outcome of training, for the record."""
    return {
        "steps": int(trajectory.step[-1]),
        "loss": float(trajectory.loss[-1]),
        "log_loss": float(trajectory.log_loss[-1]),
        "seconds": float(trajectory.seconds[-1]),
        "finished": trajectory.finished,
    }


def shortfall(trajectory: Trajectory, name: str = "the network") -> str:
    """Return a sentence where a run that ended does not separate its data; empty otherwise."""
    margin = float(trajectory.smallest_margin[-1])
    if margin > 0 or not trajectory.finished:
        return ""
    return (
        f"{name} does not separate its training data after {int(trajectory.step[-1])} steps "
        f"(smallest margin {margin:.3g}), so it is on no way to a limit yet: give more `--steps`, "
        "or take another `--trainer` or `--seed`"
    )


def _of_limit(limit: Limit, name: str, record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the entries of every finding about one limit."""
    return {
        "statuses": {name: limit.status},
        "certificates": {name: record},
        "files": {"limit.safetensors": limit.save},
    }


def _both(
    limit: Limit,
    margin: float,
    accuracies: tuple[float, float],
    state: NetworkState,
    trajectory: Trajectory,
    comparison: Comparison,
) -> tuple[tuple[str, str, str], ...]:
    n_samples, n_units = len(limit.dual), len(limit.unit_norms)
    norm = comparison.network_norm
    norm_per_margin = "not separating yet"
    if state.smallest_margin > 0:
        norm_per_margin = number(norm / state.smallest_margin, ".8g")
    support = f"{state.support} of {n_samples}" if state.support >= 0 else "-"
    units = (
        "live units",
        f"{int(limit.live.sum())} of {n_units}",
        f"{state.live} of {state.n_units}" if state.n_units else "-",
    )
    return (
        ("status", limit.status.name, "finished" if trajectory.finished else "interrupted"),
        ("norm per unit margin", f"{limit.objective:.8g}", norm_per_margin),
        ("  certified lower bound", f"{limit.dual_objective:.8g}", "-"),
        ("  duality gap", f"{limit.gap:.2e}", "-"),
        ("smallest margin", f"{margin:.6g}", f"{state.smallest_margin:.6g}"),
        ("norm", f"{float(limit.unit_norms.sum()):.6g}", number(norm, ".6g")),
        *([units] if n_units > 1 else []),
        ("support vectors", f"{int(limit.support.sum())} of {n_samples}", support),
        ("training accuracy", f"{accuracies[0]:.2%}", f"{state.train_accuracy:.2%}"),
        ("held-out accuracy", f"{accuracies[1]:.2%}", f"{state.val_accuracy:.2%}"),
        ("iterations | steps", str(limit.iterations), str(int(trajectory.step[-1]))),
        ("loss", "0 (in the limit)", loss_in_words(float(trajectory.log_loss[-1]))),
        ("log(1/loss)", "inf", f"{-trajectory.log_loss[-1]:.4g}"),
        ("seconds", f"{limit.seconds:.2f}", f"{trajectory.seconds[-1]:.2f}"),
    )


def _measures(comparison: Comparison) -> tuple[tuple[str, str], ...]:
    """Return the rows of their differences but errors: the other table has both accuracies."""
    return tuple(row for row in comparison.rows() if not row[0].startswith("held-out error"))
