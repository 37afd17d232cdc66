"""Coordinates of coefficients along which margins change: the others are flat to a solver.

A norm that no rotation of classes, or of inputs, changes has an optimum in which the coefficients
of all classes sum to 0, and in which no unit leaves the span of the inputs behind its own gate.
Newton's matrix has no curvature along the rest, but for a ball's that goes to 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..norms.norm import Norm
from ..numerics.arrays import matmul
from .images import Floats, GatedRows, Map, RelativeMargins, Room, Rows, dense_rows, sum_zero_basis

# Inputs along which all samples together are shorter than this share of the longest are rounding.
RANK = 1e-12


def coordinates_of(
    image: Map, norm: Norm, equalities: Rows | None = None, *, uneven: bool = False
) -> Coordinates | None:
    """Return the coordinates that are enough for a norm; None where it needs all coefficients.

    Parameters
    ----------
    image : Image
    norm : Norm
        Of the coefficients.
    equalities : Rows, optional
        What is 0 of the coefficients; of relative margins, no sum over classes.
    uneven : bool
        Leave inputs as they are, whose turned ones would mix sizes that are many orders apart.
    """
    rows_are_units = norm.blocks == "units" and len(image.shape) == 2
    inputs = norm.blocks in ("whole", "rows", "units") and not uneven
    if isinstance(image, RelativeMargins):
        classes = norm.blocks in ("whole", "columns", "units") and not rows_are_units
        if classes or inputs:
            return ClassCoordinates.of(image, equalities, classes=classes, inputs=inputs)
    if isinstance(image, GatedRows) and inputs and equalities is None:
        return InputCoordinates.of(image)
    return None


@dataclass(frozen=True, eq=False)
class ClassCoordinates:
    """Relative margins of coefficients in orthonormal bases of the classes and of the inputs.

    Attributes
    ----------
    image : RelativeMargins
    classes : (K, k) array
        Of coefficients whose class sum is 0, or all.
    inputs : (H, D, q) array
        Of the inputs behind each gate, of all contexts of a unit; H = 1 without gates.
    """

    image: RelativeMargins
    classes: Floats
    inputs: Floats

    @classmethod
    def of(
        cls, image: RelativeMargins, equalities: Rows | None, *, classes: bool, inputs: bool
    ) -> ClassCoordinates:
        """Choose the bases, each where the norm allows it."""
        K, D = image.shape[-2:]
        own = sum_zero_basis(K) if classes else np.eye(K)
        seen = list(image.behind_gates())
        if not inputs:
            return cls(image, own, np.broadcast_to(np.eye(D), (len(seen), D, D)))
        if equalities is not None:
            held = np.swapaxes(equalities.matrix.reshape(-1, len(seen), K, D), 0, 1)
            seen = [np.concatenate([X, E.reshape(-1, D)]) for X, E in zip(seen, held, strict=True)]
        return cls(image, own, _spans(seen))

    @property
    def shape(self) -> tuple[int, ...]:
        """(k, q), or (H, k, q)."""
        own = (self.classes.shape[1], self.inputs.shape[2])
        return own if self.image.Z is None else (len(self.inputs), *own)

    @property
    def n_rows(self) -> int:
        """Number of margins."""
        return self.image.n_rows

    @cached_property
    def features(self) -> Floats:
        """(n, H, q) coordinates of the inputs behind each gate."""
        return np.asarray(np.swapaxes(self.image.behind_gates() @ self.inputs, 0, 1))

    def lifted(self, b: Floats) -> Floats:
        """Coefficients (..., K, D) of coordinates."""
        stack = b.reshape(len(self.inputs), *self.shape[-2:])
        found = self.classes @ stack @ np.swapaxes(self.inputs, 1, 2)
        return np.asarray(found.reshape(self.image.shape))

    def lowered(self, B: Floats) -> Floats:
        """Coordinates of coefficients, or of a stack of them."""
        stack = B.reshape(-1, len(self.inputs), *self.image.shape[-2:])
        found = self.classes.T @ stack @ self.inputs
        return np.asarray(found.reshape(*B.shape[: B.ndim - len(self.shape)], *self.shape))

    def scores(self, b: Floats) -> Floats:
        """Margins of coordinates."""
        stack = b.reshape(len(self.inputs), *self.shape[-2:])
        flat = self.features.reshape(len(self.features), -1)
        own = np.swapaxes(stack, 1, 2).reshape(flat.shape[1], -1)
        return self.image.margins_of((flat @ own) @ self.classes.T)

    def adjoint(self, lam: Floats) -> Floats:
        """Coordinates of multipliers."""
        flat = self.features.reshape(len(self.features), -1)
        own = (self.image.class_weights(lam) @ self.classes).T @ flat
        stack = own.reshape(self.classes.shape[1], len(self.inputs), -1)
        return np.asarray(np.swapaxes(stack, 0, 1).reshape(self.shape))

    def gram(self, weights: Floats, room: Room | None = None) -> Floats:
        """Matrix `A' diag(weights) A` on coordinates."""
        sum_zero = self.classes.shape[1] < len(self.classes)
        return self.image.gram(weights, room, features=self.features, sum_zero=sum_zero)

    def gram_of_margins(self, P: Floats, Z: Floats) -> Floats:
        """Matrix (m, m) `A O A'` of the operator `O(dC) = (P dM Z + Z dM P)_12` of `balls.Line`.

        Rows of A are products u x' of a difference of classes and an input, and O is four products
        of blocks: between two margins it is a few bilinear forms of the u and of the x.

        Parameters
        ----------
        P, Z : (H, k + q, k + q) arrays
            Of symmetric matrices, a gate each.
        """
        k, features = self.classes.shape[1], np.swapaxes(self.features, 0, 1)
        inputs = np.swapaxes(features, 1, 2)
        own = [matrix[:, :k, :k] for matrix in (P, Z)]
        mixed = [self.classes @ matrix[:, :k, k:] @ inputs for matrix in (P, Z)]  # (H, K, n)
        between = [features @ matrix[:, k:, k:] @ inputs for matrix in (Z, P)]  # (H, n, n)
        samples, K = self.image.labels, self.image.n_classes
        members = [np.flatnonzero(samples == one) for one in range(K)]
        others = [np.delete(np.arange(K), one) for one in range(K)]
        steps = [self.classes[one] - self.classes[others[one]] for one in range(K)]
        n = len(samples)
        matrix = np.empty((n, K - 1, n, K - 1))

        def differences(one: int, other: int, swap: bool) -> Floats:
            """(2 H, samples of `other`, K - 1) scores of `one` less those of the rest."""
            found = [
                table[:, one, None][..., members[other]]
                - table[:, others[one]][..., members[other]]
                for table in (mixed[::-1] if swap else mixed)
            ]
            return np.swapaxes(np.concatenate(found), 1, 2)

        for a in range(K):
            for b in range(a, K):
                rows, columns = members[a], members[b]
                if len(rows) == 0 or len(columns) == 0:
                    continue
                forms = np.concatenate([steps[a] @ part @ steps[b].T for part in own])
                pairs = np.concatenate([part[:, rows[:, None], columns] for part in between])
                block = matmul(pairs.reshape(len(pairs), -1).T, forms.reshape(len(forms), -1))
                left, right = differences(b, a, True), differences(a, b, False)
                crossed = matmul(left.reshape(len(left), -1).T, right.reshape(len(right), -1))
                block = block.reshape(len(rows), len(columns), K - 1, K - 1)
                crossed = crossed.reshape(len(rows), K - 1, len(columns), K - 1)
                block = block + crossed.transpose(0, 2, 3, 1)
                matrix[rows[:, None], :, columns] = block
                if b > a:
                    matrix[columns[:, None], :, rows] = block.transpose(1, 0, 3, 2)
        return matrix.reshape(n * (K - 1), n * (K - 1))

    def dense(self) -> Floats:
        """Matrix (m, size) of the map: no row is longer than its coordinates."""
        n, others = np.nonzero(self.image.wrong)
        own = self.classes[self.image.labels[n]] + self.image.other * self.classes[others]
        rows = own[:, None, :, None] * self.features[n][:, :, None, :]
        return np.asarray(rows.reshape(len(n), -1))


@dataclass(frozen=True, eq=False)
class InputCoordinates(Rows):
    """Margins of binary labels, of coefficients (H, Q) in one orthonormal basis of their rows."""

    inputs: Floats

    @classmethod
    def of(cls, image: GatedRows) -> InputCoordinates:
        """Choose the basis: the span of what any unit sees of any sample."""
        dense = dense_rows(image).reshape(image.n_rows, *image.shape)
        basis = _spans([dense.reshape(-1, image.shape[-1])])[0]
        return cls(dense @ basis, basis)

    def lifted(self, b: Floats) -> Floats:
        """Coefficients (H, Q) of coordinates."""
        return np.asarray(b.reshape(self.shape) @ self.inputs.T)

    def lowered(self, B: Floats) -> Floats:
        """Coordinates of coefficients, or of a stack of them."""
        return np.asarray(B @ self.inputs)

    def dense(self) -> Floats:
        """Matrix (m, size) of the map."""
        return self.flat


Coordinates = ClassCoordinates | InputCoordinates
"""Map of coordinates to margins, and back to the coefficients that they stand for: `lowered` is the
transpose of `lifted`, `dense` the matrix (m, size) of the map."""


def _spans(groups: list[Floats]) -> Floats:
    """(H, D, q) orthonormal columns that span the rows of each group (n, D), q the largest rank.

    Groups of lower rank have columns that they do not need.
    """
    found = [np.linalg.svd(np.linalg.qr(rows, mode="r"))[1:] for rows in groups]
    rank = max(int(np.sum(s > RANK * s[0])) for s, _ in found)
    return np.stack([W[: max(rank, 1)].T for _, W in found])
