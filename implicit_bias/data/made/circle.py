"""Points of the unit circle with a function of low frequency on one half, of high on the other."""

from __future__ import annotations

import numpy as np

from ..._support.doors import door
from ..._support.kinds import count
from ..._support.solve import require_sizes
from ..arrays import Floats
from ..dataset import Dataset, drawn_dataset

LOW, HIGH = 2, 10


@door(n=count(1))
def make_circle(
    n: int, *, gap: float = 0.03, random_state: int | np.random.Generator = 0
) -> tuple[Floats, Floats]:
    r"""Draw points of the unit circle, labelled by the sign of a function of their angle a.

    It is sin(2 a) for points above the horizontal axis and sin(10 a) below it. Works on this task
    fit the function itself, by least squares; its signs make two classes of it, eleven arcs and a
    twelfth that is cut in two by the angle 0.

    Parameters
    ----------
    n : int
        Number of points.
    gap : float
        Least angle between a point and a change of the label, in [0, pi / 20): arcs of the hard
        half are pi / 10 long.
    random_state : int or numpy Generator
        Source of the points.

    Returns
    -------
    X : (n, 2) array
        Points of length 1: one and its opposite are in complementary half-spaces through the
        origin.
    y : (n,) array
        Labels in {-1, +1}.

    Raises
    ------
    ValueError
        If `n` or `gap` is out of range.

    Examples
    --------
    >>> X, y = ib.datasets.make_circle(100)
    >>> X.shape, sorted(set(y.tolist()))
    ((100, 2), [-1.0, 1.0])
    """
    if not 0 <= gap < np.pi / (2 * HIGH):
        raise ValueError(f"`gap` must lie in [0, pi / {2 * HIGH}), got {gap}")
    require_sizes("points", {"n": n}, (n, 2))
    rng = np.random.default_rng(random_state)
    # Where labels change: multiples of pi / 2 above, of pi / 10 below. Arcs without their gaps,
    # laid end to end, are one interval to draw from.
    ends = np.concatenate(
        [np.linspace(0, np.pi, LOW, endpoint=False), np.linspace(np.pi, 2 * np.pi, HIGH + 1)]
    )
    free = np.diff(ends) - 2 * gap
    drawn = rng.uniform(0, free.sum(), size=n)
    arc = np.searchsorted(np.cumsum(free), drawn, side="right")
    angle = ends[arc] + gap + drawn - (np.cumsum(free) - free)[arc]
    X = np.column_stack([np.cos(angle), np.sin(angle)])
    return X, np.where(circle_values(X) > 0, 1.0, -1.0)


def circle_values(X: Floats) -> Floats:
    """Return sin(2 a) of the angles a of points (n, 2) above the axis, sin(10 a) below it.

    The two frequencies on two halves are those of the source, which does not give the function.
    """
    angle = np.arctan2(X[:, 1], X[:, 0])
    return np.asarray(np.where(is_easy(X), np.sin(LOW * angle), np.sin(HIGH * angle)))


def is_easy(X: Floats) -> np.ndarray:
    """Return which points (n, 2) are in the half of low frequency, boolean (n,)."""
    return np.asarray(X[:, 1] >= 0)


def circle_dataset(
    *, n_train: int, n_val: int, random_state: int | np.random.Generator = 0
) -> Dataset:
    """Draw the data of `make_circle` as a training and a validation part.

    Raises
    ------
    ValueError
        If a size is not positive, or the training part lacks a class.
    """
    X, y = make_circle(n_train + n_val, random_state=random_state)
    text = f"points of the unit circle labelled by the sign of sin {LOW}a on its upper half, "
    return drawn_dataset("circle", X, y, n_train, f"{text}sin {HIGH}a on its lower")
