"""Networks of one hidden layer whose score is the mean of its units, gated or rectified."""

from typing import Self

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from .._support.doors import door
from .._support.kinds import weights
from .drawn import averaged_units
from .protocols import check_gates, check_inputs, check_start
from .weights import as_tensor, copy_weights, gated_dual_norms


class _UnitMean(torch.nn.Module):
    """Weights (K, D) of units whose mean is the output; the second layer 1/K is never trained."""

    w: torch.nn.Parameter

    @door()
    def __init__(
        self,
        n_inputs: int,
        n_units: int,
        *,
        init_scale: float = 1.0,
        random_state: int | np.random.Generator = 0,
        dtype: torch.dtype = torch.float64,
        device: torch.device | str = "cpu",
    ) -> None:
        super().__init__()
        sizes = {"n_inputs": n_inputs, "n_units": n_units}
        check_start(sizes, init_scale, (n_units, n_inputs), device=device, zero=True)
        weights = torch.from_numpy(averaged_units(n_units, n_inputs, init_scale, random_state))
        self.w = torch.nn.Parameter(weights.to(device=device, dtype=dtype))

    @classmethod
    @door(w=weights("K D"))
    def from_weights(cls, w: ArrayLike | Tensor, *, device: torch.device | str = "cpu") -> Self:
        """Build a network from weights (K, D), which are copied; the dtype is theirs.

        Raises
        ------
        ValueError
            If the shape is not (K, D).
        """
        units = as_tensor(w)
        n_units, n_inputs = units.shape
        network = cls(n_inputs, n_units, dtype=units.dtype, device=device)
        copy_weights([network.w], [units])
        return network

    @property
    def n_units(self) -> int:
        """K."""
        return self.w.shape[0]

    @property
    def degree(self) -> int:
        """Degree of homogeneity in the weights: 1, since the second layer is fixed."""
        return 1

    def zeta(self) -> Tensor:
        """Return the effective predictors ``w / K`` (K, D)."""
        return self.w / self.n_units

    def unit_norms(self) -> Tensor:
        """Return the norms ``||w[k]|| / K`` (K,)."""
        norms: Tensor = torch.linalg.vector_norm(self.zeta(), dim=1)
        return norms

    def _projections(self, X: Tensor) -> Tensor:
        """Return `<w_k, x_n>` (K, n), in half the time of `X @ w.T`."""
        check_inputs(X, self.w, self.w.shape[1])
        return self.w @ X.T


class GDLN(_UnitMean):
    r"""Gated deep linear network of one hidden layer.

    .. math:: f(x) = \frac1K \sum_k g_k(x) \langle w_k, x \rangle

    Parameters
    ----------
    n_inputs, n_units : int
        D and K.
    init_scale : float
        The weights are Gaussian with standard deviation ``init_scale / sqrt(D)``.
    random_state : int or numpy Generator
        One seed gives the same weights in every dtype, on every device, and in `ReLUMean`.
    dtype : torch.dtype
    device : torch.device or str
        Dtype and device of the weights.

    Attributes
    ----------
    w : Parameter (K, D)

    Raises
    ------
    ValueError
        If a size is not positive or `init_scale` is negative or not finite.

    References
    ----------
    Notes on gated deep linear networks, equation (3).

    Examples
    --------
    >>> import torch
    >>> network = ib.networks.GDLN.from_weights([[1.0, 0.0], [0.0, 1.0]])
    >>> network(torch.tensor([[3.0, 5.0]]).double(), torch.tensor([[1.0, 0.0]]).double()).tolist()
    [1.5]
    """

    @door(gates="n>=0 .n_units: one row a sample, one column a unit")
    def prepare(self, gates: ArrayLike | Tensor) -> Tensor:
        """Check gates (n, K) once and place them as the weights' dtype on their device.

        Raises
        ------
        ValueError
            If they do not have shape (n, K) or are not finite.
        """
        # Unit by unit in memory, as projections are.
        return as_tensor(gates).to(self.w).T.contiguous().T

    def forward(self, X: Tensor, gates: Tensor) -> Tensor:
        """Return the scores (n,) of X (n, D) under gates (n, K) as `prepare` returns them."""
        check_inputs(X, self.w, self.w.shape[1])
        reason = "one row a sample, one column a unit"
        check_gates("gates", gates, (len(X), self.n_units), reason)
        scores: Tensor = (self._projections(X) * gates.T).mean(dim=0)
        return scores

    @door()
    def dual_norms(self, coefficients: Tensor, X: Tensor, gates: Tensor) -> Tensor:
        """Return ``||v_k||`` (K,), ``v_k = sum_n coefficients_n g_k(x_n) x_n``."""
        return gated_dual_norms(gates, coefficients, X)


class ReLUMean(_UnitMean):
    r"""Mean of rectified units, without biases.

    .. math:: f(x) = \frac1K \sum_k \max(\langle w_k, x \rangle, 0)

    Its function is that of a `GDLN` with the same weights and the gates that `open_gates` returns.

    Parameters
    ----------
    n_inputs, n_units : int
        D and K.
    init_scale : float
        The weights are Gaussian with standard deviation ``init_scale / sqrt(D)``.
    random_state : int or numpy Generator
        One seed gives the same weights in every dtype, on every device, and in `GDLN`.
    dtype : torch.dtype
    device : torch.device or str
        Dtype and device of the weights.

    Attributes
    ----------
    w : Parameter (K, D)

    Raises
    ------
    ValueError
        If a size is not positive or `init_scale` is negative or not finite.

    References
    ----------
    Notes on gated deep linear networks, equations (1) and (2).

    Examples
    --------
    >>> import torch
    >>> network = ib.networks.ReLUMean.from_weights([[1.0, 0.0], [0.0, 1.0]])
    >>> network(torch.tensor([[3.0, -5.0]]).double()).tolist()
    [1.5]
    """

    def forward(self, X: Tensor, gates: Tensor | None = None) -> Tensor:
        """Return the scores (n,) of X (n, D); `gates` must be None."""
        if gates is not None:
            raise ValueError("`gates` must be None: this network opens its own, see `open_gates`")
        scores: Tensor = torch.relu(self._projections(X)).mean(dim=0)
        return scores

    @door()
    def open_gates(self, X: Tensor) -> Tensor:
        """Return the gates ``<w_k, x_n> >= 0`` (n, K) as booleans."""
        with torch.no_grad():
            return (self._projections(X) >= 0).T

    def frozen(self) -> GDLN:
        """Return a gated network with a copy of these weights."""
        return GDLN.from_weights(self.w.detach(), device=self.w.device)
