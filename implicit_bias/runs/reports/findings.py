"""The findings that runs of several theories share."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._support.solve import Status, to_numpy
from ...data.sample import Sample
from ...quantities.assumptions import Assumption
from ...quantities.formatting import loss_in_words
from ...quantities.premises import DUAL_NORMS, LOSS_TO_0, MARGINS, SEPARABLE, SPAN, START
from ...quantities.said import Side, Table
from ...quantities.table import columns
from ...training.trajectory import Trajectory
from .finding import Finding
from .trained import divergence, held_back, unseparated
from .verdict import Evidence

if TYPE_CHECKING:
    from ...limits.exact.multiclass import MarginLimit
    from ...measures.comparison import Comparison, NetworkState

TOGETHER = "prediction and training"
"""Title of the table with a limit and a network side by side."""
# Lines of the first screen, as far as columns differ in them and there is room.
SCREEN = (
    "status", "objective", "lower_bound", "gap", "margin_ratio", "zeta_cosine", "agreement",
    "val_accuracy", "largest_dual_norm", "log_inverse_loss", "limit_seconds", "n_live",
    "n_support", "separation_bound", "kkt_residual",
)  # fmt: skip
# Of weights of 0, whose margins over k other classes are 0.
LOG_LOSS_AT_0 = {"logistic": lambda k: math.log(math.log1p(k)), "exponential": math.log}


def usable(limit: MarginLimit) -> bool:
    """Return True for a limit that separates its data: a network can be compared with it."""
    return limit.status in (Status.SOLVED, Status.INACCURATE)


def solved(limit: MarginLimit, name: str) -> Finding:
    """Return the finding of a limit that no network has been compared with."""
    separable = limit.certificate.proves_separability() or None
    return Finding(
        "limit",
        {"limit": limit},
        name,
        assumptions=(
            SEPARABLE.found(
                said="the data are separable in these gates (certified)",
                holds=False if limit.status is Status.NOT_SEPARABLE else separable,
            ),
        ),
    )


def compared(
    limit: MarginLimit,
    name: str,
    samples: tuple[Sample, Sample],
    state: NetworkState,
    trajectory: Trajectory,
    comparison: Comparison,
    assumptions: tuple[Assumption, ...],
) -> Finding:
    """Return the finding of a limit and a network side by side, with their differences."""
    scores = [to_numpy(limit.predictor(sample.X, sample.gates)) for sample in samples]
    from ...measures.scalars import (
        accuracy,
        sample_margins,
    )  # with torch, which no limit alone needs

    at_train, at_val = (accuracy(s.y, f) for s, f in zip(samples, scores, strict=True))
    # That of the function, whose accuracy stands beside it: programs may have margins of their own.
    margin = float(sample_margins(samples[0].y, scores[0]).min())
    sides = _both(limit, margin, (at_train, at_val), state, trajectory, comparison)
    units = ["n_live"] if limit.n_units > 1 else []
    rows = (
        *columns(sides, "status", "objective", "lower_bound", "gap", "smallest_margin"),
        *columns(sides, "network_norm", *units, "n_support", "train_accuracy", "val_accuracy"),
        ("iterations | steps", str(limit.iterations), str(int(trajectory.step[-1]))),
        *columns(sides, "final_loss", "log_inverse_loss", "limit_seconds"),
    )
    # The other table has both accuracies.
    shown = (one for one in comparison.shown() if one not in ("error_limit", "error_network"))
    measures = tuple(comparison.lines(*shown))
    found = Finding("limit", {"limit": limit, "comparison": comparison}, name, assumptions)
    return found.also(
        record={
            "limit": {"train_accuracy": at_train, "val_accuracy": at_val},
            "network": state.to_dict() | trajectory.record(),
        },
        row=state.cells() | comparison.cells() | {"train_error_limit": 1 - at_train},
    ).but(
        tables=(
            Table(TOGETHER, ("", name, "trained network"), rows, of_network=True),
            Table("comparison", ("", "value"), measures, of_network=True),
        ),
        sides=(
            Side(name, of_screen(sides[0]), predicted=True),
            Side("network", of_screen(comparison.cells() | sides[1])),
        ),
    )


def evidence(
    limit: MarginLimit, comparison: Comparison, trajectory: Trajectory, **further: Any
) -> Evidence:
    """Return the evidence for the verdict on a network beside its margin limit.

    Parameters
    ----------
    limit : Limit
    comparison : Comparison
    trajectory : Trajectory
    further
        As of `Evidence`; a `reason` takes the place of what keeps the network away.
    """
    given, remark = further.pop("reason", ""), further.pop("remark", "")
    reason = unseparated(trajectory) or given or held_back(trajectory, comparison.held_back_by)
    ended = "" if trajectory.finished else f"interrupted after {int(trajectory.step[-1])} steps"
    return Evidence(
        status=limit.status,
        near={"margin_ratio": comparison.margin_ratio},
        beside={"agreement": comparison.agreement},
        smallest_margin=float(trajectory.smallest_margin[-1]),
        diverged=divergence(trajectory),
        reason=reason,
        remark=ended or remark,
        **further,
    )


def loss_vanishes(trajectory: Trajectory) -> Assumption:
    """Return the assumption that the loss tends to 0, with how far it came."""
    return LOSS_TO_0.found(reached=-float(trajectory.log_loss[-1]))


def separable_assumptions(
    limit: MarginLimit, comparison: Comparison, trajectory: Trajectory, train: Sample, loss: str
) -> tuple[Assumption, ...]:
    """Return what a run finds of the assumptions of theorems on separable data.

    Theorems have some of them each, as their models declare.
    """
    n_others = 1 if np.ndim(train.y) == 1 else train.y.shape[1] - 1
    begins, at_zero = float(trajectory.log_loss[0]), LOG_LOSS_AT_0[loss](n_others)
    X = to_numpy(train.X)
    rank, of = (int(np.linalg.matrix_rank(part)) for part in (X[limit.supported], X))
    return (
        SEPARABLE.found(said="the data are separable by such a network (certified)", holds=True),
        loss_vanishes(trajectory),
        MARGINS.found(smallest=float(trajectory.smallest_margin[-1])),
        dual_condition(comparison.dual_condition, comparison.largest_dual_norm),
        START.found(holds=begins <= at_zero, begins=math.exp(begins), at_zero=math.exp(at_zero)),
        SPAN.found(rank=rank, of=of),
    )


def dual_condition(holds: bool | None, largest: float) -> Assumption:
    """Return the assumption that every unit satisfies the dual condition.

    Parameters
    ----------
    holds : bool or None
    largest : float
        Largest dual norm of a unit; NaN where it is not known.
    """
    if math.isnan(largest):
        return DUAL_NORMS.found(holds=holds, how="not known" if holds is None else "measured")
    return DUAL_NORMS.found(
        said=f"{DUAL_NORMS.said} (the largest is {largest:.4g})",
        holds=holds,
        how="undecided" if holds is None else f"measured: {largest:.4g}",
    )


def gating_file(gating: Any) -> Finding:
    """Return the finding of a run's gating, to be loaded again; empty without one to save."""
    if gating is None:
        return Finding("gating")
    from ...gates.gating import Gating  # with scikit-learn

    savable = isinstance(gating, Gating)
    return Finding.said("gating", files={"gating.safetensors": gating.save} if savable else {})


def _both(
    limit: MarginLimit,
    margin: float,
    accuracies: tuple[float, float],
    state: NetworkState,
    trajectory: Trajectory,
    comparison: Comparison,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what is known of the limit and of the network, by the names of quantities."""
    log_loss = float(trajectory.log_loss[-1])
    norm_per_margin: float | str = "not separating yet"
    if state.smallest_margin > 0:
        norm_per_margin = comparison.network_norm / state.smallest_margin
    predicted = {
        **limit.cells(),
        "status": limit.status.name,
        "smallest_margin": margin,
        "network_norm": float(limit.unit_norms.sum()),
        "n_live": f"{limit.n_live} of {limit.n_units}",
        "n_support": f"{int(limit.supported.sum())} of {limit.n_samples}",
        "train_accuracy": accuracies[0],
        "val_accuracy": accuracies[1],
        "final_loss": "0 (in the limit)",
        "log_inverse_loss": "inf",
    }
    trained = {
        **state.to_dict(),
        "status": "finished" if trajectory.finished else "interrupted",
        "objective": norm_per_margin,
        "network_norm": comparison.network_norm,
        "n_live": f"{state.live} of {state.n_units}" if state.n_units else None,
        "n_support": f"{state.support} of {limit.n_samples}" if state.support >= 0 else None,
        "final_loss": loss_in_words(log_loss),
        "log_inverse_loss": -log_loss,
        "limit_seconds": float(trajectory.seconds[-1]),
    }
    return predicted, trained


def of_screen(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the first screen shows, in its order; a status only where it is no good news."""
    shown = SCREEN if values.get("status") != Status.SOLVED.name else SCREEN[1:]
    known = {name: values[name] for name in shown if values.get(name) is not None}
    if known.get("status") == "finished":
        del known["status"]
    return known
