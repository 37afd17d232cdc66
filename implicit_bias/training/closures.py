"""Networks that a method knows by their weights and by a closure that returns their margins."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from ..networks.protocols import sample_of_other_degree
from .data import GatedData
from .stacked import pull_each

__all__ = ["ClosureRun"]


class _OfDegree(torch.nn.Module):
    """Stands for the network that a closure hides: what is known of it is its degree."""

    def __init__(self, degree: int | None) -> None:
        super().__init__()
        self.degree = degree


class ClosureRun:
    """One network, as `Runs` describes, whose margins y f(x) on all samples a closure returns.

    Parameters
    ----------
    parameters : sequence of Parameter
        Its trained weights.
    degree : int or None
    n_samples : int

    Attributes
    ----------
    closure : callable
        The one of the step that is being taken.
    margins : (n_samples,) tensor
        What it returned last, detached.
    """

    closure: Callable[[], Tensor]
    margins: Tensor

    def __init__(
        self, parameters: Sequence[torch.nn.Parameter], degree: int | None, n_samples: int
    ) -> None:
        self.networks: list[torch.nn.Module] = [_OfDegree(degree)]
        self._parameters, self._degree = list(parameters), degree
        self.weights = [p.detach()[None] for p in parameters]
        # Margins are scores whose targets are all 1.
        self.batch = GatedData(torch.empty(0), self.weights[0].new_ones(n_samples), None)

    def scores(self, batch: GatedData) -> Tensor:
        """(1, n) margins, with the graph that `pull` needs.

        Raises
        ------
        TypeError
            If the closure returns no tensor.
        ValueError
            If what it returns has another shape, or nothing to differentiate.
        """
        with torch.enable_grad():
            margins = self.closure()
        n_samples = len(batch.y)
        if not isinstance(margins, Tensor):
            raise TypeError(
                f"the closure must return the margins y f(x) of all {n_samples} samples as a "
                f"tensor, got {type(margins).__name__}: compute no loss and end with return y * f"
            )
        if tuple(margins.shape) != (n_samples,):
            raise ValueError(
                f"the closure must return the margins y f(x) of all {n_samples} samples, shape "
                f"({n_samples},), got {tuple(margins.shape)}: not their loss, and not those of a "
                "mini-batch, which has another limit"
            )
        if not margins.requires_grad:
            raise ValueError(
                "the margins that the closure returned cannot be differentiated: compute them from "
                "the weights within the closure, without detach() or torch.no_grad()"
            )
        self.margins = margins.detach()
        with torch.enable_grad():
            return margins[None]

    def pull(self, scores: Tensor, coefficients: Tensor, *, keep: bool = False) -> list[Tensor]:
        """See `Runs`; raises ValueError for a weight that the margins do not depend on."""
        pulled = torch.autograd.grad(
            scores, self._parameters, coefficients, retain_graph=keep, allow_unused=True
        )
        for i, gradient in enumerate(pulled):
            if gradient is None:
                raise ValueError(
                    f"the margins do not depend on weight {i} of {len(pulled)}, of shape "
                    f"{tuple(self._parameters[i].shape)}: give the optimiser those alone that "
                    "the closure uses"
                )
        return [gradient[None] for gradient in pulled]

    def pull_each(self, scores: Tensor, samples: Tensor) -> list[Tensor]:
        return pull_each(scores, self._parameters, samples)

    def write_back(self) -> None:
        pass

    @torch.no_grad()
    def check_degree(self) -> None:
        """See that doubled weights have 2^degree the margins; does nothing where none is named.

        Raises
        ------
        ValueError
            If some margin grows otherwise.
        """
        if self._degree is None:
            return
        expected = 2**self._degree * self.scores(self.batch).detach()[0]
        before = [weight.clone() for weight in self.weights]
        try:
            for weight in self.weights:
                weight.mul_(2)
            got = self.scores(self.batch).detach()[0]
        finally:
            for weight, value in zip(self.weights, before, strict=True):
                weight.copy_(value)
        n = sample_of_other_degree(expected, got)
        if n is not None:
            raise ValueError(
                f"margins must be homogeneous of degree {self._degree} in the weights that the "
                f"optimiser has, but doubling these takes the margin of sample {n} from "
                f"{float(expected[n]) / 2**self._degree:g} to {float(got[n]):g}, not "
                f"{float(expected[n]):g}: train all layers and no biases, without dropout and "
                "normalising layers, and let `degree` count the layers"
            )
