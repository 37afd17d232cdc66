"""The limit of a linear student on soft labels, with its certificate."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import ClassVar

import numpy as np

from ..._support.solve import Status
from ...data.arrays import Floats
from ...limits.predictors import LinearPredictor
from ...limits.result import Result
from .risk import angle


@dataclass(frozen=True)
class DistillationCertificate:
    """Residuals of the limit's conditions, recomputed from inputs, teacher and start.

    Attributes
    ----------
    interpolation : float
        `||X (w - w_*)|| / (||X|| ||w_*||)`: at 0 the loss is at its minimum. 0 for 0 / 0.
    span_share : float
        `||w - X^T a - r w(0)|| / ||w||` for vectors a and a number r that are given along: an upper
        bound of the share of w outside the span of the samples and of the start.
    root_residual : float
        By how much the length c of the part orthogonal to the samples misses its equation,
        relative to the larger of its sides; 0 where nothing has to be solved.
    """

    interpolation: float
    span_share: float
    root_residual: float

    @property
    def residual(self) -> float:
        """The largest of the three."""
        return max(self.interpolation, self.span_share, self.root_residual)

    def proves_limit(self, tol: float) -> bool:
        """Return whether all three hold to the tolerance; NaN proves nothing."""
        return all(value <= tol for value in asdict(self).values())


class DistillationLimit(Result):
    """The limit of gradient flow of a linear student on its teacher's soft labels.

    Attributes
    ----------
    zeta : (D,) or (K, D) array
        End-to-end weights.
    projection : like `zeta`
        `w_hat`, the teacher's weights projected on the span of the samples (of K classes after
        their mean is taken away): the limit from an infinitesimal start.
    teacher : like `zeta`
    depth, rank : int
        Layers L of the student; rank of the samples.
    start_norm, null_start : float
        `||w(0)||` and `||q_0||`, `q_0` the part of w(0) orthogonal to the samples.
    status : Status
    certificate : DistillationCertificate
    tol, seconds : float
        To what the status was judged; wall-clock time.

    Examples
    --------
    >>> limit = ib.distillation.distillation_limit([[2.0, 0.0]], [3.0, 4.0], [0.0, 0.5])
    >>> limit.zeta.tolist(), round(limit.null_norm, 9), limit.rank
    ([3.0, 0.5], 0.5, 1)
    """

    ADVICE: ClassVar = {
        Status.SOLVED: "solved: the weights give the teacher's scores on every sample, lie in the "
        "span of samples and start, and what they keep of the start solves its equation, to within "
        "tolerance",
        Status.INACCURATE: "inaccurate: the weights miss the teacher's scores or the span of the "
        "samples by more than the tolerance. Samples that are nearly dependent decide here: "
        "rescale the inputs, move `rcond` off their singular values, or raise `tol`",
    }
    ROW: ClassVar = {
        "stationarity": "certificate.residual", "limit_seconds": "seconds",
        "null_norm_limit": "null_norm",
    }  # fmt: skip
    RECORD = ("norm", "projection_norm", "null_norm", "null_bound")
    BRIEF = (
        "{status.name}, weights {zeta.shape}, depth {depth}, rank {rank}\n"
        "  {null_norm:.4g} off the projection, of length {projection_norm:.4g}; residual "
        "{certificate.residual:.2g} (tol {tol:.2g}), {seconds:.3g} s"
    )

    zeta: Floats
    projection: Floats
    teacher: Floats
    depth: int
    rank: int
    start_norm: float
    null_start: float
    status: Status
    certificate: DistillationCertificate
    tol: float
    seconds: float

    @property
    def null_part(self) -> Floats:
        """Part of the weights orthogonal to all samples, a multiple of that of the start."""
        return self.zeta - self.projection

    @property
    def norm(self) -> float:
        """Length of the weights."""
        return float(np.linalg.norm(self.zeta))

    @property
    def projection_norm(self) -> float:
        """Length of the projection."""
        return float(np.linalg.norm(self.projection))

    @property
    def null_norm(self) -> float:
        """`c`, the length of `null_part`: how far the limit is from the projection."""
        return float(np.linalg.norm(self.null_part))

    @property
    def null_bound(self) -> float:
        """The bound of `null_norm` that theorem 5.2 is proved with; infinite where it says nothing.

            ||w(inf) - w_hat||^2 <= ||w(0)||^(2/L) ||w_hat||^2 / (||w_hat||^(2/L) - ||w(0)||^(2/L))

        One layer keeps `q_0` as it is.

        References
        ----------
        M. Phuong, "Underspecification in Deep Learning", (D.40); (D.41) prints another numerator.
        """
        if self.depth == 1:
            return self.null_start
        size = self.projection_norm
        begun, there = self.start_norm ** (2 / self.depth), size ** (2 / self.depth)
        return math.inf if begun >= there else size * math.sqrt(begun / (there - begun))

    @property
    def angle(self) -> float:
        """Angle between weights and teacher in radians, 0 to pi; for teachers (D,) only."""
        return angle(self.zeta, self.teacher)

    @property
    def predictor(self) -> LinearPredictor:
        """Scores (m,) or (m, K) of inputs (m, D)."""
        return LinearPredictor(self.zeta)

    def _fault(self) -> str:
        arrays = (self.zeta, self.projection, self.teacher)
        shapes = {array.shape for array in arrays}
        if len(shapes) == 1 and all(np.isfinite(array).all() for array in arrays):
            return ""
        return f"its arrays are not finite and of one shape: {shapes}"
