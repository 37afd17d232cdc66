"""What a network may offer, each thing as a protocol, and the checks that all networks share.

To be trained a torch module needs `Network` alone. Everything else is used where it is there: ask
by ``isinstance(network, Homogeneous)``. `check_network` says of a module what it has.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import Protocol, runtime_checkable

import torch
from numpy.typing import ArrayLike
from torch import Tensor
from torch.func import functional_call

from .adapted import plain

__all__ = [
    "Gated",
    "HasDualNorms",
    "HasGates",
    "HasGradientFactors",
    "HasImbalance",
    "HasUnitNorms",
    "HasZeta",
    "Homogeneous",
    "Network",
    "check_contexts",
    "check_device",
    "check_homogeneous",
    "check_inputs",
    "check_scores",
    "check_start",
    "sample_of_other_degree",
]


@runtime_checkable
class Network(Protocol):
    """A torch module with one score a sample.

    A module of inputs alone, ``forward(X)``, such as `torch.nn.Sequential`, is one too: it is
    called without gates, and may return its scores as a column. Where theory speaks of it, it is
    `Homogeneous` in its trained weights as well: no biases but a constant input.
    """

    def forward(self, X: Tensor, gates: Tensor | None) -> Tensor:
        """Scores (n,) of inputs X (n, D), or (n, c, h, w), ...; each sample's by itself.

        Gates (n, ...) are those given with the data, of any meaning; None where there are none.
        """


@runtime_checkable
class Homogeneous(Protocol):
    """Scores at weights times a factor a > 0 are those at the weights times ``a ** degree``."""

    @property
    def degree(self) -> int:
        """A positive number: 1 where scores are linear in the weights."""


@runtime_checkable
class Gated(Protocol):
    """Its gates are given with the data: ``forward(X, gates)`` needs them."""

    def prepare(self, gates: ArrayLike | Tensor) -> Tensor:
        """Check gates (n, ...) once and place them as `forward` takes them.

        Preparing twice does no harm. Raises ValueError or TypeError for what are no gates of this
        network.
        """


@runtime_checkable
class HasZeta(Protocol):
    """As a function it is linear in coefficients zeta, however many layers make them."""

    def zeta(self) -> Tensor:
        """The coefficients, in the shape that the limit has them in."""


@runtime_checkable
class HasUnitNorms(Protocol):
    """Its coefficients come in groups, the units of the limit's norm."""

    def unit_norms(self) -> Tensor:
        """Norms (H,) of the coefficients of every unit."""


@runtime_checkable
class HasDualNorms(Protocol):
    """The dual norm of its units is known, and with it which unit is wrongly small."""

    def dual_norms(self, coefficients: Tensor, X: Tensor, gates: Tensor | None) -> Tensor:
        """Norms (H,) of ``sum_n coefficients_n phi_h(x_n)``, phi_h the features of unit h."""


@runtime_checkable
class HasImbalance(Protocol):
    """Its hidden units are homogeneous in what comes in and in what goes out."""

    def imbalance(self) -> Tensor:
        """``||incoming weights||^2 - ||outgoing weights||^2`` of every hidden unit, (units,).

        Gradient flow conserves it; it is 0 for balanced weights.
        """


@runtime_checkable
class HasGradientFactors(Protocol):
    """Inner products of the gradients of its scores are cheap."""

    def gradient_factors(self, X: Tensor, gates: Tensor | None) -> list[tuple[Tensor, Tensor]]:
        """A layer, what each sample's gradient is made of: (n, a) and (n, b).

        The gradient of the score f(x_n) in that layer's weights, as a matrix (a, b), is the outer
        product of the two rows n. Inner products of gradients follow without forming one.
        """


@runtime_checkable
class HasGates(Protocol):
    """It sets its gates itself."""

    def gates(self, X: ArrayLike | Tensor) -> Tensor:
        """Which hidden units are open, boolean (n, units)."""


def check_start(
    sizes: Mapping[str, int],
    init_scale: float,
    *,
    init: str | None = None,
    inits: Collection[str] = (),
    device: torch.device | str = "cpu",
    zero: bool = False,
) -> None:
    """See that a network can begin: sizes positive, start known, factor positive, device there.

    Parameters
    ----------
    sizes : mapping of str to int
        By the names of the arguments.
    init_scale : float
        Factor on the initial weights; may be 0 if `zero`.
    init, inits
        How the weights begin, and the ways that there are; None where there is one.
    device : device
        Where they go.

    Raises
    ------
    ValueError
        With the first that does not hold.
    """
    for name, size in sizes.items():
        if size < 1:
            raise ValueError(f"`{name}` must be at least 1, got {size}")
    if init is not None and init not in inits:
        raise ValueError(f"`init` must be one of {sorted(inits)}, got {init!r}")
    if not (0 < init_scale < math.inf or (zero and init_scale == 0)):
        allowed = "at least 0" if zero else "positive"
        raise ValueError(f"`init_scale` must be {allowed} and finite, got {init_scale}")
    check_device(device)


def check_device(device: torch.device | str) -> None:
    """See that torch can compute on a device; raises ValueError if it cannot."""
    try:
        torch.zeros(1, device=device).item()
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise ValueError(f"torch cannot use device {str(device)!r} here: take 'cpu'") from error


def check_contexts(contexts: Tensor, n_contexts: int) -> None:
    """See that contexts are numbered from 0 to `n_contexts` - 1; raises ValueError if not."""
    if contexts.numel() and not (0 <= int(contexts.min()) and int(contexts.max()) < n_contexts):
        raise ValueError(
            f"`contexts` must lie in 0..{n_contexts - 1}, got values from "
            f"{int(contexts.min())} to {int(contexts.max())}: gating and network must agree on "
            "n_contexts"
        )


def check_inputs(X: Tensor, weight: Tensor, n_inputs: int) -> None:
    """See that inputs fit a network: (n, D) in the dtype of its weights; ValueError if not."""
    if X.ndim != 2 or X.shape[1] != n_inputs or X.dtype != weight.dtype:
        raise ValueError(
            f"`X` must be a {weight.dtype} tensor of shape (n, {n_inputs}), got {X.dtype} "
            f"{tuple(X.shape)}: convert with torch.as_tensor(X, dtype=...)"
        )


def check_scores(scores: Tensor, shape: tuple[int, ...], network: torch.nn.Module) -> None:
    """See that a network has one score a sample, or a class; raises ValueError if it has not."""
    if tuple(scores.shape) != shape:
        way = ": let `forward` end with .squeeze(-1) if it gives one column"
        raise ValueError(
            f"{type(plain(network)).__name__} must return scores of shape {shape}, one a row of X"
            f"{'' if len(shape) == 1 else ' and class'}, got {tuple(scores.shape)}"
            f"{way if len(shape) == 1 else ''}"
        )


def check_homogeneous(network: torch.nn.Module, X: Tensor, gates: Tensor | None) -> int:
    """See that scores are homogeneous in the trained weights, on data that `place_data` placed.

        f(2 w) = 2 ** degree f(w)     for every sample

    Returns the degree. The margin problem of mixed degrees is another: its samples of the lower
    degree alone decide where training goes, while those of the higher one bind after rescaling.

    Raises
    ------
    TypeError
        If the network has no positive integer `degree`.
    ValueError
        If the scores of some sample grow otherwise, or are not finite.
    """
    degree = network.degree if isinstance(network, Homogeneous) else None
    if not isinstance(degree, int) or degree < 1:
        raise TypeError(
            f"`network.degree` must be a positive int, got {degree!r}: the degree of homogeneity "
            "of the scores in the trained weights"
        )
    twice = {k: 2 * p.detach() for k, p in network.named_parameters() if p.requires_grad}
    with torch.no_grad():
        expected = 2**degree * network(X, gates)
        got: Tensor = functional_call(network, twice, (X, gates))
    n = sample_of_other_degree(expected, got)
    if n is not None:
        raise ValueError(
            f"{type(plain(network)).__name__} must be homogeneous of degree {degree} in its "
            f"trained weights, but doubling them takes the score of sample {n} from "
            f"{float(expected[n]) / 2**degree:g} to {float(got[n]):g}, not {float(expected[n]):g}: "
            "train no biases, let all contexts have one degree, and let `degree` name it"
        )
    return degree


def sample_of_other_degree(expected: Tensor, got: Tensor) -> int | None:
    """The first sample whose score (n,) at doubled weights is not what the degree has it be."""
    eps = torch.finfo(got.dtype).eps
    # Doubling is exact, so that polynomials have no error at all; norms and roots leave rounding.
    error = (got - expected).abs()
    wrong = ~(error <= math.sqrt(eps) * expected.abs() + 1e3 * eps * expected.abs().max())
    return int(wrong.nonzero()[0, 0]) if bool(wrong.any()) else None
