"""A Cholesky factor in half of the memory of its matrix."""

import torch
from torch import Tensor

from .gram_products import GramProducts, times

# Rows of a panel: products of panels run at the full rate from about 500 on.
PANEL = 768
# Of a unit diagonal: more than the rounding of float32 takes away.
_RIDGE = 1e-6


class PanelFactor:
    """L of L L^T = K on some samples, K with its diagonal scaled to one, in float32.

    Stored by panels of rows, each up to the diagonal: 2 m^2 bytes. Nearly all of the work is
    products of matrices, which BLAS does at twice the rate of its Cholesky factorisation.
    """

    def __init__(self, panels: list[Tensor]) -> None:
        self._panels = panels

    @classmethod
    def of(
        cls, gram: GramProducts, scale: Tensor, index: Tensor, rows: int = PANEL
    ) -> "PanelFactor | None":
        """Factorise on the samples `index` (m,) by panels of rows; None if nearly singular."""
        panels: list[Tensor] = []
        for start in range(0, len(index), rows):
            stop = min(start + rows, len(index))
            panel = gram.block(index[start:stop], index[:stop], scale)
            for first, above in zip(range(0, start, rows), panels, strict=True):
                part = panel[:, first : first + rows]
                part -= times(panel[:, :first], above[:, :first].T)
                corner = above[:, first:].T
                part.copy_(torch.linalg.solve_triangular(corner, part, upper=True, left=False))
            corner = panel[:, start:]
            corner -= times(panel[:, :start], panel[:, :start].T)
            corner.diagonal().add_(_RIDGE)
            lower, info = torch.linalg.cholesky_ex(corner)
            if int(info) != 0:
                return None
            corner.copy_(lower)
            panels.append(panel)
        return cls(panels)

    def forward(self, right: Tensor) -> Tensor:
        """L^-1 right, (m, k)."""
        solution = right.clone()
        for panel in self._panels:
            start, stop = panel.shape[1] - len(panel), panel.shape[1]
            part = solution[start:stop] - times(panel[:, :start], solution[:start])
            solution[start:stop] = torch.linalg.solve_triangular(
                panel[:, start:], part, upper=False
            )
        return solution

    def backward(self, right: Tensor) -> Tensor:
        """L^-T right, (m, k)."""
        solution = right.clone()
        for panel in reversed(self._panels):
            start, stop = panel.shape[1] - len(panel), panel.shape[1]
            part = torch.linalg.solve_triangular(
                panel[:, start:].T, solution[start:stop], upper=True
            )
            solution[start:stop] = part
            solution[:start] -= times(panel[:, :start].T, part)
        return solution
