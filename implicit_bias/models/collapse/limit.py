"""The limit of unconstrained features as a result: geometry of features and classifiers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ..._support.solve import Status
from ...data.arrays import Floats
from ...limits.result import Solved, proved, size_of
from ...quantities.definition import Quantity

# Singular values below this share of the largest are 0.
RANK = 1e-9


@dataclass(frozen=True)
class CollapseCertificate:
    """Bounds of the optimum and first-order conditions, recomputed from scores and multipliers.

    Attributes
    ----------
    objective : float
        ``(sum_i s_i^(2/L))^(L/2)`` over the smallest margin, s the singular values of all samples'
        scores: what the shortest weights cost. With weight decay the loss and its penalty.
    dual_objective : float
        Lower bound of what any weights cost, of any depth from 2 on and any dimension: that of the
        nuclear norm.
    gap : float
        ``objective / dual_objective - 1``; with weight decay relative to the objective.
    residual : float
        ``||w - sum lam grad m|| / ||w||`` in all weights of the balanced layers, or by how much a
        margin with a multiplier is off 1, if that is more.
    """

    objective: float
    dual_objective: float
    gap: float
    residual: float


class CollapseLimit(Solved):
    r"""Where unconstrained features and the layers above them go: the geometry of K classes.

    .. math:: \min_{W_L, \dots, W_2, H} \tfrac12 \sum_l \|W_l\|^2 + \tfrac12 \|H\|^2
              \quad\text{s.t.}\quad \langle e_{y_n} - e_k, W_L \cdots W_2 h_n \rangle \ge 1

    All samples of a class have one feature at every KKT point of this problem: given the layers,
    the features of a sample solve a strictly convex program, that of its class.

    Attributes
    ----------
    scores : (K, K) array
        Row k: the scores of every sample of class k, at smallest relative margin 1 without decay.
    dual : (K, K) array
        Multipliers, a row a class: of its relative margins, summed over its samples, 0 at the own
        class; with weight decay minus the slopes of the mean loss.
    class_sizes : (K,) ints
    dimension : int
        d, of features and of all layers between.
    depth : int
        L, layers with that of the features.
    weight_decay : float or None
    costs : (m,) array
        What the stationary points cost that were found on the way, ascending; several where no
        theorem tells the best.
    status : Status
        SOLVED: no weights cost less, by more than the tolerance. LOCAL_OPTIMUM, FLAT, SADDLE,
        STATIONARY, FAILED: what is known of the best point that was found, see `local_limit`.
    certificate : CollapseCertificate
    tol, solver, iterations, seconds
        The gap asked for and how the solve went.

    Examples
    --------
    >>> limit = ib.limits.solve_collapse(class_sizes=[5, 5, 5, 5])
    >>> limit.status.name, limit.feature_cosines.round(6)[0].tolist()
    ('SOLVED', [1.0, -0.333333, -0.333333, -0.333333])
    """

    ADVICE: ClassVar = {
        Status.SOLVED: "solved: no features and layers cost less by more than the tolerance, by "
        "multipliers of the nuclear norm",
        Status.INACCURATE: "inaccurate: the gap is above the tolerance. Its numbers hold as "
        "reported: raise `tol`, or take a larger `weight_decay`",
        Status.FAILED: "failed: from no start a point was found at which first-order conditions "
        "hold; the cost is attained, and the lower bound is proved: give more `n_starts`",
    }
    ROW: ClassVar = {
        "objective": "objective", "lower_bound": "dual_objective", "gap": "gap",
        "stationarity": "residual", "iterations": "iterations", "limit_seconds": "seconds",
    }  # fmt: skip
    SCREEN = ("status", "objective", "lower_bound", "gap", "limit_seconds")
    TITLE, HEADS = "prediction", ("", "{}")
    LINES = (
        "status", "objective", "lower_bound", "gap",
        Quantity("residual", "first-order conditions, relative residual", ".1e"),
        Quantity("rank", "rank of the scores", "d"),
        Quantity("_angles", "degrees between two features; classifiers"),
        Quantity("_lengths", "norms over the longest, features; classifiers"),
        "limit_seconds",
    )  # fmt: skip
    RECORD = ("n_classes", "rank", "class_sizes", "scores", "feature_cosines", "classifier_cosines",
              "feature_norms", "classifier_norms", "costs")  # fmt: skip
    BRIEF = (
        "{status.name}: {n_classes} classes, depth {depth}, dimension {dimension}\n"
        "  cost in [{dual_objective:.10g}, {objective:.10g}], gap {gap:.2g} (tol {tol:.2g}), "
        "residual {residual:.1g}\n"
        "  degrees between features; classifiers: {_angles}; rank {rank}, {seconds:.3g} s"
    )

    scores: Floats
    dual: Floats
    class_sizes: NDArray[np.int64]
    dimension: int
    depth: int
    weight_decay: float | None
    status: Status
    certificate: CollapseCertificate
    costs: Floats = field(kw_only=True)

    objective = proved("objective", "What features and layers cost, of the certificate.")
    dual_objective = proved("dual_objective", "Certified lower bound of that.")
    gap = proved("gap", "Relative gap, of the certificate.")
    residual = proved("residual", "Residual of the first-order conditions, of the certificate.")
    n_classes = size_of("class_sizes", "Number K of classes.")

    @property
    def features(self) -> Floats:
        """(K, d) features that the last layer sees, one row a class: its mean and every sample.

        Of balanced layers, the shortest with these scores; up to a rotation.
        """
        _, s, V = spectrum(self.scores, self.class_sizes)
        known = (V.T * s ** (1 - 1 / self.depth)) / np.sqrt(self.class_sizes)[:, None]
        return np.asarray(known @ np.eye(len(s), self.dimension))

    @property
    def classifiers(self) -> Floats:
        """(K, d) rows of the last layer."""
        U, s, _ = spectrum(self.scores, self.class_sizes)
        return np.asarray(U * s ** (1 / self.depth) @ np.eye(len(s), self.dimension))

    @property
    def rank(self) -> int:
        """Rank of the scores."""
        return len(spectrum(self.scores, self.class_sizes)[1])

    @property
    def feature_cosines(self) -> Floats:
        """(K, K) cosines between features; NaN of one that is 0."""
        return cosines(self.features)

    @property
    def classifier_cosines(self) -> Floats:
        """(K, K) cosines between classifiers; NaN of one that is 0."""
        return cosines(self.classifiers)

    @property
    def feature_norms(self) -> Floats:
        """(K,) norms of the features."""
        return np.asarray(np.linalg.norm(self.features, axis=1))

    @property
    def classifier_norms(self) -> Floats:
        """(K,) norms of the classifiers."""
        return np.asarray(np.linalg.norm(self.classifiers, axis=1))

    @property
    def _angles(self) -> str:
        pairs = np.triu_indices(self.n_classes, 1)
        both = self.feature_cosines[pairs], self.classifier_cosines[pairs]
        return _ranges([np.degrees(np.arccos(np.clip(one, -1, 1))) for one in both], ".2f")

    @property
    def _lengths(self) -> str:
        both = self.feature_norms, self.classifier_norms
        return _ranges([one / max(float(one.max()), RANK) for one in both], ".4f")

    def _fault(self) -> str:
        K = len(self.class_sizes)
        arrays = (self.scores, self.dual)
        if all(one.shape == (K, K) and np.all(np.isfinite(one)) for one in arrays):
            return ""
        return "its arrays are not finite and of one number of classes"


def spectrum(scores: Floats, sizes: NDArray[np.int64]) -> tuple[Floats, Floats, Floats]:
    """Return U (K, r), s (r,), V (r, K) of the matrix of scores, columns times root class sizes."""
    U, s, V = np.linalg.svd(scores.T * np.sqrt(sizes), full_matrices=False)
    kept = s > RANK * s[0]
    return U[:, kept], s[kept], V[kept]


def cosines(rows: Floats) -> Floats:
    """Return the cosines (K, K) between rows; NaN of a row that is 0."""
    norms = np.linalg.norm(rows, axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        unit = rows / np.where(norms > RANK * norms.max(initial=0.0), norms, 0.0)[:, None]
    return np.clip(unit @ unit.T, -1, 1)


def _ranges(features_and_classifiers: list[Floats], form: str) -> str:
    """Return the ends of both in words."""
    ends = [
        [format(float(end), form) for end in (one.min(), one.max())]
        for one in features_and_classifiers
    ]
    return "; ".join(" to ".join(dict.fromkeys(one)) for one in ends)
