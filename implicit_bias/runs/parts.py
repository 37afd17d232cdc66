"""The parts that a theory of separable data adds to a run: gates, a program, a network."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from .._support.solve import (
    MaxMarginProgram,
    Norm,
    NormName,
    RelativeMargins,
    SolverName,
    norm_expression,
)
from ..data.sample import Sample
from ..limits.exact.architecture import Architecture
from ..limits.exact.normed import NormedFormulation
from ..limits.exact.optimiser_norms import InducedNorm
from ..limits.formulation import Formulation, Solving, solve_program
from ..limits.limit import Limit
from ..training.catalogue import get_trainer

if TYPE_CHECKING:
    import torch

    from ..limits.exact.class_norms import InducedOfClasses
    from ..limits.exact.joint_margin import JointMargin
    from ..limits.exact.multiclass import MulticlassLimit


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
class Induced:
    """The program that a trainer induces.

    Attributes
    ----------
    name : str
    norm : str or None
        None for that of the run's limit.
    induced : InducedNorm
        On the coefficients, whichever program it is of.
    """

    name: str
    norm: NormName | None
    induced: InducedNorm

    @property
    def exact(self) -> bool:
        """False where the program is a lower bound."""
        return self.induced.exact


@dataclass(frozen=True)
class JointParts:
    """The parts of a run of all classes at once, by one network.

    Attributes
    ----------
    architecture : Architecture
    induced : mapping of trainer to InducedOfClasses
        The norm of the program that each trainer induces, and what is known of it.
    trainer : str
        The one to whose program the run compares: the first that descends the gradient, or the
        first of all.
    network, gates : callable
        As of `ClassNetwork`.
    network_name : str
    control : bool
        False: where the program is no limit of the network, it is a bound of it.
    """

    architecture: Architecture
    induced: Mapping[str, InducedOfClasses]
    trainer: str
    network: Callable[[Sample, int], torch.nn.Module]
    gates: Callable[[Any], Callable[[Any], Any]] | None
    network_name: str
    control: bool = False

    @property
    def main(self) -> InducedOfClasses:
        """The norm of the run's limit."""
        return self.induced[self.trainer]

    @property
    def name(self) -> str:
        """The name of the program."""
        return self.main.name

    @property
    def n_contexts(self) -> int | None:
        """Contexts of a unit; None where the program takes gates, as columns of contexts are."""
        return self.architecture.n_contexts if self.gates is None else None

    def of(self, trainer: str, n_classes: int) -> InducedOfClasses:
        """Return the norm that a trainer induces on networks of so many outputs."""
        found = self.architecture.induced_of_classes(get_trainer(trainer).norms, n_classes)
        return found or self.induced[trainer]

    def solve(
        self, sample: Sample, *, solver: SolverName, tol: float, norm: NormName | None = None
    ) -> MulticlassLimit:
        """Solve the program of a training sample with labels (n, K), in the norm of the limit.

        By the solver of the norm, unless another one than the usual is named.
        """
        from ..limits.exact.multiclass import solve_multiclass_svm

        solving: Solving = {"tol": tol}
        if solver != "interior-point":
            solving["solver"] = solver
        return solve_multiclass_svm(
            sample.X, sample.y.argmax(axis=1), sample.gates,
            norm=norm or self.main.norm, n_classes=sample.y.shape[1], n_contexts=self.n_contexts,
            **solving,
        )  # fmt: skip

    def induced_by(self, trainer: str, n_classes: int) -> Induced:
        """Return the program of a trainer on networks of so many outputs."""
        known = self.of(trainer, n_classes)
        norm = None if known.norm == self.main.norm else known.norm
        return Induced(known.name, norm, InducedNorm(known.norm, known.exact, known.source))

    def image(self, sample: Sample) -> RelativeMargins:
        """Return the relative margins of a training sample as a map of the coefficients."""
        program = self._program(sample, self.main.norm)
        found = program.margins(sample.X, sample.y.argmax(axis=1), sample.gates).image
        assert isinstance(found, RelativeMargins)
        return found

    def literal(self, sample: Sample, norm: NormName | None = None) -> Any:
        """State the program in cvxpy, in the norm of the limit unless another is named."""
        program = self._program(sample, norm or self.main.norm)
        return program.literal(sample.X, sample.y.argmax(axis=1), sample.gates)

    def _program(self, sample: Sample, norm: NormName) -> JointMargin:
        from ..limits.exact.joint_margin import JointMargin

        return JointMargin(sample.y.shape[1], norm, self.n_contexts)


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

    def induced_by(self, trainer: str, n_classes: int = 1) -> Induced | None:
        """Return the program of a trainer; None where no table names one."""
        norms = get_trainer(trainer).norms
        found = None if self.architecture is None else self.architecture.induced(norms)
        if self.architecture is None or found is None:
            return None
        # The spectral norm of a row is its l2 norm.
        row = not self.architecture.gated and found.norm in ("l2", "spectral")
        if norms == ("l2", "l2") or row:
            return Induced(self.name, None, found)
        return Induced(f"{self.name}, {found.norm} norm", found.norm, found)

    def literal(self, sample: Sample, norm: NormName | None = None) -> Any:
        """State the program in cvxpy, in the norm of the limit unless another is named."""
        if norm is not None and isinstance(self.formulation, NormedFormulation):
            return replace(self.formulation, norm=norm).literal(*sample)  # type: ignore[type-var]
        problem = self.formulation.literal(*sample)
        if norm is None:
            return problem
        # One variable with a row a unit, or a context, whose norm is the objective.
        objective, further = norm_expression(Norm.of(norm), problem.variables())
        return type(problem)(type(problem.objective)(objective), problem.constraints + further)

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


def joint_parts(parts: Parts, trainers: Sequence[str]) -> JointParts:
    """Return the parts of a run of all classes at once.

    Raises
    ------
    KeyError
        With the trainer of which no program is known.
    """
    if parts.joint is None or parts.architecture is None:
        raise KeyError(trainers[0])
    induced: dict[str, InducedOfClasses] = {}
    for name in trainers:
        found = parts.architecture.induced_of_classes(get_trainer(name).norms)
        if found is None:
            raise KeyError(name)
        induced[name] = found
    descent = [name for name in trainers if get_trainer(name).norms == ("l2", "l2")]
    trainer = (*descent, *trainers)[0]
    own = parts.joint
    return JointParts(
        parts.architecture, induced, trainer, own.network, own.gates, parts.network_name
    )


def n_outputs(sample: Sample) -> int:
    """Return how many scores a network of a sample has: K for rows of classes, else 1."""
    return int(sample.y.shape[1]) if sample.y.ndim == 2 else 1
