"""Linear maps from coefficients to margins: explicit rows, gated scores, margins over classes."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas
from scipy.sparse import csr_array

from ..numerics.arrays import gram_lower, mirror_lower
from ..numerics.checks import require_array, require_count, require_finite, require_shape
from .design import GatedDesign
from .max_margin import MaxMarginProgram

Floats = NDArray[np.float64]


class Room:
    """Arrays that a solver writes anew at every iteration: new memory costs as much as the work."""

    def __init__(self) -> None:
        self._held: dict[str, Floats] = {}

    def array(self, name: str, *shape: int) -> Floats:
        """Return the array of a name, with whatever it held."""
        if name not in self._held or self._held[name].shape != shape:
            self._held[name] = np.empty(shape)
        return self._held[name]


class Map(Protocol):
    """Map of coefficients B to margins `A(B)`."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the coefficients."""

    @property
    def n_rows(self) -> int:
        """Number m of margins."""

    def scores(self, B: Floats) -> Floats:
        """Margins (m,) of coefficients of the map's shape."""

    def adjoint(self, lam: Floats) -> Floats:
        """Coefficients `A' lam` of multipliers (m,)."""

    def gram(self, weights: Floats, room: Room | None = None) -> Floats:
        """Matrix (size, size) `A' diag(weights) A`; in `room`, until that is used again."""


class Image(Map, Protocol):
    """Map of coefficients to margins, with what certificates and other solvers ask of it."""

    @property
    def n_roundings(self) -> tuple[int, int]:
        """Most roundings between a factor and an entry of `scores`, and of `adjoint`."""

    def absolute(self) -> Self:
        """Image of the absolute values: its scores and adjoint sum the sizes of the terms."""

    def largest(self) -> float:
        """Largest absolute value among the data."""

    def over(self, scale: float) -> Self:
        """Image of data divided by `scale`."""

    def standard(self) -> MaxMarginProgram:
        """Write the margins as those of a gated design of one group: V (J, D) is B in C order."""

    def taken(self, rows: NDArray[np.int64]) -> Products:
        """Return the margins of these indices alone, in their order."""


def dense_rows(image: Image) -> Floats:
    """Multiply an image out.

    Parameters
    ----------
    image : Image

    Returns
    -------
    (m, size) array
        One row a margin, coefficients in C order.
    """
    program = image.standard()
    Z, X = program.design.Z * program.y[:, None], program.design.X
    return np.asarray(np.reshape(Z[:, :, None] * X[:, None, :], (image.n_rows, -1)))


@dataclass(frozen=True, eq=False)
class _Inputs:
    """Inputs X (D, n), one a row, and the largest gate."""

    X: Floats
    gate: float

    @cached_property
    def squares(self) -> Floats:
        """Largest square (D,) of each input behind a gate."""
        return np.asarray((self.gate * np.abs(self.X).max(axis=1)) ** 2)

    @cached_property
    def single(self) -> NDArray[np.float32]:
        """The inputs in single precision."""
        return self.X.astype(np.float32)

    def weighed(self, samples: NDArray[np.int64], weights: Floats, light: float) -> Floats:
        """Lower triangle of the products of samples with each other.

        Single precision has those inputs whose largest squares, with `weights` (D,), are `light` at
        most, if they are many: both precisions take longer than one.
        """
        few, unit, rough = self._light(weights, light, 3)
        found = self._weighed(self.X, samples, np.flatnonzero(~few), weights)
        if np.any(few):
            found += unit * self._weighed(self.single, samples, np.flatnonzero(few), rough)
        return found

    def weighed_with_all(self, samples: NDArray[np.int64], weights: Floats, light: float) -> Floats:
        """Products of samples with all, in single precision of inputs that are `light`, if many."""
        few, unit, rough = self._light(weights, light, 2)
        found = np.zeros((len(samples), self.X.shape[1]))
        if np.any(few):
            own = np.take(self.single, samples, axis=1) * rough.astype(np.float32)[:, None]
            found += unit * (own.T @ self.single)
        if not np.all(few):
            X, rest = (self.X, weights) if not np.any(few) else (self.X[~few], weights[~few])
            found += (np.take(X, samples, axis=1) * rest[:, None]).T @ X
        return found

    def _light(
        self, weights: Floats, light: float, part: int
    ) -> tuple[NDArray[np.bool_], float, Floats]:
        """Inputs that are light, their largest weight, and their weights over it, 0 elsewhere.

        None are where no more than one in `part` is.
        """
        few = weights * self.squares <= light
        few &= part * np.count_nonzero(few) > len(few)
        unit = float(weights[few].max(initial=0.0)) or 1.0
        return few, unit, np.where(few, weights, 0.0) / unit

    def _weighed(
        self, X: np.ndarray, samples: NDArray[np.int64], chosen: NDArray[np.int64], weights: Floats
    ) -> Floats:
        """Products of chosen inputs, in the precision of X."""
        roots = np.sqrt(weights[chosen]).astype(X.dtype)[:, None]
        X = X if len(chosen) == len(X) else X[chosen]
        return np.asarray(gram_lower((np.take(X, samples, axis=1) * roots).T))


@dataclass(frozen=True, eq=False)
class Products:
    """Image whose rows are products: `A(B)[i] = sum_j gates[i, j] <B[j], X[sample[i]]>`.

    Parameters
    ----------
    X : (n, D) float64 array
    gates : (m, J) float64 array
    sample : (m,) integer array
        Row of `X` of each margin.
    shape : tuple of int
        Shape of the coefficients (J, D) in the model's own axes, in C order.
    """

    X: Floats
    gates: Floats
    sample: NDArray[np.int64]
    shape: tuple[int, ...]

    @classmethod
    def of(
        cls, X: Floats, gates: Floats, sample: NDArray[np.int64], shape: tuple[int, ...]
    ) -> Products:
        """Keep those inputs alone that a margin has."""
        used, sample = np.unique(sample, return_inverse=True)
        return cls(X[used], gates, sample, shape)

    @property
    def n_rows(self) -> int:
        """Number m of margins."""
        return len(self.gates)

    @property
    def n_roundings(self) -> tuple[int, int]:
        """Sums over inputs and columns, and over rows."""
        return int(np.prod(self.shape)) + 2, self.n_rows + 2

    @cached_property
    def by_sample(self) -> csr_array:
        """Matrix (n, m) that adds up what the margins of a sample have."""
        rows = np.arange(self.n_rows)
        return csr_array((np.ones(self.n_rows), (self.sample, rows)), (len(self.X), self.n_rows))

    def scores(self, B: Floats) -> Floats:
        """Margins (m,) of coefficients."""
        scores = self.X @ B.reshape(self.gates.shape[1], -1).T
        return np.asarray(np.sum(self.gates * scores[self.sample], axis=1))

    def adjoint(self, lam: Floats) -> Floats:
        """Coefficients of multipliers (m,)."""
        return np.asarray((self.by_sample @ (lam[:, None] * self.gates)).T @ self.X).reshape(
            self.shape
        )

    def gram(self, weights: Floats, room: Room | None = None) -> Floats:
        """Matrix `A' diag(weights) A`."""
        rows = dense_rows(self)
        return (rows * weights[:, None]).T @ rows

    def gram_of_rows(self, weights: Floats, allowed: float = 0.0) -> Floats:
        """Matrix (m, m) `A diag(weights) A'`, of weights (size,) of coefficients that are positive.

        One product of inputs a column, of the rows that the column is no zero of.

        Gates that are open on most samples, and alike there, share one product of all: what closed
        ones see is taken off again.

        Parameters
        ----------
        weights : (size,) array
        allowed : float
            What may be lost of an entry: single precision multiplies the inputs of least weight, as
            far as all that it rounds of them is less.
        """
        own = weights.reshape(self.gates.shape[1], -1)
        # What is rounded has both signs: of so many sums it grows with their root.
        light = allowed / (math.sqrt(own.size) * float(np.finfo(np.float32).eps))
        wide = self._wide
        matrix = np.zeros((self.n_rows, self.n_rows))
        if np.any(wide):
            for gate, each in zip(self.gates.T[wide], own[wide], strict=True):
                closed = np.flatnonzero(gate == 0)
                seen = self._inputs.weighed_with_all(closed, each, light)
                seen[:, closed] /= 2
                matrix[closed] -= seen
            # Of the order of the matrix the upper triangle is enough.
            matrix += matrix.T
            every = np.arange(self.n_rows)
            matrix += self._inputs.weighed(every, own[wide].sum(axis=0), light).T
            matrix *= self._common
            matrix *= self._common[:, None]
        for gate, each in zip(self.gates.T[~wide], own[~wide], strict=True):
            rows = np.flatnonzero(gate)
            if len(rows) == 0:
                continue
            samples, place = np.unique(self.sample[rows], return_inverse=True)
            products = self._inputs.weighed(samples, each, light)
            if not np.array_equal(samples, self.sample[rows]):
                products = mirror_lower(products)[place[:, None], place]
            spread = np.zeros((len(rows), self.n_rows))
            spread[:, rows] = products.T * gate[rows]
            spread *= gate[rows, None]
            matrix[rows] += spread
        return mirror_lower(np.tril(matrix.T))

    @cached_property
    def _common(self) -> Floats:
        """The first gate (m,) of every row that is not zero."""
        first = np.argmax(self.gates != 0, axis=1)
        return np.asarray(self.gates[np.arange(self.n_rows), first])

    @cached_property
    def _wide(self) -> NDArray[np.bool_]:
        """Columns (J,) that are zero on few rows and the common gate on the others."""
        if not np.array_equal(self.sample, np.arange(len(self.X))):
            return np.zeros(self.gates.shape[1], dtype=bool)
        n_open = np.count_nonzero(self.gates, axis=0)
        alike = np.all((self.gates == 0) | (self.gates == self._common[:, None]), axis=0)
        wide = alike & (2 * (self.n_rows - n_open) * self.n_rows < n_open**2)
        return np.asarray(wide & (np.count_nonzero(wide) > 1))

    @cached_property
    def _inputs(self) -> _Inputs:
        X = np.ascontiguousarray(self.X.T)
        return _Inputs(X, float(np.abs(self.gates).max(initial=0.0)))

    def distinct(self, *, summed: bool) -> tuple[Products, NDArray[np.int64]]:
        """Image of inputs of which no two agree on all samples, as pixels at the border do.

        Parameters
        ----------
        summed : bool
            Whether an input is the sum of those that it stands for.

        Returns
        -------
        Products
            With coefficients (J, d).
        (D,) integer array
            Place of each input in them.
        """
        places: dict[bytes, int] = {}
        place = np.array([places.setdefault(x.tobytes(), len(places)) for x in self.X.T])
        _, first, count = np.unique(place, return_index=True, return_counts=True)
        X = self.X[:, first] * (count if summed else 1)
        return replace(self, X=X, shape=(self.gates.shape[1], len(first))), place

    def absolute(self) -> Products:
        """Image of absolute inputs and gates."""
        return replace(self, X=np.abs(self.X), gates=np.abs(self.gates))

    def largest(self) -> float:
        """Largest absolute input."""
        return float(np.abs(self.X).max())

    def over(self, scale: float) -> Products:
        """Image of inputs divided by `scale`."""
        return replace(self, X=self.X / scale)

    def taken(self, rows: NDArray[np.int64]) -> Products:
        """Return the margins of these indices alone, in their order."""
        return Products.of(self.X, self.gates[rows], self.sample[rows], self.shape)

    def standard(self) -> MaxMarginProgram:
        """State the margins as samples behind gates: inputs are copied."""
        group = np.zeros(self.gates.shape[1], dtype=np.int64)
        design = GatedDesign(self.X[self.sample], self.gates, group)
        return MaxMarginProgram(design, np.ones(self.n_rows))


@dataclass(frozen=True, eq=False)
class Rows:
    """Image whose rows are given: `A(B)[i] = <matrix[i], B>`.

    Parameters
    ----------
    matrix : (m, ...) float64 array
        One row a margin, each of the shape of the coefficients.
    """

    matrix: Floats

    def __post_init__(self) -> None:
        require_array("matrix", self.matrix)
        if self.matrix.ndim < 2 or 0 in self.matrix.shape:
            raise ValueError(f"`matrix` must have rows of entries, got shape {self.matrix.shape}")
        require_finite("matrix", self.matrix)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the coefficients."""
        return tuple(self.matrix.shape[1:])

    @property
    def n_rows(self) -> int:
        """Number m of margins."""
        return len(self.matrix)

    @property
    def n_roundings(self) -> tuple[int, int]:
        """A sum over entries, and one over rows."""
        return int(np.prod(self.shape)) + 2, self.n_rows + 2

    @property
    def flat(self) -> Floats:
        """Matrix (m, size)."""
        return self.matrix.reshape(self.n_rows, -1)

    def scores(self, B: Floats) -> Floats:
        """Margins (m,) of coefficients."""
        return self.flat @ np.ravel(B)

    def adjoint(self, lam: Floats) -> Floats:
        """Coefficients `sum_i lam[i] matrix[i]`."""
        return (lam @ self.flat).reshape(self.shape)

    def gram(self, weights: Floats, room: Room | None = None) -> Floats:
        """Matrix `A' diag(weights) A`."""
        return (self.flat * weights[:, None]).T @ self.flat

    def absolute(self) -> Rows:
        """Rows of absolute values."""
        return Rows(np.abs(self.matrix))

    def largest(self) -> float:
        """Largest absolute entry."""
        return float(np.abs(self.matrix).max())

    def over(self, scale: float) -> Rows:
        """Rows divided by `scale`."""
        return Rows(self.matrix / scale)

    def standard(self) -> MaxMarginProgram:
        """State the rows as inputs without gates."""
        ones = np.ones((self.n_rows, 1))
        return MaxMarginProgram(
            GatedDesign(self.flat, ones, np.zeros(1, dtype=np.int64)), ones[:, 0]
        )

    def taken(self, rows: NDArray[np.int64]) -> Products:
        """Return the margins of these indices alone, in their order."""
        ones = np.ones((len(rows), 1))
        return Products(self.flat[rows], ones, np.arange(len(rows)), self.shape)


@dataclass(frozen=True, eq=False)
class GatedRows:
    """Image of binary labels behind gates: `A(B)[n] = y[n] sum_j Z[n, j] <X[n], B[j]>`.

    Parameters
    ----------
    program : MaxMarginProgram
        On NumPy arrays; its groups do not count.
    shape : tuple of int
        Shape of the coefficients (J, D) in the model's own axes, in C order.
    """

    program: MaxMarginProgram
    shape: tuple[int, ...]

    @property
    def n_rows(self) -> int:
        """Number n of samples."""
        return self.program.n_samples

    @property
    def n_roundings(self) -> tuple[int, int]:
        """Sums over inputs and columns, and one over samples."""
        return sum(self._columns) + 2, self.n_rows + 2

    def scores(self, B: Floats) -> Floats:
        """Margins (n,) of coefficients."""
        return np.asarray(self.program.margins(B.reshape(self._columns)))

    def adjoint(self, lam: Floats) -> Floats:
        """Coefficients of multipliers (n,)."""
        return np.asarray(self.program.dual_blocks(lam)).reshape(self.shape)

    def gram(self, weights: Floats, room: Room | None = None) -> Floats:
        """Matrix `A' diag(weights) A`."""
        rows = dense_rows(self)
        return (rows * weights[:, None]).T @ rows

    def absolute(self) -> GatedRows:
        """Image of absolute inputs, gates and labels."""
        design, y = self.program.design, self.program.y
        design = replace(design, X=np.abs(design.X), Z=np.abs(design.Z))
        return replace(self, program=MaxMarginProgram(design, np.abs(y)))

    def largest(self) -> float:
        """Largest absolute input."""
        return float(np.abs(self.program.design.X).max())

    def over(self, scale: float) -> GatedRows:
        """Image of inputs divided by `scale`."""
        design = replace(self.program.design, X=self.program.design.X / scale)
        return replace(self, program=MaxMarginProgram(design, self.program.y))

    def standard(self) -> MaxMarginProgram:
        """State the program with all columns in one group."""
        group = np.zeros(self._columns[0], dtype=np.int64)
        return replace(self.program, design=replace(self.program.design, group=group))

    def taken(self, rows: NDArray[np.int64]) -> Products:
        """Return the margins of these indices alone, in their order."""
        design, y = self.program.design, self.program.y
        return Products.of(design.X, design.Z[rows] * y[rows, None], rows, self.shape)

    @property
    def _columns(self) -> tuple[int, int]:
        design = self.program.design
        return int(design.Z.shape[1]), int(design.X.shape[1])


@dataclass(frozen=True, eq=False)
class RelativeMargins:
    r"""Image of K classes: by how much the score of the own class is above that of each other.

    .. math:: A(B)_{nk} = \sum_h Z_{nh} \langle B_{h y_n} - B_{hk}, x_n \rangle, \quad k \ne y_n

    Rows are pairs (n, k), in order of n, then k; no matrix of them is made.

    Parameters
    ----------
    X : (n, D) float64 array
    labels : (n,) integer array
        Classes from 0 to `n_classes` - 1. A class without samples still has a row a sample.
    n_classes : int
        K, at least 2.
    Z : (n, H) float64 array, optional
        Gates: coefficients are then (H, K, D), without them (K, D).
    n_contexts : int
        C, by default 1: consecutive columns of `Z`, then (n, H C), that belong to one unit, as
        one-hot contexts do. Coefficients are (H, K, C D), context by context in each row.

    Raises
    ------
    TypeError, ValueError
        If shapes disagree, values are not finite, a label names no class or columns are not so many
        for each unit.

    Examples
    --------
    >>> import numpy as np
    >>> from solvers import RelativeMargins
    >>> image = RelativeMargins(np.array([[2.0, 1.0]]), np.array([0]), 3)
    >>> image.scores(np.array([[1.0, 0.0], [0.0, 0.0], [0.0, 1.0]])).tolist()
    [2.0, 1.0]
    """

    X: Floats
    labels: NDArray[np.int64]
    n_classes: int
    Z: Floats | None = None
    n_contexts: int = 1
    # -1: the score of the other class is taken away. +1: sizes of terms are added up.
    other: float = -1.0

    def __post_init__(self) -> None:
        require_array("X", self.X)
        if self.X.ndim != 2 or 0 in self.X.shape:
            raise ValueError(f"`X` must have shape (n, D), got {self.X.shape}")
        require_finite("X", self.X)
        require_count("n_classes", self.n_classes, least=2)
        n = len(self.X)
        require_shape("labels", self.labels, (n,), "one label per row of X")
        if self.labels.dtype.kind not in "iu":
            raise TypeError(f"`labels` must hold integers, got {self.labels.dtype}")
        if self.labels.min() < 0 or self.labels.max() >= self.n_classes:
            raise ValueError(f"`labels` must lie in 0 .. {self.n_classes - 1}")
        if self.Z is not None:
            require_shape("Z", self.Z, (n, self.Z.shape[-1]), "one row per row of X")
            require_finite("Z", self.Z)
        require_count("n_contexts", self.n_contexts, least=1)
        columns = 1 if self.Z is None else self.Z.shape[1]
        if columns % self.n_contexts:
            raise ValueError(
                f"`Z` must have {self.n_contexts} columns for each unit, got {columns} in all"
            )

    @property
    def shape(self) -> tuple[int, ...]:
        """(K, D), or (H, K, C D) behind gates."""
        own = (self.n_classes, self.n_contexts * self.X.shape[1])
        return own if self.Z is None else (self.Z.shape[1] // self.n_contexts, *own)

    @property
    def n_rows(self) -> int:
        """Number n (K - 1) of pairs."""
        return len(self.X) * (self.n_classes - 1)

    @property
    def n_roundings(self) -> tuple[int, int]:
        """Sums over inputs, gates and two classes; over classes and samples."""
        gates = 0 if self.Z is None else self.Z.shape[1]
        return self.X.shape[1] + gates + 4, len(self.X) + self.n_classes + 4

    @cached_property
    def wrong(self) -> NDArray[np.bool_]:
        """(n, K) booleans: pairs of a sample and another class than its own."""
        return np.asarray(self.labels[:, None] != np.arange(self.n_classes))

    @cached_property
    def places(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Places (m,) of pairs in a flat table (n, K), and (n,) of the own classes."""
        return np.flatnonzero(self.wrong), np.flatnonzero(~self.wrong)

    def pairs(self, rows: Floats) -> Floats:
        """Write values (m,) of pairs as (n, K), zero at the own class."""
        table = np.zeros(self.wrong.size)
        table[self.places[0]] = rows
        return table.reshape(self.wrong.shape)

    def class_scores(self, B: Floats) -> Floats:
        """Scores (n, K) of all classes."""
        if self.Z is None:
            return self.X @ B.T
        B = self._by_column(B)
        return np.asarray(sum(self.Z[:, h, None] * (self.X @ B[h].T) for h in range(len(B))))

    def scores(self, B: Floats) -> Floats:
        """Relative margins (m,) of coefficients."""
        return self.margins_of(self.class_scores(B))

    def margins_of(self, scores: Floats) -> Floats:
        """Relative margins (m,) of the scores (n, K) of all classes."""
        pairs, own = self.places
        flat = scores.ravel()
        return np.repeat(flat[own], self.n_classes - 1) + self.other * flat[pairs]

    def class_weights(self, lam: Floats) -> Floats:
        """Weights C (n, K) of scores: C[n, k] = -lam[n, k], their sum at the own class."""
        C = self.pairs(self.other * lam)
        C.ravel()[self.places[1]] = lam.reshape(len(C), -1).sum(axis=1)
        return C

    def adjoint(self, lam: Floats) -> Floats:
        """Coefficients `C' X` of multipliers (m,)."""
        C = self.class_weights(lam)
        if self.Z is None:
            return C.T @ self.X
        return self._by_unit(np.stack([(C * z[:, None]).T @ self.X for z in self.Z.T]))

    def behind_gates(self) -> Floats:
        """Inputs as each unit has them: (H, n, C D), the sample's own in its columns of Z."""
        if self.Z is None:
            return self.X[None]
        Z = self.Z.reshape(len(self.X), -1, self.n_contexts)
        seen = np.swapaxes(Z, 0, 1)[:, :, :, None] * self.X[:, None, :]
        return np.asarray(seen.reshape(*seen.shape[:2], -1))

    def _by_column(self, B: Floats) -> Floats:
        """Write coefficients (H, K, C D) as a matrix (K, D) a column of Z."""
        if self.n_contexts == 1:
            return B
        units = B.reshape(len(B), self.n_classes, self.n_contexts, -1)
        return np.swapaxes(units, 1, 2).reshape(-1, self.n_classes, self.X.shape[1])

    def _by_unit(self, columns: Floats) -> Floats:
        """Write a matrix (K, D) a column of Z as coefficients (H, K, C D)."""
        if self.n_contexts == 1:
            return columns
        units = columns.reshape(-1, self.n_contexts, *columns.shape[1:])
        return np.swapaxes(units, 1, 2).reshape(self.shape)

    def gram(
        self,
        weights: Floats,
        room: Room | None = None,
        *,
        features: Floats | None = None,
        sum_zero: bool = False,
    ) -> Floats:
        """Matrix `A' diag(weights) A`: n K products of rows of X, and no matrix of margins.

        With `features` (n, H, q), that of coefficients of these in place of the inputs behind each
        gate; with `sum_zero`, of coordinates in `sum_zero_basis` of the classes.
        """
        if features is None:
            features = np.swapaxes(self.behind_gates(), 0, 1)
        n, H, D = features.shape
        features, width, K = features.reshape(n, -1), H * D, self.n_classes
        w = self.other * self.pairs(weights)
        # Between two classes: of either's rows, weighed by their pairs with the other. Symmetric.
        room = Room() if room is None else room
        parts = room.array("parts", K, width, K, width)
        for own in range(K):
            here = np.flatnonzero(self.labels == own)
            _weigh(features[here], w[here], parts[own])
        each, k = np.arange(K), K - 1 if sum_zero else K
        # A pair adds as much, other sign, on the diagonal of both classes.
        diagonal = self.other * (parts.sum(axis=0).swapaxes(0, 1) + parts.sum(axis=2))
        kept, matrix = parts[:k, :, :k], room.array("matrix", k, width, k, width)
        np.add(kept, kept.transpose(2, 3, 0, 1), out=matrix)
        matrix[each[:k], :, each[:k]] += diagonal[:k]
        if sum_zero:
            # But for multiples of all classes together, which the whole matrix takes to 0, a column
            # of the basis is a class and `share` times the last one.
            share = 1 / (K + math.sqrt(K)) - 1 / math.sqrt(K)
            last = parts[:-1, :, -1] + parts[-1, :, :-1].swapaxes(0, 1)
            matrix += share * last[:, :, None]
            matrix += share * last.swapaxes(0, 1) + share**2 * diagonal[-1][:, None]
        if H == 1:
            return matrix.reshape(k * width, k * width)
        blocks = matrix.reshape(k, H, D, k, H, D).transpose(1, 0, 2, 4, 3, 5)
        return np.asarray(blocks.reshape(H * k * D, H * k * D))

    def absolute(self) -> RelativeMargins:
        """Image of absolute inputs and gates, with both classes' scores added."""
        Z = None if self.Z is None else np.abs(self.Z)
        return replace(self, X=np.abs(self.X), Z=Z, other=1.0)

    def largest(self) -> float:
        """Largest absolute input."""
        return float(np.abs(self.X).max())

    def over(self, scale: float) -> RelativeMargins:
        """Image of inputs divided by `scale`."""
        return replace(self, X=self.X / scale)

    def standard(self) -> MaxMarginProgram:
        """State each pair as a sample, its gates e_y - e_k: inputs are copied K - 1 times."""
        return self.taken(np.arange(self.n_rows)).standard()

    def taken(self, rows: NDArray[np.int64]) -> Products:
        """Return the margins of these pairs alone, in their order."""
        K = self.n_classes
        sample, other = np.divmod(self.places[0][rows], K)
        pairs = np.eye(K)[self.labels[sample]] + self.other * np.eye(K)[other]
        if self.Z is not None:
            columns = self.Z[sample].reshape(len(rows), -1, 1, self.n_contexts)
            pairs = (columns * pairs[:, None, :, None]).reshape(len(rows), -1)
        return Products.of(self.X, pairs, sample, self.shape)


def sum_zero_basis(n_classes: int) -> Floats:
    """Orthonormal columns (K, K - 1) of sum 0: a reflection that takes the last class to all alike.

    Parameters
    ----------
    n_classes : int
    """
    basis = np.eye(n_classes)[:, :-1] - 1 / (n_classes + math.sqrt(n_classes))
    basis[-1] = -1 / math.sqrt(n_classes)
    return np.asarray(basis)


def _weigh(rows: Floats, weights: Floats, out: Floats) -> None:
    """Write `sum_n weights[n, k] rows[n] rows[n]'` for every k into `out` (q, K, q)."""
    width = rows.shape[1]
    flat = out.reshape(width, -1)
    flat[:] = 0
    for start in range(0, len(rows), CHUNK):
        part, here = rows[start : start + CHUNK], weights[start : start + CHUNK]
        weighted = (here[:, :, None] * part[:, None, :]).reshape(len(part), -1)
        blas.dgemm(1.0, weighted.T, part.T, beta=1.0, c=flat.T, trans_b=1, overwrite_c=1)


# Rows that are weighed at once: what they are multiplied with stays in cache.
CHUNK = 128
