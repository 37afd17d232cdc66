"""How far trained weights are from a KKT point of the margin problem, at any depth.

Needs no formulation: frozen gates and homogeneity in the weights are enough.
"""

import copy
import math
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .._shown import Shown
from ..training.adapted import with_gates
from ..training.data import GatedData, Inputs, place_data
from ..training.network import HasDualNorms, check_homogeneous
from .gradients import combined_gradient, flat, gradient_gram, margins, slopes, to_float64
from .nonnegative import nonnegative_fit

Array = NDArray[np.float64]

# Weight of complementarity in the fit: enough to choose among equal fits, too little to spoil one.
TIGHT = 1e-3
# The fit starts with this many samples, those of the smallest margins, or half of all if that is
# more; further ones enter, as many at once, while the conditions ask for them.
_N_CANDIDATES = 2000
# Slopes of the fit, of the size ||w|| ||grad f||, that count as rounding.
_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False, repr=False)
class KKTDistance(Shown):
    """Where rescaled weights w, smallest margin 1, stand to the KKT conditions.

    Attributes
    ----------
    cosine : float
        Between w and its fit ``sum_n lam_n y_n grad_w f(x_n)``, lam >= 0; 1 at a KKT point.
    residual : float
        ``||w - fit|| / ||w||``; 0 at a KKT point.
    complementarity : float
        ``sum_n lam_n (m_n - 1) / sum_n lam_n``; 0 at a KKT point, NaN if every lam_n is 0.
    epsilon, delta : float
        ``||w - fit||`` and the largest ``lam_n (m_n - 1)``: w is an (epsilon, delta)-KKT point in
        the sense of Lyu and Li. Both depend on the scale of the data; residual and
        complementarity do not.
    multipliers : (n,) array
        lam, read-only.
    dual_norms : (H,) array or None
        Norms ``||v_h(lam)||`` in the units of the convex program (see Notes of `kkt_distance`);
        None for a network without `dual_norms`.
    """

    cosine: float
    residual: float
    complementarity: float
    epsilon: float
    delta: float
    multipliers: Array
    dual_norms: Array | None

    def __post_init__(self) -> None:
        for array in (self.multipliers, self.dual_norms):
            if array is not None:
                array.flags.writeable = False

    @property
    def margin_bound(self) -> float:
        r"""A margin ratio that the network reaches at least, by its KKT distance and dual norms.

        .. math:: \frac{1 - \text{residual}}{(1 + \text{complementarity}) \max_h \|v_h\|}

        NaN without dual norms. It is of networks whose program is convex with these dual norms
        (linear, deep linear, GLN, frozen ReLU and shallow GLN, whose gates are what they are; of
        a ReLU network it holds among those with its present gates).

        Notes
        -----
        Multipliers over the largest dual norm bound the optimum from below. With r the residual
        and c the complementarity, <w, fit> = L sum lam_n m_n = L (1 + c) sum lam_n by homogeneity,
        and it is at least (1 - r) ||w||^2: so sum lam_n is at least
        (1 - r) ||w||^2 / (L (1 + c)). In units of the program that is divided by what the network
        needs for margin 1, its norm, at most (||w||^2 / L)^(L/2). A KKT point with a dual norm
        above 1 is no optimum, and its bound stays below 1.
        """
        if self.dual_norms is None or not self.dual_norms.max(initial=0.0) > 0:
            return math.nan
        reached = (1 - self.residual) / (1 + self.complementarity)
        return float(max(reached, 0.0) / self.dual_norms.max())


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
        If data are malformed, some training sample has no positive margin, or scores at twice the
        weights are not ``2 ** degree`` times those at the weights. With contexts of several degrees
        training ends where those of the lowest carry all the gradient, which need not be a KKT
        point of this problem.

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
    units. K. Lyu, J. Li, "Gradient descent maximizes the margin of homogeneous neural networks",
    definition C.4.
    """
    data = to_float64(place_data(network, X, y, gates))
    network = with_gates(copy.deepcopy(network).double())
    degree = check_homogeneous(network, data.X, data.gates)
    margin = margins(network, data)
    smallest = float(margin.min())
    if not smallest > 0:
        raise ValueError(
            f"the smallest margin on (X, y) is {smallest:g}, but the conditions need every "
            "training sample on the right side: train longer, or check that the data are separable"
        )
    trained = [p for p in network.parameters() if p.requires_grad]
    # Homogeneity: margins scale with the degree-th power of the weights.
    with torch.no_grad():
        for p in trained:
            p.div_(smallest ** (1 / degree))
    excess = margin / smallest - 1
    w = flat(trained).detach()
    norm = float(w.norm())
    lam, fit = _fit(network, data, w, excess, degree)
    fit_norm, total, epsilon = float(fit.norm()), float(lam.sum()), float((w - fit).norm())
    return KKTDistance(
        cosine=float(w @ fit) / (norm * fit_norm) if fit_norm > 0 else 0.0,
        residual=epsilon / norm,
        complementarity=float(lam @ excess) / total if total > 0 else math.nan,
        epsilon=epsilon,
        delta=float((lam * excess).max()),
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
        gram = gradient_gram(network, data.take(chosen))
        gram += tight[chosen, None] * tight[chosen]
        # <grad f, w> is `degree` times f, by homogeneity.
        lam = torch.zeros_like(excess)
        lam[chosen] = nonnegative_fit(gram, degree * (1 + excess[chosen]))
        fit = combined_gradient(network, data, lam)
        if len(chosen) == n:
            return lam, fit
        outside = torch.ones_like(excess, dtype=torch.bool)
        outside[chosen] = False
        slope = slopes(network, data, fit - w) + tight * (tight @ lam)
        asking = (outside & (slope < -_ROUNDING * degree * (1 + excess))).nonzero()[:, 0]
        if len(asking) == 0:
            return lam, fit
        # Those without a multiplier may come back; the steepest of those that ask enter.
        kept = chosen[lam[chosen] > 0]
        steepest = asking[torch.argsort(slope[asking])[:_N_CANDIDATES]]
        grown = torch.cat([kept, steepest])
        chosen = grown if len(grown) > len(chosen) else torch.cat([chosen, steepest])


def _dual_norms(
    network: torch.nn.Module, lam: Tensor, data: GatedData, scale: float
) -> Array | None:
    if not isinstance(network, HasDualNorms):
        return None
    norms = network.dual_norms(lam * data.y, data.X, data.gates)
    return scale * norms.detach().cpu().numpy()
