"""A trained network beside a predicted limit, measured on the data that both were given."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .._support.doors import door, result
from .._support.extras import naming_extras
from .._support.pictures import draw
from .._support.solve import to_numpy
from ..data.sample import Sample
from ..limits.limit import Limit
from ..quantities.measured import Measured, derived, part, quantity
from .distances import Distances
from .kkt import KKTDistance
from .own_norm import OwnNorm
from .scalars import (
    DUAL_SLACK,
    above_one,
    accuracy,
    dead_units,
    error_rate,
    sample_margins,
    scores,
    unit_norms,
    wrongly_small,
)

if TYPE_CHECKING:
    import pandas as pd
    import torch
    from matplotlib.axes import Axes

    from ..limits.exact.multiclass import MulticlassLimit

# Non-negative least squares leaves multipliers of the size of rounding where zeros belong; those
# below this share of the largest are taken for such.
NO_SUPPORT = 1e-9
# Comparisons with margin ratios below this name what keeps them there.
NEAR = 0.99
# A ratio that is proved of a network beside its own limit, and exceeds that beside another by
# this, is of two limits: certified gaps and rounding are a thousand times smaller.
APART = 1e-4
# Units that are named by their numbers.
NAMED = 4
_OF_UNITS = ("n_dead", "largest_dual_norm", "n_wrongly_small")
_FROM_DISTANCES = (
    "margin_ratio", "network_norm", "zeta_cosine", "score_cosine", "agreement", "error_network",
    "kkt_cosine", "kkt_residual", "kkt_complementarity", "kkt_margin_bound",
)  # fmt: skip


class NetworkState(Measured, eq=True):
    """A network at its own scale."""

    smallest_margin: float = quantity()
    group_norm: float = quantity(
        "sum of unit norms",
        ".6g",
        doc="`sum_h ||zeta[h]||`; NaN for a network without unit norms.",
    )
    normalised_margin: float = quantity(
        "smallest margin over the sum of unit norms", doc="`smallest_margin / group_norm`."
    )
    live: int = part("Units with a norm above a thousandth of the largest.")
    n_units: int = part("Hidden units; 0 for a network without unit norms.")
    support: int = part(
        "Training samples with a multiplier above rounding in the KKT fit; -1 where there is no "
        "fit."
    )
    train_accuracy: float = quantity()
    val_accuracy: float = quantity()

    @derived(shown=False)
    def train_error_network(self) -> float:
        """Share of training samples that are not on the right side."""
        return 1 - self.train_accuracy

    @derived(shown=False)
    def error_network(self) -> float:
        """Share of held-out samples that are not on the right side."""
        return 1 - self.val_accuracy


class FunctionComparison(Measured, eq=True):
    """The function of a network beside that of a limit, on the same data."""

    margin_ratio: float = quantity()
    network_norm: float = quantity(shown=False)
    zeta_cosine: float = quantity()
    score_cosine: float = quantity()
    agreement: float = quantity()
    agreement_independent: float = quantity()
    error_limit: float = quantity()
    error_network: float = quantity()


@result()
class Comparison(FunctionComparison, eq=True):
    """Distances between a trained network and a predicted limit, as `compare` returns them.

    Examples
    --------
    >>> sample = ib.Sample(np.array([[3.0, 4.0]]), np.ones(1), np.ones((1, 1)))
    >>> limit = ib.solve_frelu_svm(*sample)
    >>> network = ib.FReLU.from_zeta(np.array([[6.0, 8.0]]))
    >>> found = ib.compare(limit, network, sample, sample)
    >>> found.n_dead, round(found.largest_dual_norm, 6), found.dual_condition
    (0, 1.0, True)
    """

    kkt_cosine: float = quantity()
    kkt_residual: float = quantity()
    kkt_complementarity: float = quantity()
    kkt_margin_bound: float = quantity()
    n_units: int = part("Hidden units of the network; 0 for one without unit norms.")
    dead_units: tuple[int, ...] = part("Units with a norm of at most a thousandth of the largest.")
    small_units: tuple[int, ...] = part(
        "Units that would have to be larger at the optimum: dead ones with a dual norm above 1, "
        "and those with one above 1.01 that hold less than half of the share of the norm that the "
        "limit gives them. Empty where dual norms are not known."
    )
    dual_norms: tuple[float, ...] = part(
        "Dual norms of all units: a unit may stay as small as it is only at or below 1. Empty "
        "where they are not known, as for a network that does not separate."
    )

    @derived()
    def n_dead(self) -> int | None:
        """Number of `dead_units`; None for a network without units."""
        return len(self.dead_units) if self.n_units else None

    @property
    def dead_dual_norms(self) -> tuple[float, ...]:
        """Dual norms of the dead units: one is rightly dead only at or below 1."""
        return tuple(self.dual_norms[h] for h in self.dead_units) if self.dual_norms else ()

    @derived()
    def largest_dual_norm(self) -> float:
        """Largest dual norm of all units; NaN where dual norms are not known."""
        return max(self.dual_norms, default=math.nan)

    @property
    def n_wrongly_dead(self) -> int | None:
        """Dead units with a dual norm above 1; None where the dual norms are not known."""
        if self.dead_units and not self.dual_norms:
            return None
        return int(above_one(np.array(self.dead_dual_norms)).sum())

    @derived()
    def n_wrongly_small(self) -> int | None:
        """Number of `small_units`; None where the dual norms are not known."""
        return len(self.small_units) if self.dual_norms or not self.n_units else None

    @derived(shown=False)
    def dual_condition(self) -> bool | None:
        """True if every unit's dual norm is at most 1, as at the optimum.

        True if all are at most 1.01, False if a unit is wrongly small. None otherwise: dual norms
        are not known, or exceed 1 for units of about the right size, which may come of the time.
        """
        if self.small_units:
            return False
        return True if self.largest_dual_norm <= 1 + DUAL_SLACK or not self.n_units else None

    @derived("what keeps it below 0.99")
    def held_back_by(self) -> str:
        """Name the reasons for a margin ratio below 0.99 once data are separated; empty above.

        Of a network without units the ratio is NaN, and this says why.
        """
        if math.isnan(self.margin_ratio) and not self.n_units:
            return "not known: the module has no `unit_norms()`, the norm that the margin is over"
        if not 0 < self.margin_ratio < NEAR:
            return ""
        if self.kkt_margin_bound > self.margin_ratio + APART:
            return (
                "another limit: its own multipliers prove a ratio of at least "
                f"{self.kkt_margin_bound:.4f} beside the limit that it has"
            )
        if self.small_units:
            units = _numbered(self.small_units)
            if len(self.small_units) == 1:
                return f"unit {units} still grows: its dual norm exceeds 1"
            return f"units {units} still grow: their dual norms exceed 1"
        if self.kkt_residual < 1 - NEAR and self.largest_dual_norm > 1 + DUAL_SLACK:
            return "a saddle: stationary, but with a dual norm above 1"
        if self.kkt_residual < 1 - NEAR:
            return "stationary, but multipliers reach beyond the margin: the loss has to fall"
        return "the weights are not stationary yet"

    @door()
    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the dual norms of the network's units, into `ax` if one is given."""
        return draw("runs.drawing.results:plot_dual_norms", self, ax=ax)

    @naming_extras()
    def to_frame(self) -> pd.DataFrame:
        """One row, one column a scalar field, to be stacked over runs."""
        import pandas as pd

        scalars = {k: v for k, v in self.to_dict().items() if not isinstance(v, list)}
        return pd.DataFrame([scalars | {"n_dead": len(self.dead_units)}])

    def shown(self) -> tuple[str, ...]:
        """The attributes with a line in the table: of units only where there are several."""
        names = [name for name in super().shown() if name not in (*_OF_UNITS, "held_back_by")]
        names += _OF_UNITS if self.n_units > 1 else ()
        return (*names, "held_back_by") if self.held_back_by else tuple(names)

    @door()
    def text(self, name: str) -> str:
        """The value of an attribute as tables show it: few units by their numbers."""
        units = {"n_dead": self.dead_units, "n_wrongly_small": self.small_units}.get(name)
        if units is None or getattr(self, name) is None:
            return super().text(name)
        numbers = f": {', '.join(map(str, units))}" if 0 < len(units) <= 8 else ""
        return f"{len(units)} of {self.n_units}{numbers}"


@door()
def compare(
    limit: Limit | MulticlassLimit,
    network: torch.nn.Module,
    train: Sample[Any],
    val: Sample[Any],
    *,
    kkt: KKTDistance | None = None,
    own: OwnNorm | None = None,
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
        `kkt_distance` of the network on its training data, if it has been computed already.
    own : OwnNorm, optional
        The program in the norm that the network's optimiser induces: see `Distances`. Where the
        layers' norms are not Euclidean, conditions of such KKT points are not looked at.

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

    Examples
    --------
    >>> sample = ib.Sample(np.array([[3.0, 4.0]]), np.ones(1), np.ones((1, 1)))
    >>> limit = ib.solve_frelu_svm(*sample)
    >>> network = ib.FReLU.from_zeta(np.array([[6.0, 8.0]]))
    >>> found = ib.compare(limit, network, sample, sample)
    >>> round(found.margin_ratio, 6), round(found.score_cosine, 6), found.agreement
    (1.0, 1.0, 1.0)
    """
    distances = Distances(limit, train, val, own=own, kkt=own is None or own.euclidean)
    now = distances(network, kkt=kkt)
    p, q = error_rate(to_numpy(val.y), distances.predicted_scores()), now["error_network"]
    norms, dual_norms = unit_norms(network), now.get("dual_norms", np.empty(0))
    known = len(dual_norms) > 0 and not np.isnan(dual_norms).any()
    return Comparison(
        **{name: now[name] for name in _FROM_DISTANCES},
        # Two wrong labels of K classes need not agree.
        agreement_independent=p * q + (1 - p) * (1 - q) if np.ndim(val.y) == 1 else math.nan,
        error_limit=p,
        n_units=len(norms),
        dead_units=tuple(dead_units(norms).tolist()),
        small_units=tuple(wrongly_small(norms, dual_norms, limit).tolist()) if known else (),
        dual_norms=tuple(dual_norms.tolist()) if known else (),
    )


@door()
def measure_network(
    network: torch.nn.Module,
    train: Sample[Any],
    held_out: Sample[Any],
    kkt: KKTDistance | None = None,
) -> NetworkState:
    """Measure margins, norms and accuracies of a network.

    Parameters
    ----------
    network : Module
        Scores `network(X, gates)`; with `unit_norms()` where it has units.
    train, held_out : Sample
        Data with the gates that the network uses. `held_out` may be empty.
    kkt : KKTDistance, optional
        `kkt_distance` of the network on its training data, whose multipliers tell its support.

    Returns
    -------
    NetworkState
        NaN in what is not defined for this network, and in the accuracy on no held-out data.

    Raises
    ------
    FloatingPointError
        If a score of the network is NaN.

    Examples
    --------
    >>> sample = ib.Sample(np.array([[3.0, 4.0]]), np.ones(1), np.ones((1, 1)))
    >>> network = ib.FReLU.from_zeta(np.array([[6.0, 8.0]]))
    >>> found = ib.measures.measure_network(network, sample, sample)
    >>> round(found.smallest_margin, 6), round(found.normalised_margin, 6), found.live
    (50.0, 5.0, 1)
    """
    trained = scores(network, train)
    norms = unit_norms(network)
    group_norm = float(norms.sum()) if len(norms) else math.nan
    smallest = float(sample_margins(to_numpy(train.y), trained).min())
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


def _numbered(units: tuple[int, ...]) -> str:
    """Return the first units by their numbers, and how many more there are."""
    more = len(units) - NAMED
    return ", ".join(map(str, units[:NAMED])) + (f" and {more} more" if more > 0 else "")


def _n_support(multipliers: NDArray[np.float64]) -> int:
    known = multipliers > NO_SUPPORT * multipliers.max()
    return int(np.sum(known.any(axis=1) if known.ndim == 2 else known))
