"""Limits as scikit-learn classifiers, with certificates, for any labels and classes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone  # type: ignore[import-untyped,unused-ignore]
from sklearn.exceptions import NotFittedError  # type: ignore[import-untyped,unused-ignore]
from sklearn.utils.validation import (  # type: ignore[import-untyped,unused-ignore]
    check_is_fitted,
    has_fit_parameter,
)

from ..data.arrays import Floats
from ..gates.hyperplanes import HyperplaneContexts, HyperplaneGates
from ..limits.exact.frelu import SVMFReLU
from ..limits.exact.linear import HardMarginSVM
from ..models.gln.formulation import SVMGLN
from .base import GatedChoices, LimitClassifier


class LinearLimitClassifier(LimitClassifier):
    r"""The limit of linear networks of every depth: the hard-margin SVM.

    .. math:: \min \|\zeta\| \quad \text{s.t.} \quad y_n \langle \zeta, x_n \rangle \ge 1

    More than two classes are classified one-vs-rest: one program a class, on one Gram matrix; the
    class of largest score wins. Attributes then have one entry a class, in arrays whose first axis
    is `classes_`, or in lists. With ``multi_class="joint"`` there is one program for all of them,
    which is the limit of a predictor of K classes under softmax,

    .. math:: \min \|\zeta\|_F \quad \text{s.t.} \quad
              \langle \zeta_{y_n} - \zeta_k, x_n \rangle \ge 1 \quad (k \ne y_n),

    with one `limit_`. Both differ: of ten digits they label some 6 % of held-out samples otherwise.

    Parameters
    ----------
    solver : str
        "interior-point", or "cvxpy:CLARABEL", "cvxpy:ECOS", "cvxpy:SCS", "cvxpy:OSQP".
    tol : float
        Relative duality gap to reach, in (0, 1).
    max_iterations : int or None
        Iterations of each run of the solver; None leaves it to the solver.
    on_inseparable : {"penalty", "raise"}
        Action of `fit` where no coefficients separate the data. "penalty": an `InseparableWarning`,
        and `zeta_` is the limit of training with `weight_decay`, in `finite_limits_`; `status_`,
        `dual_` and `limit_` keep what the solver found, its proof included. "raise":
        `NotCertified`.
    weight_decay : float
        Positive: lam of ``mean loss + lam / 2 ||zeta||^2``, logistic loss, or jointly softmax. It
        is that of torch, and scales with the inputs.
    add_constant : bool
        Append the constant 1 to every input, as the last coefficient of `zeta_`. That is the bias,
        and like any other weight it counts in the norm. False: the inputs are complete.
    class_weight : dict, "balanced" or None
        Factors on the weights of samples, by class.
    multi_class : {"one-vs-rest", "joint"}
        Programs of more than two classes; of two both are the same.

    Attributes
    ----------
    classes_ : array, shape (K,)
        Positive scores speak for `classes_[1]` if K = 2.
    n_features_in_ : int
        Without the constant.
    zeta_ : array of float64, shape (D,)
        Coefficients of the predictions, at smallest margin 1; D counts the constant. (K, D) for
        K > 2.
    limit_, limits_ : LinearLimit, tuple of LinearLimit
        Solution and certificate; `limit_` for two classes, or a `MulticlassLimit` jointly. Of rows
        that repeat they have one; then, and where weights are given, their rows are in an order of
        their own.
    finite_limits_ : tuple of FitLimit or None
        A program each: the limit with weight decay that predicts in place of it, None elsewhere.
    dual_ : array of float64, shape (n,)
        Multipliers of the rows as passed; equal rows share theirs. (n, K) jointly, of each sample
        over every other class.
    dual_gap_ : float
        Certified; infinite where the data are not separable.
    status_ : Status
    support_ : array of integers, shape (s,)
        Rows of the support vectors.
    n_iter_ : int
        Iterations of the solver.
    coef_, intercept_ : arrays of float64, shapes (1, D) and (1,)
        `zeta_` as scikit-learn's linear classifiers have it, without the constant and of it; 0
        without one. A row a class for K > 2.

    Notes
    -----
    A positive weight does not move the limit: a loss of weight w falls as w exp(-m) =
    exp(-(m - log w)), the loss of a margin that is shifted by a constant, which growing margins
    leave behind; in the program it does not occur. A weight of 0 leaves its sample out, with
    `dual_` 0. All others count in two places only: in the limit with weight decay of data that are
    not separable, as weights of the mean loss, and, those of samples, in what an unfitted gating
    learns from the data, where its `fit` takes them.

    References
    ----------
    D. Soudry et al., "The implicit bias of gradient descent on separable data", theorem 3; with
    weights: D. Xu, Y. Ye, C. Ruan, "Understanding the role of importance weighting for deep
    learning" (2021).

    Examples
    --------
    >>> classifier = ib.estimators.LinearLimitClassifier(add_constant=False)
    >>> classifier.fit([[2.0, 0.0], [0.0, 1.0], [5.0, -4.0]], ["cat", "dog", "cat"]).status_.name
    'SOLVED'
    >>> np.round(classifier.zeta_, 6).tolist(), classifier.support_.tolist()
    ([-0.5, 1.0], [0, 1])
    >>> classifier.predict([[1.0, 0.0]]).tolist()
    ['cat']
    """

    _takes_sparse = True
    _decayed_norm = "ridge"
    _joint_norm = "l2"
    _joint_decayed_norm = "ridge"

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn that sparse inputs are taken."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    @property
    def coef_(self) -> Floats:
        """Coefficients (1, D) without that of the constant; (K, D) for K > 2."""
        return self._linear[:, : self.n_features_in_]

    @property
    def intercept_(self) -> Floats:
        """Coefficient (1,) of the constant, 0 without one; (K,) for K > 2."""
        zeta = self._linear
        return zeta[:, -1] if self.add_constant else np.zeros(len(zeta))

    @property
    def _linear(self) -> Floats:
        check_is_fitted(self)
        return np.atleast_2d(self.zeta_)

    def _formulation(self) -> HardMarginSVM:
        return HardMarginSVM()


class _GatedLimitClassifier(GatedChoices, LimitClassifier):
    """A classifier with gates computed by a transformer."""

    gating_: Any
    _decayed_norm = "units"
    _joint_norm = "sum-nuclear"
    _joint_decayed_norm = "sum-nuclear"

    def _fit_gating(self, inputs: Floats, weights: Floats | None) -> NDArray[np.int64]:
        gating = self._default_gating() if self.gating is None else self.gating
        if not hasattr(gating, "transform"):
            raise TypeError(
                f"`gating` must be a transformer, as HyperplaneContexts is, got {gating!r}"
            )
        weighing = weights is not None and has_fit_parameter(gating, "sample_weight")
        keywords = {"sample_weight": weights} if weighing else {}
        self.gating_ = gating if _is_fitted(gating) else clone(gating).fit(inputs, **keywords)
        width = getattr(self.gating_, "n_features_in_", inputs.shape[1])
        if width != inputs.shape[1]:
            raise ValueError(
                f"`gating` was fitted on {width} inputs, but gates the {inputs.shape[1]} that the "
                f"units see with add_constant={self.add_constant}: fit it on these, the "
                "constant column included, or pass it unfitted"
            )
        return self._gates(inputs)

    def _gates(self, inputs: Floats) -> NDArray[np.int64]:
        # An array even of a gating that is set to give data frames.
        gates: NDArray[np.int64] = np.asarray(self.gating_.transform(inputs))
        return gates

    def _default_gating(self) -> Any:
        raise NotImplementedError


class GLNLimitClassifier(_GatedLimitClassifier):
    r"""The limit of two-layer gated linear networks: SVM-GLN.

    .. math:: \min \sum_h \|\zeta_h\|_F \quad \text{s.t.} \quad
              y_n \sum_h \langle \zeta_{h, c_h(x_n)}, x_n \rangle \ge 1

    Weights and several classes are treated as by `LinearLimitClassifier`.

    Parameters
    ----------
    gating : transformer or None
        From inputs (n, D) to integer contexts (n, H); None: `HyperplaneContexts()`. It sees what
        the units see: with `add_constant`, the constant column as well. One that
        is fitted already (`sklearn.utils.validation.check_is_fitted` decides) is used as it is; of
        any other a clone is fitted on the training inputs. Cross-validation and grid search clone
        the parameters of an estimator, and a clone is not fitted, so that they fit the gating
        again on every training part; `sklearn.frozen.FrozenEstimator(gating)` stays fitted there.
        C is its attribute `n_contexts` if it has one, else it is read from the training contexts.
    solver : str
        "interior-point", or "cvxpy:CLARABEL", "cvxpy:ECOS", "cvxpy:SCS".
    tol : float
        Relative duality gap to reach, in (0, 1).
    max_iterations : int or None
        Iterations of each run of the solver; None leaves it to the solver.
    on_inseparable : {"penalty", "raise"}
        Where no coefficients separate the data: warn and predict by the limit of training with
        `weight_decay`, in `finite_limits_`; or "raise" `NotCertified`.
    weight_decay : float
        Positive: lam of ``mean logistic loss + lam sum_h ||zeta_h||``, where two layers end whose
        weights decay by lam; jointly of softmax, and of nuclear norms.
    add_constant : bool
        Append the constant 1, the bias, to every input.
    class_weight : dict, "balanced" or None
        Factors on the weights of samples, by class.
    multi_class : {"one-vs-rest", "joint"}
        Programs of more than two classes. "joint": one, for networks of K outputs with K units or
        more of the same contexts, which minimises the sum of nuclear norms of matrices (K, C D); of
        two both are the same.

    Attributes
    ----------
    zeta_ : array of float64, shape (H, C, D)
        (K, H, C, D) for K > 2, jointly (H, K, C, D).
    gating_ : transformer
        The fitted gating.
    classes_, limit_, limits_, finite_limits_, dual_, dual_gap_, status_, support_, n_iter_
    n_features_in_
        Those of `LinearLimitClassifier`, of this program.

    References
    ----------
    S. Lippl, L. F. Abbott, S. Chung, "The implicit bias of gradient descent on generalized gated
    linear networks", equation (20).

    Examples
    --------
    >>> X, y = [[1.0, 1.0], [-1.0, -1.0], [1.0, -1.0], [-1.0, 1.0]], [1, 1, 0, 0]  # XOR
    >>> gating = ib.HyperplaneContexts(n_units=4, random_state=0)
    >>> classifier = ib.estimators.GLNLimitClassifier(gating).fit(X, y)
    >>> classifier.status_.name, classifier.predict(X).tolist()
    ('SOLVED', [1, 1, 0, 0])
    """

    def _default_gating(self) -> Any:
        return HyperplaneContexts()

    def _formulation(self) -> SVMGLN:
        return SVMGLN(getattr(self.gating_, "n_contexts", None))

    def _n_contexts(self, gates: NDArray[np.int64] | None) -> int | None:
        assert gates is not None
        known: int | None = self._formulation().n_contexts
        return int(gates.max()) + 1 if known is None else known


class FReLULimitClassifier(_GatedLimitClassifier):
    r"""The limit of two-layer ReLU networks with frozen gates: the group lasso over units.

    .. math:: \min \sum_h \|\zeta_h\| \quad \text{s.t.} \quad
              y_n \sum_h g_h(x_n) \langle \zeta_h, x_n \rangle \ge 1

    Weights and several classes are treated as by `LinearLimitClassifier`.

    Parameters
    ----------
    gating : transformer or None
        From inputs (n, D) to gates (n, H), 0 or 1; None: `HyperplaneGates()`. `ReLUGates` are
        those of a network. It is cloned and fitted unless it is fitted already.
    solver : str
        "interior-point", or "cvxpy:CLARABEL", "cvxpy:ECOS", "cvxpy:SCS".
    tol : float
        Relative duality gap to reach, in (0, 1).
    max_iterations : int or None
        Iterations of each run of the solver; None leaves it to the solver.
    on_inseparable : {"penalty", "raise"}
        Where no coefficients separate the data: warn and predict by the limit of training with
        `weight_decay`, in `finite_limits_`; or "raise" `NotCertified`.
    weight_decay : float
        Positive: lam of ``mean logistic loss + lam sum_h ||zeta_h||``, where two layers end whose
        weights decay by lam; jointly of softmax, and of nuclear norms.
    add_constant : bool
        Append the constant 1, the bias, to every input.
    class_weight : dict, "balanced" or None
        Factors on the weights of samples, by class.
    multi_class : {"one-vs-rest", "joint"}
        Programs of more than two classes. "joint": one, for networks of K outputs with K units or
        more behind every gate, which minimises the sum of nuclear norms; of two both are the same.

    Attributes
    ----------
    zeta_ : array of float64, shape (H, D)
        (K, H, D) for K > 2, jointly (H, K, D).
    gating_ : transformer
        The fitted gating.
    classes_, limit_, limits_, finite_limits_, dual_, dual_gap_, status_, support_, n_iter_
    n_features_in_
        Those of `LinearLimitClassifier`, of this program.

    References
    ----------
    S. Lippl, L. F. Abbott, S. Chung, "The implicit bias of gradient descent on generalized gated
    linear networks", equation (22).

    Examples
    --------
    >>> X, y = [[1.0, 1.0], [-1.0, -1.0], [1.0, -1.0], [-1.0, 1.0]], [1, 1, 0, 0]  # XOR
    >>> gating = ib.HyperplaneGates(n_units=8, random_state=0)
    >>> classifier = ib.estimators.FReLULimitClassifier(gating).fit(X, y)
    >>> classifier.status_.name, classifier.predict(X).tolist()
    ('SOLVED', [1, 1, 0, 0])
    """

    def _default_gating(self) -> Any:
        return HyperplaneGates()

    def _formulation(self) -> SVMFReLU:
        return SVMFReLU()


def _is_fitted(gating: Any) -> bool:
    try:
        check_is_fitted(gating)
    except NotFittedError:
        return False
    return True
