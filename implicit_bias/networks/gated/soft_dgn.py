"""Deep gated network whose gates are soft and have weights of their own, or its own weights."""

from collections.abc import Sequence
from typing import Literal, Unpack

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor
from torch.nn.functional import linear

from ..._support.doors import door
from ..protocols import check_inputs
from ..weights import Starting, as_tensor, check_hidden
from .dgn import DGN
from .own_gates import OwnGates

Signals = Literal["soft", "relu"]


class SoftDGN(OwnGates, torch.nn.Module):
    r"""Deep gated network with parameterised gates: soft-ReLU, soft-GaLU, ReLU and GaLU.

    .. math:: q_l = V_l u_{l-1}, \quad u_l = G_l \circ q_l, \quad
              G_l = \frac{1 + \varepsilon}{1 + e^{-\beta q_l}}; \qquad
              z_l = G_l \circ W_l z_{l-1}, \quad f(x) = W_L z_{L-1}; \qquad u_0 = z_0 = x

    A gating network V sets the gates, a value network W computes behind them. With `shared` weights
    V = W there is one network: soft-ReLU, and for hard gates a ReLU network. With weights of its
    own it is soft-GaLU, and for hard gates GaLU, whose gating weights have the gradient zero.
    Freeze either with ``requires_grad_(False)``: ``network.value`` for gates alone to be trained,
    ``network.gating`` for gates that stay. `empirical_ntk` then is that of the part that is left.

    Parameters
    ----------
    n_inputs : int
        D, a constant column counted.
    widths : sequence of int
        Units of the L - 1 hidden layers, at least one.
    beta : float, optional
        Steepness of soft gates, positive; None for hard ones, ``(1 + eps) [q >= 0]``. May be set at
        any time.
    eps : float
        By how much an open gate exceeds 1, at least 0.
    shared : bool
        Whether the value network's weights set the gates.
    signals : {"soft", "relu"}
        What a gating network of its own hands on: G q, as printed, or relu(q), the gates of
        `SoftGates`. From the second layer on these gates differ.
    **start : Starting
        `init` of both networks: "sign" (default), "gaussian", "kaiming", "orthogonal" or
        "balanced", as `DGN` has them; `init_scale`, `random_state`, `dtype`, `device`.

    Attributes
    ----------
    value : DGN
        W_1 (width_1, D), ..., W_L (1, width_{L-1}).
    gating : ParameterList
        V_1 (width_1, D), ..., V_{L-1}; empty with shared weights.
    beta : float or None
    eps : float
    shared : bool
    signals : str

    Raises
    ------
    ValueError
        If there is no hidden layer, a size, `beta`, `eps` or `init_scale` is out of range, `init`
        or `signals` is unknown, or shared weights are to hand on relu(q).

    References
    ----------
    C. Lakshminarayanan, A. V. Singh, "Deep gated networks: a framework to understand training and
    generalisation in deep learning", tables 2 and 3. As beta grows soft gates tend to
    (1 + eps) [q > 0], not to [q > 0] as tabled there.

    Examples
    --------
    >>> import torch
    >>> network, X = ib.networks.SoftDGN(3, widths=(4, 2), shared=True), torch.eye(3).double()
    >>> network.beta = None
    >>> relu = ib.networks.DeepReLU(3, (4, 2)).requires_grad_(False)
    >>> for own, given in zip(relu.layers, network.value.layers):
    ...     _ = own.copy_(given)
    >>> bool(torch.allclose(network(X), relu(X)))
    True
    """

    @door()
    def __init__(
        self,
        n_inputs: int,
        *,
        widths: Sequence[int],
        beta: float | None = 4.0,
        eps: float = 0.0,
        shared: bool = False,
        signals: Signals = "soft",
        **start: Unpack[Starting],
    ) -> None:
        super().__init__()
        check_hidden(widths)
        if shared and signals != "soft":
            raise ValueError(
                '`signals` must be "soft" with `shared` weights: the gating network is the value '
                "network, which hands on what is behind its gates"
            )
        if not 0 <= eps < np.inf:
            raise ValueError(f"`eps` must be at least 0 and finite, got {eps}")
        rng = np.random.default_rng(start.get("random_state", 0))
        begin: Starting = {**start, "random_state": rng}
        self.value = DGN(n_inputs, widths=widths, **begin)
        drawn = [] if shared else list(DGN(n_inputs, widths=widths, **begin).layers)[:-1]
        self.gating = torch.nn.ParameterList(drawn)
        self.eps, self.shared, self.signals = float(eps), bool(shared), signals
        self.beta = beta

    def forward(self, X: Tensor, gates: None = None) -> Tensor:
        """Return the scores (n,) of X (n, D) with the present gates, soft or hard."""
        _check_own(gates)
        scores: Tensor = self._products(X)[0][-1][1][:, 0]
        return scores

    def soft_gates(self, X: Tensor) -> Tensor:
        """Return the gates (n, sum of widths), layer after layer, with their gradient.

        In [0, 1 + eps], and 0 or 1 + eps if `beta` is None.
        """
        return torch.cat(self._products(X)[2], dim=1)

    @door()
    def gates(self, X: ArrayLike | Tensor) -> Tensor:
        """Return which hidden units are open, boolean (n, sum of widths), layer after layer.

        Those with q >= 0 in the present gating network, where soft gates are at least half open.
        """
        with torch.no_grad():
            inputs = as_tensor(X).to(self.value.layers[0])
            value, gating, _ = self._products(inputs)
        setting = value[:-1] if self.shared else gating
        return torch.cat([q for _, q in setting], dim=1) >= 0

    @door()
    def gradient_factors(self, X: Tensor, gates: None = None) -> list[tuple[Tensor, Tensor]]:
        """Return each layer's factors (n, a) and (n, b) of the gradients of single scores.

        Layers are those of the value network, then those of the gating network.
        """
        _check_own(gates)
        with torch.enable_grad():
            # Weights that are frozen leave no graph: the inputs of a copy do.
            value, gating, _ = self._products(X.detach().clone().requires_grad_())
            products = value + gating
            outputs = [product for _, product in products]
            found = torch.autograd.grad(value[-1][1].sum(), outputs, allow_unused=True)
        pairs = zip(found, products, strict=True)
        return [
            (torch.zeros_like(product) if outer is None else outer, inputs.detach())
            for outer, (inputs, product) in pairs
        ]

    def _products(
        self, X: Tensor
    ) -> tuple[list[tuple[Tensor, Tensor]], list[tuple[Tensor, Tensor]], list[Tensor]]:
        """Inputs and outputs of the layers of both networks, and the gates of every layer."""
        check_inputs(X, self.value.layers[0], self.n_inputs)
        gating: list[tuple[Tensor, Tensor]] = []
        value: list[tuple[Tensor, Tensor]] = []
        gates: list[Tensor] = []
        signal = X
        for layer in self.gating:
            q = linear(signal, layer)
            gating.append((signal, q))
            gates.append(self._gate(q))
            signal = gates[-1] * q if self.signals == "soft" else q.clamp(min=0)
        signal = X
        for index, layer in enumerate(self.value.layers):
            q = linear(signal, layer)
            value.append((signal, q))
            if index == len(self.widths):
                break
            if self.shared:
                gates.append(self._gate(q))
            signal = gates[index] * q
        return value, gating, gates

    def _gate(self, q: Tensor) -> Tensor:
        if self.beta is None:
            return (1 + self.eps) * (q >= 0).to(q)
        return (1 + self.eps) * torch.sigmoid(self.beta * q)


def _check_own(gates: object) -> None:
    if gates is not None:
        raise ValueError(
            "`gates` must be None for a SoftDGN, which sets its own: a network with given gates is "
            "`network.value`"
        )
