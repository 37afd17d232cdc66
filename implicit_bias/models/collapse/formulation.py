"""Unconstrained features of K classes: their programs, closed form and certificates."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..._support.doors import door, parameters
from ..._support.kinds import anything, count, floats, whole_number
from ..._support.solve import (
    Status,
    conclude_norm,
    fit_bounds,
    fit_status,
    regulariser_of,
    require_memory,
    require_positive,
    require_real,
    require_shape,
    require_tolerance,
    to_numpy,
)
from ...data.arrays import Floats
from ...limits.exact.joint_margin import JointMargin, class_labels
from ...limits.finite.fit import solve_fit
from ...limits.finite.problem import fit_problem
from ...limits.finite.program import WeightDecay
from ...limits.literal import LiteralProgram
from .limit import RANK, CollapseCertificate, CollapseLimit, spectrum
from .local_limit import stationary_codes

if TYPE_CHECKING:
    import cvxpy

Sizes = NDArray[np.int64]
# Features of more samples and classes are no whole numbers in float64.
_MOST = 2**53
# Residual of first-order conditions from which on a point is stationary.
_STATIONARY = 1e-6


@parameters()
@dataclass(frozen=True)
class Collapse(LiteralProgram):
    """Unconstrained features under one linear layer: the nuclear norm of all samples' scores.

        minimise  ||Z||_*   s.t.  z[y(n), n] - z[k, n] >= 1   for every n and k != y(n)
        minimise  mean cross-entropy of Z + lam ||Z||_*        with weight decay lam

    Z (K, n) has a column a sample: ``Z = W H`` costs ``(||W||^2 + ||H||^2) / 2`` and at least its
    nuclear norm, which balanced W and H attain, in K - 1 dimensions and more.

    Parameters
    ----------
    weight_decay : float, optional
        lam, positive.

    References
    ----------
    C. Thrampoulidis, G. R. Kini, V. Vakilian, T. Behnia, "Imbalance trouble: revisiting
    neural-collapse geometry", the convex form of its UF-SVM and of its regularised cross-entropy.

    Examples
    --------
    >>> problem = ib.programs.Collapse().literal(class_sizes=[2, 1])
    >>> limit = ib.limits.solve_collapse(class_sizes=[2, 1])
    >>> bool(abs(problem.solve(solver="CLARABEL") - limit.objective) < 1e-6)
    True
    """

    name: ClassVar[str] = "unconstrained features"

    weight_decay: float | None = None

    def __post_init__(self) -> None:
        if self.weight_decay is not None:
            require_positive("weight_decay", self.weight_decay)

    @door(labels=anything, class_sizes=anything)
    def literal(
        self, labels: ArrayLike | None = None, *, class_sizes: ArrayLike | None = None
    ) -> cvxpy.Problem:
        """State the program in cvxpy, of all samples: nothing of it is made use of but this.

        Parameters
        ----------
        labels, class_sizes
            As `limits.solve_collapse` takes them.

        Returns
        -------
        cvxpy.Problem
            In the variable "W", or "zeta" with weight decay: Z (K, n).

        Raises
        ------
        MissingExtra
            Without cvxpy.
        TypeError, ValueError
            If they are no such labels or sizes.
        """
        sizes = checked_sizes(labels, class_sizes)
        require_memory(int(sizes.sum()) ** 2, "a unit vector a sample", "take smaller classes")
        classes = np.repeat(np.arange(len(sizes)), sizes)
        inputs, rows = np.eye(len(classes)), np.eye(len(sizes))[classes]
        if self.weight_decay is None:
            return JointMargin(len(sizes), "nuclear").literal(inputs, classes)
        stated = WeightDecay("softmax", "nuclear", penalty=self.weight_decay)
        return stated.literal(inputs, rows)


@door(labels=anything, class_sizes=anything, depth=count(2), n_starts=count(0))
def solve_collapse(
    labels: ArrayLike | None = None,
    *,
    class_sizes: ArrayLike | None = None,
    dimension: int | None = None,
    depth: int = 2,
    weight_decay: float | None = None,
    n_starts: int = 8,
    random_state: int = 0,
    tol: float = 1e-8,
) -> CollapseLimit:
    r"""Solve for the geometry of unconstrained features and classifiers of K classes.

    With two layers, features and classifiers, in K - 1 dimensions and more, the optimum is known
    for classes of any sizes: the scores of every sample of class k are ``e_k - 1/K`` (SELI), which
    of equal sizes is a simplex equiangular tight frame. With weight decay it is the finite limit of
    softmax's mean cross-entropy and ``lam/2 ||w||^2``, which are convex in the scores. Both are
    proved by multipliers. With more layers, or fewer dimensions, nothing names the optimum:
    the nuclear norm bounds it from below, and the best of several stationary points is returned,
    with first and second order proved in its own weights.

    Parameters
    ----------
    labels : (n,) ints, optional
        Classes from 0 to K - 1, each with a sample.
    class_sizes : (K,) ints, optional
        In place of labels: samples of every class.
    dimension : int, optional
        d, of features and of layers between: 2 at least for more than two classes. By default K.
    depth : int
        L from 2 on: the layer of features and L - 1 linear layers above it.
    weight_decay : float, optional
        lam, positive, of features and classifiers; with two layers and K - 1 dimensions at least.
    n_starts : int
        Codes at random that the search begins with, besides SELI, where one is needed; it needs
        torch.
    random_state : int
        Seed of these.
    tol : float
        Relative gap to reach, in (0, 1).

    Returns
    -------
    CollapseLimit
        With its certificate; call `.require()` to insist on one that is proved.

    Raises
    ------
    TypeError, ValueError
        If labels or sizes are malformed, a class has no sample, there is one class, no features of
        the dimension separate the classes, or with weight decay depth or dimension is out of range.

    Notes
    -----
    That SELI is optimal for any sizes, and at every depth a strict local optimum, follows from the
    signs of its multipliers: with ``A = P D P``, P the centering and D the class sizes, they are
    minus the entries off the diagonal of a power of A between -1 and 0, times positive numbers, and
    these powers are positive mixtures of ``(A + t P)^+ = (D + t)^-1 - u u' / sum(u)``,
    ``u = (D + t)^-1 1``.

    References
    ----------
    C. Thrampoulidis et al., "Imbalance trouble: revisiting neural-collapse geometry" (SELI); Z. Zhu
    et al., "A geometric analysis of neural collapse with unconstrained features" (weight decay).

    Examples
    --------
    >>> limit = ib.limits.solve_collapse(class_sizes=[10, 10, 1, 1])
    >>> limit.status.name, limit.scores[0].tolist()
    ('SOLVED', [0.75, -0.25, -0.25, -0.25])
    >>> deep = ib.limits.solve_collapse(class_sizes=[1] * 4, depth=6, n_starts=1)
    >>> deep.rank, deep.costs.round(4).tolist()  # a square, below the simplex
    (2, [16.0, 27.0])
    """
    begun = time.perf_counter()
    problem = _Problem.of(labels, class_sizes, dimension, depth, weight_decay, tol)
    sizes, d, K = problem.class_sizes, problem.dimension, len(problem.class_sizes)
    if weight_decay is not None:
        fit = solve_fit(
            np.diag(1 / np.sqrt(sizes)), np.eye(K), loss="softmax", norm="nuclear",
            penalty=weight_decay, sample_weight=sizes.astype(np.float64), tol=tol,
        )  # fmt: skip
        found = [replace(problem.judged(fit.scores, fit.dual), solver=fit.solver)]
    else:
        found = [problem.judged(*problem.seli)] if d >= K - 1 else []
    if weight_decay is None and not (found and found[0].status is Status.SOLVED):
        codes = stationary_codes(sizes, d, depth, n_starts, np.random.default_rng(random_state))
        found += [replace(problem.judged(*code), solver="search from codes") for code in codes]
    if not found:
        raise ValueError(f"`n_starts` must be at least 1 below {K - 1} dimensions, got {n_starts}")
    known = [one for one in found if one.status is not Status.FAILED] or found
    best = min(known, key=lambda one: one.objective)
    costs = np.sort([one.objective for one in known])
    return replace(best, costs=costs, seconds=time.perf_counter() - begun)


@door(
    scores=floats("K K"),
    labels=anything,
    class_sizes=anything,
    dual=floats("K K"),
    depth=count(2),
)
def certify_collapse(
    scores: Floats,
    labels: ArrayLike | None = None,
    *,
    class_sizes: ArrayLike | None = None,
    dual: Floats | None = None,
    dimension: int | None = None,
    depth: int = 2,
    weight_decay: float | None = None,
    tol: float = 1e-8,
) -> CollapseLimit:
    """Prove scores of classes, whoever found them: what they cost, beside what all others do.

    Parameters
    ----------
    scores : (K, K) array
        Row k: the scores of the samples of class k, such as their means in a trained network.
    labels, class_sizes, dimension, depth, weight_decay, tol
        As `solve_collapse` takes them.
    dual : (K, K) array, optional
        Multipliers, as a limit has them. By default those of SELI, or with weight decay minus the
        slopes of the loss at these scores.

    Returns
    -------
    CollapseLimit
        SOLVED where nothing costs less by more than the tolerance, else LOCAL_OPTIMUM where all
        margins have positive multipliers and STATIONARY where some have, if the residual of the
        first-order conditions is below 1e-6; else INACCURATE. Second order of other points is
        looked at by `solve_collapse` alone.

    Raises
    ------
    TypeError, ValueError
        If an argument is malformed, a class does not have the highest score on its samples, or
        no features of the dimension have such scores.

    Examples
    --------
    >>> limit = ib.limits.solve_collapse(class_sizes=[3, 1, 1])
    >>> ib.limits.certify_collapse(2 * limit.scores, class_sizes=[3, 1, 1]).status.name
    'SOLVED'
    >>> found = ib.limits.certify_collapse(np.diag([2.0, 1, 1]), class_sizes=[3, 1, 1])
    >>> found.status.name, round(found.gap, 4)
    ('INACCURATE', 1.1618)
    """
    problem = _Problem.of(labels, class_sizes, dimension, depth, weight_decay, tol)
    K = len(problem.class_sizes)
    require_shape("scores", scores, (K, K), "a row and a column a class")
    rank = len(spectrum(scores, problem.class_sizes)[1])
    if rank > problem.dimension:
        raise ValueError(
            f"`scores` have rank {rank}, more than features of `dimension` {problem.dimension} let "
            "through: give those of such a network, or a larger `dimension`"
        )
    if weight_decay is not None:
        return problem.judged(scores, dual)
    margins = np.diag(scores)[:, None] - scores
    smallest = float(margins[~np.eye(K, dtype=bool)].min())
    if not smallest > 0:
        raise ValueError(
            f"`scores` must have the highest of every row on the diagonal, got {smallest:.3g} "
            "above another: train longer, or give `weight_decay`"
        )
    return problem.judged(scores / smallest, None if dual is None else np.maximum(dual, 0.0))


def checked_sizes(labels: Any, class_sizes: Any) -> Sizes:
    """Return the class sizes (K,) of labels, or as they are given.

    Raises
    ------
    TypeError, ValueError
        If neither or both are given, there are fewer than two classes, or one has no sample.
    """
    if (labels is None) == (class_sizes is None):
        raise ValueError("give `labels` (n,), or `class_sizes` (K,) in their place: one of the two")
    name = "labels" if class_sizes is None else "class_sizes"
    given = labels if class_sizes is None else class_sizes
    require_real(name, given)
    sizes = np.asarray(to_numpy(given), dtype=np.float64)
    if class_sizes is None:  # every class has a sample: none is above n
        sizes = np.bincount(class_labels(labels, max(sizes.size, 2))).astype(np.float64)
    if sizes.ndim != 1 or len(sizes) < 2:
        raise ValueError(f"`{name}` must be of two classes at least, got sizes {sizes.tolist()}")
    wrong = ~((sizes >= 1) & (sizes <= _MOST) & (sizes == np.floor(sizes)))
    if wrong.any():
        k = int(wrong.argmax())
        raise ValueError(
            f"`{name}` must give every class whole numbers of samples, 1 at least, got "
            f"{sizes[k]:g} of class {k}: leave out classes without samples"
        )
    return sizes.astype(np.int64)


@dataclass(frozen=True, eq=False)
class _Problem:
    """What is to be solved, and the one place that judges scores."""

    class_sizes: Sizes
    dimension: int
    depth: int
    weight_decay: float | None
    tol: float

    @classmethod
    def of(
        cls,
        labels: Any,
        class_sizes: Any,
        dimension: int | None,
        depth: int,
        weight_decay: float | None,
        tol: float,
    ) -> Self:
        """Check what there is to solve."""
        require_tolerance(tol)
        sizes = checked_sizes(labels, class_sizes)
        K = len(sizes)
        require_memory(6 * K**2, f"matrices of {K} classes", "take fewer classes")
        d = K if dimension is None else whole_number("dimension", dimension)
        if d < 2 < K:
            raise ValueError(f"`dimension` 1 separates no {K} classes: give 2 at least")
        if weight_decay is not None:
            require_positive("weight_decay", weight_decay)
            if depth > 2 or d < K - 1:
                raise ValueError(
                    f"`weight_decay` has a convex program with `depth` 2 and `dimension` {K - 1} "
                    f"at least, K - 1, got {depth} and {d}: leave it out for stationary points"
                )
        return cls(sizes, d, depth, weight_decay, tol)

    @property
    def seli(self) -> tuple[Floats, Floats]:
        """The simplex-encoded labels, with the multipliers that make them stationary."""
        K = len(self.class_sizes)
        scores = np.eye(K) - 1 / K
        U, s, V = spectrum(scores, self.class_sizes)
        dual = np.maximum(-(U * s ** (2 / self.depth - 1) @ V * np.sqrt(self.class_sizes)).T, 0.0)
        np.fill_diagonal(dual, 0.0)
        return scores, dual

    def judged(
        self, scores: Floats, dual: Floats | None = None, status: Status | None = None
    ) -> CollapseLimit:
        """Return scores, without decay of smallest margin 1, with their certificate."""
        if self.weight_decay is None:
            lam = self.seli[1] if dual is None else dual
            certificate, status = self._of_margins(scores, lam, status)
        else:
            lam, certificate, status = self._of_losses(scores, dual, self.weight_decay)
        return CollapseLimit.read(
            self, scores=scores, dual=lam, status=status, certificate=certificate,
            costs=np.array([certificate.objective]),
            solver="closed form", iterations=0, seconds=0.0,
        )  # fmt: skip

    def _of_margins(
        self, scores: Floats, dual: Floats, status: Status | None
    ) -> tuple[CollapseCertificate, Status]:
        other, root = ~np.eye(len(scores), dtype=bool), np.sqrt(self.class_sizes)
        lam, margins = dual[other], (np.diag(scores)[:, None] - scores)[other]
        s = spectrum(scores, self.class_sizes)[1]
        cost = float(np.sum(s ** (2 / self.depth)) ** (self.depth / 2)) / float(margins.min())
        bound = self._nuclear_bound()
        off = float(np.abs(margins - 1)[lam > RANK * lam.max()].max(initial=0.0))
        pull = (np.diag(dual.sum(axis=1)) - dual).T / root
        residual = max(_residual(scores, pull, self.class_sizes, self.depth), off)
        if status is None:
            status = Status.LOCAL_OPTIMUM if lam.min() > 0 else Status.STATIONARY
            status = status if residual <= _STATIONARY else Status.INACCURATE
        status = Status.SOLVED if cost / bound - 1 <= self.tol else status
        return CollapseCertificate(cost, bound, cost / bound - 1, residual), status

    def _nuclear_bound(self) -> float:
        """Return the certified lower bound of the nuclear norm, by multipliers in closed form."""
        scores, dual = replace(self, depth=2).seli
        K, root = len(scores), np.sqrt(self.class_sizes)
        program = JointMargin(K, "nuclear").margins(np.diag(1 / root), np.arange(K))
        solution = conclude_norm(
            program, scores * root, dual[~np.eye(K, dtype=bool)],
            tol=self.tol, solver="", iterations=0, seconds=0.0,
        )  # fmt: skip
        return float(solution.certificate.dual_objective)

    def _of_losses(
        self, scores: Floats, dual: Floats | None, decay: float
    ) -> tuple[Floats, CollapseCertificate, Status]:
        """Return multipliers, and the bounds of the finite program by one column a class."""
        root = np.sqrt(self.class_sizes)
        X, Y = np.diag(1 / root), np.eye(len(root))
        problem = fit_problem(X, Y, None, "softmax", None, self.class_sizes)
        penalty = regulariser_of("nuclear", decay, None, None)
        r = problem.loss.multipliers(scores, Y) if dual is None else dual
        bounds = fit_bounds(problem, penalty, (scores.T * root).reshape(problem.shape), r)
        residual = _residual(scores, r.T / root / decay, self.class_sizes, 2)
        status = fit_status(problem, penalty, bounds, None, self.tol)
        return r, CollapseCertificate(*bounds[:3], residual), status


def _residual(scores: Floats, pull: Floats, sizes: Sizes, depth: int) -> float:
    """Return by how much `pull` (K, K) is off ``U s^(2/L - 1) V`` on either side; 0 for 0 / 0.

    These are the first-order conditions of balanced layers, each over its own singular values.
    """
    U, s, V = spectrum(scores, sizes)
    wanted = s ** (2 / depth - 1)
    left, right = U.T @ pull - wanted[:, None] * V, pull @ V.T - U * wanted
    off = math.hypot(float(np.linalg.norm(left)), float(np.linalg.norm(right)))
    return off / float(np.linalg.norm(wanted)) if len(s) else 0.0
