"""Networks of three layers as kernel machines with learned layer weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ..._support.doors import door, result
from ..._support.shown import ReadOnly, Shown
from ..._support.solve import as_float64, require_columns, require_shape, to_numpy

Array = NDArray[np.float64]


@result()
@dataclass(frozen=True, eq=False, repr=False)
class Depth3Kernel(ReadOnly, Shown):
    r"""The kernel of the middle layer at given outer layers, both of unit norm.

    .. math:: K = \Bigl(\sum_j p_j \, g^{(2)}_j {g^{(2)}_j}'\Bigr) \circ
                  \Bigl(\sum_i z_i z_i'\Bigr), \qquad z_i = g^{(1)}_i \circ X W_1[i] / \|W_1\|_F

    With constant experts (one input that is 1) the right factor is ``G1 diag(t) G1'``, with an open
    first layer it is ``X S X'``: kernels of the layers, mixed by learned weights.

    Attributes
    ----------
    p : (H2,) array
        ``W_3[j]^2 / ||W_3||^2``: shares of the second layer's units, with sum 1.
    t : (H1,) array
        ``||W_1[i]||^2 / ||W_1||^2``: shares of the first layer's units, with sum 1.
    first : (H1, D) array
        ``W_1 / ||W_1||``.

    Examples
    --------
    >>> kernel = ib.kernels.depth3_kernel(ib.DGN(2, widths=(3, 4), random_state=0))
    >>> kernel.p.shape, kernel.t.shape, round(float(np.trace(kernel.S)), 6)
    ((4,), (3,), 1.0)
    """

    p: Array
    t: Array
    first: Array

    @property
    def S(self) -> Array:
        """Metric (D, D) ``W_1' W_1 / ||W_1||^2`` of trace 1, if the first layer is linear."""
        metric: Array = self.first.T @ self.first
        return metric

    def __call__(self, X: Any, gates: Any, X2: Any = None, gates2: Any = None) -> Array:
        """Return the kernel (n, m) of samples (n, D) with others (m, D), by default the same.

        Raises
        ------
        ValueError
            If inputs are not (n, D), or gates not (n, H1 + H2).
        """
        outer, inner = self._features(X, gates)
        others = (outer, inner) if X2 is None else self._features(X2, gates2)
        kernel: Array = (outer @ others[0].T) * (inner @ others[1].T)
        return kernel

    def _features(self, X: Any, gates: Any) -> tuple[Array, Array]:
        inputs, opened = (to_numpy(as_float64(array)) for array in (X, gates))
        width, n_inputs = self.first.shape
        require_columns("X", inputs, n_inputs)
        shape = len(inputs), width + len(self.p)
        require_shape("gates", opened, shape, "one gate a sample and unit, layer after layer")
        first = opened[:, :width] * (inputs @ self.first.T)
        return opened[:, width:] * np.sqrt(self.p), first


@door()
def depth3_kernel(network: torch.nn.Module) -> Depth3Kernel:
    r"""Read the layer weights of the kernel machine off a network of three layers.

    With outer layers fixed the scores are linear in the middle one, so that for all weights

    .. math:: (\|w\|^2 / 3)^{3/2} \big/ \min_n m_n \;\ge\; \prod_l \|W_l\| \big/ \min_n m_n
              \;\ge\; \text{least RKHS norm at margin 1 of } K ,

    with equality at every KKT point of the margin problem: there the layers have equal norms, and
    the middle one satisfies the conditions of its own, convex, problem. The rich limit is a kernel
    machine at the network's own p, t (or S); at uniform weights it is the overlap kernel's.

    Parameters
    ----------
    network : Module
        With ``layers`` W_1 (H1, D), W_2 (H2, H1), W_3 (1, H2), gated in both hidden layers: `DGN`
        of two hidden layers, trained or at a local limit.

    Raises
    ------
    TypeError
        If the network has no such layers.
    ValueError
        If an outer layer is 0 or not finite.

    Examples
    --------
    >>> network = ib.DGN(2, widths=(3, 4), random_state=0)
    >>> kernel = ib.kernels.depth3_kernel(network)
    >>> round(float(kernel.p.sum()), 6), kernel(np.eye(2), np.ones((2, 7))).shape
    (1.0, (2, 2))
    """
    layers = [to_numpy(p.detach().double()) for p in getattr(network, "layers", [])]
    if len(layers) != 3 or any(W.ndim != 2 for W in layers) or len(layers[2]) != 1:
        raise TypeError(
            "`network` must have `layers` W_1 (H1, D), W_2 (H2, H1), W_3 (1, H2), got "
            f"{type(network).__name__} with {[W.shape for W in layers]}: take a DGN of two hidden "
            "layers"
        )
    first, _, last = layers
    sizes = float(np.linalg.norm(first)), float(np.linalg.norm(last))
    if not all(0 < size < np.inf for size in sizes):
        raise ValueError(f"the outer layers must be finite and not 0, got the norms {sizes}")
    unit = first / sizes[0]
    return Depth3Kernel(p=(last[0] / sizes[1]) ** 2, t=np.sum(unit**2, axis=1), first=unit)
