"""The prospects of a run: where its margin ratio is heading, and how fast."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
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
    ratio = trajectory.observed["margin_ratio"]
    reached, u = float(ratio[-1]), inverse_log_loss(trajectory.log_loss)
    if settings.trainer not in FOLLOWS:  # log(1/loss) is that of its schedule: no series
        nothing: dict[str, Any] = {
            "extrapolation": None, "farther": None, "rates": [], "agreement_ahead": None,
        }  # fmt: skip
        return _finding(reached, [(EXTRAPOLATED, "not: no descent"), PROVED], nothing)
    # Units that keep one network from its own limit keep it from no other's.
    observed = None if control else trajectory.observed.get("dual_norms")
    norms, units = trajectory.unit_norms[-1], {}
    if observed is not None:
        units = {"dual_norms": observed[-1], "unit_norms": norms}
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
    slow = [
        (
            f"unit {h} keeps it below 1",
            f"dual norm {units['dual_norms'][h]:.3f}, but {norms[h] / norms.sum():.2g} of the "
            "norm: it still has to grow",
        )
        for h in limit.slow_units
    ]
    found = heading_finding(limit, reached, float(u[-1]), slow, [] if ahead is None else [ahead])
    return found.also(
        record={
            "rates": [rate.to_dict() for rate in rates],
            "agreement_ahead": None if ahead is None else asdict(ahead),
        },
        tables=_exponents(rates, settings),
        row={} if ahead is None else {"agreement_from": ahead.log_inverse_loss},
    )


def heading_finding(
    limit: Extrapolation,
    reached: float,
    u: float,
    slow: Sequence[tuple[str, str]] = (),
    ahead: Sequence[AgreementAhead] = (),
) -> Finding:
    """Return where a margin ratio is going, of a run of which its loss and margins alone are known.

    Parameters
    ----------
    limit : Extrapolation
    reached : float
        The last margin ratio.
    u : float
        1 / log(1/loss) there.
    slow : sequence of (label, text)
        Lines about units that keep it from its limit.
    ahead : sequence of AgreementAhead
        One at most.
    """
    farther, rows = None, [(EXTRAPOLATED, str(limit)), *slow, PROVED, *(one.row() for one in ahead)]
    if limit.status is Status.ESTIMATED:
        bar = limit.predict(u / FARTHER)
        farther = {"low": bar.low, "high": bar.high, "informative": limit.says(bar)}
        rows.insert(0, (f"at {FARTHER} times its log(1/loss)", limit.in_words(bar)))
    return _finding(reached, rows, {"extrapolation": limit.to_dict(), "farther": farther})


def _finding(reached: float, going: Sequence[tuple[str, str]], record: dict[str, Any]) -> Finding:
    rows = (*lines({"margin_ratio": reached}, "margin_ratio"), *going)
    table = Table("where the margin ratio is going", ("", "value"), rows, of_network=True)
    return Finding.said("prospects", record=record, tables=(table,))


def farther_in_words(found: Finding) -> str:
    """Return what `prospects` predicts of a run that goes on; empty where that says nothing."""
    bar = found.views.record["farther"]
    if bar is None or not bar["informative"]:
        return ""
    ends = " to ".join(dict.fromkeys(f"{bar[end]:.4f}" for end in ("low", "high")))
    return f"predicted at {FARTHER} times its log(1/loss): margin ratio {ends}"


def _exponents(rates: Sequence[Rate], settings: TrainingSettings) -> tuple[Table, ...]:
    """Return measured exponents beside the known ones; no table without any."""
    rows: tuple[tuple[str, ...], ...] = tuple(
        rate.row()
        for rate in rates
        if rate.status is Status.ESTIMATED
        and (rate.variable != "log t" or settings.trainer == "constant")
    )
    columns: tuple[str, ...] = ("", "measured", "known", "of what")
    if all(row[2] == DASH for row in rows):
        columns, rows = columns[:2], tuple(row[:2] for row in rows)
    return (Table(EXPONENTS, columns, rows),) if rows else ()
