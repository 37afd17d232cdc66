"""Protocols of networks, and the checks that all networks share.

To be trained a torch module needs `Network` alone. Everything else is used where it is there: ask
by ``isinstance(network, Homogeneous)``. `check_network` reports which of them a module has.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Protocol, runtime_checkable

import torch
from numpy.typing import ArrayLike
from torch import Tensor
from torch.func import functional_call

from .._support.kinds import require_sizes, whole_number
from .adapted import plain


@runtime_checkable
class Network(Protocol):
    """A torch module with one score a sample, or K of them for K classes.

    A module of inputs alone, ``forward(X)``, such as `torch.nn.Sequential`, is one too: it is
    called without gates, and may return its scores as a column. Theory covers those that are
    `Homogeneous` in their trained weights as well: no biases but a constant input.

    Examples
    --------
    >>> import torch
    >>> isinstance(torch.nn.Linear(3, 1), ib.protocols.Network)
    True
    """

    def forward(self, X: Tensor, gates: Tensor | None) -> Tensor:
        """Return the scores (n,), or (n, K), of inputs X (n, D) or (n, c, h, w), each by itself.

        Gates (n, ...) are given with the data, and mean what the network takes them to mean; they
        are None where there are none.
        """


@runtime_checkable
class Homogeneous(Protocol):
    """A network whose scores at weights times a > 0 are ``a ** degree`` times those at the weights.

    Examples
    --------
    >>> isinstance(ib.DeepLinear(3, hidden_widths=(2,)), ib.protocols.Homogeneous)
    True
    """

    @property
    def degree(self) -> int:
        """A positive number: 1 where scores are linear in the weights."""


@runtime_checkable
class Gated(Protocol):
    """A network whose gates are given with the data: ``forward(X, gates)`` needs them.

    Examples
    --------
    >>> [isinstance(n, ib.protocols.Gated) for n in (ib.GLN(3, 2, 2), ib.ReLU(3, 2))]
    [True, False]
    """

    def prepare(self, gates: ArrayLike | Tensor) -> Tensor:
        """Check gates (n, ...) and return them as `forward` takes them.

        Prepared gates are returned as they are. Raises ValueError or TypeError for others that this
        network cannot take.
        """


@runtime_checkable
class HasZeta(Protocol):
    """A network that is linear, as a function, in coefficients zeta of several layers together.

    Examples
    --------
    >>> isinstance(ib.GLN(3, 2, 2), ib.protocols.HasZeta)
    True
    """

    def zeta(self) -> Tensor:
        """Return the coefficients, in the shape of the limit's."""


@runtime_checkable
class HasUnitNorms(Protocol):
    """A network whose coefficients form groups, the units of the limit's norm.

    Examples
    --------
    >>> ib.GLN(3, n_units=2, n_contexts=2).unit_norms().shape
    torch.Size([2])
    """

    def unit_norms(self) -> Tensor:
        """Return the norms (H,) of the coefficients of every unit."""


@runtime_checkable
class HasDualNorms(Protocol):
    """A network with known dual norms of its units, which show the units that are wrongly small.

    Examples
    --------
    >>> isinstance(ib.FReLU(3, 2), ib.protocols.HasDualNorms)
    True
    """

    def dual_norms(self, coefficients: Tensor, X: Tensor, gates: Tensor | None) -> Tensor:
        """Return the norms (H,) of ``sum_n coefficients_n phi_h(x_n)``, of unit features phi_h."""


@runtime_checkable
class HasImbalance(Protocol):
    """A network whose hidden units are homogeneous in their incoming and outgoing weights.

    Examples
    --------
    >>> ib.ReLU(3, 2, init="balanced").imbalance().abs().round().tolist()
    [0.0, 0.0]
    """

    def imbalance(self) -> Tensor:
        """Return ``||incoming weights||^2 - ||outgoing weights||^2`` of hidden units, (units,).

        Gradient flow conserves it; it is 0 for balanced weights.
        """


@runtime_checkable
class HasGradientFactors(Protocol):
    """A network for which inner products of the gradients of its scores are cheap.

    Examples
    --------
    >>> import torch
    >>> factors = ib.ReLU(3, 2).gradient_factors(torch.ones(5, 3).double(), None)
    >>> [(tuple(outer.shape), tuple(inner.shape)) for outer, inner in factors]
    [((5, 2), (5, 3)), ((5, 1), (5, 2))]
    """

    def gradient_factors(self, X: Tensor, gates: Tensor | None) -> list[tuple[Tensor, Tensor]]:
        """Return two factors (n, a) and (n, b) for each layer of weights.

        The gradient of the score f(x_n) in that layer's weights, as a matrix (a, b), is the outer
        product of the two rows n. Inner products of gradients follow without forming one.
        """


@runtime_checkable
class HasGates(Protocol):
    """A network that sets its gates itself.

    Examples
    --------
    >>> ib.ReLU(3, 2).gates(np.zeros((1, 3))).tolist()
    [[True, True]]
    """

    def gates(self, X: ArrayLike | Tensor) -> Tensor:
        """Return which hidden units are open, boolean (n, units)."""


def check_start(
    sizes: Mapping[str, int],
    init_scale: float,
    *shapes: Sequence[int],
    init: str | None = None,
    inits: Collection[str] = (),
    device: torch.device | str = "cpu",
    zero: bool = False,
) -> None:
    """Check sizes, initial weights and device of a network.

    Parameters
    ----------
    sizes : mapping of str to int
        Sizes by the names of the arguments.
    init_scale : float
        Factor on the initial weights; may be 0 if `zero`.
    *shapes : sequences of int
        Shapes of the weights.
    init : str, optional
        Name of the initialisation, where there are several.
    inits : collection of str
        The names that there are.
    device : device
        That of the weights.

    Raises
    ------
    TypeError
        If a size is not a whole number.
    ValueError
        If a size is not positive, memory does not hold the weights, `init` is unknown,
        `init_scale` is out of range, or torch has no such device.
    """
    for name, size in sizes.items():
        whole_number(f"`{name}`", size)
    require_sizes("weights", sizes, *shapes, *shapes)  # as they are drawn, and scaled
    if init is not None and init not in inits:
        raise ValueError(f"`init` must be one of {sorted(inits)}, got {init!r}")
    if not (0 < init_scale < math.inf or (zero and init_scale == 0)):
        allowed = "at least 0" if zero else "positive"
        raise ValueError(f"`init_scale` must be {allowed} and finite, got {init_scale}")
    check_device(device)


def check_device(device: torch.device | str) -> None:
    """Check that torch can compute on a device; raises ValueError if it cannot."""
    try:
        torch.zeros(1, device=device).item()
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise ValueError(
            f"torch cannot use device {str(device)!r} here: let `device` be 'cpu'"
        ) from error


def check_contexts(contexts: Tensor, n_contexts: int) -> None:
    """Check that contexts are integers from 0 to `n_contexts` - 1.

    Raises
    ------
    TypeError
        If they are no integers.
    ValueError
        If one is out of range.
    """
    check_integers(contexts)
    if contexts.numel() and not (0 <= int(contexts.min()) and int(contexts.max()) < n_contexts):
        raise ValueError(
            f"`contexts` must lie in 0..{n_contexts - 1}, got values from "
            f"{int(contexts.min())} to {int(contexts.max())}: gating and network must agree on "
            "n_contexts"
        )


def check_integers(contexts: Tensor, name: str = "contexts") -> None:
    """Check that contexts are integers; raises TypeError if not."""
    if contexts.is_floating_point() or contexts.dtype == torch.bool:
        raise TypeError(f"`{name}` must be integers, got {contexts.dtype}")


def check_tensor(name: str, value: object) -> None:
    """Check that an argument of `forward` is a tensor; raises TypeError if not."""
    if not isinstance(value, Tensor):
        raise TypeError(f"`{name}` must be a torch tensor, got {type(value).__name__}")
    if value.is_complex():
        raise TypeError(f"`{name}` must hold real numbers, got {value.dtype}")


def check_gates(name: str, gates: Tensor, shape: tuple[int, ...], reason: str = "") -> None:
    """Check that gates, or contexts, are a tensor of this shape; raises TypeError, ValueError."""
    check_tensor(name, gates)
    if tuple(gates.shape) != shape:
        got = f"{tuple(gates.shape)}{': ' if reason else ''}{reason}"
        raise ValueError(f"`{name}` must have shape {shape}, got {got}")


def check_inputs(X: Tensor, weight: Tensor, n_inputs: int) -> None:
    """Check that inputs are (n, D) in the dtype of the weights; raises ValueError if not."""
    check_tensor("X", X)
    if X.ndim != 2 or X.shape[1] != n_inputs or X.dtype != weight.dtype:
        raise ValueError(
            f"`X` must be a {weight.dtype} tensor of shape (n, {n_inputs}), got {X.dtype} "
            f"{tuple(X.shape)}: convert with torch.as_tensor(X, dtype=...)"
        )


def check_scores(scores: Tensor, shape: tuple[int, ...], network: torch.nn.Module) -> None:
    """Check that scores have this shape, one a sample (and class); raises ValueError if not."""
    if tuple(scores.shape) != shape:
        way = ": let `forward` end with .squeeze(-1) if it gives one column"
        if len(shape) == 1 and scores.ndim == 2 and scores.shape[1] > 1:
            way = ": give the classes as rows of targets, y = np.eye(K)[labels]"
        raise ValueError(
            f"{type(plain(network)).__name__} must return scores of shape {shape}, one a row of X"
            f"{'' if len(shape) == 1 else ' and class'}, got {tuple(scores.shape)}"
            f"{way if len(shape) == 1 else ''}"
        )


def check_homogeneous(network: torch.nn.Module, X: Tensor, gates: Tensor | None) -> int:
    """Check that scores are homogeneous in the trained weights, and return their degree.

        f(a w) = a ** degree f(w)     for every sample, a = 2 and a = 3

    Of scores that are continuous along the ray this says it for every a > 0, since the numbers
    2^i 3^j lie dense; factor 2 alone lets scores pass that are periodic in log2 of the length.

    The margin problem of mixed degrees is another: its samples of the lower degree alone decide
    where training goes, while those of the higher one bind after rescaling.

    Parameters
    ----------
    network : Module
    X, gates : tensors
        Data as `place_data` returns them.

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
    trained = {k: p.detach() for k, p in network.named_parameters() if p.requires_grad}
    with torch.no_grad():
        scores = network(X, gates)
        for factor, word in ((2, "doubling"), (3, "tripling")):
            longer = {k: factor * w for k, w in trained.items()}
            expected = factor**degree * scores
            got: Tensor = functional_call(network, longer, (X, gates))
            n = sample_of_other_degree(expected, got)
            if n is not None and not bool(torch.isfinite(got[n] + expected[n]).all()):
                raise ValueError(
                    f"the score {float(scores[n]):g} of sample {n} is so large that {word} the "
                    "weights overflows: train at a smaller learning rate, or divide the weights"
                )
            if n is not None:
                raise ValueError(
                    f"{type(plain(network)).__name__} must be homogeneous of degree {degree} in "
                    f"its trained weights, but {word} them takes the score of sample {n} from "
                    f"{float(scores[n]):g} to {float(got[n]):g}, not {float(expected[n]):g}: train "
                    "no biases, let all contexts have one degree, and let `degree` name it"
                )
    return degree


def sample_of_other_degree(expected: Tensor, got: Tensor) -> int | None:
    """Return the first sample whose score (n,) at doubled weights is not as expected, or None."""
    eps = torch.finfo(got.dtype).eps
    # Doubling is exact, so that polynomials have no error at all; norms and roots leave rounding.
    error = (got - expected).abs()
    wrong = ~(error <= math.sqrt(eps) * expected.abs() + 1e3 * eps * expected.abs().max())
    return int(wrong.nonzero()[0, 0]) if bool(wrong.any()) else None
