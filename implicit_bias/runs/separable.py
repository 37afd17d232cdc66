"""The run of separable data: predict the limit, train a network, compare."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

from .._support.solve import MaxMarginProgram, NormName
from .parts import JointParts, Parts, joint_parts, n_outputs
from .reports.finding import Finding
from .reports.findings import gating_file, solved, usable
from .setup import SampleSetup, Setup, data_record, prepare
from .stages import Found, Run, Stage, later

if TYPE_CHECKING:
    from ..limits.exact.multiclass import MarginLimit
    from .programs import StatedProgram


@dataclass(frozen=True, eq=False, kw_only=True)
class SeparableSetup(SampleSetup):
    """The setup of a run, with the parts of its theory.

    Attributes
    ----------
    parts : Parts or JointParts
    """

    parts: Parts | JointParts

    @cached_property
    def program(self) -> MaxMarginProgram | None:
        """The program of two labels; None of all classes at once, built as it is solved."""
        if isinstance(self.parts, JointParts):
            return None
        program: MaxMarginProgram = self.parts.formulation.program(*self.train)
        return program

    @cached_property
    def runs(self) -> Sequence[Any]:
        """A `TrainerRun` for every trainer that was named, with torch, which no limit needs."""
        made: Sequence[Any] = resolve_name(f"{__package__}.trainer_run:trainer_runs")(self)
        return made

    def check(self) -> None:
        """See that memory holds the program, before that every trainer takes the network."""
        _ = self.program, self.trains and self.runs

    def solved(self) -> MarginLimit:
        """Solve the program of the limit."""
        solver, tol = self.options.solver, self.options.tol
        if isinstance(self.parts, JointParts):
            return self.parts.solve(self.train, solver=solver, tol=tol)
        assert self.program is not None
        return self.parts.solve(self.program, self.gates[0], solver=solver, tol=tol)


def run_separable(setup: Setup) -> Run[Any]:
    """Predict the limit of a network, train one by each trainer that was named, and compare them.

    With several classes there is a limit and a network for each of them, against the rest; or one
    limit and one network for all of them, by softmax.

    Raises
    ------
    ValueError, FileNotFoundError
        If an option is out of range or the data are not there, before any long work.
    """
    parts: Parts = resolve_name(setup.model.parts)(setup.options)
    joint = _joint(setup, parts)
    if joint is not None:
        of = joint.main
        model = replace(setup.model, theorem=of.theorem, source=of.source, program=of.program)
        setup = replace(setup, model=model)
    samples = prepare(setup, gating=parts.gating)
    if _decays(setup.options):
        return _run_of("decay.decayed:decayed_run", samples, parts)
    if joint is not None:
        title = f"{joint.network_name} of {n_outputs(samples.train)} outputs beside {joint.name}"
        from .classes.joint import gated

        return _beside(gated(samples, joint), joint, title)
    if setup.options.classes == "all":
        return _run_of("classes.one_vs_rest:one_vs_rest_run", samples, parts)
    return _beside(samples, parts, parts.title)


def _run_of(place: str, samples: SampleSetup, parts: Parts) -> Run[Any]:
    """Return the run that a function of another module makes, which most runs do not need."""
    run: Run[Any] = resolve_name(f"{__package__}.{place}")(samples, parts)
    return run


def _decays(options: Any) -> bool:
    """Return whether options ask for weight decay.

    Raises
    ------
    ValueError
        If they ask for decoupled decay or the squared loss, and for no decay.
    """
    found = bool(getattr(options, "weight_decay", 0.0))
    if not found and getattr(options, "decoupled", False):
        raise ValueError("`decoupled` is a form of weight decay: give `--weight-decay`")
    if not found and options.loss == "squared":
        raise ValueError(
            "`loss` 'squared' has a program with weight decay alone: give `--weight-decay`, or "
            "take `diagonal` or `gdln`, whose limits are those of the squared loss"
        )
    return found


def _beside(samples: SampleSetup, parts: Parts | JointParts, title: str) -> Run[SeparableSetup]:
    """Return the run of networks beside one limit."""
    setup = SeparableSetup(**samples.shared, parts=parts)
    heading = setup.heading(data_record(setup.dataset), title=title)
    return Run(setup=setup, heading=heading, stages=STAGES, checks=setup.check)


def _predict(setup: SeparableSetup, found: Found) -> Iterator[Finding]:
    n, solver = len(setup.train.y), setup.options.solver
    setup.progress.stage(f"solving {setup.parts.name} on {n} samples ({solver})")
    yield solved(setup.solved(), setup.parts.name)
    yield gating_file(setup.gating)


def _state(setup: SeparableSetup) -> Iterator[StatedProgram]:
    """State the program of the limit, and that of every other norm that a trainer induces."""
    from .programs import stated

    parts, train = setup.parts, setup.train
    programs: dict[NormName | None, tuple[str, bool, list[str]]] = {None: (parts.name, True, [])}
    for name in setup.options.trainer.split(","):
        found = parts.induced_by(name, n_outputs(train))
        if found is not None:
            trainers = programs[found.norm][2] if found.norm in programs else []
            programs[found.norm] = found.name, found.exact, [*trainers, name]
    for norm, (name, exact, trainers) in programs.items():
        note = ""
        setup.progress.stage(f"stating {name} on {len(train.y)} samples")
        if len(programs) > 1:
            by = f"the program of {' and '.join(trainers)}"
            note = by if trainers else "what every network is compared with"
            note += "" if exact else ", a lower bound: no theorem names its limit"
        yield stated(name, parts.literal(train, norm), note)


STAGES: tuple[Stage[SeparableSetup], ...] = (
    Stage(finds=_predict, states=_state),
    Stage(
        finds=later(f"{__package__}.trainer_run:train_side_by_side"),
        trains=True,
        when=lambda setup, found: usable(found["limit"]),
    ),
)


def _joint(setup: Setup, parts: Parts) -> JointParts | None:
    """Return the parts of a run of all classes at once, if that is asked for.

    Raises
    ------
    ValueError
        If the model has none.
    """
    if setup.options.classes != "joint":
        return None
    try:
        return joint_parts(parts, setup.options.trainer.split(","))
    except KeyError as error:
        raise ValueError(
            f"`classes`: 'joint' has no program for the model {setup.model.name} and the trainer "
            f"{error.args[0]!r}: take 'all', each class against the rest, or a trainer of "
            "gradient descent"
        ) from None
