"""Step sizes by which a two-layer network near zero follows its gradient flow."""

from __future__ import annotations

import numpy as np

from ..._support.solve import Array, require_positive, to_numpy
from ...training.settings import Phases


def halving_phases(
    X: Array,
    *,
    escape: tuple[int, float] = (100, 0.3),
    steps: int = 30,
    rate: float = 0.2,
    n_phases: int = 8,
) -> Phases:
    """Return phases of the trainer "normalised": learning rates halve as steps double.

    In the rescaled time of `d theta / ds = -grad(loss) / loss` a network of degree 2 near its
    limit has q = log(1/loss) grow like `dq/ds = 2 q / S`, S the optimum of its program, so that a
    step of size r changes the weights by the share r/S whatever their size. Phase k makes
    `2^k steps` steps at `2^-k rate` and multiplies q by `exp(2 steps rate / S)`. Where that is
    about 2 training follows the flow. Longer phases are a normalised subgradient method, which
    proceeds much further in as many steps: in experiments its limit is the same, within an error
    that falls with the last rate.

    Parameters
    ----------
    X : (n, D) array
        Training inputs. Rates are in units of one over the longest input's length, which makes
        a run the same at every scale of X.
    escape : (steps, rate)
        First phase, in which neurons turn and leave the neighbourhood of zero: its length is
        logarithmic in the initial scale.
    steps, rate, n_phases : int, float, int
        Steps and rate of the first of the phases after it, and their number.

    Returns
    -------
    tuple of (steps, learning rate)

    Raises
    ------
    ValueError
        If a number is not positive and finite, or X is all zeros.

    Examples
    --------
    >>> from implicit_bias.models.orthosep import halving_phases
    >>> X = [[0.0, 2.0]]
    >>> halving_phases(X, escape=(100, 0.5), steps=10, rate=0.2, n_phases=3)
    ((100, 0.25), (10, 0.1), (20, 0.05), (40, 0.025))
    """
    longest = float(np.linalg.norm(np.asarray(to_numpy(X), dtype=float), axis=1).max())
    numbers = {"steps": steps, "rate": rate, "n_phases": n_phases, "max ||x||": longest}
    for name, number in numbers.items():
        require_positive(name, number)
    phases = [escape, *((steps * 2**k, rate / 2**k) for k in range(n_phases))]
    return tuple((count, size / longest) for count, size in phases)
