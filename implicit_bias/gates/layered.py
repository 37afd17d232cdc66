"""Gates of several layers, from the pre-activations of a gating network."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import (  # type: ignore[import-untyped,unused-ignore]
    check_is_fitted,
)

from .._support.doors import check_parameters, door
from .._support.kinds import anything, count, sequence
from .._support.solve import require_array, require_columns, require_count, require_sizes, to_numpy
from ..data.arrays import Floats
from .gating import MADE_FOR, Gating, seed_from, seed_text


class LayeredGates(Gating):
    """Base of gates `[q_l >= 0]` of layers q_l = W_l h(q_{l-1}), q_0 = x, without biases.

    Attributes
    ----------
    layers_ : list of arrays (width, width below)
        W_1 (width_1, D), ..., one a layer of gates.
    n_features_in_ : int
        D.
    """

    saved: ClassVar[tuple[str, ...]] = ("weights", "shapes")

    layers_: list[Floats]
    n_features_in_: int

    @staticmethod
    def activate(q: Floats) -> Floats:
        """Return h of pre-activations."""
        raise NotImplementedError

    @staticmethod
    def slopes(q: Floats) -> Floats:
        """Return the derivative of h at pre-activations."""
        raise NotImplementedError

    def transform(self, X: ArrayLike) -> NDArray[np.int64]:
        """Return the gates (n, sum of widths) of the rows of `X` (n, D), layer after layer.

        They are int64, 0 or 1.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If it has not been fitted.
        ValueError
            If `X` is not finite or has another width than the layers.
        """
        parts = [q >= 0 for q in self.pre_activations(X)]
        return np.concatenate(parts, axis=1).astype(np.int64)

    def pre_activations(self, X: ArrayLike) -> list[Floats]:
        """Return q_l (n, width_l) of every layer.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If it has not been fitted.
        ValueError
            If `X` is not finite or has another width than the layers.
        """
        found = [self._inputs(X) @ self.layers_[0].T]
        for layer in self.layers_[1:]:
            found.append(self.activate(found[-1]) @ layer.T)
        return found

    @property
    def widths_(self) -> tuple[int, ...]:
        """Number of gates of every layer."""
        return tuple(len(layer) for layer in self.layers_)

    @property
    def _n_features_out(self) -> int:
        return sum(self.widths_)

    def _set_layers(self, layers: list[Floats], X: ArrayLike) -> Self:
        """Set the layers if `X` (n, D) fits them."""
        require_columns("X", self._inputs(X, reset=True), layers[0].shape[1], MADE_FOR)
        self.layers_ = layers
        return self

    def _arrays(self) -> dict[str, Any]:
        weights, shapes = pack_layers(self.layers_)
        return {"weights": weights, "shapes": shapes}


class NetworkGates(LayeredGates):
    """Gates copied from a ReLU network without biases: learned ones, or those of a random network.

    Another network with these gates is a gated linear unit network (GaLU): its gates depend on the
    input and not on its own weights.

    Parameters
    ----------
    network : module or sequence of arrays
        A network with `layers`, the last of which makes the score (`DeepReLU`, `ReLU`), none of its
        units leaky, or the weights (width, width below) of its hidden layers, which `fit` copies.

    Attributes
    ----------
    layers_ : list of arrays (width, width below)
        The weights of the hidden layers.
    n_features_in_ : int
        D.

    Examples
    --------
    >>> gating = ib.gates.NetworkGates([np.eye(2), [[1.0, -1.0]]]).fit(np.zeros((1, 2)))
    >>> gating.transform([[2.0, 1.0], [1.0, 2.0], [-1.0, 2.0]]).tolist()
    [[1, 1, 1], [1, 1, 0], [0, 1, 0]]
    """

    def __init__(self, network: Any) -> None:
        self.network = network

    @staticmethod
    @door()
    def activate(q: Floats) -> Floats:
        """Return relu(q)."""
        return np.maximum(q, 0.0)

    @staticmethod
    @door()
    def slopes(q: Floats) -> Floats:
        """Return the slopes of relu, 1 at 0."""
        return np.where(q >= 0, 1.0, 0.0)

    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Copy the present weights of the network; of `X` (n, D) only the width counts.

        Raises
        ------
        ValueError
            If the shapes of the weights do not fit each other, one is not finite, `X` does not fit
            them, or the network is leaky.
        """
        check_parameters(self)
        if slope := getattr(self.network, "slope", 0.0):
            raise ValueError(
                f"`network` has leaky units, of slope {slope}: gates of several layers are open or "
                "closed alone"
            )
        whole = hasattr(self.network, "layers")
        layers = getattr(self.network, "layers", self.network)
        sequence(anything)("network", layers)
        return self._set_layers(_chained("network", list(layers)[: -1 if whole else None]), X)

    @classmethod
    def _from_checked_arrays(cls, arrays: dict[str, NDArray[Any]], wanted: str) -> Self:
        layers = unpack_layers(arrays, wanted)
        return cls(layers).fit(np.zeros((1, layers[0].shape[1])))


class LinearGates(LayeredGates):
    r"""Gates of a deep linear gating network (DLGN): every unit is a half-space.

    .. math:: \eta_l = W_l \cdots W_1 x, \qquad g = [\eta \ge 0]

    Parameters
    ----------
    n_inputs : int
        D, the constant column counted.
    widths : sequence of int
        Number of gates of every layer.
    layers : sequence of arrays (width, width below), optional
        Weights W_1, ... of a gating network that has been trained; by default they are drawn from
        N(0, 1 / width below).
    random_state : int, numpy.random.Generator or None
        Source of drawn weights. None draws afresh at each fit.

    Attributes
    ----------
    layers_ : list of arrays (width, width below)
        W_1 (width_1, D), ..., one a layer of gates.
    n_features_in_ : int
        D.

    Examples
    --------
    >>> gating = ib.gates.LinearGates(2, widths=(3, 2)).fit(np.zeros((1, 2)))
    >>> X = np.array([[1.0, 0.5], [-2.0, 3.0]])
    >>> bool(np.all(gating.transform(X) == (X @ gating.normals().T >= 0)))
    True
    """

    saved = ("weights", "shapes", "random_state")

    def __init__(
        self,
        n_inputs: int,
        *,
        widths: Sequence[int],
        layers: Sequence[ArrayLike] | None = None,
        random_state: int | np.random.Generator | None = 0,
    ) -> None:
        self.n_inputs = n_inputs
        self.widths = widths
        self.layers = layers
        self.random_state = random_state

    @staticmethod
    @door()
    def activate(q: Floats) -> Floats:
        """Return q itself."""
        return q

    @staticmethod
    @door()
    def slopes(q: Floats) -> Floats:
        """Return ones."""
        return np.ones_like(q)

    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Draw the gating network, or copy the given one; of `X` (n, D) only the width counts.

        Raises
        ------
        TypeError
            If a width is not an integer.
        ValueError
            If a size is not positive, given layers have others, or `X` is not as wide.
        """
        check_parameters(self, n_inputs=count(1))
        check_widths(self.widths)
        sizes = [(high, low) for low, high in pairwise((self.n_inputs, *self.widths))]
        if self.layers is not None:
            layers = _chained("layers", self.layers)
            if [layer.shape for layer in layers] != sizes:
                raise ValueError(
                    f"`layers` must have shapes {sizes}, got {[layer.shape for layer in layers]}: "
                    "one matrix a layer of gates"
                )
            return self._set_layers(layers, X)
        named = {f"widths[{i}]": width for i, width in enumerate(self.widths)}
        require_sizes("weights", {"n_inputs": self.n_inputs, **named}, *sizes)
        rng = np.random.default_rng(self.random_state)
        return self._set_layers([rng.normal(size=size) / size[1] ** 0.5 for size in sizes], X)

    def normals(self) -> Floats:
        """Return the normals (sum of widths, D) of the half-spaces: the rows of all W_l ... W_1."""
        check_is_fitted(self)
        products = [self.layers_[0]]
        for layer in self.layers_[1:]:
            products.append(layer @ products[-1])
        return np.concatenate(products)

    def _arrays(self) -> dict[str, Any]:
        seed = seed_text(self.random_state if self.layers is None else None)
        return super()._arrays() | {"random_state": seed}

    @classmethod
    def _from_checked_arrays(cls, arrays: dict[str, NDArray[Any]], wanted: str) -> Self:
        layers, seed = unpack_layers(arrays, wanted), seed_from(arrays["random_state"])
        n_inputs, widths = layers[0].shape[1], tuple(len(layer) for layer in layers)
        made: dict[str, Any] = {"layers": layers} if seed is None else {"random_state": seed}
        gating = cls(n_inputs, widths=widths, **made)
        return gating._set_layers(layers, np.zeros((1, n_inputs)))


def check_widths(widths: Sequence[int]) -> None:
    """Check that layers have whole, positive sizes, and that there is one.

    Raises
    ------
    TypeError, ValueError
    """
    if len(widths) == 0:
        raise ValueError("`widths` must name a layer of gates at least, got none")
    for width in widths:
        require_count("widths", width)


def _chained(name: str, layers: Sequence[Any]) -> list[Floats]:
    for k, layer in enumerate(layers):
        require_array(f"{name}[{k}]", layer)
    matrices = [np.array(to_numpy(layer), dtype=np.float64) for layer in layers]
    shapes = [matrix.shape for matrix in matrices]
    chain = all(len(shape) == 2 and 0 not in shape for shape in shapes)
    if not shapes or not chain or any(a[0] != b[1] for a, b in pairwise(shapes)):
        raise ValueError(
            f"`{name}` must have hidden layers of shapes (width_1, D), (width_2, width_1), ..., "
            f"got {shapes}: give a ReLU network, or the weights of its hidden layers"
        )
    return matrices


def pack_layers(layers: Sequence[Floats]) -> tuple[Floats, NDArray[np.int64]]:
    """Return layers as one array (sum of sizes,), and their shapes (n_layers, 2)."""
    shapes = np.array([layer.shape for layer in layers], dtype=np.int64)
    return np.concatenate([layer.ravel() for layer in layers]), shapes


def unpack_layers(arrays: dict[str, NDArray[Any]], wanted: str) -> list[Floats]:
    """Return the layers that `pack_layers` made the arrays "weights" and "shapes" of.

    Raises
    ------
    ValueError
        If the arrays do not fit each other; its message begins with `wanted`.
    """
    weights, shapes = arrays["weights"], arrays["shapes"]
    fits = shapes.ndim == 2 and shapes.shape[1:] == (2,) and len(shapes) > 0
    if not fits or np.any(shapes < 1) or np.prod(shapes, axis=1).sum() != weights.size:
        raise ValueError(
            f"{wanted}, got {weights.size} weights for layers {shapes.tolist()}: save the gates "
            "again"
        )
    ends = np.cumsum(np.prod(shapes, axis=1))[:-1]
    flat = np.split(weights.astype(np.float64), ends)
    return _chained(
        "layers", [part.reshape(shape) for part, shape in zip(flat, shapes, strict=True)]
    )
