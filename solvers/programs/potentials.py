"""Potentials of products of weights: which coefficients gradient flow prefers from a start."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..numerics.step_length import longest_step
from .images import Floats

# Largest change of an exponent that one step of Newton's method may make.
_LARGEST = 2.0
_INVERSIONS = 200
# Of Gauss and Legendre on [0, 1].
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(8)
_NODES, _WEIGHTS = (1 + _NODES) / 2, _WEIGHTS / 2


class Potential(ABC):
    """A separable convex function phi of coefficients, known by its conjugate.

    Gradient flow moves coefficients along ``b(z) = grad phi*(z)``, z in the row space of the
    features, from z = 0. They are ``x(z)^L - y(z)^L`` of two weights that are not negative.

    Attributes
    ----------
    depth : int
        L.
    """

    depth: int

    @property
    def speed(self) -> float:
        """``b'(z)`` over ``x^(2L - 2) + y^(2L - 2)``."""
        return float(self.depth**2)

    @abstractmethod
    def weights(self, z: Floats) -> tuple[Floats, Floats]:
        """Return ``x(z)`` and ``y(z)``; NaN outside of the domain of phi*."""

    def coefficients(self, z: Floats) -> Floats:
        """Return ``b(z)``."""
        x, y = self.weights(z)
        return np.asarray(x**self.depth - y**self.depth)

    def slopes(self, z: Floats) -> Floats:
        """Return ``b'(z)``, the second derivatives of phi*, at least 0."""
        x, y = self.weights(z)
        power = 2 * self.depth - 2
        return np.asarray(self.speed * (x**power + y**power))

    def conjugate(self, z: Floats) -> Floats:
        """Return phi*(z) of every coefficient."""
        x, y = self.weights(z)
        return np.asarray(self.depth / self.speed * (x**2 + y**2) / 2)

    @abstractmethod
    def inverse(self, b: Floats, near: Floats) -> Floats:
        """Return z with ``b(z) = b``, found from `near`; NaN for coefficients that no z has."""

    @abstractmethod
    def divergence(self, z: Floats, of: Floats) -> Floats:
        """Return ``phi(b) + phi*(z) - b z >= 0`` of every coefficient, ``b = b(of)``.

        It is the Bregman divergence of phi* between z and `of`.
        """

    @abstractmethod
    def room(self, z: Floats, dz: Floats) -> float:
        """Return the largest step along dz that stays inside, and changes no exponent by much."""

    @abstractmethod
    def size(self, b: Floats) -> Floats:
        """Return a scale of every coefficient's potential, above its value."""

    @property
    @abstractmethod
    def signs(self) -> NDArray[np.int_]:
        """(m,) signs that coefficients keep: +1, -1; 0 for those that are free, 2 for none."""

    @abstractmethod
    def reach(self, b: Floats, gap: float) -> Floats:
        """Return how far a coefficient may be from b (m,) where the potential differs by `gap`."""

    def value(self, b: Floats, z: Floats) -> Floats:
        """Return phi(b) of every coefficient, ``b = b(z)``; 0 where no finite z has it."""
        finite = np.isfinite(z)
        z = np.where(finite, z, 0.0)
        return np.where(finite, b * z - self.conjugate(z), 0.0)


@dataclass(frozen=True, eq=False)
class Products(Potential):
    """Potential of ``b = u v``, two layers.

        b(z) = (P e^(2z) - Q e^(-2z)) / 4,    P = (u0 + v0)^2,  Q = (u0 - v0)^2,
        phi*(z) = (P e^(2z) + Q e^(-2z)) / 8

    With ``c = |u0^2 - v0^2|`` and ``s = log(P / Q) / 2`` it is ``(c / 4) cosh(2z + s)``.

    References
    ----------
    B. Woodworth et al., "Kernel and rich regimes in overparametrized models"; S. Azulay
    et al., "On the implicit bias of initialization shape", for unequal layers.
    """

    P: Floats
    Q: Floats
    depth: int = 2

    @property
    def speed(self) -> float:
        """2: of a product of two."""
        return 2.0

    def weights(self, z: Floats) -> tuple[Floats, Floats]:
        """Return ``sqrt(P) e^z / 2`` and ``sqrt(Q) e^-z / 2``."""
        with np.errstate(over="ignore"):
            rising = np.where(self.P > 0, np.exp(z), 0.0)
            falling = np.where(self.Q > 0, np.exp(-z), 0.0)
        return np.sqrt(self.P) * rising / 2, np.sqrt(self.Q) * falling / 2

    def inverse(self, b: Floats, near: Floats) -> Floats:
        """Return z with ``b(z) = b``: a quadratic equation in ``e^(2z)``."""
        root = self.size(b)
        with np.errstate(divide="ignore", invalid="ignore"):
            power = np.where(b >= 0, 2 * (b + root) / self.P, self.Q / (2 * (root - b)))
            z = np.log(power) / 2
        none = ((b > 0) & (self.P == 0)) | ((b < 0) & (self.Q == 0))
        return np.where(none, np.nan, np.where(self.signs == 2, near, z))

    def divergence(self, z: Floats, of: Floats) -> Floats:
        """Return ``phi(b) + phi*(z) - b z``, without cancellation."""
        (x, y), change = self.weights(of), 2 * (z - of)
        with np.errstate(over="ignore", invalid="ignore"):  # far away it is infinite
            return np.asarray((x**2 * _convex(change) + y**2 * _convex(-change)) / 2)

    def room(self, z: Floats, dz: Floats) -> float:
        """Return the largest step that multiplies no exponential by more than e^2."""
        largest = float(np.max(np.abs(2 * dz), initial=0.0))
        return _LARGEST / largest if largest > 0 else math.inf

    def size(self, b: Floats) -> Floats:
        """Return ``sqrt(b^2 + c^2 / 4)``."""
        return np.hypot(b, np.sqrt(self.P) * np.sqrt(self.Q) / 2)

    def reach(self, b: Floats, gap: float) -> Floats:
        """Return x with ``x^2 = 4 gap (|b| + c / 2 + x)``: the potential curves by more."""
        scale = np.abs(b) + np.sqrt(self.P) * np.sqrt(self.Q) / 2
        return np.asarray(2 * (gap + np.sqrt(gap) * np.sqrt(gap + scale)))

    @property
    def signs(self) -> NDArray[np.int_]:
        """Signs that coefficients keep, where u0 = v0 or u0 = -v0."""
        return np.where(
            self.Q == 0, np.where(self.P == 0, 2, 1), np.where(self.P == 0, -1, 0)
        ).astype(int)


@dataclass(frozen=True, eq=False)
class Powers(Potential):
    """Potential of ``b = u^L - v^L`` at L >= 3, u and v from positive numbers.

        u(z) = (u0^(2-L) - L (L-2) z)^(-1/(L-2)),   v(z) = (v0^(2-L) + L (L-2) z)^(-1/(L-2)),
        phi*(z) = (u(z)^2 + v(z)^2) / (2 L)

    References
    ----------
    B. Woodworth et al., "Kernel and rich regimes in overparametrized models", theorem 3.
    """

    u0: Floats
    v0: Floats
    depth: int

    def weights(self, z: Floats) -> tuple[Floats, Floats]:
        """Return ``u(z)`` and ``v(z)``."""
        k, power = self.depth * (self.depth - 2), -1 / (self.depth - 2)
        with np.errstate(invalid="ignore", divide="ignore"):
            u = (self.u0 ** (2 - self.depth) - k * z) ** power
            v = (self.v0 ** (2 - self.depth) + k * z) ** power
        return np.asarray(u), np.asarray(v)

    def inverse(self, b: Floats, near: Floats) -> Floats:
        """Return z with ``b(z) = b``, by bisection and Newton's steps."""
        low, high = self._edges()
        z = np.where((near > low) & (near < high), near, 0.0)
        for _ in range(_INVERSIONS):
            miss = self.coefficients(z) - b
            low, high = np.where(miss < 0, z, low), np.where(miss < 0, high, z)
            step = z - miss / self.slopes(z)
            following = np.where((step >= low) & (step <= high), step, (low + high) / 2)
            if np.all(np.abs(following - z) <= 4e-16 * np.abs(z)):
                break
            z = following
        return z

    def divergence(self, z: Floats, of: Floats) -> Floats:
        """Return ``phi(b) + phi*(z) - b z``, near each other as an integral of slopes."""
        b, change = self.coefficients(of), z - of
        far = np.maximum(self.conjugate(z) - self.conjugate(of) - b * change, 0.0)
        low, high = self._edges()
        close = np.abs(change) <= 0.1 * np.minimum(of - low, high - of)
        path = np.where(close, of, 0.0) + np.where(close, change, 0.0) * _NODES[:, None]
        near = change**2 * ((1 - _NODES) * _WEIGHTS @ self.slopes(path))
        return np.where(close, near, far)

    def _edges(self) -> tuple[Floats, Floats]:
        """Return the ends of the domain of phi*."""
        k = self.depth * (self.depth - 2)
        return -(self.v0 ** (2 - self.depth)) / k, self.u0 ** (2 - self.depth) / k

    def room(self, z: Floats, dz: Floats) -> float:
        """Return the largest step that goes at most 0.8 of the way to the end of the domain."""
        low, high = self._edges()
        return 0.8 * min(longest_step(high - z, -dz), longest_step(z - low, dz))

    def size(self, b: Floats) -> Floats:
        """Return ``|b|^(2/L)`` and the start's potential."""
        start = np.maximum(self.u0, self.v0)
        return np.asarray(np.maximum(np.abs(b) ** (1 / self.depth), start) ** 2)

    def reach(self, b: Floats, gap: float) -> Floats:
        """Return the largest x with ``x^2 = 2 gap b'``, b' at its most within x of b."""
        # Of u and v one is above its start and the other below.
        power, least = (2 * self.depth - 2) / self.depth, np.maximum(self.u0, self.v0) ** self.depth
        x = np.abs(b) + least + (4 * gap * self.depth**2) ** (self.depth / 2)
        for _ in range(_INVERSIONS):
            x = np.sqrt(4 * gap * self.depth**2 * (np.abs(b) + x + least) ** power)
        return np.asarray(x)

    @property
    def signs(self) -> NDArray[np.int_]:
        """Zeros: every coefficient is free."""
        return np.zeros(len(self.u0), dtype=int)


def potential_of(u0: Floats, v0: Floats, depth: int) -> Potential:
    """Return the potential of coefficients ``u v``, or ``u^L - v^L``, from where these begin.

    Parameters
    ----------
    u0, v0 : (m,) arrays
    depth : int
        2, or L.

    Returns
    -------
    Potential
    """
    if depth == 2:
        return Products((u0 + v0) ** 2, (u0 - v0) ** 2)
    return Powers(u0, v0, depth)


def _convex(x: Floats) -> Floats:
    """Return ``e^x - 1 - x >= 0``, to full precision at small x too."""
    small = np.abs(x) < 1e-2
    t = np.where(small, x, 0.0)
    series = t**2 / 2 * (1 + t / 3 * (1 + t / 4 * (1 + t / 5 * (1 + t / 6 * (1 + t / 7)))))
    large = np.expm1(np.where(small, 1.0, x)) - np.where(small, 1.0, x)
    return np.where(small, series, large)
