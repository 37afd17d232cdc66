"""Gated linear network: a gated first layer, linear layers above it."""

from collections.abc import Sequence
from typing import Unpack

import torch
from numpy.typing import ArrayLike
from torch import Tensor

from ..._support.doors import door
from ..protocols import check_contexts, check_gates, check_inputs, check_integers
from ..weights import INITS, Starting, as_tensor, linear_factors
from .base import GatedLayers


class GLN(GatedLayers):
    r"""Gated linear network: unit h acts linearly on x with the weights of its context on x.

    .. math:: f(x) = \sum_h \mathrm{head}_h \langle w_1[h, c_h(x)], x \rangle,
              \qquad \mathrm{head} = V_L \cdots V_1 .

    Parameters
    ----------
    n_inputs, n_units, n_contexts : int
        D, H and C, the constant column counted in D.
    upper_widths : sequence of int
        Widths of linear layers between the gated layer and the scores; ``()`` is two layers.
    n_outputs : int
        K, the scores of a sample: by default 1. From 2 on they are (n, K), and zeta has an
        axis of K after that of the units.
    **start : Starting
        `init`: "orthogonal" (default) and "kaiming" fill each layer's matrix by itself; "balanced"
        is a Gaussian `w1` with upper layers that make ``|head[h]| = ||w1[h]||`` and
        ``V_{l+1}^T V_{l+1} = V_l V_l^T``; `init_scale`, `random_state`, `dtype`, `device`.

    Attributes
    ----------
    w1 : Parameter (H, C, D)
    upper : ParameterList
        V_1 (width_1, H), ..., V_L (K, width_{L-1}); w2 (K, H) if there are two layers.

    Raises
    ------
    ValueError
        If a size is not positive, `init` is unknown or `init_scale` is not positive and finite.

    References
    ----------
    Theorem for two layers: minimum of ``sum_h ||zeta_h||_F`` under the margin constraints
    (S. Lippl, L. F. Abbott, S. Chung, "The implicit bias of gradient descent on generalized gated
    linear networks", equations 14-20); the same limit holds for any number of upper layers.

    Examples
    --------
    >>> import torch
    >>> network = ib.GLN(3, n_units=2, n_contexts=2)
    >>> network(torch.ones(1, 3).double(), torch.tensor([[0, 1]])).shape, network.zeta().shape
    (torch.Size([1]), torch.Size([2, 2, 3]))
    """

    axes = ("H", "C", "D")

    @door()
    def __init__(
        self,
        n_inputs: int,
        n_units: int,
        n_contexts: int,
        *,
        upper_widths: Sequence[int] = (),
        n_outputs: int = 1,
        **start: Unpack[Starting],
    ) -> None:
        sizes = {"n_inputs": n_inputs, "n_units": n_units, "n_contexts": n_contexts}
        super().__init__(sizes, upper_widths, INITS, n_outputs=n_outputs, **start)
        self.n_contexts = n_contexts

    @door(contexts="n>=0 .n_units: one context a sample and unit")
    def prepare(self, contexts: ArrayLike | Tensor) -> Tensor:
        """Check contexts (n, H) once and place them as int64 on the network's device.

        `forward` does not check the range again, so that it never has to wait for a GPU.

        Raises
        ------
        TypeError
            If the contexts are not integers.
        ValueError
            If their shape or range is wrong.
        """
        c = as_tensor(contexts)
        check_contexts(c, self.n_contexts)
        return c.to(device=self.w1.device, dtype=torch.int64)

    def forward(self, X: Tensor, contexts: Tensor) -> Tensor:
        """Return the scores (n,), or (n, K), of X (n, D) in integer contexts (n, H)."""
        check_inputs(X, self.w1, self.n_inputs)
        shape = (len(X), self.n_units)
        check_gates("contexts", contexts, shape, "one context a sample and unit")
        check_integers(contexts)
        scores = self.head() @ self._hidden(X, contexts)
        return scores.T if self.n_outputs > 1 else scores

    @door()
    def dual_norms(self, coefficients: Tensor, X: Tensor, contexts: Tensor) -> Tensor:
        """Return ``||v_h||_F`` (H,), ``v_h[c] = sum of coefficients_n x_n over c[n, h] = c``."""
        weighted = coefficients[:, None] * X
        norms = []
        for unit_contexts in contexts.to(torch.int64).T:
            v = weighted.new_zeros(self.n_contexts, self.n_inputs)
            norms.append(v.index_add(0, unit_contexts, weighted).norm())
        return torch.stack(norms)

    @door()
    def gradient_factors(self, X: Tensor, contexts: Tensor) -> list[tuple[Tensor, Tensor]]:
        """Return each layer's factors (n, a) and (n, b) of the gradients of single scores."""
        one_hot = torch.nn.functional.one_hot(contexts.to(torch.int64), self.n_contexts).to(X)
        outer = (one_hot * self.head()[:, None]).flatten(1)
        return [(outer, X), *linear_factors(self._hidden(X, contexts).T, list(self.upper))]

    def _hidden(self, X: Tensor, contexts: Tensor) -> Tensor:
        # Weights first: networks trained side by side then share one product with the inputs. Row
        # h * C + c of that product belongs to w1[h, c].
        every = (self.w1.flatten(0, 1) @ X.T).view(self.n_units, self.n_contexts, len(X))
        return every.gather(1, contexts.T.to(torch.int64).unsqueeze(1)).squeeze(1)
