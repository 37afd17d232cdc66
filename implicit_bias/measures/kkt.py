"""Distance of trained weights from a KKT point of the margin problem, at any depth.

Needs no formulation: frozen gates and homogeneity in the weights are enough.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .._support.doors import door, result
from .._support.kinds import anything
from .._support.shown import ReadOnly
from .._support.solve import Norm, NormName, nonnegative_fit
from .._support.words import WeightNorm
from ..networks.adapted import detached_copy, in_float64, plain
from ..networks.losses.labels import place_labelled
from ..networks.losses.margins import are_classes, by_sample
from ..networks.placed_data import GatedData, Inputs, trained_weights
from ..networks.protocols import HasDualNorms, check_homogeneous
from ..networks.relative import RelativeScores, pair_gates
from ..quantities.measured import Measured, derived, part, quantity
from .fit.exchange import exchange_fit
from .fit.gradients import (
    combined_gradient,
    flat,
    gradient_gram,
    margins,
    slopes,
    to_float64,
    trained_factors,
)
from .fit.gram_products import GramProducts
from .kkt_ratio import LayerNorms, kkt_ratio, ratio_of_fit

Array = NDArray[np.float64]

# Weight of complementarity in the fit: enough to choose among equal fits, too little to spoil one.
TIGHT = 1e-3
# From more samples than this on, whole blocks of them are exchanged if the network has
# `gradient_factors`, beginning with this share, those of the smallest margins. On 8,000 digits 43 %
# have multipliers in the end. One dense problem of 2,000 samples takes a second.
_EXCHANGED_FROM, _FIRST_SHARE = 2000, 3 / 8
# Most samples to begin with: their factor has 0.13 GB and takes seconds.
_MOST_AT_FIRST = 8000
# Else the fit starts with this many samples, those of the smallest margins, or half of all or two
# for each weight if that is more; further ones enter, as many at once, while the conditions ask.
_N_CANDIDATES = 2000
# Slopes of the fit, of the size ||w|| ||grad f||, that count as rounding.
_ROUNDING = 1e-9


@result()
class KKTDistance(ReadOnly, Measured):
    """Residuals of the KKT conditions of the margin problem at weights w of smallest margin 1.

    Examples
    --------
    >>> network = ib.FReLU.from_zeta(np.array([[6.0, 8.0]]))
    >>> found = ib.kkt_distance(network, np.array([[3.0, 4.0]]), np.ones(1), np.ones((1, 1)))
    >>> found.multipliers.round(6).tolist(), found.dual_norms.round(6).tolist()
    ([0.2], [1.0])
    """

    cosine: float = quantity(
        column="kkt_cosine",
        doc="Cosine between w and its fit ``sum_n lam_n y_n grad_w f(x_n)``, lam >= 0; 1 at a KKT "
        "point.",
    )
    residual: float = quantity(
        column="kkt_residual",
        doc="``||w - fit|| / ||w||``; 0 at a KKT point that is on no kink of an activation.",
    )
    residual_bound: float = quantity(
        "  residual of any multipliers, at least",
        doc="No multipliers have a smaller residual, by weak duality: see Notes of `kkt_distance`.",
    )
    complementarity: float = quantity(
        column="kkt_complementarity",
        doc="``sum_n lam_n (m_n - 1) / sum_n lam_n``; 0 at a KKT point, NaN if every lam_n is 0.",
    )
    epsilon: float = quantity(
        "epsilon of an (epsilon, delta)-KKT point",
        doc="``||w - fit||``: w is an (epsilon, delta)-KKT point in the sense of Lyu and Li. Both "
        "depend on the scale of the data; residual and complementarity do not.",
    )
    delta: float = quantity("  its delta", doc="The largest ``lam_n (m_n - 1)``.")
    multipliers: Array = part(
        "(n,) multipliers lam, of K classes (n, K) with 0 at a sample's own; read-only."
    )
    dual_norms: Array | None = part(
        "(H,) norms ``||v_h(lam)||`` in the units of the convex program (see Notes of "
        "`kkt_distance`); None for a network without `dual_norms`."
    )

    ratio: float = quantity(
        column="kkt_ratio_above",
        doc="Upper bound of the ratio rho of the linearised margin problem to the norm of the "
        "weights, in the norms that were asked for: rho is 1 at a KKT point in these norms, and "
        "below 1 elsewhere.",
        default=math.nan,
    )
    ratio_bound: float = quantity(
        column="kkt_ratio",
        doc="Certified lower bound of rho, from multipliers.",
        default=math.nan,
    )
    clarke_residual: float | None = quantity(
        "KKT residual with the gradients of both sides of kinks",
        doc="The least on margins up to 1.1 with gates free where a ReLU-like activation is at its "
        "kink, as in `kkt_level`; 0 at a KKT point of a ReLU network, whose `residual` may be "
        "anything there. None without kinks, or if they were not asked for.",
        ideal=0.0,
        default=None,
    )

    @derived(column="kkt_margin_bound")
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


@door(y=anything, norm=anything)
def kkt_distance(
    network: torch.nn.Module,
    X: Inputs,
    y: Any,
    gates: Inputs | None,
    *,
    norm: Mapping[str, Norm] | Mapping[str, NormName] | Mapping[str, WeightNorm] | None = None,
    kinks: bool = True,
) -> KKTDistance:
    r"""Measure how well weights satisfy the KKT conditions of the margin problem.

    .. math:: \min_w \tfrac12 \|w\|^2 \quad\text{s.t.}\quad y_n f_w(x_n; g(n)) \ge 1

    Parameters
    ----------
    network : Module
        Homogeneous of degree ``network.degree`` in its trained weights; computed with in float64.
        With a method ``gradient_factors(X, gates)``, as `GLN` has it, the fit never forms
        gradients of single samples nor, above 2,000 samples, a matrix of all of them.
    X : (n, D) array
        Inputs, of any real dtype.
    y : (n,), (n, 1) or (n, K) array
        Labels: numbers, booleans or strings, of two classes or of as many as there are scores, for
        which they stand in ascending order; or rows with a single one. Margins of K scores are the
        relative ones, :math:`f_y - f_k` of every sample and other class k.
    gates : (n, ...) array or None
        Gate values or integer contexts of each sample; None for networks without.
    norm : mapping of str to Norm or str, optional
        Norms of the layers in which `ratio` and `ratio_bound` are measured, by the names of the
        network's trained weights; the largest of them is the norm of the weights. By default the l2
        norm of all weights. A weight of several axes counts as a matrix with its first as rows.
    kinks : bool
        Whether `clarke_residual` is measured where activations like ReLU are found, which takes
        longer than all the rest.

    Returns
    -------
    KKTDistance
        Multipliers, residual and complementarity; all 0 but the multipliers at a KKT point.

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

    Among fits that are as good those on the margin are preferred, which may cost the residual a
    little. How little, `residual_bound` says. Let u = w - fit. If <y_n grad f(x_n), u> <= 0 for
    every n, then <u, w> / ||u|| is at most the distance of w to any sum of gradients with
    multipliers lam >= 0, since <u, w - sum> >= <u, w>. That fit leaves this a little short, and
    u - t w, with the largest t = <grad f, u> / <grad f, w> in place of 0, has it exactly, as
    y_n <grad f, w> = L m_n > 0.

    Large fits exchange blocks of samples (`exchange_fit`); where that does not converge, and for
    networks without `gradient_factors`, samples enter a dense problem as the conditions ask.

    References
    ----------
    S. Lippl, L. F. Abbott, S. Chung, "The implicit bias of gradient descent on generalized gated
    linear networks", theorem 3.1 (equal degrees) and proposition B.8 with its condition on dead
    units. K. Lyu, J. Li, "Gradient descent maximizes the margin of homogeneous neural networks",
    definition C.4.

    Examples
    --------
    >>> network = ib.FReLU.from_zeta(np.array([[6.0, 8.0]]))
    >>> found = ib.kkt_distance(network, np.array([[3.0, 4.0]]), np.ones(1), np.ones((1, 1)))
    >>> found.residual < 1e-9
    True
    >>> found = ib.kkt_distance(
    ...     network, np.array([[3.0, 4.0]]), np.ones(1), np.ones((1, 1)),
    ...     norm={"w1": "linf", "upper.0": "linf"},
    ... )
    >>> found.ratio < 0.9  # in the norm of sign descent w1 would have two equal entries
    True
    """
    own = in_float64(network, trained_weights(network)[0].device)
    given = to_float64(place_labelled(own, X, y, gates))
    named = {k: p for k, p in plain(network).named_parameters() if p.requires_grad}
    layers = None if norm is None else LayerNorms.named(named, norm)
    network, data = _margins_as_scores(own, given)
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
    size = float(w.norm())
    wanted = degree * (1 + excess)  # <y_n grad f, w> by homogeneity
    # With more samples than weights many fits are as good: `tight` prefers those on the margin.
    # Multipliers sum to ||w||^2 / degree at a KKT point, which puts it in units of ||w||.
    tight = TIGHT * degree / size * excess
    lam = _exchanged(network, data, wanted, tight)
    if lam is None:
        lam = _generated(network, data, w, wanted, tight)
    fit = combined_gradient(network, data, lam)
    off = slopes(network, data, w - fit)
    if layers is None:
        ratio = ratio_of_fit(w, fit, wanted - off, lam, 1 + (degree - 1) * (1 + excess))
    else:
        ratio = kkt_ratio(w, excess, degree, network, data, layers)
    fit_norm, total, epsilon = float(fit.norm()), float(lam.sum()), float((w - fit).norm())
    free = _at_kinks(network, data) if kinks else None
    return KKTDistance(
        cosine=float(w @ fit) / (size * fit_norm) if fit_norm > 0 else 0.0,
        residual=epsilon / size,
        residual_bound=_residual_bound(w, w - fit, wanted, off),
        complementarity=float(lam @ excess) / total if total > 0 else math.nan,
        epsilon=epsilon,
        delta=float((lam * excess).max()),
        multipliers=by_sample(lam, given.y).cpu().numpy(),
        dual_norms=_dual_norms(network, lam, data, (size**2 / degree) ** ((degree - 2) / 2)),
        ratio=ratio.above,
        ratio_bound=ratio.below,
        clarke_residual=free,
    )


def _at_kinks(network: torch.nn.Module, data: GatedData) -> float | None:
    """Return the residual with the gradients of both sides of kinks; None where there are none."""
    from ..networks.recognition.subject import Subject
    from .fit.margin_rows import MarginRows
    from .level import clarke_residual

    gates = None if data.gates is None else data.gates.cpu()
    copied = Subject(detached_copy(network).cpu(), GatedData(data.X.cpu(), data.y.cpu(), gates))
    residual, _, n_kinks = clarke_residual(MarginRows(copied))
    return residual if n_kinks else None


def _margins_as_scores(
    network: torch.nn.Module, data: GatedData
) -> tuple[torch.nn.Module, GatedData]:
    """Return a network and data of which every margin of K classes is a sample's."""
    if not are_classes(data.y):
        return network, data
    samples, others = (data.y == 0).nonzero(as_tuple=True)
    pairs = torch.stack([data.y.argmax(1)[samples], others], dim=1)
    each = data.take(samples)
    gates, shape = pair_gates(each.gates, pairs)
    above = data.y.new_ones(len(pairs))
    return RelativeScores(network, shape), GatedData(each.X, above, gates)


def _residual_bound(w: Tensor, off: Tensor, wanted: Tensor, slope: Tensor) -> float:
    """Lower bound of ``||w - fit|| / ||w||``; `slope` is that of `off` along the gradients."""
    polar = off - max(float((slope / wanted).max()), 0.0) * w
    size = float(polar.norm()) * float(w.norm())
    return max(float(polar @ w) / size, 0.0) if size > 0 else 0.0


def _exchanged(
    network: torch.nn.Module, data: GatedData, wanted: Tensor, tight: Tensor
) -> Tensor | None:
    """Multipliers (n,) by exchanging blocks; None if that is not for this case."""
    n = len(wanted)
    if n <= _EXCHANGED_FROM:
        return None
    with torch.no_grad():
        factors = trained_factors(network, data)
        if factors is None:
            return None
        layers = [(outer * data.y[:, None], inner) for outer, inner in factors]
        layers.append((tight[:, None], torch.ones_like(tight[:, None])))
        first = torch.argsort(tight)[: min(int(_FIRST_SHARE * n), _MOST_AT_FIRST)]
        return exchange_fit(GramProducts(tuple(layers)), wanted, first)


def _generated(
    network: torch.nn.Module, data: GatedData, w: Tensor, wanted: Tensor, tight: Tensor
) -> Tensor:
    """Multipliers (n,) from dense problems on as few samples as will do."""
    n = len(wanted)
    chosen = torch.argsort(tight)[: max(_N_CANDIDATES, min(n // 2, 2 * len(w), _MOST_AT_FIRST))]
    guess: Tensor | None = None
    while True:
        gram = gradient_gram(network, data.take(chosen))
        gram += tight[chosen, None] * tight[chosen]
        lam = torch.zeros_like(wanted)
        lam[chosen] = nonnegative_fit(gram, wanted[chosen], guess)
        if len(chosen) == n:
            return lam
        outside = torch.ones_like(wanted, dtype=torch.bool)
        outside[chosen] = False
        fit = combined_gradient(network, data, lam)
        slope = slopes(network, data, fit - w) + tight * (tight @ lam)
        asking = (outside & (slope < -_ROUNDING * wanted)).nonzero()[:, 0]
        if len(asking) == 0:
            return lam
        # Those without a multiplier may come back; the steepest of those that ask enter.
        kept = chosen[lam[chosen] > 0]
        steepest = asking[torch.argsort(slope[asking])[:_N_CANDIDATES]]
        grown = torch.cat([kept, steepest])
        chosen = grown if len(grown) > len(chosen) else torch.cat([chosen, steepest])
        positive = lam.clone()
        positive[steepest] = 1.0
        guess = positive[chosen]


def _dual_norms(
    network: torch.nn.Module, lam: Tensor, data: GatedData, scale: float
) -> Array | None:
    if not isinstance(network, HasDualNorms):
        return None
    norms = network.dual_norms(lam * data.y, data.X, data.gates)
    return scale * norms.detach().cpu().numpy()
