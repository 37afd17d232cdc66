"""Soft gates: smooth functions of the inputs and of the weights of a gating network."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit
from sklearn.utils.validation import (  # type: ignore[import-untyped,unused-ignore]
    check_is_fitted,
)

from .._support.doors import check_parameters, door
from .._support.kinds import extended
from .._support.solve import require_memory
from ..data.arrays import Floats
from .gating import Gating
from .layered import LayeredGates, LinearGates, NetworkGates, pack_layers, unpack_layers


class SoftGates(Gating):
    r"""Gates between 0 and 1 + eps, of pre-activations q of a gating network.

    .. math:: G = \frac{1 + \varepsilon}{1 + e^{-\beta q}}

    Unlike hard gates they have a gradient in the weights of the gating network, see `jacobian`.

    Parameters
    ----------
    network : LinearGates, NetworkGates, module or sequence of arrays
        The gating network: gates of layers, a network with `layers`, or the weights
        (width, width below) of its hidden layers. `fit` copies it.
    beta : float
        Steepness, positive. Infinity is the hard gate ``(1 + eps) [q > 0]``.
    eps : float
        By how much an open gate exceeds 1, at least 0.

    Attributes
    ----------
    gating_ : LinearGates or NetworkGates
        The gating network.

    References
    ----------
    C. Lakshminarayanan, A. V. Singh, "Neural path features and neural path kernel", soft-ReLU and
    soft-GaLU. As beta grows gates tend to (1 + eps) [q > 0], not to [q > 0] as tabled there.

    Examples
    --------
    >>> gating = ib.gates.SoftGates([[[2.0]]], beta=np.log(3) / 2).fit([[0.0]])
    >>> gating.transform([[0.0], [1.0], [-1.0]]).round(12).tolist()
    [[0.5], [0.75], [0.25]]
    """

    saved = ("weights", "shapes", "linear", "beta", "eps")

    gating_: LayeredGates
    n_features_in_: int

    def __init__(self, network: Any, beta: float = 4.0, eps: float = 0.0) -> None:
        self.network = network
        self.beta = beta
        self.eps = eps

    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Copy the gating network, fitting it to `X` (n, D) where it is not fitted.

        Raises
        ------
        ValueError
            If `beta` or `eps` is out of range, the gating network's weights do not fit each other,
            or `X` does not fit them.
        """
        check_parameters(self, beta=extended)
        if not self.beta > 0 or not 0 <= self.eps < np.inf:
            raise ValueError(
                f"`beta` must be positive and `eps` at least 0 and finite, got {self.beta} and "
                f"{self.eps}"
            )
        inputs = self._inputs(X, reset=True)
        source = self.network
        if not isinstance(source, LayeredGates):
            source = NetworkGates(source)
        if not hasattr(source, "layers_"):
            source = source.fit(inputs)
        linear = isinstance(source, LinearGates)
        self.gating_ = _of_layers([layer.copy() for layer in source.layers_], linear)
        self.gating_.pre_activations(inputs)
        return self

    def transform(self, X: ArrayLike) -> Floats:
        """Return the gates (n, sum of widths) of the rows of `X` (n, D), layer after layer.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If it has not been fitted.
        ValueError
            If `X` is not finite or has another width than the layers.
        """
        return np.concatenate([self._gate(q) for q in self._pre_activations(X)[1]], axis=1)

    def _pre_activations(self, X: ArrayLike) -> tuple[Floats, list[Floats]]:
        """The checked inputs, and the pre-activations of every layer."""
        inputs = self._inputs(X)
        return inputs, self.gating_.pre_activations(inputs)

    @door()
    def jacobian(self, X: ArrayLike) -> Floats:
        """Return the derivatives of every gate in the gating network's weights.

        Parameters
        ----------
        X : (n, D) array

        Returns
        -------
        (n, sum of widths, weights) float64 array
            Weights are those of `gating_.layers_`, each flattened, layer after layer.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If it has not been fitted.
        ValueError
            If `beta` is infinite (hard gates have no gradient), memory does not hold the result, or
            `X` is not finite or has another width than the layers.
        """
        check_is_fitted(self)
        if np.isinf(self.beta):
            raise ValueError(
                "hard gates (`beta` infinite) have derivative zero wherever they have one: take a "
                "finite `beta`"
            )
        inputs, before = self._pre_activations(X)
        layers = self.gating_.layers_
        n, n_gates = len(before[0]), sum(len(layer) for layer in layers)
        n_weights = sum(layer.size for layer in layers)
        require_memory(
            n * n_gates * n_weights,
            f"the derivatives of {n_gates} gates in {n_weights} weights on {n} samples",
            "take fewer samples or a smaller gating network",
        )
        below = [inputs, *(self.gating_.activate(q) for q in before)]
        found, gate = np.zeros((n, n_gates, n_weights)), 0
        for layer, q in enumerate(before):
            rows = slice(gate, gate := gate + q.shape[1])
            self._fill(found[:, rows], layer, before, below)
        return found

    def _fill(self, found: Floats, layer: int, before: list[Floats], below: list[Floats]) -> None:
        """Fill in the derivatives of a layer's gates, in the weights at and below it."""
        layers = self.gating_.layers_
        ends = np.cumsum([weights.size for weights in layers])
        n, width = before[layer].shape
        slope = self._slope(before[layer])
        # Derivatives of q_layer in the outputs of the layers below, from the top down.
        back = np.broadcast_to(np.eye(width), (n, width, width))
        for k in range(layer, -1, -1):
            part = (slope[:, :, None] * back)[..., None] * below[k][:, None, None, :]
            found[:, :, ends[k] - layers[k].size : ends[k]] = part.reshape(n, width, -1)
            if k:
                back = (back @ layers[k]) * self.gating_.slopes(before[k - 1])[:, None]

    def _gate(self, q: Floats) -> Floats:
        if np.isinf(self.beta):
            return np.where(q > 0, 1 + self.eps, 0.0)
        opened: Floats = (1 + self.eps) * expit(self.beta * q)
        return opened

    def _slope(self, q: Floats) -> Floats:
        share = expit(self.beta * q)
        slope: Floats = (1 + self.eps) * self.beta * share * (1 - share)
        return slope

    @property
    def _n_features_out(self) -> int:
        return self.gating_._n_features_out

    def _arrays(self) -> dict[str, Any]:
        weights, shapes = pack_layers(self.gating_.layers_)
        linear = np.array(isinstance(self.gating_, LinearGates))
        # Infinity is written as zero, which no beta is: archives hold finite numbers.
        beta = 0.0 if np.isinf(self.beta) else self.beta
        values = (weights, shapes, linear, np.array(float(beta)), np.array(float(self.eps)))
        return dict(zip(self.saved, values, strict=True))

    @classmethod
    def _from_checked_arrays(cls, arrays: dict[str, NDArray[Any]], wanted: str) -> Self:
        layers = unpack_layers(arrays, wanted)
        network = _of_layers(layers, bool(arrays["linear"]))
        beta, eps = float(arrays["beta"]), float(arrays["eps"])
        return cls(network, beta or np.inf, eps).fit(np.zeros((1, layers[0].shape[1])))


def _of_layers(layers: list[Floats], linear: bool) -> LayeredGates:
    gating: LayeredGates = NetworkGates(layers)
    if linear:
        widths = tuple(len(layer) for layer in layers)
        gating = LinearGates(layers[0].shape[1], widths=widths, layers=layers)
    fitted: LayeredGates = gating.fit(np.zeros((1, layers[0].shape[1])))
    return fitted
