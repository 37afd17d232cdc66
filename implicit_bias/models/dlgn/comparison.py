"""A frozen DLGN beside what is proved of it, what is certified, and what is merely measured."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch

from ..._shown import Shown
from ...data.sample import Sample
from ...local_limits.limit import LocalLimit
from ...measures.scalars import agreement, cosine, error_rate, scores
from ...quantities.formatting import DASH, number, share
from ...reports.finding import Table
from .depth3 import Depth3Interval

__all__ = [
    "Beside",
    "DLGNComparison",
    "beside_scores",
    "comparison_tables",
    "distinct",
    "network_value",
]

THEOREM, CERTIFIED, MEASURED = "theorem", "certified", "measured"


@dataclass(frozen=True)
class Beside:
    """A classifier beside the network, on held-out data.

    Attributes
    ----------
    status : str
    residual : float
        What is certified: a duality gap, or the residual of KKT conditions.
    score_cosine, agreement, error : float
        With the network's scores and labels; of its own labels.
    """

    status: str
    residual: float
    score_cosine: float
    agreement: float
    error: float


@dataclass(frozen=True, repr=False)
class DLGNComparison(Shown):
    """How near a network with frozen gates has come to its limit.

    Attributes
    ----------
    exact : bool
        Whether `lower` is of the limit itself: one hidden layer. Otherwise it is the path lasso's,
        a bound of every network with these gates.
    value : float
        ``(||w||^2 / L)^(L/2)`` over the smallest margin of the network.
    lower, upper : float
        Certified bounds of the program's optimum.
    local_value : float
        Of the point that the network is heading to; NaN if none was found.
    margin_ratio : float
        `lower / value`, at most 1.
    local_ratio : float
        `local_value / value`, 1 at the end of all training.
    local_bound_ratio : float
        `lower / local_value`: 1 if the local limit is proved to be a global one.
    machine_value : float
        Least norm of the kernel machine at the local limit's own layer weights; NaN unless there
        are two hidden layers.
    interval : Depth3Interval or None
        Bounds of the least value of all networks, where branch and bound can tell.
    beside : dict of name to Beside
    error_network : float
    """

    exact: bool
    value: float
    lower: float
    upper: float
    local_value: float
    margin_ratio: float
    local_ratio: float
    local_bound_ratio: float
    machine_value: float
    interval: Depth3Interval | None
    beside: dict[str, Beside]
    error_network: float

    def to_dict(self) -> dict[str, Any]:
        """Plain Python values."""
        names = (
            "exact", "value", "lower", "upper", "local_value", "margin_ratio", "local_ratio",
            "local_bound_ratio", "machine_value", "error_network",
        )  # fmt: skip
        return {
            **{name: getattr(self, name) for name in names},
            "interval": None if self.interval is None else self.interval.to_dict(),
            "beside": {name: asdict(one) for name, one in self.beside.items()},
        }


def network_value(network: torch.nn.Module, sample: Sample) -> float:
    """``(||w||^2 / L)^(L/2)`` over the smallest margin; NaN where that is not positive."""
    margin = float((sample.y * scores(network, sample)).min())
    if not margin > 0:
        return math.nan
    degree: int = network.degree  # type: ignore[assignment]
    squares = sum(float(p.detach().double().square().sum()) for p in network.parameters())
    return float((squares / degree) ** (degree / 2)) / margin


def distinct(sample: Sample) -> Sample:
    """One sample of each kind that the value network cannot tell apart.

    Behind constant experts all samples of one activation pattern are one: as copies of each other
    they have one constraint, and multipliers that nothing decides between.
    """
    rows = np.column_stack([sample.X, np.asarray(sample.gates, dtype=float), sample.y])
    kept = np.sort(np.unique(rows, axis=0, return_index=True)[1])
    return Sample(sample.X[kept], sample.y[kept], np.asarray(sample.gates)[kept])


def beside_scores(
    status: str, residual: float, found: np.ndarray, trained: np.ndarray, y: np.ndarray
) -> Beside:
    """A classifier with the scores `found` beside the network's."""
    return Beside(
        status=status,
        residual=residual,
        score_cosine=cosine(found, trained),
        agreement=agreement(found, trained),
        error=error_rate(y, found),
    )


def comparison_tables(
    comparison: DLGNComparison, local: LocalLimit | None, name: str
) -> tuple[Table, Table]:
    """What is known, line by line with its standing; and classifiers beside the network."""
    lines = [*_value_rows(comparison, name), *_local_rows(comparison, local)]
    lines += _depth3_rows(comparison)
    known = Table("the network beside its limit", ("", "value", "what it is"), tuple(lines))
    found = list(comparison.beside.values())
    beside = (
        ("status", *(one.status for one in found)),
        ("gap | residual (certified)", *(number(one.residual, ".1e") for one in found)),
        ("cosine of held-out scores", *(number(one.score_cosine, ".4f") for one in found)),
        ("agreement on held-out labels", *(share(one.agreement) for one in found)),
        ("held-out error", *(share(one.error) for one in found)),
        ("held-out error, network", *(share(comparison.error_network) for _ in found)),
    )
    title = "classifiers beside the network (measured)"
    return known, Table(title, ("", *comparison.beside), beside)


def _value_rows(comparison: DLGNComparison, name: str) -> list[tuple[str, str, str]]:
    what = "the limit's value" if comparison.exact else "every network's value is at least"
    certified = f"[{number(comparison.lower, '.8g')}, {number(comparison.upper, '.8g')}]"
    ratio = "margin ratio (1)" if comparison.exact else "bound / network (at most 1)"
    return [
        ("value of the network", number(comparison.value, ".8g"), MEASURED),
        (f"{what}: optimum of {name}", number(comparison.lower, ".8g"), THEOREM),
        ("  which lies in", certified, CERTIFIED),
        (ratio, number(comparison.margin_ratio, ".4f"), CERTIFIED),
    ]


def _local_rows(comparison: DLGNComparison, local: LocalLimit | None) -> list[tuple[str, str, str]]:
    if local is None:
        return [("value of its local limit", DASH, "not found")]
    lowest = number(float(local.curvature[0])) if len(local.curvature) else DASH
    modes = f"{local.n_zero_modes}, {local.n_symmetry_modes} of them rotations of units"
    return [
        ("value of its local limit", number(local.value, ".8g"), CERTIFIED),
        ("  status", local.status.name, CERTIFIED),
        ("  residual of first-order conditions (0)", number(local.residual), CERTIFIED),
        ("  lowest curvature", lowest, CERTIFIED),
        ("  zero modes", modes, CERTIFIED),
        (
            "  active samples",
            f"{int(local.active.sum())} of {len(local.active)} distinct",
            CERTIFIED,
        ),
        ("local limit / network (1)", number(comparison.local_ratio, ".4f"), MEASURED),
        (
            "limit / local limit (1)" if comparison.exact else "bound / local limit",
            number(comparison.local_bound_ratio, ".4f"),
            CERTIFIED,
        ),
    ]


def _depth3_rows(comparison: DLGNComparison) -> list[tuple[str, str, str]]:
    rows = []
    if math.isfinite(comparison.machine_value):
        text = "kernel machine at the local limit's layer weights, least norm"
        rows.append((text, number(comparison.machine_value, ".8g"), CERTIFIED))
    one = comparison.interval
    if one is not None:
        found = f"[{number(one.lower, '.6g')}, {number(one.upper, '.6g')}]"
        text = f"least value of all networks is in ({one.programs} programs)"
        rows.append((text, found, CERTIFIED))
    return rows
