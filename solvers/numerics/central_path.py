r"""Interior points: one loop along a central path, for systems of any structure.

A point of the path solves optimality conditions in which the products of complementary pairs are
mu, and mu goes to 0. A *system* is these conditions at a point, linearised there and factorised
once; what it is made of, pairs of numbers or of matrices, dense or bordered, the loop never asks.

References
----------
S. Mehrotra, "On the implementation of a primal-dual interior point method", 1992 (predictor and
corrector); J. Gondzio, "Multiple centrality corrections in a primal-dual method for linear
programming", 1996.
"""

from __future__ import annotations

import logging
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np

from .arrays import Array, array_namespace, float_of
from .step_length import longest_step

log = logging.getLogger(__name__)

Point = TypeVar("Point")
Target = TypeVar("Target")
Step = TypeVar("Step")
Found = TypeVar("Found")
Lengths = tuple[float, float]
"""Lengths of a step on the primal and on the dual side."""

# Mehrotra's centring exponent.
CENTRING = 3
# Correctors aim at steps so much longer, unless these are nearly whole, and are worth their solve
# where they gain this share of it on both sides together.
FURTHER, ENOUGH, GAIN = 0.3, 0.95, 0.1
# Steps below this share of the way lead nowhere.
SHORT = 1e-12


class System(ABC, Generic[Point, Target, Step]):
    """Optimality conditions at a point of the path, linearised and factorised.

    Attributes
    ----------
    inner : float
        Share of the longest step that is taken.
    correctors : int
        Gondzio's correctors at most.
    shares : (float, float)
        Least and largest share of mu at which a step aims.
    """

    inner: ClassVar[float]
    correctors: ClassVar[int] = 0
    shares: ClassVar[tuple[float, float]] = (0.0, 1.0)

    @abstractmethod
    def mu(self, step: Step | None = None, lengths: Lengths = (0.0, 0.0)) -> float:
        """Mean product of the pairs at the point, or after a step."""

    @abstractmethod
    def predicting(self) -> Target:
        """Right-hand sides of a step to products of zero, without second-order terms."""

    @abstractmethod
    def correcting(self, affine: Step, mu: float) -> Target:
        """Right-hand sides of a step to products `mu`, less the second-order terms of `affine`."""

    def centring(self, target: Target, step: Step, lengths: Lengths, mu: float) -> Target:
        """Right-hand sides that bring products after a step of `lengths` closer to `mu`."""
        raise NotImplementedError

    @abstractmethod
    def solve(self, target: Target) -> Step:
        """Newton step."""

    @abstractmethod
    def longest(self, step: Step) -> Lengths:
        """Longest steps inside of the cone."""

    @abstractmethod
    def moved(self, step: Step, lengths: Lengths) -> Point:
        """Point after a step."""


class PairSystem(System[Point, Target, Step]):
    """System of pairs of positive numbers, which moves both sides by one length.

    Points and steps are dataclasses; a step has the fields of a point that change.

    Attributes
    ----------
    point
    pairs : tuple of pairs of str
        Names of the fields whose products go to mu.
    """

    point: Point
    pairs: ClassVar[tuple[tuple[str, str], ...]]

    def products(self, step: Step | None = None, length: float = 0.0) -> list[Array]:
        """Products of the pairs at the point, or after a step."""
        at: Any = self.point
        if step is None:
            return [getattr(at, x) * getattr(at, z) for x, z in self.pairs]
        return [
            (getattr(at, x) + length * getattr(step, x))
            * (getattr(at, z) + length * getattr(step, z))
            for x, z in self.pairs
        ]

    def mu(self, step: Step | None = None, lengths: Lengths = (0.0, 0.0)) -> float:
        products = self.products(step, lengths[0])
        total = sum(float_of(array_namespace(each).sum(each)) for each in products)
        return total / sum(int(each.shape[0]) for each in products)

    def longest(self, step: Step) -> Lengths:
        names = [name for pair in self.pairs for name in pair]
        length = min(longest_step(getattr(self.point, x), getattr(step, x)) for x in names)
        return length, length

    def moved(self, step: Step, lengths: Lengths) -> Point:
        at, by = self.point, step
        changes = {
            field.name: getattr(at, field.name) + lengths[0] * getattr(by, field.name)
            for field in fields(by)  # type: ignore[arg-type]
        }
        return replace(at, **changes)  # type: ignore[type-var]


class OnePairSystem(PairSystem[Point, Array, Step]):
    """System of one pair, whose right-hand sides are the products that are wanted."""

    def predicting(self) -> Array:
        return 0 * self.products()[0]

    def correcting(self, affine: Step, mu: float) -> Array:
        x, z = self.pairs[0]
        return mu - getattr(affine, x) * getattr(affine, z)


def follow(
    point: Point,
    linearised: Callable[[Point], System[Point, Any, Any]],
    goes_on: Callable[[Point, int], bool],
    *,
    limit: int,
) -> Point:
    """Follow the path as long as it `goes_on` at a point and numbers carry.

    Parameters
    ----------
    point : Point
        Where it begins.
    linearised : callable
        System at a point.
    goes_on : callable
        Called as `goes_on(point, done)` at every point, the first one included.
    limit : int
        Steps at most.
    """
    done = 0
    while goes_on(point, done) and done < limit:
        try:
            with np.errstate(divide="raise", over="raise", invalid="raise"):
                # No name for the system: its matrices would still be there beside the next ones.
                point = advanced(linearised(point))
        except (ArithmeticError, np.linalg.LinAlgError) as error:
            log.debug("step %d: %s", done + 1, error)
            break
        done += 1
    return point


def advanced(system: System[Point, Target, Step]) -> Point:
    """Predict, correct, centre, and step.

    Raises
    ------
    ArithmeticError
        If no step is left.
    """
    affine = system.solve(system.predicting())
    mu = system.mu()
    left = system.mu(affine, _within(1.0, system.longest(affine))) / mu
    least, most = system.shares
    goal = mu * min(max(left**CENTRING, least), most)
    target = system.correcting(affine, goal)
    step = system.solve(target)
    lengths = _within(1 / system.inner, system.longest(step))
    for _ in range(system.correctors):
        if min(lengths) > ENOUGH:
            break
        aims = _within(1.0, (lengths[0] + FURTHER, lengths[1] + FURTHER))
        target = system.centring(target, step, aims, goal)
        again = system.solve(target)
        reached = _within(1 / system.inner, system.longest(again))
        if not sum(reached) >= sum(lengths) + GAIN * FURTHER:
            break
        step, lengths = again, reached
    if not max(lengths) > SHORT:
        raise ArithmeticError("no step is left")
    return system.moved(step, _within(1.0, (system.inner * lengths[0], system.inner * lengths[1])))


def _within(most: float, lengths: Lengths) -> Lengths:
    return min(most, lengths[0]), min(most, lengths[1])


@dataclass(frozen=True, eq=False)
class Best(Generic[Found]):
    """Best bounds of a value that is not negative, and the points that give them.

    Attributes
    ----------
    lower : float
    primal
        What gives the lower bound.
    upper : float
    dual
        What gives the upper one.
    iterations : int
        Steps that were taken.
    """

    lower: float
    primal: Found
    upper: float
    dual: Found
    iterations: int = 0

    @property
    def gap(self) -> float:
        """Relative gap `upper / lower - 1`, infinite as long as the lower bound says nothing."""
        return self.upper / self.lower - 1 if self.lower > 0 else math.inf

    @property
    def width(self) -> float:
        """Length of the interval in which the bounds leave the value."""
        return self.upper - max(self.lower, 0.0)

    def better(self, other: Best[Found]) -> Best[Found]:
        """The better bound of each side, after the iterations of `other`."""
        lower = other if other.lower > self.lower else self
        upper = other if other.upper < self.upper else self
        return Best(lower.lower, lower.primal, upper.upper, upper.dual, other.iterations)


class Patience:
    """Patience with a size that is to shrink by a tenth within some steps."""

    def __init__(self, steps: int) -> None:
        self._sizes: list[float] = []
        self._steps = steps

    def ends(self, size: float) -> bool:
        """Take the next size in; True once it has not shrunk so."""
        self._sizes.append(size)
        before = self._sizes[-1 - self._steps :]
        return len(before) > self._steps and not size < 0.9 * before[0]


class Watch(Generic[Found]):
    """Best bounds along a path, which goes on until these meet or no longer close in.

    Parameters
    ----------
    bounds : callable
        Bounds at a point of the path.
    enough : float
        Gap at which it ends.
    patience : int
        Steps within which the bounds are to close in by a tenth.
    progress : callable, optional
        Called as `progress(done, gap)` after every step.
    best : Best, optional
        Bounds that are known before.
    before : int
        Steps before the first one.
    """

    def __init__(
        self,
        bounds: Callable[[Any], Best[Found]],
        enough: float,
        patience: int,
        progress: Callable[[int, float], None] | None = None,
        best: Best[Found] | None = None,
        before: int = 0,
    ) -> None:
        self._bounds, self._enough, self._progress = bounds, enough, progress
        self._patience, self._best, self._before = Patience(patience), best, before

    @property
    def best(self) -> Best[Found]:
        """Best bounds so far."""
        if self._best is None:
            raise ValueError("the path has not begun")
        return self._best

    def __call__(self, point: Any, done: int) -> bool:
        """True if the path goes on from this point, after `done` steps."""
        found = replace(self._bounds(point), iterations=self._before + done)
        self._best = best = found if self._best is None else self._best.better(found)
        log.debug("%d: %.10g to %.10g", best.iterations, best.lower, best.upper)
        if self._progress is not None and done > 0:
            self._progress(best.iterations, best.gap)
        ends = self._patience.ends(best.width)
        return best.gap > self._enough and not ends


class Path(ABC, Generic[Point, Found]):
    """A program's central path, the end of which may do without some of its rows."""

    @abstractmethod
    def system(self, point: Point) -> System[Point, Any, Any]:
        """Conditions at a point, linearised."""

    @abstractmethod
    def bounds(self, point: Point) -> Best[Found]:
        """Bounds of the value at a point."""

    def goes_on(self, best: Best[Found]) -> bool:
        """False where arithmetic carries no further than these bounds."""
        return True

    @abstractmethod
    def near(self, point: Point, gap: float) -> Array | None:
        """Indices of the rows with which to go on from a point; None for all."""

    @abstractmethod
    def part(self, rows: Array) -> Path[Point, Found]:
        """Path of these rows alone."""

    @abstractmethod
    def restricted(self, point: Point, rows: Array) -> Point:
        """Point of this path, of these rows alone, made from one of all."""

    @abstractmethod
    def with_all(self, best: Best[Found], rows: Array) -> Best[Found]:
        """Bounds that the best points of the path of these rows give for all."""


def follow_path(
    path: Path[Point, Found],
    point: Point,
    run: Callable[..., Watch[Found]],
    *,
    limit: int,
    before: int = 0,
) -> Best[Found]:
    """Follow a path to its end, at the last with the rows alone that are near.

    If one that was left out then refuses what was found, the path goes on with all.

    Parameters
    ----------
    path : Path
    point : Point
        Where it begins.
    run : callable
        Makes a `Watch` of bounds, and of its `best` and `before`.
    limit, before : int
        Steps at most, and those before the first one.
    """
    watch, near = run(path.bounds, before=before), None

    def goes_on(point: Point, done: int) -> bool:
        return watch(point, done) and path.goes_on(watch.best)

    def goes_on_with_all(point: Point, done: int) -> bool:
        nonlocal near
        more = goes_on(point, done)
        near = path.near(point, watch.best.gap) if more else None
        return more and near is None

    point = follow(point, path.system, goes_on_with_all, limit=limit - before)
    if near is None:
        return watch.best
    log.debug("%d rows are near", len(near))
    part, done = path.part(near), watch.best.iterations
    found = follow_path(part, part.restricted(point, near), run, limit=limit, before=done)
    best = watch.best.better(path.with_all(found, near))
    watch = run(path.bounds, best=best, before=best.iterations)
    follow(point, path.system, goes_on, limit=limit - best.iterations)
    return watch.best
