"""The run of separable data: predict the limit, train a network, compare."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pkgutil import resolve_name
from typing import TYPE_CHECKING

from .._solve import NormName
from ..data.labelled import ClassDataset
from ..data.sample import Sample
from ..limits.multiclass import MarginLimit
from ..reports.finding import Finding
from ..reports.findings import gating_file, solved, usable
from ..reports.report import Report
from .decayed import decayed_programs, decays, run_decayed
from .gathering import gather
from .joint import gated
from .parts import Induced, JointParts, Parts, joint_parts, n_outputs
from .programs import RunPrograms, StatedProgram, stated
from .setup import SampleSetup, Setup, data_record, prepare

if TYPE_CHECKING:
    from .trainer_run import TrainerRun

__all__ = ["run_separable", "separable_programs"]


def run_separable(setup: Setup) -> Report:
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
    samples = prepare(setup, gating=parts.gating)
    if decays(setup.options):
        return run_decayed(samples, parts)
    if joint is not None:
        return _run_joint(gated(samples, joint), joint)
    if setup.options.classes == "all":
        from .one_vs_rest import run_one_vs_rest  # with torch

        return run_one_vs_rest(samples, parts)
    return _run_two(samples, parts)


def separable_programs(setup: Setup) -> RunPrograms:
    """State the program of the limit, and of each trainer in another norm once.

    Of several classes against the rest it is that of the first.

    Raises
    ------
    ValueError, FileNotFoundError
        If an option is out of range or the data are not there.
    """
    parts: Parts = resolve_name(setup.model.parts)(setup.options)
    joint = _joint(setup, parts)
    samples = prepare(setup, gating=parts.gating)
    if decays(setup.options):
        return decayed_programs(samples, parts)
    if joint is not None:
        samples = gated(samples, joint)
        programs = _stated(samples, joint, samples.train)
        known = joint.main
        model = replace(
            setup.model, theorem=known.theorem, source=known.source, program=known.program
        )
        return RunPrograms(model, samples.dataset.description, programs)
    if isinstance(samples.dataset, ClassDataset):
        from .one_vs_rest import against_rest

        first, *others = samples.dataset.classes
        train, _ = against_rest(samples, first)
        setup.progress.stage(f"stating {parts.name} on {len(train.y)} samples")
        note = (
            f"this is class {first} against the rest; {len(others)} more programs differ from it "
            "in y alone"
        )
        programs = (stated(parts.name, parts.literal(train), note),)
    else:
        programs = _stated(samples, parts, samples.train)
    return RunPrograms(setup.model, samples.dataset.description, programs)


def _stated(
    setup: SampleSetup, parts: Parts | JointParts, train: Sample
) -> tuple[StatedProgram, ...]:
    """State the program of the limit, and that of every other norm that a trainer induces."""
    by_norm: dict[NormName | None, Induced] = {None: Induced(parts.name, None, exact=True)}
    trainers: dict[NormName | None, list[str]] = {None: []}
    for name in setup.options.trainer.split(","):
        found = parts.induced_by(name, n_outputs(train))
        if found is not None:
            by_norm[found.norm] = found
            trainers.setdefault(found.norm, []).append(name)
    programs = []
    for norm, names in trainers.items():
        own, note = by_norm[norm], ""
        setup.progress.stage(f"stating {own.name} on {len(train.y)} samples")
        if len(trainers) > 1:
            by = f"the program of {' and '.join(names)}"
            note = by if names else "what every network is compared with"
            note += "" if own.exact else ", a lower bound: no theorem names its limit"
        programs.append(stated(own.name, parts.literal(train, norm), note))
    return tuple(programs)


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


def _run_joint(setup: SampleSetup, parts: JointParts) -> Report:
    runs: Sequence[TrainerRun] = ()
    if setup.trains:
        from .trainer_run import trainer_runs

        runs = trainer_runs(setup, parts)
    heading = setup.heading(
        data_record(setup.dataset),
        title=f"{parts.network_name} of {len(setup.train.y[0])} outputs beside {parts.name}",
        theorem=parts.main.theorem,
        source=parts.main.source,
        program=parts.main.program,
    )

    def solution() -> MarginLimit:
        options = setup.options
        return parts.solve(setup.train, solver=options.solver, tol=options.tol)

    return gather(heading, _find(setup, parts, solution, runs), setup.folder)


def _run_two(setup: SampleSetup, parts: Parts) -> Report:
    # First: it knows what memory the problem takes.
    program = parts.formulation.program(*setup.train)
    runs: Sequence[TrainerRun] = ()
    if setup.trains:
        from .trainer_run import trainer_runs  # with torch, which no limit alone needs

        runs = trainer_runs(setup, parts)
    heading = setup.heading(data_record(setup.dataset), title=parts.title)

    def solution() -> MarginLimit:
        options = setup.options
        return parts.solve(program, setup.gates[0], solver=options.solver, tol=options.tol)

    return gather(heading, _find(setup, parts, solution, runs), setup.folder)


def _find(
    setup: SampleSetup,
    parts: Parts | JointParts,
    solution: Callable[[], MarginLimit],
    runs: Sequence[TrainerRun],
) -> Iterator[Finding]:
    """Yield the findings of the run, each as soon as it is known."""
    options, name = setup.options, parts.name
    setup.progress.stage(f"solving {name} on {len(setup.train.y)} samples ({options.solver})")
    limit = solution()
    yield solved(limit, name)
    yield gating_file(setup.gating)
    if usable(limit) and runs:
        from .trainer_run import train_side_by_side

        yield from train_side_by_side(setup, runs, parts, limit)
