"""A trained network beside a predicted limit, measured on the data that both were given."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ._solve import to_numpy
from .diagnostics import KKTDistance, kkt_distance
from .limit import Limit
from .training import place_data

if TYPE_CHECKING:
    import pandas as pd
    import torch

__all__ = ["Comparison", "NetworkState", "Sample", "compare", "measure_network"]

# A unit counts as dead in a network at finite time when its norm is at most this share of the
# largest: units that die do so like a power of the loss, never quite.
DEAD = 1e-3
# Non-negative least squares leaves multipliers of the size of rounding where zeros belong; those
# below this share of the largest are taken for such.
NO_SUPPORT = 1e-9


class Sample(NamedTuple):
    """Inputs (n, D), labels (n,) in {-1, +1} and gates (n, ...) of one part of the data."""

    X: NDArray[np.float64]
    y: NDArray[np.float64]
    gates: Any


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
    if len(held_out.y) == 0:
        raise ValueError("`held_out` has no samples: scores and labels need some to compare")
    network_train, network_held_out = network_train or train, network_held_out or held_out
    predicted = np.asarray(to_numpy(limit.predictor(held_out.X, held_out.gates)))
    trained = scores(network, network_held_out)
    errors = [float(np.mean(~(held_out.y * s > 0))) for s in (predicted, trained)]
    state = measure_network(network, network_train, network_held_out, kkt)
    if kkt is None and state.smallest_margin > 0 and hasattr(network, "degree"):
        kkt = kkt_distance(network, *network_train)
    norms = _unit_norms(network)
    # A limit whose norm is not the sum of the network's unit norms says so by `norm_of`.
    norm_of = getattr(limit, "norm_of", None)
    norm = state.group_norm if norm_of is None else norm_of(_zeta(network))
    dead = tuple(int(h) for h in np.flatnonzero(norms <= DEAD * norms.max(initial=0.0)))
    dual_norms = () if kkt is None or kkt.dual_norms is None else tuple(kkt.dual_norms.tolist())
    return Comparison(
        margin_ratio=state.smallest_margin / norm * limit.dual_objective if norm > 0 else math.nan,
        network_norm=norm,
        zeta_cosine=_zeta_cosine(limit, network),
        score_cosine=_cosine(predicted, trained),
        agreement=float(np.mean(np.sign(predicted) == np.sign(trained))),
        agreement_independent=errors[0] * errors[1] + (1 - errors[0]) * (1 - errors[1]),
        error_limit=errors[0],
        error_network=errors[1],
        kkt_cosine=math.nan if kkt is None else kkt.cosine,
        kkt_residual=math.nan if kkt is None else kkt.residual,
        kkt_complementarity=math.nan if kkt is None else kkt.complementarity,
        dead_units=dead,
        dead_dual_norms=tuple(dual_norms[h] for h in dead) if dual_norms else (),
    )


def measure_network(
    network: torch.nn.Module, train: Sample, held_out: Sample, kkt: KKTDistance | None = None
) -> NetworkState:
    """Margins, norms and accuracies of a network; `kkt` supplies its support vectors."""
    margins = train.y * scores(network, train)
    norms = _unit_norms(network)
    group_norm = float(norms.sum()) if len(norms) else math.nan
    smallest = float(margins.min())
    held_out_margins = held_out.y * scores(network, held_out)
    return NetworkState(
        smallest_margin=smallest,
        group_norm=group_norm,
        normalised_margin=smallest / group_norm if group_norm > 0 else math.nan,
        live=int(np.sum(norms > DEAD * norms.max(initial=0.0))),
        n_units=len(norms),
        support=-1 if kkt is None else _n_support(kkt.multipliers),
        train_accuracy=float(np.mean(margins > 0)),
        val_accuracy=float(np.mean(held_out_margins > 0)) if len(held_out.y) else math.nan,
    )


def scores(network: torch.nn.Module, sample: Sample) -> NDArray[np.float64]:
    """(n,) float64 scores of a network on a sample, in its own dtype and on its own device."""
    import torch

    data = place_data(network, *sample)
    with torch.no_grad():
        return to_numpy(network(data.X, data.gates).double())


def _n_support(multipliers: NDArray[np.float64]) -> int:
    return int(np.sum(multipliers > NO_SUPPORT * multipliers.max()))


def _unit_norms(network: torch.nn.Module) -> NDArray[np.float64]:
    unit_norms = getattr(network, "unit_norms", None)
    return np.empty(0) if unit_norms is None else to_numpy(unit_norms().double())


def _zeta(network: torch.nn.Module) -> NDArray[np.float64] | None:
    """The network's coefficients in float64; None for one that has none."""
    zeta = getattr(network, "zeta", None)
    return None if zeta is None else to_numpy(zeta().double())


def _zeta_cosine(limit: Limit, network: torch.nn.Module) -> float:
    trained, predicted = _zeta(network), to_numpy(limit.zeta)
    if trained is None:
        return math.nan
    if trained.shape != predicted.shape:
        raise ValueError(
            f"the network's zeta has shape {trained.shape}, the limit's {predicted.shape}: "
            "both must be made for the same units and contexts"
        )
    return _cosine(trained.ravel(), predicted.ravel())


def _cosine(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    # Networks that were trained far have entries whose squares overflow.
    a, b = (v / (np.abs(v).max(initial=0.0) or 1.0) for v in (a, b))
    norms = float(np.linalg.norm(a) * np.linalg.norm(b))
    return float(a @ b) / norms if norms > 0 else math.nan
