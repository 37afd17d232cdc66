"""The limit of classes that are separable in part: a direction, and a finite part beside it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp, softmax

from .._doors import door, result
from .._kinds import anything
from .._solve import (
    ArrayLike,
    Certificate,
    Norm,
    NormName,
    NormProgram,
    RelativeMargins,
    Rows,
    Status,
    dense_rows,
    solve_norm,
    solver_of,
    split_rows,
)
from ..data.arrays import Floats
from .formulation import Solving, chosen
from .joint_margin import JointMargin, class_labels, class_matrix
from .multiclass import MulticlassPredictor
from .result import MaxMarginResult

__all__ = ["SplitLimit", "solve_split_svm"]

# Newton's steps to the finite part, and the length, relative to the whole, at which they end.
STEPS, ENOUGH = 200, 1e-12
RESOLUTION = 2.0**-52


@result()
@dataclass(frozen=True, eq=False, repr=False)
class SplitLimit(MaxMarginResult):
    """The limit of gradient descent on classes of which some pairs can be separated.

    Pairs (n, k) of a sample and another class than its own are split: some can have margins that
    grow together, the others contradict each other. The weights go to `t zeta + finite`, t growing
    without end: `zeta` has margins of at least 1 at the former and exactly 0 at the others,
    `finite` minimises the loss of the others. Arrays are NumPy's.

    Attributes
    ----------
    zeta : (K, D) or (H, K, D) array
        The direction, of the least norm; zeros if no pair can be separated.
    finite : array of the same shape
        The finite part, in the span of the pairs that contradict each other; zeros without any.
    separable : (n, K) boolean array
        Pairs that can be separated.
    dual : (n, K) array
        Multipliers of the direction: not negative at separable pairs, of any sign at the others.
    split_dual : (n, K) array
        Multipliers, positive exactly at pairs that are not separable, under which they cancel.
    split_bound : float
        What is left of that sum relative to its terms; a proof if at most 2^-52.
    finite_error : float
        Length of the last Newton step, relative to `finite`: to first order its distance from the
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
    >>> X, labels = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 2.0]]), [0, 0, 1]
    >>> limit = ib.limits.solve_split_svm(X, labels)
    >>> limit.separable[:, 1].tolist(), limit.zeta.round(6).tolist()
    ([True, False, False], [[0.5, 0.0], [-0.5, 0.0]])
    """

    zeta: Floats
    finite: Floats
    separable: NDArray[np.bool_]
    dual: Floats
    split_dual: Floats
    split_bound: float
    finite_error: float
    norm: NormName
    status: Status
    certificate: Certificate
    tol: float
    solver: str
    iterations: int
    seconds: float

    @property
    def predictor(self) -> MulticlassPredictor:
        """Scores (n, K) of the direction; ties of pairs that contradict each other stay ties."""
        return MulticlassPredictor(self.zeta)

    def _summary(self) -> dict[str, Any]:
        n, K = self.separable.shape
        separable = int(self.separable.sum())
        return super()._summary() | {
            "n_classes": K,
            "n_separable": separable,
            "n_contradictory": n * (K - 1) - separable,
        }

    def _fault(self) -> str:
        arrays = (self.zeta, self.finite, self.dual, self.split_dual)
        if self.finite.shape != self.zeta.shape or self.dual.shape != self.separable.shape:
            return "its arrays are not of one number of samples and classes"
        return "" if all(np.isfinite(one).all() for one in arrays) else "an array is not finite"

    def __repr__(self) -> str:
        shape = " x ".join(str(size) for size in self.zeta.shape)
        record = self._summary()
        return (
            f"SplitLimit({self.status.name}, {self.norm}, coefficients {shape}\n"
            f"  {record['n_separable']} separable pairs and {record['n_contradictory']} others, "
            f"split proved to {self.split_bound:.2g}\n"
            f"  direction in [{self.dual_objective:.10g}, {self.objective:.10g}], "
            f"gap {self.gap:.2g} (tol {self.tol:.2g})\n"
            f"  finite part of norm {np.linalg.norm(self.finite):.6g}, "
            f"error about {self.finite_error:.1g})"
        )


@door(norm=anything, gates=anything)
def solve_split_svm(
    X: ArrayLike,
    labels: ArrayLike,
    gates: ArrayLike | None = None,
    *,
    norm: Norm | NormName = "l2",
    n_classes: int | None = None,
    **solving: Unpack[Solving],
) -> SplitLimit:
    r"""Solve for the limit of cross-entropy on classes that are separable in part.

    With E the pairs that contradict each other and A the others,

    .. math:: \min N(\zeta) \text{ s.t. } A(\zeta) \ge 1, \; E(\zeta) = 0, \qquad
              \min_{W \in \mathrm{span} E}
              \sum_n \log\bigl(1 + \sum_{k \in E_n} e^{-E(W)_{nk}}\bigr).

    Two classes are binary labels: the predictor is the difference of both rows. Data that are
    separable throughout have no finite part, and the direction of `solve_multiclass_svm`.

    Parameters
    ----------
    X : (n, D) real array
        NumPy array or torch tensor; a bias is a constant column.
    labels : (n,) ints
        Classes from 0 to K - 1.
    gates : (n, H) array, optional
        Coefficients are then (H, K, D).
    norm : str or Norm
        Of the direction. That gradient descent goes there is proved for "l2"; for others it is the
        program that their margins would follow.
    n_classes : int, optional
        K, by default one more than the largest label.
    **solving
        `solver`, `tol`, `max_iterations`, `progress`, `threads`: see `Solving`.

    Returns
    -------
    SplitLimit

    Raises
    ------
    TypeError, ValueError
        If an array is malformed, or the norm or solver does not take the program.

    References
    ----------
    Z. Ji, M. Telgarsky, "The implicit bias of gradient descent on nonseparable data", 2019,
    theorem 1.1, for two classes; for K by the same argument.

    Examples
    --------
    >>> X, labels = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 2.0]]), [0, 0, 1]
    >>> limit = ib.limits.solve_split_svm(X, labels)
    >>> limit.status.name, round(limit.objective, 6)
    ('SOLVED', 0.707107)
    """
    if n_classes is not None and n_classes < 2:
        raise ValueError(f"`n_classes` must be at least 2, got {n_classes}")
    class_matrix("X", X, len(class_labels(labels, n_classes)), "D")
    wanted = Norm.of(norm)
    program = JointMargin(n_classes, wanted).margins(X, labels, gates)
    image, shape = program.image, program.image.shape
    assert isinstance(image, RelativeMargins)
    wanted.value(np.ones(shape))
    rows = dense_rows(image)
    split = split_rows(Rows(rows.reshape(-1, *shape)))
    solver, settings = chosen(**({"solver": solver_of(wanted)} | solving))  # type: ignore[arg-type]
    inside, others = rows[split.separable], rows[~split.separable]
    E = Rows(others.reshape(-1, *shape)) if len(others) else None
    dual = np.zeros(image.n_rows)
    if len(inside):
        direction = NormProgram(Rows(inside.reshape(-1, *shape)), wanted, E)
        found = solve_norm(direction, solver=solver, settings=settings)
        dual[split.separable], dual[~split.separable] = found.dual, found.equality_dual
        status, certificate, zeta = found.status, found.certificate, found.primal
        iterations, seconds = found.iterations, found.seconds
    else:
        status, zeta, iterations, seconds = Status.SOLVED, np.zeros(shape), 0, 0.0
        certificate = Certificate(0.0, 0.0, 0.0, 0.0, 0.0, 1.0, RESOLUTION)
    finite, error = _finite_part(image, others, ~split.separable)
    if not split.bound <= RESOLUTION:
        status = Status.UNDECIDED
    return SplitLimit(
        zeta=zeta,
        finite=finite,
        separable=image.pairs(split.separable.astype(float)) > 0,
        dual=image.pairs(dual),
        split_dual=image.pairs(split.multipliers),
        split_bound=split.bound,
        finite_error=error,
        norm=wanted.name,
        status=status,
        certificate=certificate,
        tol=settings.tol,
        solver=solver,
        iterations=iterations,
        seconds=seconds,
    )


def _finite_part(
    image: RelativeMargins, rows: Floats, chosen_pairs: NDArray[np.bool_]
) -> tuple[Floats, float]:
    """Minimiser of the loss of contradictory pairs in their span, and its last Newton step."""
    if len(rows) == 0:
        return np.zeros(image.shape), 0.0
    _, s, W = np.linalg.svd(rows, full_matrices=False)
    basis = W[s > 1e-10 * s[0]]
    A, sample = rows @ basis.T, np.nonzero(image.wrong)[0][chosen_pairs]
    known, place = np.unique(sample, return_inverse=True)
    column = np.concatenate([np.arange(count) for count in np.bincount(place)])

    def logits(u: Floats) -> Floats:
        """Minus the margins of each sample's pairs, behind a 0 for its own class."""
        table = np.full((len(known), image.n_classes), -np.inf)
        table[:, 0], table[place, 1 + column] = 0.0, -(A @ u)
        return table

    u, length = np.zeros(A.shape[1]), math.inf
    for _ in range(STEPS):
        table = logits(u)
        p = softmax(table, axis=1)[place, 1 + column]
        gradient = -A.T @ p
        means = np.zeros((len(known), A.shape[1]))
        np.add.at(means, place, p[:, None] * A)
        step = np.linalg.solve((A * p[:, None]).T @ A - means.T @ means, -gradient)
        loss, slope, share = float(logsumexp(table, axis=1).sum()), float(gradient @ step), 1.0
        while (
            float(logsumexp(logits(u + share * step), axis=1).sum()) > loss + 0.1 * share * slope
            and share > 1e-8
        ):
            share /= 2
        u = u + share * step
        length = float(np.linalg.norm(step)) / max(float(np.linalg.norm(u)), 1.0)
        if length <= ENOUGH:
            break
    return (u @ basis).reshape(image.shape), length
