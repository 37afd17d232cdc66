"""Two-layer ReLU networks of which the inner layer alone is trained."""

from __future__ import annotations

import math
from typing import Self, Unpack

import torch
from numpy.typing import ArrayLike
from torch import Tensor

from ..._support.doors import door
from ..._support.kinds import count, fraction, weights
from ..protocols import check_inputs
from ..relu import activation, gates_of
from ..weights import Start, Starting, as_tensor, copy_weights, draw_matrices, gated_dual_norms


class FixedOuterReLU(torch.nn.Module):
    r"""Two-layer ReLU network whose outer layer is fixed, homogeneous of degree 1.

    .. math:: f(x) = \sum_h a_h \rho(\langle w_h, x \rangle), \qquad
              \rho(z) = \max(z, \text{slope} \cdot z)

    Parameters
    ----------
    n_inputs, n_units : int
        D, the constant column counted, and H.
    slope : float
        Of the activation left of its kink, in [0, 1): a leaky ReLU.
    **start : Starting
        `init`: "kaiming" (default) or "orthogonal"; `init_scale`, `random_state`, `dtype`,
        `device`.

    Attributes
    ----------
    W : Parameter (H, D)
    outer : buffer (H,)
        ``1 / sqrt(H)`` and ``-1 / sqrt(H)`` in turn.
    slope : float

    References
    ----------
    S. Frei, G. Vardi, P. L. Bartlett, N. Srebro, W. Hu, "Implicit bias in leaky ReLU networks
    trained on high-dimensional data".

    Examples
    --------
    >>> network = ib.networks.FixedOuterReLU.from_weights([[2.0], [-1.0]], [1.0, -1.0], slope=0.5)
    >>> import torch
    >>> network(torch.tensor([[1.0], [-1.0]]).double()).tolist(), network.degree
    ([2.5, -2.0], 1)
    """

    degree = 1
    outer: Tensor

    @door(n_units=count(1), slope=fraction)
    def __init__(
        self, n_inputs: int, n_units: int, *, slope: float = 0.0, **start: Unpack[Starting]
    ) -> None:
        super().__init__()
        sizes, shape = {"n_inputs": n_inputs, "n_units": n_units}, (n_units, n_inputs)
        begin = Start.checked(sizes, ("kaiming", "orthogonal"), shape, **start)
        self.slope = float(slope)
        (self.W,) = begin.parameters(lambda rng: draw_matrices(begin.init, [shape], rng))
        signs = 1.0 - 2.0 * (torch.arange(n_units) % 2)
        self.register_buffer("outer", signs.to(self.W) / math.sqrt(n_units))

    @classmethod
    @door(W=weights("H D"), outer=weights("H"), slope=fraction)
    def from_weights(
        cls,
        W: ArrayLike | Tensor,
        outer: ArrayLike | Tensor,
        *,
        slope: float = 0.0,
        device: torch.device | str = "cpu",
    ) -> Self:
        """Build a network from W (H, D) and the outer weights (H,), in the dtype of W.

        Raises
        ------
        ValueError
            If the shapes do not fit, or `slope` is out of range.
        """
        first, second = as_tensor(W), as_tensor(outer)
        n_units, n_inputs = first.shape
        network = cls(n_inputs, n_units, slope=slope, dtype=first.dtype, device=device)
        copy_weights([network.W], [first])
        network.outer = second.to(network.W)
        return network

    def forward(self, X: Tensor, gates: object = None) -> Tensor:
        """Return the scores (n,) of X (n, D); `gates` are not used."""
        check_inputs(X, self.W, self.W.shape[1])
        return activation(X @ self.W.T, self.slope) @ self.outer

    def zeta(self) -> Tensor:
        """Return W (H, D)."""
        return self.W

    @door()
    def gates(self, X: ArrayLike | Tensor) -> Tensor:
        """Return what pre-activations (n, H) are multiplied by: booleans, or 1 and the slope."""
        inputs = torch.as_tensor(X).to(self.W)
        check_inputs(inputs, self.W, self.W.shape[1])
        return gates_of(inputs @ self.W.detach().T, self.slope)

    def unit_norms(self) -> Tensor:
        """Return ``||W||`` (1,), the norm that is least."""
        return self.W.square().sum().sqrt().view(1)

    @door()
    def dual_norms(self, coefficients: Tensor, X: Tensor, gates: object = None) -> Tensor:
        """Return ``||sum_n coefficients_n grad f(x_n)||`` (1,), on present gates."""
        own = gates_of(X @ self.W.T, self.slope).to(X)
        each = gated_dual_norms(own, coefficients, X)
        return (self.outer * each).square().sum().sqrt().view(1)
