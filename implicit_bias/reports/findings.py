"""The findings that runs of several theories share."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from .._solve import Status, to_numpy
from ..data.sample import Sample
from ..drawing.figures import Panel, Row
from ..limits.multiclass import MarginLimit
from ..quantities.assumptions import Assumption
from ..quantities.formatting import loss_in_words
from ..quantities.premises import DUAL_NORMS, LOSS_TO_0, MARGINS, SEPARABLE, SPAN, START
from ..quantities.table import columns, lines
from ..training.trajectory import Trajectory
from .columns import limit_columns, n_support, supported, training_columns
from .finding import Finding, Side, Table, Writer
from .verdict import Evidence
from .writers import write_frame, write_weights

if TYPE_CHECKING:
    import torch

    from ..measures.comparison import Comparison, NetworkState

__all__ = [
    "TOGETHER",
    "compared",
    "divergence",
    "dual_condition",
    "evidence",
    "gating_file",
    "loss_vanishes",
    "network_record",
    "of_screen",
    "separable_assumptions",
    "shortfall",
    "solved",
    "trained",
    "unseparated",
    "usable",
]

TOGETHER = "prediction and training"
"""Title of the table with a limit and a network side by side."""
# By how much log(loss) rises in a run that diverged.
RISE = math.log(10.0)
# Lines of the first screen, as far as columns differ in them and there is room.
SCREEN = (
    "status", "objective", "lower_bound", "gap", "margin_ratio", "zeta_cosine", "agreement",
    "val_accuracy", "largest_dual_norm", "log_inverse_loss", "limit_seconds", "n_live",
    "n_support", "separation_bound", "kkt_residual",
)  # fmt: skip
# Of weights of 0, whose margins over k other classes are 0.
LOG_LOSS_AT_0 = {"logistic": lambda k: math.log(math.log1p(k)), "exponential": math.log}
BOUNDS = ("objective", "lower_bound", "gap")


def usable(limit: MarginLimit) -> bool:
    """Return True for a limit that separates its data: a network can be compared with it."""
    return limit.status in (Status.SOLVED, Status.INACCURATE)


def solved(limit: MarginLimit, name: str) -> Finding:
    """Return the finding of a limit that no network has been compared with."""
    certificate, record = limit.certificate, limit.to_dict()
    separable = certificate.proves_separability() or None
    multiplied = (to_numpy(limit.dual) > 0).reshape(len(limit.dual), -1).any(axis=1)
    cells = limit_columns(limit, name)
    rows = (
        *lines({"status": limit.status.name, **cells}, "status", *BOUNDS),
        *lines(record, "separation_bound", "separation_rounding"),
        ("samples with a multiplier", f"{int(multiplied.sum())} of {len(limit.dual)}"),
        *lines(cells, "iterations", "limit_seconds"),
    )
    return Finding(
        "limit",
        record={"limit": record},
        tables=(Table("prediction", ("", name), rows),),
        assumptions=(
            SEPARABLE.found(
                said="the data are separable in these gates (certified)",
                holds=False if limit.status is Status.NOT_SEPARABLE else separable,
            ),
        ),
        row=cells,
        sides=(Side(name, _alone(limit, cells), predicted=True),),
        objects={"limit": limit},
        **_of_limit(limit, name, record),
    )


def trained(
    network: torch.nn.Module,
    trajectory: Trajectory,
    *,
    panels: Sequence[Panel | Row] = (),
    among: str = "",
    path: Mapping[str, Writer] | None = None,
    margins: bool = True,
) -> Finding:
    """Return the finding of a trained network: weights, trajectory and the panels of the run.

    Parameters
    ----------
    network : Module
    trajectory : Trajectory
    panels : sequence of Panel and Row
    among : str
        Its trainer, where others have trained networks beside it.
    path : mapping of file name to writer, optional
        Files of the trajectory, in place of a table of its columns.
    margins : bool
        False where scores are no margins, so that the network has nothing to separate.
    """
    own = f"-{among}" if among else ""
    if path is None:
        path = {f"trajectory{own}.parquet": write_frame(trajectory)}
    return Finding(
        "network",
        record={"network": network_record(trajectory)},
        files={f"network{own}.safetensors": write_weights(network), **path},
        panels=tuple(panels),
        objects={"network": network, "trajectory": trajectory},
        row=training_columns(trajectory),
        finished=trajectory.finished,
        shortfall=shortfall(trajectory) if margins else "",
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
    from ..measures.scalars import (
        accuracy,
        sample_margins,
    )  # with torch, which no limit alone needs

    at_train, at_val = (accuracy(s.y, f) for s, f in zip(samples, scores, strict=True))
    # That of the function, whose accuracy stands beside it: programs may have margins of their own.
    margin = float(sample_margins(samples[0].y, scores[0]).min())
    record = limit.to_dict()
    sides = _both(limit, margin, (at_train, at_val), state, trajectory, comparison)
    return Finding(
        "limit",
        record={
            "limit": record | {"train_accuracy": at_train, "val_accuracy": at_val},
            "network": state.to_dict() | network_record(trajectory),
            "comparison": comparison.to_dict(),
        },
        tables=(
            Table(
                TOGETHER,
                ("", name, "trained network"),
                _rows(sides, limit, trajectory),
                of_network=True,
            ),
            Table("comparison", ("", "value"), _measures(comparison), of_network=True),
        ),
        assumptions=assumptions,
        sides=(
            Side(name, of_screen(sides[0]), predicted=True),
            Side("network", of_screen(comparison.cells() | sides[1])),
        ),
        objects={"limit": limit, "comparison": comparison},
        row=limit_columns(limit, name)
        | state.cells()
        | comparison.cells()
        | {"train_error_limit": 1 - at_train},
        **_of_limit(limit, name, record),
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
    reason = unseparated(trajectory) or given or comparison.held_back_by
    return Evidence(
        status=limit.status,
        near={"margin_ratio": comparison.margin_ratio},
        beside={"agreement": comparison.agreement},
        smallest_margin=float(trajectory.smallest_margin[-1]),
        diverged=divergence(trajectory),
        reason=reason,
        remark=_interrupted(trajectory) or remark,
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
    rank, of = (int(np.linalg.matrix_rank(part)) for part in (X[supported(limit)], X))
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
    from ..gates.gating import Gating  # with scikit-learn

    savable = isinstance(gating, Gating)
    return Finding("gating", files={"gating.safetensors": gating.save} if savable else {})


def network_record(trajectory: Trajectory) -> dict[str, Any]:
    """Return the outcome of training, for the record."""
    return trajectory.record()


def shortfall(trajectory: Trajectory, name: str = "the network") -> str:
    """Return a sentence where a run that ended does not separate its data; empty otherwise."""
    if not trajectory.finished:
        return ""
    if diverged := divergence(trajectory):
        return f"{name} diverged {diverged}"
    lacking = unseparated(trajectory)
    return f"{name} does not separate its training data {lacking}" if lacking else ""


def unseparated(trajectory: Trajectory) -> str:
    """Return after how many steps a network does not separate its data, and the way out."""
    margin = float(trajectory.smallest_margin[-1])
    if not margin <= 0:
        return ""
    if margin == 0:
        return (
            f"after {int(trajectory.step[-1])} steps: its score of some sample is exactly 0, as "
            "where all units are closed, and steps may have no effect there: give a smaller "
            "`--learning-rate` or another `--seed`"
        )
    return (
        f"after {int(trajectory.step[-1])} steps (smallest margin {margin:.3g}): give more "
        "`--steps`, or take another `--trainer` or `--seed`"
    )


def divergence(trajectory: Trajectory) -> str:
    """Return from which step on the loss stayed above that of the start, of a run that diverged.

    That is a run that ends without separating its data, at more than ten times its first loss.
    """
    rise = trajectory.log_loss - trajectory.log_loss[0]
    if not (trajectory.smallest_margin[-1] <= 0 and rise[-1] > RISE):
        return ""
    since = trajectory.step[np.flatnonzero(rise <= 0)[-1] + 1]
    first, last = (loss_in_words(float(trajectory.log_loss[row])) for row in (0, -1))
    return (
        f"from step {int(since)} on: the loss rose from {first} to {last}: give a smaller "
        "`--learning-rate`, or smaller initial weights"
    )


def _interrupted(trajectory: Trajectory) -> str:
    return "" if trajectory.finished else f"interrupted after {int(trajectory.step[-1])} steps"


def _of_limit(limit: MarginLimit, name: str, record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the entries of every finding about one limit."""
    return {
        "statuses": {name: limit.status},
        "certificates": {name: record},
        "files": {"limit.safetensors": limit.save},
    }


def _both(
    limit: MarginLimit,
    margin: float,
    accuracies: tuple[float, float],
    state: NetworkState,
    trajectory: Trajectory,
    comparison: Comparison,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what is known of the limit and of the network, by the names of quantities."""
    n_samples, n_units = len(limit.dual), len(limit.unit_norms)
    log_loss = float(trajectory.log_loss[-1])
    norm_per_margin: float | str = "not separating yet"
    if state.smallest_margin > 0:
        norm_per_margin = comparison.network_norm / state.smallest_margin
    predicted = {
        **limit_columns(limit, ""),
        "status": limit.status.name,
        "smallest_margin": margin,
        "network_norm": float(limit.unit_norms.sum()),
        "n_live": f"{int(limit.live.sum())} of {n_units}",
        "n_support": f"{n_support(limit)} of {n_samples}",
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
        "n_support": f"{state.support} of {n_samples}" if state.support >= 0 else None,
        "final_loss": loss_in_words(log_loss),
        "log_inverse_loss": -log_loss,
        "limit_seconds": float(trajectory.seconds[-1]),
    }
    return predicted, trained


def _rows(
    sides: Sequence[Mapping[str, Any]], limit: MarginLimit, trajectory: Trajectory
) -> tuple[tuple[str, ...], ...]:
    both, n_units = partial(columns, sides), len(limit.unit_norms)
    return (
        *both("status", *BOUNDS, "smallest_margin", "network_norm"),
        *both(*(["n_live"] if n_units > 1 else [])),
        *both("n_support", "train_accuracy", "val_accuracy"),
        ("iterations | steps", str(limit.iterations), str(int(trajectory.step[-1]))),
        *both("final_loss", "log_inverse_loss", "limit_seconds"),
    )


def _alone(limit: MarginLimit, cells: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the first screen shows of a limit that no network stands beside."""
    counts = {
        "n_support": f"{int(limit.support.sum())} of {len(limit.dual)}",
        "n_live": f"{int(limit.live.sum())} of {len(limit.live)}" if len(limit.live) > 1 else None,
    }
    if limit.status is Status.NOT_SEPARABLE:
        # Coefficients that do not separate have no norm per margin: the proof has.
        proof = {"separation_bound": limit.to_dict().get("separation_bound")}
        return of_screen({"status": limit.status.name, **proof, "n_support": counts["n_support"]})
    return of_screen({"status": limit.status.name, **cells, **counts})


def of_screen(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the first screen shows, in its order; a status only where it is no good news."""
    shown = SCREEN if values.get("status") != Status.SOLVED.name else SCREEN[1:]
    known = {name: values[name] for name in shown if values.get(name) is not None}
    if known.get("status") == "finished":
        del known["status"]
    return known


def _measures(comparison: Comparison) -> tuple[tuple[str, ...], ...]:
    """Return the rows of their differences but errors: the other table has both accuracies."""
    names = [name for name in comparison.shown() if name not in ("error_limit", "error_network")]
    return tuple(comparison.lines(*names))
