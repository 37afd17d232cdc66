"""Linear distillation in closed form: what a student becomes on its teacher's soft labels."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq

from ..._support.doors import door
from ..._support.kinds import count, floats, fraction, positive
from ..._support.solve import Array, Status, require_scale, require_tolerance
from ..._support.words import SoftLoss
from ...data.arrays import Floats
from .limit import DistillationCertificate, DistillationLimit
from .losses import centred, mean_loss

EPS = float(np.finfo(np.float64).eps)
INPUTS = floats("n D", require_scale)
TEACHER = floats("D | K D: one weight a column of X")


@dataclass(frozen=True, eq=False)
class Span:
    """The span of samples (n, D): an orthonormal basis, and its coefficients in the samples.

    Attributes
    ----------
    basis : (D, r) array
        Orthonormal columns.
    from_samples : (n, r) array
        `basis = X^T from_samples`.
    """

    basis: Floats
    from_samples: Floats

    def project(self, w: Floats) -> Floats:
        """Project w (..., D) on the span."""
        return np.asarray((w @ self.basis) @ self.basis.T)

    def multipliers(self, w: Floats) -> Floats:
        """Return a (..., n) such that the projection of w (..., D) on the span is `a X`."""
        return np.asarray((w @ self.basis) @ self.from_samples.T)


def sample_span(X: Floats, rcond: float | None = None) -> Span:
    """Return the span of samples; singular values up to `rcond` of the largest count as zero."""
    left, values, right = np.linalg.svd(X, full_matrices=False)
    cut = max(X.shape) * EPS if rcond is None else rcond
    large = values > cut * values[0]
    return Span(right[large].T, left[:, large] / values[large])


def orthogonal_part(start: Floats, span: Span, loss: str) -> Floats:
    """Return the part q_0 of the start, (D,) or (K, D), that leaves the samples' scores unchanged.

    It is set to zero for a start in the span up to rounding. For K classes it contains the mean
    over classes if the loss does not depend on it.
    """
    unseen = start - span.project(centred(start, loss))
    if np.linalg.norm(unseen) <= 100 * EPS * np.linalg.norm(start):
        return np.zeros_like(start)
    return np.asarray(unseen)


@door(
    X=INPUTS,
    teacher=TEACHER,
    w0=floats(),
    y=floats("n | n K: one target per row of X"),
    rcond=fraction,
)
def distillation_limit(
    X: Array,
    teacher: Array = None,
    w0: Array = None,
    *,
    y: Array = None,
    depth: int = 1,
    loss: SoftLoss = "cross-entropy",
    rcond: float | None = None,
    tol: float = 1e-8,
) -> DistillationLimit:
    """Return the limit of gradient flow of a linear student on its teacher's soft labels.

    The student begins at w(0). With P the projection on the span of the samples, `w_hat = P w_*`
    and `q_0 = (I - P) w(0)`:

        w(inf) = w_hat + q_0                    one layer, any start
        w(inf) = w_hat + c q_0 / ||q_0||        L layers, balanced, the start below the loss of 0:
        c^2 = ||q_0||^2 ((||w_hat||^2 + c^2) / ||w(0)||^2)^((L-1)/L),    c > 0

    which is w_* itself where the samples span all inputs. For K classes with soft labels
    softmax(t / temperature), at every temperature, w_hat is the projection of the teacher's weights
    less their mean over classes, and the mean of a student of one layer stays that of its start.
    Under the squared loss the mean over classes is learned too.

    Parameters
    ----------
    X : (n, D) real array
        Inputs of the transfer set.
    teacher : (D,) or (K, D) real array, optional
        The teacher's weights: soft labels `sigmoid(<w_*, x>)`, or softmax of K scores.
    w0 : array like `teacher`, optional
        The student's end-to-end weights at the start; zero by default, for one layer only.
    y : (n,) or (n, K) real array, optional
        Targets in place of a teacher, for ``loss="squared"``: regression. The teacher is then
        `X^+ y`, least squares of least norm.
    depth : int
        Layers of the student, balanced: `W_{l+1}^T W_{l+1} = W_l W_l^T`. One for K classes.
    loss : str
        "cross-entropy", or "squared" on the teacher's scores: the limit is the same, the start that
        is allowed is not.
    rcond : float, optional
        Singular values of X up to this share of the largest count as zero, in [0, 1).
    tol : float
        Tolerance of the residuals in the certificate, in (0, 1).

    Returns
    -------
    DistillationLimit
        With its certificate; call `.require()` to raise unless the status is `SOLVED`.

    Raises
    ------
    TypeError, ValueError
        If an argument is out of range, shapes disagree or values are not finite; if a deep student
        does not begin below the loss of 0: its flow may then end at 0, which is a saddle.

    References
    ----------
    M. Phuong, "Underspecification in Deep Learning", theorems 5.1 and 5.2; the length c is exact
    since (D.32) is an equality.

    Examples
    --------
    >>> limit = ib.distillation.distillation_limit([[2.0, 0.0]], [3.0, 4.0], [0.25, 0.25], depth=2)
    >>> limit.status.name, limit.projection.tolist(), round(limit.null_norm, 4)
    ('SOLVED', [3.0, 0.0], 0.739)

    Regression by a deep linear network:

    >>> start = [0.25, 0.25]
    >>> limit = ib.distillation.distillation_limit(
    ...     [[2.0, 0.0]], w0=start, y=[6.0], depth=3, loss="squared"
    ... )
    >>> limit.status.name, limit.zeta.round(4).tolist()
    ('SOLVED', [3.0, 1.0834])
    """
    begun = time.perf_counter()
    require_tolerance(tol)
    if teacher is None and y is None:
        raise ValueError("`teacher` is missing: give its weights, or targets `y` of a regression")
    if teacher is not None and y is not None:
        raise ValueError("`teacher` and `y` are two sources of targets: give one of them")
    if y is not None and loss != "squared":
        raise ValueError(f'`y` are targets of a regression, of loss="squared", got loss={loss!r}')
    span = sample_span(X, rcond)
    # From X^+ y the squared loss has the slopes that y gives it.
    target = teacher if y is None else (span.basis @ (span.from_samples.T @ y)).T
    start = checked_start(X, target, w0, depth, loss)
    projection = span.project(centred(target, loss))
    unseen = orthogonal_part(start, span, loss)
    growth, residual = _growth(projection, start, unseen, depth)
    weights = projection + growth * unseen
    multipliers = span.multipliers(centred(target - growth * start, loss))
    certificate = DistillationCertificate(
        interpolation=_ratio(X @ centred(weights - target, loss).T, X, target),
        span_share=_ratio(weights - multipliers @ X - growth * start, weights),
        root_residual=residual,
    )
    solved = certificate.proves_limit(tol)
    return DistillationLimit(
        zeta=weights,
        projection=projection,
        teacher=target,
        depth=depth,
        rank=span.basis.shape[1],
        start_norm=float(np.linalg.norm(start)),
        null_start=float(np.linalg.norm(unseen)),
        status=Status.SOLVED if solved else Status.INACCURATE,
        certificate=certificate,
        tol=tol,
        seconds=time.perf_counter() - begun,
    )


@door(epsilon=positive, norm=positive, depth=count(2))
def largest_start(epsilon: float, norm: float, depth: int) -> float:
    """Return the length of w(0) below which the limit is within `epsilon` of w_hat.

        min(||w_hat||, epsilon^L (epsilon^2 ||w_hat||^(-2/L) + ||w_hat||^(2 - 2/L))^(-L/2))

    with `||w_hat|| = norm` and L = `depth`, where the bound (D.40) equals `epsilon`.

    Parameters
    ----------
    epsilon : float
        Distance from w_hat that is allowed, positive.
    norm : float
        `||w_hat||`, positive.
    depth : int
        Layers of the student, at least 2.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        If an argument is out of range.

    References
    ----------
    M. Phuong, "Underspecification in Deep Learning", (5.11).
    """
    within = epsilon**2 * norm ** (-2 / depth) + norm ** (2 - 2 / depth)
    return float(min(norm, epsilon**depth * within ** (-depth / 2)))


def checked_start(X: Floats, teacher: Floats, w0: Floats | None, depth: int, loss: str) -> Floats:
    """Return the weights that a student begins with, zeros for None.

    Raises
    ------
    ValueError
        If they are not of the teacher's shape, no limit of students of this depth is known, or a
        deep student does not begin below the loss of 0: its flow may end there.
    """
    start = np.zeros_like(teacher) if w0 is None else w0
    if start.shape != teacher.shape:
        raise ValueError(f"`w0` must have shape {teacher.shape} like `teacher`, got {start.shape}")
    if depth < 1 or (depth > 1 and teacher.ndim == 2):
        raise ValueError(
            f"`depth` must be at least 1, and 1 for K classes, got {depth}: no closed form is "
            "known of deep students of several classes"
        )
    if depth == 1:
        return start
    begins, at_zero, flipped = (mean_loss(X, w, teacher, loss) for w in (start, 0 * start, -start))
    if not begins < at_zero:
        way = "begin at -w0, which does" if flipped < at_zero else "begin shorter, or elsewhere"
        raise ValueError(
            f"`w0` must have a smaller loss than weights of 0 (theorem 5.2, assumption (5.12)), "
            f"got {begins:.6g}, not below {at_zero:.6g}: from there the flow may end at 0, a "
            f"saddle of deep students; {way}"
        )
    return start


def _growth(projection: Floats, start: Floats, unseen: Floats, depth: int) -> tuple[float, float]:
    """Return c / ||q_0||, the growth of the part of the start orthogonal to the samples.

    And the residual of its equation, relative to the larger of its sides.
    """
    q, w, p = (float(np.linalg.norm(v)) for v in (unseen, start, projection))
    if depth == 1 or q == 0:
        return float(q > 0), 0.0
    # In units of w_hat, u = c^2 / ||w_hat||^2 solves u = B (1 + u)^e: of the convex difference of
    # both sides, negative at 0, the one positive root. It lies above B, and below 2^e B where it
    # is at most 1, else below (2^e B)^L.
    e = (depth - 1) / depth
    B = (q / w) ** 2 * (w / p) ** (2 / depth)
    above = 2**e * B
    root = brentq(
        lambda u: u - B * (1 + u) ** e,
        B * (1 - 4 * EPS),
        max(above, _power(above, depth)) * (1 + 4 * EPS),
        xtol=EPS * B,
        rtol=4 * EPS,
        maxiter=1000,
    )
    growth = float(p * math.sqrt(root) / q)
    c = growth * q
    right = q**2 * ((p**2 + c**2) / w**2) ** e
    return growth, float(abs(c**2 - right) / max(c**2, right))


def _power(base: float, exponent: int) -> float:
    """Return base ** exponent, or where that is more than 1e300, 1e300."""
    return base**exponent if base <= 1 or exponent * math.log10(base) < 300 else 1e300


def _ratio(array: Floats, *sizes: Floats) -> float:
    """Return the norm of an array over the product of others'; 0 for 0 / 0."""
    norm, unit = np.linalg.norm(array), math.prod(float(np.linalg.norm(size)) for size in sizes)
    if unit > 0:
        return float(norm / unit)
    return 0.0 if norm == 0 else math.inf
