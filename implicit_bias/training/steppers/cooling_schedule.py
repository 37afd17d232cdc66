"""Schedule of the temperature of the smoothed margin: how far it may fall, by how far converged."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

# The inverse temperature may grow every so many steps, at most by this share of itself, ...
CHECK_EVERY, MAX_GROWTH = 5, 0.3
# ... if the last step promised less than this part of log(n), what smoothing costs, ...
CONVERGED = 0.01
# ... and by no more than this times the radial over the tangential part of the gradient, or units
# freeze before their directions are right. Sixty starts of twelve kinds after 2000 steps, least
# margin ratio: at three times this 0.982, here 0.99994, at a third 0.99994. Deep gated networks of
# seven units a layer on 16 samples after 900, beside their local limits: 0.991 to 0.9995, 0.993 to
# 0.99999, 0.99997 to 0.99999. What is lost is speed: ten GLN units on 200 digits after 400 steps
# 0.99996, 0.99987, 0.99928, and after 1000 0.99997, 0.99999, 1.
STATIONARY = 0.003
# It grows no more where rounding would change log(loss) by this, nor beyond this log(1 / loss),
# where smoothing costs log(n) millionths of the margin: further steps improve the direction alone.
ROUNDING = 1e-4
MAX_LOG_INVERSE_LOSS = 1e6
# A network that separates the data by next to nothing, at a saddle, does so at a temperature far
# too low for what follows: log(1 / loss) runs ahead of the direction, and steps creep along the
# samples of the smallest margins. Where log(1 / loss) exceeds what was reached by converging, at
# first log(n), by more than one growth, the temperature rises again. Three balanced deep linear
# networks on 42 samples were at 0.971, 0.975 and 0.986 of the margin after 2000 steps, and with
# this at 0.9999 after 400. Curvature is forgotten where the inverse temperature falls below this
# share of itself.
RESET_BELOW = 0.5

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Convergence:
    """Progress of networks (B,) at their temperatures.

    Attributes
    ----------
    level : (B,) array
        log(1 / loss).
    converged_level : (B,) array
        The largest level that was reached by converging.
    radial, tangent : (B,) arrays
        Lengths of the parts of the gradient of log(loss), at weights of length 1.
    separated, converged : (B,) boolean arrays
        Whether the data are separated, and whether the last step promised next to nothing.
    """

    level: Array
    converged_level: Array
    radial: Array
    tangent: Array
    separated: NDArray[np.bool_]
    converged: NDArray[np.bool_]


def growth_factors(now: Convergence, eps: float) -> tuple[Array, NDArray[np.bool_]]:
    """Return factors (B,) for the inverse temperatures, and which networks (B,) may cool.

    Parameters
    ----------
    now : Convergence
    eps : float
        Rounding unit of the weights.
    """
    growth = np.divide(
        STATIONARY * now.radial,
        now.tangent,
        out=np.full_like(now.tangent, MAX_GROWTH),
        where=now.tangent > 0,
    )
    ready = now.separated & now.converged & (now.level < min(MAX_LOG_INVERSE_LOSS, ROUNDING / eps))
    factor = np.where(ready, 1 + growth.clip(0.0, MAX_GROWTH), 1.0)
    ahead = now.separated & ~ready & (now.level > (1 + MAX_GROWTH) * now.converged_level)
    factor = np.where(ahead, now.converged_level / np.where(ahead, now.level, 1.0), factor)
    return factor, ready
