"""Mean losses of scores with their conjugates: values and slopes that no rounding cancels."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from scipy.special import xlog1py, xlogy

from ..numerics.step_length import longest_step
from .images import Floats

LEAST = 1e-290  # losses below it lose digits: the smallest numbers have fewer


@dataclass(frozen=True, eq=False)
class MeanLoss(ABC):
    """A convex mean loss F of scores f (n,), or (n, K), and targets y.

    ``r = -grad F(f)`` are its multipliers; ``dual(r) = -F*(-r)`` bounds what they can explain.

    Attributes
    ----------
    shares : (n,) array
        Weight of every sample in the mean, positive, of sum 1.
    """

    shares: Floats

    @property
    def _rows(self) -> Floats:
        """The shares beside scores (n, K)."""
        return self.shares[:, None]

    @abstractmethod
    def value(self, f: Floats, y: Floats) -> float:
        """Return F(f)."""

    @abstractmethod
    def multipliers(self, f: Floats, y: Floats) -> Floats:
        """Return ``-grad F(f)``."""

    @abstractmethod
    def dual(self, r: Floats, y: Floats) -> float:
        """Return ``-F*(-r)``; minus infinity outside of its domain."""

    @abstractmethod
    def curvature(self, f: Floats, y: Floats) -> Floats:
        """Return the second derivatives of F, (n,) or (n, K, K)."""

    def bent(self, f: Floats, y: Floats) -> Floats:
        """Return, shaped as f, what the second derivatives are divided by along the slopes."""
        return self.curvature(f, y)

    def scores(self, r: Floats, y: Floats) -> Floats:
        """Return the one score a sample (n,) at which the multipliers are r; NaN without such."""
        raise NotImplementedError

    def stiffness(self, r: Floats, y: Floats) -> Floats:
        """Return minus the derivative of `scores`, (n,)."""
        raise NotImplementedError

    def room(self, r: Floats, dr: Floats, y: Floats) -> float:
        """Return the longest step along dr on which `scores` stay finite."""
        return math.inf


class Squared(MeanLoss):
    """Half the mean of the squared errors, ``mean (f - y)^2 / 2``."""

    def value(self, f: Floats, y: Floats) -> float:
        """Return F(f)."""
        squares = (f - y) ** 2
        return float(np.sum((self.shares if y.ndim == 1 else self._rows) * squares)) / 2

    def multipliers(self, f: Floats, y: Floats) -> Floats:
        """Return ``(y - f) / n``."""
        return np.asarray((self.shares if y.ndim == 1 else self._rows) * (y - f))

    def dual(self, r: Floats, y: Floats) -> float:
        """Return ``<r, y> - n ||r||^2 / 2``."""
        squares = r**2 / (self.shares if y.ndim == 1 else self._rows)
        return float(np.sum(r * y) - np.sum(squares) / 2)

    def scores(self, r: Floats, y: Floats) -> Floats:
        """Return ``y - n r``."""
        return np.asarray(y - r / self.shares)

    def stiffness(self, r: Floats, y: Floats) -> Floats:
        """Return n."""
        return np.asarray(1 / self.shares)

    def curvature(self, f: Floats, y: Floats) -> Floats:
        """Return 1 / n."""
        return self.shares


class Logistic(MeanLoss):
    """Mean of ``log(1 + exp(-y f))``, labels y in {-1, +1}."""

    def value(self, f: Floats, y: Floats) -> float:
        """Return F(f)."""
        return float(np.sum(self.shares * np.logaddexp(0.0, -y * f)))

    def multipliers(self, f: Floats, y: Floats) -> Floats:
        """Return ``y / (n (1 + exp(y f)))``."""
        m = y * f
        tail = np.exp(-np.abs(m))
        return np.asarray(y * np.where(m > 0, tail, 1.0) / (1 + tail) * self.shares)

    def dual(self, r: Floats, y: Floats) -> float:
        """Return the mean entropy of ``q = n y r`` in [0, 1]."""
        q = y * r / self.shares
        if not (np.all(q >= 0) and np.all(q <= 1)):
            return -np.inf
        return -float(np.sum(self.shares * (xlogy(q, q) + xlog1py(1 - q, -q))))

    def scores(self, r: Floats, y: Floats) -> Floats:
        """Return ``y log(1 / q - 1)``."""
        q = y * r / self.shares
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(y * (np.log1p(-q) - np.log(q)))

    def stiffness(self, r: Floats, y: Floats) -> Floats:
        """Return ``n / (q (1 - q))``."""
        q = y * r / self.shares
        return np.asarray(1 / (self.shares * q * (1 - q)))

    def room(self, r: Floats, dr: Floats, y: Floats) -> float:
        """Return the longest step that keeps q in [0, 1]."""
        q, dq = y * r / self.shares, y * dr / self.shares
        return min(longest_step(q, dq), longest_step(1 - q, -dq))

    def curvature(self, f: Floats, y: Floats) -> Floats:
        """Return ``1 / (n (1 + e^f) (1 + e^-f))``."""
        tail = np.exp(-np.abs(f))
        return np.asarray(tail / (1 + tail) ** 2 * self.shares)


class Softmax(MeanLoss):
    """Mean of ``log sum_k exp f_k - <y, f>``, rows of y the shares of K classes.

    Of a share near 1 what is left of 1 is the sum of the other shares, so that a tiny loss, its
    slopes and their entropies are as exact as those of one score.
    """

    def _shares(self, f: Floats) -> tuple[Floats, Floats, Floats]:
        """Return p = softmax f, what each share leaves of 1, and ``-log p``; each (n, K)."""
        top = f.argmax(axis=1)[:, None]
        below = f - np.take_along_axis(f, top, axis=1)
        p = np.exp(below)
        np.put_along_axis(p, top, 0.0, axis=1)
        others = p.sum(axis=1, keepdims=True)
        np.put_along_axis(p, top, 1.0, axis=1)
        p /= 1 + others
        left = 1 - p
        np.put_along_axis(left, top, others / (1 + others), axis=1)
        return p, left, np.log1p(others) - below

    def value(self, f: Floats, y: Floats) -> float:
        """Return F(f)."""
        return float(np.sum(self._rows * y * self._shares(f)[2]))

    def multipliers(self, f: Floats, y: Floats) -> Floats:
        """Return ``(y - softmax f) / n``."""
        p, left, _ = self._shares(f)
        return np.asarray(self._rows * np.where(p > 0.5, left - (1 - y), y - p))

    def dual(self, r: Floats, y: Floats) -> float:
        """Return the mean entropy of ``p = y - n r``, whose rows are shares."""
        p, unsure = y - r / self._rows, np.minimum(y, 1 - y)
        off = np.abs(r.sum(axis=1)) / self.shares
        sizes = (np.abs(r) / self._rows + unsure).sum(axis=1)
        if not (np.all(p >= -1e-15 * y) and np.all(off <= 1e-13 * sizes)):
            return -np.inf
        p = np.maximum(p, 0.0)
        top = p.argmax(axis=1)[:, None]
        np.put_along_axis(p, top, 0.0, axis=1)
        others = p.sum(axis=1)
        largest = xlog1py(1 - others, -others)
        return -float(np.sum(self._rows * xlogy(p, p)) + np.sum(self.shares * largest))

    def curvature(self, f: Floats, y: Floats) -> Floats:
        """Return ``(diag p - p p') / n`` of every sample."""
        p, left, _ = self._shares(f)
        curved, every = -p[:, :, None] * p[:, None, :], np.arange(p.shape[1])
        curved[:, every, every] = p * left
        return np.asarray(curved * self.shares[:, None, None])

    def bent(self, f: Floats, y: Floats) -> Floats:
        """Return ``p / n``."""
        return self._rows * self._shares(f)[0]


class Exact(Squared):
    """The loss of interpolation, 0 at the targets and infinite elsewhere; shares are ones."""

    def scores(self, r: Floats, y: Floats) -> Floats:
        """Return y."""
        return y

    def stiffness(self, r: Floats, y: Floats) -> Floats:
        """Return zeros."""
        return np.zeros(len(r))


@dataclass(frozen=True, eq=False)
class FlatLoss:
    """A mean loss of scores ``A w``, (n,) or flat (n K,), as a function of coefficients w (m,)."""

    A: Floats
    y: Floats
    loss: MeanLoss

    def _scores(self, w: Floats) -> Floats:
        return np.asarray(self.A @ w).reshape(self.y.shape)

    def value(self, w: Floats) -> float:
        """Return ``F(A w)``."""
        return self.loss.value(self._scores(w), self.y)

    def gradient(self, w: Floats) -> Floats:
        """Return the first derivatives (m,)."""
        return -self.A.T @ self.loss.multipliers(self._scores(w), self.y).reshape(-1)

    def hessian(self, w: Floats) -> Floats:
        """Return the second derivatives (m, m)."""
        curved = self.loss.curvature(self._scores(w), self.y)
        if curved.ndim == 1:
            each = np.repeat(curved, len(self.A) // len(curved))
            return (self.A * each[:, None]).T @ self.A
        n, K, _ = curved.shape
        bent = curved @ self.A.reshape(n, K, -1)
        return np.asarray(bent.reshape(n * K, -1).T @ self.A)


class LogLoss(FlatLoss):
    """The logarithm of a loss above 0, which falls like a margin where the loss is tiny.

    Its minimisers are the loss's own. What stands for its second derivatives is never indefinite,
    and tends to them as the loss falls: with r the slopes of F in the scores, the sum T of
    ``r^2 / F''`` over samples is no smaller than F, and ``F'' / F - g g' / (F T)`` has no negative
    eigenvalue, by Cauchy and Schwarz.
    """

    def value(self, w: Floats) -> float:
        """Return ``log F(A w)``; infinity where F is below the smallest numbers."""
        F = super().value(w)
        return math.log(F) if F > LEAST else math.inf

    def gradient(self, w: Floats) -> Floats:
        """Return the first derivatives (m,)."""
        return super().gradient(w) / super().value(w)

    def hessian(self, w: Floats) -> Floats:
        """Return the matrix (m, m) that stands for the second derivatives."""
        f, F, slope = self._scores(w), super().value(w), self.gradient(w)
        r = self.loss.multipliers(f, self.y)
        T = float(np.sum(r * (r / np.maximum(self.loss.bent(f, self.y), LEAST))))
        return super().hessian(w) / F - np.outer(slope, slope) * (F / max(T, F))


FIT_LOSSES: Mapping[str, type[MeanLoss]] = MappingProxyType(
    {"squared": Squared, "logistic": Logistic, "softmax": Softmax}
)
"""Losses of limits at finite weights, by the names that training has for them."""
