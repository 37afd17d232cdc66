"""Newton's method on the dual of a separable potential: as many unknowns as there are samples."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..numerics.factor import Factor
from ..numerics.step_length import longest_step
from ..programs.images import Floats
from ..programs.potentials import Potential
from .damped_newton import damped_newton

EPS = float(np.finfo(np.float64).eps)
_STAGE, _SMALLEST_BARRIER = 0.03, 1e-13
# Newton's steps at one barrier.
_STEPS = 200


class Dual(NamedTuple):
    """Coefficients b (m,) and multipliers nu (n,), and how many steps they took."""

    b: Floats
    nu: Floats
    iterations: int


def least_potential(
    potential: Potential, features: Floats, y: Floats, *, rcond: float, max_iterations: int
) -> Dual:
    """Minimise the potential over ``features b = y``.

    In the row space of the features, through an orthonormal basis of it, so that dependent rows
    cost nothing.

    Parameters
    ----------
    potential : Potential
    features : (n, m) array
    y : (n,) array
    rcond : float
        Singular values up to this share of the largest count as zero.
    max_iterations : int

    Returns
    -------
    Dual
    """
    left, values, rows = np.linalg.svd(features, full_matrices=False)
    kept = values > rcond * np.max(values, initial=0.0)
    rows, back = rows[kept], left[:, kept] / values[kept]
    wanted = back.T @ y

    def value(w: Floats) -> float:
        with np.errstate(over="ignore", invalid="ignore"):
            return float(potential.conjugate(rows.T @ w).sum() - wanted @ w)

    def derivatives(w: Floats) -> tuple[Floats, Floats]:
        z = rows.T @ w
        return rows @ potential.coefficients(z) - wanted, rows * potential.slopes(z) @ rows.T

    def room(w: Floats, dw: Floats) -> float:
        return potential.room(rows.T @ w, rows.T @ dw)

    w, iterations = damped_newton(
        value, derivatives, np.zeros(len(rows)), room=room, max_steps=max_iterations
    )
    z = rows.T @ w
    slopes, b = potential.slopes(z), potential.coefficients(z)
    # Onto the samples exactly, by one more step of the primal, which keeps signs that are locked.
    onto = Factor(rows * slopes @ rows.T)
    for _ in range(2):
        b = b + slopes * (rows.T @ onto.solve(wanted - rows @ b))
    return Dual(b, back @ w, iterations)


def least_potential_of_margins(
    potential: Potential, signed: Floats, margin: float, *, max_iterations: int
) -> Dual:
    """Minimise the potential over ``signed b >= margin``, `signed` being y times the features.

    By a barrier on the multipliers: at every stage margins are strictly above. A start whose
    margins are no smaller is the limit itself, of multipliers 0.

    Parameters
    ----------
    potential : Potential
    signed : (n, m) array
    margin : float
        Positive.
    max_iterations : int

    Returns
    -------
    Dual
    """
    n = len(signed)
    start = potential.coefficients(np.zeros(signed.shape[1]))
    if np.all(signed @ start >= margin * (1 - 4 * EPS)):
        return Dual(start, np.zeros(n), 0)
    lam = np.full(n, 0.1 / (n * max(float(np.abs(signed).max()), np.finfo(float).tiny)))
    lam *= min(1.0, potential.room(np.zeros(signed.shape[1]), signed.T @ lam) / 2)
    barrier, iterations = margin * float(lam.mean()), 0
    while True:

        def value(lam: Floats, mu: float = barrier) -> float:
            if not np.all(lam > 0):
                return np.inf
            with np.errstate(over="ignore", invalid="ignore"):
                conjugate = potential.conjugate(signed.T @ lam).sum()
            return float(conjugate - margin * lam.sum() - mu * np.log(lam).sum())

        def derivatives(lam: Floats, mu: float = barrier) -> tuple[Floats, Floats]:
            z = signed.T @ lam
            curved = signed * potential.slopes(z) @ signed.T + np.diag(mu / lam**2)
            return signed @ potential.coefficients(z) - margin - mu / lam, curved

        def room(lam: Floats, step: Floats) -> float:
            return min(potential.room(signed.T @ lam, signed.T @ step), longest_step(lam, step))

        lam, steps = damped_newton(
            value, derivatives, lam, room=room, enough=1e-4 * n * barrier,
            max_steps=min(_STEPS, max_iterations - iterations),
        )  # fmt: skip
        iterations += steps
        # What takes so many steps at one barrier has no end.
        reached = steps == _STEPS or barrier <= _SMALLEST_BARRIER * margin * float(lam.mean())
        if reached or iterations >= max_iterations:
            return Dual(potential.coefficients(signed.T @ lam), lam, iterations)
        barrier *= _STAGE


def infeasibility(
    signs: NDArray[np.int_], features: Floats, y: Floats, margin: float | None
) -> Floats | None:
    """Return multipliers that prove no coefficients of these signs to exist; None without any.

    Parameters
    ----------
    signs : (m,) integer array
        As `Potential.signs` has them.
    features : (n, m) array
    y : (n,) array
    margin : float or None
        Of margins; None for interpolation.

    Returns
    -------
    (n,) array or None

    Notes
    -----
    They are nu with ``<y, nu> > 0`` and ``features' nu`` 0 for free coefficients, at most 0 for
    those that stay positive, and at least 0 for those that stay negative. For margins they are
    those of the samples, none below 0.
    """
    from .backends.highs import linear_program

    rows = features.T / max(float(np.abs(features).max()), np.finfo(float).tiny)
    goal = y / max(float(np.abs(y).max()), np.finfo(float).tiny)
    if margin is not None:
        rows, goal = rows * y, np.ones(len(y))
    bounds = (0.0, 1.0) if margin is not None else (-1.0, 1.0)
    kept = np.isin(signs, (1, -1))
    upper, equal = rows[kept] * signs[kept, None], rows[signs == 0]
    found = linear_program(-goal, upper, equal=equal, bounds=bounds, method="highs")
    if found.status != 0 or not -found.fun > 1e-7 * np.linalg.norm(goal):
        return None
    return np.asarray(found.x)
