"""A trained network beside a predicted limit, measured on the data that both were given."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..data.sample import Sample
from ..limits.limit import Limit
from .distances import Distances
from .kkt import KKTDistance
from .scalars import above_one, accuracy, dead_units, error_rate, scores, unit_norms

if TYPE_CHECKING:
    import pandas as pd
    import torch

__all__ = ["Comparison", "NetworkState", "compare", "measure_network"]

# Non-negative least squares leaves multipliers of the size of rounding where zeros belong; those
# below this share of the largest are taken for such.
NO_SUPPORT = 1e-9
_FROM_DISTANCES = (
    "margin_ratio", "network_norm", "zeta_cosine", "score_cosine", "agreement", "error_network",
    "kkt_cosine", "kkt_residual", "kkt_complementarity",
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


@dataclass(frozen=True)
class Comparison:
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
    dead_units : tuple of int
        Units with a norm of at most a thousandth of the largest.
    dead_dual_norms : tuple of float
        Their dual norms: a unit is rightly dead only at or below 1.
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
    dead_units: tuple[int, ...]
    dead_dual_norms: tuple[float, ...]

    @property
    def n_wrongly_dead(self) -> int | None:
        """Dead units with a dual norm above 1; None where the dual norms are not known."""
        if self.dead_units and not self.dead_dual_norms:
            return None
        return int(above_one(np.array(self.dead_dual_norms)).sum())

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain Python values."""
        return asdict(self)

    def to_frame(self) -> pd.DataFrame:
        """One row, one column a scalar field, to be stacked over runs."""
        import pandas as pd

        scalars = {k: v for k, v in self.to_dict().items() if not isinstance(v, tuple)}
        return pd.DataFrame([scalars | {"n_dead": len(self.dead_units)}])

    def rows(self) -> list[tuple[str, str]]:
        """Label and value of every line of a printed table."""
        worst = max(self.dead_dual_norms, default=math.nan)
        dead = (
            f"{len(self.dead_units)}, largest dual norm {worst:.4g}" if self.dead_units else "none"
        )
        return [
            ("margin ratio (1 at the limit)", f"{self.margin_ratio:.4f}"),
            ("cosine of zeta", f"{self.zeta_cosine:.4f}"),
            ("cosine of held-out scores", f"{self.score_cosine:.4f}"),
            ("agreement on held-out labels", f"{self.agreement:.2%}"),
            ("... if errors were independent", f"{self.agreement_independent:.2%}"),
            ("held-out error, limit", f"{self.error_limit:.2%}"),
            ("held-out error, network", f"{self.error_network:.2%}"),
            ("KKT cosine (1 at a KKT point)", f"{self.kkt_cosine:.4f}"),
            ("KKT relative residual", f"{self.kkt_residual:.4g}"),
            ("KKT complementarity", f"{self.kkt_complementarity:.4g}"),
            ("dead units of the network", dead),
        ]

    def __str__(self) -> str:
        rows = self.rows()
        width = max(len(label) for label, _ in rows)
        return "\n".join(f"{label:<{width}}  {value}" for label, value in rows)


def compare(
    limit: Limit,
    network: torch.nn.Module,
    train: Sample,
    held_out: Sample,
    *,
    network_train: Sample | None = None,
    network_held_out: Sample | None = None,
    kkt: KKTDistance | None = None,
) -> Comparison:
    """Compare a network with a limit on training and held-out data.

    Parameters
    ----------
    limit : Limit
        Anything with `predictor`, `zeta`, and `dual_objective`.
    network : Module
        Scores `network(X, gates)`; with `zeta()` and `unit_norms()` where it has them.
    train, held_out : Sample
        Data with the gates that the limit uses.
    network_train, network_held_out : Sample, optional
        The same data with the gates that the network uses, where those differ.
    kkt : KKTDistance, optional
        Of the network on its training data, if it has been computed already.

    Returns
    -------
    Comparison
        Quantities that are not defined for this pair are NaN.

    Raises
    ------
    ValueError
        If the held-out sample is empty, or shapes do not fit.
    """
    distances = Distances(
        limit, train, held_out, network_train=network_train, network_held_out=network_held_out
    )
    now = distances(network, kkt=kkt)
    p, q = error_rate(held_out.y, distances.predicted_scores()), now["error_network"]
    dead = dead_units(unit_norms(network))
    dual_norms = now.get("dual_norms", np.empty(0))
    known = len(dual_norms) > 0 and not np.isnan(dual_norms).any()
    return Comparison(
        **{name: now[name] for name in _FROM_DISTANCES},
        agreement_independent=p * q + (1 - p) * (1 - q),
        error_limit=p,
        dead_units=tuple(dead.tolist()),
        dead_dual_norms=tuple(dual_norms[dead].tolist()) if known else (),
    )


def measure_network(
    network: torch.nn.Module, train: Sample, held_out: Sample, kkt: KKTDistance | None = None
) -> NetworkState:
    """Margins, norms and accuracies of a network; `kkt` supplies its support vectors."""
    trained = scores(network, train)
    norms = unit_norms(network)
    group_norm = float(norms.sum()) if len(norms) else math.nan
    smallest = float((train.y * trained).min())
    return NetworkState(
        smallest_margin=smallest,
        group_norm=group_norm,
        normalised_margin=smallest / group_norm if group_norm > 0 else math.nan,
        live=len(norms) - len(dead_units(norms)),
        n_units=len(norms),
        support=-1 if kkt is None else _n_support(kkt.multipliers),
        train_accuracy=accuracy(train.y, trained),
        val_accuracy=accuracy(held_out.y, scores(network, held_out))
        if len(held_out.y)
        else math.nan,
    )


def _n_support(multipliers: NDArray[np.float64]) -> int:
    return int(np.sum(multipliers > NO_SUPPORT * multipliers.max()))
