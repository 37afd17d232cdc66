"""Deep linearly gated network: a linear network opens the units of another one."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Unpack

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


class DLGN(OwnGates, torch.nn.Module):
    r"""Deep linearly gated network, whose gates are half-spaces and can be trained.

    .. math:: \eta_0 = x, \quad \eta_l = V_l \eta_{l-1}; \qquad
              h_0 = x \text{ or } 1, \quad h_l = G(\eta_l) \circ W_l h_{l-1}, \quad
              f(x) = W_L h_{L-1}

    The gate of a unit is :math:`[\eta \ge 0]`, a half-space through the origin; a path is open on
    the intersection of L - 1 of them, a cone. Hard gates have the gradient zero in V, so that
    training moves the value weights alone. Soft ones, :math:`1 / (1 + e^{-\beta\eta})`, train V as
    well; `harden` makes them hard, which changes the function. Scores are homogeneous in the value
    weights of a network with frozen gates, and not in all weights of this one.

    Parameters
    ----------
    n_inputs : int
        D, a constant column counted.
    widths : sequence of int
        Units of the L - 1 hidden layers, at least one.
    constant_experts : bool
        Whether the value network sees ones (n, D) in place of x: piecewise constant scores
        (DLGN-PWC).
    beta : float, optional
        Steepness of soft gates, positive; None for hard ones. May be set at any time.
    **start : Starting
        `init` of the value weights: "gaussian" (default), "sign", "kaiming", "orthogonal" or
        "balanced", as `DGN` has them ("sign" leaves constant experts of one hidden layer at starts
        of equal sizes, from which some die that the limit needs); `init_scale`, `random_state`,
        `dtype`, `device`. The gating weights are drawn from N(0, 1 / width below) by the same
        `random_state`, whatever `init_scale` is.

    Attributes
    ----------
    gating : ParameterList
        V_1 (width_1, D), V_2 (width_2, width_1), ..., without the last layer.
    value : DGN
        W_1 (width_1, D), ..., W_L (1, width_{L-1}).
    constant_experts : bool

    Raises
    ------
    ValueError
        If there is no hidden layer, a size, `beta` or `init_scale` is out of range, or `init` is
        unknown.

    References
    ----------
    C. Lakshminarayanan, A. V. Singh, A. Rajkumar, "Explicitising the implicit interpretability of
    deep neural networks via duality": DLGN and DLGN-PWC. The gates printed there are hard and have
    no gradient; which soft ones were trained is not said.

    Examples
    --------
    >>> import torch
    >>> network, X = ib.DLGN(3, widths=(4, 2)), torch.ones(5, 3).double()
    >>> frozen = network.freeze_gates()
    >>> bool(torch.allclose(network(X), frozen(X, frozen.prepare(network.gates(X)))))
    True
    """

    @door()
    def __init__(
        self,
        n_inputs: int,
        *,
        widths: Sequence[int],
        constant_experts: bool = False,
        beta: float | None = None,
        **start: Unpack[Starting],
    ) -> None:
        super().__init__()
        check_hidden(widths)
        rng = np.random.default_rng(start.get("random_state", 0))
        begin: Starting = {"init": "gaussian", **start, "random_state": rng}
        self.value = DGN(n_inputs, widths=widths, **begin)
        shapes = [(high, low) for low, high in pairwise([n_inputs, *self.value.widths])]
        first: Tensor = self.value.layers[0]
        self.gating = torch.nn.ParameterList(
            torch.nn.Parameter(torch.tensor(rng.normal(size=shape) / shape[1] ** 0.5).to(first))
            for shape in shapes
        )
        self.constant_experts = constant_experts
        self.beta = beta

    def forward(self, X: Tensor, gates: None = None) -> Tensor:
        """Return the scores (n,) of X (n, D) with the present gates, soft or hard."""
        if gates is not None:
            raise ValueError(
                "`gates` must be None for a DLGN, which sets its own: a network with given gates "
                "is what `freeze_gates()` returns"
            )
        scores: Tensor = self.value(self.expert_inputs(X), self.soft_gates(X))
        return scores

    def soft_gates(self, X: Tensor) -> Tensor:
        """Return the gates (n, sum of widths), layer after layer, with their gradient.

        In [0, 1], and 0 or 1 if `beta` is None.
        """
        eta = torch.cat(self._pre_activations(X), dim=1)
        if self.beta is None:
            return (eta >= 0).to(eta)
        return torch.sigmoid(self.beta * eta)

    @door()
    def gates(self, X: ArrayLike | Tensor) -> Tensor:
        """Return which hidden units are open, boolean (n, sum of widths), layer after layer.

        Those of hard gates, whatever `beta` is. On its hyperplane a unit is open, so that all are
        at x = 0.
        """
        with torch.no_grad():
            parts = self._pre_activations(as_tensor(X).to(self.gating[0]))
        return torch.cat(parts, dim=1) >= 0

    def normals(self) -> Tensor:
        """Return the normals (sum of widths, D) of the half-spaces: the rows of V_l ... V_1."""
        products = [self.gating[0].detach()]
        for layer in list(self.gating)[1:]:
            products.append(layer.detach() @ products[-1])
        return torch.cat(products)

    def expert_inputs(self, X: Tensor) -> Tensor:
        """Return the inputs (n, D) of the value network: X, or ones with constant experts."""
        check_inputs(X, self.gating[0], self.n_inputs)
        return torch.ones_like(X) if self.constant_experts else X

    def harden(self) -> None:
        """Make the gates hard from now on, which changes the function."""
        self.beta = None

    def freeze_gates(self) -> DGN:
        """Return a copy of the value network, whose gates are given with the data.

        ``freeze_gates()(self.expert_inputs(X), self.gates(X))`` are the scores of this network
        with hard gates. Training the copy leaves this network as it is.
        """
        layers = [layer.detach().clone() for layer in self.value.layers]
        return DGN.from_weights(*layers, device=layers[0].device)

    def _pre_activations(self, X: Tensor) -> list[Tensor]:
        """Eta (n, width) of every hidden layer."""
        check_inputs(X, self.gating[0], self.n_inputs)
        found: list[Tensor] = []
        for layer in self.gating:
            found.append(linear(found[-1] if found else X, layer))
        return found
