"""The path group lasso: a certified lower bound of every deep network with given gates."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, ClassVar, Self, Unpack

import numpy as np

from ..._support.doors import door, parameters
from ..._support.solve import (
    Array,
    ArrayLike,
    GatedDesign,
    MaxMarginProgram,
    Solution,
    array_namespace,
    as_float64,
    require_inputs,
    require_memory,
    to_numpy,
)
from ..formulation import Formulation, Solving, real_data, solve_limit
from ..limit import Limit
from ..literal import constant, max_margin
from .aligned import aligned_weights, forward, network_value
from .path_limit import PathLimit
from .paths import Gates, Layers, PathColumns, Paths, distinct_paths, gate_layers

if TYPE_CHECKING:
    import cvxpy


@parameters()
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

    Examples
    --------
    >>> X, y = np.array([[2.0, 0.0], [0.0, 1.0]]), np.array([1.0, -1.0])
    >>> limit = ib.limits.solve_limit(ib.programs.PathLasso(), X, y, [np.eye(2), np.ones((2, 3))])
    >>> round(limit.objective, 6)
    1.5
    """

    name: ClassVar[str] = "path lasso"

    widths: tuple[int, ...] | None = None
    contexts: bool = False

    @classmethod
    @door()
    def of(cls, limit: Limit) -> Self:
        """Return the formulation of the widths, and of the contexts or gates, of a `PathLimit`."""
        assert isinstance(limit, PathLimit)
        return cls(tuple(int(width) for width in limit.widths), bool(limit.context_sizes.any()))

    @door()
    def program(self, X: Array, y: Array, gates: Gates | None = None) -> MaxMarginProgram:
        """Build the program with one group a path, merging paths equal on all samples.

        Raises
        ------
        TypeError, ValueError
            As `gate_layers` and `distinct_paths` say; if labels are not -1 and +1.
        """
        X, y, layers = self._checked(X, y, gates)
        return _program(X, y, layers, self._paths(layers))

    @door()
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

    @door()
    def literal(self, X: Array, y: Array, gates: Gates | None = None) -> cvxpy.Problem:
        """State the program over all paths, without merging or dropping any.

        The rows of its variable zeta are the blocks of the paths, in the order of their units.

        Parameters
        ----------
        X, y, gates
            As `program` takes them.

        Raises
        ------
        MissingExtra
            Without cvxpy.
        TypeError, ValueError
            As `program`; if memory cannot hold the blocks of all paths on all samples.
        """
        X, y, layers = self._checked(X, y, gates)
        n_paths = math.prod(layers.widths)
        require_memory(
            n_paths * layers.n_columns * int(X.shape[0]) * (int(X.shape[1]) + 1),
            f"the program of {n_paths:,} paths in cvxpy",
            "take fewer units or samples; `solve_path_lasso` merges paths that are equal "
            "on all samples, and may solve it",
        )
        return super().literal(X, y, gates)

    def _literal(
        self, cp: ModuleType, program: MaxMarginProgram, gates: Gates | None
    ) -> cvxpy.Problem:
        X, layers = constant(program.design.X, "X"), self._layers(gates, program.n_samples)
        n_paths, width = math.prod(layers.widths), layers.n_columns
        units = np.indices(layers.widths).reshape(len(layers.widths), n_paths).T
        columns = PathColumns(units, layers.widths, layers.sizes)
        A = constant(columns(np.hstack(layers.gates)), "A")
        zeta = cp.Variable((n_paths * width, X.shape[1]), name="zeta")
        scores = cp.sum(cp.multiply(A, X @ zeta.T), axis=1)  # sum_p A_p(n) <zeta[p], x[n]>
        blocks = cp.reshape(zeta, (n_paths, width * X.shape[1]), order="C")  # a row a path
        norms = cp.norm(blocks if width > 1 else zeta, 2, axis=1)
        return max_margin(cp.sum(norms), program.y, scores)

    def _checked(self, X: Array, y: Array, gates: Gates | None) -> tuple[Array, Array, Layers]:
        X, y = real_data(X, y)
        require_inputs(X)
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
    """Return the samples (n,) on which every path is closed; with contexts there are none."""
    if layers.sizes is not None:
        return np.zeros(len(layers.gates[0]), dtype=bool)
    return np.asarray(~np.any(paths.activity != 0, axis=0))


def _attained(program: MaxMarginProgram, solution: Solution, layers: Layers, paths: Paths) -> float:
    """Return the value of the aligned network of these coefficients; infinite without one."""
    if not solution.certificate.proves_separability():
        return math.inf
    depth = len(layers.widths) + 1
    if layers.sizes is not None:
        return solution.certificate.objective if depth == 2 else math.inf
    weights = aligned_weights(to_numpy(solution.primal), paths.units, layers.widths)
    scores = forward(weights, to_numpy(program.design.X), layers.gates)
    squares = sum(float(np.sum(layer**2)) for layer in weights)
    return network_value(squares, to_numpy(program.y) * scores, depth)


@door()
def solve_path_lasso(
    X: ArrayLike,
    y: ArrayLike,
    gates: Gates,
    *,
    widths: Sequence[int] | None = None,
    contexts: bool = False,
    **solving: Unpack[Solving],
) -> PathLimit:
    """Solve the path lasso, a lower bound of the value of every deep network with these gates.

    Parameters
    ----------
    X : (n, D) real array
        NumPy array or torch tensor; a bias is a constant column.
    y : (n,) array
        Labels in {-1, +1}.
    gates : sequence of (n, H_l) arrays, or one array (n, sum of widths)
        Gates of the hidden layers, real numbers; integers from 0 if `contexts`.
    widths : sequence of int, optional
        Units of the hidden layers, if `gates` is one array; without them it is one layer.
    contexts : bool
        Whether `gates` holds contexts.
    **solving
        `solver`, `tol`, `max_iterations`, `progress`, `threads`: see `Solving`.

    Returns
    -------
    PathLimit
        With its certificate: a bound of the value, not the limit of training; `PathLimit` says
        when they are the same. Where no paths separate the data its status is `NOT_SEPARABLE`, and
        `closed` names samples that no path reaches.

    Examples
    --------
    >>> X, y = np.array([[3.0, 4.0], [0.0, -2.0]]), np.array([1.0, -1.0])
    >>> limit = ib.solve_path_lasso(X, y, [np.eye(2), np.ones((2, 3))])
    >>> limit.status.name, round(limit.objective, 7), limit.is_tight()
    ('SOLVED', 0.7, True)
    """
    formulation = PathLasso(None if widths is None else tuple(widths), contexts)
    return solve_limit(formulation, X, y, gates, **solving)
