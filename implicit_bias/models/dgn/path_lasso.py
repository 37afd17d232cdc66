"""The path group lasso: a certified lower bound of every deep network with given gates."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self, Unpack

import numpy as np

from ..._solve import (
    Array,
    GatedDesign,
    MaxMarginProgram,
    NotCertified,
    Solution,
    array_namespace,
    as_float64,
    require_memory,
    to_numpy,
)
from ...limits.formulation import Formulation, Solving, labelled, real_data, solve_limit
from ...limits.limit import Limit
from ...limits.predictors import Predictor
from .aligned import aligned_weights, forward, network_value
from .paths import Gates, Layers, PathColumns, Paths, distinct_paths, gate_layers

if TYPE_CHECKING:
    import cvxpy

__all__ = ["PathLasso", "PathLimit", "solve_path_lasso"]

# Scores of the same data in another order of summation.
_CLOSE = 1e-6


class Network(Protocol):
    """What `PathLimit.bound` asks of a network: its scores, and all its weights."""

    def __call__(self, X: Array, gates: Array) -> Array: ...
    def parameters(self) -> Any: ...


@dataclass(frozen=True, eq=False, repr=False)
class PathLimit(Limit):
    """The path-lasso solution, a bound of what networks reach; `zeta` has shape (P, D).

    Its optimum P* is a lower bound of the value

        value(w) = (||w||^2 / L)^(L/2) / min_n y[n] f_w(x[n])

    of every network of L layers with these gates, whatever its widths and weights. It is *not* the
    limit of gradient descent, unless `is_tight` proves that a network attains it.

    Attributes
    ----------
    paths : (P, L-1) int64 array
        Units (i_1, .., i_(L-1)) of one path of each kind that the samples tell apart.
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
    """

    paths: Array
    multiplicity: Array
    closed: Array
    widths: Array
    context_sizes: Array
    attained: float

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

    def is_tight(self, tol: float = 1e-6) -> bool:
        """Whether a network is known whose value is P*, to the relative tolerance `tol`.

        P* is attained exactly if the path norms of some optimum are those of aligned layers of
        rank one, `||zeta[p]|| = prod_l q_l(i_l)`, with directions that depend on i_1 alone up to
        signs that edges carry. True is a proof: the network with these norms has been evaluated on
        the data, `aligned_weights`. It comes out so at depth 2, where the bound is the limit's
        group lasso, and where gates act in the first layer alone, at every depth. False says that
        *this* optimum is not of that form, or that its form is not looked for (contexts in more
        than two layers of weights): it does not prove that P* is out of reach.
        """
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

    def bound(self, network: Network, X: Array, gates: Array) -> float:
        """`P* / value(network)`, in [0, 1]: no network with these gates has a smaller value.

        P* is taken by its certified lower bound. 0 where a margin of the network is not positive.

        Parameters
        ----------
        network : callable
            `network(X, gates)` gives scores; `network.parameters()` all weights of its L layers.
        X, gates : array
            The data of this limit, as the network takes them.

        Raises
        ------
        ValueError
            If these are not the data of this limit.
        """
        y = self._labels(X, gates)
        margins = y * np.asarray(to_numpy(network(X, gates)), dtype=float).reshape(-1)
        weights = (to_numpy(layer).astype(float) for layer in network.parameters())
        squares = sum(float(np.sum(layer**2)) for layer in weights)
        value = network_value(squares, margins, self.depth)
        return min(self.dual_objective / value, 1.0) if value > 0 else 1.0

    def _labels(self, X: Array, gates: Gates) -> np.ndarray:
        """Labels of the limit's own data, of which its coefficients classify all rightly."""
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

    def require(self) -> Self:
        """This limit if it is `SOLVED`; raises `NotCertified`, closed samples by number."""
        try:
            return super().require()
        except NotCertified as error:
            if np.any(to_numpy(self.closed)):
                error.add_note(self._closed_samples())
            raise

    def _closed_samples(self) -> str:
        closed = np.flatnonzero(to_numpy(self.closed))
        named = ", ".join(map(str, closed[:10])) + (", .." if len(closed) > 10 else "")
        return f"every path is closed for {len(closed)} samples, by row number: {named}"

    def _record(self) -> dict[str, Any]:
        return {**super()._record(), "attained": self.attained}

    @classmethod
    def _fields(cls, record: dict[str, Any]) -> dict[str, Any]:
        return {**super()._fields(record), "attained": record["attained"]}

    def __repr__(self) -> str:
        if np.any(to_numpy(self.closed)):
            said = self._closed_samples()
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


@dataclass(frozen=True)
class PathLasso(Formulation[PathLimit]):
    """The group lasso over the paths of a deep network with given gates.

        minimise  sum_p ||zeta[p]||   s.t.   y[n] sum_p A_p(n) <zeta[p], x[n]> >= 1,
        A_p(n) = prod_l G_l(n, i_l)

    Gates are one array (n, H_l) a hidden layer, of any real numbers, or one array (n, sum widths).
    With contexts a path has a block `zeta[p, c]` for every combination c of contexts of its units,
    and Frobenius norms.

    Parameters
    ----------
    widths : tuple of int, optional
        Units of each hidden layer, to divide one array of gates; without them it is one layer.
    contexts : bool
        Whether gates are contexts, integers from 0.

    Notes
    -----
    If all margins of the network `f(x) = W_L G_(L-1)(x) W_(L-1) .. G_1(x) W_1 x` are at least 1,

        (||w||^2 / L)^(L/2)  >=  prod_l ||W_l||_F  >=  sum_p ||zeta_p||  >=  P*:

    means; Cauchy-Schwarz, layer by layer, on `a_l = |W_l| a_(l-1)`, `a_1 = (||W_1[i]||)_i`; and
    the feasibility of `zeta_p = W_L[i_(L-1)] .. W_2[i_2, i_1] W_1[i_1]`. This is a bound, equal to
    the least value only where `PathLimit.is_tight` proves it. Reformulations that make deep
    networks convex (T. Ergen, M. Pilanci, "Path regularization"; Y. Wang, T. Ergen, M. Pilanci,
    "Parallel deep neural networks have zero duality gap") change the regulariser to such a path
    norm; gradient descent's own is the l2 norm of the weights, whose optimum is not smaller.
    """

    name: ClassVar[str] = "path lasso"

    widths: tuple[int, ...] | None = None
    contexts: bool = False

    def program(self, X: Array, y: Array, gates: Gates | None = None) -> MaxMarginProgram:
        """Group p of its design is a path, one for all that no sample tells apart.

        Raises
        ------
        TypeError, ValueError
            As `gate_layers` and `distinct_paths` say; if labels are not -1 and +1.
        """
        X, y, layers = self._checked(X, y, gates)
        return _program(X, y, layers, self._paths(layers))

    def limit(
        self, program: MaxMarginProgram, solution: Solution, gates: Gates | None = None
    ) -> PathLimit:
        """Read a solution as coefficients (P, D), or (P, C, D) behind contexts."""
        layers = self._layers(gates, program.n_samples)
        paths = self._paths(layers)
        X = program.design.X
        n_inputs = int(X.shape[1])
        blocks = () if layers.sizes is None else (layers.n_columns,)
        own = {
            "paths": paths.units,
            "multiplicity": paths.multiplicity,
            "closed": _closed(layers, paths),
            "widths": np.array(layers.widths),
            "context_sizes": np.array(layers.sizes or np.zeros(len(layers.widths), dtype=int)),
            "attained": _attained(program, solution, layers, paths),
        }
        return PathLimit.from_solution(
            program, solution, (len(paths.units), *blocks, n_inputs), **own
        )

    def literal(self, X: Array, y: Array, gates: Gates | None = None) -> cvxpy.Problem:
        """Minimise over all paths, equal and closed ones too; "zeta" has their blocks as rows."""
        import cvxpy as cp

        X, y, layers = self._checked(X, y, gates)
        X, y = to_numpy(X), to_numpy(y)
        n_paths, width = math.prod(layers.widths), layers.n_columns
        require_memory(
            n_paths * width * (X.size + len(X)), f"{n_paths:,} paths", "use `solve_path_lasso`"
        )
        units = np.array(list(np.ndindex(*layers.widths)))
        Z = PathColumns(units, layers.widths, layers.sizes)(np.hstack(layers.gates))
        zeta = cp.Variable((n_paths * width, X.shape[1]), name="zeta")
        scores = cp.sum(cp.multiply(Z, X @ zeta.T), axis=1)  # sum_p A_p(n) <zeta[p], x[n]>
        blocks = [zeta[p * width : (p + 1) * width, :] for p in range(n_paths)]
        return cp.Problem(
            cp.Minimize(cp.sum([cp.norm(block, "fro") for block in blocks])),
            [labelled(cp.multiply(y, scores) >= 1, "margins")],
        )

    def _checked(self, X: Array, y: Array, gates: Gates | None) -> tuple[Array, Array, Layers]:
        X, y = real_data(X, y)
        if X.ndim != 2 or X.shape[0] == 0:
            raise ValueError(f"`X` must have shape (n, D) with n, D >= 1, got {tuple(X.shape)}")
        return X, y, self._layers(gates, int(X.shape[0]))

    def _layers(self, gates: Gates | None, n_samples: int) -> Layers:
        if gates is None:
            raise ValueError("`gates` must hold an array (n, H) a hidden layer, got None")
        return gate_layers(gates, n_samples, widths=self.widths, contexts=self.contexts)

    def _paths(self, layers: Layers) -> Paths:
        """Distinct paths, or the first of all if every one is closed."""
        paths = distinct_paths(layers)
        if len(paths.units) > 0:
            return paths
        units = np.zeros((1, len(layers.widths)), dtype=np.int64)
        closed = np.zeros((1, len(layers.gates[0])))
        return Paths(units, np.array([math.prod(layers.widths)]), closed)


def _program(X: Array, y: Array, layers: Layers, paths: Paths) -> MaxMarginProgram:
    width = layers.n_columns
    columns = PathColumns(paths.units, layers.widths, layers.sizes)(np.hstack(layers.gates))
    owner = array_namespace(X).arange(len(paths.units) * width, device=X.device) // width
    design = GatedDesign(X=X, Z=as_float64(columns, like=X), group=owner)
    return MaxMarginProgram(design=design, y=y)


def _closed(layers: Layers, paths: Paths) -> np.ndarray:
    """(n,) booleans: samples on which every path is closed, which contexts never are."""
    if layers.sizes is not None:
        return np.zeros(len(layers.gates[0]), dtype=bool)
    return np.asarray(~np.any(paths.activity != 0, axis=0))


def _attained(program: MaxMarginProgram, solution: Solution, layers: Layers, paths: Paths) -> float:
    """The value of the aligned network of these coefficients; infinite if there is none."""
    if not solution.certificate.proves_separability():
        return math.inf
    depth = len(layers.widths) + 1
    if layers.sizes is not None:
        return solution.certificate.objective if depth == 2 else math.inf
    weights = aligned_weights(to_numpy(solution.primal), paths.units, layers.widths)
    scores = forward(weights, to_numpy(program.design.X), layers.gates)
    squares = sum(float(np.sum(layer**2)) for layer in weights)
    return network_value(squares, to_numpy(program.y) * scores, depth)


def solve_path_lasso(
    X: Array,
    y: Array,
    gates: Gates,
    *,
    widths: Sequence[int] | None = None,
    contexts: bool = False,
    **solving: Unpack[Solving],
) -> PathLimit:
    """The certified lower bound of the value of every deep network with these gates.

    Parameters
    ----------
    X, y, gates, widths, contexts
        As in `PathLasso`, whose `program` says what they raise.
    **solving
        `solver`, `tol`, `max_iterations`, `progress`: see `Solving`.

    Returns
    -------
    PathLimit
        With its certificate: a bound of the value, and the limit of training only where
        `is_tight` proves it. Where no paths separate the data its status is `NOT_SEPARABLE`, and
        `closed` names samples that no path reaches.

    Examples
    --------
    >>> import numpy as np
    >>> X, y = np.array([[3.0, 4.0], [0.0, -2.0]]), np.array([1.0, -1.0])
    >>> limit = solve_path_lasso(X, y, [np.eye(2), np.ones((2, 3))])
    >>> limit.status.name, round(limit.objective, 7), limit.is_tight()
    ('SOLVED', 0.7, True)
    """
    formulation = PathLasso(None if widths is None else tuple(widths), contexts)
    return solve_limit(formulation, X, y, gates, **solving)
