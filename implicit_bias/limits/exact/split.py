"""The limit of data that are separable in part: a direction, and a finite part beside it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Unpack

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp, softmax

from ..._support.solve import (
    Certificate,
    Factor,
    NormName,
    NormProgram,
    Rows,
    Solution,
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
        Length of Newton's step at `finite`, relative to it: to first order its distance from the
        minimiser.
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
        "  finite part of norm {_finite_norm:.6g}, error about {finite_error:.1g}"
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
    inside, others = rows[split.separable], rows[~split.separable]
    E = Rows(others.reshape(-1, *image.shape)) if len(others) else None
    dual = np.zeros(image.n_rows)
    nothing = Certificate(0.0, 0.0, 0.0, 0.0, 0.0, 1.0, RESOLUTION)
    found = Solution(np.zeros(shape), dual, Status.SOLVED, nothing, settings.tol, 0, 0.0, solver)
    if len(inside):
        direction = NormProgram(Rows(inside.reshape(-1, *image.shape)), norm, E)
        found = solved = solve_norm(direction, solver=solver, settings=settings)
        dual[split.separable], dual[~split.separable] = solved.dual, solved.equality_dual
    finite, error = _finite_part(others, samples[~split.separable])
    return SplitLimit.read(
        found,
        zeta=found.primal.reshape(shape),
        finite=finite.reshape(shape),
        separable=placed(split.separable.astype(float)) > 0,
        dual=placed(dual),
        split_dual=placed(split.multipliers),
        split_bound=split.bound,
        finite_error=error,
        norm=norm.name,
        status=found.status if split.bound <= RESOLUTION else Status.UNDECIDED,
    )


def _finite_part(rows: Floats, sample: NDArray[np.int64]) -> tuple[Floats, float]:
    """Minimiser of the loss of contradictory margins in their span, and Newton's step there."""
    if len(rows) == 0:
        return np.zeros(rows.shape[1]), 0.0
    _, s, W = np.linalg.svd(rows, full_matrices=False)
    basis = W[s > 1e-10 * s[0]]
    A = rows @ basis.T
    known, place = np.unique(sample, return_inverse=True)
    column = np.concatenate([np.arange(count) for count in np.bincount(place)])

    def logits(u: Floats) -> Floats:
        """Minus the margins of each sample, behind a 0 for its own class."""
        table = np.full((len(known), 1 + int(column.max()) + 1), -np.inf)
        table[:, 0], table[place, 1 + column] = 0.0, -(A @ u)
        return table

    def derivatives(u: Floats) -> tuple[Floats, Floats]:
        p = softmax(logits(u), axis=1)[place, 1 + column]
        means = np.zeros((len(known), A.shape[1]))
        np.add.at(means, place, p[:, None] * A)
        return -A.T @ p, (A * p[:, None]).T @ A - means.T @ means

    u, _ = damped_newton(
        lambda u: float(logsumexp(logits(u), axis=1).sum()), derivatives, np.zeros(A.shape[1])
    )
    gradient, hessian = derivatives(u)
    length = float(np.linalg.norm(Factor(hessian).solve(gradient)))
    return u @ basis, length / max(float(np.linalg.norm(u)), 1.0)
