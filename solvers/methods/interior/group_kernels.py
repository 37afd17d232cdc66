"""Kernels of a program's groups, as the dual interior point needs them."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

from ...numerics.arrays import (
    Array,
    array_namespace,
    as_float32,
    as_float64,
    float_of,
    gram_full,
    gram_lower,
    is_sparse,
    matmul,
    scale_rows,
)
from ...programs.design import GatedDesign
from ...programs.max_margin import MaxMarginProgram


@dataclass(frozen=True, eq=False)
class GroupKernels:
    """Kernels `K_g = (S S^T) * (Z_g Z_g^T)` of all groups, S the inputs times their labels.

    One-hot groups are redundant: with u_c the vertices of a centred simplex in R^(C-1),
    `[c = c'] = 1/C + <u_c, u_c'>`. So `Z_g Z_g^T = constant[g] + F_g F_g^T` with C - 1 columns
    instead of C, and one column of ones for the constants of all groups. Other groups have
    `F_g = Z_g` and constant 0.

    Attributes
    ----------
    signed : (n, D) array
        `y[n] X[n] / scale`, without inputs that are zero in every sample.
    gram : (n, n) array
        `signed @ signed.T`, full; float64 or, on NumPy, float32.
    factor : (n, F) array
        The columns F_g of all groups, then one of ones if there are constants.
    weight : (F, G) array
        `Z_g Z_g^T = sum_f weight[f, g] factor[:, f] factor[:, f]^T`: one-hot rows, then the
        constants.
    sizes : (n,) array
        Roots of the largest `K_g(n, n)`.
    scale : float
        Root of the mean over samples of the squares of the unscaled data's `sizes`.
    """

    signed: Array
    gram: Array
    factor: Array
    weight: Array
    sizes: Array
    scale: float

    @property
    def n_groups(self) -> int:
        """Number of groups."""
        return int(self.weight.shape[1])

    @property
    def single(self) -> bool:
        """True if the Gram matrix is in single precision."""
        return bool(self.gram.dtype == array_namespace(self.gram).float32)

    @property
    def flops(self) -> float:
        """Flops of an iteration: weighted kernel, Cholesky factor, border, two sets of products."""
        n, n_inputs = self.signed.shape
        columns = self.factor.shape[1]
        products = 2 * n * columns * min(n, 2 * n_inputs)
        return float(n * n * (columns + n / 3 + 2 * self.n_groups) + 2 * products)

    @cached_property
    def each_its_column(self) -> bool:
        """True if column g of `factor` is group g's and no other's, `weight` the unit matrix."""
        xp = array_namespace(self.weight)
        if self.weight.shape[0] != self.n_groups:
            return False
        unit = xp.eye(self.n_groups, dtype=self.weight.dtype, device=self.weight.device)
        return bool(xp.all(self.weight == unit))

    def _of_columns(self, d: Array) -> Array:
        """Weights (F,) of the columns of `factor` in `sum_g d[g] Z_g Z_g^T`."""
        return d if self.each_its_column else matmul(self.weight, d)

    def products(self, lam: Array) -> Array:
        """Columns `K_g lam` (n, G), by the Gram matrix or by the features, whichever is cheaper."""
        n_samples, n_inputs = self.signed.shape
        images = self.factor * lam[:, None]
        if n_samples <= 2 * n_inputs and self.gram.dtype == lam.dtype:
            images = matmul(self.gram, images)
        else:
            images = matmul(self.signed, matmul(self.signed.T, images))
        images *= self.factor
        return images if self.each_its_column else matmul(images, self.weight)

    def rough_products(self, lam: Array) -> Array:
        """Columns `K_g lam` (n, G) in the precision of the Gram matrix."""
        if not self.single:
            return self.products(lam)
        size = float_of(abs(lam).max()) or 1.0
        rough = replace(
            self,
            signed=as_float32(self.signed),
            factor=as_float32(self.factor),
            weight=as_float32(self.weight),
        )
        return size * as_float64(rough.products(as_float32(lam / size)))

    def weighted(self, d: Array) -> Array:
        """Lower triangle, at least, of `sum_g d[g] K_g` (n, n) for d >= 0."""
        xp = array_namespace(self.gram)
        columns = self.factor * xp.sqrt(self._of_columns(d))
        matrix = gram_lower(as_float32(columns) if self.single else columns)
        # `gram` is symmetric; its transpose has the memory order of a syrk result.
        matrix *= self.gram.T
        return matrix

    def diagonal(self, d: Array) -> Array:
        """Diagonal (n,) of `sum_g d[g] K_g`."""
        xp = array_namespace(self.gram)
        index = xp.arange(self.gram.shape[0], device=self.gram.device)
        gates = matmul(self.factor * self.factor, self._of_columns(d))
        return as_float64(self.gram[index, index]) * gates

    def subset(self, rows: Array) -> GroupKernels:
        """Copy the kernels of the samples with indices `rows`, at the same scale."""
        return replace(
            self,
            signed=self.signed[rows],
            gram=self.gram[rows[:, None], rows[None, :]],
            factor=self.factor[rows],
            sizes=self.sizes[rows],
        )

    def flip(self, signs: Array) -> None:
        """Turn these, in place, into the kernels of the labels `y[n] signs[n]`, to the last bit.

        Labels enter through the signs of `signed` and `gram` only, and rounding is symmetric.
        """
        self.signed[...] *= signs[:, None]
        self.gram[...] *= signs[:, None]
        self.gram[...] *= signs[None, :]


def group_kernels(program: MaxMarginProgram, *, single: bool = False) -> GroupKernels:
    """Compute the kernels of `program`: one Gram matrix and the reduced gate columns.

    With `single`, on NumPy arrays, the Gram matrix is in float32 and `weighted` as well; products
    with the kernels are in float64 all the same.
    """
    design = program.design
    xp = array_namespace(design.Z)
    scale = math.sqrt(float_of(xp.mean(design.sample_sizes**2))) or 1.0
    inputs = design.X
    if not is_sparse(inputs):
        # Inputs that are zero throughout, as pixels at the border are, add nothing to any kernel.
        used = xp.any(inputs != 0, axis=0)
        inputs = inputs if bool(xp.all(used)) or not bool(xp.any(used)) else inputs[:, used]
    signed = scale_rows(inputs, program.y / scale)
    factor, weight = _columns(design)
    return GroupKernels(
        signed=signed,
        gram=gram_full(as_float32(signed) if single else signed).T,
        factor=factor,
        weight=weight,
        sizes=design.sample_sizes / scale,
        scale=scale,
    )


def _columns(design: GatedDesign) -> tuple[Array, Array]:
    """`factor` and `weight` of `GroupKernels`."""
    xp = array_namespace(design.Z)
    columns, groups, constants = [], [], []
    single = int(design.Z.shape[1]) == design.n_groups
    for g in range(design.n_groups):
        own = design.Z[:, xp.nonzero(design.group == g)[0]]
        # A single column gains nothing by being a constant, and groups of one column each need
        # no product with `weight`.
        reduced, constant = (own, 0.0) if single else _reduce(own)
        columns.append(reduced)
        groups += [g] * int(reduced.shape[1])
        constants.append(constant)
    group = xp.asarray(groups, dtype=xp.int64, device=design.group.device)
    everyone = xp.arange(design.n_groups, device=design.group.device)
    weight = xp.astype(group[:, None] == everyone[None, :], design.Z.dtype)
    if any(constants):
        columns.append(xp.ones_like(design.Z[:, :1]))
        last = xp.asarray([constants], dtype=design.Z.dtype, device=design.Z.device)
        weight = xp.concat([weight, last], axis=0)
    return xp.concat(columns, axis=1), weight


def _reduce(Z: Array) -> tuple[Array, float]:
    """Columns F and a constant with `Z Z^T = constant + F F^T`, F as narrow as Z allows."""
    xp = array_namespace(Z)
    n_columns = int(Z.shape[1])
    one_hot = bool(xp.all((Z == 0) | (Z == 1))) and bool(xp.all(xp.sum(Z, axis=1) == 1))
    if not one_hot:
        return Z, 0.0
    eye = xp.eye(n_columns, dtype=Z.dtype, device=Z.device)
    # Helmert's matrix: row k is orthogonal to the ones vector and to the rows before it.
    steps = xp.arange(1, n_columns, dtype=Z.dtype, device=Z.device)[:, None]
    ones = xp.cumulative_sum(eye, axis=0)[: n_columns - 1, :]
    vertices = (ones - steps * eye[1:, :]) / xp.sqrt(steps * (steps + 1))
    return matmul(Z, vertices.T), 1.0 / n_columns
