"""Norms of the family of predictors that a gated linear network can hold.

A network with H units of C contexts holds C^H linear predictors, one per global context,

    beta[gamma] = sum_h zeta[h, gamma_h] = mean + sum_h effects[h, gamma_h],

with sum_c effects[h, c] = 0: a family is the mean of its predictors and one main effect per unit,
which is (C - 1) H + 1 free vectors (lemmas B.6 and B.7 of S. Lippl, L. F. Abbott, S. Chung, "The
implicit bias of gradient descent on generalized gated linear networks", in the words of the
analysis of variance). Every norm here is a function of the sizes of these, so that no C^H is ever
enumerated.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from ..._support.doors import door
from ..._support.solve import Array, DenseArray, array_namespace, require_finite
from ...data.arrays import Floats
from ...limits.literal import LiteralProgram, constant, cvxpy_module, labelled

if TYPE_CHECKING:
    import cvxpy

# Entries of a family that may be enumerated: one gigabyte.
_MAX_ENTRIES = 2**27
# Relative size up to which a difference that the architecture forbids is put down to rounding.
_ROUNDING = 1e-8


@dataclass(frozen=True, eq=False)
class MainEffects:
    """A family of predictors in the only coordinates that it has freely.

    Parameters
    ----------
    mean : (D,) float64 array
        Mean of the predictors over all C^H global contexts.
    effects : (H, C, D) float64 array
        What unit h in context c adds to the mean; zero when summed over c. NumPy or torch, as
        the mean.
    """

    mean: DenseArray
    effects: DenseArray

    @classmethod
    def of_coefficients(cls, zeta: Array) -> Self:
        """Decompose the family of the coefficients zeta (H, C, D), a floating-point array."""
        xp = array_namespace(zeta)
        means = xp.mean(zeta, axis=1)
        return cls(mean=xp.sum(means, axis=0), effects=zeta - means[:, None, :])

    @classmethod
    def of_predictors(cls, beta: ArrayLike) -> Self:
        """Decompose the predictors beta (C, ..., C, D), one axis a unit; NumPy only.

        Raises
        ------
        ValueError
            If the shape is not that of a family, or no coefficients have these predictors: the
            effect of a unit must not depend on the contexts of the others (lemma B.6).
        """
        family = _family(beta)
        units = range(family.ndim - 1)
        mean = family.mean(axis=tuple(units))
        effects = np.stack(
            [family.mean(axis=tuple(u for u in units if u != h)) - mean for h in units]
        )
        fitted = mean + predictor_family(effects)
        miss, size = float(np.abs(family - fitted).max()), float(np.abs(family).max())
        if not miss <= _ROUNDING * size:
            raise ValueError(
                "`beta` must differ between contexts of one unit by the same vector whatever the "
                f"other units' contexts are, got a deviation of {miss:.3g} for entries up to "
                f"{size:.3g}: no two-layer gated linear network has these predictors"
            )
        return cls(mean=mean, effects=effects)

    def effect_norms(self) -> DenseArray:
        """(H,) Frobenius norms of the effects."""
        xp = array_namespace(self.effects)
        found: DenseArray = xp.sqrt(xp.sum(self.effects * self.effects, axis=(1, 2)))
        return found

    def gln_norm(self) -> float:
        """The least `sum_h ||zeta[h]||_F` of all coefficients with these predictors.

            ||beta||_GLN^2 = (sum_h ||effects[h]||)^2 + C ||mean||^2

        Such coefficients are `effects[h] + m_h` in every context with `sum_h m_h = mean`, and
        `||zeta[h]||` is the length of the plane vector `(||effects[h]||, sqrt(C) ||m_h||)`. The
        sum of the lengths is at least the length of the sum, and equal to it for parallel
        vectors: `m_h = mean ||effects[h]|| / sum_k ||effects[k]||`.

        References
        ----------
        For H = C = 2 the same paper, proposition B.9, whose (21) and (60) print twice the square.
        """
        n_contexts = int(self.effects.shape[1])
        within = float(self.effect_norms().sum())
        return math.hypot(within, math.sqrt(n_contexts) * _norm(self.mean))

    def rms_norm(self) -> float:
        """Root of the mean of `||beta[gamma]||^2` over all C^H global contexts.

            rms^2 = ||mean||^2 + sum_h ||effects[h]||^2 / C,

        since effects of different units are uncorrelated under uniform contexts. The plain norm
        `||beta||_2` is `C^(H/2)` times this. The GLN norm is between `sqrt(C)` and `sqrt(H C)`
        times this, `sqrt(C)` exactly if at most one unit has an effect.
        """
        n_contexts = int(self.effects.shape[1])
        return math.hypot(_norm(self.mean), _norm(self.effects) / math.sqrt(n_contexts))

    def coefficients(self) -> DenseArray:
        """The coefficients zeta (H, C, D) of these predictors with the least GLN norm.

        Where no unit has an effect, the mean is shared out evenly.
        """
        xp = array_namespace(self.effects)
        norms = self.effect_norms()
        norms = norms if bool(xp.any(norms > 0)) else xp.ones_like(norms)
        shares = norms / xp.sum(norms)
        found: DenseArray = self.effects + shares[:, None, None] * self.mean[None, None, :]
        return found


def predictor_family(zeta: ArrayLike) -> Floats:
    """All predictors of a network: beta (C, ..., C, D) with one axis of length C a unit.

    Parameters
    ----------
    zeta : (H, C, D) array

    Raises
    ------
    ValueError
        If zeta has another number of axes, or the family more than 2^27 entries.
    """
    zeta = np.asarray(zeta, dtype=np.float64)
    if zeta.ndim != 3 or zeta.size == 0:
        raise ValueError(f"`zeta` must have shape (H, C, D), none of them 0, got {zeta.shape}")
    n_units, n_contexts, n_inputs = zeta.shape
    if n_contexts**n_units * n_inputs > _MAX_ENTRIES:
        raise ValueError(
            f"{n_contexts}^{n_units} predictors of {n_inputs} entries are too many to enumerate: "
            "use `MainEffects.of_coefficients`, whose norms need no enumeration"
        )
    family = np.zeros((n_contexts,) * n_units + (n_inputs,))
    for h in range(n_units):
        family += np.expand_dims(zeta[h], tuple(k for k in range(n_units) if k != h))
    return family


@door()
def gln_norm(beta: ArrayLike) -> float:
    """Compute the GLN norm `min { sum_h ||zeta[h]||_F : beta[gamma] = sum_h zeta[h, gamma_h] }`.

    Parameters
    ----------
    beta : (C, ..., C, D) array
        A predictor per global context, one axis a unit.

    Returns
    -------
    float
        By the closed form of `MainEffects.gln_norm`, for any H and C.

    Raises
    ------
    ValueError
        If the predictors are not (C, ..., C, D), or no sum of one term a unit.

    Examples
    --------
    >>> beta = np.zeros((2, 2, 1))
    >>> beta[0, 0], beta[1, 1] = 2.0, -2.0  # b12 = b21 = 0, and ||b11 - b12|| = ||b11 - b21|| = 2
    >>> round(ib.programs.gln_norm(beta) ** 2, 12)
    8.0
    """
    return MainEffects.of_predictors(beta).gln_norm()


@dataclass(frozen=True)
class GLNNorm(LiteralProgram):
    """The GLN norm of a family of predictors, as the program that defines it.

        minimise  sum_h ||zeta[h]||_F   s.t.   beta[gamma] = sum_h zeta[h, gamma_h]

    `gln_norm` is its closed form.

    References
    ----------
    S. Lippl, L. F. Abbott, S. Chung, "The implicit bias of gradient descent on generalized gated
    linear networks", equation (20), as printed; (21) and (60) print twice its square.

    Examples
    --------
    >>> beta = np.array([[[2.0], [0.0]], [[0.0], [-2.0]]])
    >>> problem = ib.programs.GLNNorm().literal(beta)
    >>> round(float(problem.solve(solver="CLARABEL")) ** 2, 6)
    8.0
    """

    name: ClassVar[str] = "GLN norm"

    @door()
    def literal(self, beta: ArrayLike) -> cvxpy.Problem:
        """State the program; its one variable is zeta (H C, D), whose row h C + c is zeta[h, c].

        Parameters
        ----------
        beta : (C, ..., C, D) array
            A predictor per global context, one axis a unit.

        Returns
        -------
        cvxpy.Problem
            With a constraint for every global context; infeasible if no network has these
            predictors.

        Raises
        ------
        MissingExtra
            Without cvxpy.
        ValueError
            If the shape is not that of a family.
        """
        cp = cvxpy_module()
        family = _family(beta)
        n_units, n_contexts = family.ndim - 1, family.shape[0]
        zeta = cp.Variable((n_units * n_contexts, family.shape[-1]), name="zeta")
        predictors = constant(family.reshape((-1, family.shape[-1]), order="C"), "beta")
        constraints = []
        for row, gamma in enumerate(np.ndindex(*family.shape[:-1])):
            vectors = [zeta[h * n_contexts + c, :] for h, c in enumerate(gamma)]
            equal = cp.sum(vectors) == predictors[row, :]
            constraints.append(labelled(equal, f"beta{list(gamma)}"))
        norms = [
            cp.norm(zeta[h * n_contexts : (h + 1) * n_contexts, :], "fro") for h in range(n_units)
        ]
        return cp.Problem(cp.Minimize(cp.sum(norms)), constraints)


def _family(beta: ArrayLike) -> Floats:
    family = np.asarray(beta, dtype=np.float64)
    if family.ndim < 2 or len(set(family.shape[:-1])) != 1 or family.size == 0:
        raise ValueError(
            "`beta` must have shape (C, ..., C, D), one axis of length C for each unit, "
            f"got {family.shape}"
        )
    require_finite("beta", family)
    return family


def _norm(array: Array) -> float:
    xp = array_namespace(array)
    return math.sqrt(float(xp.sum(array * array)))
