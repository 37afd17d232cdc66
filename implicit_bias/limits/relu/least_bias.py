"""The least last bias of a two-layer ReLU network: what training goes to where margins need it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from ..._support.solve import linear_program
from ...data.arrays import Floats, checked_data
from ...networks.recognition.relu import read_relu
from .minimum_norm import no_network
from .problem import Flags, ReLUProblem

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, eq=False)
class LeastBias:
    """The least |b| of margins 1 in given cells, all other weights free of charge.

    Attributes
    ----------
    bias : float
        b of a network of margins 1 at least; NaN where none was found.
    lower_bound : float
        No network whose units keep their signs and gates has a smaller |b|, by weak duality: up
        to `residual`. 0 where some need no bias.
    residual : float
        What is left of the dual equations, relative to their terms.
    units : (H, D) array
        ``|a_h| w_h`` of that network; with a bias in the first layer its entry comes last.
    signs : (H,) array
        Of the output weights.
    needed : str
        Why no two-layer ReLU network, however wide, separates the data without a last bias; empty
        where that is not proved.
    """

    bias: float
    lower_bound: float
    residual: float
    units: Floats
    signs: Floats
    needed: str

    @property
    def gap(self) -> float:
        """The distance of |b| to its bound, relative to it."""
        if self.lower_bound > 0:
            return abs(self.bias) / self.lower_bound - 1
        return 0.0 if self.bias == 0 else math.inf


def solve_least_bias(network: torch.nn.Module, X: ArrayLike, y: ArrayLike) -> LeastBias:
    r"""Find the least last bias with which a two-layer ReLU network keeps its margins and gates.

    With gates g of the units, signs s and u_h = \|a_h\| w_h it is a linear program,

    .. math:: \min_{u, b} |b| \quad\text{s.t.}\quad
              y_n \Big(\sum_h s_h g_{nh} \langle u_h, x_n \rangle + b\Big) \ge 1, \qquad
              \pm \langle u_h, x_n \rangle \ge 0 \text{ as the gates are}

    Parameters
    ----------
    network : Module
        Two layers, one output, a last bias; the first layer may have one.
    X : (n, D) array
    y : (n,) array
        Labels -1 and +1.

    Raises
    ------
    NotReLU, ValueError
        If it is no such network, or data are malformed.

    References
    ----------
    D. Kunin, A. Yamamura, C. Ma, S. Ganguli, "The asymmetric maximum margin bias of
    quasi-homogeneous neural networks", arXiv 2210.03820: the bias alone has the highest rate.
    """
    layers = read_relu(network)
    if len(layers.matrices) != 2 or len(layers.matrices[1]) != 1 or layers.biases[1] is None:
        raise ValueError(
            "`network` must have two layers, one output and a bias in the last: of others no "
            "program of the bias alone is known"
        )
    inputs, labels = checked_data(X, y)
    first = layers.biases[0]
    weights = layers.matrices[0]
    if first is not None:
        inputs = np.column_stack([inputs, np.ones(len(inputs))])
        weights = np.column_stack([weights, first])
    problem = ReLUProblem.checked(inputs, labels, layers.slope)
    signs = np.where(layers.matrices[1][0] < 0, -1.0, 1.0)
    return _solved(problem, inputs @ weights.T > 0, signs)


def _solved(problem: ReLUProblem, gates: Flags, signs: Floats) -> LeastBias:
    X, y = problem.inputs, problem.y
    n, d = X.shape
    heights = np.where(gates, 1.0, problem.slope)
    scale = float(np.abs(X).max())
    # Unknowns: units, then the positive and the negative part of the bias.
    margins = ((y[:, None] * heights * signs)[:, :, None] * (X / scale)[:, None]).reshape(n, -1)
    cones = np.einsum("nh,hk,nd->nhkd", np.where(gates, 1.0, -1.0), np.eye(len(signs)), X / scale)
    left = np.zeros((n + n * len(signs), d * len(signs) + 2))
    left[:n, :-2], left[:n, -2], left[:n, -1] = -margins, -y, y
    left[n:, :-2] = -cones.reshape(n * len(signs), -1)
    cost = np.append(np.zeros(d * len(signs)), [1.0, 1.0])
    bounds: list[tuple[float | None, float | None]] = [(None, None)] * (d * len(signs))
    right = np.append(-np.ones(n), np.zeros(n * len(signs)))
    found = linear_program(
        cost, left, right, bounds=[*bounds, (0.0, None), (0.0, None)], method="highs"
    )
    needed = no_network(problem)
    if found.x is None:
        nothing = np.full((len(signs), d), math.nan)
        return LeastBias(math.nan, 0.0, math.inf, nothing, signs, needed)
    u = found.x[:-2].reshape(len(signs), d) / scale
    bias = float(found.x[-2] - found.x[-1])
    # As a network of its own, whatever the solver's rounding: its units, not its gates.
    least = float(np.min(y * (problem.activation(X @ u.T) @ signs + bias)))
    multipliers = np.maximum(-found.ineqlin.marginals, 0.0)
    lam = multipliers[:n]
    off = multipliers @ left[:, :-2]
    terms = multipliers @ np.abs(left[:, :-2])
    residual = float(np.abs(off).max() / terms.max()) if terms.any() else 0.0
    weight = abs(float(lam @ y))
    bound = float(lam.sum()) / weight if weight > 0 else 0.0
    if not least > 0:
        return LeastBias(math.nan, bound, residual, u, signs, needed)
    return LeastBias(bias / least, bound, residual, u / least, signs, needed)
