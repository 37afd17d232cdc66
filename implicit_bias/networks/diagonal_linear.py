"""Diagonal linear networks: every feature has a weight in each of two layers."""

from typing import Self, Unpack

import torch
from numpy.typing import ArrayLike
from torch import Tensor

from .._support.doors import door
from .._support.kinds import weights
from .drawn import balanced_diagonal
from .protocols import check_inputs
from .weights import Start, Starting, as_tensor, copy_weights


class DiagonalLinear(torch.nn.Module):
    r"""Network ``f(x) = sum_j u_j v_j x_j`` on features x, homogeneous of degree 2.

    Parameters
    ----------
    n_features : int
        m; the features may be inputs, Fourier features, or the gates of constant experts.
    **start : Starting
        `init`: "balanced" (default) is ``u = sqrt(2)``, ``v = 0`` in every entry, the network that
        is 0 at the start and of ``c = |u^2 - v^2| = 2 init_scale^2``; "kaiming" draws both layers
        from a Gaussian; `init_scale`, `random_state`, `dtype`, `device`.

    Attributes
    ----------
    u, v : Parameter (m,)

    Raises
    ------
    ValueError
        If a size is not positive, `init` is unknown or `init_scale` is not positive and finite.

    References
    ----------
    Limit of training on the squared loss, from any start: `limits.solve_diagonal` (B. Woodworth et
    al., "Kernel and rich regimes in overparametrized models").

    Examples
    --------
    >>> network = ib.networks.DiagonalLinear.from_weights([1.0, 2.0], [3.0, -1.0])
    >>> network.zeta().tolist(), network.imbalance().tolist()
    ([3.0, -2.0], [-8.0, 3.0])
    """

    degree = 2

    @door()
    def __init__(self, n_features: int, **start: Unpack[Starting]) -> None:
        super().__init__()
        sizes, shape = {"n_features": n_features}, (2, n_features)
        begin = Start.checked(sizes, ("balanced", "kaiming"), shape, **start)
        self.n_features = n_features
        self.u, self.v = begin.parameters(lambda rng: _draw(begin.init, n_features, rng))

    @classmethod
    @door(u=weights("m"), v=weights("m"))
    def from_weights(
        cls, u: ArrayLike | Tensor, v: ArrayLike | Tensor, *, device: torch.device | str = "cpu"
    ) -> Self:
        """Build a network from u (m,) and v (m,), in the dtype of u.

        Raises
        ------
        ValueError
            If they are not one axis each, of one length.
        """
        first, second = as_tensor(u), as_tensor(v)
        network = cls(len(first), dtype=first.dtype, device=device)
        copy_weights([network.u, network.v], [first, second.to(first.dtype)])
        return network

    def forward(self, X: Tensor, gates: object = None) -> Tensor:
        """Return the scores (n,) of features X (n, m); `gates` are not used."""
        check_inputs(X, self.u, self.n_features)
        return X @ self.zeta()

    def zeta(self) -> Tensor:
        """Return the coefficients ``u v`` (m,)."""
        return self.u * self.v

    def unit_norms(self) -> Tensor:
        """Return ``|u v|`` (m,): every feature is a unit."""
        return self.zeta().abs()

    @door()
    def dual_norms(self, coefficients: Tensor, X: Tensor, gates: object = None) -> Tensor:
        """Return ``|sum_n coefficients_n x_nj|`` (m,)."""
        return (coefficients @ X).abs()

    def imbalance(self) -> Tensor:
        """Return ``u^2 - v^2`` (m,), which gradient flow conserves."""
        return self.u.square() - self.v.square()


def _draw(init: str, n_features: int, rng: torch.Generator) -> list[Tensor]:
    if init == "kaiming":
        both = torch.randn(2, n_features, generator=rng, dtype=torch.float64)
        return [both[0], both[1]]
    return [torch.from_numpy(weights) for weights in balanced_diagonal(n_features)]
