"""Mean losses of scores with their conjugates: values and slopes that no rounding cancels."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
from scipy.special import log_softmax, softmax, xlog1py, xlogy

from ..data.arrays import Floats

__all__ = ["FIT_LOSSES", "Logistic", "MeanLoss", "Softmax", "Squared"]


class MeanLoss(ABC):
    """A convex mean loss F of scores f (n,), or (n, K), and targets y.

    ``r = -grad F(f)`` are its multipliers; ``dual(r) = -F*(-r)`` bounds what they can explain.
    """

    @staticmethod
    @abstractmethod
    def value(f: Floats, y: Floats) -> float:
        """Return F(f)."""

    @staticmethod
    @abstractmethod
    def multipliers(f: Floats, y: Floats) -> Floats:
        """Return ``-grad F(f)``."""

    @staticmethod
    @abstractmethod
    def dual(r: Floats, y: Floats) -> float:
        """Return ``-F*(-r)``; minus infinity outside of its domain."""

    @staticmethod
    @abstractmethod
    def curvature(f: Floats, y: Floats) -> Floats:
        """Return the second derivatives of F, (n,) or (n, K, K)."""


class Squared(MeanLoss):
    """Half the mean of the squared errors, ``mean (f - y)^2 / 2``."""

    @staticmethod
    def value(f: Floats, y: Floats) -> float:
        """Return F(f)."""
        return float(np.sum((f - y) ** 2)) / (2 * len(y))

    @staticmethod
    def multipliers(f: Floats, y: Floats) -> Floats:
        """Return ``(y - f) / n``."""
        return np.asarray((y - f) / len(y))

    @staticmethod
    def dual(r: Floats, y: Floats) -> float:
        """Return ``<r, y> - n ||r||^2 / 2``."""
        return float(np.sum(r * y) - len(y) * np.sum(r**2) / 2)

    @staticmethod
    def curvature(f: Floats, y: Floats) -> Floats:
        """Return 1 / n."""
        return np.full(len(y), 1 / len(y))


class Logistic(MeanLoss):
    """Mean of ``log(1 + exp(-y f))``, labels y in {-1, +1}."""

    @staticmethod
    def value(f: Floats, y: Floats) -> float:
        """Return F(f)."""
        return float(np.logaddexp(0.0, -y * f).mean())

    @staticmethod
    def multipliers(f: Floats, y: Floats) -> Floats:
        """Return ``y / (n (1 + exp(y f)))``."""
        m = y * f
        tail = np.exp(-np.abs(m))
        return np.asarray(y * np.where(m > 0, tail, 1.0) / (1 + tail) / len(y))

    @staticmethod
    def dual(r: Floats, y: Floats) -> float:
        """Return the mean entropy of ``q = n y r`` in [0, 1]."""
        q = len(y) * y * r
        if not (np.all(q >= 0) and np.all(q <= 1)):
            return -np.inf
        return -float(np.mean(xlogy(q, q) + xlog1py(1 - q, -q)))

    @staticmethod
    def curvature(f: Floats, y: Floats) -> Floats:
        """Return ``1 / (n (1 + e^f) (1 + e^-f))``."""
        tail = np.exp(-np.abs(f))
        return np.asarray(tail / (1 + tail) ** 2 / len(y))


class Softmax(MeanLoss):
    """Mean of ``log sum_k exp f_k - <y, f>``, rows of y the shares of K classes."""

    @staticmethod
    def value(f: Floats, y: Floats) -> float:
        """Return F(f)."""
        return -float(np.sum(y * log_softmax(f, axis=1))) / len(y)

    @staticmethod
    def multipliers(f: Floats, y: Floats) -> Floats:
        """Return ``(y - softmax f) / n``."""
        return np.asarray((y - softmax(f, axis=1)) / len(y))

    @staticmethod
    def dual(r: Floats, y: Floats) -> float:
        """Return the mean entropy of ``p = y - n r``, whose rows are shares."""
        p = y - len(y) * r
        # Shares sum to 1 up to rounding, which a multiple of ones puts right.
        p = p - (p.sum(axis=1, keepdims=True) - 1) / p.shape[1]
        if not np.all(p >= -1e-15):
            return -np.inf
        return -float(np.sum(xlogy(np.maximum(p, 0.0), np.maximum(p, 1e-300)))) / len(y)

    @staticmethod
    def curvature(f: Floats, y: Floats) -> Floats:
        """Return ``(diag p - p p') / n`` of every sample."""
        p = softmax(f, axis=1)
        diagonal = p[:, :, None] * np.eye(p.shape[1])
        return np.asarray((diagonal - p[:, :, None] * p[:, None, :]) / len(y))


FIT_LOSSES: Mapping[str, type[MeanLoss]] = MappingProxyType(
    {"squared": Squared, "logistic": Logistic, "softmax": Softmax}
)
"""Losses of limits at finite weights, by the names that training has for them."""
