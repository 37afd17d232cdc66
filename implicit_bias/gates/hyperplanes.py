"""Hyperplanes that gate units: contexts of gated linear units, and gates of ReLU-like ones."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import (  # type: ignore[import-untyped,unused-ignore]
    check_is_fitted,
)

from .._support.doors import check_parameters
from .._support.kinds import count, fraction
from .._support.solve import require_sizes
from .._support.words import Cutoffs
from ..data.arrays import Floats, checked_weights
from .gating import Gating, seed_from, seed_text, with_slope
from .planes import coordinate_planes, count_hyperplanes, median_cutoffs, projections

_NORMAL_SCALE = 36.0  # standard deviations of the reference, appendix A.1
_CUTOFF_SCALE = 9.0


class HyperplaneContexts(Gating):
    r"""Contexts of units from k = log2(C) random hyperplanes each.

    .. math:: c_h(x) = \sum_{j<k} 2^j \, [\langle w_{hj}, x \rangle - b_{hj} \ge 0],
              \qquad w_{hj} \sim N(0, 36^2 I)

    Parameters
    ----------
    n_units : int
        H, at least 1.
    n_contexts : int
        C, a power of two; with C = 1 there is no hyperplane and every context is 0.
    cutoffs : {"median", "random", "axes"}
        "median": b halves the projections of the reference data, so that both sides of each
        hyperplane are used; with an odd number of rows the upper side holds one more.
        "random": b ~ N(0, 9^2).
        "axes": nothing is drawn, the hyperplanes are the coordinate planes: hyperplane j of unit h
        is x[k h + j] = 0, so that H k may be at most D. Two units of two contexts have the four
        quadrants of the plane as their global contexts.
    random_state : int, numpy.random.Generator or None
        The normals are the same for "median" and "random". None draws afresh at each fit.

    Attributes
    ----------
    normals_ : array of float64, shape (H, k, D)
    cutoffs_ : array of float64, shape (H, k)
    n_features_in_ : int
        D.

    References
    ----------
    S. Lippl, L. F. Abbott, S. Chung, "The implicit bias of gradient descent on generalized
    gated linear networks", appendix A.1.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(50, 3))
    >>> contexts = ib.HyperplaneContexts(n_units=2, n_contexts=4).fit_transform(X)
    >>> contexts.shape, contexts.dtype
    ((50, 2), dtype('int64'))
    """

    saved = ("normals", "cutoffs", "cutoff_rule", "random_state", "feature_names")

    normals_: Floats
    cutoffs_: Floats
    n_features_in_: int

    def __init__(
        self,
        n_units: int = 10,
        n_contexts: int = 2,
        *,
        cutoffs: Cutoffs = "median",
        random_state: int | np.random.Generator | None = 0,
    ) -> None:
        self.n_units = n_units
        self.n_contexts = n_contexts
        self.cutoffs = cutoffs
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: object = None, sample_weight: ArrayLike | None = None) -> Self:
        """Draw the hyperplanes; the reference data `X` (n, D) set the median cutoffs.

        Parameters
        ----------
        X : (n, D) array
        y : None
            Not used.
        sample_weight : (n,) array, optional
            None negative; median cutoffs halve the weight: a row of weight 2 counts as two rows,
            one of weight 0 as none.

        Raises
        ------
        TypeError
            If `n_units` or `n_contexts` is not an integer.
        ValueError
            If a parameter is out of range, `X` is empty, not finite, or too narrow for "axes", or
            `sample_weight` holds no weights.
        """
        check_parameters(self, n_units=count(1), n_contexts=count(1))
        n_hyperplanes = count_hyperplanes(self.n_contexts)
        reference = self._inputs(X, reset=True)
        weights = checked_weights(sample_weight, len(reference))
        reference, weights = reference[weights > 0], weights[weights > 0]
        shape = (self.n_units, n_hyperplanes, reference.shape[1])
        sizes = {"n_units": self.n_units, "n_contexts": self.n_contexts}
        of_samples = (self.n_units, n_hyperplanes, len(reference))
        require_sizes("normals and projections", sizes, shape, of_samples)
        if self.cutoffs == "axes":
            self.normals_, self.cutoffs_ = coordinate_planes(shape)
            return self
        rng = np.random.default_rng(self.random_state)
        # Both are drawn under either rule, so a shared Generator goes on from the same state.
        self.normals_ = rng.normal(scale=_NORMAL_SCALE, size=shape)
        self.cutoffs_ = rng.normal(scale=_CUTOFF_SCALE, size=shape[:2])
        if self.cutoffs == "median":
            self.cutoffs_ = median_cutoffs(reference, self.normals_, weights)
        return self

    def transform(self, X: ArrayLike) -> NDArray[np.int64]:
        """Return the contexts of the rows of `X` (n, D): int64, shape (n, H), in {0, ..., C-1}.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If there are no hyperplanes yet.
        ValueError
            If `X` is not finite or has another width than the reference data.
        """
        bits = projections(self._inputs(X), self.normals_) >= self.cutoffs_
        weights = 2 ** np.arange(self.normals_.shape[1], dtype=np.int64)
        return bits.astype(np.int64) @ weights

    @property
    def _n_features_out(self) -> int:
        return len(self.normals_)

    def _arrays(self) -> dict[str, Any]:
        values = (
            self.normals_,
            self.cutoffs_,
            np.array(self.cutoffs),
            seed_text(self.random_state),
            np.array(getattr(self, "feature_names_in_", []), dtype=np.str_),
        )
        return dict(zip(self.saved, values, strict=True))

    @classmethod
    def _from_checked_arrays(cls, arrays: dict[str, NDArray[Any]], wanted: str) -> Self:
        normals, cutoffs = arrays["normals"], arrays["cutoffs"]
        if normals.ndim != 3 or cutoffs.shape != normals.shape[:2]:
            raise ValueError(
                f"{wanted}, got normals of shape {normals.shape} and cutoffs of shape "
                f"{cutoffs.shape}: save the gates again"
            )
        rule: Any = str(arrays["cutoff_rule"])
        contexts = cls(
            normals.shape[0],
            2 ** normals.shape[1],
            cutoffs=rule,
            random_state=seed_from(arrays["random_state"]),
        )
        contexts.normals_, contexts.cutoffs_ = normals, cutoffs
        contexts.n_features_in_ = normals.shape[2]
        if arrays["feature_names"].size:
            contexts.feature_names_in_ = arrays["feature_names"].astype(object)
        return contexts


class HyperplaneGates(Gating):
    r"""Gates of units from one random hyperplane each, and of one unit that is always open.

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
        "median": each gate is open for half the reference data; "random": b ~ N(0, 9^2); "axes":
        gate h is open where input h is not negative, and nothing is drawn.
    slope : float
        Gate of a closed unit, in [0, 1): above 0 those of a leaky ReLU.
    random_state : int, numpy.random.Generator or None
        Hyperplanes are those of `HyperplaneContexts(n_units, 2, ...)` for the same value. None
        draws afresh at each fit.

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
    >>> gates = ib.HyperplaneGates(n_units=2).fit_transform(X)
    >>> gates.shape, gates.mean(axis=0).tolist()
    ((50, 3), [0.5, 0.5, 1.0])
    """

    saved = (*HyperplaneContexts.saved, "always_open", "slope")
    absent: ClassVar = MappingProxyType({"slope": 0.0})

    contexts_: HyperplaneContexts
    n_features_in_: int

    def __init__(
        self,
        n_units: int = 10,
        *,
        always_open: bool = True,
        cutoffs: Cutoffs = "median",
        slope: float = 0.0,
        random_state: int | np.random.Generator | None = 0,
    ) -> None:
        self.n_units = n_units
        self.always_open = always_open
        self.cutoffs = cutoffs
        self.slope = slope
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: object = None, sample_weight: ArrayLike | None = None) -> Self:
        """Draw the hyperplanes; the reference data `X` (n, D) set the median cutoffs.

        Parameters
        ----------
        X : (n, D) array
        y : None
            Not used.
        sample_weight : (n,) array, optional
            None negative; median cutoffs halve the weight.

        Raises
        ------
        TypeError
            If `n_units` is not an integer.
        ValueError
            If a parameter is out of range, `X` is empty, not finite, or too narrow for "axes", or
            `sample_weight` holds no weights.
        """
        check_parameters(self, slope=fraction)
        contexts = HyperplaneContexts(
            self.n_units, 2, cutoffs=self.cutoffs, random_state=self.random_state
        )
        return self._set_contexts(contexts.fit(X, sample_weight=sample_weight))

    def transform(self, X: ArrayLike) -> NDArray[Any]:
        """Return the gates of the rows of `X` (n, D): shape (n, H), int64 in {0, 1}.

        With a slope they are float64, in {slope, 1}.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If there are no hyperplanes yet.
        ValueError
            If `X` is not finite or has another width than the reference data.
        """
        check_is_fitted(self)
        # An array even where scikit-learn is set to give data frames.
        gates: NDArray[np.int64] = np.asarray(self.contexts_.transform(X))
        if self.always_open:
            gates = np.hstack([gates, np.ones((len(gates), 1), dtype=np.int64)])
        return with_slope(gates, self.slope)

    @property
    def _n_features_out(self) -> int:
        return self.contexts_._n_features_out + bool(self.always_open)

    def _arrays(self) -> dict[str, Any]:
        return self.contexts_._arrays() | {
            "always_open": np.array(bool(self.always_open)),
            "slope": np.array(float(self.slope)),
        }

    @classmethod
    def _from_checked_arrays(cls, arrays: dict[str, NDArray[Any]], wanted: str) -> Self:
        contexts = HyperplaneContexts._from_checked_arrays(arrays, wanted)
        gates = cls(
            contexts.n_units,
            always_open=bool(arrays["always_open"]),
            cutoffs=contexts.cutoffs,
            slope=float(arrays["slope"]),
            random_state=contexts.random_state,
        )
        return gates._set_contexts(contexts)

    def _set_contexts(self, contexts: HyperplaneContexts) -> Self:
        self.contexts_ = contexts
        self.n_features_in_ = contexts.n_features_in_
        if hasattr(contexts, "feature_names_in_"):
            self.feature_names_in_ = contexts.feature_names_in_
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        return self
