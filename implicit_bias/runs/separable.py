"""The run of separable data: predict the limit, train a network, compare."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from .._solve import MaxMarginProgram
from ..data.labelled import ClassDataset
from ..reports.finding import Finding
from ..reports.findings import gating_file, solved, usable
from ..reports.report import Report
from .decayed import decayed_programs, decays, run_decayed
from .gathering import gather
from .model import imported
from .parts import Parts
from .programs import RunPrograms, stated
from .setup import SampleSetup, Setup, data_record, prepare

if TYPE_CHECKING:
    from .trainer_run import TrainerRun

__all__ = ["run_separable", "separable_programs"]


def run_separable(setup: Setup) -> Report:
    """Predict the limit of a network, train one by each trainer that was named, and compare them.

    With several classes there is a limit and a network for each of them, against the rest.

    Raises
    ------
    ValueError, FileNotFoundError
        If an option is out of range or the data are not there, before any long work.
    """
    parts: Parts = imported(setup.model.parts)(setup.options)
    samples = prepare(setup, gating=parts.gating)
    if decays(setup.options):
        return run_decayed(samples, parts)
    if setup.options.classes == "all":
        from .one_vs_rest import run_one_vs_rest  # with torch

        return run_one_vs_rest(samples, parts)
    return _run_two(samples, parts)


def separable_programs(setup: Setup) -> RunPrograms:
    """State the program of the limit; of several classes that of the first against the rest.

    Raises
    ------
    ValueError, FileNotFoundError
        If an option is out of range or the data are not there.
    """
    parts: Parts = imported(setup.model.parts)(setup.options)
    samples, note = prepare(setup, gating=parts.gating), ""
    if decays(setup.options):
        return decayed_programs(samples, parts)
    if isinstance(samples.dataset, ClassDataset):
        from .one_vs_rest import against_rest

        first, *others = samples.dataset.classes
        train, _ = against_rest(samples, first)
        note = (
            f"this is class {first} against the rest; {len(others)} more programs differ from it "
            "in y alone"
        )
    else:
        train = samples.train
    setup.progress.stage(f"stating {parts.formulation.name} on {len(train.y)} samples")
    program = stated(parts.formulation.name, parts.formulation.literal(*train), note)
    return RunPrograms(setup.model, samples.dataset.description, (program,))


def _run_two(setup: SampleSetup, parts: Parts) -> Report:
    # First: it knows what memory the problem takes.
    program = parts.formulation.program(*setup.train)
    runs: Sequence[TrainerRun] = ()
    if setup.trains:
        from .trainer_run import trainer_runs  # with torch, which no limit alone needs

        runs = trainer_runs(setup, parts)
    heading = setup.heading(data_record(setup.dataset), title=parts.title)
    return gather(heading, _find(setup, parts, program, runs), setup.folder)


def _find(
    setup: SampleSetup, parts: Parts, program: MaxMarginProgram, runs: Sequence[TrainerRun]
) -> Iterator[Finding]:
    """Yield the findings of the run, each as soon as it is known."""
    options, name = setup.options, parts.formulation.name
    setup.progress.stage(f"solving {name} on {len(setup.train.y)} samples ({options.solver})")
    limit = parts.solve(program, setup.gates[0], solver=options.solver, tol=options.tol)
    yield solved(limit, name)
    yield gating_file(setup.gating)
    if usable(limit) and runs:
        from .trainer_run import train_side_by_side

        yield from train_side_by_side(setup, runs, parts, limit)
