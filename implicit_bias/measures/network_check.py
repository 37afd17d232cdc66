"""Check of a user's own network: methods that it has and lacks, and its degree."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Self

import torch
from torch import Tensor
from torch.func import functional_call

from .._support.doors import door, result
from ..networks.adapted import in_float64, plain, takes_gates
from ..networks.placed_data import GatedData, Inputs, place_data, trained_weights
from ..networks.protocols import (
    HasDualNorms,
    HasGates,
    HasGradientFactors,
    HasImbalance,
    HasUnitNorms,
    HasZeta,
    Homogeneous,
    check_scores,
)
from ..networks.recognition.homogeneity import FACTORS
from ..networks.recognition.subject import SAME, misfit
from ..quantities.formatting import aligned
from .fit.gradients import flat, gradient_gram, slopes, to_float64

# What each optional method gives to one who has it.
GIVES: Mapping[str, tuple[type, str]] = MappingProxyType(
    {
        "zeta": (HasZeta, "cosine with a limit's coefficients, directions that extrapolate"),
        "unit_norms": (HasUnitNorms, "margin ratios, dead units, unit norms along training"),
        "dual_norms": (HasDualNorms, "units that are wrongly small, bounds of the margin ratio"),
        "imbalance": (HasImbalance, "balancedness along training"),
        "gradient_factors": (HasGradientFactors, "tangent kernels; KKT distances without gradients "
                                                 "of single samples"),
        "gates": (HasGates, "gate changes along training"),
    }
)  # fmt: skip
# Most degrees that are tried; and samples that gradients are tried on.
DEGREES, FEW = 12, 3


@result()
@dataclass(frozen=True)
class NetworkCheck:
    """Findings about a module; true if everything that asks for a homogeneous network takes it.

    Attributes
    ----------
    name : str
        Name of its class.
    n_weights : int
        Number of trained weights.
    takes_gates : bool
        False for ``forward(X)``.
    stated, degree : int or None
        The degree of homogeneity that it states, and the one that its scores on the data have.
    has : tuple of str
        The optional methods that it has.
    lacks : mapping of str to str
        Those that it has not, and what each would give.
    faults : tuple of str
        What is wrong, and the way out of each; empty if nothing is.

    Examples
    --------
    >>> found = ib.check_network(ib.DeepLinear(2, hidden_widths=(3,)), [[1.0, 2.0], [3.0, -1.0]])
    >>> bool(found), found.name, found.n_weights, found.degree
    (True, 'DeepLinear', 9, 2)
    """

    name: str
    n_weights: int
    takes_gates: bool
    stated: int | None
    degree: int | None
    has: tuple[str, ...]
    lacks: Mapping[str, str]
    faults: tuple[str, ...]

    def __bool__(self) -> bool:
        return not self.faults

    def require(self) -> Self:
        """This check if nothing is wrong; raises ValueError with all that is otherwise."""
        if self.faults:
            raise ValueError(f"{self.name}: {'; '.join(self.faults)}")
        return self

    def __str__(self) -> str:
        found = "none" if self.degree is None else str(self.degree)
        said = "not stated" if self.stated is None else f"{self.stated} by `degree`"
        rows = [
            ("forward", "forward(X, gates)" if self.takes_gates else "forward(X)"),
            ("trained weights", f"{self.n_weights:,}"),
            ("degree of homogeneity", f"{found} on these data, {said}"),
            *((name, "there") for name in self.has),
            *((name, f"not there; would give {what}") for name, what in self.lacks.items()),
        ]
        verdict = "ready" if self else "not ready"
        return "\n".join([f"{self.name}: {verdict}", aligned(rows), *self.faults])


@door()
def check_network(module: torch.nn.Module, X: Inputs, gates: Inputs | None = None) -> NetworkCheck:
    r"""Try a network on data: all that training and measuring need of it.

    Scores are (n,), or (n, K) of K classes, finite, the same twice, each of its own sample alone,
    and homogeneous,

    .. math:: f(a w) = a^L f(w) \quad \text{for every sample},

    in the trained weights, with L the stated `degree`; their gradients are those of the weights,
    :math:`\langle \nabla f, w \rangle = L f`, and can be had sample by sample.

    Parameters
    ----------
    module : Module
        Takes ``forward(X, gates)`` or ``forward(X)`` and returns scores (n,) or (n, K), alone or
        with others. It is not changed.
    X : (n, D) or (n, ...) array
        Inputs, a few of them, as the network takes them.
    gates : (n, ...) array, optional
        Gates of these samples, for a network that takes them.

    Returns
    -------
    NetworkCheck
        Printed, it is a table; `require()` raises with all faults in one message.

    Raises
    ------
    TypeError
        If it is no torch module.

    Examples
    --------
    >>> import torch
    >>> _ = torch.manual_seed(0)  # of few units all may be closed, and the scores constant
    >>> linear = torch.nn.Linear
    >>> net = torch.nn.Sequential(linear(2, 3, bias=False), torch.nn.ReLU(), linear(3, 1))
    >>> found = ib.check_network(net, [[1.0, 2.0], [3.0, -1.0]])
    >>> found.degree, found.faults[0]
    (None, 'scores are not homogeneous in the trained weights: take out the biases, 2.bias')
    """
    if not isinstance(module, torch.nn.Module):
        raise TypeError(f"`module` must be a torch.nn.Module, got {type(module).__name__}")
    stated = module.degree if isinstance(module, Homogeneous) else None
    trained = [p for p in module.parameters() if p.requires_grad]
    tried = _Trial(module)
    faults = tuple(tried.faults(X, gates))
    has = tuple(name for name, (protocol, _) in GIVES.items() if isinstance(module, protocol))
    # Gates that are given with the data are not the network's to tell.
    known = {*has, "gates"} if takes_gates(module) else {*has}
    return NetworkCheck(
        name=type(module).__name__,
        n_weights=sum(p.numel() for p in trained),
        takes_gates=takes_gates(module),
        stated=stated,
        degree=tried.degree,
        has=has,
        lacks={name: what for name, (_, what) in GIVES.items() if name not in known},
        faults=faults,
    )


class _Trial:
    """A copy in float64, tried step by step; each step needs those before it."""

    def __init__(self, module: torch.nn.Module) -> None:
        self.module = module
        self.degree: int | None = None

    def faults(self, X: Inputs, gates: Inputs | None) -> Iterator[str]:
        """Yield every reason for which the module cannot be used."""
        try:
            self.network: torch.nn.Module = in_float64(
                self.module, trained_weights(self.module)[0].device
            )
            self.data = to_float64(place_data(self.network, X, None, gates))
            self.scores = self._call(self.data)
            n, outputs = len(self.data.X), self.scores.shape[1:]
            check_scores(self.scores, (n, *outputs[:1]), self.network)
        except Exception as error:  # whatever a module of the user's own raises
            yield f"it cannot be called on these data ({type(error).__name__}): {error}"
            return
        if not bool(torch.isfinite(self.scores).all()):
            yield "some scores are NaN or infinite: look at its weights"
            return
        if not bool(self.scores.any()):
            yield "all scores are 0, which says nothing: give weights that are not"
            return
        early = list(self._of_scores())
        yield from early
        if not early:
            yield from self._of_degree()
            yield from self._of_gradients()

    def _call(self, data: GatedData) -> Tensor:
        with torch.no_grad():
            scores: Tensor = self.network(data.X, data.gates)
        return scores

    def _of_scores(self) -> Iterator[str]:
        if not torch.allclose(self._call(self.data), self.scores, rtol=1e-9, atol=1e-12):
            yield (
                "two calls give different scores: call `.eval()` on it, or take out what is random "
                "(dropout) or remembers"
            )
            return
        half = (len(self.scores) + 1) // 2
        first = self.data.take(torch.arange(half, device=self.data.X.device))
        if not torch.allclose(self._call(first), self.scores[:half], rtol=1e-9, atol=1e-12):
            yield (
                "the score of a sample depends on the other samples: call `.eval()` on it, or take "
                "out normalisation over batches"
            )

    def _of_degree(self) -> Iterator[str]:
        self.degree = self._measured()
        stated = self.module.degree if isinstance(self.module, Homogeneous) else None
        if self.degree is None:
            biases = [
                name for name, p in plain(self.network).named_parameters()
                if p.requires_grad and name.split(".")[-1] == "bias"
            ]  # fmt: skip
            way = f"take out the biases, {', '.join(biases)}" if biases else (
                "take out what does not scale (normalisation, tanh, additions of weights of "
                "different depth, a small constant under a root), or freeze it"
            )  # fmt: skip
            yield f"scores are not homogeneous in the trained weights: {way}"
        elif stated is None:
            yield (
                f"`degree` is missing: on these data it is {self.degree}, write `degree = "
                f"{self.degree}` in the class, or `network.degree = {self.degree}`"
            )
        elif stated != self.degree:
            yield f"`degree` is {stated!r}, but on these data it is {self.degree}: let it say so"

    def _measured(self) -> int | None:
        """The degree that all scores have at every factor; None if there is none."""
        largest = float(self.scores.abs().max())
        rise = math.log2(max(float(self._scaled(2.0).abs().max()) / largest, 1e-300))
        degree = round(rise)
        if not 1 <= degree <= DEGREES:
            return None
        errors = [misfit(self.scores, self._scaled(a) / a**degree) for a in FACTORS]
        return degree if all(error <= SAME for error in errors) else None

    def _scaled(self, factor: float) -> Tensor:
        """The scores of weights times a factor."""
        trained = [(k, p) for k, p in self.network.named_parameters() if p.requires_grad]
        longer = {k: factor * p.detach() for k, p in trained}
        with torch.no_grad():
            scores: Tensor = functional_call(self.network, longer, (self.data.X, self.data.gates))
        return scores

    def _of_gradients(self) -> Iterator[str]:
        few = self.data.take(torch.arange(min(FEW, len(self.data.X)), device=self.data.X.device))
        network = self.network if self.scores.ndim == 1 else _Weighed(self.network)
        try:
            gradient_gram(network, few)
            along = slopes(network, few, flat(trained_weights(network)).detach())
        except Exception as error:  # of torch.func, or of the module under it
            yield (
                "the gradient of one sample's score cannot be had by torch.func, which KKT "
                f"distances need ({type(error).__name__}): {error}"
            )
            return
        if self.degree is None:
            return
        expected = self.degree * network(few.X, few.gates).detach()
        if not torch.allclose(along, expected, rtol=1e-6, atol=1e-9 * float(expected.abs().max())):
            yield (
                "gradients do not belong to the scores: <grad f, w> is not L f. Let `forward` use "
                "its parameters as they are, without `.data` or `.detach()`, and let every "
                "backward be the derivative of its forward, not a surrogate"
            )


class _Weighed(torch.nn.Module):
    """A sum of the K scores of a network, no two of them of the same weight."""

    def __init__(self, network: torch.nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, X: Tensor, gates: Tensor | None) -> Tensor:
        """Return the sums (n,)."""
        scores: Tensor = self.network(X, gates)
        return scores @ torch.linspace(1, 2, scores.shape[1]).to(scores)
