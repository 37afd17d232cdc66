"""Networks of units: linear in the weights of each unit, linear layers above."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice, product

import torch
from torch import Tensor

from .subject import SAME, SAMPLES, Subject, Weights, misfit

# Assignments of parameters to layers that are tried.
_MOST = 64


@dataclass(frozen=True)
class Chain:
    """Parameters as matrices W_1 (H_1, H_0), W_2 (H_2, H_1), ..., W_k (1, H_(k-1)).

    Attributes
    ----------
    names : tuple of str
        First layer first.
    transposed : tuple of bool
        Whether the parameter holds the transpose.
    n_inputs : int
        H_0.
    """

    names: tuple[str, ...]
    transposed: tuple[bool, ...]
    n_inputs: int

    def matrices(self, w: Weights) -> list[Tensor]:
        """Return the matrices of given weights."""
        return [matrix_of(w[p], turn) for p, turn in zip(self.names, self.transposed, strict=True)]

    def product(self, w: Weights) -> Tensor:
        """Return W_k ... W_1 as a vector (H_0,)."""
        first, *others = self.matrices(w)
        for matrix in others:
            first = matrix @ first
        return first.view(-1)

    def placed(self, matrices: Sequence[Tensor], like: Weights) -> dict[str, Tensor]:
        """Return matrices as parameters in the shapes of `like`."""
        return {
            name: (matrix.T if turn else matrix).reshape(like[name].shape)
            for name, turn, matrix in zip(self.names, self.transposed, matrices, strict=True)
        }


def matrix_of(p: Tensor, transposed: bool) -> Tensor:
    """Return a parameter as a matrix (out, in); a vector is one row, a column if transposed."""
    matrix = p[None] if p.ndim == 1 else p
    return matrix.T if transposed else matrix


@dataclass(frozen=True)
class UnitsForm:
    r"""Scores of units with weights :math:`u_h`, below linear layers.

    .. math:: f(x) = \sum_h v_h \langle u_h, \varphi_h(x) \rangle,
              \qquad v = V_k \cdots V_1

    Attributes
    ----------
    parts : mapping of str to int
        Parameters that hold the units' weights, with the axis that counts units.
    chain : Chain
        V_1, ..., V_k; `n_inputs` is the number H of units.
    is_shared : bool
        Whether all units have the same features, as those of a product of matrices.
    error : float
        Largest relative misfit of this form at random weights, on the samples.
    """

    parts: Mapping[str, int]
    chain: Chain
    is_shared: bool
    error: float

    @property
    def n_units(self) -> int:
        """Number H of units."""
        return self.chain.n_inputs

    @property
    def n_layers(self) -> int:
        """Number of layers, that of the units included: the degree of the scores."""
        return 1 + len(self.chain.names)

    def units(self, w: Weights) -> Tensor:
        """Return the weights (H, P) of the units."""
        return torch.cat(
            [
                w[name].movedim(axis, 0).reshape(self.n_units, -1)
                for name, axis in self.parts.items()
            ],
            dim=1,
        )

    def zeta(self, w: Weights) -> Tensor:
        """Return ``v_h u_h`` (H, P)."""
        return self.chain.product(w)[:, None] * self.units(w)

    def scores(self, w: Weights, features: Tensor) -> Tensor:
        """Return the scores (n,) on samples with features (n, H, P)."""
        return torch.einsum("hp,nhp->n", self.zeta(w), features)

    def features(self, subject: Subject) -> Tensor:
        """Return ``phi_h(x_n)`` (n, H, P) of the subject's samples, from gradients."""
        w = {**subject.weights, **self._positive(subject.weights)}
        rows = subject.jacobian(w, tuple(self.parts))
        n = len(subject.data.X)
        gradients = torch.cat(
            [
                rows[name].movedim(axis + 1, 1).reshape(n, self.n_units, -1)
                for name, axis in self.parts.items()
            ],
            dim=2,
        )
        return gradients / self.chain.product(w)[None, :, None]

    def _positive(self, w: Weights) -> dict[str, Tensor]:
        # Upper layers with a product that is nowhere near 0.
        rng = torch.Generator().manual_seed(0)
        names = self.chain.names
        return {p: 0.5 + torch.rand(w[p].shape, generator=rng, dtype=torch.float64) for p in names}


def find_units(subject: Subject) -> UnitsForm | None:
    """Look for units below linear layers; None where scores have no such form.

    Parameters are assigned to units and layers by their shapes, in every way that fits, and the
    form is checked at random weights.

    Parameters
    ----------
    subject : Subject
        Of scores that are polynomials in the weights.

    Returns
    -------
    UnitsForm or None
    """
    few = subject.few(SAMPLES)
    for chain, parts in islice(_assignments(few.weights), _MOST):
        form = UnitsForm(parts, chain, is_shared=False, error=0.0)
        features = form.features(few)
        error = few.error(partial(form.scores, features=features))
        if error <= SAME:
            first = features[:, :1].expand_as(features)
            shared = misfit(first.flatten(), features.flatten()) <= SAME
            return UnitsForm(parts, chain, shared, error)
    return None


def _assignments(w: Weights) -> Iterator[tuple[Chain, dict[str, int]]]:
    """Every way in which some parameters chain up to one score and the rest counts units."""
    for chain in chains(w):
        rest = [name for name in w if name not in chain.names]
        axes = [
            [axis for axis, size in enumerate(w[name].shape) if size == chain.n_inputs]
            for name in rest
        ]
        for chosen in product(*axes):
            if rest:
                yield chain, dict(zip(rest, chosen, strict=True))


def chains(w: Weights, width: int = 1, above: Chain | None = None) -> Iterator[Chain]:
    """Yield every chain of matrices among the weights that ends in one score.

    Parameters
    ----------
    w : mapping of str to tensor
    width : int
        Outputs that the next matrix below must have.
    above : Chain, optional
        The matrices above it.
    """
    used = () if above is None else above.names
    for name in reversed(list(w)):
        p = w[name]
        if name in used or p.ndim not in (1, 2):
            continue
        for turn in (False, True)[: p.ndim]:  # a vector is a row
            matrix = matrix_of(p, turn)
            if len(matrix) != width:
                continue
            chain = Chain(
                (name, *used),
                (turn, *(() if above is None else above.transposed)),
                matrix.shape[1],
            )
            yield chain
            yield from chains(w, chain.n_inputs, chain)
