"""Distances of a trained ReLU network from its limit on orthogonally separable data."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from ..._support.pictures import draw
from ..._support.shown import ReadOnly
from ..._support.solve import to_numpy
from ..._support.words import MarginLoss
from ...data.sample import Sample
from ...measures.distances import Distances
from ...measures.kkt import KKTDistance
from ...measures.scalars import cosine, scores
from ...networks.losses.objectives import log_mean_loss
from ...quantities.formatting import number
from ...quantities.measured import Measured, derived, part, quantity
from .limit import OrthosepLimit, Surviving, ramp

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Float = NDArray[np.float64]

_FOLLOWED = (
    "mean_cosine", "share_positive", "share_negative", "share_dead", "growth_positive",
    "growth_negative", "u", "z", "cosines", "singular_values",
)  # fmt: skip

_KINDS = {1: "positive", -1: "negative", 0: "dead"}
_OF_TWO_LAYERS = (
    "growth_positive", "growth_negative", "u", "z", "normalised_margin", "constant", "imbalance",
)  # fmt: skip


def _largest(values: Float) -> str:
    return ", ".join(number(value, ".3g") for value in values[:4])


class NeuronGroups(ReadOnly, Measured):
    """The neurons of a layer beside two directions: which is whose, and how near.

    A neuron is dead if it is inactive on every training sample, and not leaky.
    """

    singular_values: Float = quantity(
        "top singular values (2 at the limit)",
        _largest,
        doc="(min(p, D),) singular values of the first layer W (p, D), descending; two survive in "
        "the limit.",
    )
    group: NDArray[np.int64] = part(
        "(p,) +1, -1, or 0 for dead: the sign of the output weight, or of the nearer direction in "
        "a network without one."
    )
    norms: Float = part("(p,) norms `||w_j||`.")
    cosines: Float = part(
        "(p,) cosine between w_j and its group's max-margin direction; NaN for a dead neuron."
    )
    plane: Float = part("(p, 2) neurons in the plane of the top two right singular vectors of W.")
    directions: Float = part("(2, 2) unit `w_plus` and `w_minus` in that plane, one a row.")
    share_positive: float = part("Share of the p neurons that are positive.")
    share_negative: float = part("Share of those that are negative.")
    share_dead: float = part("Share of those that are dead.")

    @derived("neurons positive / negative / dead")
    def shares(self) -> str:
        """Return the shares of the three groups in per cent."""
        groups = (self.share_positive, self.share_negative, self.share_dead)
        return " / ".join(number(share, ".0%") for share in groups)

    mean_cosine: float = quantity(
        "norm-weighted mean cosine",
        ".4f",
        ideal=1.0,
        doc="Mean of the cosines weighted by `||w_j||`.",
    )

    @derived("live neurons with cosine > 0.9", ".0%", ideal=1.0)
    def share_near(self) -> float:
        """Share of the live neurons with a cosine above 0.9."""
        live = self.cosines[self.group != 0]
        return float(np.mean(live > 0.9)) if len(live) else math.nan


class OrthosepDiagnosis(NeuronGroups):
    """Distances of a network from two kinds of neurons and from one function.

    A neuron is dead if it is inactive on every training sample, and not leaky. Quantities that are
    not defined (a group without neurons, a network that is not of degree 2, a loss of at least 1)
    are NaN. Arrays are read-only.
    """

    function_cosine: float = quantity(column="score_cosine")
    log_inverse_loss: float = quantity(
        doc="`log(1 / mean loss)` on the training data: errors of directions and constants fall "
        "like its inverse."
    )
    growth_positive: float = part("`||W_plus||_F^2 / log(1/loss)`, which tends to `||w_plus||`.")
    growth_negative: float = part("Its mirror image.")
    u: float = part(
        "First coefficient of a least-squares fit of `f / ||theta||^2` on the two ramps over the "
        "training inputs, which tends to `constant`."
    )
    z: float = part("Second coefficient of the fit, which tends to `constant` too.")

    @derived("constants u, z")
    def constants(self) -> str | None:
        """Return both coefficients and their limit as text; None if they are not known."""
        if math.isnan(self.normalised_margin):
            return None
        return f"{number(self.u)}, {number(self.z)} {self._in_the_limit()}"

    normalised_margin: float = quantity(
        "normalised margin",
        doc="`min y f / ||theta||^2`, which tends to `constant` as well, from below.",
    )
    constant: float = part(
        "`1 / (2 (||w_plus|| + ||w_minus||))`, over the groups that have neurons."
    )
    imbalance: float = part(
        "Largest `| |a_j| - ||w_j|| |` over the largest `||w_j||`; gradient flow keeps it at 0."
    )

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the singular values of the weights on `ax`, or on axes of a new figure."""
        return draw("models.orthosep.figure:plot_singular_values", self, ax=ax)

    def shown(self) -> tuple[str, ...]:
        """Return names of the attributes with a line in the table; constants for degree 2 only."""
        known = math.isfinite(self.normalised_margin)
        return tuple(name for name in super().shown() if known or name != "normalised_margin")

    def text(self, name: str) -> str:
        """Return the value of an attribute as tables show it."""
        own = super().text(name)
        return f"{own} {self._in_the_limit()}" if name == "normalised_margin" else own

    def _in_the_limit(self) -> str:
        return f"(limit {number(self.constant)})"


def diagnose_orthosep(
    network: torch.nn.Module,
    limit: OrthosepLimit,
    train: Sample,
    held_out: Sample,
    *,
    loss: MarginLoss = "logistic",
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
    W, vectors = _weights(network.first_layer), (limit.w_plus, limit.w_minus)
    targets = np.stack([w / (np.linalg.norm(w) or 1.0) for w in map(to_numpy, vectors)])
    if W.shape[1] != targets.shape[1]:
        raise ValueError(
            f"the network has {W.shape[1]} inputs, the limit {targets.shape[1]}: "
            "solve the limit on the data that the network was trained on"
        )
    norms = np.linalg.norm(W, axis=1)
    aligned = W @ targets.T / np.where(norms > 0, norms, 1.0)[:, None]
    two_layers = hasattr(network, "output_weights")
    a = _weights(network.output_weights) if two_layers else aligned[:, 0] - aligned[:, 1]
    group = neuron_groups(W, a, train.X, slope=limit.slope)
    cosines = np.where(group == 0, np.nan, np.where(group == 1, aligned[:, 0], aligned[:, 1]))
    _, singular_values, right = np.linalg.svd(W, full_matrices=False)
    basis = np.zeros((2, W.shape[1]))  # with rows of zeros where there are fewer directions
    basis[: min(2, len(right))] = right[:2]
    margins = torch.as_tensor(train.y * scores(network, train))
    log_inverse = -float(log_mean_loss(margins, loss))
    of_two_layers = dict.fromkeys(_OF_TWO_LAYERS, math.nan)
    if two_layers:
        of_two_layers = _two_layers(network, limit, train, group, log_inverse)
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
    """Observer for `train` of `Distances` and of some quantities of `OrthosepDiagnosis`.

    Keys beyond those of `Distances`: the floats `mean_cosine`, `smallest_cosine` (over live
    neurons), `share_positive`, `share_negative`, `share_dead`, `growth_positive`,
    `growth_negative`, `u`, `z`, and the arrays `cosines` (p,) and `singular_values`
    (min(p, D),). The norm of dead neurons is not 0 but stays as it was at the start.

    Parameters
    ----------
    limit : OrthosepLimit
    train, held_out : Sample
        Gates may be None.
    loss : str
        Loss of a margin, of which the smoothed margin is taken.
    kkt : bool
        Whether to fit KKT multipliers at every call.
    """

    def __call__(
        self, network: torch.nn.Module, *, kkt: KKTDistance | None = None
    ) -> dict[str, Any]:
        """Measure `network`; `kkt` is its KKT distance if that is known already."""
        assert isinstance(self._limit, OrthosepLimit)
        diagnosis = diagnose_orthosep(network, self._limit, *self._samples, loss=self._loss)
        live = diagnosis.cosines[diagnosis.group != 0]
        own = {name: getattr(diagnosis, name) for name in _FOLLOWED}
        own["smallest_cosine"] = float(live.min()) if len(live) else math.nan
        return super().__call__(network, kkt=kkt) | own


def neuron_groups(W: Float, a: Float, X: Float, *, slope: float = 0.0) -> NDArray[np.int64]:
    """Return signs of `a` (p,), 0 for a neuron of `W` (p, D) inactive on all rows of `X`.

    Leaky units, those of a slope above 0, are never dead.
    """
    active = np.any(W @ X.T > 0, axis=1) | (slope > 0)
    groups: NDArray[np.int64] = np.where(active, np.sign(a), 0.0).astype(np.int64)
    return groups


def _two_layers(
    network: torch.nn.Module,
    limit: OrthosepLimit,
    train: Sample,
    group: NDArray[np.int64],
    log_inverse: float,
) -> dict[str, float]:
    """Return what is defined of the network of degree 2 alone."""
    norms = np.linalg.norm(_weights(network.first_layer), axis=1)
    a = _weights(network.output_weights)
    size = sum(float(p.detach().double().square().sum()) for p in network.parameters())
    normalised = scores(network, train) / size
    z = train.X @ to_numpy(limit.zeta).T * [1.0, -1.0]
    ramps = np.asarray(ramp(z, limit.slope)) * [1.0, -1.0]
    u, z = np.linalg.lstsq(ramps, normalised, rcond=None)[0]
    alive: Surviving = "both" if {1, -1} <= set(group) else "positive" if 1 in group else "negative"
    constant = math.nan
    if group.any() and (alive == "both" or not limit.slope):
        function = limit.limit_function(surviving=alive)
        constant = max(function.u, function.z)
    return {
        "growth_positive": _growth(norms[group == 1], log_inverse),
        "growth_negative": _growth(norms[group == -1], log_inverse),
        "imbalance": ratio(np.abs(np.abs(a) - norms).max(), norms.max()),
        "u": float(u),
        "z": float(z),
        "normalised_margin": float(np.min(train.y * normalised)),
        "constant": constant,
    }


def _growth(norms: Float, log_inverse: float) -> float:
    return float(norms @ norms) / log_inverse if log_inverse > 0 and len(norms) else math.nan


def _weights(of: Any) -> Float:
    return np.asarray(to_numpy(of().double()), dtype=np.float64)


def ratio(value: float, size: float) -> float:
    """Return `value / size`; NaN if the size is 0."""
    return float(value / size) if size > 0 else math.nan
