r"""The KKT conditions of any network's margin problem at the level of its smallest margin.

At weights theta with margins :math:`m_r` of rows r = (n, k) and the smallest of them s,

.. math:: P(\theta) = \min N(v) \quad\text{s.t.}\quad
          m_r + \langle g, v - \theta \rangle \ge s \quad \text{for every } g \in G_r,

where G_r holds the gradient of m_r and, where units are at their kinks, all that the chain rule
gives with each of them open or closed. v = theta is feasible, so
:math:`\rho = P(\theta) / N(\theta) \le 1`; nothing is asked of the degree of the network. The
convex hull of G_r, in which a unit at its kink is open, closed or anything between, holds Clarke's
gradients of the margin, and with kinks in several layers more: it is a conservative gradient.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from types import MappingProxyType
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
from ..networks.placed_data import Inputs
from ..networks.recognition.intake import take_subject
from ..networks.recognition.subject import Subject
from ..quantities.measured import Measured, part, quantity
from .fit.margin_rows import ENTRIES, Gates, MarginRows
from .kkt_ratio import LayerNorms, Ratio, steepest_bracket

Array = NDArray[np.float64]

# Rows of margins up to this share of the smallest may be at kinks, and carry the residual.
ON_MARGIN = 1.1
# Rows beyond those that are tried from the start.
_MORE = 20
# Gradients that may be held, at least; and those that enter at once.
_FEWEST, _AT_ONCE = 64, 200
# Entries of gradients of rows whose gates are free, those of the smallest margins; and all that are
# computed of them in at least so many rounds.
_FREE, _ENTRIES, _FEW_ROUNDS = 2**23, 2**27, 6
# Rounds in which violated rows and gates enter, and the distance of the bounds, as a share of what
# rho lacks of 1, that is near enough.
_ROUNDS, _CLOSE = 60, 1e-4
# Rounds in a row that together raise the lower bound by less than that: what is left is rounding.
_IDLE = 3
# All patterns of gates at the kinks of several layers are held of rows that have few: so many of
# them, and entries of their gradients, at most.
_PATTERNS, _PATTERN_ENTRIES = 2**11, 2**22
# Sweeps over the gates of several layers, and how often they begin at drawn gates where one over
# own ones leads to none that enter; none at drawn ones where gradients have more entries than this.
_SWEEPS, _DRAWN, _SMALL = 3, 6, 2**20
# Metrics of a norm that are tried in turn, the power of ten that what vanishes in them is raised to
# in the end, and the relative distance of the bounds that ends it.
_METRICS, _FLOOR, _SURE = 80, -7, 1e-4
# Fewer metrics where products of all gradients cost more multiplications than this in all.
_WORK, _FEW_METRICS = 2e11, 8
# Violations that are rounding, of the size of slopes; and what asks for nothing, of the margin.
_ROUNDING, _LITTLE = 1e-9, 1e-6


@result()
class KKTLevel(ReadOnly, Measured):
    r"""How near weights are to a KKT point of the margin problem at their own smallest margin.

    Examples
    --------
    >>> import torch
    >>> network = torch.nn.Linear(2, 1)
    >>> with torch.no_grad():
    ...     _ = network.weight.copy_(torch.tensor([[3.0, 4.0]])), network.bias.zero_()
    >>> found = ib.measures.kkt_level(network, [[3.0, 4.0], [-3.0, -4.0]], [1, -1])
    >>> round(found.ratio_bound, 6), found.multipliers.round(6).tolist()
    (1.0, [0.5, 0.5])
    """

    ratio_bound: float = quantity(
        column="kkt_ratio",
        doc="Certified lower bound of rho, from `multipliers`; rho is 1 at a KKT point and below 1 "
        "elsewhere.",
    )
    ratio: float = quantity(
        column="kkt_ratio_above",
        doc="Upper bound of rho, from weights that meet the linearised constraints.",
    )
    residual: float = quantity(
        column="kkt_residual",
        doc="Least ``||theta - sum_r lam_r g_r|| / ||theta||`` over lam >= 0 on margins up to 1.1 "
        "times the smallest, g_r in the convex hull of G_r; NaN in other norms than l2.",
    )
    one_sided: float = quantity(
        "  with the gradients of one side of each kink",
        doc="The same with the gradients that differentiation returns; `residual` without kinks.",
    )
    complementarity: float = quantity(
        column="kkt_complementarity",
        doc="``sum_r lam_r (m_r - s) / (s sum_r lam_r)`` of `multipliers`; NaN if all are 0.",
    )
    smallest_margin: float = quantity()
    n_kinks: int = quantity(
        "pairs of a row and a unit at a kink",
        doc="Of rows with margins up to 1.1 times the smallest; inputs of the activation are at "
        "most 0.05 of their median size, differences in a maximum of that of what is compared.",
    )
    multipliers: Array = part(
        "(n,) multipliers lam, of K classes (n, K) with 0 at a sample's own; read-only. In l2 "
        "``sum_r lam_r g_r`` is the shortest v, in other norms as long in the dual norm as v in N."
    )
    gradient: Mapping[str, Array] = part("``sum_r lam_r g_r``, by the names of the weights.")


@door(y=anything, norm=anything)
def kkt_level(
    network: torch.nn.Module,
    X: Inputs,
    y: Any,
    gates: Inputs | None = None,
    *,
    norm: Mapping[str, Norm] | Mapping[str, NormName] | Mapping[str, WeightNorm] | None = None,
) -> KKTLevel:
    r"""Measure how well the weights of any network satisfy the KKT conditions of a margin problem.

    .. math:: \min_\theta N(\theta) \quad\text{s.t.}\quad m_r(\theta) \ge s

    with s the smallest margin that the network has. No homogeneity is asked for: biases, skips and
    normalisation are allowed, and of K outputs the margins are :math:`f_y - f_k`.

    Parameters
    ----------
    network : Module
        Computed with in float64.
    X : (n, D) or (n, ...) array
        Inputs as the network takes them.
    y : (n,), (n, 1) or (n, K) array
        Labels: numbers, booleans or strings, of two classes or of as many as there are scores, for
        which they stand in ascending order; or rows with a single one.
    gates : (n, ...) array, optional
        Gate values or integer contexts of each sample, for a network that takes them.
    norm : mapping of str to Norm or str, optional
        Norms of the layers, by the names of the network's trained weights; the largest of them is N
        (its dual norm is the sum of theirs). By default N is the l2 norm of all weights. A weight
        of several axes counts as a matrix with its first as rows.

    Returns
    -------
    KKTLevel
        Two bounds of rho, the residual and multipliers.

    Raises
    ------
    TypeError
        If `norm` is no mapping of norms.
    ValueError
        If data are malformed, `norm` names other weights, or the smallest margin is not positive.

    Notes
    -----
    With :math:`a = s - m_r + \langle g, \theta \rangle` every choice of multipliers lam >= 0 and of
    g in G_r proves :math:`\sum \lambda a / N^*(\sum \lambda g) \le P`, and every feasible v proves
    :math:`P \le N(v)`: both bounds are plain arithmetic. For a network of degree L, a is
    :math:`s + (L - 1) m_r`, and rho the ratio of `kkt_distance`.

    Trained ReLU networks have margins on both sides of kinks: with the gradients of one side alone
    the residual of a network that has converged may be anything. Gates are read from activations
    `relu`, `leaky_relu`, `prelu` and `clamp(min=0)`, and from maxima: of two, along axes, in
    windows of equal size. With kinks in one layer of a path the bounds
    are over all gradients in G_r, and so they are of rows that have few kinks in several layers. Of
    rows with many they are over those that the search met: others could raise rho further.

    The loss is never evaluated, so margins may be as large as they like.

    References
    ----------
    K. Lyu, J. Li, "Gradient descent maximizes the margin of homogeneous neural networks", for KKT
    points with generalised gradients; F. H. Clarke, "Optimization and nonsmooth analysis", 1983,
    chapter 2, for these; J. Bolte, E. Pauwels, "Conservative set valued fields, automatic
    differentiation, stochastic gradient methods and deep learning", 2021, for those of chain rules.

    Examples
    --------
    >>> import torch
    >>> _ = torch.manual_seed(0)
    >>> network = torch.nn.Sequential(
    ...     torch.nn.Linear(2, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3)
    ... )
    >>> found = ib.measures.kkt_level(network, [[0.5, 1.0]], np.eye(3)[[2]])
    >>> 0 < found.ratio_bound <= found.ratio <= 1, found.multipliers.shape
    (True, (1, 3))
    """
    return level_of(take_subject(network, X, y, gates), norm=norm)


def level_of(subject: Subject, *, norm: Mapping[str, object] | None = None) -> KKTLevel:
    """Measure `kkt_level` of a module that has been taken already."""
    rows = MarginRows(subject)
    layers = None if norm is None else LayerNorms.named(subject.weights, norm)
    s = float(rows.margins.min())
    if not s > 0:
        raise ValueError(
            f"the smallest margin on (X, y) is {s:g}, but the conditions need every training "
            "sample on the right side: train longer, or check that the data are separable"
        )
    every = torch.ones_like(rows.margins, dtype=torch.bool)
    cone = _Cone(rows, rows.margins - s, every)
    point = cone.nearest() if layers is None else cone.bracket(layers)
    residual, one_sided, _ = clarke_residual(rows) if layers is None else (math.nan, math.nan, 0)
    total = float(point.lam.sum())
    return KKTLevel(
        ratio_bound=point.ratio.below,
        ratio=point.ratio.above,
        residual=residual,
        one_sided=one_sided,
        complementarity=float(point.lam @ cone.excess) / total / s if total > 0 else math.nan,
        smallest_margin=s,
        n_kinks=cone.n_kinks,
        multipliers=rows.by_sample(point.lam).numpy(),
        gradient=MappingProxyType(
            {name: part.numpy().copy() for name, part in rows.named(point.combined).items()}
        ),
    )


@dataclass
class _Point:
    """Bounds of rho, with the multipliers (R,) that prove the lower one and their combination."""

    ratio: Ratio
    lam: Tensor
    combined: Tensor


class _Cone:
    """Sums of gradients of margins with multipliers lam >= 0, which enter as they are asked for.

    Parameters
    ----------
    rows : MarginRows
    excess : (R,) tensor
        By how much v may lower a margin: ``<g, v - theta> >= -excess``.
    usable : (R,) tensor
        True for the rows that may have multipliers.
    """

    def __init__(self, rows: MarginRows, excess: Tensor, usable: Tensor) -> None:
        self.rows, self.excess, self.usable = rows, excess, usable
        near = usable & (rows.margins <= ON_MARGIN * rows.margins.min())
        self.most = max(ENTRIES // len(rows.w), _FEWEST)
        order = torch.argsort(rows.margins + torch.where(usable, 0.0, torch.inf))
        first = order[: min(int(near.sum()) + _MORE, int(usable.sum()), self.most)]
        self.index, self.gradients = first, rows.gradients(first)
        self.gram = self.gradients @ self.gradients.T
        # Those that were left, or have not entered yet: bounds are over them, too.
        self.left, self.left_gradients = first[:0], self.gradients[:0]
        self.gates, self.kinks, self.at_kinks = list[Tensor](), list[Tensor](), first[:0]
        if rows.kinks:
            some = order[: int(near.sum())]
            here = torch.stack([rows.of_rows(kinks, some).any(1) for kinks in rows.kinks]).any(0)
            self.at_kinks = some[here][: max(_FREE // len(rows.w), _FEWEST)]
            self.kinks = [rows.of_rows(kinks, self.at_kinks) for kinks in rows.kinks]
            self.gates = [rows.of_rows(gates, self.at_kinks) for gates in rows.gates]
        # Number of pairs of a row and a unit at a kink.
        self.n_kinks = sum(int(kinks.sum()) for kinks in self.kinks)
        if self._in_several_layers:
            self._hold_patterns()

    @property
    def _in_several_layers(self) -> bool:
        return sum(bool(kinks.any()) for kinks in self.kinks) > 1

    def _hold_patterns(self) -> None:
        """Hold the gradients of all patterns of gates of rows with few kinks, which are met."""
        units = [one.shape[1] for one in self.kinks]
        kinks, gates = torch.cat(self.kinks, dim=1), torch.cat(self.gates, dim=1)
        numbers, order = kinks.sum(1).double().sort()
        most = min(_PATTERNS, _PATTERN_ENTRIES // len(self.rows.w))
        met = order[: int((torch.exp2(numbers).cumsum(0) <= most).sum())]
        for row in met.tolist():
            free = kinks[row].nonzero()[:, 0]
            patterns = torch.cartesian_prod(*[gates.new_tensor([0.0, 1.0])] * len(free))
            own = gates[row].repeat(2 ** len(free), 1)
            own[:, free] = patterns.reshape(len(own), -1)
            index = self.at_kinks[row].expand(len(own))
            self.left = torch.cat([self.left, index])
            found = self.rows.gradients(index, list(torch.split(own, units, dim=1)))
            self.left_gradients = torch.cat([self.left_gradients, found])
        searched = torch.ones(len(kinks), dtype=torch.bool).index_fill_(0, met, False)
        self.at_kinks = self.at_kinks[searched]
        self.kinks = [one[searched] for one in self.kinks]
        self.gates = [one[searched] for one in self.gates]

    def nearest(self) -> _Point:
        """Return the point in l2, where v is the sum itself."""
        return self._grown(self._least_squares)

    def bracket(self, norm: LayerNorms) -> _Point:
        """Return the point in another norm."""
        solve = self._reweighted if norm.has_metric else self._steps
        return self._grown(partial(solve, norm), norm)

    def _grown(
        self, solve: Callable[[], tuple[Tensor, Tensor]], norm: LayerNorms | None = None
    ) -> _Point:
        w = self.rows.w
        value = torch.linalg.vector_norm if norm is None else norm.value
        dual = torch.linalg.vector_norm if norm is None else norm.dual
        size = float(value(w))
        best = _Point(Ratio(), torch.zeros_like(self.excess), torch.zeros_like(w))
        work = max(len(self.at_kinks), 1) * len(w)
        tried: list[tuple[Tensor, float, float]] = []
        low, idle = 0.0, 0
        for _ in range(min(_ROUNDS, max(_ENTRIES // work, _FEW_ROUNDS))):
            lam, v = solve()
            combined = lam @ self.gradients
            length, reached = float(dual(combined)), float(combined @ w - lam @ self._excess)
            if length > 0 and reached / length / size > best.ratio.below:
                scale = 1.0 if norm is None else reached / length / length
                by_row = torch.zeros_like(self.excess).index_add_(0, self.index, scale * lam)
                best.ratio.below = min(reached / length / size, 1.0)
                best.lam, best.combined = by_row, scale * combined
            share, entered = self._ask(w - v, lam > 0)
            tried.append((v, float(value(v)) / size, share))
            above = _mixed(*tried[-1][1:])
            if not entered or above - best.ratio.below <= _CLOSE * (1 - above):
                break
            rose = best.ratio.below - low > _CLOSE * (1 - best.ratio.below)
            low, idle = (best.ratio.below, 0) if rose else (low, idle + 1)
            if idle >= _IDLE:
                break
        # Gradients that entered later bound what was tried before, too.
        for v, above, share in tried:
            above = _mixed(above, max(share, self._ask_left(w - v)[0]))
            best.ratio.above = min(best.ratio.above, max(above, best.ratio.below))
        return best

    @cached_property
    def _starts(self) -> list[Gates]:
        """Gates from which the steepest are looked for: own ones, then kinks drawn at random.

        With kinks in one activation all lead to the same.
        """
        small = len(self.at_kinks) * len(self.rows.w) <= _SMALL
        several = self._in_several_layers and small
        rng = torch.Generator().manual_seed(0)
        drawn = (
            [torch.where(k, torch.rand(c.shape, generator=rng).round().to(c), c) for k, c in both]
            for both in [list(zip(self.kinks, self.gates, strict=True))] * several * _DRAWN
        )
        return [self.gates, *drawn]

    @cached_property
    def _room_at_kinks(self) -> Tensor:
        """By how much 2 theta exceeds what rows at kinks ask for, at least."""
        return self.excess[self.at_kinks] - self._steepest_gates(-self.rows.w, self.gates)[0]

    @property
    def _excess(self) -> Tensor:
        return self.excess[self.index]

    @cached_property
    def _small(self) -> float:
        """What is missing by rounding, at most."""
        return _ROUNDING * float((self.rows.along.abs() + self.excess).max())

    def _ask_left(self, off: Tensor) -> tuple[float, Tensor]:
        """Return what `_ask` does of the gradients that are left, and what these miss."""
        room = self.excess[self.left]
        missing = self.left_gradients @ off - room
        asked = room + self.left_gradients @ self.rows.w
        return _share(missing, asked, self._small), missing

    def _least_squares(self) -> tuple[Tensor, Tensor]:
        """Return multipliers of the gradients that have entered, and their sum as v."""
        wanted = self.gradients @ self.rows.w - self._excess
        lam = nonnegative_fit(self.gram, wanted)
        return lam, lam @ self.gradients

    def _reweighted(self, norm: LayerNorms) -> tuple[Tensor, Tensor]:
        """Return multipliers and v in a norm with metrics, by least squares in one after another.

        With multipliers and metric in turn ``lam.a - <V, V / M> / 2``, jointly concave, only rises.
        """
        G, w = self.gradients, self.rows.w
        wanted = G @ w - self._excess
        lam, v = self._least_squares()
        best, low, high = (lam, w), 0.0, math.inf
        n_metrics = min(_METRICS, max(int(_WORK / len(G) / G.numel()), _FEW_METRICS))
        for floor in torch.logspace(-1, _FLOOR, n_metrics, dtype=torch.float64).tolist():
            combined = lam @ G
            size = norm.dual(combined)
            if not size > 0:
                return lam, v
            if float(lam @ wanted) / size > low:
                low, best = float(lam @ wanted) / size, (lam, best[1])
            over = norm.over_metric(combined / size, floor, G)
            lam = nonnegative_fit(G @ over.T, wanted, lam)
            v = lam @ over
            if norm.value(v) < high:
                high, best = norm.value(v), (best[0], v)
            if high - low <= _SURE * high:
                break
        return best

    def _steps(self, norm: LayerNorms) -> tuple[Tensor, Tensor]:
        """Return multipliers in another norm, and v as far as the gradients ask that entered."""
        w, s = self.rows.w, float(self.rows.margins.min())
        wanted = self.gradients @ w - self._excess
        # What asks for less than nothing is met by v = 0, and never by steps.
        asking = wanted > _LITTLE * s
        G, lam = self.gradients[asking], torch.zeros_like(wanted)
        if not len(G):
            return lam, torch.zeros_like(w)
        found = steepest_bracket(
            w, self._excess[asking] / s, wanted[asking], lambda p: p @ G, lambda u: G @ u, norm
        )
        lam[asking] = found.lam
        return lam, found.v

    def _ask(self, off: Tensor, needed: Tensor) -> tuple[float, bool]:
        """Let in what v = theta - off violates, in place of what is not needed.

        Returns
        -------
        share, entered : float, bool
            Of (1 - share) v + 2 share theta all constraints hold that were looked at.
        """
        rows, small = self.rows, self._small
        missing = torch.where(self.usable, rows.slopes(off) - self.excess, -torch.inf)
        share = _share(missing, self.excess + rows.along, small)
        known = torch.zeros_like(self.usable).index_fill_(0, self.index, True)
        space = self.most - int(needed.sum())
        wrong = _worst(missing, ~known & (missing > small), min(space, _AT_ONCE))
        of_left, missing = self._ask_left(off)
        back = _worst(missing, missing > small, min(space - len(wrong), _AT_ONCE))
        share, space = max(share, of_left), space - len(wrong) - len(back)
        entering = [(wrong, rows.gradients(wrong)), (self.left[back], self.left_gradients[back])]
        n_new = len(wrong) + len(back)
        for start in self._starts if len(self.at_kinks) else ():
            slopes, gates = self._steepest_gates(off, start)
            more = slopes - self.excess[self.at_kinks]
            share = max(share, _share(more, self._room_at_kinks, small))
            open_ = _worst(more, more > small, space)
            index, n_new = self.at_kinks[open_], n_new + len(open_)
            entering.append((index, rows.gradients(index, [c[open_] for c in gates])))
            if n_new:
                break
        # Gradients of patterns of gates depend on each other: fewer of them are fitted better.
        if len(self.index) + n_new > self.most or self.n_kinks:
            if self.n_kinks:
                stay = torch.ones_like(self.left, dtype=torch.bool).index_fill_(0, back, False)
                self.left = torch.cat([self.left[stay], self.index[~needed]])
                others = self.left_gradients[stay], self.gradients[~needed]
                self.left_gradients = torch.cat(others)
            self.index, self.gradients = self.index[needed], self.gradients[needed]
            self.gram = self.gram[needed][:, needed]
        for index, new in entering:
            self._enter(index, new)
        return share, n_new > 0

    def _enter(self, index: Tensor, new: Tensor) -> None:
        """Let in gradients (k, P) of rows (k,)."""
        between = new @ self.gradients.T
        self.gram = torch.cat(
            [
                torch.cat([self.gram, between.T], dim=1),
                torch.cat([between, new @ new.T], dim=1),
            ]
        )
        self.index = torch.cat([self.index, index])
        self.gradients = torch.cat([self.gradients, new])

    def _steepest_gates(self, off: Tensor, gates: Gates) -> tuple[Tensor, Gates]:
        """Return the largest ``<g, off>`` (k,) of rows at kinks met from gates, and gates there.

        Slopes are linear in the gates of each activation, which are set to the best in turn: with
        kinks in one hidden layer the largest of all is found.
        """
        best, by_gate = self.rows.gate_slopes(self.at_kinks, gates, off)
        layers = [i for i, kinks in enumerate(self.kinks) if kinks.any()]
        still = -1
        for i in layers * (1 if gates is self.gates else _SWEEPS):
            free = self.kinks[i] & (by_gate[i] != 0)
            gates = list(gates)
            gates[i] = torch.where(free, (by_gate[i] > 0).to(off), gates[i])
            slopes, by_gate = self.rows.gate_slopes(self.at_kinks, gates, off)
            still = 0 if bool((slopes > best).any()) else still + 1
            best = slopes
            if still + 1 >= len(layers):
                break
        return best, gates


def _worst(missing: Tensor, wrong: Tensor, most: int) -> Tensor:
    """Return the numbers of at most so many of the wrong rows, those that miss most first."""
    index = wrong.nonzero()[:, 0]
    return index[torch.argsort(missing[index], descending=True)][: max(most, 0)]


def _mixed(length: float, share: float) -> float:
    """Return a bound of the length of (1 - share) v + 2 share theta, in units of that of theta."""
    return (1 - share) * length + 2 * share


def _share(missing: Tensor, room: Tensor, small: float) -> float:
    """Return the least share of 2 theta that makes up for what is missing by more than rounding."""
    wrong = missing > small
    if not wrong.any():
        return 0.0
    missing, room = missing[wrong], room[wrong]
    return float((missing / (missing + room.clamp(min=0))).max())


def clarke_residual(rows: MarginRows) -> tuple[float, float, int]:
    """Return the residual at kinks, that of one side alone, and how many kinks were free.

    Both are ``||theta - sum_r lam_r g_r|| / ||theta||``, the least over lam >= 0 on margins up to
    1.1 times the smallest.

    Parameters
    ----------
    rows : MarginRows
        Of positive margins.
    """
    near = rows.margins <= ON_MARGIN * rows.margins.min()
    cone = _Cone(rows, torch.zeros_like(rows.margins), near)
    _, fit = cone._least_squares()
    size = float(rows.w.norm())
    one_sided = float((rows.w - fit).norm()) / size
    if not cone.n_kinks:
        return one_sided, one_sided, 0
    fit = cone.nearest().combined
    return min(float((rows.w - fit).norm()) / size, one_sided), one_sided, cone.n_kinks
