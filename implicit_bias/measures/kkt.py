"""How far trained weights are from a KKT point of the margin problem, at any depth.

Needs no formulation: frozen gates and homogeneity in the weights are enough.
"""

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.func import functional_call, grad, vmap

from ..training.data import GatedData, Inputs, place_data
from ..training.network import HasDualNorms, HasGradientFactors, Homogeneous
from .nonnegative import nonnegative_fit

Array = NDArray[np.float64]

# Most float64 entries of per-sample gradients held at once: half a gigabyte.
_MAX_ENTRIES = 2**26
# Weight of complementarity in the fit: enough to choose among equal fits, too little to spoil one.
TIGHT = 1e-3
# The fit starts with this many samples, those of the smallest margins, or half of all if that is
# more; further ones enter, as many at once, while the conditions ask for them.
_N_CANDIDATES = 2000
# Slopes of the fit, of the size ||w|| ||grad f||, that count as rounding.
_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class KKTDistance:
    """Where rescaled weights w, smallest margin 1, stand to the KKT conditions.

    Attributes
    ----------
    cosine : float
        Between w and its fit ``sum_n lam_n y_n grad_w f(x_n)``, lam >= 0; 1 at a KKT point.
    residual : float
        ``||w - fit|| / ||w||``; 0 at a KKT point.
    complementarity : float
        ``sum_n lam_n (m_n - 1) / sum_n lam_n``; 0 at a KKT point, NaN if every lam_n is 0.
    multipliers : (n,) array
        lam, read-only.
    dual_norms : (H,) array or None
        Norms ``||v_h(lam)||`` in the units of the convex program (see Notes of `kkt_distance`);
        None for a network without `dual_norms`.
    """

    cosine: float
    residual: float
    complementarity: float
    multipliers: Array
    dual_norms: Array | None

    def __post_init__(self) -> None:
        for array in (self.multipliers, self.dual_norms):
            if array is not None:
                array.flags.writeable = False


def kkt_distance(
    network: torch.nn.Module, X: Inputs, y: Inputs, gates: Inputs | None
) -> KKTDistance:
    r"""Measure how well weights satisfy the KKT conditions of the margin problem.

    .. math:: \min_w \tfrac12 \|w\|^2 \quad\text{s.t.}\quad y_n f_w(x_n; g(n)) \ge 1

    Parameters
    ----------
    network : Module
        Homogeneous of degree ``network.degree`` in its trained weights; computed with in float64.
        With a method ``gradient_factors(X, gates)`` (see `GLN`) the fit never forms gradients of
        single samples, which makes it cheap enough for every checkpoint of a run.
    X : (n, D)
    y : (n,)
        Labels in {-1, +1}.
    gates : (n, ...) or None
        As in `training.train`.

    Raises
    ------
    TypeError
        If the network has no positive `degree`.
    ValueError
        If data are malformed, or some training sample has no positive margin.

    Notes
    -----
    The conditions are necessary, not sufficient: a unit with zero weights satisfies them whatever
    it could contribute. It is rightly dead only if its entry in `dual_norms` is at most 1. With
    degree L > 2 weight-space multipliers differ from those of the convex program by the factor
    :math:`(\|w\|^2 / L)^{(L - 2)/2}` at a balanced KKT point; `dual_norms` contains it, so live
    units have 1 at every depth.

    References
    ----------
    S. Lippl, L. F. Abbott, S. Chung, "The implicit bias of gradient descent on generalized gated
    linear networks", theorem 3.1 (equal degrees) and proposition B.8 with its condition on dead
    units.
    """
    degree = network.degree if isinstance(network, Homogeneous) else None
    if not isinstance(degree, int) or degree < 1:
        raise TypeError(
            f"`network.degree` must be a positive int, got {degree!r}: the degree of homogeneity "
            "of the scores in the trained weights"
        )
    data = in_float64(place_data(network, X, y, gates))
    network = copy.deepcopy(network).double()
    margins = _margins(network, data)
    smallest = float(margins.min())
    if not smallest > 0:
        raise ValueError(
            f"the smallest margin on (X, y) is {smallest:g}, but the conditions need every "
            "training sample on the right side: train longer, or check that the data are separable"
        )
    # Homogeneity: margins scale with the degree-th power of the weights.
    trained = [p for p in network.parameters() if p.requires_grad]
    with torch.no_grad():
        for p in trained:
            p.div_(smallest ** (1 / degree))
    excess = margins / smallest - 1
    w = _flat(trained).detach()
    norm = float(w.norm())
    lam, fit = _fit(network, data, w, excess, degree)
    fit_norm, total = float(fit.norm()), float(lam.sum())
    return KKTDistance(
        cosine=float(w @ fit) / (norm * fit_norm) if fit_norm > 0 else 0.0,
        residual=float((w - fit).norm()) / norm,
        complementarity=float(lam @ excess) / total if total > 0 else math.nan,
        multipliers=lam.cpu().numpy(),
        dual_norms=_dual_norms(network, lam, data, (norm**2 / degree) ** ((degree - 2) / 2)),
    )


def _fit(
    network: torch.nn.Module, data: GatedData, w: Tensor, excess: Tensor, degree: int
) -> tuple[Tensor, Tensor]:
    # The multipliers (n,) and sum_n lam_n y_n grad_w f(x_n), on as few samples as will do.
    # With more samples than weights many fits are as good: `tight` prefers those on the margin.
    # Multipliers sum to ||w||^2 / degree at a KKT point, which puts it in units of ||w||.
    n, tight = len(excess), TIGHT * degree / w.norm() * excess
    chosen = torch.argsort(excess)[: max(_N_CANDIDATES, n // 2)]
    while True:
        gram = _gradient_gram(network, data.take(chosen))
        gram += tight[chosen, None] * tight[chosen]
        # <grad f, w> is `degree` times f, by homogeneity.
        lam = torch.zeros_like(excess)
        lam[chosen] = nonnegative_fit(gram, degree * (1 + excess[chosen]))
        fit = _combined_gradient(network, data, lam)
        if len(chosen) == n:
            return lam, fit
        outside = torch.ones_like(excess, dtype=torch.bool)
        outside[chosen] = False
        slopes = _slopes(network, data, fit - w) + tight * (tight @ lam)
        asking = (outside & (slopes < -_ROUNDING * degree * (1 + excess))).nonzero()[:, 0]
        if len(asking) == 0:
            return lam, fit
        # Those without a multiplier may come back; the steepest of those that ask enter.
        kept = chosen[lam[chosen] > 0]
        steepest = asking[torch.argsort(slopes[asking])[:_N_CANDIDATES]]
        grown = torch.cat([kept, steepest])
        chosen = grown if len(grown) > len(chosen) else torch.cat([chosen, steepest])


def _gradient_gram(network: torch.nn.Module, data: GatedData) -> Tensor:
    # (n, n) inner products of y_n grad_w f(x_n).
    with torch.no_grad():
        if isinstance(network, HasGradientFactors):
            gram = torch.zeros((len(data.y),) * 2).to(data.y)
            for outer, inner in network.gradient_factors(data.X, data.gates):
                gram.add_((outer @ outer.T) * (inner @ inner.T))
        else:
            gram = _gram_of_jacobian(network, data)
        return gram.mul_(data.y[:, None]).mul_(data.y)


def _gram_of_jacobian(network: torch.nn.Module, data: GatedData) -> Tensor:
    # For any module, by the gradient of every sample, in slabs of weights: no more entries are
    # held at once than `_MAX_ENTRIES`.
    weights = {k: p.detach() for k, p in network.named_parameters() if p.requires_grad}
    slab = max(_MAX_ENTRIES // len(data.y), 1)
    gram = torch.zeros((len(data.y),) * 2).to(data.y)
    for start in range(0, sum(p.numel() for p in weights.values()), slab):
        part = _jacobian(network, weights, data, slice(start, start + slab))
        gram.addmm_(part, part.T)
    return gram


def _jacobian(
    network: torch.nn.Module, weights: dict[str, Tensor], data: GatedData, part: slice
) -> Tensor:
    # Rows grad_w f(x_n), the columns in `part` of them.
    def score(weights: dict[str, Tensor], x: Tensor, gate: Tensor | None) -> Tensor:
        gates = None if gate is None else gate[None]
        scores: Tensor = functional_call(network, weights, (x[None], gates))
        return scores[0]

    per_sample = vmap(grad(score), in_dims=(None, 0, None if data.gates is None else 0))
    n_weights = sum(p.numel() for p in weights.values())
    samples = torch.arange(len(data.y), device=data.y.device)
    blocks = []
    for index in torch.split(samples, max(_MAX_ENTRIES // n_weights, 1)):
        some = data.take(index)
        gradients = per_sample(weights, some.X, some.gates)
        rows = torch.cat([gradients[k].flatten(1) for k in weights], dim=1)
        blocks.append(rows[:, part].clone())
    return torch.cat(blocks)


def _combined_gradient(network: torch.nn.Module, data: GatedData, lam: Tensor) -> Tensor:
    used = (lam > 0).nonzero()[:, 0]
    trained = [p for p in network.parameters() if p.requires_grad]
    if len(used) == 0:
        return torch.zeros_like(_flat(trained))
    some = data.take(used)
    with torch.enable_grad():
        combined = torch.dot(lam[used] * some.y, network(some.X, some.gates))
    return _flat(torch.autograd.grad(combined, trained))


def _slopes(network: torch.nn.Module, data: GatedData, direction: Tensor) -> Tensor:
    # <y_n grad_w f(x_n), direction> for every sample: sum_n u_n <grad f_n, direction> is linear in
    # u, and its gradient in u is what is wanted, from one pass forward and two back.
    trained = [p for p in network.parameters() if p.requires_grad]
    with torch.enable_grad():
        u = torch.zeros_like(data.y, requires_grad=True)
        scores = network(data.X, data.gates)
        combined = torch.autograd.grad(scores, trained, u, create_graph=True)
        slopes: Tensor = torch.autograd.grad(torch.dot(_flat(combined), direction), u)[0]
    return data.y * slopes


def _margins(network: torch.nn.Module, data: GatedData) -> Tensor:
    with torch.no_grad():
        scores: Tensor = network(data.X, data.gates)
    return data.y * scores


def _flat(tensors: Sequence[Tensor]) -> Tensor:
    return torch.cat([t.flatten() for t in tensors])


def in_float64(data: GatedData) -> GatedData:
    gates = data.gates
    if gates is not None and gates.is_floating_point():
        gates = gates.double()
    return GatedData(data.X.double(), data.y.double(), gates)


def _dual_norms(
    network: torch.nn.Module, lam: Tensor, data: GatedData, scale: float
) -> Array | None:
    if not isinstance(network, HasDualNorms):
        return None
    norms = network.dual_norms(lam * data.y, data.X, data.gates)
    return scale * norms.detach().cpu().numpy()
