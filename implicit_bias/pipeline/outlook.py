"""Where a run was going when it ended, and how fast."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..measures.extrapolation import (
    Extrapolation,
    SeriesStatus,
    extrapolate,
    inverse_log_loss,
)
from ..measures.formatting import number
from ..measures.rates import ANGLE, MARGIN, Rate, measure_rates, proved_method
from ..training.settings import TrainingSettings
from ..training.trajectory import Trajectory
from .finding import Finding, Table

__all__ = ["outlook"]

# How many times its log(1/loss) a run is looked ahead: runs that were taken 10 and 20 times as many
# steps came to between twice (constant steps) and forty times theirs.
FARTHER = 10
# Trainers whose units grow as the law of dual norms says. Under "annealed", whose log(1/loss) is
# that of its schedule, small units wake sooner, and 8 of 30 later ratios lay above their bars.
FOLLOWS = frozenset({"constant", "normalised", "momentum", "dual"})


def outlook(
    trajectory: Trajectory, *, degree: int, settings: TrainingSettings, control: bool
) -> Finding:
    """Where the margin ratio was going when the run ended, and how fast.

    Parameters
    ----------
    trajectory : Trajectory
        With `margin_ratio` and `zeta_cosine` observed along it.
    degree : int
        Degree of homogeneity of the network.
    settings : TrainingSettings
        Of the run: known exponents stand beside measured ones where they are proved of its steps.
    control : bool
        Whether the limit is another network's, so that no distance from it tends to 0.
    """
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
        ("margin ratio reached", number(float(ratio[-1]), ".4f")),
        *_farther(limit, float(u[-1]), settings),
        ("extrapolated to zero loss", str(limit)),
        *((f"unit {h} keeps it below 1", _asleep(trajectory, h)) for h in limit.slow_units),
        ("proved of the limit, by the certificate", "at most 1"),
    )
    tables = (Table("where the margin ratio is going", ("", "value"), going),)
    return Finding(
        "outlook",
        record={"extrapolation": limit.to_dict(), "rates": [rate.to_dict() for rate in rates]},
        tables=tables + _exponents(rates, settings),
    )


def _farther(
    limit: Extrapolation, u: float, settings: TrainingSettings
) -> tuple[tuple[str, str], ...]:
    """Where the margin ratio comes to, as far along as descent is known to follow its series."""
    if limit.status is not SeriesStatus.ESTIMATED or settings.trainer not in FOLLOWS:
        return ()
    bar = limit.in_words(limit.predict(u / FARTHER))
    return ((f"at {FARTHER} times its log(1/loss)", bar),)


def _asleep(trajectory: Trajectory, unit: int) -> str:
    norms = trajectory.unit_norms[-1]
    share, dual_norm = norms[unit] / norms.sum(), trajectory.observed["dual_norms"][-1][unit]
    return f"dual norm {dual_norm:.3f}, but {share:.2g} of the norm: it still has to grow"


def _exponents(rates: Sequence[Rate], settings: TrainingSettings) -> tuple[Table, ...]:
    """Measured exponents beside the known ones; no table without any."""
    rows = tuple(
        rate.row()
        for rate in rates
        if rate.status is SeriesStatus.ESTIMATED
        and (rate.variable != "log t" or settings.trainer == "constant")
    )
    title = "exponents over the last half of the checkpoints"
    return (Table(title, ("", "measured", "known", "of what"), rows),) if rows else ()
