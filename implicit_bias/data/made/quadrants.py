"""Points of the plane labelled by four linear predictors, one a quadrant, that are tied."""

from __future__ import annotations

import numpy as np

from ..._support.doors import door
from ..._support.kinds import count
from ..._support.solve import require_fraction, require_sizes
from ..arrays import Floats
from ..dataset import Dataset, drawn_dataset

# A network with the labels of |x_1| > |x_2|, and the largest random addition to its weights: below
# 1/2 no slope changes its sign, and it stays an hourglass.
_HOURGLASS = np.array([[[-1.0, 0, 0], [1, 0, 0]], [[0, 1, 0], [0, -1, 0]]])
_LEAN = 0.3

# Points drawn at once for each one wanted, and how many times before giving up.
_SURPLUS, _ROUNDS = 4, 25


@door(n=count(1))
def make_quadrants(
    n: int, *, gap: float = 0.05, random_state: int | np.random.Generator = 0
) -> tuple[Floats, Floats]:
    r"""Draw points of a square, labelled by a gated linear network with H = C = 2.

    .. math:: y = \operatorname{sign} \langle \beta_{c(x)}, x \rangle, \qquad
              \beta_{c} = \zeta_{1, c_1} + \zeta_{2, c_2}, \qquad c_h(x) = [x_h \ge 0]

    with zeta_1 near (-1, 0, 0), (1, 0, 0) and zeta_2 near (0, 1, 0), (0, -1, 0): an hourglass with
    random slopes. The four predictors are tied, beta_00 + beta_11 = beta_01 + beta_10, as they are
    in every network with these gates, which therefore separates the points. One linear predictor
    hardly ever does.

    Parameters
    ----------
    n : int
        Number of points.
    gap : float
        Least distance of a point from the line of its own quadrant's predictor, in [0, 1).
    random_state : int or numpy Generator
        Source of zeta and then of the points, which are uniform on [-1, 1]^2 outside the gaps.

    Returns
    -------
    X : (n, 3) array
        The two coordinates and the constant 1.
    y : (n,) array
        Labels in {-1, +1}.

    Raises
    ------
    ValueError
        If `n` or `gap` is out of range, or the gaps leave no room for the points.

    References
    ----------
    S. Lippl, L. F. Abbott, S. Chung, "The implicit bias of gradient descent on generalized gated
    linear networks", figure 1.

    Examples
    --------
    >>> X, y = ib.datasets.make_quadrants(100)
    >>> X.shape, sorted(set(y.tolist()))
    ((100, 3), [-1.0, 1.0])
    """
    require_fraction("gap", gap, "the square has a half-width of 1")
    require_sizes("points", {"n": n}, (_SURPLUS, n, 3))
    rng = np.random.default_rng(random_state)
    zeta = _HOURGLASS + rng.uniform(-_LEAN, _LEAN, size=_HOURGLASS.shape)
    points = np.empty((0, 3))
    labels = np.empty(0)
    for _ in range(_ROUNDS):
        X = np.ones((_SURPLUS * n, 3))
        X[:, :2] = rng.uniform(-1, 1, size=(len(X), 2))
        side = (X[:, :2] >= 0).astype(int)
        beta = zeta[0, side[:, 0]] + zeta[1, side[:, 1]]
        distance = np.einsum("nd,nd->n", beta, X) / np.linalg.norm(beta[:, :2], axis=1)
        clear = np.abs(distance) > gap
        points = np.concatenate([points, X[clear]])[:n]
        labels = np.concatenate([labels, np.sign(distance[clear])])[:n]
        if len(points) == n:
            return points, labels
    raise ValueError(
        f"`gap` {gap:g} leaves room for {len(points)} of {n} points only: take a smaller one"
    )


def quadrant_dataset(
    *, n_train: int, n_val: int, random_state: int | np.random.Generator = 0
) -> Dataset:
    """Draw the data of `make_quadrants` as a training and a validation part.

    Raises
    ------
    ValueError
        If a size is not positive, or the training part lacks a class (take more samples or
        another seed).
    """
    X, y = make_quadrants(n_train + n_val, random_state=random_state)
    text = "points of the square [-1, 1]^2 labelled by four tied predictors, one a quadrant"
    return drawn_dataset("quadrants", X, y, n_train, f"{text}, with a constant 1")
