"""Gates of ReLU-like units: of random hyperplanes, or as a ReLU network has learned them."""

from __future__ import annotations

import os
import zipfile
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import (  # type: ignore[import-untyped,unused-ignore]
    BaseEstimator,
    TransformerMixin,
)
from sklearn.utils.validation import (  # type: ignore[import-untyped,unused-ignore]
    check_array,
    check_is_fitted,
)

from ._solve import to_numpy
from .gating import HyperplaneContexts

__all__ = ["HyperplaneGates", "ReLUGates"]


class HyperplaneGates(TransformerMixin, BaseEstimator):  # type: ignore[misc,unused-ignore]
    r"""Gates of one random hyperplane a unit, and of one unit that is always open.

    .. math:: g_h(x) = [\langle w_h, x \rangle - b_h \ge 0], \qquad w_h \sim N(0, 36^2 I)

    The always-open unit guarantees every sample an open gate, without which the limit of
    frozen-gate ReLU networks has no solution.

    Parameters
    ----------
    n_units : int
        Units with a hyperplane, at least 1.
    always_open : bool
        Whether one more unit follows that is open everywhere: H = n_units + 1.
    cutoffs : {"median", "random", "axes"}
        As in `HyperplaneContexts`; "median" opens each gate for half the reference data, "axes"
        gate h where input h is not negative.
    random_state : int, numpy.random.Generator or None
        Hyperplanes are those of `HyperplaneContexts(n_units, 2, ...)` for the same value.

    Attributes
    ----------
    contexts_ : HyperplaneContexts
        The fitted hyperplanes.
    n_features_in_ : int
        D.

    References
    ----------
    S. Lippl, L. F. Abbott, S. Chung, "The implicit bias of gradient descent on generalized gated
    linear networks", section 5.2 (SVM-RC).

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(50, 3))
    >>> gates = HyperplaneGates(n_units=2).fit_transform(X)
    >>> gates.shape, gates.mean(axis=0).tolist()
    ((50, 3), [0.5, 0.5, 1.0])
    """

    contexts_: HyperplaneContexts
    n_features_in_: int

    def __init__(
        self,
        n_units: int = 10,
        *,
        always_open: bool = True,
        cutoffs: str = "median",
        random_state: int | np.random.Generator | None = 0,
    ) -> None:
        self.n_units = n_units
        self.always_open = always_open
        self.cutoffs = cutoffs
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Draw the hyperplanes; the reference data `X` (n, D) set the median cutoffs.

        Raises
        ------
        TypeError
            If `n_units` is not an integer.
        ValueError
            If a parameter is out of range, or `X` is empty or not finite.
        """
        contexts = HyperplaneContexts(
            self.n_units, 2, cutoffs=self.cutoffs, random_state=self.random_state
        )
        return self._adopt(contexts.fit(X))

    def transform(self, X: ArrayLike) -> NDArray[np.int64]:
        """Gates of the rows of `X` (n, D): int64, shape (n, H), in {0, 1}.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If there are no hyperplanes yet.
        ValueError
            If `X` is not finite or has another width than the reference data.
        """
        check_is_fitted(self)
        gates: NDArray[np.int64] = self.contexts_.transform(X)
        if self.always_open:
            gates = np.hstack([gates, np.ones((len(gates), 1), dtype=np.int64)])
        return gates

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = []  # gates are int64 for every input
        return tags

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write hyperplanes, cutoffs and parameters to `path`, an npz archive without pickles.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If there are no hyperplanes yet.
        """
        check_is_fitted(self)
        self.contexts_.save(path)
        with zipfile.ZipFile(path, "a") as archive, archive.open("always_open.npy", "w") as entry:
            np.lib.format.write_array(entry, np.array(bool(self.always_open)))  # type: ignore[no-untyped-call,unused-ignore]

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read fitted gates that `save` wrote: the same inputs get the same gates.

        Raises
        ------
        ValueError
            If the file is damaged or was not written by `save`.
        """
        contexts = HyperplaneContexts.load(path)
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as archive:
            if "always_open" not in archive or contexts.n_contexts != 2:
                raise ValueError(
                    f"{os.fspath(path)!r} must be a file that HyperplaneGates.save wrote, but it "
                    "holds plain contexts: load it with HyperplaneContexts.load"
                )
            always_open = bool(archive["always_open"])
        gates = cls(
            contexts.n_units,
            always_open=always_open,
            cutoffs=contexts.cutoffs,
            random_state=contexts.random_state,
        )
        return gates._adopt(contexts)

    def _adopt(self, contexts: HyperplaneContexts) -> Self:
        self.contexts_ = contexts
        self.n_features_in_ = contexts.n_features_in_
        if hasattr(contexts, "feature_names_in_"):
            self.feature_names_in_ = contexts.feature_names_in_
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        return self


class ReLUGates(TransformerMixin, BaseEstimator):  # type: ignore[misc,unused-ignore]
    """Gates of ReLU units with given weights: `g_h(x) = [<weights[h], x> >= 0]`.

    It stands wherever a fitted gating does; there is nothing to fit.

    Parameters
    ----------
    weights : (H, D) array
        First-layer weights, finite; looked at when used.

    Examples
    --------
    >>> ReLUGates(np.array([[1.0, -1.0]])).transform([[2.0, 1.0], [1.0, 2.0]]).tolist()
    [[1], [0]]
    """

    weights: NDArray[np.float64]

    def __init__(self, weights: ArrayLike) -> None:
        self.weights = weights  # type: ignore[assignment]  # as given: `clone` insists on it

    @classmethod
    def from_network(cls, network: Any) -> Self:
        """The gates that a network's first layer `w1` (H, D) has now, whatever becomes of it."""
        return cls(np.array(to_numpy(network.w1), dtype=np.float64))

    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """These gates themselves, after the checks of `transform`."""
        self.transform(X)
        return self

    def transform(self, X: ArrayLike) -> NDArray[np.int64]:
        """Gates of the rows of `X` (n, D): int64, shape (n, H), in {0, 1}.

        Raises
        ------
        ValueError
            If `X` is not finite or not as wide as the weights, or these are no finite matrix.
        """
        weights = self._matrix()
        inputs: NDArray[np.float64] = check_array(X, dtype=np.float64)
        if inputs.shape[1] != weights.shape[1]:
            raise ValueError(
                f"`X` must have shape (n, {weights.shape[1]}), got {inputs.shape}: the units "
                "were made for that many inputs, the constant column included"
            )
        return (inputs @ weights.T >= 0).astype(np.int64)

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        tags.transformer_tags.preserves_dtype = []  # gates are int64 for every input
        return tags

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the weights to `path`, an npz archive without pickles."""
        weights = self._matrix()
        with open(path, "wb") as file:  # given a name, savez would append .npz to it
            np.savez(file, relu_weights=weights)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read gates that `save` wrote.

        Raises
        ------
        ValueError
            If the file is damaged or was not written by `save`.
        """
        try:
            with open(path, "rb") as file, np.load(file, allow_pickle=False) as archive:
                gating = cls(archive["relu_weights"])
            gating._matrix()
        except (KeyError, EOFError, IndexError, TypeError, ValueError, zipfile.BadZipFile) as error:
            raise ValueError(
                f"{os.fspath(path)!r} must be a file that ReLUGates.save wrote, got {error}: "
                "save the gates again"
            ) from error
        return gating

    def _matrix(self) -> NDArray[np.float64]:
        weights = np.asarray(to_numpy(self.weights), dtype=np.float64)
        if weights.ndim != 2 or 0 in weights.shape or not np.all(np.isfinite(weights)):
            raise ValueError(
                "`weights` must be finite, of shape (H, D) with H, D >= 1, got shape "
                f"{weights.shape}: give the first layer of a ReLU network"
            )
        return weights
