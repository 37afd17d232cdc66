"""The prospects of a run: where its margin ratio is heading, and how fast."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._support.solve import Status
from ..measures.growth.extrapolation import (
    Extrapolation,
    extrapolate,
    inverse_log_loss,
)
from ..measures.growth.rates import ANGLE, MARGIN, Rate, measure_rates, proved_method
from ..quantities.formatting import DASH
from ..quantities.said import Table
from ..quantities.table import lines
from ..training.settings import TrainingSettings
from ..training.trajectory import Trajectory
from .classes.label_agreement import AgreementAhead
from .reports.finding import Finding

# A run is extrapolated to so many times its log(1/loss): runs that were taken 10 and 20 times as
# many steps came to between twice (constant steps) and forty times theirs.
FARTHER = 10
# Trainers whose units grow as the law of dual norms says. Under "annealed", whose log(1/loss) is
# that of its schedule, small units grow sooner, and 8 of 30 later ratios lay above their bars.
FOLLOWS = frozenset({"constant", "normalised", "momentum", "dual"})
EXPONENTS = "exponents over the last half of the checkpoints"
EXTRAPOLATED = "extrapolated to zero loss"
PROVED = ("proved of the limit, by the certificate", "at most 1")


def prospects(
    trajectory: Trajectory,
    *,
    degree: int,
    settings: TrainingSettings,
    control: bool,
    ahead: AgreementAhead | None = None,
) -> Finding:
    """Extrapolate the margin ratio of a run that ended, and measure its rates.

    Parameters
    ----------
    trajectory : Trajectory
        With `margin_ratio` and `zeta_cosine` observed along it.
    degree : int
        Degree of homogeneity of the network.
    settings : TrainingSettings
        Those of the run: known exponents stand beside measured ones where they are proved for it.
    control : bool
        True where the limit is another network's, so that no distance from it tends to 0.
    ahead : AgreementAhead, optional
        The loss from which labels agree with the limit's.
    """
    if settings.trainer not in FOLLOWS:
        return _no_descent(trajectory)
    ratio = trajectory.observed["margin_ratio"]
    u = inverse_log_loss(trajectory.log_loss)
    # Units that keep one network from its own limit keep it from no other's.
    dual_norms = None if control else trajectory.observed.get("dual_norms")
    units = {}
    if dual_norms is not None:
        units = {"dual_norms": dual_norms[-1], "unit_norms": trajectory.unit_norms[-1]}
    limit = extrapolate(u, ratio, upper=1.0, degree=degree, **units)
    distances = {}
    if not control:
        cosines = np.clip(trajectory.observed["zeta_cosine"], -1, 1)
        distances = {MARGIN: 1 - ratio, ANGLE: np.arccos(cosines)}
    rates = measure_rates(
        trajectory.step,
        trajectory.log_loss,
        distances,
        weight_norm=trajectory.weight_norm,
        degree=degree,
        trainer=proved_method(settings),
    )
    going = (
        *_reached(trajectory),
        *_farther(limit, float(u[-1])),
        (EXTRAPOLATED, str(limit)),
        *((f"unit {h} keeps it below 1", _slow(trajectory, h)) for h in limit.slow_units),
        PROVED,
        *([] if ahead is None else [ahead.row()]),
    )
    return Finding.said(
        "prospects",
        record={
            "extrapolation": limit.to_dict(),
            "farther": _bar(limit, float(u[-1])),
            "rates": [rate.to_dict() for rate in rates],
            "agreement_ahead": None if ahead is None else ahead.to_dict(),
        },
        tables=(_table(going), *_exponents(rates, settings)),
        row={} if ahead is None else {"agreement_from": ahead.log_inverse_loss},
    )


def heading_finding(limit: Extrapolation, reached: float, u: float) -> Finding:
    """Return where a margin ratio is going, of a run of which its loss and margins alone are known.

    Parameters
    ----------
    limit : Extrapolation
    reached : float
        The last margin ratio.
    u : float
        1 / log(1/loss) there.
    """
    rows = (
        *lines({"margin_ratio": reached}, "margin_ratio"),
        *_farther(limit, u),
        (EXTRAPOLATED, str(limit)),
        PROVED,
    )
    record = {"extrapolation": limit.to_dict(), "farther": _bar(limit, u)}
    return Finding.said("prospects", record=record, tables=(_table(rows),))


def farther_in_words(found: Finding) -> str:
    """Return what `prospects` predicts of a run that goes on; empty where that says nothing."""
    bar = found.views.record["farther"]
    if bar is None or not bar["informative"]:
        return ""
    ends = " to ".join(dict.fromkeys(f"{bar[end]:.4f}" for end in ("low", "high")))
    return f"predicted at {FARTHER} times its log(1/loss): margin ratio {ends}"


def _no_descent(trajectory: Trajectory) -> Finding:
    """Return the finding for a trainer whose log(1/loss) is that of its schedule: no series."""
    rows = (
        *_reached(trajectory),
        (EXTRAPOLATED, "not: no descent"),
        PROVED,
    )
    nothing: dict[str, Any] = {
        "extrapolation": None, "farther": None, "rates": [], "agreement_ahead": None,
    }  # fmt: skip
    return Finding.said("prospects", record=nothing, tables=(_table(rows),))


def _reached(trajectory: Trajectory) -> list[tuple[str, ...]]:
    return lines({"margin_ratio": float(trajectory.observed["margin_ratio"][-1])}, "margin_ratio")


def _table(rows: tuple[tuple[str, ...], ...]) -> Table:
    return Table("where the margin ratio is going", ("", "value"), rows, of_network=True)


def _farther(limit: Extrapolation, u: float) -> tuple[tuple[str, str], ...]:
    """Return the margin ratio that is to come, as far as descent is known to follow its series."""
    if limit.status is not Status.ESTIMATED:
        return ()
    bar = limit.in_words(limit.predict(u / FARTHER))
    return ((f"at {FARTHER} times its log(1/loss)", bar),)


def _bar(limit: Extrapolation, u: float) -> dict[str, Any] | None:
    """Return the record of the same."""
    if limit.status is not Status.ESTIMATED:
        return None
    bar = limit.predict(u / FARTHER)
    return {"low": bar.low, "high": bar.high, "informative": limit.says(bar)}


def _slow(trajectory: Trajectory, unit: int) -> str:
    norms = trajectory.unit_norms[-1]
    share, dual_norm = norms[unit] / norms.sum(), trajectory.observed["dual_norms"][-1][unit]
    return f"dual norm {dual_norm:.3f}, but {share:.2g} of the norm: it still has to grow"


def _exponents(rates: Sequence[Rate], settings: TrainingSettings) -> tuple[Table, ...]:
    """Return measured exponents beside the known ones; no table without any."""
    rows: tuple[tuple[str, ...], ...] = tuple(
        rate.row()
        for rate in rates
        if rate.status is Status.ESTIMATED
        and (rate.variable != "log t" or settings.trainer == "constant")
    )
    title = EXPONENTS
    columns: tuple[str, ...] = ("", "measured", "known", "of what")
    if all(row[2] == DASH for row in rows):
        columns, rows = columns[:2], tuple(row[:2] for row in rows)
    return (Table(title, columns, rows),) if rows else ()
