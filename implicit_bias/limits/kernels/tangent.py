"""The exact tangent kernel of a network at its weights, without forming gradients."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._support.doors import door
from ..._support.solve import Array, to_numpy
from ...data.arrays import Floats
from .arrays import row_blocks

if TYPE_CHECKING:
    import torch


@door()
def empirical_ntk(
    network: torch.nn.Module, X: Array, gates: Array | None, X2: Array = None, gates2: Array = None
) -> Floats:
    r"""Compute the inner products of the gradients of a network's scores in its weights.

    .. math:: K = \sum_l (Z_{l-1} Z_{l-1}'^T) \circ (B_l B_l'^T)

    with the layers' inputs Z and the scores' derivatives B in the layers' outputs: a few matrix
    products, where the gradients of single samples would fill n rows as long as the weights.
    For gates that follow from other weights it is the part of the path weights, :math:`K^w`.

    Parameters
    ----------
    network : Module
        With `gradient_factors`, as all networks of this package have. Computed with in float64;
        weights that are not trained are left out.
    X : (n, D) array or tensor
    gates : array, tensor or None
        Gates or contexts that the network takes.
    X2, gates2 : optional
        The same of m other samples; by default the same samples.

    Returns
    -------
    (n, m) float64 array

    Raises
    ------
    TypeError
        If the network has no `gradient_factors`.
    ValueError
        If data are malformed.

    Examples
    --------
    >>> network = ib.DeepLinear.from_weights(np.array([[3.0, 4.0]]))
    >>> ib.kernels.empirical_ntk(network, np.eye(2), None).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    from ...networks.protocols import HasGradientFactors

    if not isinstance(network, HasGradientFactors):
        raise TypeError(
            f"`network` {type(network).__name__} has no `gradient_factors`: its tangent kernel "
            "needs the factors of its layers' gradients"
        )
    network = copy.deepcopy(network).double()
    first = _factors(network, X, gates)
    second = first if X2 is None else _factors(network, X2, gates2)
    n, m = (len(of_samples[0][0]) for of_samples in (first, second))
    blocks = row_blocks(n, m)
    kernel = np.zeros((n, m))
    for rows in blocks:
        for (outer, inner), (outer2, inner2) in zip(first, second, strict=True):
            kernel[rows] += (outer[rows] @ outer2.T) * (inner[rows] @ inner2.T)
    return kernel


@door()
def activation_kernel(
    network: torch.nn.Module,
    X: Array,
    gates: Array,
    jacobian: Array,
    X2: Array = None,
    gates2: Array = None,
    jacobian2: Array = None,
) -> Floats:
    r"""Compute the part :math:`K^a` of the tangent kernel that belongs to the gates' weights.

    .. math:: K^a(s, s') = \Big\langle \sum_u \frac{\partial f}{\partial G_u}(s)
              \frac{\partial G_u}{\partial \theta}(s),\;
              \sum_u \frac{\partial f}{\partial G_u}(s')
              \frac{\partial G_u}{\partial \theta}(s') \Big\rangle

    With gate weights of their own (soft GaLU) the whole kernel is `empirical_ntk` plus this.

    Parameters
    ----------
    network : Module
        Network with scores differentiable in real gates (`DGN`).
    X : (n, D) array or tensor
    gates : (n, gates) array or tensor
        Soft gates.
    jacobian : (n, gates, weights) array
        Derivatives of the gates, from `SoftGates.jacobian`.
    X2, gates2, jacobian2 : optional
        The same of m other samples, all or none; by default the same samples.

    Returns
    -------
    (n, m) float64 array

    Raises
    ------
    ValueError
        If shapes disagree.

    Examples
    --------
    >>> network = ib.DGN(2, widths=(3,), random_state=0)
    >>> X = np.array([[1.0, 0.0], [0.0, 1.0]])
    >>> gating = ib.gates.SoftGates([np.ones((3, 2))]).fit(X)
    >>> gates, slopes = gating.transform(X), gating.jacobian(X)
    >>> ib.kernels.activation_kernel(network, X, gates, slopes).shape
    (2, 2)
    """
    other = (X2, gates2, jacobian2)
    if len({part is None for part in other}) > 1:
        raise ValueError("`X2`, `gates2` and `jacobian2` go together: give all or none")
    network = copy.deepcopy(network).double()
    first = _gate_gradients(network, X, gates, jacobian)
    second = first if other[0] is None else _gate_gradients(network, *other)
    return np.asarray(first @ second.T)


def _factors(network: torch.nn.Module, X: Any, gates: Any) -> list[tuple[Floats, Floats]]:
    import torch

    from ...networks.placed_data import place_data

    data, found = place_data(network, X, None, gates), []
    of_layers: Any = network.gradient_factors
    with torch.no_grad():
        network(data.X, data.gates)  # refuses what does not fit it
        factors = of_layers(data.X, data.gates)
    for pair, weight in zip(factors, network.parameters(), strict=True):
        if weight.requires_grad:
            found.append((to_numpy(pair[0]), to_numpy(pair[1])))
    return found


def _gate_gradients(network: torch.nn.Module, X: Any, gates: Any, jacobian: Any) -> Floats:
    """Return the gradients (n, weights) of the scores in the gates' weights."""
    import torch

    from ...networks.placed_data import place_data

    data = place_data(network, X, None, gates)
    slopes = np.asarray(to_numpy(jacobian), dtype=np.float64)
    if data.gates is None or slopes.ndim != 3 or slopes.shape[:2] != tuple(data.gates.shape):
        wanted = None if data.gates is None else tuple(data.gates.shape)
        raise ValueError(
            f"`jacobian` must have shape (n, gates, weights) for gates {wanted}, got "
            f"{slopes.shape}: pass the jacobian of the same soft gates on the same samples"
        )
    opened = data.gates.detach().clone().requires_grad_()
    scores = network(data.X, opened).sum()
    in_gates = to_numpy(torch.autograd.grad(scores, opened)[0])
    return np.asarray(np.einsum("nu,num->nm", in_gates, slopes))
