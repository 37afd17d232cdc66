"""Transfer tasks: inputs for a student, a teacher, and inputs on which they are held together."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from ...data.arrays import Floats
from ...data.dataset import Dataset, digest

__all__ = ["TransferTask", "image_task", "make_angle_task"]

_ARRAYS = ("X", "X_val", "teacher")


@dataclass(frozen=True, eq=False)
class TransferTask:
    """Inputs of a transfer set, a linear teacher, and further inputs of the same distribution.

    Attributes
    ----------
    X, X_val : (n, D) and (m, D) read-only arrays
    teacher : (D,) read-only array
        `w_*`: the soft label of x is `sigmoid(<w_*, x>)`.
    name, description : str
        For tables, and for people.

    Raises
    ------
    ValueError
        If shapes disagree, a number is not finite, or the teacher is 0.
    """

    X: Floats
    X_val: Floats
    teacher: Floats
    name: str
    description: str

    def __post_init__(self) -> None:
        for key in _ARRAYS:
            array = np.array(getattr(self, key), dtype=np.float64)
            array.setflags(write=False)
            object.__setattr__(self, key, array)
        widths = {self.X.shape[1:], self.X_val.shape[1:], self.teacher.shape}
        finite = all(np.isfinite(getattr(self, key)).all() for key in _ARRAYS)
        if len(widths) != 1 or not len(self.X) or not finite or not self.teacher.any():
            raise ValueError(
                "`X` (n, D), `X_val` (m, D) and `teacher` (D,), not 0, must be finite, got shapes "
                f"{self.X.shape}, {self.X_val.shape} and {self.teacher.shape}"
            )

    @property
    def logits(self) -> Floats:
        """(n,) the teacher's scores on the transfer set."""
        return np.asarray(self.X @ self.teacher)

    @property
    def soft_labels(self) -> Floats:
        """(n,) `sigmoid` of them, in [0, 1]."""
        return np.asarray(expit(self.logits))

    def digest(self) -> str:
        """SHA-256 of the arrays, which names the same task on every machine."""
        return digest(self.X, self.X_val, self.teacher)


def make_angle_task(
    n: int,
    d: int,
    kappa: float,
    *,
    n_val: int = 2000,
    random_state: int | np.random.Generator = 0,
) -> TransferTask:
    """Inputs whose angle with the teacher has the tail `(1 - 2 theta / pi)^kappa`.

    An unsigned angle is drawn from it, a direction of unit length uniformly from those at this
    angle, and its length and sign from a standard normal. The teacher is a uniform unit vector.

    Parameters
    ----------
    n, d : int
        Inputs of the transfer set, and their dimension, at least 2.
    kappa : float
        Positive; the larger, the nearer inputs are to the teacher's direction.
    n_val : int
        Further inputs.
    random_state : int or numpy.random.Generator

    Raises
    ------
    ValueError
        If a number is out of range.

    References
    ----------
    M. Phuong, "Underspecification in Deep Learning", section 5.4.1.
    """
    if n < 1 or n_val < 1 or d < 2 or not 0 < kappa < math.inf:
        raise ValueError(
            "`n` and `n_val` must be at least 1, `d` at least 2 and `kappa` positive and finite, "
            f"got {n}, {n_val}, {d} and {kappa}"
        )
    rng = np.random.default_rng(random_state)
    teacher = _unit(rng.standard_normal(d))
    angles = math.pi / 2 * (1 - rng.uniform(size=n + n_val) ** (1 / kappa))
    across = rng.standard_normal((n + n_val, d))
    across = _unit(across - np.outer(across @ teacher, teacher))
    directions = np.cos(angles)[:, None] * teacher + np.sin(angles)[:, None] * across
    # Lengths have both signs, which make both classes.
    inputs = rng.standard_normal((n + n_val, 1)) * directions
    return TransferTask(
        X=inputs[:n],
        X_val=inputs[n:],
        teacher=teacher,
        name="angles",
        description=(
            f"{n} inputs in {d} dimensions whose angles with the teacher have the tail "
            f"(1 - 2 theta / pi)^{kappa:g}; {n_val} held out"
        ),
    )


def image_task(dataset: Dataset) -> TransferTask:
    """Data of two labels as a task: its teacher has learned from the first half of those held out.

    The teacher is a logistic regression without intercept (L2 penalty 1, scikit-learn's), the risk
    is for the second half, and no student sees a label.

    Raises
    ------
    ValueError
        If the half that the teacher learns from has one label alone.
    """
    from sklearn.linear_model import LogisticRegression  # type: ignore[import-untyped,unused-ignore]

    half = len(dataset.y_val) // 2
    X, y = dataset.X_val[:half], dataset.y_val[:half]
    if len(np.unique(y)) < 2:
        raise ValueError(
            f"the teacher learns from the first half of the held-out samples, {half} of them, "
            "which must hold both labels: hold out more, or take another seed"
        )
    fitted = LogisticRegression(fit_intercept=False, max_iter=10_000, tol=1e-8).fit(X, y)
    return TransferTask(
        X=dataset.X_train,
        X_val=dataset.X_val[half:],
        teacher=fitted.coef_[0],
        name=dataset.name,
        description=f"{dataset.description}, of which {half} teach the teacher",
    )


def _unit(vectors: Floats) -> Floats:
    return np.asarray(vectors / np.linalg.norm(vectors, axis=-1, keepdims=True))
