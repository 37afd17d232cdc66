"""Linear networks of any depth, as functions of their end-to-end vector."""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Self, Unpack

import torch
from numpy.typing import ArrayLike
from torch import Tensor

from .._support.doors import door
from .._support.kinds import require_sizes, weights
from .protocols import check_inputs
from .weights import (
    INITS,
    LayeredNetwork,
    Start,
    Starting,
    as_tensor,
    balanced_chain,
    balanced_factors,
    check_hidden,
    copy_weights,
    draw_matrices,
    draw_units,
    end_to_end,
    linear_factors,
    rank_one_chain,
    upper_layers,
)


class DeepLinear(LayeredNetwork):
    r"""Linear network ``f(x) = W_L ... W_1 x`` without biases, homogeneous of degree L.

    Parameters
    ----------
    n_inputs : int
        D, the constant column counted.
    hidden_widths : sequence of int
        Widths between the layers; ``()`` is one layer, the linear predictor.
    n_outputs : int
        K, the scores of a sample: by default 1. From 2 on they are (n, K) and zeta is (K, D).
    **start : Starting
        `init`: "orthogonal" (default), "kaiming", or "balanced", which is Gaussian with
        ``W_{l+1}^T W_{l+1} = W_l W_l^T`` exactly; `init_scale`, `random_state`, `dtype`, `device`.

    Attributes
    ----------
    layers : ParameterList
        W_1 (width_1, D), ..., W_L (K, width_{L-1}).

    Raises
    ------
    ValueError
        If a size is not positive, `init` is unknown or `init_scale` is not positive and finite.

    References
    ----------
    The end-to-end vector converges in direction to the hard-margin SVM, whatever the depth
    (Z. Ji, M. Telgarsky, "Gradient descent aligns the layers of deep linear networks"). Of K
    outputs the shortest weights with the matrix zeta have the squared norm L sum_i s_i^(2/L), s its
    singular values: with one layer their limit is the least Frobenius norm, with two the least
    nuclear norm.

    Examples
    --------
    >>> network = ib.DeepLinear(3, hidden_widths=(4,), init="balanced")
    >>> network.zeta().shape, network.degree, bool(network.imbalance().abs().max() < 1e-15)
    (torch.Size([3]), 2, True)
    """

    @door()
    def __init__(
        self,
        n_inputs: int,
        *,
        hidden_widths: Sequence[int] = (),
        n_outputs: int = 1,
        **start: Unpack[Starting],
    ) -> None:
        super().__init__()
        sizes = {"n_inputs": n_inputs, "n_outputs": n_outputs}
        sizes |= {f"hidden_widths[{i}]": width for i, width in enumerate(hidden_widths)}
        widths = [n_inputs, *hidden_widths, n_outputs]
        begin = Start.checked(sizes, INITS, *pairwise(widths), **start)
        self.n_inputs, self.n_outputs = n_inputs, n_outputs
        drawn = begin.parameters(lambda rng: _draw(begin.init, widths, rng))
        self.layers = torch.nn.ParameterList(drawn)

    @classmethod
    @door(layers=weights())
    def from_weights(cls, *layers: ArrayLike | Tensor, device: torch.device | str = "cpu") -> Self:
        """Build a network from W_1 (width_1, D), ..., W_L (K, width_{L-1}), in W_1's dtype.

        Raises
        ------
        ValueError
            If the shapes do not chain.
        """
        shapes = [tuple(as_tensor(layer).shape) for layer in layers]
        if not shapes or len(shapes[0]) != 2 or 0 in shapes[0]:
            raise ValueError(
                "`layers` must have shapes (width_1, D), (width_2, width_1), ..., (K, width), "
                f"got {shapes}"
            )
        first = as_tensor(layers[0])
        upper = upper_layers(layers[1:], first) if len(layers) > 1 else []
        *widths, n_outputs = [len(matrix) for matrix in (first, *upper)]
        network = cls(
            first.shape[1],
            hidden_widths=widths,
            n_outputs=n_outputs,
            dtype=first.dtype,
            device=device,
        )
        copy_weights(network.layers, [first, *upper])
        return network

    @classmethod
    @door(zeta=weights("D | K>=2 D"))
    def from_zeta(
        cls,
        zeta: ArrayLike | Tensor,
        *,
        hidden_widths: Sequence[int] = (),
        device: torch.device | str = "cpu",
    ) -> Self:
        r"""Build the balanced network with the end-to-end vector zeta (D,), or matrix (K, D).

        Its squared weight norm :math:`L \|\zeta\|^{2/L}`, of a matrix with singular values s
        :math:`L \sum_i s_i^{2/L}`, is the least of all.

        Raises
        ------
        ValueError
            If zeta has another shape, or a rank above a hidden width.
        """
        target = as_tensor(zeta)
        sizes = {f"hidden_widths[{i}]": width for i, width in enumerate(hidden_widths)}
        widths = [target.shape[-1], *hidden_widths, target.shape[0] if target.ndim == 2 else 1]
        require_sizes("weights", {"zeta": target.numel(), **sizes}, *pairwise(widths))
        if target.ndim == 2:
            return cls.from_weights(*balanced_factors(target, hidden_widths), device=device)
        norm = target.norm()
        size = norm ** (1 / (1 + len(hidden_widths)))
        first = target * (size / norm) if norm > 0 else target
        return cls.from_weights(*balanced_chain(first, hidden_widths), device=device)

    def forward(self, X: Tensor, gates: object = None) -> Tensor:
        """Return the scores (n,) of X (n, D), or (n, K); `gates` are not used."""
        check_inputs(X, self.layers[0], self.n_inputs)
        return X @ self.zeta().T if self.n_outputs > 1 else X @ self.zeta()

    def zeta(self) -> Tensor:
        """Return the end-to-end vector (D,), or matrix (K, D), multiplied from the top."""
        product = end_to_end(list(self.layers))
        return product if self.n_outputs > 1 else product.view(-1)

    def unit_norms(self) -> Tensor:
        r"""Return the norm of the end-to-end vector (1,): one unit.

        Of a matrix with singular values s :math:`(\sum_i s_i^{2/L})^{L/2}`, what the shortest
        weights that have it cost: its Frobenius norm with one layer, its nuclear norm with two.
        """
        if self.n_outputs == 1 or self.degree == 1:
            norm: Tensor = torch.linalg.vector_norm(self.zeta())
            return norm.view(1)
        values: Tensor = torch.linalg.svdvals(self.zeta())
        return (values ** (2 / self.degree)).sum().view(1) ** (self.degree / 2)

    @door()
    def dual_norms(self, coefficients: Tensor, X: Tensor, gates: object = None) -> Tensor:
        """Return ``||sum_n coefficients_n x_n||`` (1,), of a network of one output."""
        norm: Tensor = torch.linalg.vector_norm(coefficients @ X)
        return norm.view(1)

    @door()
    def gradient_factors(
        self, X: Tensor, gates: Tensor | None = None
    ) -> list[tuple[Tensor, Tensor]]:
        """Return each layer's factors (n, a) and (n, b) of the gradients of single scores."""
        return linear_factors(X, list(self.layers))


class UnconstrainedFeatures(DeepLinear):
    """Features that are weights, one vector a sample, under linear layers: neural collapse.

    A `DeepLinear` network on the identity: input n picks the feature of sample n, a column of the
    first layer. It is trained on ``np.eye(n)`` and rows of classes, by all that trains networks.

    Parameters
    ----------
    n_inputs : int
        n, the samples.
    hidden_widths : sequence of int
        Width of the features and of layers between; one at least.
    n_outputs : int
        K, the classes.
    **start : Starting
        As of `DeepLinear`.

    Attributes
    ----------
    layers : ParameterList
        Features (width_1, n), ..., classifiers (K, width_{L-1}).

    Raises
    ------
    ValueError
        As `DeepLinear`, and without a hidden width.

    References
    ----------
    D. G. Mixon, H. Parshall, J. Pi, "Neural collapse with unconstrained features". The limit is
    that of `limits.solve_collapse`.

    Examples
    --------
    >>> network = ib.networks.UnconstrainedFeatures(12, hidden_widths=(4,), n_outputs=3)
    >>> network.features().shape, network.classifiers().shape, network.degree
    (torch.Size([12, 4]), torch.Size([3, 4]), 2)
    """

    @door()
    def __init__(
        self,
        n_inputs: int,
        *,
        hidden_widths: Sequence[int],
        n_outputs: int,
        **start: Unpack[Starting],
    ) -> None:
        check_hidden(hidden_widths)
        super().__init__(n_inputs, hidden_widths=hidden_widths, n_outputs=n_outputs, **start)

    def features(self) -> Tensor:
        """Return what the last layer sees of every sample (n, width_{L-1})."""
        return end_to_end(list(self.layers)[:-1]).T

    def classifiers(self) -> Tensor:
        """Return the rows of the last layer (K, width_{L-1})."""
        last: Tensor = self.layers[-1]
        return last


def _draw(init: str, widths: list[int], rng: torch.Generator) -> list[Tensor]:
    if init != "balanced":
        return draw_matrices(init, zip(widths[1:], widths[:-1], strict=True), rng)
    if widths[-1] > 1:  # of the rank that every layer lets through
        rank = min(widths)
        left, right = (
            torch.randn(shape, generator=rng, dtype=torch.float64)
            for shape in ((widths[-1], rank), (rank, widths[0]))
        )
        return balanced_factors(left @ right / math.sqrt(rank * widths[0]), widths[1:-1])
    first = torch.randn(widths[0], generator=rng, dtype=torch.float64) / math.sqrt(widths[0])
    return rank_one_chain(first, draw_units(widths[1:-1], rng))
