"""Weights of a ReLU network as arrays."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..._support.doors import door, parameters
from ..._support.kinds import fraction
from ..._support.solve import require_columns

Array = NDArray[np.float64]
Indices = NDArray[np.int64]


@parameters(slope=fraction)
@dataclass(frozen=True, eq=False, repr=False)
class ReLUWeights:
    r"""Weights of :math:`f(x) = W_L \rho(\cdots \rho(W_1 x + b_1) \cdots) + b_L`, rho a ReLU.

    With a slope it is a leaky one: :math:`\rho(z) = \max(z, 0) + \alpha \min(z, 0)`.

    Attributes
    ----------
    matrices : tuple of arrays
        W_1 (width_1, D), ..., W_L (K, width_{L-1}), float64 and read-only; L is at least 2.
    biases : tuple of arrays
        b_1 (width_1,), ..., b_L (K,), zeros where the network has none.
    slope : float
        alpha, in [0, 1).

    Examples
    --------
    >>> weights = ib.equivalence.ReLUWeights.from_arrays([np.eye(2), [[1.0, -1.0]]])
    >>> weights.scores([[3.0, 1.0], [-1.0, 2.0]]).tolist()
    [[2.0], [-2.0]]
    """

    matrices: tuple[Array, ...]
    biases: tuple[Array, ...]
    slope: float = 0.0

    def __post_init__(self) -> None:
        for name in ("matrices", "biases"):
            if not all(isinstance(array, np.ndarray) for array in getattr(self, name)):
                raise TypeError(f"`{name}` must hold arrays: see `ReLUWeights.from_arrays`")
        self._require_chain()
        for array in (*self.matrices, *self.biases):
            array.flags.writeable = False

    @classmethod
    @door(slope=fraction)
    def from_arrays(
        cls,
        matrices: Iterable[ArrayLike],
        biases: Iterable[ArrayLike] | None = None,
        *,
        slope: float = 0.0,
    ) -> ReLUWeights:
        """Check and copy weights; without `biases` they are zeros.

        Raises
        ------
        ValueError
            If there is no hidden layer, shapes do not fit each other, or an entry is not finite.
        """
        Ws = tuple(np.array(W, dtype=np.float64) for W in matrices)
        zeros = [np.zeros(len(W)) for W in Ws if W.ndim]
        given = zeros if biases is None else biases
        return cls(Ws, tuple(np.array(b, dtype=np.float64) for b in given), slope)

    def _require_chain(self) -> None:
        Ws, bs = self.matrices, self.biases
        if len(Ws) < 2 or any(W.ndim != 2 for W in Ws):
            raise ValueError(
                "`matrices` must be two matrices or more, W_1 (H, D) to W_L (K, H), got shapes "
                f"{[W.shape for W in Ws]}: a vector of output weights is a matrix (1, H)"
            )
        if any(above.shape[1] != len(below) for below, above in pairwise(Ws)):
            raise ValueError(
                "each of `matrices` must have as many columns as the one before has rows, got "
                f"shapes {[W.shape for W in Ws]}"
            )
        shapes = [(len(W),) for W in Ws]
        if [b.shape for b in bs] != shapes:
            raise ValueError(
                f"`biases` must have shapes {shapes}, one entry a row of "
                f"`matrices`, got {[b.shape for b in bs]}"
            )
        if not all(np.isfinite(array).all() for array in (*Ws, *bs)):
            raise ValueError("`matrices` and `biases` must be finite, got NaN or infinite ones")

    @property
    def n_inputs(self) -> int:
        """D, the number of inputs."""
        return int(self.matrices[0].shape[1])

    @property
    def widths(self) -> tuple[int, ...]:
        """Units of the hidden layers, first to last."""
        return tuple(len(W) for W in self.matrices[:-1])

    @property
    def has_biases(self) -> bool:
        """True where a bias differs from 0."""
        return any(bool(b.any()) for b in self.biases)

    @property
    def norm(self) -> float:
        """Euclidean norm of all weights and biases."""
        return float(np.sqrt(sum((array**2).sum() for array in (*self.matrices, *self.biases))))

    @door()
    def rows(self, layer: int) -> Array:
        """Return [W_l, b_l] (width, fan-in + 1), weights and bias, of a layer counted from 0.

        Raises
        ------
        ValueError
            If there are fewer layers.
        """
        if layer >= len(self.matrices):
            raise ValueError(f"`layer` must be below the {len(self.matrices)} layers, got {layer}")
        return np.column_stack([self.matrices[layer], self.biases[layer]])

    @door()
    def pre_activations(self, X: ArrayLike) -> list[Array]:
        """Return pre-activations (n, width_l) of every layer at X (n, D); the last are scores."""
        hidden = np.asarray(X, dtype=np.float64)
        require_columns("X", hidden, self.n_inputs)
        found = []
        for W, b in zip(self.matrices, self.biases, strict=True):
            found.append(hidden @ W.T + b)
            hidden = leaky(found[-1], self.slope)
        return found

    @door()
    def scores(self, X: ArrayLike) -> Array:
        """Return the outputs (n, K) at X (n, D)."""
        return self.pre_activations(X)[-1]

    def __repr__(self) -> str:
        sizes = "-".join(str(n) for n in (self.n_inputs, *self.widths, len(self.matrices[-1])))
        leaky = f", slope {self.slope:g}" if self.slope else ""
        return f"ReLUWeights({sizes}, {'with' if self.has_biases else 'no'} biases{leaky})"


def leaky(z: Array, slope: float) -> Array:
    """Return max(z, 0), with a slope below 0."""
    rectified: Array = np.maximum(z, 0.0)
    return rectified + slope * np.minimum(z, 0.0) if slope else rectified
