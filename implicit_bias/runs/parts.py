"""The parts that a theory of separable data adds to a run: gates, a formulation, a network."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .._solve import MaxMarginProgram, SolverName
from ..data.sample import Sample
from ..limits.formulation import Formulation, solve_program
from ..limits.limit import Limit
from ..limits.optimiser_norms import Form

if TYPE_CHECKING:
    import torch

__all__ = ["Parts"]


@dataclass(frozen=True)
class Parts:
    """The parts that a model adds to the run of separable data.

    Attributes
    ----------
    formulation : Formulation
        The program of the limit. Its design depends on inputs and gates alone, so that one serves
        several labellings.
    network : callable
        `network(sample, seed)` returns the untrained network of a training sample.
    network_name : str
        For messages and pictures.
    size : str
        Its units, contexts or layers, for titles; empty where there is nothing to count.
    gating : callable, optional
        `gating(seed)` returns an unfitted transformer of inputs to gates, if there are gates.
    form : str, optional
        How its coefficients follow from its layers, by which the norm that an optimiser induces on
        them is known: a key of `limits.optimiser_norms.INDUCED`.
    control : bool
        True where the limit is not that of the network but a control.
    """

    formulation: Formulation[Any]
    network: Callable[[Sample, int], torch.nn.Module]
    network_name: str
    gating: Callable[[int], Any] | None = None
    form: Form | None = None
    control: bool = False
    size: str = ""

    @property
    def title(self) -> str:
        """The network with its size beside the program of its limit."""
        of_size = f" of {self.size}" if self.size else ""
        return f"{self.network_name}{of_size} beside {self.formulation.name}"

    def solve(
        self, program: MaxMarginProgram, gates: Any, *, solver: SolverName, tol: float
    ) -> Limit:
        """Solve a program of the formulation on these gates."""
        solution = solve_program(program, solver=solver, tol=tol)
        limit: Limit = self.formulation.limit(program, solution, gates)
        return limit
