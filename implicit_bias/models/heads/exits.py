"""Limits of the heads at all exits of a frozen trunk, and the average of the first of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import softmax

from ..._support.doors import door
from ..._support.solve import Array, require_scale, require_tolerance, to_numpy
from ...data.arrays import Floats
from .direction import direction_limit
from .limit import HeadLimit
from .losses import ExitLoss, exit_loss
from .point import point_limit


@door(features="n _D: one row a sample", labels="n", teacher="n _K")
def solve_exit_heads(
    features: Sequence[Array],
    labels: Array | None = None,
    *,
    teacher: Array | None = None,
    temperature: float = 1.0,
    share: float = 0.5,
    tol: float = 1e-8,
) -> tuple[HeadLimit, ...]:
    r"""Solve for the limits of gradient descent from zero on linear heads over a frozen trunk.

    The loss of one head W on the features phi of its exit is

        share mean_l CE(label, W phi)
            + (1 - share) tau^2 mean_n CE(softmax(t / tau), softmax(W phi / tau))

    with the teacher's logits t and tau the temperature; mean_l is over the labelled samples, mean_n
    over all of them. Heads share no weights, so that each
    is a convex problem of its own:

    * soft labels alone, features of rank n: the minimum-norm interpolant of the teacher's centred
      logits, whatever the temperature;
    * soft labels alone, lower rank, or mixed labels: the unique minimiser on centred weights in the
      span, which does depend on the temperature;
    * hard labels alone: the joint direction of largest relative margin where classes are
      separable, the minimiser where it is proved that they are not.

    Parameters
    ----------
    features : sequence of (n, D_m) arrays
        Features of the samples at each exit.
    labels : (n,) ints, optional
        Classes from 0; -1 for samples without a label, which the teacher alone labels.
    teacher : (n, K) array, optional
        The teacher's logits, frozen. Solve an exit that has no teacher apart, with share 1.
    temperature : float
        tau, positive.
    share : float
        Weight of hard labels, in [0, 1].
    tol : float
        Tolerance of every certificate, in (0, 1).

    Returns
    -------
    tuple of HeadLimit
        One per exit, with its certificate; call `.require()` on each to raise unless its status is
        `SOLVED`.

    Raises
    ------
    TypeError, ValueError
        If shapes disagree, entries are not finite, or labels or teacher are missing.

    References
    ----------
    Phuong, "Underspecification in Deep Learning" (2021), equations (6.1) to (6.6), whose trunk is
    trained as well; theorem 5.1 is the case of two classes on a linear teacher.

    Examples
    --------
    >>> (head,) = ib.heads.solve_exit_heads([np.eye(2)], teacher=[[2.0, 0.0], [0.0, 4.0]], share=0)
    >>> head.kind, head.zeta.round(9).tolist()
    ('interpolant', [[1.0, -2.0], [-1.0, 2.0]])
    """
    require_tolerance(tol)
    loss = exit_loss(labels, teacher, temperature=temperature, share=share)
    if not len(features):
        raise ValueError("`features` must hold one exit at least")
    for m, one in enumerate(features):
        require_scale(f"features[{m}]", one)
    exits = (np.asarray(to_numpy(one), dtype=np.float64) for one in features)
    return tuple(_solve_head(phi, loss, tol) for phi in exits)


@door()
def anytime_average(heads: Sequence[HeadLimit], features: Sequence[Array]) -> tuple[Floats, ...]:
    """Average the class probabilities of the first 1, 2, ... exits.

    Parameters
    ----------
    heads : sequence of HeadLimit
        Limits of the heads. A direction, which has no scale of its own, counts at margin 1.
    features : sequence of (m, D_m) arrays
        Features at each exit of the samples to predict.

    Returns
    -------
    tuple of (m, K) arrays
        The mean of the softmaxes of the first 1, 2, ... exits.

    Raises
    ------
    ValueError
        If numbers of exits or shapes disagree.

    Examples
    --------
    >>> heads = ib.heads.solve_exit_heads([np.eye(2), np.eye(2)], teacher=np.zeros((2, 2)), share=0)
    >>> [p.tolist() for p in ib.heads.anytime_average(heads, [[[1.0, 2.0]], [[3.0, 4.0]]])]
    [[[0.5, 0.5]], [[0.5, 0.5]]]
    """
    if len(heads) != len(features):
        raise ValueError(f"`features` must have {len(heads)} exits, got {len(features)}")
    return averages([h.predictor(phi) for h, phi in zip(heads, features, strict=True)])


def averages(logits: Sequence[Floats]) -> tuple[Floats, ...]:
    """Return means (m, K) of the softmaxes of the first 1, 2, ... logits (m, K)."""
    own = [softmax(u, axis=1) for u in logits]
    return tuple(np.mean(own[: m + 1], axis=0) for m in range(len(own)))


@door()
def budget_exits(accuracies: Sequence[float]) -> tuple[int, ...]:
    """Choose the most accurate exit for each budget, which allows the first 1, 2, ... exits.

    The first of several equally accurate ones is chosen, which costs least.

    Parameters
    ----------
    accuracies : sequence of float
        Accuracy of each exit on validation samples, which neither train nor test it.

    Returns
    -------
    tuple of int
        Index of the exit from 0, one for each budget.

    Raises
    ------
    ValueError
        If there is no exit, or an accuracy is not finite.

    References
    ----------
    Phuong, "Underspecification in Deep Learning", section 6.2.2, budget mode.

    Examples
    --------
    >>> ib.heads.budget_exits([0.7, 0.9, 0.8])
    (0, 1, 1)
    """
    if len(accuracies) == 0 or not np.all(np.isfinite(accuracies)):
        raise ValueError(f"`accuracies` must be finite, one an exit, got {list(accuracies)}")
    return tuple(int(np.argmax(accuracies[: m + 1])) for m in range(len(accuracies)))


def _solve_head(features: Floats, loss: ExitLoss, tol: float) -> HeadLimit:
    if loss.is_hard:
        known = loss.weighted
        classes = loss.one_hot[known].argmax(axis=1)
        direction = direction_limit(features[known], classes, loss.n_classes, tol)
        if direction is not None:
            return direction
    return point_limit(features, loss, tol)
