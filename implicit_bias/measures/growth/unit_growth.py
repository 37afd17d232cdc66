"""Predicted growth and decay of a network's units: which, how fast, and when.

The law is that of `growth_law`; here it is read off a network and its data.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..._support.doors import door
from ..._support.kinds import anything
from ..._support.solve import to_numpy
from ...limits.limit import HasNorm
from ...networks.adapted import detached_copy, with_gates
from ...networks.losses.labels import place_labelled
from ...networks.losses.objectives import log_mean_loss
from ...networks.placed_data import GatedData, Inputs, trained_weights
from ...networks.protocols import HasDualNorms, HasUnitNorms, Homogeneous
from ..fit.gradients import combined_gradient, flat, margins, to_float64
from ..kkt import KKTDistance, kkt_distance
from .clocks import Clock, ConstantClock
from .growth_law import NEAR, UnitGrowth, changes_of, share_exponents

if TYPE_CHECKING:
    from ...limits.limit import Limit

Array = NDArray[np.float64]


@door(y=anything)
def unit_growth(
    network: torch.nn.Module,
    X: Inputs,
    y: Any,
    gates: Inputs | None = None,
    *,
    limit: Limit | None = None,
    clocks: Sequence[Clock] = (ConstantClock(),),
    kkt: KKTDistance | None = None,
) -> UnitGrowth:
    r"""Predict which units' shares of the norm will change under gradient flow, and when.

    .. math:: \frac{d \log(\|\zeta_h\| / \sum_k \|\zeta_k\|)}{d \log\log(1/\mathrm{loss})}
              = \frac{2 (\nu_h - 1)}{L}

    Parameters
    ----------
    network : Module
        Homogeneous of degree L, with methods `unit_norms` and `dual_norms`.
    X : (n, D) array
        Inputs, of any real dtype.
    y : (n,), (n, 1) or (n, K) array
        Labels: numbers, booleans or strings, as `kkt_distance` takes them.
    gates : (n, ...) array, optional
        Gate values or integer contexts of each sample, for networks that take them.
    limit : Limit, optional
        Its shares are those that units come to. One whose norm is not the sum of the network's
        unit norms says nothing of them, nor does one with other units.
    clocks : sequence of Clock
        Trainers whose steps are wanted; those that do not follow the flow are passed over.
    kkt : KKTDistance, optional
        `kkt_distance` of the network on these data, if it has been computed already.

    Returns
    -------
    UnitGrowth
        With a `reason` in place of predictions where the law does not hold: degree 1, a single
        unit, or a KKT residual or complementarity above 0.2.

    Raises
    ------
    TypeError
        If the network is not homogeneous or its dual norms are not known.
    ValueError
        If data are malformed, or some training sample has no positive margin.

    Notes
    -----
    First order: the dual norms are frozen at those of the present multipliers. That holds until a
    growing unit has a part in the margins, some per cent of the norm; beyond that only the limit
    knows. A unit whose weights do not point along its dual vector yet grows more slowly at first:
    compare `growth_now` with `exponents`. One whose coefficients are exactly zero stays there. Of a
    ReLU network with gates of its own the law holds while these stay.

    Examples
    --------
    >>> X, y, gates = np.array([[3.0, 4.0]]), np.ones(1), np.array([[1.0, 0.0]])
    >>> network = ib.FReLU.from_zeta(np.array([[6.0, 8.0], [0.06, 0.08]]))  # the second is closed
    >>> found = ib.dynamics.unit_growth(network, X, y, gates)
    >>> found.dual_norms.round(6).tolist(), found.reason
    ([1.0, 0.0], '')
    """
    if not isinstance(network, Homogeneous):
        raise TypeError(f"{_missing(network)} `degree`")
    if not isinstance(network, HasUnitNorms) or not isinstance(network, HasDualNorms):
        raise TypeError(f"{_missing(network)} `unit_norms` and `dual_norms`")
    kkt = kkt_distance(network, X, y, gates, kinks=False) if kkt is None else kkt
    degree, norms = network.degree, to_numpy(network.unit_norms().double())
    dual_norms = np.array(kkt.dual_norms)
    growth = UnitGrowth(
        degree=degree,
        **_state(network, to_float64(place_labelled(network, X, y, gates)), kkt),
        residual=kkt.residual,
        complementarity=kkt.complementarity,
        shares=norms / norms.sum(),
        dual_norms=dual_norms,
        exponents=share_exponents(dual_norms, degree) if degree > 1 else np.nan * dual_norms,
        limit_shares=_limit_shares(limit, len(norms)),
        changes=(),
        reason=_reason(degree, len(norms), kkt),
    )
    return growth if growth.reason else replace(growth, changes=changes_of(growth, clocks))


def _missing(network: torch.nn.Module) -> str:
    return f"the growth of units is read from what {type(network).__name__} does not have:"


def _state(network: torch.nn.Module, data: GatedData, kkt: KKTDistance) -> dict[str, Any]:
    """The loss, the margins and the weights as they are, and how units are growing."""
    network = with_gates(detached_copy(network).double())
    trained = trained_weights(network)
    margin = margins(network, data)
    fit = combined_gradient(network, data, torch.tensor(kkt.multipliers).to(data.y))
    # Weights c times those of smallest margin 1, which the multipliers are of, have c^(L - 2) times
    # their relative growth.
    degree, smallest = network.degree, float(margin.min())
    scale = smallest ** (2 / degree - 1) / degree  # type: ignore[operator]
    return {
        "log_inverse_loss": -float(log_mean_loss(margin, "exponential")),
        "mean_margin": float(torch.softmax(-margin, dim=0) @ margin),
        "squared_norm": float(sum(w.detach().square().sum() for w in trained)),
        "growth_now": scale * _relative_growth(network, trained, fit) - 1,
    }


def _relative_growth(network: Any, trained: Sequence[Tensor], direction: Tensor) -> Array:
    """Logarithmic derivatives (H,) of unit norms along a direction (P,); NaN at norm 0."""
    norms = network.unit_norms()
    # sum_h u_h ||zeta_h|| has gradients linear in u: their product with the direction, by u.
    u = torch.zeros_like(norms, requires_grad=True)
    gradients = torch.autograd.grad(norms, trained, u, create_graph=True)
    along = torch.dot(flat(gradients), direction)
    slopes, sizes = to_numpy(torch.autograd.grad(along, u)[0]), to_numpy(norms.detach())
    growth: Array = np.full(len(sizes), math.nan)
    np.divide(slopes, sizes, out=growth, where=sizes > 0)
    return growth


def _limit_shares(limit: Limit | None, n_units: int) -> Array:
    if limit is not None and not isinstance(limit, HasNorm):
        # Units that are dead in the limit have norms of the size of the gap.
        norms = np.where(to_numpy(limit.live), to_numpy(limit.unit_norms), 0.0)
        if norms.shape == (n_units,) and norms.sum() > 0:
            shares: Array = norms / norms.sum()
            return shares
    return np.full(n_units, math.nan)


def _reason(degree: int, n_units: int, kkt: KKTDistance) -> str:
    if degree < 2:
        return (
            "the network is linear in its weights, so that no unit grows in proportion to what it "
            "is: units come to their shares together"
        )
    if n_units < 2:
        return "the network has a single unit, which holds the whole norm"
    if not (kkt.residual <= NEAR and kkt.complementarity <= NEAR):
        return (
            f"the weights are not near a KKT point, residual {kkt.residual:.2g} and "
            f"complementarity {kkt.complementarity:.2g}: train until both are at most {NEAR}"
        )
    return ""
