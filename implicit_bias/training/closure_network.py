"""A network that is known by its weights and by a closure that returns its margins."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from ..networks.placed_data import GatedData
from ..networks.protocols import sample_of_other_degree
from .network_stack import NetworkStack


class _UnknownNetwork(torch.nn.Module):
    """Placeholder for the network behind a closure, of which the degree alone is known."""

    def __init__(self, degree: int | None) -> None:
        super().__init__()
        self.degree = degree


class ClosureNetwork(NetworkStack):
    """One network whose margins y f(x) on all samples a closure returns.

    Parameters
    ----------
    parameters : sequence of Parameter
        Its trained weights.
    degree : int or None
        Degree of homogeneity of the margins in them; None if they have none.
    n_samples : int

    Attributes
    ----------
    closure : callable
        The one of the step that is being taken.
    margins : (n_samples,) tensor
        What it returned last, detached.
    batch : GatedData
        All samples, with no inputs and the target 1: margins are scores with these targets.
    """

    repeatable = False  # there is no saying what the next closure will do
    closure: Callable[[], Tensor]
    margins: Tensor

    def __init__(
        self, parameters: Sequence[torch.nn.Parameter], degree: int | None, n_samples: int
    ) -> None:
        self.networks = [_UnknownNetwork(degree)]
        self._leaves, self._degree = list(parameters), degree
        self.weights = [p.detach()[None] for p in parameters]
        self.batch = GatedData(torch.empty(0), self.weights[0].new_ones(n_samples), None)

    def scores(self, batch: GatedData) -> Tensor:
        """Return the margins (1, n), with the graph that `vjp` needs.

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
                f"the `closure` must return the margins y f(x) of all {n_samples} samples as a "
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

    def looked_at(self, batch: GatedData) -> Tensor:
        """Return the margins (1, n) at weights that will not stay, which `margins` are not."""
        before = self.margins
        found = self.scores(batch).detach()
        self.margins = before
        return found

    @torch.no_grad()
    def check_degree(self) -> None:
        """Check that doubled weights have 2^degree times the margins, if there is a degree.

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
