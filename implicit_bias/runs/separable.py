"""The run of separable data: predict the limit, train a network, compare."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from .._solve import MaxMarginProgram
from ..data.labelled import ClassDataset
from ..drawing.trainers import trainer_panels
from ..limits.limit import Limit
from ..reports.finding import Finding
from ..reports.findings import gating_file, solved, usable
from ..reports.report import Report
from ..reports.side_by_side import side_by_side
from ..training.trainers import check_trainer
from .gathering import gather
from .model import imported
from .one_vs_rest import against_rest, run_one_vs_rest
from .parts import Parts
from .programs import RunPrograms, stated
from .setup import SampleSetup, Setup, data_record, prepare
from .trainer_run import TrainerRun, known_as, predicted, train_and_compare, trainer_runs

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
    if setup.options.classes == "all":
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
    if isinstance(samples.dataset, ClassDataset):
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
    runs = trainer_runs(setup, parts)
    for one in runs:
        check_trainer(one.trainer, one.network)
    title = f"{parts.network_name} beside {parts.formulation.name}"
    heading = setup.heading(data_record(setup.dataset), title=title)
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
    if not (usable(limit) and setup.trains):
        return
    found: dict[str, dict[str, Finding]] = {}
    for one in runs:
        for finding in train_and_compare(one, parts, limit):
            of_each = found.setdefault(finding.key, {})
            of_each[one.trainer] = finding
            yield _together(of_each, setup, parts, limit)
        if not found["network"][one.trainer].finished:
            return


def _together(
    of_each: Mapping[str, Finding], setup: SampleSetup, parts: Parts, limit: Limit
) -> Finding:
    """Return the finding about the networks of all trainers, their curves in the same panels."""
    whole = side_by_side(of_each)
    if len(of_each) == 1 or whole.key != "network":
        return whole
    runs = {trainer: one.objects["trajectory"] for trainer, one in of_each.items()}
    panels = trainer_panels(runs, limit, predicted(setup, limit), name=known_as(parts))
    return replace(whole, panels=tuple(panels))
