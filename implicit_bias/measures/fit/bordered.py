"""Systems with blocks of a Gram matrix that is never formed in float64."""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from .gram_products import GramProducts, times
from .panel_factor import PANEL, PanelFactor

# Of a unit diagonal: more than the float32 rounding of a factor takes away.
_RIDGE = 1e-6
# Iterations that a system may take. An exact set needs 2 to 5.
_MOST_ITERATIONS = 300


class BorderedFactor:
    r"""Approximate solutions of systems with K on sets of samples near to that of one factor.

    K has its diagonal scaled to one and is factorised in float32 on some samples F. For a set that
    lacks D of them and has R more,

    .. math::

        \begin{pmatrix} K_{FF} & B \\ B^T & C \end{pmatrix}
        \begin{pmatrix} x_F \\ m \end{pmatrix} = \begin{pmatrix} r_F \\ (r_R, 0) \end{pmatrix},
        \quad B = (K_{FR}, E_D), \quad C = \begin{pmatrix} K_{RR} & \\ & 0 \end{pmatrix},

    where m is x_R and what makes x_D = 0. The Schur complement C - W^T W, W = L^-1 B, is small,
    and columns of W once made serve all later sets.
    """

    def __init__(
        self, gram: GramProducts, scale: Tensor, members: Tensor, factor: PanelFactor
    ) -> None:
        self._gram, self._scale, self._members, self._factor = gram, scale, members, factor
        self._place = _places(scale, members)
        # One column a sample: it is in the factor and may go, or is not and may come.
        self._bordering = members[:0]
        self._columns = torch.empty(len(members), 0, dtype=torch.float32, device=scale.device)

    @classmethod
    def of(
        cls, gram: GramProducts, scale: Tensor, members: Tensor, panel: int = PANEL
    ) -> "BorderedFactor | None":
        """Factorise on these samples by panels of rows; None where K is nearly singular."""
        factor = PanelFactor.of(gram, scale, members, panel)
        return None if factor is None else cls(gram, scale, members, factor)

    def change(self, index: Tensor) -> float:
        """Return the share of samples by which `index` differs from those in the factor."""
        common = int((self._place[index] >= 0).sum())
        return (len(self._members) + len(index) - 2 * common) / len(self._members)

    def solver(self, index: Tensor) -> Callable[[Tensor], Tensor]:
        """Return the map from right sides (k,) to solutions (k,) on a set, in float32."""
        place = self._place[index]
        common, came = place >= 0, index[place < 0]
        gone = self._members[_others(len(self._members), place[common])]
        border = self._border(torch.cat([came, gone]))
        corner = -times(border.T, border)
        corner[: len(came), : len(came)] += self._gram.block(came, came, self._scale)
        corner.diagonal()[: len(came)] += _RIDGE
        corner_lu = torch.linalg.lu_factor(corner)

        def solve(right: Tensor) -> Tensor:
            """Solve for one right side (k,)."""
            scaled = (right * self._scale[index]).float()[:, None]
            inside = scaled.new_zeros(len(self._members), 1)
            inside[place[common]] = scaled[common]
            inside = self._factor.forward(inside)
            outside = torch.cat([scaled[~common], scaled.new_zeros(len(gone), 1)])
            if len(outside):
                outside = torch.linalg.lu_solve(*corner_lu, outside - times(border.T, inside))
            inside -= times(border, outside)
            inside = self._factor.backward(inside)
            solution = torch.empty_like(scaled)
            solution[common], solution[~common] = inside[place[common]], outside[: len(came)]
            return solution[:, 0].double() * self._scale[index]

        return solve

    def _border(self, samples: Tensor) -> Tensor:
        """The columns of W (m, k) that belong to these samples."""
        new = samples[~torch.isin(samples, self._bordering)]
        place = self._place[new]
        columns = self._columns.new_zeros(len(self._members), len(new))
        columns[place[place >= 0], (place >= 0).nonzero()[:, 0]] = 1.0
        columns[:, place < 0] = self._gram.block(self._members, new[place < 0], self._scale)
        columns = self._factor.forward(columns)
        self._bordering = torch.cat([self._bordering, new])
        self._columns = torch.cat([self._columns, columns], 1)
        return self._columns[:, _places(self._scale, self._bordering)[samples]]


def _places(every: Tensor, samples: Tensor) -> Tensor:
    """Positions of all samples in a subset, -1 for those outside."""
    place = torch.full_like(every, -1, dtype=torch.int64)
    place[samples] = torch.arange(len(samples), device=samples.device)
    return place


def _others(n: int, taken: Tensor) -> Tensor:
    left = torch.ones(n, dtype=torch.bool, device=taken.device)
    left[taken] = False
    return left


def conjugate_gradients(
    product: Callable[[Tensor], Tensor],
    right: Tensor,
    start: Tensor | None,
    precondition: Callable[[Tensor], Tensor],
    accuracy: float,
) -> Tensor:
    """Solve K x = right until the residual is this share of the right side, or rounding stops it.

    `start` None is zero. The preconditioner is symmetric to float32 rounding alone: each direction
    is made conjugate to the last by what the residual changed (Polak and Ribiere), which forgives
    that. The residual is carried along: whoever needs the true one multiplies once more.
    """
    x = torch.zeros_like(right) if start is None else start.clone()
    residual = right.clone() if start is None else right - product(x)
    along, before, slope = torch.zeros_like(x), residual, math.inf
    for _ in range(_MOST_ITERATIONS):
        if float(residual.norm()) <= accuracy * float(right.norm()):
            break
        steep = precondition(residual)
        along = steep + max(float(steep @ (residual - before)) / slope, 0.0) * along
        slope, image = float(steep @ residual), product(along)
        curvature = float(along @ image)
        if not (slope > 0 and curvature > 0):
            break
        step = float(along @ residual) / curvature
        x += step * along
        before, residual = residual, residual - step * image
    return x
