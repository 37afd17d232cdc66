"""Pictures of students and teachers; every function draws on axes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...data.arrays import Floats
from ...quantities.table import TABLE
from ...runs.drawing.figures import legend_above
from ...runs.drawing.palette import BLUE, GREEN, GREY, VERMILLION
from .comparison import DistillationComparison, StudentCurves
from .limit import DistillationLimit
from .risk import AngleTail, LearningCurve, RiskBound

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_span_error(ax: Axes, curves: StudentCurves) -> Axes:
    """Draw how far network and flow are from the teacher in the span of the samples, over time."""
    _over_time(ax, curves.time, curves.span_error)
    ax.set_yscale("log")
    ax.set_ylabel("off the teacher, in the span")
    legend_above(ax)
    return ax


def plot_null_part(ax: Axes, curves: StudentCurves, limit: DistillationLimit) -> Axes:
    """Draw the length of the part orthogonal to the samples, its limit, and the published bound."""
    _over_time(ax, curves.time, curves.null_norm)
    ax.axhline(limit.null_norm, color=GREEN, linestyle=":", label="limit c")
    if np.isfinite(limit.null_bound):
        ax.axhline(limit.null_bound, color=GREY, linestyle="-.", label="published bound")
    highest = max(float(curves.null_norm.max()), limit.null_norm)
    bound = limit.null_bound if np.isfinite(limit.null_bound) else 0.0
    ax.set_ylim(0.0, 1.1 * max(highest, bound) or 1.0)
    ax.set_ylabel("off the span of the samples")
    legend_above(ax)
    return ax


def plot_tail(ax: Axes, tail: AngleTail, known: Floats | None = None) -> Axes:
    """Draw the share p(theta) of inputs beyond an angle with the teacher; a known one is (2, A)."""
    m = len(tail.angles)
    beyond = 1 - np.arange(m) / m
    ax.step(np.degrees(tail.angles), beyond, where="pre", color=BLUE, label="held out")
    if known is not None:
        ax.plot(np.degrees(known[0]), known[1], color=VERMILLION, linestyle="--", label="as drawn")
    ax.set_xlim(0, 90)
    ax.set_ylim(0, 1)
    ax.set_xlabel(TABLE["angle"].label)
    ax.set_ylabel("share of inputs beyond it")
    legend_above(ax)
    return ax


def plot_bound(ax: Axes, tail: AngleTail, n: int, bound: RiskBound, risk: float) -> Axes:
    """Draw both bounds of the expected risk over beta, and the risk of this student."""
    beta = np.linspace(0, np.pi / 2, 400)
    far, near = tail(beta), tail(np.pi / 2 - beta) ** n
    ax.plot(np.degrees(beta), far + near, color=GREY, label="as printed")
    ax.plot(np.degrees(beta), far + (1 - far) * near, color=BLUE, label="sharper")
    ax.axhline(bound.sharper, color=BLUE, linestyle=":", label=f"least {bound.sharper:.3g}")
    ax.axhline(risk, color=VERMILLION, linestyle="--", label=f"risk {risk:.3g}")
    ax.set_xlim(0, 90)
    ax.set_ylim(0, 1.05)
    ax.set_xlabel("beta, degrees")
    ax.set_ylabel(TABLE["risk_bound"].label)
    legend_above(ax)
    return ax


def plot_learning(ax: Axes, curve: LearningCurve) -> Axes:
    """Draw the angle with the teacher, which never rises, and the risk, over samples."""
    samples = np.arange(1, len(curve.angles) + 1)
    (angle,) = ax.plot(samples, np.degrees(curve.angles), color=BLUE, label="angle (left)")
    ax.set_xlabel("samples")
    ax.set_ylabel(TABLE["angle"].label)
    ax.set_ylim(bottom=0.0)
    right = ax.twinx()
    (risk,) = right.plot(
        samples, curve.risks, color=VERMILLION, linestyle="--", label="risk (right)"
    )
    right.set_ylabel("risk")
    right.set_ylim(bottom=0.0)
    legend_above(ax, [angle, risk])
    return ax


_STYLES = (
    {"color": BLUE, "linewidth": 1.8, "label": "network"},
    {"color": VERMILLION, "linestyle": "--", "linewidth": 1.2, "label": "flow"},
)


def _over_time(ax: Axes, time: Floats, both: Floats) -> None:
    """Draw a distance (2, T) of network and flow over time."""
    # The start has a place on a logarithmic axis: half of the first time.
    times = np.where(time > 0, time, 0.5 * time[time > 0].min(initial=np.inf))
    for values, style in zip(both, _STYLES, strict=True):
        ax.plot(times, values, **style)  # type: ignore[arg-type]
    ax.set_xscale("log")
    ax.set_xlabel(DistillationComparison.declared["time"].quantity.label)
