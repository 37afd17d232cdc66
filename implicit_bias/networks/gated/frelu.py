"""Frozen-gate ReLU network: a gated first layer, linear layers above it."""

from collections.abc import Sequence
from typing import Unpack

from numpy.typing import ArrayLike
from torch import Tensor
from torch.nn.functional import linear

from ..._support.doors import door
from ..protocols import check_gates, check_inputs
from ..weights import Starting, as_tensor, gated_dual_norms, linear_factors
from .base import GatedLayers


class FReLU(GatedLayers):
    r"""ReLU network whose gates are given with the data and never change.

    .. math:: f(x) = \sum_h \mathrm{head}_h \, g_h(x) \langle w_1[h], x \rangle,
              \qquad \mathrm{head} = V_L \cdots V_1, \qquad g_h(x) \in \{0, 1\} .

    Units of a leaky ReLU have gates :math:`g_h(x) \in \{\alpha, 1\}`, :math:`\alpha` its slope.

    Parameters
    ----------
    n_inputs, n_units : int
        D and H, the constant column counted in D.
    upper_widths : sequence of int
        Widths of linear layers between the gated layer and the scores; ``()`` is two layers.
    n_outputs : int
        K, the scores of a sample: by default 1. From 2 on they are (n, K), and zeta has an
        axis of K after that of the units.
    **start : Starting
        `init`: "kaiming" (default) and "orthogonal" fill each layer's matrix by itself; "balanced"
        is a Gaussian `w1` with upper layers that make ``|head[h]| = ||w1[h]||`` and
        ``V_{l+1}^T V_{l+1} = V_l V_l^T``; `init_scale`, `random_state`, `dtype`, `device`.

    Attributes
    ----------
    w1 : Parameter (H, D)
    upper : ParameterList
        V_1 (width_1, H), ..., V_L (K, width_{L-1}); w2 (K, H) if there are two layers.

    Raises
    ------
    ValueError
        If a size is not positive, `init` is unknown or `init_scale` is not positive and finite.

    References
    ----------
    Limit of training: minimum of ``sum_h ||zeta_h||`` under the margin constraints (S. Lippl,
    L. F. Abbott, S. Chung, "The implicit bias of gradient descent on generalized gated linear
    networks", equation 22); upper linear layers do not change it.

    Examples
    --------
    >>> import torch
    >>> network = ib.FReLU.from_weights([[1.0, 0.0], [0.0, 1.0]], [2.0, -1.0])
    >>> network(torch.tensor([[3.0, 5.0]]).double(), torch.tensor([[1.0, 0.0]]).double()).tolist()
    [6.0]
    """

    axes = ("H", "D")

    @door()
    def __init__(
        self,
        n_inputs: int,
        n_units: int,
        *,
        upper_widths: Sequence[int] = (),
        n_outputs: int = 1,
        **start: Unpack[Starting],
    ) -> None:
        sizes = {"n_inputs": n_inputs, "n_units": n_units}
        super().__init__(
            sizes, upper_widths, ("kaiming", "orthogonal", "balanced"), n_outputs=n_outputs, **start
        )

    @door(gates="n>=0 .n_units: one gate a sample and unit")
    def prepare(self, gates: ArrayLike | Tensor) -> Tensor:
        """Check gates (n, H) once and place them in the dtype and on the device of the weights.

        Raises
        ------
        ValueError
            If their shape is wrong, or one of them is neither 1 nor the slope of closed ones, which
            is one number in [0, 1), 0 unless units are leaky.
        """
        g = as_tensor(gates).to(self.w1)
        closed = g[g != 1]
        if closed.numel() and not bool((0 <= closed[0] < 1) & (closed == closed[0]).all()):
            raise ValueError(
                "`gates` must be exactly 0 (closed) or 1 (open), or one slope in [0, 1) of leaky "
                "units in place of 0: compare soft gates with a threshold first"
            )
        return g

    def forward(self, X: Tensor, gates: Tensor) -> Tensor:
        """Return the scores (n,), or (n, K), of X (n, D) under gates (n, H)."""
        check_inputs(X, self.w1, self.n_inputs)
        check_gates("gates", gates, (len(X), self.n_units), "one gate a sample and unit")
        # Weights first: networks trained side by side then share one product with the inputs.
        scores = self.head() @ (gates.T * (self.w1 @ X.T))
        return scores.T if self.n_outputs > 1 else scores

    @door()
    def dual_norms(self, coefficients: Tensor, X: Tensor, gates: Tensor) -> Tensor:
        """Return ``||v_h||`` (H,), ``v_h = sum_n coefficients_n g_h(x_n) x_n``."""
        return gated_dual_norms(gates, coefficients, X)

    @door()
    def gradient_factors(self, X: Tensor, gates: Tensor) -> list[tuple[Tensor, Tensor]]:
        """Return each layer's factors (n, a) and (n, b) of the gradients of single scores."""
        hidden = gates * linear(X, self.w1)
        return [(gates * self.head(), X), *linear_factors(hidden, list(self.upper))]
