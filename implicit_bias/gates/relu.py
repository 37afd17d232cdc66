"""Gates of ReLU units with given weights."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import (  # type: ignore[import-untyped,unused-ignore]
    check_array,
    validate_data,
)

from .._support.doors import check_parameters
from .._support.kinds import fraction
from .._support.solve import require_columns, to_numpy, undisguised
from ..data.arrays import Floats
from .gating import MADE_FOR, Gating, with_slope


class ReLUGates(Gating):
    """Gates of ReLU units with given weights: `g_h(x) = [<weights[h], x> >= 0]`.

    It can be used wherever fitted gates can; there is nothing to fit.

    Parameters
    ----------
    weights : (H, D) array
        First-layer weights, finite; checked when used.
    slope : float
        Gate of a closed unit, in [0, 1): above 0 that of a leaky ReLU.

    Examples
    --------
    >>> ib.gates.ReLUGates(np.array([[1.0, -1.0]])).transform([[2.0, 1.0], [1.0, 2.0]]).tolist()
    [[1], [0]]
    >>> leaky = ib.gates.ReLUGates(np.array([[1.0, -1.0]]), slope=0.1)
    >>> leaky.transform([[2.0, 1.0], [1.0, 2.0]]).tolist()
    [[1.0], [0.1]]
    """

    saved = ("weights", "slope")
    absent: ClassVar = MappingProxyType({"slope": 0.0})

    weights: Floats

    def __init__(self, weights: ArrayLike, *, slope: float = 0.0) -> None:
        self.weights = weights  # type: ignore[assignment]  # as given: `clone` insists on it
        self.slope = slope

    @classmethod
    def from_network(cls, network: Any) -> Self:
        """Return the present gates of the first layer of a network, which is copied.

        Parameters
        ----------
        network : Module
            A fully connected ReLU network without biases, the user's own too. Of networks of other
            kinds those of their first layer `w1` (H, D), and of their `slope` if they have one.

        Raises
        ------
        TypeError, ValueError
            If it has biases, or is neither a ReLU network nor one with `w1`.
        """
        from ..networks.recognition.relu import read_relu

        try:
            layers = read_relu(network)
        except (TypeError, ValueError):
            first = getattr(network, "w1", None)
            if not hasattr(first, "shape"):
                raise
            slope = getattr(network, "slope", 0.0)
            return cls(np.array(to_numpy(first), dtype=np.float64), slope=slope)
        return cls(layers.without_biases()[0], slope=layers.slope)

    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Check `X` (n, D), keep the names of its columns, and return these gates."""
        check_parameters(self, slope=fraction)
        for name in ("n_features_in_", "feature_names_in_"):
            self.__dict__.pop(name, None)
        self.transform(X)
        validate_data(self, X, skip_check_array=True)
        return self

    def transform(self, X: ArrayLike) -> NDArray[Any]:
        """Return the gates of the rows of `X` (n, D): shape (n, H), int64 in {0, 1}.

        With a slope they are float64, in {slope, 1}.

        Raises
        ------
        ValueError
            If `X` is not finite or not as wide as the weights, these are no finite matrix, or the
            slope is out of range.
        """
        fraction("slope", self.slope)
        weights = self._matrix()
        X = undisguised("X", X)
        if hasattr(self, "n_features_in_"):
            inputs: Floats = validate_data(self, X, dtype=np.float64, reset=False)
        else:
            inputs = check_array(X, dtype=np.float64)
        require_columns("X", inputs, weights.shape[1], MADE_FOR)
        return with_slope((inputs @ weights.T >= 0).astype(np.int64), self.slope)

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        return tags

    @property
    def _n_features_out(self) -> int:
        return len(self._matrix())

    def _arrays(self) -> dict[str, Any]:
        return {"weights": self._matrix(), "slope": np.array(float(self.slope))}

    @classmethod
    def _from_checked_arrays(cls, arrays: dict[str, NDArray[Any]], wanted: str) -> Self:
        gating = cls(arrays["weights"], slope=float(arrays["slope"]))
        gating._matrix()
        return gating

    def _matrix(self) -> Floats:
        weights = np.asarray(to_numpy(self.weights), dtype=np.float64)
        if weights.ndim != 2 or 0 in weights.shape or not np.all(np.isfinite(weights)):
            raise ValueError(
                "`weights` must be finite, of shape (H, D) with H, D >= 1, got shape "
                f"{weights.shape}: give the first layer of a ReLU network"
            )
        return weights
