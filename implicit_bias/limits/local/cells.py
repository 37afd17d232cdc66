"""Cells of a ReLU network: near its weights each margin is one of few polynomials in them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from ...networks.gated.open_gates import OpenGates
from .newton import Point
from .problem import MarginProblem
from .successive import Approach, linearised, lower_towards

# Sets of gates that enter while one step is solved, the next one may ask for more; and the share by
# which what the step promises may still change for it to be tried before.
_SETS, _SETTLED = 20, 0.02
# Of a margin of 1: what its linearisation may lack behind other gates.
_SHORT = 1e-7
# Inputs of activations that are 0 up to rounding, as parts of the largest of the activation.
_KINK = 1e-8
# Pulls at kinks, as parts of ||w||, and weights that are none.
_NO_FORCE = 1e-6


class OpenedNetwork(torch.nn.Module):
    """A ReLU network with the gates of its activations given, side by side in (n, G)."""

    def __init__(self, network: torch.nn.Module, sizes: tuple[int, ...]) -> None:
        super().__init__()
        self.network, self.sizes = network, list(sizes)

    def forward(self, X: Tensor, gates: Tensor) -> Tensor:
        """Return the scores (n,) or (n, K)."""
        with OpenGates(torch.split(gates, self.sizes, dim=-1)):
            scores: Tensor = self.network(X, None)
        return scores


@dataclass(frozen=True, eq=False)
class Cells:
    """Margins of a ReLU network behind gates of one or more cells: rows, each a polynomial.

    Where a unit opposes a margin, which falls as it opens, the margin is the least over both its
    gates, and needs a row for each near a kink. Elsewhere the row of other gates than the network's
    own is below the margin.

    Attributes
    ----------
    of : MarginProblem
        Of the network itself.
    sizes : tuple of int
        Units of each activation, G in all.
    index : (M,) integers
        The margins that the rows are of.
    gates : (M, G)
        Ones for open units.
    """

    of: MarginProblem
    sizes: tuple[int, ...]
    index: Tensor
    gates: Tensor

    @classmethod
    def around(cls, problem: MarginProblem) -> Cells | None:
        """Return the cell of the problem's weights; None of a network without activations."""
        if problem.data.gates is not None:
            return None
        n = len(problem.targets)
        for k in (n, n + 1):  # samples: an activation of weights has as many inputs of any
            with OpenGates() as mode, torch.no_grad():
                some = problem.data.take(torch.arange(k) % problem.n_margins)
                problem.scores_at(problem.start, some)
            if not mode.seen or any(z.shape[:1] != (k,) for z in mode.seen):
                return None
        sizes = tuple(z[0].numel() for z in mode.seen)
        cells = cls(problem, sizes, torch.arange(problem.n_margins), problem.start)
        cells = cells.at(problem.start)
        own, w = problem.margins(problem.start), problem.start
        return cells if torch.allclose(cells.problem.margins(w), own) else None

    def at(self, w: Tensor, kept: Tensor | None = None) -> Cells:
        """Return the cell of other weights, with rows (M,) of these that do not lie below it."""
        every = torch.arange(self.of.n_margins)
        there = replace(self, index=every, gates=self.own_gates(w))
        if kept is None:
            return there
        kept = kept & (self.problem.margins(w) >= self.of.margins(w)[self.index] - _SHORT)
        return there.joined(self.index[kept], self.gates[kept])

    def joined(self, index: Tensor, gates: Tensor) -> Cells:
        """Return these rows and further ones, each once."""
        both = torch.cat([self.index, index]), torch.cat([self.gates, gates])
        rows = torch.unique(torch.cat([both[0][:, None].to(gates), both[1]], dim=1), dim=0)
        return replace(self, index=rows[:, 0].long(), gates=rows[:, 1:])

    @cached_property
    def problem(self) -> MarginProblem:
        """The margin problem of the rows."""
        network = OpenedNetwork(self.of.network, self.sizes)
        data = self.of.data.take(self.index)._replace(gates=self.gates)
        return RowsProblem(**vars(self.of) | {"network": network, "data": data}, cells=self)

    def started(self, w: Tensor) -> MarginProblem:
        """Return the margin problem of the rows that starts at other weights."""
        return replace(self.problem, network=OpenedNetwork(self.of.at(w), self.sizes))

    def split(self, beside: Tensor) -> Sequence[Tensor]:
        """Return what belongs to the units (k, G) activation by activation."""
        return torch.split(beside, list(self.sizes), dim=1)  # type: ignore[no-any-return]

    def inputs(self, w: Tensor) -> Tensor:
        """Return the inputs (n, G) of the activations."""
        with OpenGates() as mode:
            self.of.scores(w)
        return _side_by_side(mode.seen)

    def own_gates(self, w: Tensor) -> Tensor:
        """Return the gates (m, G) that the network has for each margin."""
        return (self.inputs(w) > 0).to(w)[self.sample_of(torch.arange(self.of.n_margins))]

    def sample_of(self, margins: Tensor) -> Tensor:
        """Return the samples (k,) of margins (k,)."""
        return margins // self.of.n_others

    def short_at(self, w: Tensor, u: Tensor) -> Cells:
        """Return these rows and those, behind the gates of u, whose linearisation at w u lacks."""
        every, gates = torch.arange(self.of.n_margins), self.own_gates(u)
        there = replace(self, index=every, gates=gates).problem
        lacks = there.gradients(w) @ u - (self.of.degree - 1) * there.margins(w) < 1 - _SHORT
        return self.joined(every[lacks], gates[lacks])

    def gathered(self, point: Point) -> Point:
        """Return a point of the rows as one of the margins themselves."""
        lam = torch.zeros(self.of.n_margins).to(point.lam).index_add_(0, self.index, point.lam)
        return Point(point.w, lam, lam > 0)


def approach_through(
    cells: Cells, w: Tensor, max_rounds: int, enough: float
) -> tuple[Cells, Approach | None]:
    """Go as `approaches` does, through the cells on the way, up to a residual."""
    last, w = None, cells.of.rescaled(w)
    for rounds in range(1, max_rounds + 1):
        moved, promised = None, math.inf
        for sets in range(_SETS):
            if cells.of.is_late:
                return cells, last
            gradients = cells.problem.gradients(w)
            solved = linearised(cells.problem, w, gradients)
            if solved is None:
                return cells, last
            lam, active = solved
            u = gradients.T @ lam
            more = cells.short_at(w, u)
            complete = len(more.index) == len(cells.index) or sets + 1 == _SETS
            before, promised = promised, float(w @ w - u @ u)
            last = Approach(w, lam, active, float((w - u).norm() / w.norm()), rounds)
            if complete or before - promised <= _SETTLED * promised:
                moved = None if last.residual <= enough else lower_towards(cells.of, w, u)
            if complete or moved is not None:
                break
            cells = more
        if moved is None or rounds == max_rounds:
            break
        w, cells = moved, cells.at(moved, lam > 0)
    return cells, last


@dataclass(frozen=True, eq=False, kw_only=True)
class RowsProblem(MarginProblem):
    """The margin problem of the rows of cells."""

    cells: Cells

    def held(self, point: Point) -> Tensor:
        """Return the gradients (k, P) of the inputs that multipliers hold at kinks.

        And those of the weights into dead units, whose gates may be anything.
        """
        kinks = Kinks.of(self.cells, point)
        weights = torch.eye(len(point.w)).to(point.w)
        return torch.cat([kinks.held, weights[kinks.dead_weights]])


@dataclass(frozen=True, eq=False)
class Kinks:
    """Pairs of a sample with multipliers and a unit whose input z is 0 there.

    A row with another gate than the unit then has is above the margin by ``-|z| dm / dt``, t what
    the unit adds as it opens. Weighed by multipliers, what rows of either gate are above the margin
    by is the pull of z to 0 from the other side. Where none pushes, the rows bound the margins.

    Attributes
    ----------
    pairs : (k, 2) integers
        Samples and units.
    gradients : (k, P)
        Of z, in the weights.
    pull : (k, 2)
        Of rows with the unit closed, and open, times the length of the gradient.
    rows : (k, 2) boolean
        Whether there are any with multipliers.
    least : float
        Of a pull that counts.
    dead : (k,) boolean
        Where no margin depends on the unit, and it has no weights.
    """

    pairs: Tensor
    gradients: Tensor
    pull: Tensor
    rows: Tensor
    least: float
    dead: Tensor

    @classmethod
    def of(cls, cells: Cells, point: Point) -> Kinks:
        """Find the kinks of a KKT point of the rows."""
        w, z, lam = point.w, cells.inputs(point.w), point.lam[point.index]
        margins, gates = cells.index[point.index], cells.gates[point.index]
        sample, data = cells.sample_of(margins), cells.of.data.take(margins)
        with torch.enable_grad():
            leaf = w.clone().requires_grad_()
            with OpenGates(cells.split(gates)) as mode:
                total = (data.y * cells.of.scores_at(leaf, data)).sum()
            slopes = torch.autograd.grad(total, mode.opened, retain_graph=True)
            seen = _side_by_side(mode.seen)
            per_row = -lam[:, None] * _side_by_side(slopes)
            shape = (2, *z.shape)
            pull, there = (
                torch.zeros(shape)
                .to(w)
                .index_add_(1, sample, torch.stack([(1 - gates) * one, gates * one]))
                for one in (per_row, lam[:, None])
            )
            sizes = zip(mode.beside, cells.sizes, strict=True)
            largest = [one.detach().abs().max().expand(size) for one, size in sizes]
            at_kink = (z.abs() <= _KINK * torch.cat(largest)) & there.any(0)
            pairs = at_kink.nonzero()
            row = [int((sample == n).nonzero()[0, 0]) for n in pairs[:, 0]]
            rows = [
                torch.autograd.grad(seen[k, unit], leaf, retain_graph=True)[0]
                for k, unit in zip(row, pairs[:, 1].tolist(), strict=True)
            ]
        gradients = torch.stack(rows) if rows else w.new_zeros(0, len(w))
        sizes = gradients.norm(dim=1)
        pulls = pull[:, at_kink].T * torch.where(sizes > 0, sizes, 1.0)[:, None]
        least = _NO_FORCE * float(w.norm())
        live = gradients[:, w.abs() > _NO_FORCE * w.abs().max()].norm(dim=1) > _NO_FORCE * sizes
        dead = (pulls.abs() <= least).all(1) & ~live & (sizes > 0)
        return cls(pairs, gradients, pulls, there[:, at_kink].T > 0, least, dead)

    @property
    def n_live(self) -> int:
        """Number of pairs whose input changes with the weights, of units that have some."""
        return int((self._moves & ~self.dead).sum())

    @property
    def held(self) -> Tensor:
        """Gradients (h, P) of inputs that are pulled to 0 from both sides."""
        return self.gradients[(self.pull > self.least).all(1) & self._moves]

    @property
    def dead_weights(self) -> Tensor:
        """The weights (P,), boolean, that lead into dead units."""
        return (self.gradients[self.dead] != 0).any(0)

    @property
    def undecided(self) -> str:
        """Why second order decides nothing; empty where the rows bound the margins near by."""
        samples = self.pairs[:, :1]
        # An input without a gradient stays 0, unless that depends on a kink below it.
        moves = self._moves | ((samples == samples.T).sum(1) > 1)
        if bool((self.pull < -self.least)[moves & ~self.dead].any()):
            return "a unit is at its kink on a sample that it helps, where both sides of it count"
        pulled = (self.pull > self.least) | ~self.rows
        if not bool(pulled[self._moves & ~self.dead].all()):
            return "a unit is at its kink on a sample whose multipliers do not hold it there"
        return ""

    @property
    def _moves(self) -> Tensor:
        moves: Tensor = self.gradients.norm(dim=1) > 0
        return moves


def _side_by_side(parts: Sequence[Tensor]) -> Tensor:
    return torch.cat([one.reshape(len(one), -1) for one in parts], dim=1)
