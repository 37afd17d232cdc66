"""Networks with several units behind each gate or set of contexts, as functions of these."""

from __future__ import annotations

import torch
from numpy.typing import ArrayLike
from torch import Tensor

from .._support.doors import door
from .gated.frelu import FReLU
from .gated.gln import GLN
from .protocols import check_gates, check_inputs
from .weights import as_tensor


class CopiedUnits(torch.nn.Module):
    r"""Network with several units behind each gate, or in each unit's contexts.

    With K outputs a lone unit has coefficients :math:`a_h w_h^\top` of rank one behind its gate,
    or over all of its contexts, then (K, C D); enough copies have any matrix :math:`Z_h` there, and
    the shortest weights of two layers cost :math:`\|w\|^2 / 2 = \sum_h \|Z_h\|_*`, the sum of
    nuclear norms.

    Parameters
    ----------
    network : FReLU or GLN
        Of H times `copies` units, those of a gate beside each other, and K >= 2 outputs.
    copies : int
        Units of each gate, or of the same contexts; K of them have any matrix.

    Raises
    ------
    TypeError
        If the network is neither, or `copies` no whole number.
    ValueError
        If the units are not so many for each gate, or there is one output.

    Examples
    --------
    >>> network = ib.networks.CopiedUnits(ib.FReLU(4, 6, n_outputs=3), copies=3)
    >>> network.zeta().shape, network.unit_norms().shape, network.degree
    (torch.Size([2, 3, 4]), torch.Size([2]), 2)
    """

    @door()
    def __init__(self, network: FReLU | GLN, copies: int) -> None:
        super().__init__()
        if not isinstance(network, FReLU | GLN):
            raise TypeError(f"`network` must be an FReLU or a GLN, got {type(network).__name__}")
        if copies < 1 or network.n_units % copies or network.n_outputs < 2:
            raise ValueError(
                f"`network` must have two outputs at least, and `copies` units for each gate: got "
                f"{network.n_outputs} outputs, and {network.n_units} units for `copies` of {copies}"
            )
        self.network, self.copies = network, copies

    @property
    def degree(self) -> int:
        """Degree of homogeneity in all weights: the number of layers."""
        return self.network.degree

    @door()
    def prepare(self, gates: ArrayLike | Tensor) -> Tensor:
        """Check gates, or contexts, (n, H) once and place them on the device of the weights.

        Raises
        ------
        TypeError, ValueError
            If their shape is wrong, or the network does not take them.
        """
        given = as_tensor(gates)
        self._check(given, len(given) if given.ndim else 0)
        return self.network.prepare(given.repeat_interleave(self.copies, dim=1))[:, :: self.copies]

    def _check(self, gates: Tensor, n: int) -> None:
        name = "contexts" if isinstance(self.network, GLN) else "gates"
        check_gates(name, gates, (n, self.network.n_units // self.copies))

    def forward(self, X: Tensor, gates: Tensor) -> Tensor:
        """Return the scores (n, K) of X (n, D) under gates, or contexts, (n, H)."""
        check_inputs(X, self.network.w1, self.network.n_inputs)
        self._check(gates, len(X))
        scores: Tensor = self.network(X, gates.repeat_interleave(self.copies, dim=1))
        return scores

    def zeta(self) -> Tensor:
        """Return the coefficients (H, K, D) of gates, (H, K, C, D) of contexts: sums over units."""
        zeta = self.network.zeta()
        return zeta.view(-1, self.copies, *zeta.shape[1:]).sum(1)

    def unit_norms(self) -> Tensor:
        """Return the nuclear norms (H,) of the matrices (K, D), or (K, C D) of contexts."""
        values: Tensor = torch.linalg.svdvals(self.zeta().flatten(2))
        return values.sum(-1)

    def imbalance(self) -> Tensor:
        """Return ``||incoming||^2 - ||outgoing||^2`` of all hidden units."""
        return self.network.imbalance()
