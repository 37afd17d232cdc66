"""The limit of data that are separable in part: a direction, and a finite part beside it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Unpack

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp, softmax

from ..._support.solve import (
    Certificate,
    Norm,
    NormName,
    NormProgram,
    Rows,
    Settings,
    Solution,
    SolverName,
    Status,
    damped_newton,
    dense_rows,
    solve_norm,
    solver_of,
    split_rows,
)
from ...data.arrays import Floats
from ..formulation import Solving, chosen
from ..predictors import LinearPredictor, MulticlassPredictor
from ..result import MaxMarginResult, how_many

RESOLUTION = 2.0**-52
# Singular values of rows below this share of the largest are those of dependent ones.
DEPENDENT = 1e-10
# What limits say where nothing separates, with the name of their function.
WAY_OUT = (
    Status.NOT_SEPARABLE.advice
    + '. Or take the limit that such data have: {}(..., inseparable="split") returns the direction '
    "of what can be separated, and a finite part beside it"
)


class SplitLimit(MaxMarginResult):
    """The limit of gradient descent on data of which a part can be separated.

    Margins are split: some can grow together, the others contradict each other. The weights go to
    `t zeta + finite`, t growing without end: `zeta` has margins of at least 1 at the former and
    exactly 0 at the others, `finite` minimises the loss of the others. There is a margin a sample
    (n,) with labels -1 and +1, and one a pair (n, K) of a sample and another class than its own
    with K classes. Arrays are NumPy's.

    Attributes
    ----------
    zeta : (D,), (K, D) or (H, K, D) array
        The direction, of the least norm; zeros if no margin can be positive.
    finite : array of the same shape
        The finite part, in the span of what contradicts each other; zeros without any.
    separable : (n,) or (n, K) boolean array
        Samples or pairs that can be separated.
    dual : array of the shape of `separable`
        Multipliers of the direction: not negative where separable, of any sign at the others.
    split_dual : array of the shape of `separable`
        Multipliers, positive exactly at margins that are not separable, under which they cancel.
    split_bound : float
        What is left of that sum relative to its terms; a proof if at most 2^-52.
    finite_error : float
        A bound of the distance of `finite` from the minimiser, by gradient and lowest curvature,
        relative to `finite` where that is longer than 1.
    norm : str
        Norm of the direction. Training is known to go there for "l2".
    status : Status
        SOLVED if the split is proved and the direction's gap within `tol`.
    certificate : Certificate
        Bounds of the direction's norm.
    tol, solver, iterations, seconds
        The gap asked for and how the solve went.

    Examples
    --------
    >>> X, y = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 2.0]]), [1, 1, -1]
    >>> limit = ib.solve_linear_svm(X, y, inseparable="split")
    >>> limit.separable.tolist(), limit.zeta.round(6).tolist()
    ([True, False, False], [1.0, 0.0])
    """

    RECORD = (*MaxMarginResult.RECORD, "n_classes", "n_separable", "n_contradictory")
    BRIEF = (
        "{status.name}, {norm}, coefficients {_sizes}\n"
        "  {n_separable} separable {_kind} and {n_contradictory} others, split proved to "
        "{split_bound:.2g}\n"
        "  direction in [{dual_objective:.10g}, {objective:.10g}], gap {gap:.2g} (tol {tol:.2g})\n"
        "  finite part of norm {_finite_norm:.6g}, error at most {finite_error:.1g}"
    )

    zeta: Floats
    dual: Floats
    finite: Floats
    separable: NDArray[np.bool_]
    split_dual: Floats
    split_bound: float
    finite_error: float
    norm: NormName

    n_separable = how_many("separable", "Number of margins that can be separated.")

    @property
    def n_classes(self) -> int:
        """Number K of classes."""
        return 2 if self._is_binary else self.separable.shape[1]

    @property
    def n_contradictory(self) -> int:
        """Number of margins that contradict each other."""
        return len(self.separable) * (self.n_classes - 1) - self.n_separable

    @property
    def _finite_norm(self) -> float:
        """Length of the finite part."""
        return float(np.linalg.norm(self.finite))

    @property
    def _kind(self) -> str:
        return "samples" if self._is_binary else "pairs"

    @property
    def predictor(self) -> LinearPredictor | MulticlassPredictor:
        """Scores (n,) or (n, K) of the direction; ties of what contradicts each other stay ties."""
        return LinearPredictor(self.zeta) if self._is_binary else MulticlassPredictor(self.zeta)

    @property
    def _is_binary(self) -> bool:
        return self.separable.ndim == 1

    def _fault(self) -> str:
        arrays = (self.zeta, self.finite, self.dual, self.split_dual)
        if self.finite.shape != self.zeta.shape or self.dual.shape != self.separable.shape:
            return "its arrays are not of one number of samples and classes"
        return "" if all(np.isfinite(one).all() for one in arrays) else "an array is not finite"


def solve_split(
    program: NormProgram,
    samples: NDArray[np.int64],
    shape: tuple[int, ...],
    placed: Callable[[Floats], Floats],
    **solving: Unpack[Solving],
) -> SplitLimit:
    """Solve for the limit of the margins of a program, some of which contradict each other.

    Parameters
    ----------
    program : NormProgram
        All margins, whether or not they can be separated.
    samples : (m,) ints
        Sample of each margin.
    shape : tuple of int
        Of the coefficients that are returned.
    placed : callable
        Puts an array (m,) of the margins into the shape that the limit has it in.
    **solving
        See `Solving`.

    Raises
    ------
    ValueError
        If the solver does not take the program, or memory cannot hold it.
    """
    image, norm = program.image, program.norm
    rows = dense_rows(image)
    split = split_rows(Rows(rows.reshape(-1, *image.shape)))
    solver, settings = chosen(**({"solver": solver_of(norm)} | solving))  # type: ignore[arg-type]
    found, dual = solve_direction(
        rows.reshape(-1, *image.shape), split.separable, norm, solver=solver, settings=settings
    )
    others = rows[~split.separable]
    loss = SpanLoss(others, samples[~split.separable])
    u = loss.minimiser()
    return SplitLimit.read(
        found,
        zeta=found.primal.reshape(shape),
        finite=loss.weights_of(u).reshape(shape),
        separable=placed(split.separable.astype(float)) > 0,
        dual=placed(dual),
        split_dual=placed(split.multipliers),
        split_bound=split.bound,
        finite_error=loss.error(u),
        norm=norm.name,
        status=found.status if split.bound <= RESOLUTION else Status.UNDECIDED,
    )


def solve_direction(
    rows: Floats,
    separable: NDArray[np.bool_],
    norm: Norm,
    *,
    solver: SolverName,
    settings: Settings,
) -> tuple[Solution, Floats]:
    """Solve for the direction of the margins that are separable, 0 at the others.

    Parameters
    ----------
    rows : (m, ...) array
        The rows of all margins.
    separable : (m,) boolean array
    norm : Norm
    solver, settings
        Of `solve_norm`.

    Returns
    -------
    Solution, (m,) array
        The solution, and the multipliers of all margins: of any sign where these are 0.
    """
    dual = np.zeros(len(rows))
    if not separable.any():
        return no_direction(rows, settings.tol, solver), dual
    E = None if separable.all() else Rows(rows[~separable])
    program = NormProgram(Rows(rows[separable]), norm, E)
    found = solve_norm(program, solver=solver, settings=settings)
    dual[separable], dual[~separable] = found.dual, found.equality_dual
    return found, dual


def no_direction(rows: Floats, tol: float, solver: str) -> Solution:
    """Return the answer where no margin can be positive: weights of 0, with an optimum of 0."""
    nothing = Certificate(0.0, 0.0, 0.0, 0.0, 0.0, 1.0, RESOLUTION)
    zeros = np.zeros(rows.shape[1:])
    return Solution(zeros, np.zeros(len(rows)), Status.SOLVED, nothing, tol, 0, 0.0, solver)


class SpanLoss:
    r"""The loss of margins that contradict each other, as a function on the span of their rows.

    .. math:: \sum_n w_n \Bigl(\log\bigl(1 + \sum_k e^{-m_{nk}}\bigr) + \sum_k p_{nk} m_{nk}\Bigr)

    There it is strictly convex, and has one minimiser. Arguments `u` are coordinates in an
    orthonormal basis of the span.

    Parameters
    ----------
    rows : (m, size) array
        Their values at coefficients are the margins m_nk. Those of one sample differ by no more
        than the longest of them, as those of classes do.
    samples : (m,) ints
        Sample n of each margin, ascending.
    shares : (m,) array, optional
        Soft labels p_nk of other classes than the first one; 0 by default.
    weights : (m,) array, optional
        Weight w_n of the sample of each margin; 1 by default.
    """

    def __init__(
        self,
        rows: Floats,
        samples: NDArray[np.int64],
        shares: Floats | None = None,
        weights: Floats | None = None,
    ) -> None:
        _, s, W = np.linalg.svd(rows, full_matrices=False)
        self.basis: Floats = W[s > DEPENDENT * s[:1]]
        self._A = rows @ self.basis.T
        known, first, self._place = np.unique(samples, return_index=True, return_inverse=True)
        self._column = 1 + np.arange(len(rows)) - first[self._place]
        self._shape = len(known), 1 + int(self._column.max(initial=0))
        weights = np.ones(len(rows)) if weights is None else weights
        self._weights, self._each = weights[first], weights
        self._shares = np.zeros(len(rows)) if shares is None else shares
        # Logits part by no more than this a unit of length.
        self._longest = float(np.linalg.norm(rows, axis=1).max(initial=0.0))

    def weights_of(self, u: Floats) -> Floats:
        """Return the coefficients (size,)."""
        return np.asarray(u @ self.basis)

    def value(self, u: Floats) -> float:
        """Return the loss."""
        linear = self._each * self._shares @ (self._A @ u)
        return float(self._weights @ logsumexp(self._logits(u), axis=1) + linear)

    def derivatives(self, u: Floats) -> tuple[Floats, Floats]:
        """Return gradient (r,) and Hessian (r, r)."""
        A, q = self._A, softmax(self._logits(u), axis=1)[self._place, self._column]
        means = np.zeros((self._shape[0], A.shape[1]))
        np.add.at(means, self._place, q[:, None] * A)
        curved = (A * (self._each * q)[:, None]).T @ A - (means.T * self._weights) @ means
        return -A.T @ (self._each * (q - self._shares)), curved

    def minimiser(self) -> Floats:
        """Return the minimiser (r,), by Newton's method."""
        start = np.zeros(len(self.basis))
        return damped_newton(self.value, self.derivatives, start)[0] if len(start) else start

    def error(self, u: Floats) -> float:
        """Bound the distance of the minimiser from u, relative to u where that is above 1."""
        if len(u) == 0:
            return 0.0
        gradient, hessian = self.derivatives(u)
        size, lowest = float(np.linalg.norm(gradient)), float(np.linalg.eigvalsh(hessian)[0])
        bound = distance_bound(size, lowest, self._longest)
        return bound / max(float(np.linalg.norm(u)), 1.0)

    def _logits(self, u: Floats) -> Floats:
        """Minus the margins of each sample, behind a 0 for its first class."""
        table = np.full(self._shape, -np.inf)
        table[:, 0], table[self._place, self._column] = 0.0, -(self._A @ u)
        return table


def distance_bound(gradient: float, curvature: float, decay: float) -> float:
    r"""Bound the distance of a minimiser: `-log(1 - c g / mu) / c`, or inf.

    Along a segment of length d the second derivative of log-sum-exp falls no faster than e^{-c d}:
    its third is E[(h - Eh)^2 (k - Ek)], at most the range of k times the second. So the slope
    towards the minimiser at distance d is at least mu (1 - e^{-c d}) / c, and at most g.
    """
    share = decay * gradient / curvature if curvature > 0 else math.inf
    return -math.log1p(-share) / decay if share < 1 else math.inf
