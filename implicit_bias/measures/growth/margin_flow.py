r"""Flow of the smallest margin, which gradient descent follows once the loss is small.

Gradient flow on log(loss) moves weights by :math:`\sum_n p_n y_n \nabla f_n`, p the softmax of the
negative margins. As margins grow, p lives on samples within O(1) of the smallest margin q, and q is
log(1 / loss) up to log n. What is left is the gradient flow of the function
:math:`q(w) = \min_n y_n f_w(x_n)`: its velocity is the shortest vector in the convex hull of the
gradients of the smallest margins. Its own time is log q, that is log log(1 / loss), in which a
network of degree L at a KKT point grows at the constant rate w / L.

Constant steps need exp(q) of them to come to q, so no run shows what they do later. Each step here
solves

.. math:: \min_w \tfrac12\|w - w_k\|^2 \quad\text{s.t.}\quad y_n f_w(x_n) \ge q_{k+1}

by linearising at the last iterate: the implicit Euler step of that flow, whatever its length.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..._support.doors import door, result
from ..._support.kinds import anything
from ..._support.shown import Shown
from ..._support.solve import nonnegative_fit
from ...networks.adapted import detached_copy, plain, with_gates
from ...networks.losses.labels import place_labelled
from ...networks.losses.objectives import log_mean_loss
from ...networks.placed_data import GatedData, Inputs, trained_weights
from ...networks.protocols import HasUnitNorms, check_homogeneous
from ...training.trajectory_recorder import Observer
from ..fit.gradients import combined_gradient, flat, gradient_gram, margins, slopes, to_float64

Array = NDArray[np.float64]

# A step ends when no margin is short of its target by more than this share; linearising again costs
# one more fit, and two are usual. Where the rounds do not converge half the step is gone first.
SHORT, MOST_ROUNDS, MOST_HALVINGS = 1e-6, 12, 6


@result()
@dataclass(frozen=True, eq=False, repr=False)
class MarginFlow(Shown):
    """The later path of gradient descent: one entry a step, read-only float64 arrays.

    Attributes
    ----------
    log_inverse_loss : (T,)
        log(1 / loss) by which the network has come there, up to log n.
    normalised_margin : (T,)
        Smallest margin over ``(||w||^2 / L)^(L / 2)``; never falls along the flow.
    alignment : (T,)
        Cosine between the weights and their velocity: 1 at a KKT point. NaN before the first step.
    support : (T,) int
        Samples that hold the smallest margin back. 0 before the first step.
    unit_norms : (T, H)
        ``||zeta_h||``; (T, 0) for a network without `unit_norms`.
    observed : mapping of str to (T, ...)
        Values that the observer measured.
    shortfall : float
        Largest share by which a margin missed its target: the residual of the steps' programs.
    network : Module
        A copy, in float64, with the weights at the end.

    Examples
    --------
    >>> network = ib.FReLU.from_zeta(np.array([[12.0, 16.0]]))
    >>> X, y, gates = np.array([[3.0, 4.0]]), np.ones(1), np.ones((1, 1))
    >>> flow = ib.dynamics.margin_flow(network, X, y, gates, until=1e3)
    >>> flow.unit_norms.shape == (len(flow.log_inverse_loss), 1), int(flow.support[-1])
    (True, 1)
    """

    log_inverse_loss: Array
    normalised_margin: Array
    alignment: Array
    support: NDArray[np.int64]
    unit_norms: Array
    observed: Mapping[str, Array]
    shortfall: float
    network: torch.nn.Module

    @door()
    def first(self, name: str, level: float) -> float:
        """log(1 / loss) from which `observed[name]` stays at `level` or above; inf if it does not.

        Between two entries it is interpolated in log log(1 / loss), the time of the flow.
        """
        if name not in self.observed:
            raise ValueError(f"`name` must be one of {sorted(self.observed)}, got {name!r}")
        values, time = self.observed[name], np.log(self.log_inverse_loss)
        below = np.flatnonzero(~(values >= level))
        if len(below) == 0:
            return float(self.log_inverse_loss[0])
        last = int(below[-1])
        if last + 1 == len(values):
            return math.inf
        share = (level - values[last]) / (values[last + 1] - values[last])
        return float(np.exp(time[last] + share * (time[last + 1] - time[last])))


@door(y=anything)
def margin_flow(
    network: torch.nn.Module,
    X: Inputs,
    y: Any,
    gates: Inputs | None = None,
    *,
    until: float = 1e6,
    step: float = 0.1,
    observer: Observer | None = None,
) -> MarginFlow:
    r"""Follow descent from a trained network to losses that no run of it reaches.

    Parameters
    ----------
    network : Module
        Separates the data; not changed. Its gates are the ones that it is given, fixed.
    X : (n, D) array
        Inputs, of any real dtype.
    y : (n,), (n, 1) or (n, K) array
        Labels: numbers, booleans or strings, as `kkt_distance` takes them.
    gates : (n, ...) array, optional
        Gate values or integer contexts of each sample, for networks that take them.
    until : float
        log(1 / loss) to end at; it begins at the network's own.
    step : float
        Step of :math:`\log\log(1/\mathrm{loss})`; halving 0.1 moves the labels of a GLN by 3 in
        10,000.
    observer : callable, optional
        Called with the network at every entry; returns a mapping of names to values.

    Returns
    -------
    MarginFlow
        One entry a step, the first one for the network as it is given.

    Raises
    ------
    TypeError
        If the network has no `degree`.
    ValueError
        If the network is not homogeneous of it, data are malformed, a sample has no positive
        margin, the loss is not below 1 / e, or `until` and `step` are no positive numbers.
    FloatingPointError
        If a step cannot be solved: the gradients of the samples that hold the margin back admit no
        growth, to rounding.

    Notes
    -----
    Derived, not proved: late gradient flow obeys it up to terms of the order
    log(n) / log(1 / loss), so its first steps, which even out the margins, are the least exact.
    The program of a step is solved for its multipliers by `nonnegative_fit`: n^2 memory.

    Examples
    --------
    >>> network = ib.FReLU.from_zeta(np.array([[12.0, 16.0]]))
    >>> X, y, gates = np.array([[3.0, 4.0]]), np.ones(1), np.ones((1, 1))
    >>> flow = ib.dynamics.margin_flow(network, X, y, gates, until=1e3)
    >>> bool(flow.log_inverse_loss[-1] > 990), round(float(flow.normalised_margin[-1]), 6)
    (True, 5.0)
    """
    if not (0 < step < math.inf and 0 < until < math.inf):
        raise ValueError(f"`until` and `step` must be positive, got {until} and {step}")
    network = with_gates(detached_copy(network).double())
    data = to_float64(place_labelled(network, X, y, gates))
    begin = _check_start(network, data)
    times = np.arange(math.log(begin), max(math.log(until), math.log(begin)) + step / 2, step)
    observe = observer or (lambda _: {})
    rows, measured = [_row(network, data, begin, None)], [dict(observe(plain(network)))]
    multipliers, reached, short = None, float(margins(network, data).min()), 0.0
    for target in np.exp(times[1:]):
        before = flat(trained_weights(network)).detach().clone()
        multipliers, missed = _advance(network, data, (reached, target), multipliers)
        reached, short = target, max(short, missed)
        rows.append(_row(network, data, target, (before, multipliers)))
        measured.append(dict(observe(plain(network))))
    return MarginFlow(
        **_columns(rows), observed=_columns(measured), shortfall=short, network=plain(network)
    )


def _columns(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Read-only arrays of the entries, by their names."""
    columns = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    for array in columns.values():
        array.flags.writeable = False
    return columns


def _check_start(network: torch.nn.Module, data: GatedData) -> float:
    """log(1 / loss) of a network that the flow can begin from."""
    check_homogeneous(network, data.X, data.gates)
    margin = margins(network, data)
    begin, smallest = -float(log_mean_loss(margin, "logistic")), float(margin.min())
    if not (smallest > 0 and begin > 1):
        raise ValueError(
            f"log(1/loss) is {begin:.3g} and the smallest margin {smallest:.3g}: the flow begins "
            "where every sample has a positive margin and the loss is below 1/e; train longer"
        )
    return begin


def _advance(
    network: torch.nn.Module,
    data: GatedData,
    span: tuple[float, float],
    guess: Tensor | None,
    halvings: int = MOST_HALVINGS,
) -> tuple[Tensor, float]:
    """Move from smallest margin `span[0]` to `span[1]`: multipliers, and the share missing."""
    weights = trained_weights(network)
    anchor = flat(weights).detach().clone()
    multipliers, missed = _step(network, data, span[1], guess)
    if missed <= SHORT:
        return multipliers, max(missed, 0.0)
    if halvings == 0:
        raise FloatingPointError(
            f"no step to log(1/loss) {span[1]:.4g} was found: a margin stays {missed:.2g} below it,"
            " however short the step; end before"
        )
    _place(weights, anchor)
    middle = math.sqrt(span[0] * span[1])
    first, short = _advance(network, data, (span[0], middle), guess, halvings - 1)
    second, further = _advance(network, data, (middle, span[1]), first, halvings - 1)
    return second, max(short, further)


def _step(
    network: torch.nn.Module, data: GatedData, target: float, guess: Tensor | None
) -> tuple[Tensor, float]:
    """Move to the nearest weights of smallest margin `target`: multipliers, and what is missing."""
    weights = trained_weights(network)
    anchor = flat(weights).detach().clone()
    moved, multipliers = torch.zeros_like(anchor), torch.zeros_like(data.y)
    for _ in range(MOST_ROUNDS):
        # Margins at the anchor, as linearised where the iterate is.
        wanted = target - margins(network, data) + slopes(network, data, moved)
        multipliers = nonnegative_fit(gradient_gram(network, data), wanted, guess)
        guess, moved = multipliers, combined_gradient(network, data, multipliers)
        _place(weights, anchor + moved)
        missed = 1 - float(margins(network, data).min()) / target
        if missed <= SHORT or not math.isfinite(missed):
            break
    return multipliers, missed if math.isfinite(missed) else math.inf


def _place(weights: list[torch.nn.Parameter], values: Tensor) -> None:
    with torch.no_grad():
        torch.nn.utils.vector_to_parameters(values, weights)


def _row(
    network: torch.nn.Module,
    data: GatedData,
    log_inverse_loss: float,
    moved: tuple[Tensor, Tensor] | None,
) -> dict[str, Any]:
    """The entry of a network; `moved` are the weights before its step, and the multipliers."""
    w = flat(trained_weights(network)).detach()
    degree = network.degree
    assert isinstance(degree, int)
    size = (float(w @ w) / degree) ** (degree / 2)
    alignment, support, norms = math.nan, 0, np.empty(0)
    if moved is not None:
        velocity = w - moved[0]
        alignment = float(velocity @ w) / float(velocity.norm() * w.norm())
        support = int((moved[1] > 0).sum())
    if isinstance(network, HasUnitNorms):
        norms = network.unit_norms().detach().cpu().numpy()
    return {
        "log_inverse_loss": log_inverse_loss,
        "normalised_margin": float(margins(network, data).min()) / size,
        "alignment": alignment,
        "support": support,
        "unit_norms": norms,
    }
