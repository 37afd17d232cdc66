"""Products with the Gram matrix of the gradients of scores, which is never formed as a whole."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class GramProducts:
    """K (n, n), the sum over layers of ``(outer outer^T) * (inner inner^T)``, by its factors.

    A gradient in the weights of a layer is the outer product of a row of `outer` and one of
    `inner` (see `HasGradientFactors`), so a product with K costs two passes over the layers and a
    block of K two products of matrices a layer.

    Attributes
    ----------
    layers : tuple of pairs ((n, a), (n, b)) of float64 tensors
        `outer` with the labels in it, and `inner`.
    rows : int
        Samples that a product takes at a time: 8192 in a layer of 785 inputs are 50 MB.
    """

    layers: tuple[tuple[Tensor, Tensor], ...]
    rows: int = 8192

    def __len__(self) -> int:
        return len(self.layers[0][0])

    def take(self, index: Tensor) -> "GramProducts":
        """The same for the samples with these indices."""
        layers = tuple((outer[index], inner[index]) for outer, inner in self.layers)
        return GramProducts(layers, self.rows)

    def diagonal(self) -> Tensor:
        """Squared norms of the gradients (n,)."""
        sizes = [outer.square().sum(1) * inner.square().sum(1) for outer, inner in self.layers]
        return torch.stack(sizes).sum(0)

    def combined(self, lam: Tensor) -> list[Tensor]:
        """The sum of the gradients with weights lam (n,), a matrix (a, b) for each layer."""
        sums = []
        for outer, inner in self.layers:
            total = outer.new_zeros(outer.shape[1], inner.shape[1])
            for part in self._parts():
                total += times((outer[part] * lam[part, None]).T, inner[part])
            sums.append(total)
        return sums

    def slopes(self, direction: list[Tensor]) -> Tensor:
        """Inner products (n,) of the gradients with a matrix (a, b) for each layer."""
        slopes = self.layers[0][0].new_zeros(len(self))
        for (outer, inner), along in zip(self.layers, direction, strict=True):
            for part in self._parts():
                slopes[part] += torch.einsum("nb,nb->n", times(outer[part], along), inner[part])
        return slopes

    def product(self, lam: Tensor) -> Tensor:
        """K lam (n,)."""
        return self.slopes(self.combined(lam))

    def block(self, rows: Tensor, columns: Tensor, scale: Tensor) -> Tensor:
        """K, scaled on both sides, between these samples in float32."""
        block = self.layers[0][0].new_zeros(len(rows), len(columns), dtype=torch.float32)
        left, right = self._single(rows, scale), self._single(columns, scale)
        for (a, b), (c, d) in zip(left, right, strict=True):
            block += times(a, c.T).mul_(times(b, d.T))
        return block

    def _single(self, index: Tensor, scale: Tensor) -> list[tuple[Tensor, Tensor]]:
        return [
            ((outer[index] * scale[index, None]).float(), inner[index].float())
            for outer, inner in self.layers
        ]

    def _parts(self) -> Iterator[slice]:
        return (slice(start, start + self.rows) for start in range(0, len(self), self.rows))


def times(a: Tensor, b: Tensor) -> Tensor:
    """The product of two matrices, on a processor by NumPy."""
    # NumPy's BLAS is OpenBLAS, torch's is MKL, which has half its rate on one thread of an AMD
    # EPYC: 46 against 99 GFLOP/s in float64, 84 against 193 in float32.
    if a.device.type != "cpu":
        return a @ b
    return torch.from_numpy(a.numpy() @ b.numpy())
