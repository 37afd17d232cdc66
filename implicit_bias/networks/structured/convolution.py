"""Full-width linear convolutional networks, over circles and any finite group."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache, reduce
from typing import Any, Self, Unpack

import torch
from numpy.typing import ArrayLike
from torch import Tensor

from ..._support.doors import door
from ..._support.kinds import anything, count, weights
from ...data.groups import Group
from ..protocols import check_inputs
from ..weights import Start, Starting, as_tensor, copy_weights

Places = tuple[int, ...] | tuple[tuple[int, ...], ...]


class LinearConvolution(torch.nn.Module):
    r"""Linear convolutions with kernels as wide as the inputs, below a linear layer.

        h_l(g) = sum_h h_(l-1)(h) w_l(g^-1 h) / sqrt(D),  l < L,  h_0 = x;   f(x) = <w_L, h_(L-1)>

    Homogeneous of degree L. On a circle ``g^-1 h`` is the place h - g, and the Fourier transform of
    the predictor end to end is the product of those of the kernels (unitary ones: the factor
    ``1 / sqrt(D)`` of every convolution).

    Parameters
    ----------
    n_inputs : int
        D, without a constant column, which has no place in a group.
    depth : int
        L, the layers of weights: by default 2.
    group : None, sequence of int, or (D, D) ints
        One circle; circles whose product the inputs are, in C order, such as (8, 8) of images; or
        the table of products of any finite group.
    **start : Starting
        `init`: "kaiming" (default), Gaussian of variance 1 / D, or "balanced", whose kernels have
        Fourier coefficients of one size, of different signs; `init_scale`, `random_state`, `dtype`,
        `device`. "balanced" is of products of circles.

    Attributes
    ----------
    kernels : ParameterList
        w_1, ..., w_L (D,).
    group : tuple
        Sizes of circles, or rows of the table of products.

    Raises
    ------
    ValueError
        If a size is not positive, or the group has another number of elements.

    References
    ----------
    S. Gunasekar, J. D. Lee, D. Soudry, N. Srebro, "Implicit bias of gradient descent on linear
    convolutional networks"; of groups H. Lawrence, K. Georgiev, A. Dienes, B. T. Kiani, "Implicit
    bias of linear equivariant networks".

    Examples
    --------
    >>> network = ib.networks.LinearConvolution.from_weights([1.0, 0.0], [3.0, -1.0])
    >>> network.zeta().mul(2**0.5).tolist(), network.degree, network.unit_norms().round().tolist()
    ([3.0, -1.0], 2, [1.0, 2.0])
    """

    @door(depth=count(1), group=anything)
    def __init__(
        self,
        n_inputs: int,
        depth: int = 2,
        *,
        group: Sequence[int] | ArrayLike | None = None,
        **start: Unpack[Starting],
    ) -> None:
        super().__init__()
        begin = Start.checked(
            {"n_inputs": n_inputs}, ("kaiming", "balanced"), (depth, n_inputs), **start
        )
        self.n_inputs = n_inputs
        self.group: Places = _plain(Group.of(group, n_inputs).stored.tolist())
        drawn = begin.parameters(lambda rng: self._draw(begin.init, depth, rng))
        self.kernels = torch.nn.ParameterList(drawn)

    @classmethod
    @door(kernels=weights("D"), group=anything)
    def from_weights(
        cls,
        *kernels: ArrayLike | Tensor,
        group: Sequence[int] | ArrayLike | None = None,
        device: torch.device | str = "cpu",
    ) -> Self:
        """Build a network from w_1, ..., w_L (D,), in the dtype of w_1.

        Raises
        ------
        ValueError
            If there is none, or they are not of one length: every kernel is as wide as the inputs.
        """
        given = [as_tensor(one) for one in kernels]
        if not given or len({tuple(one.shape) for one in given}) > 1:
            raise ValueError(
                "`kernels` must be vectors (D,) as wide as the inputs, got "
                f"{[tuple(one.shape) for one in given]}: of narrower kernels no theorem here names "
                "the limit; `ib.diagnose` bounds it at two layers"
            )
        first = given[0]
        network = cls(len(first), len(given), group=group, dtype=first.dtype, device=device)
        copy_weights(network.kernels, [one.to(first.dtype) for one in given])
        return network

    @property
    def degree(self) -> int:
        """L, the layers of weights."""
        return len(self.kernels)

    def forward(self, X: Tensor, gates: object = None) -> Tensor:
        """Return the scores (n,) of X (n, D); `gates` are not used."""
        check_inputs(X, self.kernels[0], self.n_inputs)
        return X @ self.zeta()

    def zeta(self) -> Tensor:
        """Return the predictor end to end (D,), convolved from the top."""
        index, scale = self._index(), math.sqrt(self.n_inputs)
        *below, top = self.kernels
        found: Tensor = reduce(lambda above, w: above @ w[index] / scale, reversed(below), top)
        return found

    def unit_norms(self) -> Tensor:
        """Return what its frequencies (H,) cost alone, a conjugate pair as one.

        Sizes times 2^(L/2) of pairs: with two layers their sum is the l1 norm of the unitary
        Fourier transform. Of a group that is known by its table one unit (1,), the sum of singular
        values, and with one layer the length (1,).
        """
        return self._sizes(self.zeta())

    @door()
    def dual_norms(self, coefficients: Tensor, X: Tensor, gates: object = None) -> Tensor:
        """Return the sizes (H,) of the frequencies of ``sum_n coefficients_n x_n``.

        Over ``2^(L/2 - 1)`` of pairs. Of a table of products the largest singular value.
        """
        below = coefficients @ X
        if self.degree == 1:
            return (below @ below).sqrt().view(1)
        if not self._group.sizes:
            return self._values(below)[:1]
        kept, number = self._pairs(below)
        sizes: Tensor = self._frequencies(below).abs().flatten()[kept]
        return torch.div(sizes, number ** (self.degree / 2 - 1))

    def imbalance(self) -> Tensor:
        """Return differences ``|w_(l+1)^|^2 - |w_l^|^2`` of kernels' frequencies, flat.

        Gradient flow conserves them. Of a group that is known by its table the squared lengths'.
        """
        squares = [self._frequencies(w).abs().square() if self._group.sizes else w @ w
                   for w in self.kernels]  # fmt: skip
        rows = torch.stack([one.reshape(-1) for one in squares])
        return (rows[1:] - rows[:-1]).flatten()

    def _sizes(self, beta: Tensor) -> Tensor:
        if self.degree == 1:
            return (beta @ beta).sqrt().view(1)
        if not self._group.sizes:
            return self._values(beta).sum().view(1)
        kept, number = self._pairs(beta)
        sizes: Tensor = self._frequencies(beta).abs().flatten()[kept]
        return torch.mul(sizes, number ** (self.degree / 2))

    def _pairs(self, like: Tensor) -> tuple[Tensor, Tensor]:
        kept, number = self._group.frequencies
        return torch.as_tensor(kept, device=like.device), torch.as_tensor(number).to(like)

    def _values(self, beta: Tensor) -> Tensor:
        """Return the singular values (D,) of a predictor as a matrix."""
        found: Tensor = torch.linalg.svdvals(beta[self._index()])
        return found / math.sqrt(self.n_inputs)

    def _frequencies(self, w: Tensor) -> Tensor:
        """Return the unitary Fourier transform, complex."""
        found: Tensor = torch.fft.fftn(w.view(self._group.sizes), norm="ortho")
        return found

    @property
    def _group(self) -> Group:
        return _known(self.group, self.n_inputs)

    def _index(self) -> Tensor:
        return torch.as_tensor(self._group.quotients, device=self.kernels[0].device)

    def _draw(self, init: str, depth: int, rng: torch.Generator) -> list[Tensor]:
        drawn = torch.randn(depth, self.n_inputs, generator=rng, dtype=torch.float64)
        if init == "balanced":
            if not self._group.sizes:
                raise ValueError("`init` 'balanced' needs a product of circles: take 'kaiming'")
            spectra = [self._frequencies(w) for w in drawn]
            size = spectra[0].abs()
            drawn = torch.stack([
                torch.fft.ifftn(one / one.abs() * size, norm="ortho").real.flatten()
                for one in spectra
            ])  # fmt: skip
        return list(drawn / math.sqrt(self.n_inputs))


def _plain(stored: list[Any]) -> Places:
    """Return sizes, or rows of a table, as tuples, by which a group is found again."""
    return tuple(tuple(one) if isinstance(one, list) else one for one in stored)


@lru_cache(maxsize=8)
def _known(group: Places, n_inputs: int) -> Group:
    return Group.of(group, n_inputs)
