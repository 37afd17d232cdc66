"""Dependence of scores on each parameter and on the inputs: where the gates are fixed."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .homogeneity import Homogeneity
from .subject import SAME, Subject, Weights, misfit

# Lines through weight space reach so many times the size of the weights: what saturates, or is
# nearly linear near 0, is not a polynomial over all of them. Chebyshev coefficients on each tell a
# polynomial of at most so high a degree.
RADII, NODES, MOST = (1.0, 30.0), 16, 9
_VANISHES = 1e-10
# On a line so short that a smooth function's next coefficient is 1e-11 of it, that coefficient is
# 1e-13 at most where the function is a polynomial; of half of the samples, as kinks are rare there.
_NEXT, _NONE, _MOST_SAMPLES = 1e-11, 1e-13, 0.5


@dataclass(frozen=True)
class Dependence:
    """Form of the scores as a function of the weights, on the samples, at their gates.

    Attributes
    ----------
    degree : int or None
        Degree of the polynomial in all weights together that the scores are: their gates are fixed,
        no weight moves one. None if they are no polynomial.
    in_parameter : mapping of str to int or None
        The same for each parameter, all others held; 1 where scores are linear in it.
    piecewise : tuple of str
        Parameters that move gates: scores are polynomials in them but for kinks or jumps.
    others : tuple of str
        Parameters in which the scores are neither.
    """

    degree: int | None
    in_parameter: Mapping[str, int | None]
    piecewise: tuple[str, ...]
    others: tuple[str, ...]

    @property
    def gates_are_fixed(self) -> bool:
        """True where no trained weight moves a gate."""
        return self.degree is not None


class InputDependence(Enum):
    """Form of the scores as a function of the inputs, at fixed weights and given gates."""

    LINEAR = "linear in the inputs"
    GATED = "linear in the inputs behind their gates"
    AFFINE = "affine in the inputs"
    POSITIVE = "positively homogeneous of degree 1 in the inputs"
    OTHER = "no such function of the inputs"


def measure_dependence(subject: Subject, homogeneity: Homogeneity) -> Dependence:
    """Measure in which parameters scores are polynomials, and which parameters move gates.

    Parameters
    ----------
    subject : Subject
    homogeneity : Homogeneity
        Of the same subject: its degrees say which coefficients vanish between kinks.

    Returns
    -------
    Dependence
        From lines in random directions at random weights: measured, not proved.
    """
    few = subject.few_of_many()
    points = few.points()
    names = tuple(few.weights)
    degree = _polynomial(few, points, names)
    # A polynomial that is homogeneous in a parameter is of that degree in it.
    alone = {one.name: one.degree for one in homogeneity.groups if not one.together}
    degrees = {
        name: int(own) if degree is not None and (own := alone.get(name)) is not None
        else _polynomial(few, points, (name,))
        for name in names
    }  # fmt: skip
    moved = [name for name in names if degrees[name] is None]
    # Parameters that break homogeneity, biases above all, are tried as linear ones.
    local = {one.name: 1.0 if one.degree is None else one.degree for one in homogeneity.groups}
    piecewise = tuple(name for name in moved if _between_kinks(few, points, name, local[name]))
    return Dependence(
        degree=degree,
        in_parameter=MappingProxyType(degrees),
        piecewise=piecewise,
        others=tuple(name for name in moved if name not in piecewise),
    )


def polynomial_degree(subject: Subject) -> int | None:
    """Return the degree of the polynomial in all weights that scores are; None if they are none."""
    few = subject.few_of_many()
    return _polynomial(few, few.points(), tuple(few.weights))


def measure_inputs(subject: Subject) -> InputDependence:
    """Measure how scores depend on the inputs at fixed weights, each sample's gates held.

    Parameters
    ----------
    subject : Subject
    """
    few = subject.few_of_many()
    if not few.data.X.is_floating_point():  # token ids, of which there are no multiples
        return InputDependence.OTHER
    rng = torch.Generator().manual_seed(0)
    size = float(few.data.X.square().mean().sqrt()) or 1.0
    a, b = (
        size * torch.randn(few.data.X.shape, generator=rng, dtype=torch.float64) for _ in range(2)
    )
    seen = {InputDependence.LINEAR: True, InputDependence.AFFINE: True}
    seen[InputDependence.POSITIVE] = True
    for w in (few.weights, few.drawn(0)):
        of_a, of_b, mixed, grown, zero = (
            few.on(X, few.data.gates).scores(w) for X in (a, b, 0.3 * a - 1.7 * b, 2.3 * a, 0 * a)
        )
        linear = zero + 0.3 * (of_a - zero) - 1.7 * (of_b - zero)
        seen[InputDependence.AFFINE] &= misfit(linear, mixed) <= SAME
        seen[InputDependence.POSITIVE] &= misfit(2.3 * of_a, grown) <= SAME
        seen[InputDependence.LINEAR] &= misfit(0.3 * of_a - 1.7 * of_b, mixed) <= SAME
    found = next((form for form, holds in seen.items() if holds), InputDependence.OTHER)
    gated = found is InputDependence.LINEAR and _gates_matter(few)
    return InputDependence.GATED if gated else found


def _gates_matter(subject: Subject) -> bool:
    """Test whether another sample's gates change a score."""
    data, w = subject.data, subject.drawn(0)
    if data.gates is None:
        return False
    others = subject.on(data.X, data.gates.roll(1, 0))
    return not misfit(subject.scores(w), others.scores(w)) <= SAME


def _polynomial(subject: Subject, points: Sequence[Weights], names: Collection[str]) -> int | None:
    """Return the degree of the polynomial in these parameters together; None if there is none."""
    degree = 0
    for seed, w in enumerate(points):
        for radius in RADII:
            found = _degree_of(_along(subject, w, names, seed, radius))
            if found is None:
                return None
            degree = max(degree, found)
    return degree


def _degree_of(coefficients: NDArray[np.float64]) -> int | None:
    """Read the degree off Chebyshev coefficients (NODES, n) of all samples."""
    sizes = np.abs(coefficients).max(axis=1)
    if not np.isfinite(sizes).all():
        return None
    present = np.flatnonzero(sizes > _VANISHES * sizes.max())
    degree = int(present.max(initial=0))
    return degree if degree <= MOST else None


def _between_kinks(subject: Subject, points: Sequence[Weights], name: str, degree: float) -> bool:
    """Test whether scores are polynomials in a parameter but for kinks, at most samples."""
    if degree != round(degree) or not 0 <= degree <= MOST:
        return False
    radius = _NEXT ** (1 / (degree + 1))
    for seed, w in enumerate(points):
        c = np.abs(_along(subject, w, (name,), seed, radius))
        smooth = c[int(degree) + 1 :].max(axis=0) <= _NONE * c.max()
        if not smooth.mean() >= _MOST_SAMPLES:
            return False
    return True


def _along(
    subject: Subject, w: Weights, names: Collection[str], seed: int, radius: float
) -> NDArray[np.float64]:
    """Return the Chebyshev coefficients (NODES, n K) of the scores on a line through `w`."""
    direction = subject.drawn(1000 + seed)
    angles = np.pi * (np.arange(NODES) + 0.5) / NODES
    rows: list[Tensor] = []
    for t in radius * np.cos(angles):
        moved = {name: w[name] + float(t) * direction[name] for name in names}
        rows.append(subject.scores({**w, **moved}).flatten())
    values = torch.stack(rows).numpy()
    cosines = np.cos(np.arange(NODES)[:, None] * angles)
    return np.asarray(2 / NODES * cosines @ values)
