"""The parts that a theory of separable data adds to a run: gates, a program, a network."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .._solve import MaxMarginProgram, NormName, SolverName
from ..data.sample import Sample
from ..limits.formulation import Formulation, Solving, solve_program
from ..limits.joint_margin import JointMargin
from ..limits.limit import Limit
from ..limits.multiclass import MulticlassLimit, solve_multiclass_svm
from ..limits.optimiser_norms import Form
from ..training.catalogue import get_trainer
from .decay_programs import Layers

if TYPE_CHECKING:
    import torch

__all__ = ["JointParts", "Parts", "n_outputs", "norms_of_trainers"]


@dataclass(frozen=True)
class JointParts:
    """The parts that a model adds to a run of all classes at once, by one network.

    Attributes
    ----------
    norm : str
        The norm of the program: see `limits.Norm`.
    name : str
        Of the program, for messages and pictures.
    program : str
        The program in one line.
    theorem, source : str
        What is known of training beside it, and where it stands.
    network : callable
        `network(sample, seed)` returns the untrained network of a training sample, whose labels are
        rows (n, K).
    network_name : str
    bound : bool
        True where the program bounds the norm of every network from below, and is the limit of
        none that is known.
    narrowest : int, optional
        Units of the narrowest layer: with less than K - 1 of them the program is a bound too.
    gates : callable, optional
        `gates(of_training)` returns a function of gates as the model draws them, which returns
        those (n, H) that the program and the network take.
    """

    norm: NormName
    name: str
    program: str
    theorem: str
    source: str
    network: Callable[[Sample, int], torch.nn.Module]
    network_name: str
    bound: bool = False
    narrowest: int | None = None
    gates: Callable[[Any], Callable[[Any], Any]] | None = None

    @property
    def control(self) -> bool:
        """False: where the program is no limit of the network, it is a bound of it."""
        return False

    def bounds(self, n_classes: int) -> bool:
        """Return whether the program only bounds the norm of networks of so many outputs."""
        return self.bound or (self.narrowest is not None and self.narrowest < n_classes - 1)

    def solve(self, sample: Sample, *, solver: SolverName, tol: float) -> MulticlassLimit:
        """Solve the program of a training sample with labels (n, K).

        By the solver of the norm, unless another one than the usual is named.
        """
        solving: Solving = {"tol": tol}
        if solver != "interior-point":
            solving["solver"] = solver
        return solve_multiclass_svm(
            sample.X, sample.y.argmax(axis=1), sample.gates,
            norm=self.norm, n_classes=sample.y.shape[1], **solving,
        )  # fmt: skip

    def literal(self, sample: Sample) -> Any:
        """State the program in cvxpy."""
        program = JointMargin(sample.y.shape[1], norm=self.norm)
        return program.literal(sample.X, sample.y.argmax(axis=1), sample.gates)


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
    joint : JointParts, optional
        The parts of a run of all classes at once, where there is a program for it.
    decay : Layers, optional
        Its layers, where a finite program is known of their training with weight decay.
    """

    formulation: Formulation[Any]
    network: Callable[[Sample, int], torch.nn.Module]
    network_name: str
    gating: Callable[[int], Any] | None = None
    form: Form | None = None
    control: bool = False
    joint: JointParts | None = None
    decay: Layers | None = None
    size: str = ""

    @property
    def name(self) -> str:
        """The name of the program."""
        return self.formulation.name

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


def norms_of_trainers(options: Any, n_layers: int) -> tuple[NormName, ...]:
    """Return the norms of the layers in which the trainers of a run go steepest.

    Raises
    ------
    ValueError
        If several are named that differ in them, whose programs are not one.
    """
    named = {name: get_trainer(name).norms_of(n_layers) for name in options.trainer.split(",")}
    first, *others = dict.fromkeys(named.values())
    if others:
        raise ValueError(
            f"`trainer`: {options.trainer!r} names methods that go steepest in different norms, "
            "and so to different limits: name those of one norm"
        )
    return first


def n_outputs(sample: Sample) -> int:
    """Return how many scores a network of a sample has: K for rows of classes, else 1."""
    return int(sample.y.shape[1]) if sample.y.ndim == 2 else 1
