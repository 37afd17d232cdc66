"""Margins of a module, one a sample or one a sample and other class, and their gradients."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor
from torch.func import vmap

from ...networks.derivatives import row_gradients
from ...networks.gated.open_gates import OpenGates
from ...networks.losses.margins import are_classes, by_sample
from ...networks.placed_data import GatedData
from ...networks.recognition.subject import Subject
from .gradients import flat

# Float64 entries of gradients that are held at once: half a gibibyte.
ENTRIES = 2**26
# Inputs of an activation of at most this share of their median size, of those that are not 0 up to
# rounding, count as at its kink.
NEAR, _ZERO = 0.05, 1e-6

Gates = list[Tensor]
"""Gates of each activation: (n, units), or (k, units) of some rows."""


@dataclass(frozen=True, eq=False)
class MarginRows:
    r"""Rows r = (n, k), k != y_n, of margins :math:`m_r = f_y - f_k`; of one score :math:`y f`.

    Attributes
    ----------
    subject : Subject
        Labels are (n,) in {-1, +1}, or (n, K) with a one at each sample's class.
    """

    subject: Subject

    @property
    def samples(self) -> Tensor:
        """Numbers (R,) of the samples."""
        return self.subject.rows[:, 0]

    @cached_property
    def w(self) -> Tensor:
        """All trained weights as a vector (P,)."""
        return flat(list(self.subject.weights.values()))

    @cached_property
    def margins(self) -> Tensor:
        """Margins (R,)."""
        return self.subject.margins(self.subject.weights)

    @cached_property
    def along(self) -> Tensor:
        """Slopes (R,) of the margins along the weights."""
        return self.slopes(self.w)

    def combined(self, lam: Tensor) -> Tensor:
        """Return ``sum_r lam_r grad m_r`` (P,)."""
        scores, leaves, _, _ = self._graph
        with torch.enable_grad():
            total = (scores * self._to_scores(lam)).sum()
        return flat(torch.autograd.grad(total, leaves, retain_graph=True, materialize_grads=True))

    def slopes(self, direction: Tensor) -> Tensor:
        """Return ``<grad m_r, direction>`` (R,)."""
        if not self.subject.twice:
            rows = torch.arange(len(self.samples))
            return self.gradients(rows) @ direction
        _, _, u, combined = self._graph
        (slopes,) = torch.autograd.grad(
            combined @ direction, u, retain_graph=True, materialize_grads=True
        )
        return self.subject.margins_of(slopes)

    def gradients(self, rows: Tensor, gates: Gates | None = None) -> Tensor:
        """Return the gradients (k, P) of rows (k,), with gates of their own if they are given."""
        if len(rows) == 0:
            return self.w.new_zeros(0, len(self.w))
        if self._one_by_one:
            return self._vectorised(rows, gates)
        if gates is None:
            return torch.stack([self.combined(one) for one in self._alone(rows)])
        return torch.stack(
            [self._coupled(row, [c[k] for c in gates])[0].detach() for k, row in enumerate(rows)]
        )

    def gate_slopes(self, rows: Tensor, gates: Gates, direction: Tensor) -> tuple[Tensor, Gates]:
        """Return ``<grad m_r, direction>`` (k,) with gates of their own, and its slope in these."""
        if not self._one_by_one:
            found = [self._coupled(row, [c[k] for c in gates]) for k, row in enumerate(rows)]
            slopes = [gradient @ direction for gradient, _ in found]
            by_row = [
                torch.autograd.grad(slope, own, materialize_grads=True)
                for slope, (_, own) in zip(slopes, found, strict=True)
            ]
            return torch.stack(slopes).detach(), [
                torch.stack(of_one) for of_one in zip(*by_row, strict=True)
            ]
        along = self.named(direction)
        of_gate = None if self.subject.data.gates is None else 0
        of_each = vmap(self._margin, in_dims=(0, 0, of_gate, 0, *[0] * len(gates)))
        parts = []
        for some in torch.split(torch.arange(len(rows)), self._at_once):
            with torch.enable_grad():
                leaves = {
                    name: p.detach().expand(len(some), *p.shape).requires_grad_()
                    for name, p in self.subject.weights.items()
                }
                own = [c[some].requires_grad_() for c in gates]
                margins = of_each(leaves, *self._inputs(rows[some]), *own)
                by_weight = torch.autograd.grad(
                    margins.sum(), list(leaves.values()), create_graph=True, materialize_grads=True
                )
                pairs = zip(by_weight, along.values(), strict=True)
                of_rows = torch.stack([(g * v).flatten(1).sum(1) for g, v in pairs]).sum(0)
                by_gate = torch.autograd.grad(of_rows.sum(), own, materialize_grads=True)
            parts.append((of_rows.detach(), *by_gate))
        whole, *by_gates = (torch.cat(column) for column in zip(*parts, strict=True))
        return whole, by_gates

    @cached_property
    def gates(self) -> Gates:
        """The module's own gates (n, units), with which it computes the same as without.

        Where samples depend on each other (1, units of all); empty where none are found.
        """
        with OpenGates() as mode:
            scores = self._scores(self.subject.weights, self.subject.data)
        n = len(self.subject.data.X) if self._one_by_one else 1
        first = self.subject.data if n == 1 else self.subject.data.take(torch.arange(1))
        with OpenGates() as lone:
            self._scores(self.subject.weights, first)
        sizes = [n * a.numel() for a in lone.seen]
        if not self.subject.twice or sizes != [z.numel() for z in mode.seen]:
            return []
        both = zip(lone.seen, mode.seen, strict=True)
        same = all(torch.allclose(a.flatten(), z.reshape(n, -1)[0]) for a, z in both)
        found = [(z > 0).to(z).reshape(n, -1) for z in mode.seen]
        with OpenGates([c[:1] for c in found]):
            alone = self._scores(self.subject.weights, first)
        return found if same and torch.allclose(alone, scores[: len(first.X)]) else []

    @cached_property
    def kinks(self) -> Gates:
        """True (n, units) where the input of an activation is nearly 0, of `gates`."""
        if not self.gates:
            return []
        with OpenGates() as mode:
            self._scores(self.subject.weights, self.subject.data)
        sizes = [z.abs() for z in mode.beside]
        # Most inputs may be 0, as of dead units and where others are at their kinks.
        usual = [z[z > _ZERO * z.max()].median().nan_to_num() for z in sizes]
        return [
            (z.abs() <= NEAR * one).reshape(c.shape)
            for z, one, c in zip(mode.seen, usual, self.gates, strict=True)
        ]

    def of_rows(self, gates: Tensor, rows: Tensor) -> Tensor:
        """Return what belongs to rows (k, units) of gates or kinks."""
        return gates[self.samples[rows]] if self._one_by_one else gates.expand(len(rows), -1)

    def by_sample(self, lam: Tensor) -> Tensor:
        """Return multipliers (R,) like the labels: (n,), or (n, K) with 0 at a sample's own."""
        return by_sample(lam, self.subject.data.y)

    def named(self, vector: Tensor) -> dict[str, Tensor]:
        """Return a vector (P,) by the names of the weights, in their shapes."""
        weights = self.subject.weights
        parts = torch.split(vector, [p.numel() for p in weights.values()])
        return {
            name: part.view(p.shape) for (name, p), part in zip(weights.items(), parts, strict=True)
        }

    @cached_property
    def _one_by_one(self) -> bool:
        """Whether gradients of several rows can be had at once, each of its sample alone."""
        if not (self.subject.by_sample and self.subject.twice):
            return False
        first = torch.zeros(1, dtype=torch.long)
        try:
            found = self._vectorised(first, None)[0]
        except Exception:  # of torch.func, or of a module that branches on its values
            return False
        return torch.allclose(found, self.combined(self._alone(first)[0]))

    def _vectorised(self, rows: Tensor, gates: Gates | None) -> Tensor:
        found = row_gradients(
            self._margin, self.subject.weights, *self._inputs(rows), *(gates or []),
            at_once=self._at_once,
        )  # fmt: skip
        return torch.cat([found[name].flatten(1) for name in self.subject.weights], dim=1)

    @property
    def _at_once(self) -> int:
        return max(1, ENTRIES // 8 // max(len(self.w), self.subject.data.X.numel()))

    def _inputs(self, rows: Tensor) -> tuple[Tensor, Tensor | None, Tensor]:
        """Return inputs and gates of rows, and the coefficients of the scores that are margins."""
        data, n = self.subject.data, self.samples[rows]
        scores = torch.stack([self._to_scores(one) for one in self._alone(rows)])
        own = scores[torch.arange(len(rows)), n]
        return data.X[n], None if data.gates is None else data.gates[n], own

    def _alone(self, rows: Tensor) -> Tensor:
        """Return multipliers (k, R) of single rows (k,)."""
        one_hot: Tensor = torch.nn.functional.one_hot(rows, len(self.samples))
        return one_hot.double()

    def _margin(
        self,
        weights: Mapping[str, Tensor],
        x: Tensor,
        gate: Tensor | None,
        c: Tensor,
        *gates: Tensor,
    ) -> Tensor:
        """Return the margin of one row; `c` are coefficients of the scores."""
        with OpenGates(gates) if gates else contextlib.nullcontext():
            own = None if gate is None else gate[None]
            scores = self.subject.called(weights, x[None], own)
        return (scores.reshape(c.shape) * c).sum()

    def _coupled(self, row: Tensor, gates: Gates) -> tuple[Tensor, Gates]:
        """Return the gradient (P,) of one margin, differentiable in the gates of all samples."""
        with torch.enable_grad():
            weights = {name: p.clone().requires_grad_() for name, p in self.subject.weights.items()}
            own = [c.clone().requires_grad_() for c in gates]
            with OpenGates(own):
                scores = self.subject.called(weights, self.subject.data.X, self.subject.data.gates)
            margin = self.subject.margins_of(scores)[row]
            parts = torch.autograd.grad(
                margin, list(weights.values()), create_graph=True, materialize_grads=True
            )
        return flat(parts), own

    def _scores(self, weights: dict[str, Tensor], data: GatedData) -> Tensor:
        with torch.no_grad():
            return self.subject.called(weights, data.X, data.gates)

    @cached_property
    def _graph(self) -> tuple[Tensor, list[Tensor], Tensor, Tensor]:
        """Scores, weights, coefficients u of the scores and ``sum u grad f``, linear in u."""
        with torch.enable_grad():
            weights = {name: p.clone().requires_grad_() for name, p in self.subject.weights.items()}
            leaves = list(weights.values())
            scores = self.subject.called(weights, self.subject.data.X, self.subject.data.gates)
            u = torch.zeros_like(scores, requires_grad=True)
            if not self.subject.twice:
                return scores, leaves, u, self.w
            # Of their sum and not of the scores: torch would load a package of algebra for these.
            total = (scores * u).sum()
            combined = torch.autograd.grad(total, leaves, create_graph=True, materialize_grads=True)
            return scores, leaves, u, flat(combined)

    def _to_scores(self, lam: Tensor) -> Tensor:
        """Return coefficients of the scores whose sum is ``sum_r lam_r m_r``."""
        y = self.subject.data.y
        if not are_classes(y):
            return y * lam
        others = self.by_sample(lam)
        return y * others.sum(1, keepdim=True) - others
