"""Transfer tasks: inputs for a student, a teacher, and inputs on which both are compared."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import expit, softmax

from ..._support.doors import door, parameters
from ..._support.kinds import count, floats, positive
from ..._support.solve import require_sizes
from ...data.arrays import Floats
from ...data.dataset import Dataset, digest
from ...data.labelled import ClassDataset


@parameters(X=floats("n D"), X_val=floats("m>=0 D: as X has"), teacher=floats("D | K D: as X has"))
@dataclass(frozen=True, eq=False)
class TransferTask:
    """Inputs of a transfer set, a linear teacher, and further inputs of the same distribution.

    Attributes
    ----------
    X, X_val : (n, D) and (m, D) read-only arrays
        Inputs to learn from, and held-out inputs.
    teacher : (D,) or (K, D) read-only array
        `w_*`: the soft label of x is `sigmoid(<w_*, x>)`, or softmax of K scores.
    name, description : str
        A word for tables, and one line that describes the task.

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
        for key in ("X", "X_val", "teacher"):
            array = np.array(getattr(self, key))
            array.setflags(write=False)
            object.__setattr__(self, key, array)
        if not self.teacher.any():
            raise ValueError("`teacher` must not be 0: it has no label for any input")

    @property
    def logits(self) -> Floats:
        """(n,) or (n, K) scores of the teacher on the transfer set."""
        return np.asarray(self.X @ self.teacher.T)

    @property
    def of_classes(self) -> bool:
        """True if the teacher has K scores, one for each class."""
        return self.teacher.ndim == 2

    @property
    def soft_labels(self) -> Floats:
        """(n,) `sigmoid` of the scores, in [0, 1], or (n, K) softmax."""
        logits = self.logits
        return np.asarray(softmax(logits, axis=1) if self.of_classes else expit(logits))

    @door(temperature=positive)
    def tempered(self, temperature: float) -> TransferTask:
        """Return the task with soft labels at a temperature, which divides all scores.

        Inputs are divided by the temperature, for teacher and student: the weights of the limit do
        not depend on it.

        Raises
        ------
        ValueError
            If `temperature` is not positive and finite.
        """
        if temperature == 1:
            return self
        return replace(
            self,
            X=self.X / temperature,
            X_val=self.X_val / temperature,
            description=f"{self.description}; soft labels at temperature {temperature:g}",
        )

    def digest(self) -> str:
        """Return the SHA-256 of the arrays, equal on every machine."""
        return digest(self.X, self.X_val, self.teacher)


@door(n=count(1), d=count(2), kappa=positive, n_val=count(1))
def make_angle_task(
    n: int,
    d: int,
    kappa: float,
    *,
    margin: float = 0.0,
    n_val: int = 2000,
    random_state: int | np.random.Generator = 0,
) -> TransferTask:
    """Draw inputs whose angle with a teacher has the tail `(1 - theta / (pi/2 - margin))^kappa`.

    The teacher is a uniform unit vector. The unsigned angle theta of an input is drawn from this
    tail, its direction uniformly from those at that angle, its length and sign from a standard
    normal. No input is at an angle of less than `margin` with the boundary of the classes.

    Parameters
    ----------
    n, d : int
        Inputs of the transfer set, and their dimension, at least 2.
    kappa : float
        Positive; the larger, the nearer inputs are to the teacher's direction.
    margin : float
        Angle in radians, in [0, pi/2).
    n_val : int
        Number of held-out inputs.
    random_state : int or numpy.random.Generator
        Seed of teacher and inputs.

    Returns
    -------
    TransferTask
        With inputs `X` (n, d), `X_val` (n_val, d) and `teacher` (d,).

    Raises
    ------
    ValueError
        If a number is out of range.

    References
    ----------
    M. Phuong, "Underspecification in Deep Learning", section 5.4.1, and figure 5.2 with a margin.

    Examples
    --------
    >>> task = ib.distillation.make_angle_task(5, 3, kappa=2.0, n_val=10)
    >>> task.X.shape, task.X_val.shape, round(float(np.linalg.norm(task.teacher)), 9)
    ((5, 3), (10, 3), 1.0)
    """
    if not 0 <= margin < math.pi / 2:
        raise ValueError(f"`margin` must lie in [0, pi/2), got {margin}")
    require_sizes("inputs", {"n": n, "d": d, "n_val": n_val}, (n + n_val, d), (n + n_val, d))
    rng = np.random.default_rng(random_state)
    teacher = _unit(rng.standard_normal(d))
    angles = (math.pi / 2 - margin) * (1 - rng.uniform(size=n + n_val) ** (1 / kappa))
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
            f"(1 - theta / {math.degrees(math.pi / 2 - margin):g} degrees)^{kappa:g}; "
            f"{n_val} held out"
        ),
    )


def image_task(dataset: Dataset | ClassDataset) -> TransferTask:
    """Make a transfer task of labelled data, its teacher trained on half of the held-out samples.

    The teacher is scikit-learn's logistic regression without intercept (L2 penalty 1; softmax for K
    classes) on the first half of the held-out samples. The second half measures the risk; students
    learn from soft labels alone.

    Raises
    ------
    ValueError
        If the first half of the held-out samples has one label alone, or inputs are too large or
        too small for the teacher's penalty.
    """
    from sklearn.linear_model import LogisticRegression  # type: ignore[import-untyped,unused-ignore]

    half = len(dataset.X_val) // 2
    several = isinstance(dataset, ClassDataset)
    labels = dataset.labels_val if isinstance(dataset, ClassDataset) else dataset.y_val
    X, y = dataset.X_val[:half], labels[:half]
    if len(np.unique(y)) < 2:
        raise ValueError(
            f"the teacher learns from the first half of the held-out samples, {half} of them, "
            "which must hold two labels at least: hold out more, or take another seed"
        )
    fitted = LogisticRegression(fit_intercept=False, max_iter=10_000, tol=1e-8).fit(X, y)
    weights = fitted.coef_
    if not (np.all(np.isfinite(weights)) and np.any(weights)):
        raise ValueError(
            "the teacher, a logistic regression of L2 penalty 1, has no weights on inputs whose "
            f"largest entry is {np.abs(X).max():.3g}: rescale `X` to entries of about 1"
        )
    if several and len(weights) == 1:  # of two classes it has the difference alone
        weights = np.concatenate([-weights, weights]) / 2
    return TransferTask(
        X=dataset.X_train,
        X_val=dataset.X_val[half:],
        teacher=weights if several else weights[0],
        name=dataset.name,
        description=f"{dataset.description}, of which {half} teach the teacher",
    )


def _unit(vectors: Floats) -> Floats:
    return np.asarray(vectors / np.linalg.norm(vectors, axis=-1, keepdims=True))
