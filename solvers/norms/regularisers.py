"""Regularisers of a fit with their conjugates: penalty, ridge, ball, and the barrier of AdamW."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from ..numerics.step_length import longest_step
from .norm import Floats, Norm
from .proximal import pulled_back, pulled_in


class Smooth(ABC):
    """A convex function R of coefficients (m,) that Newton's method takes."""

    @abstractmethod
    def value(self, B: Floats) -> float:
        """Return R(B)."""

    @abstractmethod
    def gradient(self, w: Floats) -> Floats:
        """Return the first derivatives (m,)."""

    @abstractmethod
    def hessian(self, w: Floats) -> Floats:
        """Return the second derivatives (m, m)."""

    def room(self, w: Floats, dw: Floats) -> float:
        """Return the longest step along dw where R stays finite."""
        return math.inf


class Regulariser(ABC):
    """A convex function R of coefficients."""

    @abstractmethod
    def value(self, B: Floats) -> float:
        """Return R(B)."""

    def pulled(self, B: Floats) -> Floats:
        """Return coefficients where R is finite, B itself where it is."""
        return B

    def scale(self, V: Floats) -> float:
        """Return the largest factor up to 1 that brings V into the domain of R*."""
        return 1.0

    @abstractmethod
    def conjugate(self, V: Floats) -> float:
        """Return R*(V) of a V in its domain."""

    def proximal(self, B: Floats, step: float) -> Floats:
        """Return ``argmin_U ||U - B||^2 / (2 step) + R(U)``, where that is known."""
        raise NotImplementedError(f"no proximal step of {type(self).__name__}")

    @abstractmethod
    def in_units(self, xs: float, ys: float) -> Self:
        """Return R of coefficients in units of ``ys / xs``, its values in those of ``ys^2``."""


@dataclass(frozen=True)
class Penalty(Regulariser):
    """``lam N(B)``."""

    norm: Norm
    lam: float

    def value(self, B: Floats) -> float:
        """Return ``lam N(B)``."""
        return self.lam * float(self.norm.value(B))

    def scale(self, V: Floats) -> float:
        """Return ``min(1, lam / N*(V))``, rounded down."""
        size = float(self.norm.dual.above(V))
        return 1.0 if size <= self.lam else self.lam / size

    def conjugate(self, V: Floats) -> float:
        """Return 0."""
        return 0.0

    def proximal(self, B: Floats, step: float) -> Floats:
        """Return B with smaller sizes."""
        return pulled_back(self.norm, B, step * self.lam)

    def in_units(self, xs: float, ys: float) -> Self:
        """Return R in these units."""
        return replace(self, lam=self.lam / xs / ys)


@dataclass(frozen=True)
class Interpolation(Penalty):
    """``N(B)`` over interpolating coefficients: the penalty of weight 1 with F an equality."""

    def in_units(self, xs: float, ys: float) -> Self:
        """Return R in these units."""
        return self


@dataclass(frozen=True)
class Ridge(Regulariser, Smooth):
    """``lam ||B||^2 / 2``."""

    lam: float

    def value(self, B: Floats) -> float:
        """Return ``lam ||B||^2 / 2``."""
        return self.lam * float(np.sum(B**2)) / 2

    def gradient(self, w: Floats) -> Floats:
        """Return ``lam w``."""
        return self.lam * w

    def hessian(self, w: Floats) -> Floats:
        """Return ``lam I``."""
        return self.lam * np.eye(len(w))

    def conjugate(self, V: Floats) -> float:
        """Return ``||V||^2 / (2 lam)``."""
        return float(np.sum((V / math.sqrt(self.lam)) ** 2)) / 2

    def proximal(self, B: Floats, step: float) -> Floats:
        """Return B shrunk."""
        return B / (1 + step * self.lam)

    def in_units(self, xs: float, ys: float) -> Self:
        """Return R in these units."""
        return replace(self, lam=self.lam / xs / xs)


@dataclass(frozen=True)
class Ball(Regulariser):
    """The constraint ``N(B) <= radius``."""

    norm: Norm
    radius: float

    def value(self, B: Floats) -> float:
        """Return 0; B is pulled into the ball first."""
        return 0.0

    def pulled(self, B: Floats) -> Floats:
        """Return B shrunk into the ball."""
        size = float(self.norm.value(B))
        return B if size <= self.radius else B * (self.radius / size)

    def conjugate(self, V: Floats) -> float:
        """Return ``radius N*(V)``."""
        return self.radius * float(self.norm.dual.value(V))

    def proximal(self, B: Floats, step: float) -> Floats:
        """Return the nearest point of the ball."""
        return pulled_in(self.norm, B, self.radius)

    def in_units(self, xs: float, ys: float) -> Self:
        """Return R in these units."""
        return replace(self, radius=self.radius * (xs / ys))


@dataclass(frozen=True)
class Barrier(Regulariser, Smooth):
    """``(eps / lam) sum_i (-lam |w_i| - log(1 - lam |w_i|))``.

    Its conjugate is ``(1 / lam) sum_i (|v_i| - eps log(1 + |v_i| / eps))``.
    """

    lam: float
    eps: float

    def value(self, B: Floats) -> float:
        """Return the barrier, infinite outside of the box."""
        u = self.lam * np.abs(B)
        if not np.all(u < 1):
            return math.inf
        return self.eps / self.lam * float(np.sum(-u - np.log1p(-u)))

    def gradient(self, w: Floats) -> Floats:
        """Return ``eps lam w / (1 - lam |w|)``."""
        return np.asarray(self.eps * self.lam * w / (1 - self.lam * np.abs(w)))

    def hessian(self, w: Floats) -> Floats:
        """Return ``diag(eps lam / (1 - lam |w|)^2)``."""
        return np.diag(self.eps * self.lam / (1 - self.lam * np.abs(w)) ** 2)

    def room(self, w: Floats, dw: Floats) -> float:
        """Return the step to the nearest wall."""
        return min(longest_step(1 / self.lam - w, -dw), longest_step(1 / self.lam + w, dw))

    def pulled(self, B: Floats) -> Floats:
        """Return B shrunk strictly into the box."""
        largest = self.lam * float(np.max(np.abs(B), initial=0.0))
        return B if largest < 1 else B * ((1 - 1e-12) / largest)

    def conjugate(self, V: Floats) -> float:
        """Return the sum over the entries of V."""
        v = np.abs(V)
        return float(np.sum(v - self.eps * np.log1p(v / self.eps))) / self.lam

    def in_units(self, xs: float, ys: float) -> Self:
        """Return R in these units."""
        return replace(self, lam=self.lam * (ys / xs), eps=self.eps / xs / ys)


@dataclass(frozen=True, eq=False)
class SmoothGroups(Smooth):
    """``lam sum_h sqrt(||w_h||^2 + width^2)``; `group` (m,) names every coefficient's group."""

    lam: float
    group: NDArray[np.int64]
    width: float

    def _sizes(self, w: Floats) -> Floats:
        return np.asarray(np.sqrt(np.bincount(self.group, w**2) + self.width**2))

    def value(self, B: Floats) -> float:
        """Return lam times the sum of the groups' sizes."""
        return self.lam * float(self._sizes(B).sum())

    def gradient(self, w: Floats) -> Floats:
        """Return ``lam w_h`` over its group's size."""
        return self.lam * w / self._sizes(w)[self.group]

    def hessian(self, w: Floats) -> Floats:
        """Return a block a group."""
        sizes = self._sizes(w)[self.group]
        within = np.where(self.group[:, None] == self.group, np.outer(w, w), 0.0)
        return np.asarray(self.lam * (np.diag(1 / sizes) - within / sizes**3))


@dataclass(frozen=True, eq=False)
class Cones(Smooth):
    """Sizes t of blocks, over coefficients w followed by t, with the barrier of their cones.

    ``cost sum t - width (sum_b log(t_b^2 - ||w_b||^2) + log(radius - sum t))``

    Attributes
    ----------
    cost : float
        Penalty of the sizes.
    radius : float
        What their sum stays below; infinite without such.
    block : (m,) array of int
        Block of every coefficient.
    size : (b,) array of int
        Which size, behind the coefficients, is that of a block; the largest one has all blocks.
    width : float
    """

    cost: float
    radius: float
    block: NDArray[np.int64]
    size: NDArray[np.int64]
    width: float

    def _parts(self, B: Floats) -> tuple[Floats, Floats, Floats, float]:
        """Return w, t, the rooms of the cones (b,), and what the sum leaves of the radius."""
        w, t = B[: len(self.block)], B[len(self.block) :]
        lengths, of_block = np.sqrt(np.bincount(self.block, w**2)), t[self.size]
        room = np.where(of_block > lengths, (of_block - lengths) * (of_block + lengths), 0.0)
        return w, t, room, self.radius - float(t.sum())

    def value(self, B: Floats) -> float:
        """Return it; infinite outside of the cones."""
        _, t, room, left = self._parts(B)
        if not (np.all(room > 0) and left > 0):
            return math.inf
        own = float(np.log(room).sum()) + (math.log(left) if left < math.inf else 0.0)
        return self.cost * float(t.sum()) - self.width * own

    def gradient(self, w: Floats) -> Floats:
        """Return the first derivatives, of coefficients and sizes."""
        w, t, room, left = self._parts(w)
        of_t = np.bincount(self.size, -2 * t[self.size] / room)
        own = self.cost + self.width * (of_t + 1 / left)
        return np.concatenate([2 * self.width * w / room[self.block], own])

    def hessian(self, w: Floats) -> Floats:
        """Return the second derivatives, of coefficients and sizes."""
        w, t, room, left = self._parts(w)
        m, b = len(w), len(room)
        # The slopes of the rooms over the rooms: rows of blocks.
        slopes = np.zeros((b, m + len(t)))
        slopes[self.block, np.arange(m)] = -2 * w / room[self.block]
        slopes[np.arange(b), m + self.size] = 2 * t[self.size] / room
        bent = np.r_[2 / room[self.block], np.bincount(self.size, -2 / room)]
        found = slopes.T @ slopes + np.diag(bent)
        found[m:, m:] += 1 / left**2
        return np.asarray(self.width * found)


def regulariser_of(
    norm: str, penalty: float | None, radius: float | None, eps: float | None
) -> Regulariser:
    """Return the regulariser of these numbers.

    Parameters
    ----------
    norm : str
        A name of `Norm`, "ridge", or "adamw" for the barrier.
    penalty, radius, eps : float or None

    Returns
    -------
    Regulariser
    """
    if norm == "adamw" and penalty is not None and eps is not None:
        return Barrier(penalty, eps)
    if norm == "ridge" and penalty is not None:
        return Ridge(penalty)
    own = Norm.of(norm)  # type: ignore[arg-type]
    if penalty is not None:
        return Penalty(own, penalty)
    if radius is not None:
        return Ball(own, radius)
    return Interpolation(own, 1.0)
