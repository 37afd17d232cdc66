"""Units whose share of the norm has yet to change: predicted direction, loss and steps."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..data.sample import Sample
from ..limits.limit import Limit
from ..measures.growth.clocks import PACED, Clock, ConstantClock, clock_of, pace_of
from ..measures.growth.growth_law import Arrival, UnitChange, UnitGrowth
from ..measures.growth.unit_growth import unit_growth
from ..measures.kkt import KKTDistance
from ..measures.scalars import unit_norms
from ..networks.protocols import HasDualNorms, Homogeneous
from ..quantities.formatting import power_of_ten, rounded, share
from ..quantities.said import Table
from ..training.settings import TrainingSettings
from ..training.trajectory import Trajectory
from .drawing.figures import Panels
from .reports.finding import Finding

if TYPE_CHECKING:
    import torch


TITLE = "units whose share of the norm descent has yet to change"
COLUMNS = ("unit", "predicted to first order", "steps that takes, by trainer")
# Lines of the table; what is left is in the record.
MOST = 8
# Samples times weights up to which 300 steps of another trainer are a matter of a second or two.
CHEAP = 2e7
# A unit is active at this share of the norm.
ACTIVE = 0.1
# Powers of growth that differ by less are one.
ALIGNED = 0.02


def slow_units_finding(
    network: torch.nn.Module,
    train: Sample,
    limit: Limit | None,
    run: tuple[Trajectory, TrainingSettings],
    kkt: KKTDistance | None,
    *,
    among: str = "",
) -> Finding:
    """Predict from dual norms which units change; empty without dual norms or separation.

    Parameters
    ----------
    network : Module
    train : Sample
    limit : Limit or None
        None where the limit is not that of the network.
    run : (Trajectory, TrainingSettings)
        The training of the network, by which its own clock is measured.
    kkt : KKTDistance or None
        `kkt_distance` of the network on `train`; None if it does not separate.
    among : str
        Name of the trainer where the run has several.
    """
    trajectory, settings = run
    several = isinstance(network, Homogeneous) and isinstance(network, HasDualNorms)
    if kkt is None or not several or len(unit_norms(network)) < 2:
        return Finding("slow units")
    clocks = _clocks(trajectory, settings)
    growth = unit_growth(network, *train, limit=limit, clocks=clocks, kkt=kkt)
    if not growth.changes:
        return growth_finding(growth)
    clocks = [*clocks, *_paces(network, train, settings.trainer)]
    growth = unit_growth(network, *train, limit=limit, clocks=clocks, kkt=kkt)
    panels = Panels("unit_growth:growth_panels", (trajectory, growth, among))
    return growth_finding(growth).also(panels=(panels,))


def growth_finding(growth: UnitGrowth) -> Finding:
    """Return the finding of units whose share will change, without a picture."""
    return Finding.said(
        "slow units",
        record={"unit_growth": growth.to_dict()},
        tables=_tables(growth),
        objects={"unit_growth": growth},
    )


def _clocks(trajectory: Trajectory, settings: TrainingSettings) -> list[Clock]:
    """Return clocks of constant steps, at the run's own rate if it takes them, and of the run."""
    own = clock_of(trajectory, settings)
    if own is not None:
        return [ConstantClock(), own]
    rate = settings.phases[-1][1]
    if settings.trainer != "constant" or rate is None:
        return [ConstantClock()]
    return [ConstantClock(rate / (1 - settings.momentum))]


def _paces(network: torch.nn.Module, train: Sample, own: str) -> list[Clock]:
    """Return clocks of trainers that follow the flow and were not run, where that is cheap."""
    work = len(train.y) * sum(weight.numel() for weight in network.parameters())
    names = [name for name in PACED if name != own] if work <= CHEAP else []
    found = (pace_of(network, *train, trainer=name) for name in names)
    return [clock for clock in found if clock is not None]


def _tables(growth: UnitGrowth) -> tuple[Table, ...]:
    if growth.degree < 2:
        return ()
    if growth.reason:
        rows: tuple[tuple[str, ...], ...] = (("all", f"not predicted: {growth.reason}", "-"),)
        return (Table(TITLE, COLUMNS, rows),)
    changes = sorted(growth.changes, key=_importance, reverse=True)
    rows = tuple(map(_row, changes[:MOST]))
    if len(changes) > MOST:
        rows += ((f"{len(changes) - MOST} more", "see the record of the run", ""),)
    return (Table(TITLE, COLUMNS, rows),) if rows else ()


def _importance(change: UnitChange) -> float:
    """Return how much of the norm is at stake, as far as the limit shows."""
    if math.isnan(change.predicted_share):
        return max(change.share, change.exponent)
    return abs(change.predicted_share - change.share)


def _row(change: UnitChange) -> tuple[str, str, str]:
    unit = (
        f"unit {change.unit}, {share(change.share)} of the norm, dual norm {change.dual_norm:.3g}"
    )
    if change.share == 0:
        return unit, "exactly zero, and gradient descent leaves it there", "-"
    if not change.arrivals:
        return unit, "moves away from its limiting share until dual norms change", "-"
    grows = change.exponent > 0
    main = _first(change.arrivals, grows)
    text = (
        f"predicted to {'reach' if grows else 'fall to'} {_mark(main, change)} "
        f"({rounded(main.earliest)} to {rounded(main.latest)})"
    )
    for one in change.arrivals:
        if one is not main:
            text += f"; {_mark(one, change)}"
    if change.predicted_share == 0:
        text += "; it is dead in the limit"
    if abs(change.growth_now - change.exponent) > ALIGNED:
        text += (
            f"; its share goes like log(1/loss)^{change.growth_now:.2g} now, "
            f"log(1/loss)^{change.exponent:.2g} once its direction has settled"
        )
    return (
        unit,
        text,
        "; ".join(f"{name}: {power_of_ten(steps)}" for name, steps in main.log10_steps),
    )


def _mark(arrival: Arrival, change: UnitChange) -> str:
    """Return a share and its log(1/loss), a lower bound for the limit's share.

    Near that the dual norm tends to 1, and growth slows down.
    """
    text, time = share(arrival.share), rounded(arrival.log_inverse_loss)
    if arrival.share == change.predicted_share:
        return f"its limiting share, {text}, no earlier than log(1/loss) = {time}"
    return f"{text} at about log(1/loss) = {time}"


def _first(arrivals: Sequence[Arrival], grows: bool) -> Arrival:
    """Return the arrival that counts: active, or as near as it comes; of dying units the first."""
    if not grows:
        return arrivals[0]
    return next((one for one in arrivals if one.share >= ACTIVE), arrivals[-1])
