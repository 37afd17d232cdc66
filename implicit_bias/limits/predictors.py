"""Limits as functions of new inputs and gates: scores by a call, labels by `predict`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from .._support.doors import door
from .._support.kinds import anything, arrays, series
from .._support.solve import (
    Array,
    ArrayLike,
    DenseArray,
    array_namespace,
    as_float64,
    intake,
    is_torch_array,
    require_columns,
    require_finite,
    require_real,
    require_shape,
    to_numpy,
)
from ..data.arrays import Floats, SparseLike

# Rows and gates of a block of the design: at most 32 MiB of gates. Of thousands of columns few rows
# open few, so that with 10,000 rows of 785 inputs and 3000 columns 256 rows take 0.6 s, 1024 1.4 s.
_ROWS, _ENTRIES = 256, 2**22

A_UNIT = "one row per row of X, one column per unit"


def count_units(name: str, array: Any, n_samples: int) -> int:
    """H of gates or contexts (n_samples, H); a `ValueError` for those that are not, or if H = 0."""
    shape = tuple(getattr(array, "shape", ()))
    if len(shape) != 2 or shape[0] != n_samples or shape[1] == 0:
        raise ValueError(
            f"`{name}` must have shape ({n_samples}, H) with H >= 1, got {shape}: {A_UNIT}"
        )
    return int(shape[1])


class DecisionFunction(ABC):
    """A limit as a function of inputs and gates, which `Limit.predictor` returns.

    A limit in one dimension has scores (n,), whose signs are the labels; one of K classes has
    scores (n, K), whose largest is the class.
    """

    @abstractmethod
    def __call__(self, X: ArrayLike, gates: ArrayLike | None = None) -> DenseArray:
        """Return the scores (n,) or (n, K) of inputs `X` (n, D) under their gates."""

    @door(gates=arrays)
    def decision_function(self, X: SparseLike, gates: ArrayLike | None = None) -> DenseArray:
        """Return the scores of a call, under the name that scikit-learn gives them."""
        return self(X, gates)

    @door(gates=arrays)
    def predict(self, X: SparseLike, gates: ArrayLike | None = None) -> DenseArray:
        """Return the predicted labels (n,): -1 or +1 for one score, else classes from 0.

        A score of exactly 0 is predicted -1, and of several largest scores the first counts.
        """
        scores = self(X, gates)
        xp = array_namespace(scores)
        labels: DenseArray = (
            2 * xp.astype(scores > 0, xp.int64) - 1
            if scores.ndim == 1
            else xp.argmax(scores, axis=1)
        )
        return labels


@dataclass(frozen=True, eq=False)
class LinearPredictor(DecisionFunction):
    """Scores `X zeta^T` of an ungated linear limit on NumPy data.

    Parameters
    ----------
    zeta : (D,) or (K, D) array
        Of one score a sample, or of one a class.
    """

    zeta: Floats

    def __call__(self, X: ArrayLike, gates: ArrayLike | None = None) -> Floats:
        """Return the scores (n,) or (n, K) of `X` (n, D); there are no gates.

        Raises
        ------
        ValueError
            If `X` has another shape.
        """
        inputs = np.asarray(to_numpy(X), dtype=np.float64)
        require_columns("X", inputs, self.zeta.shape[-1])
        return np.asarray(inputs @ self.zeta.T)


def unit_matrices(zeta: Any) -> Any:
    """Return coefficients of K scores as norms take them: contexts in matrices (K, C D)."""
    return zeta.reshape((*zeta.shape[:2], -1)) if zeta.ndim == 4 else zeta


@dataclass(frozen=True, eq=False)
class MulticlassPredictor(DecisionFunction):
    """Scores (n, K) of all classes; the largest names the class.

    Parameters
    ----------
    zeta : (K, D), (H, K, D) or (H, K, C, D) array
        Without gates, one matrix a gate, or one a unit and context.
    """

    zeta: DenseArray

    @door(gates=anything)
    def __call__(self, X: ArrayLike, gates: ArrayLike | None = None) -> DenseArray:
        """Return the scores (n, K), in float64, of `X` (n, D) under gates, or contexts, (n, H).

        Raises
        ------
        TypeError, ValueError
            If shapes disagree, values are not finite, or contexts no integers from 0 to C - 1.
        """
        xp = array_namespace(self.zeta)
        inputs = as_float64(X, like=self.zeta)
        require_columns("X", inputs, int(self.zeta.shape[-1]))
        require_finite("X", inputs)
        if self.zeta.ndim == 2:
            return inputs @ self.zeta.T  # type: ignore[no-any-return]
        if self.zeta.ndim == 4:
            rule = ContextColumns(int(self.zeta.shape[0]), int(self.zeta.shape[2]))
            one_hot = rule(rule.check(gates, inputs))
            by_column = xp.permute_dims(self.zeta, (0, 2, 1, 3))
            weights = by_column.reshape((-1, *by_column.shape[2:]))
            found: DenseArray = sum(
                one_hot[:, j, None] * (inputs @ weights[j].T) for j in range(weights.shape[0])
            )
            return found
        require_real("gates", gates)
        Z = as_float64(gates, like=self.zeta)
        require_shape("gates", Z, (inputs.shape[0], self.zeta.shape[0]), "one gate a column")
        require_finite("gates", Z)
        scores: DenseArray = xp.einsum("nh,hkd,nd->nk", Z, self.zeta, inputs)
        return scores


class Columns(Protocol):
    """Rule that makes gates of one kind the gate columns of a design."""

    def check(self, gates: Array, X: Array) -> Array:
        """Return the gates of the rows of `X`, one row each, of its kind and on its device.

        Raises
        ------
        TypeError, ValueError
            If they are not of this kind.
        """

    def __call__(self, gates: Array) -> Array:
        """Return the gate columns (n, J), in float64, of checked gates."""


@dataclass(frozen=True, eq=False)
class Predictor(DecisionFunction):
    """Scores of a gated linear network: the design of new inputs times the coefficients.

        f(x) = sum_j z_j(x) <zeta[j], x>

    Parameters
    ----------
    zeta : (..., D) float64 array
        Coefficients, the axes but the last numbering the gate columns in C order; NumPy array or
        torch tensor, and inputs must be of the same kind.
    columns : Columns
        From gates to the columns z.
    """

    zeta: DenseArray
    columns: Columns

    @door(gates=arrays)
    def __call__(self, X: ArrayLike, gates: ArrayLike | None = None) -> DenseArray:
        """Return the scores (n,), in float64, of `X` (n, D) under `gates`.

        Raises
        ------
        TypeError
            If gates that have to be integers are not.
        ValueError
            If `X` is not finite, shapes disagree, or a gate is out of range.
        """
        xp = array_namespace(self.zeta)
        inputs = _inputs(X, self.zeta)
        opened = self.columns.check(gates, inputs)
        V = xp.reshape(self.zeta, (-1, inputs.shape[1]))
        step = max(1, min(_ROWS, _ENTRIES // V.shape[0]))
        blocks = [slice(start, start + step) for start in range(0, max(1, inputs.shape[0]), step)]
        scores: DenseArray = xp.concat(
            [_scores(inputs[rows], self.columns(opened[rows]), V) for rows in blocks]
        )
        return scores


@dataclass(frozen=True)
class ContextColumns:
    """Column h C + c is one where unit h is in context c: gates are (n, H) integers in 0 .. C-1."""

    n_units: int
    n_contexts: int

    def check(self, gates: Array, X: Array) -> Array:
        """Return contexts (n, H) as int64, checked against the rows of `X`."""
        require_real("contexts", gates, "integers")
        xp = array_namespace(X)
        contexts = xp.asarray(gates if is_torch_array(X) else to_numpy(gates), device=X.device)
        if not xp.isdtype(contexts.dtype, "integral"):
            raise TypeError(f"`contexts` must hold integers, got dtype {contexts.dtype}")
        require_shape("contexts", contexts, (int(X.shape[0]), self.n_units), A_UNIT)
        # Of an empty array there is no largest entry.
        if contexts.shape[0] and not (
            0 <= int(contexts.min()) and int(contexts.max()) < self.n_contexts
        ):
            raise ValueError(f"`contexts` must lie in 0 .. {self.n_contexts - 1}")
        return xp.astype(contexts, xp.int64)

    def __call__(self, gates: Array) -> Array:
        """Return one-hot contexts (n, H C)."""
        xp = array_namespace(gates)
        known = xp.arange(self.n_contexts, device=gates.device)
        one_hot = xp.astype(gates[:, :, None] == known, xp.float64)
        return xp.reshape(one_hot, (gates.shape[0], self.n_units * self.n_contexts))


@dataclass(frozen=True)
class GateColumns:
    """Column h is the gate of unit h: gates are (n, H) numbers.

    If `binary` they are exactly 0 or 1, or one slope in [0, 1) of leaky units and 1.
    """

    n_units: int
    binary: bool

    def check(self, gates: Array, X: Array) -> Array:
        """Return gates (n, H) as float64, checked against the rows of `X`."""
        xp = array_namespace(X)
        require_real("gates", gates)
        gates = as_float64(gates, like=X)
        require_shape("gates", gates, (int(X.shape[0]), self.n_units), A_UNIT)
        if self.binary and not bool(xp.all((gates == 0) | (gates == 1))):
            least = xp.min(gates)
            if not bool((least > 0) & xp.all((gates == least) | (gates == 1))):
                raise ValueError(
                    "`gates` must be exactly 0 (closed) or 1 (open), booleans included, or one "
                    "slope in [0, 1) of leaky units in place of 0: a soft gate has no place in "
                    "this program; compare it with a threshold first"
                )
        return gates

    def __call__(self, gates: Array) -> Array:
        """Return the gates (n, H) themselves."""
        return gates


def checked_columns(
    name: str, gates: Array, X: Array, n_contexts: int | None = None, *, binary: bool = False
) -> tuple[Array, int]:
    """Return the columns (n, J) of gates (n, H), or of contexts where `n_contexts` is given, and H.

    Raises
    ------
    TypeError, ValueError
        If they are no such numbers, or not one row a row of `X`.
    """
    gates = intake.real_array(name, gates)
    n_units = count_units(name, gates, int(X.shape[0]))
    rule: Columns = GateColumns(n_units, binary)
    if n_contexts is not None:
        rule = ContextColumns(n_units, n_contexts)
    return rule(rule.check(gates, X)), n_units


class ContextPredictor(Predictor):
    """Scores of the gated linear network with the coefficients `zeta`.

        f(x) = sum_h <zeta[h, c_h(x)], x>

    It is called with inputs (n, D) and contexts (n, H), integers in 0 .. C-1.

    Parameters
    ----------
    zeta : (H, C, D) float64 array
        NumPy array or torch tensor; inputs must be of the same kind.

    Examples
    --------
    >>> zeta = np.array([[[1.0, 0.0], [0.0, 1.0]]])  # one unit, two contexts
    >>> predictor = ib.limits.ContextPredictor(zeta)
    >>> X, contexts = np.array([[2.0, -5.0], [2.0, -5.0]]), np.array([[0], [1]])
    >>> predictor(X, contexts).tolist(), predictor.predict(X, contexts).tolist()
    ([2.0, -5.0], [1, -1])
    """

    @door(zeta=series)
    def __init__(self, zeta: Array) -> None:
        if zeta.ndim != 3:
            raise ValueError(f"`zeta` must have shape (H, C, D), got {tuple(zeta.shape)}")
        super().__init__(zeta, ContextColumns(int(zeta.shape[0]), int(zeta.shape[1])))


def _inputs(X: Array, zeta: Array) -> Array:
    require_real("X", X)
    X, n_inputs = as_float64(X, like=zeta), int(zeta.shape[-1])
    reason = f"the predictor was made from {n_inputs} inputs, the constant column included"
    require_columns("X", X, n_inputs, reason)
    require_finite("X", X)
    return X


def _scores(X: Array, Z: Array, V: Array) -> Array:
    xp = array_namespace(X)
    opened = xp.any(Z != 0, axis=0)
    return xp.sum((X @ V[opened].T) * Z[:, opened], axis=1)
