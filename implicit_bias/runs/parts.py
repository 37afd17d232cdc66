"""The parts that a theory of separable data adds to a run: gates, a program, a network."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .._solve import MaxMarginProgram, SolverName
from ..data.sample import Sample
from ..limits.architecture import Architecture
from ..limits.class_norms import InducedOfClasses
from ..limits.formulation import Formulation, Solving, solve_program
from ..limits.joint_margin import JointMargin
from ..limits.limit import Limit
from ..limits.multiclass import MulticlassLimit, solve_multiclass_svm
from ..limits.optimiser_norms import LayerNorms
from ..training.catalogue import get_trainer

if TYPE_CHECKING:
    import torch

__all__ = ["ClassNetwork", "JointParts", "Parts", "joint_parts", "n_outputs"]


@dataclass(frozen=True)
class ClassNetwork:
    """The network of K outputs that a model adds to a run of all classes at once.

    Attributes
    ----------
    network : callable
        `network(sample, seed)` returns the untrained network of a training sample, whose labels are
        rows (n, K).
    gates : callable, optional
        `gates(of_training)` returns a function of gates as the model draws them, which returns
        those (n, H) that the program and the network take.
    """

    network: Callable[[Sample, int], torch.nn.Module]
    gates: Callable[[Any], Callable[[Any], Any]] | None = None


@dataclass(frozen=True)
class JointParts:
    """The parts of a run of all classes at once, by one network.

    Attributes
    ----------
    architecture : Architecture
    norms : pair of str
        Norms of the layers in which its trainers go steepest.
    induced : InducedOfClasses
        The norm of the program that they induce, and what is known of it.
    of_classes : ClassNetwork
    network_name : str
    """

    architecture: Architecture
    norms: LayerNorms
    induced: InducedOfClasses
    of_classes: ClassNetwork
    network_name: str

    @property
    def name(self) -> str:
        """The name of the program."""
        return self.induced.name

    @property
    def network(self) -> Callable[[Sample, int], torch.nn.Module]:
        """What makes the untrained network of a training sample."""
        return self.of_classes.network

    @property
    def control(self) -> bool:
        """False: where the program is no limit of the network, it is a bound of it."""
        return False

    def bounds(self, n_classes: int) -> bool:
        """Return whether the program only bounds the norm of networks of so many outputs."""
        found = self.architecture.induced_of_classes(self.norms, n_classes)
        return found is not None and not found.exact

    def solve(self, sample: Sample, *, solver: SolverName, tol: float) -> MulticlassLimit:
        """Solve the program of a training sample with labels (n, K).

        By the solver of the norm, unless another one than the usual is named.
        """
        solving: Solving = {"tol": tol}
        if solver != "interior-point":
            solving["solver"] = solver
        return solve_multiclass_svm(
            sample.X, sample.y.argmax(axis=1), sample.gates,
            norm=self.induced.norm, n_classes=sample.y.shape[1], **solving,
        )  # fmt: skip

    def literal(self, sample: Sample) -> Any:
        """State the program in cvxpy."""
        program = JointMargin(sample.y.shape[1], norm=self.induced.norm)
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
    architecture : Architecture, optional
        How its coefficients follow from its layers: by it the norms are known that optimisers
        induce on them, of one output and of several, and the finite programs of weight decay.
    control : bool
        True where the limit is not that of the network but a control.
    joint : ClassNetwork, optional
        The network of all classes at once, where there is one.
    """

    formulation: Formulation[Any]
    network: Callable[[Sample, int], torch.nn.Module]
    network_name: str
    gating: Callable[[int], Any] | None = None
    architecture: Architecture | None = None
    control: bool = False
    joint: ClassNetwork | None = None
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


def joint_parts(parts: Parts, trainers: Sequence[str]) -> JointParts | None:
    """Return the parts of a run of all classes at once; None where no program is known.

    Raises
    ------
    ValueError
        If trainers differ in the norms in which they go steepest, whose programs are not one.
    """
    if parts.joint is None or parts.architecture is None:
        return None
    found = [parts.architecture.induced_of_classes(get_trainer(name).norms) for name in trainers]
    if len({None if one is None else one.norm for one in found}) > 1:
        raise ValueError(
            f"`trainer`: {','.join(trainers)!r} names methods that go steepest in different norms, "
            "and so to different limits: name those of one norm"
        )
    if found[0] is None:
        return None
    norms = get_trainer(trainers[0]).norms
    return JointParts(parts.architecture, norms, found[0], parts.joint, parts.network_name)


def n_outputs(sample: Sample) -> int:
    """Return how many scores a network of a sample has: K for rows of classes, else 1."""
    return int(sample.y.shape[1]) if sample.y.ndim == 2 else 1
