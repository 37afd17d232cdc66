"""The path-lasso solution as a bound on networks: whether it is attained, and a network's ratio."""

from __future__ import annotations

import math
from dataclasses import field
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from ..._support.doors import door
from ..._support.kinds import named_error
from ..._support.solve import (
    Array,
    array_namespace,
    as_float64,
    is_torch_array,
    to_numpy,
)
from ..limit import Limit
from ..predictors import Predictor
from .aligned import aligned_weights, network_value
from .paths import Gates, PathColumns

Indices = NDArray[np.int64]

# Scores of the same data in another order of summation.
_CLOSE = 1e-6


class Network(Protocol):
    """Interface of networks that `PathLimit.bound` takes: scores, and all weights."""

    def __call__(self, X: Array, gates: Array) -> Array:
        """Return the scores (n,) of inputs (n, D) under gates (n, sum of widths)."""

    def parameters(self) -> Any:
        """Return all weight arrays, one a layer."""


def _weighed(name: str, value: Any) -> None:
    """Refuse what has no scores, or no weights."""
    if not callable(value) or not hasattr(value, "parameters") or isinstance(value, type):
        raise named_error(name, "a network, with scores and `parameters()`", value)


class PathLimit(Limit):
    """The path-lasso solution, a bound of what networks reach; `zeta` has shape (P, D).

    Its optimum P* is a lower bound of the value

        value(w) = (||w||^2 / L)^(L/2) / min_n y[n] f_w(x[n])

    of every network of L layers with these gates, whatever its widths and weights. It is a bound,
    *not* the limit of gradient descent. Where `is_tight` proves that a network attains it, none has
    a larger normalised margin; that training goes there is proved where gates act in the first
    hidden layer alone (see `solve_frelu_svm`), and measured elsewhere.

    What follows describes the paths, in NumPy arrays whatever the inputs were.

    Attributes
    ----------
    paths : (P, L-1) int64 array
        Units (i_1, .., i_(L-1)) of one path of each activity on the samples.
    multiplicity : (P,) int64 array
        How many paths are of that kind, by any of which `zeta[p]` may run.
    closed : (n,) bool array
        Samples on which every path is closed: no weights reach them.
    widths : (L-1,) int64 array
        Units of the hidden layers.
    context_sizes : (L-1,) int64 array
        Contexts of each layer's units, all zero if these are gates. With contexts `zeta` has shape
        (P, C, D), C their product, combinations in C order.
    attained : float
        Value of a network that is made of `zeta`, with weights aligned from layer to layer: the
        least value of all networks lies in `[dual_objective, attained]`. Infinite if none is known.

    Examples
    --------
    >>> X, y = np.array([[2.0, 0.0], [0.0, 1.0]]), np.array([1.0, -1.0])
    >>> limit = ib.solve_path_lasso(X, y, [np.eye(2), np.ones((2, 3))])
    >>> limit.paths.shape, limit.multiplicity.tolist(), limit.is_tight()
    ((2, 2), [3, 3], True)
    """

    FORMULATION: ClassVar[str] = "limits.exact.path_lasso:PathLasso"

    paths: Indices
    multiplicity: Indices
    closed: NDArray[np.bool_]
    widths: Indices
    context_sizes: Indices
    attained: float = field(kw_only=True)

    @property
    def predictor(self) -> Predictor:
        """The solution as a function of new inputs and gates, at smallest margin 1."""
        sizes = tuple(int(size) for size in self.context_sizes) if any(self.context_sizes) else None
        return Predictor(self.zeta, PathColumns(self.paths, self._widths, sizes))

    @property
    def depth(self) -> int:
        """L, the layers of weights."""
        return len(self.widths) + 1

    @property
    def _widths(self) -> tuple[int, ...]:
        return tuple(int(width) for width in self.widths)

    @door()
    def is_tight(self, tol: float = 1e-6) -> bool:
        """Return whether a network with value P*, to relative tolerance `tol`, is known.

        P* is attained exactly if the path norms of some optimum are those of aligned layers of
        rank one, `||zeta[p]|| = prod_l q_l(i_l)`, with directions that depend on i_1 alone up to
        signs that edges carry. True is a proof, up to the rounding of float64: the network with
        these norms, `aligned_weights`, has been evaluated on the data. It comes out so at depth 2,
        where the bound is the group lasso of the limit, and where gates act in the first layer
        alone, at every depth. False says that *this* optimum is not of that form, or that the form
        is not looked for (contexts at depths above 2): it does not prove that P* is out of reach.
        """
        if not self.certificate.proves_separability():
            return False
        return self.attained <= self.dual_objective * (1 + tol)

    def aligned_weights(self) -> tuple[Array, ...]:
        """W_1 (H_1, D), .., W_L (1, H_(L-1)) of the network whose value is `attained`.

        Raises
        ------
        ValueError
            If gates are contexts.
        """
        if any(self.context_sizes):
            raise ValueError("aligned weights are known for gates only, this limit has contexts")
        weights = aligned_weights(to_numpy(self.zeta), self.paths, self._widths)
        return tuple(as_float64(layer, like=self.zeta) for layer in weights)

    @door(network=_weighed)
    def bound(self, network: Network, X: Array, gates: Gates) -> float:
        """`P* / value(network)`, in [0, 1]: no network with these gates has a smaller value.

        P* is taken by its certified lower bound. 0 where a margin of the network is not positive.

        Parameters
        ----------
        network : callable
            `network(X, gates)` gives scores; `network.parameters()` all weights of its L layers. A
            torch module is called with tensors of the kind of its weights, anything else with NumPy
            arrays.
        X, gates : array
            The data of this limit, NumPy arrays or tensors; gates also layer by layer.

        Raises
        ------
        ValueError
            If these are not the data of this limit.
        """
        inputs = as_float64(to_numpy(X), like=self.zeta)
        whole = self.predictor.columns.check(gates, inputs)
        y = self._labels(inputs, whole)
        layers = list(network.parameters())
        margins = y * _scores(network, layers[0], inputs, whole)
        squares = sum(float(np.sum(to_numpy(layer).astype(float) ** 2)) for layer in layers)
        value = network_value(squares, margins, self.depth)
        return min(self.dual_objective / value, 1.0) if value > 0 else 1.0

    def _labels(self, X: Array, gates: Array) -> np.ndarray:
        """Return the labels of the limit's own data, all of which its coefficients fit."""
        if not self.certificate.proves_separability():
            raise ValueError(
                f"a bound needs data that paths separate, and this limit is {self.status.name}"
            )
        scores, known = to_numpy(self.predictor(X, gates)), to_numpy(self.margins)
        if scores.shape != known.shape or not np.allclose(
            np.abs(scores), known, rtol=_CLOSE, atol=_CLOSE
        ):
            raise ValueError(
                "`X` and `gates` must be the data of this limit, and its coefficients have other "
                "margins on them: bound networks on the data that the limit was solved on"
            )
        return np.asarray(np.sign(scores))

    @property
    def remark(self) -> str:
        """Row numbers of samples for which every path is closed, in words; empty without any."""
        closed = np.flatnonzero(self.closed)
        if not len(closed):
            return ""
        named = ", ".join(map(str, closed[:10])) + (", .." if len(closed) > 10 else "")
        return f"every path is closed for {len(closed)} samples, by row number: {named}"

    def __repr__(self) -> str:
        if self.remark:
            said = self.remark
        elif self.is_tight():
            said = f"attained by a network, to {self.attained / self.dual_objective - 1:.1g}"
        elif math.isfinite(self.attained):
            said = f"not known to be attained; a network made of it has value {self.attained:.10g}"
        else:
            said = "not known to be attained"
        return (
            f"{super().__repr__()}\n  lower bound of every network of {self.depth} layers with "
            f"these gates, {said}\n  {len(self.paths)} distinct paths of "
            f"{math.prod(self._widths)}"
        )


def _scores(network: Network, weight: Array, X: Array, gates: Array) -> np.ndarray:
    """Return the scores (n,) of a network that takes arrays of the kind of its weights."""
    X, gates = to_numpy(X), to_numpy(gates)
    if is_torch_array(weight):
        xp, place = array_namespace(weight), {"device": weight.device}
        kind = {} if gates.dtype.kind == "i" else {"dtype": weight.dtype}
        X, gates = xp.asarray(X, dtype=weight.dtype, **place), xp.asarray(gates, **kind, **place)
    return np.asarray(to_numpy(network(X, gates)), dtype=float).reshape(-1)
