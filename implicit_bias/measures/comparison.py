"""A trained network beside a predicted limit, measured on the data that both were given."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .._extras import naming_extras
from .._pictures import draw
from .._shown import Shown
from .._solve import to_numpy
from ..data.sample import Sample
from ..limits.limit import Limit
from ..quantities.formatting import DASH, aligned, number, share
from .distances import Distances
from .kkt import KKTDistance
from .scalars import (
    DUAL_SLACK,
    above_one,
    accuracy,
    dead_units,
    error_rate,
    scores,
    unit_norms,
    wrongly_small,
)

if TYPE_CHECKING:
    import pandas as pd
    import torch
    from matplotlib.axes import Axes

__all__ = ["Comparison", "NetworkState", "compare", "measure_network"]

# Non-negative least squares leaves multipliers of the size of rounding where zeros belong; those
# below this share of the largest are taken for such.
NO_SUPPORT = 1e-9
# Margin ratios below this are told with what holds them back.
NEAR = 0.99
_FROM_DISTANCES = (
    "margin_ratio", "network_norm", "zeta_cosine", "score_cosine", "agreement", "error_network",
    "kkt_cosine", "kkt_residual", "kkt_complementarity", "kkt_margin_bound",
)  # fmt: skip


@dataclass(frozen=True)
class NetworkState:
    """What a network is at its own scale.

    Attributes
    ----------
    smallest_margin : float
        On the training data.
    group_norm : float
        `sum_h ||zeta[h]||`; NaN for a network without unit norms.
    normalised_margin : float
        `smallest_margin / group_norm`.
    live : int
        Units with a norm above a thousandth of the largest.
    n_units : int
    support : int
        Training samples with a multiplier above rounding in the KKT fit; -1 where there is no
        fit.
    train_accuracy, val_accuracy : float
        Shares of samples on the right side; a score of exactly 0 is on neither.
    """

    smallest_margin: float
    group_norm: float
    normalised_margin: float
    live: int
    n_units: int
    support: int
    train_accuracy: float
    val_accuracy: float


@dataclass(frozen=True, repr=False)
class Comparison(Shown):
    """How near a network has come to a limit.

    Attributes
    ----------
    margin_ratio : float
        Margin of the network per unit of the limit's norm, times the certified lower bound of
        the optimum: at most 1, and 1 exactly at the limit.
    network_norm : float
        Norm of the network's coefficients, at its own scale, in the limit's norm.
    zeta_cosine : float
        Cosine between the two sets of coefficients; NaN where the network has none.
    score_cosine : float
        Cosine between the scores on held-out data.
    agreement : float
        Share of held-out samples that both give the same label.
    agreement_independent : float
        What two classifiers with these error rates would agree on if their errors were
        independent: `p q + (1 - p) (1 - q)`.
    error_limit, error_network : float
        Error rates on held-out data.
    kkt_cosine, kkt_residual, kkt_complementarity : float
        Distance of the network's weights from a KKT point of `min ||w||` at margin 1; NaN while
        the network does not separate the training data, and for one that is not homogeneous.
    kkt_margin_bound : float
        The margin ratio, beside the limit of this network, that these and the dual norms imply at
        least: see `KKTDistance.margin_bound`.
    n_units : int
        Hidden units of the network; 0 for one without unit norms.
    dead_units : tuple of int
        Units with a norm of at most a thousandth of the largest.
    small_units : tuple of int
        Units that would have to be larger at the optimum: dead ones with a dual norm above 1, and
        those with one above 1.01 that hold less than half of the share of the norm that the limit
        gives them. Empty where dual norms are not known.
    dual_norms : tuple of float
        Of every unit: a unit may stay as small as it is only at or below 1. Empty where they are
        not known, as for a network that does not separate.
    """

    margin_ratio: float
    network_norm: float
    zeta_cosine: float
    score_cosine: float
    agreement: float
    agreement_independent: float
    error_limit: float
    error_network: float
    kkt_cosine: float
    kkt_residual: float
    kkt_complementarity: float
    kkt_margin_bound: float
    n_units: int
    dead_units: tuple[int, ...]
    small_units: tuple[int, ...]
    dual_norms: tuple[float, ...]

    @property
    def dead_dual_norms(self) -> tuple[float, ...]:
        """Dual norms of the dead units: one is rightly dead only at or below 1."""
        return tuple(self.dual_norms[h] for h in self.dead_units) if self.dual_norms else ()

    @property
    def largest_dual_norm(self) -> float:
        """Over all units; NaN where dual norms are not known."""
        return max(self.dual_norms, default=math.nan)

    @property
    def n_wrongly_dead(self) -> int | None:
        """Dead units with a dual norm above 1; None where the dual norms are not known."""
        if self.dead_units and not self.dual_norms:
            return None
        return int(above_one(np.array(self.dead_dual_norms)).sum())

    @property
    def n_wrongly_small(self) -> int | None:
        """Number of `small_units`; None where the dual norms are not known."""
        return len(self.small_units) if self.dual_norms or not self.n_units else None

    @property
    def dual_condition(self) -> bool | None:
        """Whether every unit's dual norm is at most 1, as it is at the optimum.

        True if all are at most 1.01, False if a unit is wrongly small. None otherwise: dual norms
        are not known, or exceed 1 for units of about the right size, which may come of the time.
        """
        if self.small_units:
            return False
        return True if self.largest_dual_norm <= 1 + DUAL_SLACK or not self.n_units else None

    @property
    def held_back_by(self) -> str:
        """What keeps a network that separates below a margin ratio of 0.99; empty above it."""
        if not 0 < self.margin_ratio < NEAR:
            return ""
        if self.small_units:
            return "slow units: their dual norms exceed 1, so they still grow"
        if self.kkt_residual < 1 - NEAR and self.largest_dual_norm > 1 + DUAL_SLACK:
            return "a saddle: stationary, but with a dual norm above 1"
        if self.kkt_residual < 1 - NEAR:
            return "the loss: stationary, but multipliers reach beyond the margin"
        return "time: the weights are not stationary yet"

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the dual norms of the network's units; see `Limit.plot` for `ax`."""
        return draw("drawing.results:plot_dual_norms", self, ax=ax)

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain Python values."""
        return asdict(self)

    @naming_extras()
    def to_frame(self) -> pd.DataFrame:
        """One row, one column a scalar field, to be stacked over runs."""
        import pandas as pd

        scalars = {k: v for k, v in self.to_dict().items() if not isinstance(v, tuple)}
        return pd.DataFrame([scalars | {"n_dead": len(self.dead_units)}])

    def rows(self) -> list[tuple[str, str]]:
        """Label and value of every line of a printed table."""
        complementarity = self.kkt_complementarity
        return [
            ("margin ratio (1 at the limit)", number(self.margin_ratio, ".4f")),
            ("cosine of zeta (1)", number(self.zeta_cosine, ".4f")),
            ("cosine of held-out scores (1)", number(self.score_cosine, ".4f")),
            ("agreement on held-out labels", share(self.agreement)),
            ("  if errors were independent", share(self.agreement_independent)),
            ("held-out error, limit", share(self.error_limit)),
            ("held-out error, network", share(self.error_network)),
            ("KKT stationarity, cosine (1)", number(self.kkt_cosine, ".4f")),
            ("KKT stationarity, relative residual (0)", number(self.kkt_residual)),
            ("KKT complementarity, multipliers beyond the margin (0)", number(complementarity)),
            ("  own margin ratio that these imply, at least", number(self.kkt_margin_bound, ".4f")),
            *(self._unit_rows() if self.n_units > 1 else []),
            *([("what keeps it below 0.99", self.held_back_by)] if self.held_back_by else []),
        ]

    def _unit_rows(self) -> list[tuple[str, str]]:
        def count(units: tuple[int, ...], known: bool = True) -> str:
            names = f": {', '.join(map(str, units))}" if 0 < len(units) <= 8 else ""
            return f"{len(units)} of {self.n_units}{names}" if known else DASH

        return [
            ("dead units of the network", count(self.dead_units)),
            ("largest dual norm of a unit (at most 1)", number(self.largest_dual_norm)),
            ("units wrongly small (0)", count(self.small_units, bool(self.dual_norms))),
        ]

    def _shown_rows(self) -> list[tuple[str, str]]:
        return self.rows()

    def __str__(self) -> str:
        return aligned(self.rows())


def compare(
    limit: Limit,
    network: torch.nn.Module,
    train: Sample,
    val: Sample,
    *,
    kkt: KKTDistance | None = None,
) -> Comparison:
    """Compare a network with a limit on training and held-out data.

    Parameters
    ----------
    limit : Limit
        One that separates its training data: `SOLVED` or `INACCURATE`.
    network : Module
        Scores `network(X, gates)`; with `zeta()` and `unit_norms()` where it has them.
    train, val : Sample
        Data with the gates that limit and network use.
    kkt : KKTDistance, optional
        Of the network on its training data, if it has been computed already.

    Returns
    -------
    Comparison
        Quantities that are not defined for this pair are NaN.

    Raises
    ------
    ValueError
        If the limit does not separate its training data, the held-out sample is empty, or shapes
        do not fit.
    FloatingPointError
        If a score of the network is NaN.
    """
    distances = Distances(limit, train, val)
    now = distances(network, kkt=kkt)
    p, q = error_rate(to_numpy(val.y), distances.predicted_scores()), now["error_network"]
    norms, dual_norms = unit_norms(network), now.get("dual_norms", np.empty(0))
    known = len(dual_norms) > 0 and not np.isnan(dual_norms).any()
    return Comparison(
        **{name: now[name] for name in _FROM_DISTANCES},
        agreement_independent=p * q + (1 - p) * (1 - q),
        error_limit=p,
        n_units=len(norms),
        dead_units=tuple(dead_units(norms).tolist()),
        small_units=tuple(wrongly_small(norms, dual_norms, limit).tolist()) if known else (),
        dual_norms=tuple(dual_norms.tolist()) if known else (),
    )


def measure_network(
    network: torch.nn.Module, train: Sample, held_out: Sample, kkt: KKTDistance | None = None
) -> NetworkState:
    """Margins, norms and accuracies of a network; `kkt` supplies its support vectors."""
    trained = scores(network, train)
    norms = unit_norms(network)
    group_norm = float(norms.sum()) if len(norms) else math.nan
    smallest = float((to_numpy(train.y) * trained).min())
    return NetworkState(
        smallest_margin=smallest,
        group_norm=group_norm,
        normalised_margin=smallest / group_norm if group_norm > 0 else math.nan,
        live=len(norms) - len(dead_units(norms)),
        n_units=len(norms),
        support=-1 if kkt is None else _n_support(kkt.multipliers),
        train_accuracy=accuracy(to_numpy(train.y), trained),
        val_accuracy=accuracy(to_numpy(held_out.y), scores(network, held_out))
        if len(held_out.y)
        else math.nan,
    )


def _n_support(multipliers: NDArray[np.float64]) -> int:
    return int(np.sum(multipliers > NO_SUPPORT * multipliers.max()))
