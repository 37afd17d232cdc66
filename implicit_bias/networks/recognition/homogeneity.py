"""Homogeneity of scores in the weights: in all of them, in each parameter, or in which not."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from types import MappingProxyType

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .subject import SAME, Subject, Weights, misfit, normal

# Factors of the weights: none is a power of another, so that a function that repeats itself in the
# logarithm of the scale is found out, and they reach far enough to meet what saturates.
FACTORS = (1e-3, 0.37, 0.9, 1.7, 2.0, 11.0, 1e3)
# Largest degree, whose powers are numbers still.
_HIGHEST = 50
# Factor that a degree is read off at, and most degrees of terms that are looked for.
_FIRST, _DEGREES = 2.0, 10
# Factor beside it of sets of vectors that are tried; those that are named see all of them.
_FAR = (11.0,)
# Random sums of scores at every point, and logarithms of factors of single parameters.
_SUMS, _SPREADS = 3, (1.0, 5.0)


@dataclass(frozen=True)
class GroupDegree:
    """One parameter of a module and the degree of the scores in it, all others held.

    Attributes
    ----------
    name : str
    shape : tuple of int
    degree : float or None
        None if the scores are not homogeneous in it. Where the module is not homogeneous, the
        degree with the parameters in `Homogeneity.mixed` at 0.
    together : tuple of str
        Parameters that share this degree where none has one alone, as the weights of a first layer
        and its bias do. Empty where the parameter has its degree by itself.
    """

    name: str
    shape: tuple[int, ...]
    degree: float | None
    together: tuple[str, ...] = ()


@dataclass(frozen=True)
class Homogeneity:
    r"""Scaling of the scores with the trained weights, measured on samples at several weights.

    .. math:: f(a w) = a^L f(w), \qquad \langle \nabla_w f, w \rangle = L f

    Attributes
    ----------
    degree : float or None
        L; None if the scores are not homogeneous.
    groups : tuple of GroupDegree
        Every parameter with its own degree.
    error : float
        Largest relative misfit of the first identity over all factors and weights that were tried;
        of the least bad degree where there is none.
    euler_error : float
        Largest relative misfit of Euler's identity; of gradients that do not belong to the scores
        it says so where `error` is 0.
    mixed : tuple of str
        Vectors of parameters, such as biases, that break it: with these at 0 the scores are
        homogeneous of degree `degree_without`. Empty where the scores are homogeneous, or no such
        set was found.
    degree_without : float or None
    exponents : mapping of str to float
        Of a quasi-homogeneous module: with parameter p multiplied by :math:`a^{e_p}` the scores
        grow by :math:`a` to the power `degree_without`. Empty where there are none.
    powers : tuple of int
        Degrees of the terms of :math:`f(a w)` where it is a polynomial in a; empty otherwise.
    """

    degree: float | None
    groups: tuple[GroupDegree, ...]
    error: float
    euler_error: float
    mixed: tuple[str, ...] = ()
    degree_without: float | None = None
    exponents: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    powers: tuple[int, ...] = ()

    @property
    def whole_degree(self) -> int | None:
        """The degree if it is a positive whole number; None otherwise."""
        if self.degree is None or self.degree < 1 or self.degree != round(self.degree):
            return None
        return int(self.degree)

    def degree_in(self, name: str) -> float | None:
        """Return the degree in one parameter."""
        return next(group.degree for group in self.groups if group.name == name)


def measure_homogeneity(subject: Subject) -> Homogeneity:
    """Measure how scores scale with all weights and with each parameter.

    Parameters
    ----------
    subject : Subject

    Returns
    -------
    Homogeneity
        From identities at the given weights and at random ones: measured, not proved. What holds
        there for polynomials and piecewise polynomials holds everywhere with probability one.
    """
    few = subject.few_of_many()
    points = few.points()
    found = _scaled(few, points, dict.fromkeys(few.weights, 1.0))
    if found.degree is not None:
        return Homogeneity(found.degree, _groups(few, points), found.error, found.euler_error)
    mixed, without = _breakers(few, points)
    # With those at zero the other degrees are what they are.
    rest = [_zeroed(w, mixed) for w in points]
    exponents = _exponents(few, points, mixed, without) if without else {}
    return Homogeneity(
        None,
        _groups(few, rest if mixed else points, leave_out=mixed),
        found.error,
        found.euler_error,
        mixed,
        without,
        MappingProxyType(exponents),
        _powers(few, points),
    )


@dataclass(frozen=True)
class _Scaling:
    degree: float | None
    error: float
    euler_error: float


def _scaled(
    subject: Subject, points: Sequence[Weights], exponents: Mapping[str, float]
) -> _Scaling:
    """Scale these parameters alone, each by a power of the factor, at every point with scores."""
    degree, error, euler_error = math.nan, 0.0, 0.0
    for w in points:
        scores = subject.scores(w)
        if not bool(scores.any()):
            continue
        slopes = subject.slopes(w, {name: e * w[name] for name, e in exponents.items()})
        if math.isnan(degree):
            twice = subject.scores(_times(w, 2.0, exponents))
            along = float((twice * scores).sum()) / float(scores.square().sum())
            known = 2.0**-_HIGHEST < along < 2.0**_HIGHEST
            degree = _rounded(math.log2(along)) if known else math.inf
        euler_error = _worse(euler_error, misfit(scores, scores + slopes - degree * scores))
        for factor in FACTORS:
            grown = subject.scores(_times(w, factor, exponents))
            error = _worse(error, misfit(scores, grown / factor**degree))
    holds = error <= SAME and euler_error <= SAME and not math.isnan(degree)
    return _Scaling(degree if holds else None, error, euler_error)


def _rounded(degree: float) -> float:
    """Round a degree to a whole number or a half if it is one."""
    nearest = round(2 * degree) / 2
    return nearest if abs(degree - nearest) <= SAME * max(1.0, abs(nearest)) else degree


def _worse(a: float, b: float) -> float:
    """The larger of two errors; infinite where one is not a number."""
    return math.inf if math.isnan(a) or math.isnan(b) else max(a, b)


def _degree(
    subject: Subject,
    points: Sequence[Weights],
    exponents: Mapping[str, float],
    factors: Sequence[float] = FACTORS,
) -> float | None:
    """Return the degree of `_scaled`, or None as soon as scores fail at a factor."""
    degree = None
    for w in points:
        scores = subject.scores(w)
        if not bool(scores.any()):
            continue
        for factor in (_FIRST, *factors):
            grown = subject.scores(_times(w, factor, exponents))
            if degree is None:
                along = float((grown * scores).sum()) / float(scores.square().sum())
                known = _FIRST**-_HIGHEST < along < _FIRST**_HIGHEST
                degree = _rounded(math.log(along, _FIRST)) if known else math.inf
            if not misfit(scores, grown / factor**degree) <= SAME:
                return None
    return degree


def _groups(
    subject: Subject, points: Sequence[Weights], leave_out: Collection[str] = ()
) -> tuple[GroupDegree, ...]:
    """Return the degrees in single parameters, and in pairs where none has one alone.

    Euler's identity says which there may be, for all parameters from a few gradients; scores at
    weights that are scaled each by a factor of its own, all at once, say that they are.
    """
    names = [name for name in subject.weights if name not in leave_out]
    parts, scores = _euler(subject, points, names)
    slopes = {(name,): _slope(parts[name], scores) for name in names}
    alone = _confirmed(subject, points, {one: d for one, d in slopes.items() if d is not None})
    lone = [name for name in names if (name,) not in alone]
    pairs = {(p, q): _slope(parts[p] + parts[q], scores) for p, q in combinations(lone, 2)}
    joint = _confirmed(subject, points, {pair: d for pair, d in pairs.items() if d is not None})
    known: dict[str, tuple[float, tuple[str, ...]]] = {}
    for group, degree in (*alone.items(), *joint.items()):
        if not known.keys() & set(group):
            together = group if len(group) > 1 else ()
            known |= dict.fromkeys(group, (degree, together))
    return tuple(
        GroupDegree(name, tuple(p.shape), *known.get(name, (None, ())))
        for name, p in subject.weights.items()
    )


def _euler(
    subject: Subject, points: Sequence[Weights], names: Sequence[str]
) -> tuple[dict[str, NDArray[np.float64]], NDArray[np.float64]]:
    """Return ``<grad_p g, w_p>`` (R,) by parameter, and g, of R random sums g of the scores."""
    parts: dict[str, list[float]] = {name: [] for name in names}
    values: list[float] = []
    shape = subject.scores({}).shape
    for k, w in enumerate(points):
        for seed in range(_SUMS):
            value, gradient = subject.gradient(w, normal(shape, _SUMS * k + seed))
            values.append(value)
            for name in names:
                parts[name].append(float((gradient[name] * w[name]).sum()))
    return {name: np.array(rows) for name, rows in parts.items()}, np.array(values)


def _slope(parts: NDArray[np.float64], scores: NDArray[np.float64]) -> float | None:
    """Return the d of ``parts = d scores``; None if there is none, or no scores."""
    size = float(scores @ scores)
    if not 0 < size < math.inf:
        return None
    degree = float(parts @ scores) / size
    fits = np.abs(parts - degree * scores).max() <= SAME * math.sqrt(size) * max(1, abs(degree))
    return _rounded(degree) if fits else None


def _confirmed(
    subject: Subject, points: Sequence[Weights], degrees: Mapping[tuple[str, ...], float]
) -> dict[tuple[str, ...], float]:
    """Return which of these groups of parameters have the degrees that their gradients say."""
    if not degrees:
        return {}
    groups = list(degrees)
    if all(_grow(subject, w, degrees, seed) for seed, w in enumerate(points)):
        return dict(degrees)
    if len(groups) == 1:
        return {}
    halves = groups[: len(groups) // 2], groups[len(groups) // 2 :]
    found = (_confirmed(subject, points, {g: degrees[g] for g in half}) for half in halves)
    first, second = found
    return first | second


def _grow(
    subject: Subject, w: Weights, degrees: Mapping[tuple[str, ...], float], seed: int
) -> bool:
    """Test whether scores grow as they do if every group is scaled by a factor of its own."""
    rng = np.random.default_rng(seed)
    for spread in _SPREADS:
        factors = {group: float(np.exp(spread * rng.uniform(-1, 1))) for group in degrees}
        moved = {name: a * w[name] for group, a in factors.items() for name in group}
        grown = subject.scores({**w, **moved})
        expected = math.prod(a ** degrees[group] for group, a in factors.items())
        if not misfit(expected * subject.scores(w), grown) <= SAME:
            return False
    return True


def _zeroed(w: Weights, names: Collection[str]) -> dict[str, Tensor]:
    return {**w, **{name: torch.zeros_like(w[name]) for name in names}}


def _breakers(subject: Subject, points: Sequence[Weights]) -> tuple[tuple[str, ...], float | None]:
    """Return vectors without which the scores are homogeneous, as few as possible.

    Scores that are homogeneous with some at zero stay so with more of them at zero: only the most
    that leave scores of the inputs need be tried, and those that do no harm come back.
    """
    # Of vectors, which biases are.
    vectors = [name for name, p in subject.weights.items() if p.ndim <= 1]
    left = vectors if _vary(subject, points, vectors) else _most(subject, points, vectors)
    if not left or _without(subject, points[:1], left, _FAR) is None:
        return (), None
    every = left
    for name in every:  # first layers first
        fewer = [one for one in left if one != name]
        if fewer and _without(subject, points[:1], fewer, _FAR) is not None:
            left = fewer
    for found in (left, every):
        degree = _without(subject, points, found)
        if degree is not None:
            return tuple(found), degree
    return (), None


def _most(subject: Subject, points: Sequence[Weights], names: Sequence[str]) -> list[str]:
    """Return as many of these as can be zero, one after the other, with scores of the inputs."""
    left: list[str] = []
    for name in names:
        if _vary(subject, points[:1], [*left, name]):
            left.append(name)
    return left


def _vary(subject: Subject, points: Sequence[Weights], left_out: Collection[str]) -> bool:
    """Return whether scores depend on the inputs, with those parameters at zero."""
    scores = (subject.scores(_zeroed(w, left_out)) for w in points)
    return any(misfit(one[:1].expand_as(one), one) > SAME for one in scores)


def _without(
    subject: Subject,
    points: Sequence[Weights],
    left_out: Collection[str],
    factors: Sequence[float] = FACTORS,
) -> float | None:
    """Return the degree in all other parameters with those at zero; None if there is none."""
    others = dict.fromkeys((name for name in subject.weights if name not in left_out), 1.0)
    zeros = [_zeroed(w, left_out) for w in points]
    degree = _degree(subject, zeros, others, factors)
    if degree is None or factors is _FAR:
        return degree
    # Gradients are looked at once, as those of a surrogate have another degree.
    return _scaled(subject, zeros[:1], others).degree


def _exponents(
    subject: Subject, points: Sequence[Weights], mixed: Sequence[str], degree: float
) -> dict[str, float]:
    """Return exponents, 1 in all but the `mixed` parameters, of quasi-homogeneous scores.

    Euler's identity `sum_p e_p <grad_p f, w_p> = L f` is linear in the exponents of the others.
    """
    parts, scores = _euler(subject, points, list(subject.weights))
    plain = sum((parts[name] for name in parts if name not in mixed), np.zeros(len(scores)))
    rows = np.stack([parts[name] for name in mixed], axis=1)
    # Weights that are zero say nothing about their exponent.
    solved = np.linalg.lstsq(rows, degree * scores - plain, rcond=None)[0]
    exponents = dict.fromkeys(subject.weights, 1.0)
    exponents |= {name: _rounded(float(e)) for name, e in zip(mixed, solved, strict=True)}
    if min(exponents.values()) <= 0:
        return {}
    return exponents if _degree(subject, points, exponents) == degree else {}


def _powers(subject: Subject, points: Sequence[Weights]) -> tuple[int, ...]:
    """Return the degrees of the terms of f(a w), if that is a polynomial in a > 0."""
    nodes = 1.25 + 0.75 * np.cos(np.pi * (np.arange(_DEGREES + 6) + 0.5) / (_DEGREES + 6))
    present: set[int] = set()
    ones = dict.fromkeys(subject.weights, 1.0)
    for w in points:
        rows = [subject.scores(_times(w, float(a), ones)).flatten() for a in nodes]
        values = torch.stack(rows).numpy()
        terms = nodes[:, None] ** np.arange(_DEGREES + 1)
        scaled = terms / np.linalg.norm(terms, axis=0)
        found, *_ = np.linalg.lstsq(scaled, values, rcond=1e-14)
        sizes = np.abs(found).max(axis=1)
        present |= set(np.flatnonzero(sizes > 1e-4 * sizes.max()).tolist())
    few = tuple(sorted(present))
    return few if few and _only(subject, points, few) else ()


def _only(subject: Subject, points: Sequence[Weights], powers: Sequence[int]) -> bool:
    """Test whether these powers alone explain f(a w), far from where they were fitted."""
    fitted = np.linspace(0.5, 2.0, len(powers))
    tried = [0.37, 1.1, 11.0]
    ones = dict.fromkeys(subject.weights, 1.0)
    for w in points:
        rows = [subject.scores(_times(w, a, ones)).flatten().numpy() for a in (*fitted, *tried)]
        basis = fitted[:, None] ** np.array(powers)
        terms = np.linalg.solve(basis, np.stack(rows[: len(powers)]))
        for a, got in zip(tried, rows[len(powers) :], strict=True):
            expected: Tensor = torch.from_numpy((a ** np.array(powers)) @ terms)
            if not misfit(expected, torch.from_numpy(got)) <= 1e-5:
                return False
    return True


def _times(w: Weights, a: float, exponents: Mapping[str, float]) -> dict[str, Tensor]:
    return {**w, **{name: a**e * w[name] for name, e in exponents.items()}}
