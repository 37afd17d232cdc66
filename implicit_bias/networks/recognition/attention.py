"""One layer of softmax attention with a fixed value head, recognised by its values."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from .subject import SAME, Subject, Weights, misfit, normal

# Random weights at which a form is tried, with logits of size 1: softmax of larger ones is blind to
# their scale.
DRAWS = 3
Matrix = Callable[[Weights], Tensor]


@dataclass(frozen=True, eq=False)
class RecognisedAttention:
    """What a module is in ``f_n = sum_t softmax_t(x_nt' W z_n) u_nt``, W of its trained weights.

    Attributes
    ----------
    W : (d, q) tensor
        At the given weights.
    queries : (n, q) tensor
        z: the gates, or the last or first tokens.
    values : (n, T) tensor
        u, at random weights the same.
    pair : bool
        True where W is a product of two trained matrices.
    error : float
        Largest relative misfit of scores at random weights and at the given ones.
    """

    W: Tensor
    queries: Tensor
    values: Tensor
    pair: bool
    error: float

    @property
    def in_words(self) -> str:
        """What it is, in a few words."""
        what = "W = K Q'" if self.pair else "W one matrix"
        return f"one layer of softmax attention, {what}, value head fixed"


def recognise_attention(subject: Subject) -> RecognisedAttention | None:
    """Return a module as one layer of attention with a fixed head; None where it is none.

    Its values are those of constant sequences, where attention does not matter. Queries, the order
    of the factors and a scale by the root of a width are tried, and one form is taken if scores are
    those of the module at random weights and at the given ones, to rounding.
    """
    X, weights = subject.data.X, subject.weights
    tokens = X.ndim == 3 and X.shape[1] > 1 and X.is_floating_point()
    if not tokens or len(weights) > 2 or any(p.ndim != 2 for p in weights.values()):
        return None
    if subject.n_outputs != 1:
        return None
    values = _values(subject)
    for z in _queries(subject):
        for matrix in _matrices(weights, (X.shape[2], z.shape[1])):
            error = _error(subject, z, values, matrix)
            if error <= SAME:
                W = matrix(weights)
                return RecognisedAttention(W, z, values, len(weights) == 2, error)
    return None


def _values(subject: Subject) -> Tensor:
    """Return the scores (n, T) of sequences that repeat one token."""
    data = subject.data
    n, T, d = data.X.shape
    same = data.X.reshape(n * T, 1, d).expand(-1, T, -1).contiguous()
    alone = subject.on(same, None if data.gates is None else data.gates.repeat_interleave(T, 0))
    return alone.scores(subject.weights).view(n, T)


def _queries(subject: Subject) -> Iterator[Tensor]:
    """Yield what sequences may be asked with."""
    gates = subject.data.gates
    if gates is None:
        yield from (subject.data.X[:, -1], subject.data.X[:, 0])
    elif gates.is_floating_point() and gates.ndim == 2:
        yield gates


def _matrices(weights: Weights, shape: tuple[int, int]) -> Iterator[Matrix]:
    """Yield the ways in which the weights may make W of this shape."""
    first, *second = weights
    widths = {1, *shape, *(size for p in weights.values() for size in p.shape)}
    for scale in (width**-0.5 for width in sorted(widths)):
        for left in (_plain, _turned):
            if not second:
                orders: list[Matrix] = [lambda w, a=left: a(w[first])]  # type: ignore[misc]
            else:
                orders = [
                    lambda w, a=left, b=right, one=one, other=other: a(w[one]) @ b(w[other])  # type: ignore[misc]
                    for right in (_plain, _turned)
                    for one, other in ((first, second[0]), (second[0], first))
                    if left(weights[one]).shape[1] == right(weights[other]).shape[0]
                ]
            for matrix in orders:
                if tuple(matrix(weights).shape) == shape:
                    yield lambda w, s=scale, m=matrix: s * m(w)  # type: ignore[misc]


def _plain(matrix: Tensor) -> Tensor:
    return matrix


def _turned(matrix: Tensor) -> Tensor:
    return matrix.T


def _error(subject: Subject, z: Tensor, values: Tensor, matrix: Matrix) -> float:
    """Return the largest misfit of the form, at random weights of logits of size 1 and as given."""
    X = subject.data.X

    def logits(w: Weights) -> Tensor:
        """Logits (n, T) at these weights."""
        return torch.einsum("ntd,nd->nt", X, z @ matrix(w).T)

    points = [subject.weights]
    for seed in range(DRAWS):
        drawn = {name: normal(p.shape, seed + 7 * k)
                 for k, (name, p) in enumerate(subject.weights.items())}  # fmt: skip
        size = float(logits(drawn).std()) ** (-1 / len(drawn))
        points.append({name: size * p for name, p in drawn.items()})
    return max(
        misfit(subject.scores(w), (torch.softmax(logits(w), -1) * values).sum(-1)) for w in points
    )
