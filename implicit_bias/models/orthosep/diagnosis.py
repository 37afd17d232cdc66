"""A trained ReLU network beside its limit on orthogonally separable data, neuron by neuron."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from ..._pictures import draw
from ..._shown import Shown
from ..._solve import to_numpy
from ...data.sample import Sample
from ...measures.distances import Distances
from ...measures.kkt import KKTDistance
from ...measures.scalars import cosine, scores
from ...quantities.formatting import number
from ...training.objectives import log_mean_loss
from .limit import OrthosepLimit

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "OrthosepDiagnosis",
    "OrthosepDistances",
    "diagnose_orthosep",
    "neuron_groups",
    "ratio",
]

Float = NDArray[np.float64]

_FOLLOWED = (
    "mean_cosine", "share_positive", "share_negative", "share_dead", "growth_positive",
    "growth_negative", "u", "z", "cosines", "singular_values",
)  # fmt: skip

_KINDS = {1: "positive", -1: "negative", 0: "dead"}
_OF_TWO_LAYERS = (
    "growth_positive", "growth_negative", "u", "z", "normalised_margin", "constant", "imbalance",
)  # fmt: skip


@dataclass(frozen=True, eq=False, repr=False)
class OrthosepDiagnosis(Shown):
    """How near a network has come to two kinds of neurons and one function.

    A neuron is dead if it is inactive on every training sample. Quantities that are not defined
    (a group without neurons, a network that is not of degree 2, a loss of at least 1) are NaN.
    Arrays are read-only.

    Attributes
    ----------
    singular_values : (min(p, D),) array
        Of the first layer W (p, D), descending; two survive in the limit.
    group : (p,) integer array
        +1, -1, or 0 for dead. The sign of the output weight, or of the nearer direction in a
        network without one.
    norms : (p,) array
        `||w_j||`.
    cosines : (p,) array
        Cosine between w_j and its group's max-margin direction; NaN for a dead neuron.
    plane : (p, 2) array
        Neurons in the plane of the top two right singular vectors of W.
    directions : (2, 2) array
        Unit `w_plus` and `w_minus` in that plane, one a row.
    share_positive, share_negative, share_dead : float
        Shares of the p neurons.
    mean_cosine : float
        Mean of the cosines weighted by `||w_j||`.
    function_cosine : float
        Cosine between the scores of network and limit on held-out inputs.
    log_inverse_loss : float
        `log(1 / mean loss)` on the training data: errors of directions and constants fall like
        its inverse.
    growth_positive, growth_negative : float
        `||W_plus||_F^2 / log(1/loss)`, which tends to `||w_plus||`, and its mirror image.
    u, z : float
        Least-squares fit of `f / ||theta||^2` on the two ramps over the training inputs; both
        tend to `constant`.
    normalised_margin : float
        `min y f / ||theta||^2`, which tends to `constant` as well, from below.
    constant : float
        `1 / (2 (||w_plus|| + ||w_minus||))`, over the groups that have neurons.
    imbalance : float
        Largest `| |a_j| - ||w_j|| |` over the largest `||w_j||`; gradient flow keeps it at 0.
    """

    singular_values: Float
    group: NDArray[np.int64]
    norms: Float
    cosines: Float
    plane: Float
    directions: Float
    share_positive: float
    share_negative: float
    share_dead: float
    mean_cosine: float
    function_cosine: float
    log_inverse_loss: float
    growth_positive: float
    growth_negative: float
    u: float
    z: float
    normalised_margin: float
    constant: float
    imbalance: float

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, np.ndarray):
                value.flags.writeable = False

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the singular values of the weights; see `Limit.plot` for `ax`."""
        return draw("models.orthosep.figure:plot_singular_values", self, ax=ax)

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain Python values, arrays as lists."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in values.items()}

    def rows(self) -> list[tuple[str, str]]:
        """Label and value of every line of a printed table."""
        top = ", ".join(number(value, ".3g") for value in self.singular_values[:4])
        shares = (self.share_positive, self.share_negative, self.share_dead)
        live = self.cosines[self.group != 0]
        near = float(np.mean(live > 0.9)) if len(live) else math.nan
        limit = f"(limit {number(self.constant)})"
        # Of networks that are homogeneous of degree 2 alone.
        constants = [
            ("constants u, z", f"{number(self.u)}, {number(self.z)} {limit}"),
            ("normalised margin", f"{number(self.normalised_margin)} {limit}"),
        ]
        return [
            ("top singular values (2 at the limit)", top),
            ("neurons positive / negative / dead", " / ".join(number(s, ".0%") for s in shares)),
            ("norm-weighted mean cosine (1)", number(self.mean_cosine, ".4f")),
            ("live neurons with cosine > 0.9", number(near, ".0%")),
            ("cosine of held-out functions (1)", number(self.function_cosine, ".4f")),
            ("log(1/loss)", number(self.log_inverse_loss)),
            *(constants if math.isfinite(self.normalised_margin) else []),
        ]

    def _shown_rows(self) -> list[tuple[str, str]]:
        return self.rows()


def diagnose_orthosep(
    network: torch.nn.Module,
    limit: OrthosepLimit,
    train: Sample,
    held_out: Sample,
    *,
    loss: str = "logistic",
) -> OrthosepDiagnosis:
    """Measure a network against the limit that `solve_orthosep` found on its training data.

    Parameters
    ----------
    network : Module
        Scores `network(X, gates)`, with `first_layer()` (p, D) and, for a two-layer network,
        `output_weights()` (p,).
    limit : OrthosepLimit
    train, held_out : Sample
        Gates may be None.
    loss : {"logistic", "exponential"}
        That the network descends.

    Raises
    ------
    ValueError
        If a sample is malformed or the limit has another number of inputs.
    """
    W, targets = _weights(network.first_layer), _directions(limit)
    if W.shape[1] != targets.shape[1]:
        raise ValueError(
            f"the network has {W.shape[1]} inputs, the limit {targets.shape[1]}: "
            "solve the limit on the data that the network was trained on"
        )
    norms = np.linalg.norm(W, axis=1)
    aligned = W @ targets.T / np.where(norms > 0, norms, 1.0)[:, None]
    two_layers = hasattr(network, "output_weights")
    a = _weights(network.output_weights) if two_layers else aligned[:, 0] - aligned[:, 1]
    group = neuron_groups(W, a, train.X)
    cosines = np.where(group == 0, np.nan, np.where(group == 1, aligned[:, 0], aligned[:, 1]))
    singular_values, basis = _top_plane(W)
    log_inverse = _log_inverse_loss(network, train, loss)
    of_two_layers = dict.fromkeys(_OF_TWO_LAYERS, math.nan)
    if two_layers:
        growth = _two_layers(norms, a, group, log_inverse)
        of_two_layers = growth | _constants(network, limit, train, group)
    live = group != 0
    return OrthosepDiagnosis(
        singular_values=singular_values,
        group=group,
        norms=norms,
        cosines=cosines,
        plane=W @ basis.T,
        directions=targets @ basis.T,
        **{f"share_{name}": float(np.mean(group == k)) for k, name in _KINDS.items()},
        mean_cosine=ratio(norms[live] @ cosines[live], norms[live].sum()),
        function_cosine=cosine(to_numpy(limit.predictor(held_out.X)), scores(network, held_out)),
        log_inverse_loss=log_inverse,
        **of_two_layers,
    )


class OrthosepDistances(Distances):
    """An observer for `train`: `Distances`, and of `OrthosepDiagnosis` what runs are followed by.

    Keys beyond those of `Distances`: the floats `mean_cosine`, `smallest_cosine` (over live
    neurons), `share_positive`, `share_negative`, `share_dead`, `growth_positive`,
    `growth_negative`, `u`, `z`, and the arrays `cosines` (p,) and `singular_values`
    (min(p, D),). The norm of dead neurons is not 0 but stays as it was at the start.

    Parameters
    ----------
    limit : OrthosepLimit
    train, held_out : Sample
        Gates may be None.
    loss, kkt
        As in `Distances`.
    """

    def __init__(
        self,
        limit: OrthosepLimit,
        train: Sample,
        held_out: Sample,
        *,
        loss: str = "logistic",
        kkt: bool = True,
    ) -> None:
        super().__init__(limit, train, held_out, loss=loss, kkt=kkt)
        self._data = limit, train, held_out

    def __call__(
        self, network: torch.nn.Module, *, kkt: KKTDistance | None = None
    ) -> dict[str, Any]:
        """Measure `network`; `kkt` is its KKT distance if that is known already."""
        diagnosis = diagnose_orthosep(network, *self._data, loss=self._loss)
        live = diagnosis.cosines[diagnosis.group != 0]
        own = {name: getattr(diagnosis, name) for name in _FOLLOWED}
        own["smallest_cosine"] = float(live.min()) if len(live) else math.nan
        return super().__call__(network, kkt=kkt) | own


def neuron_groups(W: Float, a: Float, X: Float) -> NDArray[np.int64]:
    """(p,) signs of `a` (p,), 0 for a neuron of `W` (p, D) inactive on every row of `X` (n, D)."""
    active = np.any(W @ X.T > 0, axis=1)
    groups: NDArray[np.int64] = np.where(active, np.sign(a), 0.0).astype(np.int64)
    return groups


def _directions(limit: OrthosepLimit) -> Float:
    """(2, D) unit `w_plus` and `w_minus`."""
    return np.stack([_unit(to_numpy(limit.w_plus)), _unit(to_numpy(limit.w_minus))])


def _top_plane(W: Float) -> tuple[Float, Float]:
    """All singular values, and the first two right singular vectors, with zeros for missing."""
    _, values, right = np.linalg.svd(W, full_matrices=False)
    basis = np.zeros((2, W.shape[1]))
    basis[: min(2, len(right))] = right[:2]
    return values, basis


def _two_layers(
    norms: Float, a: Float, group: NDArray[np.int64], log_inverse: float
) -> dict[str, float]:
    return {
        "growth_positive": _growth(norms[group == 1], log_inverse),
        "growth_negative": _growth(norms[group == -1], log_inverse),
        "imbalance": ratio(np.abs(np.abs(a) - norms).max(), norms.max()),
    }


def _constants(
    network: torch.nn.Module, limit: OrthosepLimit, train: Sample, group: NDArray[np.int64]
) -> dict[str, float]:
    size = sum(float(p.detach().double().square().sum()) for p in network.parameters())
    normalised = scores(network, train) / size
    ramps = np.maximum(train.X @ to_numpy(limit.zeta).T * [1.0, -1.0], 0.0) * [1.0, -1.0]
    u, z = np.linalg.lstsq(ramps, normalised, rcond=None)[0]
    alive = "both" if {1, -1} <= set(group) else "positive" if 1 in group else "negative"
    constant = math.nan
    if group.any():
        function = limit.limit_function(surviving=alive)
        constant = max(function.u, function.z)
    return {
        "u": float(u),
        "z": float(z),
        "normalised_margin": float(np.min(train.y * normalised)),
        "constant": constant,
    }


def _log_inverse_loss(network: torch.nn.Module, sample: Sample, loss: str) -> float:
    return -float(log_mean_loss(torch.as_tensor(sample.y * scores(network, sample)), loss))


def _growth(norms: Float, log_inverse: float) -> float:
    return float(norms @ norms) / log_inverse if log_inverse > 0 and len(norms) else math.nan


def _weights(of: Any) -> Float:
    return np.asarray(to_numpy(of().double()), dtype=np.float64)


def _unit(v: Float) -> Float:
    return v / (np.linalg.norm(v) or 1.0)


def ratio(value: float, size: float) -> float:
    """`value / size`; NaN where the size is 0."""
    return float(value / size) if size > 0 else math.nan
