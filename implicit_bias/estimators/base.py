"""Base of the scikit-learn classifiers: fitting, fallback, several classes, scores."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array, hstack, issparse
from sklearn.base import (  # type: ignore[import-untyped,unused-ignore]
    BaseEstimator,
    ClassifierMixin,
)
from sklearn.exceptions import (  # type: ignore[import-untyped,unused-ignore]
    ConvergenceWarning,
)
from sklearn.utils.multiclass import (  # type: ignore[import-untyped,unused-ignore]
    check_classification_targets,
)
from sklearn.utils.validation import (  # type: ignore[import-untyped,unused-ignore]
    check_is_fitted,
    validate_data,
)

from .._support.doors import check_parameters
from .._support.kinds import positive
from .._support.solve import (
    MaxMarginProgram,
    NormName,
    NotCertified,
    Settings,
    SolverName,
    Status,
    one_vs_rest_programs,
    refuse_masked,
    require_scale,
    shown,
    solve,
    solve_one_vs_rest,
    to_numpy,
    undisguised,
)
from .._support.words import MultiClass, OnInseparable
from ..data.arrays import Floats, as_csr
from ..limits.exact.multiclass import MarginLimit, solve_multiclass_svm
from ..limits.finite.fit import solve_fit
from ..limits.finite.limit import FitLimit
from ..limits.formulation import Formulation, Solving
from ..limits.limit import Limit
from ..limits.predictors import MulticlassPredictor
from .rows import ClassWeight, merge_rows, weigh


class InseparableWarning(UserWarning):
    """Warning that no coefficients separate the data, so that the limit with weight decay predicts.

    Examples
    --------
    >>> import warnings
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     _ = ib.estimators.LinearLimitClassifier().fit([[0.0], [1.0], [2.0]], [0, 1, 0])
    >>> caught[0].category.__name__
    'InseparableWarning'
    """


@dataclass(kw_only=True, eq=False, repr=False)
class Choices(BaseEstimator):  # type: ignore[misc,unused-ignore]
    """The parameters of all classifiers; `LinearLimitClassifier` says what they are."""

    solver: SolverName = "interior-point"
    tol: float = 1e-8
    max_iterations: int | None = None
    on_inseparable: OnInseparable = "penalty"
    weight_decay: float = 1e-2
    add_constant: bool = True
    class_weight: ClassWeight = None
    multi_class: MultiClass = "one-vs-rest"


@dataclass(eq=False, repr=False)
class GatedChoices(Choices):
    """And what computes the gates."""

    gating: Any = None


class LimitClassifier(ClassifierMixin, Choices, ABC):  # type: ignore[misc,unused-ignore]
    """Base of the classifiers that predict with the limit of training; see its subclasses."""

    classes_: NDArray[Any]
    n_features_in_: int
    limits_: tuple[MarginLimit, ...]
    finite_limits_: tuple[FitLimit | None, ...]
    zeta_: Floats
    _rows: NDArray[np.int64]  # those of positive weight, of all `_n_rows`
    _n_rows: int
    # Norm of the penalty that weight decay amounts to, of one score.
    _decayed_norm: ClassVar[str]
    # The norm of the program of all classes at once; with decay.
    _joint_norm: ClassVar[NormName]
    _joint_decayed_norm: ClassVar[str]
    # True where the program takes sparse inputs as they are.
    _takes_sparse: ClassVar[bool] = False
    _merged: NDArray[np.int64]  # which row of the program each of these is

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Solve the program of inputs `X` (n, D) and labels `y` (n,).

        With K > 2 classes it is one a class, or with `multi_class="joint"` one for all of them.

        Samples whose `sample_weight` (n,) is 0, or whose class weight is, are left out. Positive
        weights do not move the limit; see `LinearLimitClassifier`.

        Raises
        ------
        ValueError
            If a parameter is out of range, `X`, `y` or `sample_weight` is malformed, or there is
            one class only among samples of positive weight.
        NotCertified
            If `on_inseparable="raise"` and the data are not shown separable; it holds the limit.
        """
        settings = self._begin()
        inputs, labels, weights, costs = self._read(X, y, sample_weight)
        weighted = sample_weight is not None
        gates = self._fit_gating(inputs, weights if weighted else None)
        first, self._merged = merge_rows(inputs, labels, gates, weighted=weighted)
        gates = None if gates is None else gates[first]
        merged_costs = np.asarray(np.bincount(self._merged, costs), dtype=np.float64)
        inputs, labels = inputs[first], labels[first]
        if self._joint:
            inputs = _dense(inputs)
            limits, targets = self._solve_jointly(inputs, labels, gates, settings)
        else:
            limits, targets = self._solve(inputs, labels, gates, settings)
        self._judge(limits)
        finite = tuple(
            None if _separates(limit) else self._penalised(inputs, own, gates, merged_costs)
            for limit, own in zip(limits, targets, strict=True)
        )
        zetas: list[Floats] = [
            to_numpy(limit.zeta) if decayed is None else decayed.zeta
            for limit, decayed in zip(limits, finite, strict=True)
        ]
        self.limits_, self.finite_limits_ = limits, finite
        self.zeta_ = np.stack(zetas) if self._against_rest else np.asarray(zetas[0])
        return self

    def _penalised(
        self,
        inputs: Any,
        y: Floats,
        gates: NDArray[np.int64] | None,
        costs: Floats,
    ) -> FitLimit:
        """Return the limit of labels (n,) or shares (n, K) with weight decay.

        It predicts where nothing separates the data.
        """
        joint = y.ndim == 2
        solved = partial(
            solve_fit,
            y=y,
            gates=gates,
            loss="softmax" if joint else "logistic",
            penalty=self.weight_decay,
            norm=self._joint_decayed_norm if joint else self._decayed_norm,
            n_contexts=self._n_contexts(gates),
            sample_weight=costs,
            tol=self.tol,
        )
        n, D = inputs.shape
        if issparse(inputs) and n < D:
            # A ridge lives in the row space, of which products of inputs tell all.
            values, vectors = np.linalg.eigh((inputs @ inputs.T).toarray())
            found = solved(vectors * np.sqrt(np.maximum(values, 0.0)))
            zeta: Floats = np.asarray((inputs.T @ found.dual).T) / self.weight_decay
            found = replace(found, zeta=zeta)
        else:
            found = solved(_dense(inputs))
        if found.status is not Status.SOLVED:
            warnings.warn(
                f"with weight decay: gap {found.gap:.2g}, {found.advice}",
                ConvergenceWarning,
                stacklevel=4,
            )
        return found

    def _solve_jointly(
        self,
        inputs: Floats,
        labels: NDArray[np.int64],
        gates: NDArray[np.int64] | None,
        settings: Settings,
    ) -> tuple[tuple[MarginLimit, ...], tuple[Floats, ...]]:
        """Return the limit of all classes at once, and their shares (n, K)."""
        solving: Solving = {"tol": settings.tol, "max_iterations": settings.max_iterations}
        if self.solver != "interior-point":  # else by the solver of the norm
            solving["solver"] = self.solver
        limit = solve_multiclass_svm(
            inputs, labels, gates, norm=self._joint_norm, n_classes=len(self.classes_),
            n_contexts=self._n_contexts(gates), **solving,
        )  # fmt: skip
        return (limit,), (np.eye(len(self.classes_))[labels],)

    def _begin(self) -> Settings:
        """Check parameters, drop earlier answers and return the solver's settings."""
        check_parameters(self, weight_decay=positive)
        settings = Settings(tol=self.tol, max_iterations=self.max_iterations)
        # A fit that fails leaves no earlier answer behind.
        for name in ("zeta_", "limits_", "finite_limits_"):
            self.__dict__.pop(name, None)
        return settings

    def _read(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None
    ) -> tuple[Floats, NDArray[np.int64], Floats, Floats]:
        """Return inputs, labels 0 .. K-1, sample weights and these times class weights.

        Only rows of positive weight are included; inputs have their constant.
        """
        X = undisguised("X", X)
        refuse_masked("y", y)
        inputs: Floats
        targets: NDArray[Any]
        inputs, targets = self._validated(X, y)
        inputs = self._canonical(inputs)
        require_scale("X", inputs)
        check_classification_targets(targets)
        weights, costs = weigh(targets, sample_weight, self.class_weight)
        rows = np.flatnonzero(costs)
        self._rows, self._n_rows = rows, len(targets)
        self.classes_, labels = np.unique(targets[rows], return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(
                f"`y` must hold at least two classes, got one class, {shown(self.classes_[0])}, "
                "only, among samples of positive weight: a classifier needs two"
            )
        return self._with_constant(inputs[rows]), labels, weights[rows], costs[rows]

    def _solve(
        self,
        inputs: Floats,
        labels: NDArray[np.int64],
        gates: NDArray[np.int64] | None,
        settings: Settings,
    ) -> tuple[tuple[MarginLimit, ...], tuple[Floats, ...]]:
        """Return limits and labels in {-1, +1}: of two classes, or of each against the rest."""
        formulation = self._formulation()
        program = formulation.program(inputs, np.where(labels == 1, 1.0, -1.0), gates)
        programs: tuple[MaxMarginProgram, ...] = (program,)
        if self._several:
            programs = one_vs_rest_programs(program.design, labels)
            solutions = solve_one_vs_rest(
                program.design, labels, solver=self.solver, settings=settings
            )
        else:
            solutions = (solve(program, solver=self.solver, settings=settings),)
        limits = tuple(
            formulation.limit(own, solution, gates)
            for own, solution in zip(programs, solutions, strict=True)
        )
        return limits, tuple(own.y for own in programs)

    def decision_function(self, X: ArrayLike) -> Floats:
        """Return scores of `X` (n, D): (n,), positive for `classes_[1]`; (n, K) for K > 2 classes.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If there are no coefficients yet.
        ValueError
            If `X` is malformed or has another width than the training data.
        """
        check_is_fitted(self)
        X = undisguised("X", X)
        inputs = self._with_constant(self._canonical(self._validated(X, reset=False)))
        gates = self._gates(inputs)
        if self._joint:
            joint: Floats = to_numpy(MulticlassPredictor(self.zeta_)(_dense(inputs), gates))
            return joint
        zetas = self.zeta_ if self._several else self.zeta_[None]
        # The coefficients are those of the limits but where that with weight decay stands in.
        predictors = [
            replace(limit, zeta=zeta).predictor
            for limit, zeta in zip(self.limits_, zetas, strict=True)
            if isinstance(limit, Limit)
        ]
        scores = np.stack([predictor(inputs, gates) for predictor in predictors], axis=1)
        return scores if self._several else scores[:, 0]

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return the classes (n,) of largest score of the rows of `X` (n, D).

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If there are no coefficients yet.
        ValueError
            If `X` is malformed or has another width than the training data.
        """
        scores = self.decision_function(X)
        best = np.argmax(scores, axis=1) if self._several else (scores > 0).astype(np.int64)
        classes: NDArray[Any] = self.classes_[best]
        return classes

    @property
    def limit_(self) -> MarginLimit:
        """The limit of two classes, or of all at once; one-vs-rest there are `limits_`."""
        check_is_fitted(self)
        if self._against_rest:
            raise AttributeError(f"{len(self.classes_)} classes have `limits_`, one each")
        return self.limits_[0]

    @property
    def dual_(self) -> Any:
        """Multipliers (n,) of `classes_[1]` against `classes_[0]`; (K, n) for K > 2.

        Of all classes at once (n, K), of each sample over every other class.
        """
        return self._each(lambda limit: self._of_rows(to_numpy(limit.dual)), np.stack)

    @property
    def dual_gap_(self) -> Any:
        """Certified relative duality gap, a float; (K,) for K > 2; infinite where inseparable."""
        return self._each(lambda limit: limit.gap, np.array)

    @property
    def status_(self) -> Any:
        """Status that the certificate proves, a `Status`; a list for K > 2."""
        return self._each(lambda limit: limit.status, list)

    @property
    def support_(self) -> Any:
        """Row numbers (s,) of the support vectors; a list of such for K > 2."""
        return self._each(lambda limit: self._rows[limit.supported[self._merged]], list)

    @property
    def n_iter_(self) -> Any:
        """Iterations of the solver; (K,) for K > 2."""
        return self._each(lambda limit: limit.iterations, np.array)

    @property
    def _several(self) -> bool:
        return len(self.classes_) > 2

    @property
    def _joint(self) -> bool:
        """True for more than two classes by one program: two have the same one either way."""
        return self._several and self.multi_class == "joint"

    @property
    def _against_rest(self) -> bool:
        """True for more than two classes by a program each."""
        return self._several and not self._joint

    def _each(self, read: Callable[[MarginLimit], Any], gather: Callable[[list[Any]], Any]) -> Any:
        check_is_fitted(self)
        values = [read(limit) for limit in self.limits_]
        return gather(values) if self._against_rest else values[0]

    def _of_rows(self, multipliers: Floats) -> Floats:
        """Return multipliers (n, ...) of all rows passed to `fit`, shared among equal rows."""
        every = np.zeros((self._n_rows, *multipliers.shape[1:]))
        sizes = np.bincount(self._merged).reshape(-1, *[1] * (multipliers.ndim - 1))
        every[self._rows] = (multipliers / sizes)[self._merged]
        return every

    def _validated(self, *data: Any, reset: bool = True) -> Any:
        sparse = "csr" if self._takes_sparse else False
        return validate_data(self, *data, dtype=np.float64, accept_sparse=sparse, reset=reset)

    @staticmethod
    def _canonical(X: Any) -> Any:
        csr = as_csr("X", X)
        return X if csr is None else csr

    def _with_constant(self, X: Any) -> Any:
        if not self.add_constant:
            return X
        ones = np.ones((X.shape[0], 1))
        return hstack([X, csr_array(ones)], format="csr") if issparse(X) else np.hstack([X, ones])

    def _judge(self, limits: tuple[MarginLimit, ...]) -> None:
        """Warn or raise where a limit does not separate its data or misses the tolerance."""
        # One limit alone has no name.
        names = self.classes_ if self._against_rest else ("",)
        failed = {
            str(name): limit
            for name, limit in zip(names, limits, strict=True)
            if not _separates(limit)
        }
        if failed:
            name, first = next(iter(failed.items()))
            if self.on_inseparable == "raise":
                raise NotCertified(first)
            others = f" (and {len(failed) - 1} other classes)" if len(failed) > 1 else ""
            warnings.warn(
                f"{self._said(name, first.status.name)}{others}. Predictions are those with a "
                f"weight decay of {self.weight_decay:g}; on_inseparable='raise' refuses instead.",
                InseparableWarning,
                stacklevel=3,
            )
        for name, limit in zip(names, limits, strict=True):
            if limit.status is Status.INACCURATE:
                warnings.warn(
                    self._said(str(name), f"gap {limit.gap:.2g}, {limit.advice}"),
                    ConvergenceWarning,
                    stacklevel=3,
                )

    def _said(self, name: str, verdict: str) -> str:
        """Return a verdict on one limit; of two classes, or jointly, there is one limit alone."""
        return f"class {name} against the rest: {verdict}" if self._against_rest else verdict

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "zeta_")

    def _fit_gating(self, inputs: Floats, weights: Floats | None) -> NDArray[np.int64] | None:
        """Fit the gating and return the gates of the training inputs."""
        return None

    def _gates(self, inputs: Floats) -> NDArray[np.int64] | None:
        return None

    def _n_contexts(self, gates: NDArray[np.int64] | None) -> int | None:
        """Return the number of contexts of a unit; None of gates."""
        return None

    @abstractmethod
    def _formulation(self) -> Formulation[Limit]:
        """Return the program that this classifier solves, once its gating is fitted."""


def _separates(limit: MarginLimit) -> bool:
    return limit.certificate.proves_separability()


def _dense(inputs: Any) -> Floats:
    """Return inputs as an array, which sparse ones are not."""
    dense: Floats = inputs.toarray() if issparse(inputs) else inputs
    return dense
