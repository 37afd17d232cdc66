"""Exact rates at which weights can be scaled together: a polytope, and its leximin point."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import torch
from numpy.typing import NDArray

from ..._support.solve import linear_program
from .subject import Subject, Weights, normal

# Samples on which identities in the weights are tried: they hold on all, or with probability zero.
TRIED = 16
# Largest relative misfit of the identity, singular value, and size of a column, that is rounding.
_EXACT, _RANK, _NOTHING = 1e-10, 1e-9, 1e-11
# Rates are fractions of small denominators.
_DENOMINATORS, _NEAR = 64, 1e-8
# Powers of two by which each tensor of random weights is scaled at most.
_SPREAD = 3
# Different weights c of the scores; networks so small that many weights are tried at once.
_WEIGHTINGS, _SMALL = 4, 10_000
# A power of two so large that the eps of a norm is gone, and the least relative slope of scores
# that depend on a tensor there.
_FAR, _FELT = 20, 1e-6
# Entries of the null space that are rounding, and how long a combination of scalings may be, so
# that these do not become 1 in it.
_NONE, _LONGEST = 1e-6, 1e3


@dataclass(frozen=True, eq=False)
class ExactRates:
    r"""Rates of quasi-homogeneous scores F, one for each trained tensor.

    .. math:: F(e^{a \lambda_1} \theta_1, e^{a \lambda_2} \theta_2, \ldots) = e^a F(\theta)

    Attributes
    ----------
    lam : mapping of str to float
        The rates lam >= 0 whose largest is least, then the next (leximin): under gradient flow
        tensors that grow like powers grow at these. Empty where there are none.
    null : (p, d) array
        Orthonormal basis of the differences of rates, in the order of the weights: scores stay as
        they are while tensors are scaled along it.
    error : float
        Relative misfit of the identity at random weights: rounding, or there are no rates.
    """

    lam: Mapping[str, float]
    null: NDArray[np.float64]
    error: float

    @property
    def degree(self) -> float | None:
        """Power of the norm of all weights with which scores grow: 1 / max lam."""
        return 1 / max(self.lam.values()) if self.lam else None

    def falls_without(self, name: str) -> bool:
        """Test whether the largest rate, or those of the other tensors, fall without a tensor."""
        names = list(self.lam)
        now = np.array([self.lam[other] for other in names])
        then = _leximin(now, self.null, ignored=names.index(name))
        assert then is not None  # the present rates are some
        rest = [k for k, other in enumerate(names) if other != name]
        fell = np.sort(now[rest]) - np.sort(then[rest])
        return bool(now.max() - then.max() > _NEAR or (fell > _NEAR).any())

    @property
    def highest(self) -> tuple[str, ...]:
        """Tensors of the highest rate."""
        top = max(self.lam.values(), default=0.0)
        return tuple(name for name, rate in self.lam.items() if rate >= top - _NEAR)


def exact_rates(subject: Subject) -> ExactRates:
    r"""Find the rates at which the trained tensors can be scaled together.

    Euler's identity of them, for random weights and weights c of the scores,

    .. math:: \sum_i \lambda_i \langle \theta_i, \partial_i (c \cdot F) \rangle = c \cdot F,

    is linear in the rates. F is the array of all scores: a function of whole batches is one too.

    Parameters
    ----------
    subject : Subject
        Frozen parameters stay as they are; a tensor that is used twice counts once.

    Returns
    -------
    ExactRates

    References
    ----------
    D. Kunin, A. Yamamura, C. Ma, S. Ganguli, "The asymmetric maximum margin bias of
    quasi-homogeneous neural networks", arXiv 2210.03820, for such rates.
    """
    found, null, error = _polytope(subject)
    lam = _leximin(found, null) if error <= _EXACT else None
    named = {} if lam is None else dict(zip(subject.weights, lam.tolist(), strict=True))
    return ExactRates(named, null, error)


def are_scale_free(subject: Subject, names: Collection[str]) -> bool:
    """Test whether scores at large weights depend on some tensors by their directions alone.

    So do those below a normalisation. What saturates depends on them less and less instead.
    """
    order = list(subject.weights)
    chosen = [order.index(name) for name in names]
    _, null, _ = _polytope(subject, _FAR)
    if not bool(scales_away(null)[chosen].all()):
        return False
    moved, far = (_sensitivities(subject, power)[chosen] for power in (0, _FAR))
    return bool(((moved <= _NOTHING) | (far > _FELT)).all())


def _sensitivities(subject: Subject, power: int) -> NDArray[np.float64]:
    """Return ``||theta_i|| ||d_i c.F|| / |c.F|`` (p,) at some random weights."""
    few = subject.few(TRIED)
    w = random_weights(few.weights, 0, power)
    total, gradient = few.gradient(w, normal(few.scores({}).shape, 0))
    return np.array([float(w[name].norm() * gradient[name].norm()) for name in w]) / abs(total)


def _polytope(
    subject: Subject, power: int = 0
) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
    """Return some solution (p,) of Euler's identity, the null space (p, d), and the misfit."""
    A, b = _euler_rows(subject, power)
    sizes = np.linalg.norm(A, axis=0)
    sizes[sizes <= _NOTHING * np.linalg.norm(A)] = np.inf
    U, s, Vt = np.linalg.svd(A / sizes)
    rank = int((s > _RANK * s[0]).sum())
    scaled = Vt[:rank].T @ ((U[:, :rank].T @ b) / s[:rank])
    found = scaled / sizes
    size = float(np.linalg.norm(b))
    error = float(np.linalg.norm(A @ found - b)) / size if size > 0 else math.inf
    # Of columns without entries any rate will do.
    null = Vt[rank:].T / np.where(np.isinf(sizes), 1.0, sizes)[:, None]
    return found, np.linalg.qr(null)[0], error


def scales_away(null: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return which tensors (p,) some scaling, of them all to weights of 0, leaves scores alone in.

    There scores that are no constant have no value.
    """
    p, d = null.shape
    # Of each scaling a part in [0, 1] counts: any that is positive can be made larger than that,
    # but for those that rounding leaves.
    scalings = np.where(np.abs(null) > _NONE, null, 0.0)
    bounds: list[tuple[float | None, float | None]] = [(0.0, 1.0)] * p
    found = linear_program(
        np.repeat([-1.0, 0.0], [p, d]), left=np.hstack([np.eye(p), -scalings]), right=np.zeros(p),
        bounds=bounds + [(-_LONGEST, _LONGEST)] * d,
    )  # fmt: skip
    return np.zeros(p, dtype=bool) if found.x is None else np.asarray(found.x[:p] > 0.5)


def _complement(null: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return an orthonormal basis, in rows, of what is orthogonal to the columns of `null`."""
    return np.linalg.qr(null, mode="complete")[0][:, null.shape[1] :].T


def random_weights(
    weights: Weights, seed: int, powers: NDArray[np.int64] | int = 0
) -> dict[str, torch.Tensor]:
    """Return normal weights for which layers neither grow nor shrink what comes in.

    Each tensor is multiplied by its power of two.
    """
    scales = 2.0 ** np.broadcast_to(np.asarray(powers, dtype=np.float64), len(weights))
    return {
        name: normal(p.shape, 1000 * seed + k)
        * float(scales[k] / (p[0].numel() if p.ndim > 1 else 1.0) ** 0.5)
        for k, (name, p) in enumerate(weights.items())
    }


def with_zeros(subject: Subject, names: Collection[str]) -> Subject:
    """Return the same module with some trained tensors zero and no longer trained."""
    zeros = {name: torch.zeros_like(subject.weights[name]) for name in names}
    return replace(subject, network=subject.at(zeros)).frozen(tuple(names))


def euler_terms(
    subject: Subject, seeds: Sequence[int], powers: NDArray[np.int64], c: torch.Tensor
) -> NDArray[np.float64]:
    """Return ``<theta_i, d_i c.F>`` of every tensor, and ``c.F`` last, at random weights.

    Parameters
    ----------
    subject : Subject
    seeds : sequence of k int
    powers : (k, p) array
        Powers of two of the tensors.
    c : tensor
        Like the scores.

    Returns
    -------
    (k, p + 1) array
    """
    drawn = [
        random_weights(subject.weights, seed, own) for seed, own in zip(seeds, powers, strict=True)
    ]
    if subject.n_weights <= _SMALL and len(drawn) > 1:
        stacked = {name: torch.stack([w[name] for w in drawn]) for name in subject.weights}
        try:
            totals, gradients = subject.gradient_at_each(stacked, c)
        except RuntimeError:  # a module that takes one set of weights at a time
            pass
        else:
            parts = [(stacked[name] * gradients[name]).flatten(1).sum(1) for name in stacked]
            return torch.stack([*parts, totals], dim=1).numpy()
    return np.array([_terms(subject, w, c) for w in drawn])


def _terms(subject: Subject, w: Weights, c: torch.Tensor) -> list[float]:
    total, gradient = subject.gradient(w, c)
    return [*(float((w[name] * gradient[name]).sum()) for name in w), total]


def _euler_rows(subject: Subject, power: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    few = subject.few(TRIED)
    p = len(few.weights)
    seeds = range(4 * p + 8)
    powers = power + np.random.default_rng(0).integers(-_SPREAD, _SPREAD + 1, (len(seeds), p))
    shape = few.scores({}).shape
    # With a few weights of the scores each, as what is random must be in both.
    terms = np.concatenate(
        [
            euler_terms(few, seeds[k::_WEIGHTINGS], powers[k::_WEIGHTINGS], normal(shape, k))
            for k in range(_WEIGHTINGS)
        ]
    )
    sizes = np.abs(terms).sum(axis=1, keepdims=True)
    rows = terms / np.where(sizes > 0, sizes, 1.0)
    return rows[:, :-1], rows[:, -1]


def _leximin(
    point: NDArray[np.float64], null: NDArray[np.float64], ignored: int | None = None
) -> NDArray[np.float64] | None:
    """Return the leximin point of `point + null z >= 0`; None if there is none.

    Of `ignored` the rate may be any, and is given as 0.
    """
    p = len(point)
    # What no scaling changes: the rates along the complement of the null space.
    along = _complement(null)
    equal, totals = np.hstack([along, np.zeros((len(along), 1))]), along @ point
    fixed = np.full(p, np.nan)
    left_out = [] if ignored is None else [ignored]
    while len(open_ := np.setdiff1d(np.flatnonzero(np.isnan(fixed)), left_out)):
        left = np.zeros((len(open_), p + 1))
        left[np.arange(len(open_)), open_], left[:, -1] = 1.0, -1.0
        bounds = [(0.0, None if np.isnan(rate) else rate + _EXACT) for rate in fixed]
        found = linear_program(
            np.append(np.zeros(p), 1.0), left, equal=equal, totals=totals,
            bounds=[*bounds, (0.0, None)],
        )  # fmt: skip
        if found.x is None:
            return None
        # Those with a multiplier reach the least maximum in every solution.
        bound = open_[found.ineqlin.marginals < -_NEAR]
        fixed[bound if found.x[-1] > _NEAR and len(bound) else open_] = _rational(found.x[-1])
    return np.asarray(np.nan_to_num(fixed))


def _rational(rate: float) -> float:
    nearest = float(Fraction(rate).limit_denominator(_DENOMINATORS))
    return nearest if abs(rate - nearest) <= _NEAR else rate
