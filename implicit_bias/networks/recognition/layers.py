"""Layered networks: matrices with gates between them, ReLU's own or fixed ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice, pairwise

import torch
from torch import Tensor

from .relu import MOST, ReLUForm, assignments, find_relu
from .subject import SAME, SAMPLES, Subject, Weights

# Gates that are recovered are rounded to a whole number from so near.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class LayeredForm(ReLUForm):
    r"""Scores of a layered network, whose first layer alone may have a bias.

    .. math:: f(x) = W_L\, G_{L-1}(x)\, W_{L-1} \cdots G_1(x)\, W_1 x

    Attributes
    ----------
    relu : bool
        True where a gate is open as its unit is positive; False where gates are fixed.
    """

    relu: bool = True

    @property
    def bias(self) -> str:
        """Parameter that is the last column of W_1, of a constant input; empty without one."""
        return self.biases[0]

    def inputs(self, subject: Subject) -> Tensor:
        """Return the inputs (n, D), with a constant column where there is a bias."""
        X = subject.inputs
        return torch.cat([X, X.new_ones(len(X), 1)], dim=1) if self.bias else X

    def matrices(self, w: Weights) -> list[Tensor]:
        """Return W_1 (H_1, D), ..., W_L (1, H_(L-1)), a bias as the last column of W_1."""
        first, *others = self.chain.matrices(w)
        if self.bias:
            first = torch.cat([first, w[self.bias].reshape(-1, 1)], dim=1)
        return [first, *others]

    def gates(self, subject: Subject, w: Weights) -> list[Tensor]:
        """Return the gates (n, H_l) of every hidden layer on the subject's samples at weights w.

        Those of ReLUs are 1 where a unit is open, and the slope where it is closed.
        """
        if not self.relu:
            return _recovered(subject, self)
        hidden, found = self.inputs(subject), []
        for matrix in self.matrices(w)[:-1]:
            hidden = hidden @ matrix.T
            found.append(torch.where(hidden >= 0, 1.0, hidden.new_tensor(self.slope)))
            hidden = hidden * found[-1]
        return found


def picks_features(subject: Subject) -> bool:
    """Return whether scores (n, K) are of features that are weights below one linear layer.

    That is, whether they are a product of two matrices, of which every input, a unit vector of its
    own, picks a column; every class has a sample, and the width is K - 1 at least.

    Parameters
    ----------
    subject : Subject
    """
    X, K, matrices = subject.inputs, subject.n_outputs, list(subject.weights.items())
    one_hot = ((X == 0) | (X == 1)).all() and (X.sum(1) == 1).all() and (X.sum(0) <= 1).all()
    every = subject.data.y.ndim == 2 and bool((subject.data.y.sum(0) > 0).all())
    if not (one_hot and every) or [p.ndim for _, p in matrices] != [2, 2]:
        return False
    for (first, features), (last, classifiers) in (matrices, matrices[::-1]):
        if classifiers.shape == (K, len(features)) and features.shape[1] == X.shape[1]:
            error = subject.error(lambda w, f=first, c=last: X @ (w[c] @ w[f]).T)  # type: ignore[misc]
            return len(features) >= K - 1 and error <= SAME
    return False


def find_layers(subject: Subject) -> LayeredForm | None:
    """Look for a layered network with fixed gates, which are recovered from its scores.

    Parameters
    ----------
    subject : Subject
        Of scores that are polynomials in the weights.

    Returns
    -------
    LayeredForm or None
    """
    few = subject.few(SAMPLES)
    every = (one for one in assignments(few) if not any(one.biases[1:]))
    for one in islice(every, MOST):
        form = LayeredForm(**vars(one), relu=False)
        error = _fixed_error(few, form)
        if error <= SAME:
            return replace(form, error=error)
    return None


def find_relu_layers(subject: Subject) -> LayeredForm | None:
    """Look for a layered ReLU network; only its first layer may have a bias.

    Parameters
    ----------
    subject : Subject

    Returns
    -------
    LayeredForm or None
    """
    found = find_relu(subject.few(SAMPLES))
    return None if found is None or any(found.biases[1:]) else LayeredForm(**vars(found))


def _alike(form: LayeredForm, X: Tensor) -> tuple[Tensor, list[Tensor]]:
    """Return a random row (D,), and matrices that have it in the first layer and are 1 above."""
    rng = torch.Generator().manual_seed(0)
    row = torch.randn(X.shape[1], generator=rng, dtype=torch.float64)
    every = [row.expand(form.widths[0], -1)]
    every += [
        torch.ones((above, below), dtype=torch.float64)
        for below, above in pairwise((*form.widths, 1))
    ]
    return row, every


def _fixed_error(subject: Subject, form: LayeredForm) -> float:
    gates, X = _recovered(subject, form), form.inputs(subject)
    return subject.error(lambda w: _forward(form.matrices(w), X, gates))


def _forward(matrices: Sequence[Tensor], X: Tensor, gates: Sequence[Tensor]) -> Tensor:
    hidden = X
    for matrix, gate in zip(matrices, gates, strict=False):
        hidden = gate * (hidden @ matrix.T)
    return (hidden @ matrices[-1].T).view(-1)


def _recovered(subject: Subject, form: LayeredForm) -> list[Tensor]:
    """Recover the gates (n, H_l) that the form would have to have, from scores at chosen weights.

    With the same positive weights everywhere a score is the product of the sums of the gates of
    all layers; with the units of one layer but one cut off it has that unit's gate for their sum.
    """
    w, X = subject.weights, form.inputs(subject)
    row, every = _alike(form, X)
    along = X @ row
    whole = _scored(subject, form, every, w)
    gates, factor = [], torch.where(along.abs() > 0, whole / along, 0.0)
    for layer, width in enumerate(form.widths):
        columns = []
        for unit in range(width):
            cut = list(every)
            cut[layer + 1] = torch.zeros_like(every[layer + 1])
            cut[layer + 1][:, unit] = 1.0
            columns.append(_scored(subject, form, cut, w))
        shares = torch.stack(columns, dim=1)
        largest = shares.gather(1, shares.abs().argmax(dim=1, keepdim=True))
        gate = torch.where(largest.abs() > 0, shares / largest, 0.0)
        gates.append(_near_whole(gate))
        # The product of the sums of all layers is `factor`: what this layer's normalisation took.
        factor = torch.where(gate.sum(dim=1).abs() > 0, factor / gate.sum(dim=1), 0.0)
    gates[0] = _near_whole(gates[0] * factor[:, None])
    return gates


def _scored(subject: Subject, form: LayeredForm, matrices: Sequence[Tensor], w: Weights) -> Tensor:
    first, *others = matrices
    named: dict[str, Tensor] = {}
    if form.bias:
        named[form.bias] = first[:, -1].reshape(w[form.bias].shape)
        first = first[:, :-1]
    return subject.scores({**named, **form.chain.placed([first, *others], w)})


def _near_whole(gate: Tensor) -> Tensor:
    whole = gate.round()
    return torch.where((gate - whole).abs() <= _ROUNDING, whole, gate)
