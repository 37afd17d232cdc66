"""What limits, trajectories and comparisons are in a row."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from ..limits.limit import Limit
from ..measures.comparison import Comparison, NetworkState
from ..measures.kkt import KKTDistance
from ..training.trajectory import Trajectory

__all__ = [
    "comparison_columns",
    "heading_columns",
    "kkt_columns",
    "least",
    "limit_columns",
    "state_columns",
    "training_columns",
]

COMPARED = (
    "network_norm", "margin_ratio", "zeta_cosine", "score_cosine", "agreement",
    "agreement_independent", "error_limit", "error_network", "kkt_cosine", "kkt_residual",
    "kkt_complementarity", "largest_dual_norm", "n_wrongly_small", "dual_condition",
)  # fmt: skip
PACKAGES = ("numpy", "scipy", "torch", "cvxpy")


def heading_columns(record: Mapping[str, Any]) -> dict[str, Any]:
    """Of the record of a heading: which model, data, options, versions."""
    data, options = record.get("data", {}), record.get("options", {})
    gating, packages = record.get("gating", {}), record.get("packages", {})
    return {
        **options,
        "model": record["model"],
        "data_digest": data.get("sha256"),
        "n_inputs": data.get("n_inputs"),
        "n_train": data.get("n_train"),
        "n_val": data.get("n_val"),
        "gating": gating.get("name", options.get("gating")),
        "gating_digest": gating.get("sha256"),
        "version": record.get("version"),
        "python_version": record.get("python"),
        **{f"{name}_version": packages.get(name) for name in PACKAGES},
    }


def limit_columns(limit: Limit, name: str) -> dict[str, Any]:
    """Of a limit by the name of its program."""
    return {
        "limit": name,
        "objective": limit.objective,
        "lower_bound": limit.dual_objective,
        "gap": limit.gap,
        "n_support": int(limit.support.sum()),
        "n_units": len(limit.unit_norms),
        "n_live": int(limit.live.sum()),
        "iterations": limit.iterations,
        "limit_seconds": limit.seconds,
    }


def training_columns(trajectory: Trajectory) -> dict[str, Any]:
    """Of a trajectory, at its end."""
    return {
        "n_steps": int(trajectory.step[-1]),
        "final_loss": float(trajectory.loss[-1]),
        "log_inverse_loss": -float(trajectory.log_loss[-1]),
        "training_seconds": float(trajectory.seconds[-1]),
        "smallest_margin": float(trajectory.smallest_margin[-1]),
    }


def state_columns(state: NetworkState) -> dict[str, Any]:
    """Of a network at its own scale."""
    return {
        "smallest_margin": state.smallest_margin,
        "train_error_network": 1 - state.train_accuracy,
        "error_network": 1 - state.val_accuracy,
    }


def comparison_columns(comparison: Comparison) -> dict[str, Any]:
    """Of a network beside its limit."""
    found = {name: getattr(comparison, name) for name in COMPARED}
    return found | {"n_dead": len(comparison.dead_units) if comparison.n_units else None}


def kkt_columns(kkt: KKTDistance | None) -> dict[str, Any]:
    """Of a network's distance from the KKT conditions; nothing where it was not measured."""
    if kkt is None:
        return {}
    return {
        "kkt_cosine": kkt.cosine,
        "kkt_residual": kkt.residual,
        "kkt_complementarity": kkt.complementarity,
    }


def least(values: Sequence[float]) -> float:
    """The smallest of several numbers; NaN if one of them is NaN, or there is none."""
    known = list(values)
    return math.nan if not known or any(map(math.isnan, known)) else min(known)
