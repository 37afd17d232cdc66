"""The run of deep gated networks: margins in the rich regime, the kernel of the start in the lazy.

Where a statement is made, it says what it is: theorem, certified number, or measurement.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ...data.sample import Sample
from ...measures.scalars import scores
from ...quantities.assumptions import Assumption
from ...reports.finding import Finding
from ...reports.findings import gating_file
from ...reports.report import Report
from ...runs.gathering import gather
from ...runs.programs import RunPrograms
from ...runs.setup import SampleSetup, Setup, data_record, prepare
from ...training.trainers import check_trainer
from .lazy_run import LAZY, find_lazy, lazy_programs
from .model import GATES_SEPARATE
from .parts import gated, gates_network, make_network, network_name, resolved, train_gates
from .rich_run import find_rich, rich_programs

__all__ = ["dgn_programs", "run_dgn"]


def run_dgn(setup: Setup) -> Report:
    """Bound, train, find the local limits and compare; or train beside the kernel of the start.

    Raises
    ------
    ValueError, FileNotFoundError
        If an option is out of range or without effect, or the data are not there, before any long
        work.
    """
    if setup.options.gating == "learned" and not setup.trains:
        raise ValueError("`steps` 0 trains nothing, and `--gating learned` learns in half of them")
    samples = _prepare(setup)
    options = samples.options
    n_inputs = samples.dataset.X_train.shape[1]
    check_trainer(options.trainer, make_network(options, n_inputs, setup.seeds.weights))
    lazy = options.regime == "lazy"
    beside = "the kernel of its start" if lazy else "its local limits"
    heading = samples.heading(
        data_record(samples.dataset),
        title=f"{network_name(options)}, beside {beside}",
        theorem=LAZY if lazy else "",
        source="Jacot, Gabriel and Hongler 2018; Chizat, Oyallon and Bach 2019",
    )
    return gather(heading, _find(samples), setup.folder)


def dgn_programs(setup: Setup) -> RunPrograms:
    """State the bound of the rich regime, or the two programs of the kernel in the lazy one.

    Raises
    ------
    ValueError, FileNotFoundError
        If an option is out of range or without effect, the data are not there, or there are more
        paths than memory holds.
    """
    samples = _prepare(setup)
    samples = gated(samples, gates_network(samples))
    state = lazy_programs if samples.options.regime == "lazy" else rich_programs
    note = ""
    if samples.options.gating == "learned":
        note = "gates are those of the ReLU network as it starts, and a run trains it first"
    return RunPrograms(setup.model, samples.dataset.description, tuple(state(samples, note)))


def _prepare(setup: Setup) -> SampleSetup:
    """Settle options that follow from others, and load the data."""
    return prepare(replace(setup, options=resolved(setup.options, setup.user_data)))


def _find(setup: SampleSetup) -> Iterator[Finding]:
    """Yield the findings of the run, each as soon as it is known."""
    relu, ready = train_gates(setup)
    setup = gated(setup, relu)
    assumptions: tuple[Assumption, ...] = ()
    if setup.options.gating == "learned" and relu is not None:
        X, y = setup.train.X, setup.train.y
        separates = bool((y * scores(relu, Sample(X, y, None))).min() > 0)
        assumptions = (GATES_SEPARATE.found(holds=separates),)
    yield Finding.said(
        "gating",
        files=gating_file(setup.gating).views.files,
        assumptions=assumptions,
        finished=ready,
    )
    if ready:
        yield from (find_lazy if setup.options.regime == "lazy" else find_rich)(setup)
